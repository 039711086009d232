"""Processor time of outputs beside another state of the library: ratios, in one run.

    git worktree add --detach ../base COMMIT
    (cd ../base && python setup.py build_ext --inplace)
    python benchmarks/beside.py ../base/src

Each state works in processes of its own, by turns. The least of all turns counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time

import fragdex
from fragdex.testing import movie

HERE = Path(fragdex.__file__).parents[1]
MINUTES = 30
SEGMENTS = 40
"""Read of one package."""


def outputs(path: str) -> dict[str, Callable[[], object]]:
    """Makes each kind of output, of 30 minutes."""
    index = fragdex.index(path)
    tables = Path(path).with_name("tables.mp4")
    fragdex.view(index, "faststart").save(tables)
    progressive = fragdex.index(tables)
    part = (60.5, 600)

    def package(segments: int, texts: bool = False) -> fragdex.Package:
        made = fragdex.package(index)
        if texts:
            for name in ("master.m3u8", "manifest.mpd", "v1.m3u8", "a1.m3u8"):
                made[name].read()
        if segments:
            names = [name for name in made if name.endswith(".m4s")]
            for name in names[:: len(names) // segments][:segments]:
                made[name].read()
        return made

    title = package(SEGMENTS)
    names = [name for name in title if name.endswith(".m4s")]
    names = names[:: len(names) // SEGMENTS][:SEGMENTS]
    return {
        "clip, fragments": lambda: fragdex.clip(index, *part).read(),
        "clip, tables": lambda: fragdex.clip(progressive, *part).read(),
        "view": lambda: fragdex.view(index).read(),
        "faststart": lambda: fragdex.view(index, "faststart").read(),
        "package": lambda: package(0),
        "package, its texts": lambda: package(0, texts=True),
        "package, tables": lambda: fragdex.package(progressive),
        f"package, {SEGMENTS} segments": lambda: package(SEGMENTS),
        f"{SEGMENTS} segments": lambda: [title[name].read() for name in names],
    }


def measured(path: str) -> dict[str, float]:
    """Least seconds of some turns, of each output."""
    least = {}
    for name, make in outputs(path).items():
        make()
        times = []
        for _ in range(5):
            before = process_time()
            make()
            times.append(process_time() - before)
        least[name] = min(times)
    return least


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base", help="src folder of the other state, with its extension built")
    parser.add_argument("--turns", type=int, default=3, help="processes of each state")
    parser.add_argument("--of", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.of:
        print(json.dumps(measured(options.of)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "made.mp4")
        path.write_bytes(movie(MINUTES * 6, samples=250, fps=25, tracks=2))
        states = (str(HERE), str(Path(options.base).resolve()))
        least: dict[str, dict[str, float]] = {state: {} for state in states}
        for state in states * options.turns:
            command = [sys.executable, __file__, options.base, "--of", str(path)]
            environment = os.environ | {"PYTHONPATH": state}
            text = subprocess.check_output(command, env=environment, text=True)
            for name, seconds in json.loads(text).items():
                least[state][name] = min(seconds, least[state].get(name, seconds))
    for name, seconds in least[states[0]].items():
        base = least[states[1]][name]
        print(f"{name:22}{1e3 * seconds:9.2f} ms{1e3 * base:9.2f} ms{seconds / base:7.2f}")


if __name__ == "__main__":
    main()
