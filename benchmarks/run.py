"""Measure fragdex against a floor and its peers: python benchmarks/run.py.

Writes results.json, results.md and results.svg. Inputs are made first if they are missing. All
of it takes some ten minutes; --only measures some rows and leaves the others as they were.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import inputs
import machine
import peers
import plot
import prepared
import report
import results
import rows_build
import rows_look
import rows_memory
import rows_process
import rows_repair
import rows_seek
import rows_views
from rows import ProgramMissing, Row, Setting

ROWS: dict[str, Callable[[Setting], Row]] = {
    "build-2h": rows_build.build_2h,
    "build-2h-reread": rows_build.build_2h_reread,
    "build-frames": rows_build.build_frames,
    "build-sidx": rows_build.build_sidx,
    "build-progressive": rows_build.build_progressive,
    "build-short": rows_build.build_short,
    "build-short-fragments": rows_build.build_short_fragments,
    "clips": rows_process.clips,
    "digests": rows_build.digests,
    "memory": rows_memory.memory,
    "open-saved": rows_seek.open_saved,
    "seek": rows_seek.seek,
    "seek-c": rows_seek.seek_in_c,
    "view-range": rows_views.view_range,
    "playlists": rows_views.playlists,
    "origin-segments": rows_views.origin_segments,
    "origin-s3": rows_views.origin_s3,
    "thumbnail": rows_look.thumbnail,
    "storyboard": rows_look.storyboard,
    "peaks": rows_look.peaks,
    "md5": rows_process.digest,
    "repair": rows_repair.repair,
    "command-line": rows_process.command_line,
    "start": rows_process.start,
    "first-call": rows_process.first_call,
}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--only", action="append", choices=ROWS, metavar="ROW", help=f"one of {', '.join(ROWS)}"
    )
    parser.add_argument("--rounds", type=int, default=15, help="rounds of the fast (15)")
    parser.add_argument(
        "--quick", action="store_true", help="3 rounds, slow peers once; written to build/"
    )
    parser.add_argument("--data", type=Path, default=inputs.FOLDER, help="where the inputs lie")
    parser.add_argument("--output", type=Path, help="folder of the results")
    return parser.parse_args()


def _say(row: Row) -> None:
    for name, figure in row.figures.items():
        shown = report.duration(figure.median_ns) if figure.runs_ns else "failed"
        print(f"    {name:34} {shown:>10}  {len(figure.runs_ns):3} runs")
    for want in row.wants:
        shown = "–" if want.reached is None else f"{want.reached:.4g} {want.unit}"
        print(f"    {want.text:62} {shown:>16}  {results.VERDICT[want.ok].strip('*')}", flush=True)


def main() -> int:
    """Run the rows asked for; 0 where nothing was missed and nobody failed, else 1."""
    asked = _arguments()
    output = asked.output or (peers.BUILD if asked.quick else peers.HERE)
    files = prepared.copied(inputs.make(asked.data), asked.data / "copied")
    setting = Setting(files, 3, 1, 1) if asked.quick else Setting(files, asked.rounds)
    measured: dict[str, object] = {}
    missed = failed = 0
    for key in asked.only or ROWS:
        print(f"{key} ({time.strftime('%H:%M:%S')}, load {os.getloadavg()[0]:.2f})", flush=True)
        try:
            row = ROWS[key](setting)
        except ProgramMissing as missing:
            print(f"    left out: {missing}", flush=True)
            continue
        _say(row)
        missed += sum(want.ok is False for want in row.wants)
        failed += sum(figure.failed is not None for figure in row.figures.values())
        measured[key] = {
            **row.as_dict(),
            "revision": machine.revision(),
            "command": results.command(report.COMMAND),
        }
        whole = results.merge(output, report.COMMAND, machine.describe(), measured, list(ROWS))
        results.write(output, whole, report.markdown(whole))
        plot.draw(output, whole)
        if not asked.quick:
            report.tell_readme(whole)
    print(f"{missed} wants missed, {failed} contenders failed; see {output / results.MARKDOWN}")
    return 1 if missed or failed else 0


if __name__ == "__main__":
    sys.exit(main())
