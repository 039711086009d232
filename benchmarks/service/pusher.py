"""A client that pushes one file: python pusher.py FILE HASH_FIRST, the rest by environment.

It stands in a process of its own and uses `fragdex.client` as its users do. A line of JSON tells
the time of the push, and the processor time of this process in it.
"""

from __future__ import annotations

import json
import os
import sys
import time

from fragdex.client import Client


def push(path: str, hash_first: bool) -> dict[str, object]:
    """Push a file; what it took, and the record's id and md5."""
    with Client(os.environ["SERVICE_URL"], os.environ["KEY"], trust_env=False) as client:
        began, busy = time.perf_counter_ns(), time.process_time_ns()
        record = client.push(path, type="video", hash_first=hash_first)
        ended = time.perf_counter_ns()
    return {
        "ns": ended - began,
        "busy_ns": time.process_time_ns() - busy,
        "id": record.id,
        "md5": (record.md5 or "").replace("-", ""),
        "byte_size": record.byte_size,
    }


if __name__ == "__main__":
    print(json.dumps(push(sys.argv[1], sys.argv[2] == "1")))
