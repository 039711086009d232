"""The results of renders in words."""

from __future__ import annotations

import re
from pathlib import Path

from results import Results, head, spread, wanted

COMMAND = "python benchmarks/render/run.py"
README = Path(__file__).parents[2] / "README.md"
_TOLD = re.compile(r"take from \S+ \(a heavy page\) to \S+ \(slides\) of Remotion's time")


def sentence(results: Results) -> str:
    """What the README says of renders."""
    heavy, slides = (1 / results["rows"][key]["wants"][0]["reached"] for key in ("heavy", "slides"))
    return f"take from {heavy:.2f} (a heavy page) to {slides:.2f} (slides) of Remotion's time"


def tell_readme(results: Results) -> None:
    """Bring the README to the results, once both pages are measured beside the peer."""
    rows = results["rows"]
    if all(key in rows and rows[key]["wants"][0]["reached"] for key in ("heavy", "slides")):
        text, count = _TOLD.subn(sentence(results), README.read_text("utf-8"))
        assert count == 1
        README.write_text(text, "utf-8")


def markdown(results: Results) -> str:
    """The whole report."""
    notes = [
        f"- {row['work']}: {note}"
        for row in results["rows"].values()
        for note in row["facts"].get("notes", ())
    ]
    body = [
        *head("Benchmarks of renders", results),
        "Pages of 1280 × 720 at 30 frames a second, from `benchmarks/render/pages`. Everything is "
        "measured from the start of the program to the finished file, with all processes that it "
        "starts; of Remotion, packing its bundle is left out. Runs alternate; a ratio is the "
        "median of the ratios within each round.",
        "",
        *wanted(results),
        *spread(results),
        "",
        *notes,
    ]
    return "\n".join(body).rstrip() + "\n"
