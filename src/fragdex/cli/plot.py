"""`fragdex plot`: draw what is in a file, as PNG or SVG by matplotlib, and as HTML.

The HTML is one file that needs nothing else: inline SVG, no script, no network.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import partial
from html import escape
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from fragdex.cli import options
from fragdex.cli.inputs import InputWork, expand, into_folder, is_url, notes, open_any, places
from fragdex.cli.output import emit, json_line, say
from fragdex.errors import InexactIndex, MissingExtra, install_command
from fragdex.fragments.table import NULL
from fragdex.record import record
from fragdex.seeking.show import (
    bit_rate,
    byte_count,
    clock,
    counted,
    fragment_spans,
    rate_steps,
    sync_times,
    tick_label,
    time_ticks,
)


class PlotForm(StrEnum):
    """What a plot can be written as."""

    PNG = "png"
    SVG = "svg"
    HTML = "html"


@options.opens("init", "strict", "ignore_mtime", "follow", "max_bytes", "max_requests")
def plot(
    files: options.Files,
    output: Annotated[
        str | None,
        options.placed(
            "Write there: a file, a folder, or - for stdout. Default: FILE's name with .png"
            " (or .svg, .html), in the same folder."
        ),
    ] = None,
    format: Annotated[
        PlotForm | None,
        typer.Option("--format", "-f", help="The form to write.", show_default="as in PATH"),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON: the numbers that would be drawn.")
    ] = False,
    jobs: options.Jobs = 1,
    *,
    opening: dict[str, Any],
) -> int:
    """Plot fragments, bit rate, key frame distance and interleaving over time.

    HTML is one file that needs nothing else, and shows values under the pointer; PNG and SVG need
    matplotlib (pip install 'fragdex[plot]').

    Examples:
      fragdex plot movie.mp4 -o movie.png
      fragdex plot *.mp4 -f html -o plots/
    """
    names = expand(files)
    chosen = _form(output, format)
    targets = {} if json else places(names, output, lambda name: f".{chosen.value}", "plots")
    # without samples there is no telling the tracks' bytes apart
    opening["exact"] = True
    work = InputWork("plot")
    drawing = partial(
        _plot, targets=targets, form="json" if json else chosen.value, opening=opening
    )
    results = work.each(drawing, names, jobs)
    if json:
        emit((text for _, text in results), output)
        return work.code
    for _, line in results:
        say(line)
    return work.code


def _form(output: str | None, given: PlotForm | None) -> PlotForm:
    if given is not None:
        return given
    suffix = os.path.splitext(output or "")[1].lower().removeprefix(".")
    if suffix == "htm":
        return PlotForm.HTML
    if suffix in tuple(PlotForm):
        return PlotForm(suffix)
    if suffix and output is not None and not into_folder(output):
        raise typer.BadParameter(f"no picture is called .{suffix}: png, svg or html")
    return PlotForm.PNG


def _plot(
    name: str, targets: dict[str, str], form: str, opening: dict[str, Any]
) -> tuple[str, Sequence[str]]:
    index = open_any(name, **opening)
    lines = notes(index, findings=False)
    shown = series(index, os.path.basename(name) if not is_url(name) else name)
    if form == "json":
        return json_line({"file": name, **_values(shown)}), lines
    if form == PlotForm.HTML:
        data = page(shown, index).encode()
    else:
        data = draw(shown, form)
    target = targets[name]
    emit([data], target)
    drawn = f"{target}: {counted(len(shown.lanes), 'track')} of {name}\n"
    return ("" if target == "-" else drawn), lines


def _values(shown: Any) -> dict[str, Any]:
    lanes = [
        {
            "label": lane.label,
            "fragments": [lane.starts.tolist(), lane.stops.tolist()],
            "sync": lane.sync.tolist(),
            "rate": {"edges": lane.edges.tolist(), "bits_per_second": lane.rates.tolist()},
            "position": {"times": lane.times.tolist(), "bytes": lane.positions.tolist()},
        }
        for lane in shown.lanes
    ]
    return {"start": shown.first, "stop": shown.last, "tracks": lanes}


Floats = npt.NDArray[np.float64]

# Eight colours that every eye tells apart (Okabe and Ito), the darker ones first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
BINS = 300
MAX_SAMPLES = 5_000_000
"""Samples that are looked at one by one; beyond that, fragments stand for them."""


@record(frozen=True, slots=True, eq=False)
class ChartLane:
    """One track.

    Attributes:
        label, colour: what it is called, and drawn in.
        starts, stops: seconds of each fragment.
        sync: seconds of the sync samples; empty where every sample is one.
        times, positions: seconds, and the byte of the file where that is.
        edges, rates: bits a second as steps: n + 1 times, n rates.
    """

    label: str
    colour: str
    starts: Floats
    stops: Floats
    sync: Floats
    times: Floats
    positions: npt.NDArray[np.int64]
    edges: Floats
    rates: Floats

    @property
    def key_frames(self) -> tuple[Floats, Floats]:
        """Seconds of the key frames and of the end, and the distance from each to the next."""
        if not len(self.sync):
            return np.zeros(0), np.zeros(0)
        end = max(float(self.stops.max()), float(self.sync[-1]))
        edges = np.append(self.sync, end)
        return edges, np.diff(edges)

    @property
    def mean_fragment(self) -> float:
        """Seconds of a fragment on average."""
        return float(np.mean(self.stops - self.starts))


@record(frozen=True, slots=True, eq=False)
class Series:
    """One file: its lanes, what the rates are of, and the seconds it spans."""

    title: str
    lanes: tuple[ChartLane, ...]
    stacked: bool
    first: float
    last: float

    @property
    def last_position(self) -> int:
        """Highest byte position of any lane; fragments without samples have none."""
        return max((int(lane.positions.max(initial=0)) for lane in self.lanes), default=0)

    @property
    def rate_title(self) -> str:
        """What the bit rates are of."""
        if not self.stacked:
            return "Bit rate of the file"
        return "Bit rate, tracks stacked" if len(self.lanes) > 1 else "Bit rate"


def series(index: Any, name: str) -> Series:
    """Everything that is drawn of an index.

    With samples, bit rates are those of each track, to be stacked. Without, the first lane has that
    of the whole file: the bytes from one fragment to the next.

    Raises:
        InexactIndex: no track has times.
    """
    shown = [track for track in index.tracks if len(fragment_spans(track)[0])]
    if not shown:
        raise InexactIndex(
            f"{name} has no fragments with times, so that there is nothing to draw",
            advice="segments without a moov need --init",
        )
    spans = [fragment_spans(track) for track in shown]
    first = min(float(starts.min()) for starts, _ in spans)
    last = max(float(stops.max()) for _, stops in spans)
    stacked = all(track.has_samples and (track.sample_count or 0) <= MAX_SAMPLES for track in shown)
    several = len({track.period for track in shown}) > 1
    lanes = []
    for number, track in enumerate(shown):
        starts, stops = spans[number]
        times, positions, sizes = _sample_bytes(track) if stacked else _fragment_bytes(track)
        edges, rates = _rates(times, sizes, first, last) if stacked else (np.zeros(0), np.zeros(0))
        if not stacked and number == 0:
            edges, rates = rate_steps(index.tracks)
        every = track.sample_count == int(track.sync_samples.count.sum()) and track.kind != "video"
        label = f"{'' if not several else f'period {track.period}, '}track {track.id} {track.kind}"
        # Pictures are decoded before they are shown, the first ones before the span begins.
        times = np.maximum(times, first)
        lanes.append(
            ChartLane(
                label,
                COLOURS[number % len(COLOURS)],
                starts,
                stops,
                np.zeros(0) if every else np.sort(sync_times(track)),
                times,
                positions,
                edges,
                rates,
            )
        )
    title = f"{name}: {clock(last - first)}{' s' if last - first < 60 else ''}"
    return Series(title, tuple(lanes), stacked, first, last)


def thinned(values: npt.NDArray[Any], most: int = 4000) -> npt.NDArray[Any]:
    """At most so many of many values, evenly chosen, the last one among them."""
    if len(values) <= most:
        return values
    return values[np.linspace(0, len(values) - 1, most).astype(np.int64)]


def _sample_bytes(track: Any) -> tuple[Floats, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    table = track.samples
    shift = float(track.presentation(0))
    return table.dts / track.timescale + shift, table.offset, table.size


def _fragment_bytes(track: Any) -> tuple[Floats, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    table = track.fragments.rows(track.fragments.cts_min != NULL)
    starts = fragment_spans(track)[0]
    known = table.data_start != NULL
    return starts, np.where(known, table.data_start, table.offset), table.size


def _rates(
    times: Floats, sizes: npt.NDArray[np.int64], first: float, last: float
) -> tuple[Floats, Floats]:
    """Bits a second in equal parts of the span, a second long at least."""
    span = max(last - first, 1e-9)
    bins = int(min(BINS, max(1, round(span))))
    edges = np.linspace(first, last, bins + 1)
    inside = np.clip(times, first, np.nextafter(last, first))
    totals, _ = np.histogram(inside, edges, weights=sizes)
    return edges, totals * 8 / (span / bins)


MAX_BARS = 1500
STYLES = ("-", "--", "-.", ":")


def draw(series: Series, form: str) -> bytes:
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
            advice=f"{install_command('plot')}, or write HTML, which needs nothing",
        ) from error
    heights = [max(0.7, 0.32 * len(series.lanes)), 1.3, 1.1, 1.5]
    figure = Figure(figsize=(10, 2.2 + 1.65 * sum(heights)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(4, 1, sharex=True, height_ratios=heights)
    figure.suptitle(series.title, fontsize=12)
    _plot_fragments(axes[0], series)
    _plot_rate(axes[1], series)
    _plot_distance(axes[2], series)
    _plot_positions(axes[3], series)
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.margins(x=0)
    ticks = time_ticks(series.first, series.last, 11)
    step = ticks[1] - ticks[0] if len(ticks) > 1 else 1.0
    axes[-1].set_xlim(series.first, max(series.last, series.first + 1e-6))
    axes[-1].set_xticks(ticks, [tick_label(tick, step) for tick in ticks])
    unit = "s" if series.last < 60 else "m:s" if series.last < 3600 else "h:m:s"
    axes[-1].set_xlabel(f"presentation time ({unit})")
    if len(series.lanes) > 1:
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


def _plot_fragments(axis: Any, series: Series) -> None:
    for row, lane in enumerate(series.lanes):
        low = len(series.lanes) - 1 - row - 0.35
        if len(lane.starts) <= MAX_BARS:
            bars = np.column_stack([lane.starts, lane.stops - lane.starts])
            axis.broken_barh(bars[::2], (low, 0.7), color=lane.colour, alpha=0.75, linewidth=0)
            axis.broken_barh(bars[1::2], (low, 0.7), color=lane.colour, alpha=0.4, linewidth=0)
        else:
            whole = (float(lane.starts.min()), float(lane.stops.max() - lane.starts.min()))
            axis.broken_barh([whole], (low, 0.7), color=lane.colour, alpha=0.5, linewidth=0)
    counts = [
        f"{lane.label}\n{len(lane.starts):,} of ≈ {lane.mean_fragment:.3g} s"
        for lane in series.lanes
    ]
    axis.set_yticks(range(len(counts) - 1, -1, -1), counts, fontsize=9)
    axis.tick_params(axis="y", length=0)
    axis.set_ylim(-0.5, len(counts) - 0.5)
    axis.set_title("Fragments", loc="left", fontsize=10)


def _plot_rate(axis: Any, series: Series) -> None:
    from matplotlib.ticker import FuncFormatter

    base: Any = None
    for lane in series.lanes:
        if not len(lane.rates):
            continue
        below = np.zeros(len(lane.rates)) if base is None or not series.stacked else base
        top = below + lane.rates
        axis.stairs(top, lane.edges, baseline=below, fill=True, color=lane.colour, alpha=0.6)
        base = top
    axis.yaxis.set_major_formatter(
        FuncFormatter(lambda value, _: bit_rate(value) if value else "0")
    )
    axis.set_ylim(bottom=0)
    axis.set_title(series.rate_title, loc="left", fontsize=10)


def _plot_distance(axis: Any, series: Series) -> None:
    highest = 0.0
    for row, lane in enumerate(series.lanes):
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


def _plot_positions(axis: Any, series: Series) -> None:
    highest = series.last_position
    scale, unit = next(
        (s, u)
        for s, u in ((1, "B"), (1 << 10, "KiB"), (1 << 20, "MiB"), (1 << 30, "GiB"))
        if highest < 2000 * s or u == "GiB"
    )
    for row, lane in enumerate(series.lanes):
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


WIDTH, LEFT, RIGHT = 1000, 210, 28
MAX_MARKS = 600
"""Marks that can be pointed at in one panel; the rest is drawn as one path."""

STYLE = """
:root{color-scheme:light dark}
body{font:15px/1.4 system-ui,sans-serif;max-width:1040px;margin:1.5rem auto;padding:0 1rem}
h1{font-size:1.25rem;overflow-wrap:anywhere}h2{font-size:1rem;margin:1.4rem 0 .2rem}
svg{width:100%;height:auto;font:12px system-ui,sans-serif}svg text{fill:currentColor}
.axis{stroke:currentColor;stroke-opacity:.35}.key i{display:inline-block;width:.9em;
height:.9em;border-radius:2px;margin:0 .35em 0 0}.key span{margin-right:1.4em}
pre{overflow:auto;font-size:.85rem}
""".replace("\n", "")


def page(series: Series, index: Any) -> str:
    """A whole HTML document; every text that comes from the file is escaped."""
    key = "".join(
        f'<span><i style="background:{lane.colour}"></i>{escape(lane.label)}</span>'
        for lane in series.lanes
    )
    panels = (
        ("Fragments", _svg_fragments(series)),
        (series.rate_title, _svg_rate(series)),
        ("From each key frame to the next", _svg_distance(series)),
        ("Interleaving: position in the file over time", _svg_positions(series)),
    )
    body = "".join(f"<h2>{title}</h2>{drawn}" for title, drawn in panels)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(series.title)}</title><style>{STYLE}</style></head>"
        f'<body><h1>{escape(series.title)}</h1><p class="key">{key}</p>{body}'
        f"<h2>Tracks</h2><pre>{escape(repr(index))}</pre></body></html>\n"
    )


class _Panel:
    """A plot area with a time axis below and room for labels at its left."""

    def __init__(self, series: Series, height: int, highest: float = 1.0) -> None:
        self.series, self.height, self.highest = series, height, max(highest, 1e-12)
        self.parts: list[str] = []
        self.scale = (WIDTH - LEFT - RIGHT) / max(series.last - series.first, 1e-9)

    def x(self, seconds: Any) -> Any:
        return np.round(LEFT + (np.asarray(seconds) - self.series.first) * self.scale, 1)

    def y(self, value: Any) -> Any:
        return np.round(self.height - np.asarray(value) / self.highest * (self.height - 8), 1)

    def label(self, y: float, text: str) -> None:
        self.parts.append(f'<text x="{LEFT - 8}" y="{y:g}" text-anchor="end">{escape(text)}</text>')

    def scale_lines(self, values: Sequence[float], text: Callable[[float], str]) -> None:
        for value in values:
            y = float(self.y(value))
            self.parts.append(f'<path class="axis" d="M{LEFT} {y:g}H{WIDTH - RIGHT}"/>')
            self.label(y + 4, text(value))

    def svg(self, title: str) -> str:
        ticks = time_ticks(self.series.first, self.series.last, 11)
        step = ticks[1] - ticks[0] if len(ticks) > 1 else 1.0
        for tick in ticks:
            at = float(self.x(tick))
            self.parts.append(
                f'<path class="axis" d="M{at:g} {self.height}v5"/>'
                f'<text x="{at:g}" y="{self.height + 18}" text-anchor="middle">'
                f"{tick_label(tick, step)}</text>"
            )
        unit = "time (s)" if self.series.last < 60 else "time"
        self.label(self.height + 18, unit)
        self.parts.append(f'<path class="axis" d="M{LEFT} {self.height}H{WIDTH - RIGHT}"/>')
        return (
            f'<svg viewBox="0 0 {WIDTH} {self.height + 24}" role="img" fill="none">'
            f"<title>{title}</title>{''.join(self.parts)}</svg>"
        )


def _svg_fragments(series: Series) -> str:
    panel = _Panel(series, 30 * len(series.lanes) + 4)
    for row, lane in enumerate(series.lanes):
        top = 30 * row + 4
        panel.label(
            top + 15, f"{lane.label} ({len(lane.starts):,} of ≈ {lane.mean_fragment:.3g} s)"
        )
        left, right = panel.x(lane.starts), panel.x(lane.stops)
        if len(left) <= MAX_MARKS:
            for number, (a, b) in enumerate(zip(left, right, strict=True)):
                label = (
                    f"fragment {number}: {clock(lane.starts[number])} – {clock(lane.stops[number])}"
                )
                panel.parts.append(
                    f'<rect x="{a:g}" y="{top}" width="{max(b - a, 0.5):g}" height="22" '
                    f'fill="{lane.colour}" fill-opacity="{0.75 if number % 2 else 0.4}">'
                    f"<title>{label}</title></rect>"
                )
        else:
            panel.parts.append(
                f'<rect x="{left.min():g}" y="{top}" width="{right.max() - left.min():g}" '
                f'height="22" fill="{lane.colour}" fill-opacity=".5"/>'
            )
    return panel.svg("Fragments of each track over time")


def _round_values(highest: float) -> list[float]:
    """Three or four round numbers from 0 to at most the highest."""
    if highest <= 0:
        return [0.0]
    power = 10.0 ** np.floor(np.log10(highest))
    step = next(power * m for m in (5, 2, 1, 0.5, 0.2) if highest / (power * m) >= 2)
    return [n * step for n in range(int(highest / step) + 1)]


def _svg_rate(series: Series) -> str:
    lanes = [lane for lane in series.lanes if len(lane.rates)]
    if not lanes:
        return "<p>unknown</p>"
    tops: list[Floats] = []
    for lane in lanes:
        tops.append(lane.rates + (tops[-1] if tops and series.stacked else 0))
    panel = _Panel(series, 150, float(max(top.max() for top in tops)))
    panel.scale_lines(_round_values(panel.highest), lambda v: bit_rate(v) if v else "0")
    for number in range(len(lanes) - 1, -1, -1):
        lane, top = lanes[number], tops[number]
        below = tops[number - 1] if number and series.stacked else np.zeros(len(top))
        panel.parts.append(
            f'<path d="{_steps(panel, lane.edges, top, below)}" fill="{lane.colour}" '
            'fill-opacity=".6"/>'
        )
    _tell_rates(panel, lanes)
    return panel.svg("Bits a second over time")


def _steps(panel: _Panel, edges: Floats, top: Floats, below: Floats) -> str:
    """The outline of steps that stand on other steps."""
    x = np.repeat(panel.x(edges), 2)[1:-1]
    forth, back = np.repeat(panel.y(top), 2), np.repeat(panel.y(below), 2)
    points = [*zip(x, forth, strict=True), *zip(x[::-1], back[::-1], strict=True)]
    return "M" + "L".join(f"{a:g} {b:g}" for a, b in points) + "Z"


def _tell_rates(panel: _Panel, lanes: Sequence[ChartLane]) -> None:
    edges = lanes[0].edges
    if len(edges) > MAX_MARKS:
        return
    places = panel.x(edges)
    for number in range(len(edges) - 1):
        rates = "; ".join(f"{lane.label} {bit_rate(lane.rates[number])}" for lane in lanes)
        panel.parts.append(
            f'<rect x="{places[number]:g}" y="0" width="{places[number + 1] - places[number]:g}" '
            f'height="{panel.height}" fill="transparent"><title>{clock(edges[number])}: '
            f"{escape(rates)}</title></rect>"
        )


def _svg_distance(series: Series) -> str:
    lanes = [lane for lane in series.lanes if len(lane.sync)]
    if not lanes:
        return "<p>Every sample is a key frame.</p>"
    panel = _Panel(series, 120, float(max(lane.key_frames[1].max() for lane in lanes)))
    panel.scale_lines(_round_values(panel.highest), lambda v: f"{v:g} s")
    for lane in lanes:
        edges, gaps = lane.key_frames
        x, y = panel.x(edges), panel.y(gaps)
        if len(gaps) > MAX_MARKS:
            x, y = thinned(x[:-1]), thinned(y)
            dots = "".join(f"M{a:g} {b:g}h.1" for a, b in zip(x, y, strict=True))
            panel.parts.append(
                f'<path d="{dots}" stroke="{lane.colour}" stroke-width="3" stroke-linecap="round"/>'
            )
            continue
        steps = "".join(f"H{a:g}V{b:g}" for a, b in zip(x[:-1], y, strict=True))
        panel.parts.append(
            f'<path d="M{x[0]:g} {y[0]:g}{steps}H{x[-1]:g}" stroke="{lane.colour}"/>'
        )
        for number in range(len(gaps)):
            panel.parts.append(
                f'<circle cx="{x[number]:g}" cy="{y[number]:g}" r="3" fill="{lane.colour}">'
                f"<title>{clock(edges[number])}: {gaps[number]:.3f} s to the next</title></circle>"
            )
    return panel.svg("Seconds from each key frame to the next")


def _svg_positions(series: Series) -> str:
    panel = _Panel(series, 220, float(series.last_position))
    unit = next((u for u in (1, 1 << 10, 1 << 20) if panel.highest < 2000 * u), 1 << 30)
    values = [value * unit for value in _round_values(panel.highest / unit)]
    panel.scale_lines(values, lambda v: byte_count(int(v)))
    dashes = ("", "7 4", "2 3", "9 3 2 3")
    for row, lane in enumerate(series.lanes):
        if not len(lane.positions):
            continue
        x, y = panel.x(thinned(lane.times, 1500)), panel.y(thinned(lane.positions, 1500))
        path = "M" + "L".join(f"{a:g} {b:g}" for a, b in zip(x, y, strict=True))
        panel.parts.append(
            f'<path d="{path}" stroke="{lane.colour}" stroke-width="2" '
            f'stroke-dasharray="{dashes[row % 4]}"><title>{escape(lane.label)}</title></path>'
        )
    return panel.svg("Position in the file over time")
