"""The results of frames in words."""

from __future__ import annotations

from results import Results, head, spread, wanted

__all__ = ["COMMAND", "markdown"]

COMMAND = "python benchmarks/frames/run.py"


def markdown(results: Results) -> str:
    """The whole report."""
    rows = results["rows"].values()
    notes = [f"- {row['work']}: {note}" for row in rows for note in row["facts"].get("notes", ())]
    wrong = [
        "| Work | Frames | " + " | ".join(names) + " |" for names in [_names(results)] if names
    ]
    if wrong:
        wrong.append("|---|---|" + "---|" * len(_names(results)))
    for row in rows:
        mistakes = row["facts"].get("wrong frames")
        if mistakes:
            cells = [str(mistakes.get(name, "–")) for name in _names(results)]
            wrong.append(f"| {row['work']} | {mistakes['of']:,} | " + " | ".join(cells) + " |")
    body = [
        *head("Benchmarks of frames", results),
        "Every reader works in a process of its own, in one environment, and torchcodec, PyAV and "
        "fragdex with the same libraries of FFmpeg (decord brings its own). Times begin when the "
        "film is opened and end when the pixels are there as RGB; imports are left out. Runs "
        "alternate, each round with other frames; a ratio is the median of the ratios within each "
        "round. 1080p is as dense as 360p, but shorter. The machine was shared with other work: "
        "the ratios mean something, the times little.",
        "",
        *wanted(results),
        *spread(results),
        "",
        "Frames whose pixels or times are not those of linear decode:",
        "",
        *wrong,
        "",
        *notes,
    ]
    return "\n".join(body).rstrip() + "\n"


def _names(results: Results) -> list[str]:
    names: dict[str, None] = {}
    for row in results["rows"].values():
        names |= dict.fromkeys(row["facts"].get("wrong frames", {}))
    return [name for name in names if name != "of"]
