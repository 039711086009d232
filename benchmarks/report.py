"""The results as a JSON file and as Markdown; a run of some rows renews these rows alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

COMMAND = "python benchmarks/run.py"
JSON, MARKDOWN = "results.json", "results.md"
VERDICT = {True: "ok", False: "**missed**", None: "not measured"}

Results = dict[str, Any]


def merge(folder: Path, machine: dict[str, Any], rows: dict[str, Any]) -> Results:
    """Put new rows in the results of this folder, and give all of them.

    Rows measured on another machine or with other versions do not stay beside the new ones.
    """
    path = folder / JSON
    kept: dict[str, Any] = {}
    if path.exists():
        old = json.loads(path.read_text())
        if old["machine"] == machine:
            kept = old["rows"]
    return {"machine": machine, "command": COMMAND, "rows": {**kept, **rows}}


def order(results: Results, keys: list[str]) -> Results:
    """The rows in the order of the table, whenever they were measured."""
    rows = results["rows"]
    return {**results, "rows": {key: rows[key] for key in keys if key in rows}}


def duration(ns: float) -> str:
    """Nanoseconds in the unit a reader would choose, with three digits."""
    for limit, unit, scale in ((1e3, "ns", 1), (1e6, "µs", 1e3), (1e9, "ms", 1e6)):
        if ns < limit:
            return f"{ns / scale:.3g} {unit}"
    return f"{ns / 1e9:.3g} s" if ns < 1e12 else f"{ns / 1e9:.0f} s"


def _amount(value: float | None, unit: str) -> str:
    if value is None:
        return "–"
    digits = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{digits} {unit}"


def _wants(results: Results) -> list[str]:
    lines = ["| Work | Wanted | Reached | |", "|---|---|---|---|"]
    for row in results["rows"].values():
        for number, want in enumerate(row["wants"]):
            work = row["work"] if number == 0 else ""
            reached = _amount(want["reached"], want["unit"])
            lines.append(f"| {work} | {want['want']} | {reached} | {VERDICT[want['ok']]} |")
    return lines


def _figures(results: Results) -> list[str]:
    lines = ["| Work | Who | Median | Least – most | Runs | |", "|---|---|---|---|---|---|"]
    for row in results["rows"].values():
        for number, (name, figure) in enumerate(row["figures"].items()):
            work = row["work"] if number == 0 else ""
            if "median_ns" not in figure:
                lines.append(f"| {work} | {name} | failed | | | {figure['failed']} |")
                continue
            spread = f"{duration(figure['min_ns'])} – {duration(figure['max_ns'])}"
            cells = (work, name, duration(figure["median_ns"]), spread, figure["rounds"])
            lines.append("| " + " | ".join(map(str, cells)) + f" | {figure['note']} |")
    return lines


def _memory(results: Results) -> list[str]:
    row = results["rows"].get("memory")
    if row is None:
        return []
    columns = {
        "moof_bytes": "moof or moov",
        "table_bytes": "tables",
        "limit": "limit",
        "maxrss_over_idle": "ru_maxrss over idle",
        "peak_rss_added": "peak resident added",
        "peak_anon_added": "of it anonymous",
    }
    lines = ["| MB | " + " | ".join(columns.values()) + " |", "|---" * (len(columns) + 1) + "|"]
    for name, facts in row["facts"].items():
        cells = (f"{facts[column] / 1e6:.1f}" for column in columns)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return ["", "Memory while building, in a fresh process each:", "", *lines]


def markdown(results: Results) -> str:
    """The whole report."""
    machine = results["machine"]
    versions = ", ".join(f"{name} {v}" for name, v in machine["versions"].items() if v)
    missing = [name for name, v in machine["versions"].items() if v is None]
    dates = sorted({row["date"] for row in results["rows"].values()})
    loads = [row["load_1min"] for row in results["rows"].values()]
    revisions = sorted({row["revision"] for row in results["rows"].values()})
    hop = "with" if machine["compiled_hop"] else "without"
    head = [
        "# Benchmarks",
        "",
        f"`{results['command']}` on {machine['processor']}, {machine['cores']} cores, "
        f"{machine['memory_gib']} GiB, {machine['system']}, {hop} the compiled hop; "
        f"{dates[0]} to {dates[-1]}, load {min(loads)} to {max(loads)}, "
        f"revision {', '.join(revisions)}.",
        "",
        f"Versions: {versions}." + (f" Not installed: {', '.join(missing)}." if missing else ""),
        "",
        "Medians of alternating runs with a warm page cache. The floor is a C program that hops "
        "over the boxes and reads every moof byte once; it maps the file or reads it, and the "
        "faster of the two counts.",
        "",
    ]
    body = [*_wants(results), "", *_figures(results), *_memory(results)]
    return "\n".join([*head, *body]) + "\n"


def write(folder: Path, results: Results) -> None:
    """Write both files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / JSON).write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    (folder / MARKDOWN).write_text(markdown(results))
