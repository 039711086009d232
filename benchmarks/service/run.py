"""Measure the service against what it is made of: python benchmarks/service/run.py.

Writes results.json and results.md. Everything runs on loopback, in folders that are removed at
the end; the large film is kept in benchmarks/data. All of it takes some minutes, --quick less
than one; --only measures some rows and leaves the others as they were.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

HERE = Path(__file__).parent
# The clock, the inputs and the words of the rows are those of the library's benchmarks.
sys.path.insert(1, str(HERE.parent))

import film  # noqa: E402
import inputs  # noqa: E402
import processes  # noqa: E402
import rows_attacks  # noqa: E402
import rows_console  # noqa: E402
import rows_requests  # noqa: E402
import rows_uploads  # noqa: E402
import rows_workers  # noqa: E402
import texts  # noqa: E402
from measure import Measured, Setting  # noqa: E402
from processes import Server  # noqa: E402
from results import Report  # noqa: E402

ROWS = (
    "look-ups", "ranges", "segments", "upload", "chunks", "push", "large-index", "many-uploads",
    "attacks", "small-files", "console", "start",
)  # fmt: skip
MIB = 1 << 20


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", action="append", choices=ROWS, metavar="ROW", help=str(ROWS))
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each contender (5)")
    parser.add_argument("--seconds", type=float, default=4, help="of each run under load (4)")
    parser.add_argument("--small-files", type=int, default=300, help="files of each run (300)")
    parser.add_argument("--size", type=int, default=1024, help="MiB of the large film (1024)")
    parser.add_argument(
        "--quick", action="store_true", help="2 rounds of 1 s, 64 MiB; written to build/"
    )
    parser.add_argument("--data", type=Path, default=inputs.FOLDER, help="where films are kept")
    parser.add_argument("--output", type=Path, help="folder of the results")
    parser.add_argument(
        "--pause", type=Path, metavar="FILE", help="wait before a run while this file exists"
    )
    return parser.parse_args()


def measure(key: str, setting: Setting, folder: Path) -> Measured:
    """One row, with servers of its own."""
    large = setting.data / f"film-{setting.size // MIB}-mib.mp4"
    film.make(large, setting.size)

    def frames() -> Path:
        return inputs.make(setting.data)["frames"][0]

    served: dict[str, Callable[[Server], Measured]] = {
        "look-ups": lambda server: rows_requests.look_ups(setting, server, large),
        "segments": lambda server: rows_requests.segments(
            setting, server, large, rows_uploads.send
        ),
        "upload": lambda server: rows_uploads.upload(setting, server, large),
        "chunks": lambda server: rows_uploads.chunks(setting, server, large),
        "push": lambda server: rows_uploads.push(setting, server, large),
        "large-index": lambda server: rows_requests.large_index(
            setting, server, inputs.make(setting.data)["2h"][0], frames()
        ),
        "attacks": lambda server: rows_attacks.under_attack(
            setting, server, inputs.make(setting.data)["2h"][0]
        ),
    }
    if key in served:
        with processes.service(folder) as server:
            return served[key](server)
    if key == "console":
        # a film of two tracks in each moof is made playable first
        with processes.service(folder, job_workers="2") as server:
            return rows_console.console(setting, server, inputs.make(setting.data)["2h"][0])
    if key == "ranges":
        return rows_requests.ranges(setting, folder, large, rows_uploads.send)
    if key == "start":
        return rows_requests.start(setting, folder)
    if key == "small-files":
        return rows_workers.small_files(setting, folder)
    return rows_uploads.many(setting, folder)


def main() -> int:
    """Run the rows asked for; 0 where nothing was missed, else 1."""
    asked = _arguments()
    asked.data.mkdir(parents=True, exist_ok=True)
    size = 64 * MIB if asked.quick else asked.size * MIB
    rounds, seconds = (2, 1.0) if asked.quick else (asked.rounds, asked.seconds)
    small = 30 if asked.quick else asked.small_files
    setting = Setting(asked.data, size, rounds, seconds, small_files=small, pause=asked.pause)
    output = asked.output or (HERE.parent / "build" / "service" if asked.quick else HERE)
    report = Report(output, texts.COMMAND, texts.surroundings(), ROWS, texts.markdown)
    missed = 0
    for key in asked.only or ROWS:
        setting.wait()
        # beside the films: memory is no disk
        with tempfile.TemporaryDirectory(prefix="service-", dir=asked.data) as folder:
            missed += report.measure(key, partial(measure, key, setting, Path(folder)))
    return report.end(missed)


if __name__ == "__main__":
    sys.exit(main())
