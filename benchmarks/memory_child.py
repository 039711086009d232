"""One build under the eye of rows_memory.py, in a fresh process.

    python benchmarks/memory_child.py build|samples|nothing FILE WARM

It makes ready (imports, a first build of the head of the file WARM, so that no module is loaded
later), writes a line, waits for one, works, writes its figures and keeps the result until it is
told to end.
"""

from __future__ import annotations

import json
import os
import resource
import sys

import fragdex

HEAD = 1 << 20  # bytes; the moov and a few fragments
STATUS = "/proc/self/status"


def kib(key: str) -> int:
    """A figure of the kernel's own book-keeping, in KiB; 0 where there is none."""
    try:
        with open(STATUS) as file:
            return next((int(line.split()[1]) for line in file if line.startswith(key + ":")), 0)
    except OSError:
        return 0


def reset_peak() -> bool:
    """Let VmHWM begin anew (proc(5), clear_refs); False where the system has no such thing."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        return False
    return True


def main() -> None:
    """Make ready, work once, tell."""
    work, path, like = sys.argv[1:]
    with open(like, "rb") as file:
        warm = fragdex.index(file.read(HEAD))
    for track in warm.tracks:
        if track.has_samples:
            track.samples  # noqa: B018
    del warm
    report = {
        "reset": reset_peak(),
        "rss_before": kib("VmRSS") << 10,
        "anon_before": kib("RssAnon") << 10,
    }
    print(os.getpid(), flush=True)
    sys.stdin.readline()
    index = None if work == "nothing" else fragdex.index(path)
    tables = 0
    for track in index.tracks if index else ():
        tables += track.fragments.nbytes + track.sync_samples.nbytes
        if work == "samples":
            tables += track.samples.nbytes
    report["peak_rss"] = kib("VmHWM") << 10
    report["anon_after"] = kib("RssAnon") << 10
    # ru_maxrss is in KiB on Linux (getrusage(2)).
    report["maxrss"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    report["tables"] = tables
    if index:
        report["mdat_bytes_read"] = index.how.mdat_bytes_read
        report["bytes_read"] = index.how.bytes_read
    print(json.dumps(report), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
