"""What one output goes through: functions, files, and calls from one room into another.

    python benchmarks/calls.py                      # a clip, saved, of a made file
    python benchmarks/calls.py FILE faststart       # another kind of another file

Counted are calls between functions of the library while the output is made and written; the file
is indexed before, and everything was made once, so that imports are not counted.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import fragdex

ROOT = Path(fragdex.__file__).parent
KINDS = ("clip", "faststart", "fragmented", "key", "package", "segment")


def room_of(file: str) -> str:
    """The room of a file of the library; empty: it is another's."""
    try:
        first, *rest = Path(file).relative_to(ROOT).parts
    except ValueError:
        return ""
    return first if rest else Path(first).stem


def counted(work: Callable[[], object]) -> tuple[set[Any], set[str], Counter[tuple[str, str]]]:
    """Functions and files of the library that work goes through, and calls between its rooms."""
    functions: set[Any] = set()
    changes: Counter[tuple[str, str]] = Counter()
    rooms: dict[str, str] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        if event != "call" or frame.f_back is None:
            return
        here, there = frame.f_back.f_code.co_filename, frame.f_code.co_filename
        caller = rooms.setdefault(here, room_of(here))
        called = rooms.setdefault(there, room_of(there))
        if called:
            functions.add(frame.f_code)
        if caller and called and caller != called:
            changes[caller, called] += 1

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return functions, {code.co_filename for code in functions}, changes


def _read(package: fragdex.Package, name: str) -> bytes:
    return package[name].read()


def output(kind: str, index: fragdex.Index, folder: Path) -> Callable[[], object]:
    """Makes and writes an output of a kind."""
    half = (index.duration or 0) / 2
    if kind == "segment":
        package = fragdex.package(index)
        name = next(name for name in package if name.endswith((".m4s", ".mp4")))
        return partial(_read, package, name)
    if kind == "package":
        return lambda: fragdex.package(index).save(folder / "package")
    makers: dict[str, Callable[[], fragdex.View]] = {
        "clip": lambda: fragdex.clip(index, half / 2, half),
        "key": lambda: fragdex.clip(index, half / 2, half, at_key_frame=True),
        "faststart": lambda: fragdex.view(index, "faststart"),
        "fragmented": lambda: fragdex.view(index),
    }
    return lambda: makers[kind]().save(folder / "out.mp4")


def main() -> None:
    """Count, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", default=str(ROOT.parents[1] / "fixtures/faststart.mp4"))
    parser.add_argument("kind", nargs="?", choices=KINDS, default="clip")
    parser.add_argument("--calls", action="store_true", help="which rooms call which, how often")
    options = parser.parse_args()
    index = fragdex.index(options.file)
    with tempfile.TemporaryDirectory() as folder:
        work = output(options.kind, index, Path(folder))
        work()
        functions, files, changes = counted(work)
    print(f"{len(functions)} functions, {len(files)} files, {changes.total()} calls between rooms")
    if options.calls:
        for (caller, called), count in changes.most_common():
            print(f"{count:6} {caller} -> {called}")


if __name__ == "__main__":
    main()
