"""The results of the library's benchmarks in words."""

from __future__ import annotations

from results import Results, head, wanted

COMMAND = "python benchmarks/run.py"


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
