"""The builds as a picture: a panel for each input, a bar for each contender, logarithmic."""

from __future__ import annotations

from pathlib import Path

from report import duration
from results import Results

SVG = "results.svg"
PANELS = ("build-2h", "build-frames", "build-sidx", "build-progressive")
OURS, PEER, FLOOR = "#1b6ca8", "#b8b8b8", "#3a3a3a"


def _colour(name: str) -> str:
    if name.startswith("floor"):
        return FLOOR
    return OURS if name.startswith("fragdex") else PEER


def draw(folder: Path, results: Results) -> Path | None:
    """Draw what was measured; None where matplotlib or every panel is missing."""
    try:
        import matplotlib as mpl
    except ImportError:
        return None
    mpl.use("svg")
    # The same figures give the same file.
    mpl.rcParams["svg.hashsalt"] = "fragdex"
    from matplotlib import pyplot as plt

    rows = [results["rows"][key] for key in PANELS if key in results["rows"]]
    bars = [
        sorted(
            ((f["median_ns"], name) for name, f in row["figures"].items() if "median_ns" in f),
            reverse=True,
        )
        for row in rows
    ]
    if not rows:
        return None
    figure, axes = plt.subplots(
        len(rows),
        1,
        figsize=(9, 1.1 * len(rows) + 0.26 * sum(map(len, bars))),
        height_ratios=[len(panel) + 1 for panel in bars],
        sharex=True,
        squeeze=False,
        layout="constrained",
    )
    for axis, row, panel in zip(axes[:, 0], rows, bars, strict=True):
        drawn = axis.barh(
            [name for _, name in panel],
            [ns / 1e6 for ns, _ in panel],
            color=[_colour(name) for _, name in panel],
        )
        axis.bar_label(drawn, [duration(ns) for ns, _ in panel], padding=3, fontsize=8)
        axis.set_title(row["work"], loc="left", fontsize=10)
        axis.set_xscale("log")
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
        axis.margins(x=0.12)
    axes[-1, 0].set_xlabel("milliseconds, median, logarithmic", fontsize=9)
    path = folder / SVG
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    return path
