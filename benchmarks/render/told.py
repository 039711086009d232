"""The results of renders in words."""

from __future__ import annotations

from results import Results, head, spread, wanted

COMMAND = "python benchmarks/render/run.py"


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
