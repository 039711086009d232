"""The queues of a fleet by time, with the kills, as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

SVG = "fleet.svg"
PANELS = {
    "slices": "slices",
    "jobs": "jobs that are one piece",
    "parents-of-tenants": "jobs that wait for their slices",
}
WAITING, RUNNING, KILL = "#b8b8b8", "#1b6ca8", "#b02a2a"


def draw(folder: Path, results: dict[str, Any]) -> Path | None:
    """Draw what was sampled; None where matplotlib is missing."""
    try:
        import matplotlib as mpl
    except ImportError:
        return None
    mpl.use("svg")
    # The same figures give the same file.
    mpl.rcParams["svg.hashsalt"] = "fragdex"
    from matplotlib import pyplot as plt

    samples = results["samples"]
    figure, axes = plt.subplots(len(PANELS), 1, figsize=(9, 6), sharex=True, layout="constrained")
    seconds = [one["at"] for one in samples]
    for axis, (queue, title) in zip(axes, PANELS.items(), strict=True):
        running = [one.get(f"{queue} PENDING", 0) for one in samples]
        waiting = [one.get(f"{queue} ENQUEUED", 0) for one in samples]
        axis.stackplot(
            seconds, running, waiting, colors=(RUNNING, WAITING), step="post",
            labels=("running", "waiting"),
        )  # fmt: skip
        for kill in results["kills"]:
            axis.axvline(kill["at"], color=KILL, linewidth=0.8)
        axis.set_title(title, loc="left", fontsize=10)
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_ylim(bottom=0)
        axis.margins(x=0)
    for kill in results["kills"]:
        axes[0].annotate(
            kill["name"], (kill["at"], 1), xycoords=("data", "axes fraction"), rotation=45,
            fontsize=7, color=KILL,
        )  # fmt: skip
    axes[0].set_title("")
    axes[0].set_ylabel(PANELS["slices"], fontsize=8)
    axes[0].legend(fontsize=8, loc="upper right", frameon=False)
    axes[-1].set_xlabel("seconds; red: kill -9", fontsize=9)
    path = folder / SVG
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    return path
