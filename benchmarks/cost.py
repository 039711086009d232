"""What an index costs with the size of a file that repeats one thing: time, memory, exponents.

    python benchmarks/cost.py                       # every dimension, 64 KiB to 1 MiB
    python benchmarks/cost.py --size 262144 trafs   # one dimension, 256 KiB to 4 MiB
    python benchmarks/cost.py --over                # only what costs more than is wanted
    python benchmarks/cost.py --work json --work info tracks    # other work than `index` and `use`
    python benchmarks/cost.py --work every          # all of it

Each file is worked on in a process of its own, forked from one that has everything imported:

- `index`: fragdex.index of a path;
- `use`: what is usually asked of an index: its tracks, a seek in each, a span, its repr, a save, an
  open and the same questions to what was saved;
- `parse`: every box of the file's bytes, by fragdex.boxes.parse;
- `info`, `dump`: the commands, in a process, less what they take for the least file;
- `extract`: a clip of the first ten seconds, every byte of it;
- `feed-64`, `feed-4096`: an Indexer that is fed in pieces of so many bytes;
- `remote`: index over HTTP from a server on the same machine, less the server's own time;
- the name of a form: that export.

Times are processor time; megabytes are how far memory grows during the work, beside the index that
it works on. What is refused by a named limit counts as done.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import fragdex
import fragdex.testing
from fragdex.boxes import parse
from fragdex.cli.inputs import bytes_of_view
from fragdex.muxing.copies import ClipRequest, clip_view
from fragdex.seeking.forms import FORMS
from fragdex.testing import RangeServer

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from repeats import DIMENSIONS, repeated, repeated_to

STEPS = (1, 4, 16)
MOST_EXPONENT, MOST_SECONDS, MOST_MEMORY = 1.2, 2.0, 60.0
"""What is wanted: exponent from step to step, seconds and MB for each MB of the file."""
FREE_SECONDS, FREE_MEMORY = 0.2, 50.0
"""What is not held against a file: small ones cost what a process and a few pages cost."""
ROOM = 4 << 30
"""Bytes of address space of a measured process."""


def used(index: fragdex.Index, path: Path) -> None:
    """Ask what is usually asked."""
    saved = path.with_suffix(".fidx")
    for _ in range(2):
        for track in index.tracks:
            with contextlib.suppress(fragdex.FragdexError):
                track.seek(1)
            with contextlib.suppress(fragdex.errors.TrackNotFound):
                index.track(track.id)
        with contextlib.suppress(fragdex.FragdexError):
            index.span(0, 5)
        repr(index)
        index.save(saved)
        index = fragdex.open_index(saved)


def extracted(index: fragdex.Index, path: Path) -> None:
    """Cut a clip and go through its bytes."""
    with fragdex.open_source(path) as source:
        for _ in bytes_of_view(clip_view(index, source, ClipRequest(0, 10))[0], source):
            pass


def parsed(path: Path) -> None:
    """Parse the whole file; what is damaged ends it."""
    parse(path.read_bytes())


def fed(path: Path, size: int) -> None:
    """Index a file that comes in small pieces."""
    indexer = fragdex.Indexer()
    with path.open("rb") as file:
        while piece := file.read(size):
            indexer.feed(piece)
    indexer.finish()


Work = Callable[[fragdex.Index | None, Path], object]
WORK: dict[str, tuple[bool, Work]] = {
    "index": (False, lambda index, path: fragdex.index(path)),
    "use": (True, used),
    "extract": (True, extracted),
    "parse": (False, lambda index, path: parsed(path)),
    "feed-64": (False, lambda index, path: fed(path, 64)),
    "feed-4096": (False, lambda index, path: fed(path, 4096)),
    **{form: (True, lambda index, path, form=form: index.export(form)) for form in FORMS},
}
"""Whether an index is there before, and the work; `COMMANDS` and `remote` are whole processes."""
COMMANDS = ("info", "dump")


def measured(work: str, path: Path) -> dict[str, float | str]:
    """Seconds and megabytes of some work on one file, in a process of its own."""
    if work in COMMANDS:
        return commanded(work, str(path))
    if work == "remote":
        with RangeServer(path.read_bytes()) as server:
            return commanded("index", server.url)
    indexed, do = WORK[work]
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        with os.fdopen(reading) as pipe:
            text = pipe.read()
        os.waitpid(child, 0)
        return json.loads(text) if text else {"s": math.nan, "mb": 0, "end": "died"}
    os.close(reading)
    resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM))
    result: dict[str, float | str] = {"end": "done"}
    before = start = 0.0
    try:
        index = fragdex.index(path) if indexed else None
        before, start = peak(resource.RUSAGE_SELF), time.process_time()
        do(index, path)
    except (fragdex.FragdexError, MemoryError) as error:
        result["end"] = f"{type(error).__name__}: {error}"[:60]
    if before:
        result["s"] = time.process_time() - start
        result["mb"] = peak(resource.RUSAGE_SELF) - before
    else:  # it could not be indexed
        result |= {"s": 0.0, "mb": 0.0}
    with os.fdopen(writing, "w") as pipe:
        pipe.write(json.dumps(result))
    os._exit(0)


def commanded(*command: str) -> dict[str, float | str]:
    """The same of a Python that is started; it says itself what memory it took."""
    child = subprocess.Popen(
        [sys.executable, "-c", WATCHED, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert child.stderr is not None
    *_, before, last = ["", *child.stderr.read().decode().strip().splitlines()]
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = status
    end = "done" if not status else before[:60]
    return {"s": usage.ru_utime + usage.ru_stime, "mb": float(last) / 1024, "end": end}


WATCHED = """
import atexit, pathlib, re, runpy, sys
def tell():
    said = pathlib.Path("/proc/self/status").read_text()
    print(re.search(r"VmHWM:\\s*(\\d+)", said)[1], file=sys.stderr)
atexit.register(tell)
if sys.argv[1] != "index":
    sys.argv[0] = "fragdex"
    runpy.run_module("fragdex", run_name="__main__")
else:
    import fragdex
    fragdex.index(sys.argv[2])
"""
"""A Python whose last line on stderr is the most memory that it took, in kilobytes."""


def peak(who: int) -> float:
    """Most memory so far, in megabytes."""
    return resource.getrusage(who).ru_maxrss / 1024


def row(dimension: str, work: str, size: int) -> tuple[str, bool]:
    """One line, and whether something in it is more than is wanted."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "repeated.mp4"
        path.write_bytes(repeated(dimension, 1))
        least = measured(work, path)
        points = []
        for step in STEPS:
            path.write_bytes(repeated_to(dimension, size * step))
            points.append((path.stat().st_size / 1e6, measured(work, path)))
    own = [max(float(one["s"]) - float(least["s"]), 1e-4) for _, one in points]
    exponents = [
        math.log(after / before) / math.log(large / small)
        for before, after, (small, _), (large, _) in zip(
            own, own[1:], points, points[1:], strict=False
        )
    ]
    large, last = points[-1]
    each, memory = own[-1] / large, float(last["mb"]) - float(least["mb"])
    over = own[-1] > FREE_SECONDS and (max(exponents) > MOST_EXPONENT or each > MOST_SECONDS)
    over |= math.isnan(own[-1]) or memory > max(MOST_MEMORY * large, FREE_MEMORY)
    if work == "index":
        over |= memory > FREE_MEMORY + MOST_MEMORY / 3 * large
    shown = " ".join(f"{e:5.2f}" for e in exponents)
    mark = "!" if over else " "
    return (
        f"{mark} {dimension:36} {work:10} {large:6.2f} MB  {own[-1]:7.3f} s {each:6.2f} s/MB "
        f"{shown}  {memory:7.1f} MB {last['end']}",
        over,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("dimensions", nargs="*", help="all by default")
    parser.add_argument("--size", type=int, default=1 << 16, help="bytes of the smallest file")
    parser.add_argument("--over", action="store_true", help="print only what costs too much")
    every = [*WORK, *COMMANDS, "remote"]
    parser.add_argument("--work", action="append", choices=[*every, "every"], help="index and use")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    path = Path(tempfile.mkdtemp()) / "movie.mp4"
    path.write_bytes(fragdex.testing.movie())
    for _, do in WORK.values():  # what is loaded once
        do(fragdex.index(path), path)
    works = chosen.work or ["index", "use"]
    for dimension in chosen.dimensions or DIMENSIONS:
        for work in every if "every" in works else works:
            line, over = row(dimension, work, chosen.size)
            if over or not chosen.over:
                print(line, flush=True)


if __name__ == "__main__":
    main()
