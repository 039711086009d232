"""The plots as one HTML file that needs nothing else: inline SVG, no script, no network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from fragdex.cli.plot_series import Lane, Series, thinned
from fragdex.seeking.show import bit_rate, byte_count, clock, tick_label, time_ticks

__all__ = ["page"]

Floats = npt.NDArray[np.float64]

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


def page(found: Series, index: Any) -> str:
    """A whole HTML document; every text that comes from the file is escaped."""
    key = "".join(
        f'<span><i style="background:{lane.colour}"></i>{escape(lane.label)}</span>'
        for lane in found.lanes
    )
    panels = (
        ("Fragments", _fragments(found)),
        (found.rate_title, _rate(found)),
        ("From each key frame to the next", _distance(found)),
        ("Interleaving: position in the file over time", _positions(found)),
    )
    body = "".join(f"<h2>{title}</h2>{drawn}" for title, drawn in panels)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(found.title)}</title><style>{STYLE}</style></head>"
        f'<body><h1>{escape(found.title)}</h1><p class="key">{key}</p>{body}'
        f"<h2>Tracks</h2>{_summary(index)}</body></html>\n"
    )


def _summary(index: Any) -> str:
    return f"<pre>{escape(repr(index))}</pre>"


class _Panel:
    """A plot area with a time axis below and room for labels at its left."""

    def __init__(self, found: Series, height: int, highest: float = 1.0) -> None:
        self.found, self.height, self.highest = found, height, max(highest, 1e-12)
        self.parts: list[str] = []
        self.scale = (WIDTH - LEFT - RIGHT) / max(found.last - found.first, 1e-9)

    def x(self, seconds: Any) -> Any:
        return np.round(LEFT + (np.asarray(seconds) - self.found.first) * self.scale, 1)

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
        ticks = time_ticks(self.found.first, self.found.last, 11)
        step = ticks[1] - ticks[0] if len(ticks) > 1 else 1.0
        for tick in ticks:
            at = float(self.x(tick))
            self.parts.append(
                f'<path class="axis" d="M{at:g} {self.height}v5"/>'
                f'<text x="{at:g}" y="{self.height + 18}" text-anchor="middle">'
                f"{tick_label(tick, step)}</text>"
            )
        unit = "time (s)" if self.found.last < 60 else "time"
        self.label(self.height + 18, unit)
        self.parts.append(f'<path class="axis" d="M{LEFT} {self.height}H{WIDTH - RIGHT}"/>')
        return (
            f'<svg viewBox="0 0 {WIDTH} {self.height + 24}" role="img" fill="none">'
            f"<title>{title}</title>{''.join(self.parts)}</svg>"
        )


def _fragments(found: Series) -> str:
    panel = _Panel(found, 30 * len(found.lanes) + 4)
    for row, lane in enumerate(found.lanes):
        top = 30 * row + 4
        panel.label(
            top + 15, f"{lane.label} ({len(lane.starts):,} of ≈ {lane.mean_fragment:.3g} s)"
        )
        left, right = panel.x(lane.starts), panel.x(lane.stops)
        if len(left) <= MAX_MARKS:
            for number, (a, b) in enumerate(zip(left, right, strict=True)):
                told = (
                    f"fragment {number}: {clock(lane.starts[number])} – {clock(lane.stops[number])}"
                )
                panel.parts.append(
                    f'<rect x="{a:g}" y="{top}" width="{max(b - a, 0.5):g}" height="22" '
                    f'fill="{lane.colour}" fill-opacity="{0.75 if number % 2 else 0.4}">'
                    f"<title>{told}</title></rect>"
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


def _rate(found: Series) -> str:
    lanes = [lane for lane in found.lanes if len(lane.rates)]
    if not lanes:
        return "<p>unknown</p>"
    tops: list[Floats] = []
    for lane in lanes:
        tops.append(lane.rates + (tops[-1] if tops and found.stacked else 0))
    panel = _Panel(found, 150, float(max(top.max() for top in tops)))
    panel.scale_lines(_round_values(panel.highest), lambda v: bit_rate(v) if v else "0")
    for number in range(len(lanes) - 1, -1, -1):
        lane, top = lanes[number], tops[number]
        below = tops[number - 1] if number and found.stacked else np.zeros(len(top))
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


def _tell_rates(panel: _Panel, lanes: Sequence[Lane]) -> None:
    edges = lanes[0].edges
    if len(edges) > MAX_MARKS:
        return
    places = panel.x(edges)
    for number in range(len(edges) - 1):
        told = "; ".join(f"{lane.label} {bit_rate(lane.rates[number])}" for lane in lanes)
        panel.parts.append(
            f'<rect x="{places[number]:g}" y="0" width="{places[number + 1] - places[number]:g}" '
            f'height="{panel.height}" fill="transparent"><title>{clock(edges[number])}: '
            f"{escape(told)}</title></rect>"
        )


def _distance(found: Series) -> str:
    lanes = [lane for lane in found.lanes if len(lane.sync)]
    if not lanes:
        return "<p>Every sample is a key frame.</p>"
    panel = _Panel(found, 120, float(max(lane.key_frames[1].max() for lane in lanes)))
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


def _positions(found: Series) -> str:
    panel = _Panel(found, 220, float(found.last_position))
    unit = next((u for u in (1, 1 << 10, 1 << 20) if panel.highest < 2000 * u), 1 << 30)
    values = [value * unit for value in _round_values(panel.highest / unit)]
    panel.scale_lines(values, lambda v: byte_count(int(v)))
    dashes = ("", "7 4", "2 3", "9 3 2 3")
    for row, lane in enumerate(found.lanes):
        if not len(lane.positions):
            continue
        x, y = panel.x(thinned(lane.times, 1500)), panel.y(thinned(lane.positions, 1500))
        path = "M" + "L".join(f"{a:g} {b:g}" for a, b in zip(x, y, strict=True))
        panel.parts.append(
            f'<path d="{path}" stroke="{lane.colour}" stroke-width="2" '
            f'stroke-dasharray="{dashes[row % 4]}"><title>{escape(lane.label)}</title></path>'
        )
    return panel.svg("Position in the file over time")
