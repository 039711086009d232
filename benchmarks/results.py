"""Results of any of the benchmarks, as JSON and as Markdown.

They are written after each row, so that a run that is broken off keeps what it has, and a run of
some rows renews these rows alone.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import machine
from rounds import Measured

__all__ = [
    "JSON", "MARKDOWN", "VERDICT", "Report", "Results", "amount", "command", "head", "merge",
    "spread", "wanted", "write",
]  # fmt: skip

JSON, MARKDOWN = "results.json", "results.md"
VERDICT = {True: "ok", False: "**missed**", None: "not measured"}
# Folders are this machine's own affair.
PRIVATE = ("--data", "--output", "--pause")

Results = dict[str, Any]


def command(program: str) -> str:
    """How the program was called."""
    words = [
        word
        for before, word in zip(sys.argv, sys.argv[1:], strict=False)
        if word.partition("=")[0] not in PRIVATE and before not in PRIVATE
    ]
    return shlex.join([*shlex.split(program), *words])


def merge(
    folder: Path, program: str, here: Mapping[str, Any], rows: Mapping[str, Any],
    order: Sequence[str],
) -> Results:  # fmt: skip
    """New rows beside those of earlier runs, in the order of the table.

    Rows measured on another machine or with other versions do not stay beside the new ones.
    """
    kept: dict[str, Any] = {}
    path = folder / JSON
    if path.exists():
        old = json.loads(path.read_text())
        kept = old["rows"] if old["machine"] == here else {}
    every = {**kept, **rows}
    chosen = {key: every[key] for key in order if key in every}
    return {"machine": here, "command": program, "rows": chosen}


def write(folder: Path, results: Results, text: str) -> None:
    """Write both files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / JSON).write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    (folder / MARKDOWN).write_text(text)


def amount(value: float | None, unit: str) -> str:
    """A number with three digits, and its unit."""
    if value is None:
        return "–"
    digits = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{digits}{unit}" if unit.startswith("/") else f"{digits} {unit}".rstrip()


def head(title: str, results: Results, built: str = "") -> list[str]:
    """What stands above the tables: machine, dates, load, revisions, versions."""
    here, rows = results["machine"], results["rows"].values()
    dates = sorted({row["date"] for row in rows})
    loads = [row["load_1min"] for row in rows]
    revisions = sorted({row["revision"] for row in rows})
    versions = ", ".join(f"{name} {v}" for name, v in here["versions"].items() if v)
    missing = [name for name, v in here["versions"].items() if v is None]
    return [
        f"# {title}",
        "",
        f"`{results['command']}` on {here['processor']}, {here['cores']} cores, "
        f"{here['memory_gib']} GiB, {here['system']}{built}; {dates[0]} to {dates[-1]}, "
        f"load {min(loads)} to {max(loads)}, revision {', '.join(revisions)}.",
        "",
        f"Versions: {versions}." + (f" Not installed: {', '.join(missing)}." if missing else ""),
        "",
    ]


def wanted(results: Results, *, limits: bool = False) -> list[str]:
    """What was wanted of each row, and what was reached; `limits` are told where words do not."""
    lines = ["| Task | Target | Result | |", "|---|---|---|---|"]
    for row in results["rows"].values():
        for number, want in enumerate(row["wants"]):
            work = row["work"] if number == 0 else ""
            text, unit = want["want"], want["unit"]
            if limits:
                text += f" {'≤' if want['at_most'] else '≥'} {amount(want['limit'], unit)}"
            reached = amount(want["reached"], unit)
            lines.append(f"| {work} | {text} | {reached} | {VERDICT[want['ok']]} |")
    return lines


def spread(results: Results) -> list[str]:
    """The amounts of each row: their median, and how far the runs lie apart."""
    lines = ["", "| Work | Who | Median | Least – most | Runs | |", "|---|---|---|---|---|---|"]
    for row in results["rows"].values():
        for number, (name, figure) in enumerate(row["figures"].items()):
            work, unit = row["work"] if number == 0 else "", figure["unit"]
            ends = f"{amount(figure['min'], unit)} – {amount(figure['max'], unit)}"
            middle = amount(figure["median"], unit)
            cells = (work, name, middle, ends, figure["rounds"], figure["note"])
            lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


@dataclass(frozen=True, slots=True)
class Report:
    """Where rows of amounts go: the terminal while they are measured, and both files."""

    folder: Path
    program: str
    here: dict[str, Any]
    order: Sequence[str]
    markdown: Callable[[Results], str]

    def measure(self, key: str, work: Callable[[], Measured]) -> int:
        """Measure a row, and tell of it; how many wants it missed."""
        began = time.monotonic()
        print(f"{key} ({time.strftime('%H:%M:%S')}, load {os.getloadavg()[0]:.2f})", flush=True)
        row, amounts = work()
        for name, one in amounts.items():
            middle = amount(one.as_dict()["median"], one.unit)
            print(f"    {name:60} {middle:>16}  {len(one.runs)} runs  {one.note}".rstrip())
        for want in row.wants:
            reached = amount(want.reached, want.unit)
            print(f"    {want.text:60} {reached:>16}  {VERDICT[want.ok].strip('*')}")
        print(f"    took {time.monotonic() - began:.0f} s", flush=True)
        record = {
            **row.as_dict(),
            "figures": {name: one.as_dict() for name, one in amounts.items()},
            "revision": machine.revision(),
            "command": command(self.program),
        }
        results = merge(self.folder, self.program, self.here, {key: record}, self.order)
        write(self.folder, results, self.markdown(results))
        return sum(want.ok is False for want in row.wants)

    def end(self, missed: int) -> int:
        """Say where the results lie; 0 where nothing was missed, else 1."""
        print(f"{missed} wants missed; see {self.folder / MARKDOWN}")
        return 1 if missed else 0
