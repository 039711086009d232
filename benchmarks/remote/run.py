"""Measure indexes of remote files: python benchmarks/remote/run.py; writes results.md beside it.

Every answer of the server comes 50 ms late. Requests and bytes are those that the server counted;
times are medians of a few runs, and ratios are of one run of this program. About four minutes.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import inputs  # noqa: E402
from served import Server, range_server  # noqa: E402

import fragdex  # noqa: E402

LATENCY_S = 0.05
FIRST = {
    "fragdex": (
        "import sys, fragdex; i = fragdex.index(sys.argv[1]);"
        "print([t.seek(60.0).range for t in i.tracks])"
    ),
    "PyAV": (
        # Without kept connections libavformat takes the end of one answer for the end of the file.
        "import sys, av; c = av.open(sys.argv[1], options={'multiple_requests': '1'});"
        "s = c.streams.video[0];"
        "c.seek(int(60 / s.time_base), stream=s); print(s.codec.name)"
    ),
}


def serving(path: Path, size: int = 0, **faults: Any) -> Server:
    """Serve the first `size` bytes of a file, 0: all."""
    return range_server(path, size, {"latency_s": LATENCY_S, **faults})


@dataclass(frozen=True, slots=True)
class Figures:
    """What one piece of work took."""

    seconds: float
    requests: int
    bytes: int
    at_once: int


def measured(server: Server, work: Callable[[str], object], runs: int = 1) -> Figures:
    """Time work on the server's URL."""
    times = []
    for _ in range(runs):
        server.counted()
        began = time.perf_counter()
        work(server.url)
        times.append(time.perf_counter() - began)
        requests, size, at_once = server.counted()
    return Figures(statistics.median(times), requests, size, at_once)


def exact(**options: Any) -> Callable[[str], object]:
    """Index every fragment, as where a file has neither sidx nor mfra."""
    return lambda url: fragdex.index(url, exact=True, **options)


def process(name: str) -> Callable[[str], object]:
    """A first process: imports, the index, one seek."""
    command = [sys.executable, "-c", FIRST[name]]
    return lambda url: subprocess.run([*command, url], check=True, capture_output=True)


def line(what: str, figures: Figures, beside: Figures | None = None) -> str:
    """One row of the table."""
    ratios = ["", "", ""]
    if beside is not None:
        ratios = [
            f"{mine / theirs:.2f} ×"
            for mine, theirs in (
                (figures.seconds, beside.seconds),
                (figures.requests, beside.requests),
                (figures.bytes, beside.bytes),
            )
        ]
    row = f"| {what} | {figures.seconds:.2f} s | {figures.requests:,} | {figures.bytes:,} | "
    row += " | ".join([str(figures.at_once), *ratios])
    print(row + " |", flush=True)
    return row + " |\n"


HEAD = (
    "| Work | Time | Requests | Bytes | At once | time | requests | bytes |\n"
    "|---|---|---|---|---|---|---|---|\n"
)


def main() -> None:
    """Measure, and write the table."""
    movies = inputs.make(inputs.FOLDER)
    path, counts = movies["2h"]
    cut = counts.bytes // 10
    text = "# Remote files\n\n`python benchmarks/remote/run.py`: every answer of the server comes "
    text += f"{LATENCY_S * 1000:.0f} ms late. Ratios are to the first row of each table.\n\n"
    text += "Bytes are those that the server handed to the network: where it answers a request for "
    text += "several ranges with everything, what its socket took until that answer was left.\n\n"
    text += "Every fragment, 12 minutes of the 2 h file (360 fragments):\n\n" + HEAD
    with serving(path, cut) as server:
        one = measured(server, exact(connections=1))
        text += line("one request after the other (`connections=1`)", one)
        text += line("a server that answers several ranges", measured(server, exact(), 3), one)
    with serving(path, cut, single_ranges=True) as server:
        text += line("one range a request", measured(server, exact(), 3), one)
    with serving(path, cut, single_ranges=True, at_once=4) as server:
        text += line("503 to more than 4 at once", measured(server, exact()), one)
    size, moofs = counts.moof_bytes, counts.moofs
    text += f"\nEvery fragment of 2 h ({moofs:,} fragments, {size:,} bytes of moofs); one request "
    text += f"after the other is {moofs:,} of {LATENCY_S * 1000:.0f} ms:\n\n" + HEAD
    with serving(path) as server:
        text += line("a server that answers several ranges", measured(server, exact()))
    with serving(path, single_ranges=True) as server:
        text += line("one range a request", measured(server, exact()))
    frames, _ = movies["frames"]
    with serving(frames) as server:
        text += line("30 min, a fragment for each frame", measured(server, exact()))
    for key, what in (("sidx", "2 h, sidx at the front"), ("progressive", "2 h, progressive")):
        text += f"\nA first process, imports included, until the first seek: {what}:\n\n" + HEAD
        with serving(movies[key][0]) as server:
            peer = measured(server, process("PyAV"), 5)
            text += line("PyAV", peer)
            text += line("fragdex", measured(server, process("fragdex"), 5), peer)
    (HERE / "results.md").write_text(text)


if __name__ == "__main__":
    main()
