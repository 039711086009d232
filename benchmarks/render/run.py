"""Measure renders: python benchmarks/render/run.py.

Writes results.json and results.md. The peers are installed into benchmarks/build the first time.
All of it takes about half an hour on a quiet machine, --quick about four minutes; --only measures
some rows and leaves the others as they were. The README's sentence on renders follows the results.
"""

from __future__ import annotations

import argparse
import compileall
import json
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

HERE = Path(__file__).parent
# The machine and the words of the rows are those of the library's benchmarks.
sys.path.insert(1, str(HERE.parent))

import rows_asked  # noqa: E402
import rows_pages  # noqa: E402
import rows_quality  # noqa: E402
import rows_speed  # noqa: E402
import rows_truth  # noqa: E402
import texts  # noqa: E402
from measure import BUILD, Measured, Setting  # noqa: E402
from remotion import Remotion  # noqa: E402
from results import JSON, Report  # noqa: E402
from surroundings import browser, surroundings  # noqa: E402

import fragdex  # noqa: E402

ROWS: dict[str, Callable[[Setting], Measured]] = {
    "simple": lambda setting: rows_speed.against_peer(setting, "simple"),
    "heavy": lambda setting: rows_speed.against_peer(setting, "heavy"),
    "slides": lambda setting: rows_speed.against_peer(setting, "slides"),
    "hyperframes": rows_speed.against_hyperframes,
    "two-workers": rows_speed.two_workers,
    "quality": rows_quality.quality,
    "determinism": rows_truth.determinism,
    "accuracy": rows_truth.accuracy,
    "sync": rows_truth.sync,
    "pictures": rows_speed.pictures,
    "canvas": rows_speed.canvas,
    "start": rows_speed.start,
    "memory": rows_speed.memory,
    "asked": rows_asked.asked,
    "pages": rows_pages.pages,
    "again": rows_pages.again,
}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", action="append", choices=ROWS, metavar="ROW", help=str([*ROWS]))
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each contender (3)")
    parser.add_argument(
        "--quick", action="store_true", help="1 round, short films; written to benchmarks/build"
    )
    parser.add_argument("--output", type=Path, help="folder of the results")
    parser.add_argument(
        "--pause", type=Path, metavar="FILE", help="wait before a run while this file exists"
    )
    return parser.parse_args()


def main() -> int:
    """Run the rows asked for; 0 where nothing was missed, else 1."""
    asked = _arguments()
    # as pip does where it installs: rendering processes write no bytecode, and may not
    compileall.compile_dir(Path(fragdex.__file__).parent, quiet=2)
    peer = Remotion(BUILD / "remotion", browser())
    output = asked.output or (BUILD / "render" if asked.quick else HERE)
    report = Report(output, texts.COMMAND, surroundings(peer), list(ROWS), texts.markdown)
    missed = 0
    for key in asked.only or ROWS:
        with tempfile.TemporaryDirectory(prefix="render-") as folder:
            rounds = 1 if asked.quick else asked.rounds
            setting = Setting(Path(folder), rounds, asked.quick, peer, pause=asked.pause)
            setting.wait()
            missed += report.measure(key, partial(ROWS[key], setting))
    if output == HERE:
        texts.tell_readme(json.loads((HERE / JSON).read_text()))
    return report.end(missed)


if __name__ == "__main__":
    sys.exit(main())
