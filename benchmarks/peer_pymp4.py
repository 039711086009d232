"""pymp4 under the clock: run by its own interpreter, since it pins an older construct.

    .venv-pymp4/bin/python benchmarks/peer_pymp4.py FILE

The process stays: each line on stdin asks for one run and gets one line of JSON. A run parses
the moov and every moof; media is hopped over, as our own reader does.
"""

from __future__ import annotations

import json
import struct
import sys
import time
from typing import BinaryIO

from pymp4.parser import Box  # type: ignore[import-not-found,unused-ignore]


def _run(file: BinaryIO) -> dict[str, int]:
    at = parsed = samples = 0
    while len(header := file.read(16)) >= 8:
        size, kind = struct.unpack_from(">I4s", header)
        if size == 1:
            size = struct.unpack_from(">Q", header, 8)[0]
        elif size == 0:
            break
        if kind in (b"moof", b"moov"):
            file.seek(at)
            box = Box.parse(file.read(size))
            parsed += 1
            if kind == b"moof":
                runs = (c for t in box.children if t.type == b"traf" for c in t.children)
                samples += sum(run.sample_count for run in runs if run.type == b"trun")
        at += size
        file.seek(at)
    return {"boxes": parsed, "samples": samples}


def main() -> None:
    """Answer each line on stdin with the nanoseconds of one run."""
    for _ in sys.stdin:
        began = time.perf_counter_ns()
        with open(sys.argv[1], "rb") as file:
            seen = _run(file)
        print(json.dumps({"ns": time.perf_counter_ns() - began, **seen}), flush=True)


if __name__ == "__main__":
    main()
