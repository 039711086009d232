"""The results of the library's benchmarks in words."""

from __future__ import annotations

import re
from pathlib import Path

from results import Results, head, wanted

COMMAND = "python benchmarks/run.py"
README = Path(__file__).parents[1] / "README.md"
_TABLE = re.compile(r"(?<=<!-- benchmark -->\n).*?(?=<!-- /benchmark -->)", re.DOTALL)
_OPEN = "libavformat's open"
_SHOWN = (
    (
        "build-2h", "index of 2 h, 3,600 moofs",
        "the fastest of four C programs that read every moof byte once", "C floor",
        "{:.3g} × its time",
    ),
    ("build-2h", "", "PyAV's demuxing", "PyAV demux", "{:.3g} × faster"),
    ("build-2h", "", "pymp4", "pymp4", "{:,.0f} × faster"),
    (
        "build-frames", "index of one frame a fragment, 138,375 moofs", _OPEN,
        f"{_OPEN}, C extension", "{:.3g} × faster",
    ),
    ("build-progressive", "index of a progressive file, 2 h", _OPEN, _OPEN, "{:.3g} × faster"),
    (
        "open-saved", "open a saved index and seek", f"{_OPEN} and seek",
        "opening the file and seeking", "{:.0f} × faster",
    ),
    ("seek", "one seek", "", "a seek", "{:.3g} µs"),
    ("memory", "peak memory of an index of 2 h", "", "2 h: ≤ moof bytes", "{:.3g} MB"),
)  # fmt: skip
"""Rows of the README's table: whose, of what, compared with what, which want, how it is written."""


def duration(ns: float) -> str:
    """Nanoseconds in the unit a reader would choose, with three digits."""
    for limit, unit, scale in ((1e3, "ns", 1), (1e6, "µs", 1e3), (1e9, "ms", 1e6)):
        if ns < limit:
            return f"{ns / scale:.3g} {unit}"
    return f"{ns / 1e9:.3g} s" if ns < 1e12 else f"{ns / 1e9:.0f} s"


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


def readme_table(results: Results) -> str:
    """What the README shows of the results."""
    machine, rows = results["machine"], results["rows"]
    python = machine["versions"]["python"].rpartition(".")[0]
    lines = [
        f"`./dev bench` on a shared machine ({machine['processor']}, {machine['cores']} cores), "
        f"Linux, Python {python}, the C extension, warm cache; medians of alternating runs. All "
        "figures, with their targets: [benchmarks/results.md](benchmarks/results.md).",
        "",
        "| Task | fragdex compared with | Result |",
        "|---|---|---|",
    ]
    for key, task, other, words, written in _SHOWN:
        want = next(want for want in rows[key]["wants"] if words in want["want"])
        lines.append(f"| {task} | {other} | {written.format(want['reached'])} |")
    return "\n".join(lines) + "\n"


def tell_readme(results: Results) -> None:
    """Bring the README to the results, once all that it shows is measured."""
    if results["rows"].keys() >= {key for key, *_ in _SHOWN}:
        text, count = _TABLE.subn(lambda _: readme_table(results), README.read_text("utf-8"))
        assert count == 1
        README.write_text(text, "utf-8")


def markdown(results: Results) -> str:
    """The whole report."""
    hop = "with" if results["machine"]["compiled_hop"] else "without"
    body = [
        *head("Benchmarks", results, f", {hop} the C extension"),
        "Medians of alternating runs with a warm page cache. The floor is a C program that hops "
        "over the boxes and reads every moof byte once; it maps the file or reads it, and the "
        "faster of the two counts.",
        "",
        *wanted(results),
        "",
        *_figures(results),
        *_memory(results),
    ]
    return "\n".join(body) + "\n"
