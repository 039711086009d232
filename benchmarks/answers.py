"""What answers cost beside a seek, as ratios of processor time in one run.

python benchmarks/answers.py FILM...
"""

from __future__ import annotations

import gc
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import fragdex

ROUNDS = 15
SECONDS = 0.002
"""Processor time of one turn at least: the clock's steps must not show."""


def turn(work: Callable[[], object], count: int) -> float:
    """Microseconds of processor a call."""
    begin = time.process_time()
    for _ in range(count):
        work()
    return (time.process_time() - begin) / count * 1e6


def least(works: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The least of many turns of each, which take turns with each other."""
    counts = {}
    for name, work in works.items():
        work()
        counts[name] = max(1, int(SECONDS * 1e6 / max(turn(work, 1), 0.1)))
    best = dict.fromkeys(works, float("inf"))
    gc.disable()
    for _ in range(ROUNDS):
        for name, work in works.items():
            best[name] = min(best[name], turn(work, counts[name]))
    gc.enable()
    return best


def answers(film: Path, folder: Path) -> None:
    """Print the ratios of one film."""
    index = fragdex.index(film)
    track, first = index.tracks[0], index.tracks[0].id
    times = [random.Random(1).random() * 60 for _ in range(100_000)]
    saved = folder / "film.fidx"
    index.save(saved)
    stop = min(70.0, index.duration or 0)
    start = max(0.0, stop - 10)
    works: dict[str, Callable[[], object]] = {
        "seek": lambda: [track.seek(at) for at in times[:100]],
        "span of 10 s": lambda: index.span(start, stop),
        "the same, looked at": lambda: index.span(start, stop).media,
        "span of 10 s, one track": lambda: index.span(start, stop, tracks=[first]),
        "seek_many of 1": lambda: track.seek_many(times[:1]),
        "seek_many of 16": lambda: track.seek_many(times[:16]),
        "open_index and seek": lambda: fragdex.open_index(saved).tracks[0].seek(1),
    }
    best = least(works)
    best["seek"] /= 100
    print(f"{film.name}: seek {best['seek']:.2f} us")
    for name, value in best.items():
        print(f"  {name:28s} {value:9.1f} us  {value / best['seek']:7.1f} seeks")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        for name in sys.argv[1:]:
            answers(Path(name), Path(place))
