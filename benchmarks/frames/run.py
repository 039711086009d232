"""Measure frames and data sets: ./dev bench-frames, or python benchmarks/frames/run.py.

Writes results.json and results.md. The peers are in .venv-frames, which ./dev bench-frames makes;
LeRobot and Ray, for some rows, in .venv-bridges, which ./dev bridges makes.
All of it takes some hours, --part 8 less than one, --quick about three minutes; --only measures
some rows and leaves the others as they were. --docs runs the pages' examples that need torch, and
nothing else.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
# The machine and the words of the rows are those of the library's benchmarks.
sys.path.insert(1, str(HERE.parent))

import machine  # noqa: E402
import rows_loader  # noqa: E402
import rows_local  # noqa: E402
import rows_others  # noqa: E402
import rows_remote  # noqa: E402
import texts  # noqa: E402
from asking import BRIDGES, PYTHON, Setting, run_examples  # noqa: E402
from results import Report  # noqa: E402
from rounds import Measured  # noqa: E402

ROWS: dict[str, Callable[[Setting], Measured]] = {
    **{
        f"frames-{height}-{group}": partial(rows_local.frames, height=height, group=group)
        for height in (360, 1080)
        for group in (50, 250)
    },
    **{
        f"windows-{height}-{group}": partial(rows_local.windows, height=height, group=group)
        for height in (360, 1080)
        for group in (50, 250)
    },
    "first": rows_local.first,
    "http": rows_remote.http,
    "http-narrow": partial(rows_remote.http, narrow=True),
    "s3": rows_remote.bucket,
    **{f"loader-{each}": partial(rows_loader.loader, each=each) for each in (1, 8)},
    "memory": rows_loader.memory,
    "epoch": rows_loader.epoch,
    "episodes": rows_others.episodes,
    "episodes-remote": partial(rows_others.episodes, remote=True),
    "episodes-removed": rows_others.removed,
    "lance": rows_others.lance,
    "lance-remote": partial(rows_others.lance, remote=True),
    "names": rows_others.names,
    "nodes": rows_others.nodes,
    "same": rows_local.same,
}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", action="append", choices=ROWS, metavar="ROW", help=str([*ROWS]))
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each contender (3)")
    parser.add_argument(
        "--quick", action="store_true", help="1 round, short films; written to benchmarks/build"
    )
    parser.add_argument(
        "--part", type=int, default=1, metavar="N", help="an N-th of the frames and windows (1)"
    )
    parser.add_argument("--docs", action="store_true", help="only run the pages' examples")
    parser.add_argument("--output", type=Path, help="folder of the results")
    parser.add_argument(
        "--pause", type=Path, metavar="FILE", help="wait before a run while this file exists"
    )
    return parser.parse_args()


def _surroundings() -> dict[str, Any]:
    described = machine.describe()
    code = (
        "import json; from importlib.metadata import version as v;"
        "print(json.dumps({n: v(n) for n in ('torch', 'torchcodec', 'eva-decord', 'av')}))"
    )
    done = subprocess.run([str(PYTHON), "-c", code], capture_output=True, text=True, check=True)
    peers = json.loads(done.stdout)
    peers["PyAV"] = peers.pop("av")
    own = {name: described["versions"][name] for name in ("python", "numpy", "fragdex")}
    return {**described, "versions": {**own, **peers}}


def main() -> int:
    """Run the rows asked for; 0 where nothing was missed, else 1."""
    asked = _arguments()
    if not PYTHON.exists():
        raise SystemExit("the peers are not installed: ./dev bench-frames does it")
    if asked.docs:
        return max(map(run_examples, ("frames.md", "training.md")))
    output = asked.output or (HERE.parent / "build" / "frames" if asked.quick else HERE)
    report = Report(output, texts.COMMAND, _surroundings(), list(ROWS), texts.markdown)
    missed = 0
    lacking = () if BRIDGES.exists() else rows_others.BESIDE
    if set(asked.only or ()) & set(lacking):
        raise SystemExit("LeRobot, Lance and Ray are not installed: ./dev bridges does it")
    for key in asked.only or [key for key in ROWS if key not in lacking]:
        with tempfile.TemporaryDirectory(prefix="frames-") as folder:
            rounds = 1 if asked.quick else asked.rounds
            setting = Setting(
                folder=Path(folder),
                rounds=rounds,
                quick=asked.quick,
                part=asked.part,
                pause=asked.pause,
            )
            setting.wait()
            missed += report.measure(key, partial(ROWS[key], setting))
    return report.end(missed)


if __name__ == "__main__":
    sys.exit(main())
