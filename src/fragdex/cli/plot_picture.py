"""The plots as PNG or SVG, drawn by matplotlib."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from fragdex.cli.plot_series import Series, thinned
from fragdex.errors import MissingExtra
from fragdex.seeking.show import bit_rate, tick_label, time_ticks

__all__ = ["draw"]

MAX_BARS = 1500
STYLES = ("-", "--", "-.", ":")


def draw(found: Series, form: str) -> bytes:
    """Four panels over one time axis, as `png` or `svg`.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra(
            "PNG and SVG need the package matplotlib",
            advice="pip install 'fragdex[plot]', or write HTML, which needs nothing",
        ) from error
    heights = [max(0.7, 0.32 * len(found.lanes)), 1.3, 1.1, 1.5]
    figure = Figure(figsize=(10, 2.2 + 1.65 * sum(heights)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(4, 1, sharex=True, height_ratios=heights)
    figure.suptitle(found.title, fontsize=12)
    _fragments(axes[0], found)
    _rate(axes[1], found)
    _distance(axes[2], found)
    _positions(axes[3], found)
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.margins(x=0)
    ticks = time_ticks(found.first, found.last, 11)
    step = ticks[1] - ticks[0] if len(ticks) > 1 else 1.0
    axes[-1].set_xlim(found.first, max(found.last, found.first + 1e-6))
    axes[-1].set_xticks(ticks, [tick_label(tick, step) for tick in ticks])
    unit = "s" if found.last < 60 else "m:s" if found.last < 3600 else "h:m:s"
    axes[-1].set_xlabel(f"presentation time ({unit})")
    if len(found.lanes) > 1:
        axes[1].legend(
            *axes[3].get_legend_handles_labels(),
            loc="lower right",
            bbox_to_anchor=(1, 1),
            ncols=4,
            frameon=False,
            fontsize=9,
            borderaxespad=0.1,
        )
    out = io.BytesIO()
    figure.savefig(out, format=form, dpi=120, metadata={"Date": None} if form == "svg" else None)
    return out.getvalue()


def _fragments(axis: Any, found: Series) -> None:
    for row, lane in enumerate(found.lanes):
        low = len(found.lanes) - 1 - row - 0.35
        if len(lane.starts) <= MAX_BARS:
            bars = np.column_stack([lane.starts, lane.stops - lane.starts])
            axis.broken_barh(bars[::2], (low, 0.7), color=lane.colour, alpha=0.75, linewidth=0)
            axis.broken_barh(bars[1::2], (low, 0.7), color=lane.colour, alpha=0.4, linewidth=0)
        else:
            whole = (float(lane.starts.min()), float(lane.stops.max() - lane.starts.min()))
            axis.broken_barh([whole], (low, 0.7), color=lane.colour, alpha=0.5, linewidth=0)
    counts = [
        f"{lane.label}\n{len(lane.starts):,} of ≈ {lane.mean_fragment:.3g} s"
        for lane in found.lanes
    ]
    axis.set_yticks(range(len(counts) - 1, -1, -1), counts, fontsize=9)
    axis.tick_params(axis="y", length=0)
    axis.set_ylim(-0.5, len(counts) - 0.5)
    axis.set_title("Fragments", loc="left", fontsize=10)


def _rate(axis: Any, found: Series) -> None:
    from matplotlib.ticker import FuncFormatter

    base: Any = None
    for lane in found.lanes:
        if not len(lane.rates):
            continue
        below = np.zeros(len(lane.rates)) if base is None or not found.stacked else base
        top = below + lane.rates
        axis.stairs(top, lane.edges, baseline=below, fill=True, color=lane.colour, alpha=0.6)
        base = top
    axis.yaxis.set_major_formatter(
        FuncFormatter(lambda value, _: bit_rate(value) if value else "0")
    )
    axis.set_ylim(bottom=0)
    axis.set_title(found.rate_title, loc="left", fontsize=10)


def _distance(axis: Any, found: Series) -> None:
    highest = 0.0
    for row, lane in enumerate(found.lanes):
        edges, gaps = lane.key_frames
        if not len(gaps):
            continue
        highest = max(highest, float(gaps.max()))
        if len(gaps) <= MAX_BARS:
            axis.stairs(
                gaps,
                edges,
                baseline=None,
                color=lane.colour,
                linestyle=STYLES[row % len(STYLES)],
                linewidth=1.4,
            )
        axis.plot(
            thinned(edges[:-1]),
            thinned(gaps),
            color=lane.colour,
            linestyle="none",
            marker=".",
            markersize=3 if len(gaps) > 200 else 6,
        )
    if not highest:
        note = "every sample is a key frame"
        axis.text(0.5, 0.5, note, transform=axis.transAxes, ha="center", va="center", fontsize=9)
        axis.set_yticks([])
    axis.set_ylim(0, 1.15 * highest or 1)
    axis.set_ylabel("seconds")
    axis.set_title("From each key frame to the next", loc="left", fontsize=10)


def _positions(axis: Any, found: Series) -> None:
    highest = found.last_position
    scale, unit = next(
        (s, u)
        for s, u in ((1, "B"), (1 << 10, "KiB"), (1 << 20, "MiB"), (1 << 30, "GiB"))
        if highest < 2000 * s or u == "GiB"
    )
    for row, lane in enumerate(found.lanes):
        axis.plot(
            thinned(lane.times),
            thinned(lane.positions) / scale,
            color=lane.colour,
            linestyle=STYLES[row % len(STYLES)],
            linewidth=1.6,
            label=lane.label,
        )
    axis.set_ylim(bottom=0)
    axis.set_ylabel(unit)
    axis.set_title("Interleaving: position in the file over time", loc="left", fontsize=10)
