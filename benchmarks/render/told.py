"""The results as JSON and as Markdown; a run of some rows renews these rows alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import machine
from measure import Amount
from report import VERDICT
from rows import Row

COMMAND = "python benchmarks/render/run.py"
JSON, MARKDOWN = "results.json", "results.md"


def merge(
    folder: Path, here: dict[str, Any], rows: dict[str, dict[str, Any]], order: list[str]
) -> dict[str, Any]:
    """New rows beside those of earlier runs on the same machine and versions."""
    kept: dict[str, Any] = {}
    path = folder / JSON
    if path.exists():
        old = json.loads(path.read_text())
        kept = old["rows"] if old["machine"] == here else {}
    every = {**kept, **rows}
    return {
        "machine": here,
        "command": COMMAND,
        "rows": {key: every[key] for key in order if key in every},
    }


def as_dict(row: Row, amounts: dict[str, Amount]) -> dict[str, Any]:
    """A row for the results file."""
    figures = {name: amount.as_dict() for name, amount in amounts.items()}
    return {**row.as_dict(), "figures": figures, "revision": machine.revision()}


def amount(value: float | None, unit: str) -> str:
    """A number with three digits, and its unit."""
    if value is None:
        return "–"
    digits = f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
    return f"{digits} {unit}"


def markdown(results: dict[str, Any]) -> str:
    """The whole report."""
    here, rows = results["machine"], results["rows"]
    dates = sorted({row["date"] for row in rows.values()})
    loads = [row["load_1min"] for row in rows.values()]
    revisions = sorted({row["revision"] for row in rows.values()})
    lines = [
        "# Benchmarks of renders",
        "",
        f"`{results['command']}` on {here['processor']}, {here['cores']} cores, "
        f"{here['memory_gib']} GiB, {here['system']}; {dates[0]} to {dates[-1]}, "
        f"load {min(loads)} to {max(loads)}, revision {', '.join(revisions)}.",
        "",
        "Versions: " + ", ".join(f"{name} {v}" for name, v in here["versions"].items()) + ".",
        "",
        "Pages of 1280 × 720 at 30 frames a second, from `benchmarks/render/pages`. Everything is "
        "measured from the start of the program to the finished file, with all processes that it "
        "starts; of Remotion, packing its bundle is left out. Runs alternate; a ratio is the "
        "median of the ratios within each round.",
        "",
        "| Work | Wanted | Reached | |",
        "|---|---|---|---|",
    ]
    for row in rows.values():
        for number, want in enumerate(row["wants"]):
            work = row["work"] if number == 0 else ""
            reached = amount(want["reached"], want["unit"])
            lines.append(f"| {work} | {want['want']} | {reached} | {VERDICT[want['ok']]} |")
    lines += ["", "| Work | Who | Median | Least – most | Runs | |", "|---|---|---|---|---|---|"]
    for row in rows.values():
        for number, (name, figure) in enumerate(row["figures"].items()):
            work = row["work"] if number == 0 else ""
            unit = figure["unit"]
            spread = f"{amount(figure['min'], unit)} – {amount(figure['max'], unit)}"
            middle = amount(figure["median"], unit)
            cells = (work, name, middle, spread, figure["rounds"], figure["note"])
            lines.append("| " + " | ".join(map(str, cells)) + " |")
    notes = [
        f"- {row['work']}: {note}"
        for row in rows.values()
        for note in row["facts"].get("notes", ())
    ]
    return "\n".join([*lines, "", *notes]).rstrip() + "\n"


def write(folder: Path, results: dict[str, Any]) -> None:
    """Write both files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / JSON).write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    (folder / MARKDOWN).write_text(markdown(results))
