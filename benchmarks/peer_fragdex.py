"""fragdex in a process of its own: how the switch FRAGDEX_PURE_PYTHON is put under the clock.

    FRAGDEX_PURE_PYTHON=1 python benchmarks/peer_fragdex.py FILE

The process stays: each line on stdin asks for one run and gets one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time

import fragdex


def main() -> None:
    """Answer each line on stdin with the nanoseconds of one build."""
    for _ in sys.stdin:
        began = time.perf_counter_ns()
        index = fragdex.index(sys.argv[1])
        ns = time.perf_counter_ns() - began
        samples = sum(track.sample_count or 0 for track in index.tracks)
        print(json.dumps({"ns": ns, "samples": samples}), flush=True)


if __name__ == "__main__":
    main()
