"""What the plots show, as numbers: fragments, bit rate, key-frame distance, interleaving."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fragdex.errors import InexactIndex
from fragdex.fragments.table import NULL
from fragdex.seeking.show import clock, fragment_spans, rate_steps, sync_times

__all__ = ["Lane", "Series", "series", "thinned"]

Floats = npt.NDArray[np.float64]

# Eight colours that every eye tells apart (Okabe and Ito), the darker ones first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
BINS = 300
MAX_SAMPLES = 5_000_000
"""Samples that are looked at one by one; beyond that, fragments stand for them."""


@dataclass(frozen=True, slots=True, eq=False)
class Lane:
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


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """One file: its lanes, what the rates are of, and the seconds it spans."""

    title: str
    lanes: tuple[Lane, ...]
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
        times, positions, sizes = _samples(track) if stacked else _fragments(track)
        edges, rates = _rates(times, sizes, first, last) if stacked else (np.zeros(0), np.zeros(0))
        if not stacked and number == 0:
            edges, rates = rate_steps(index.tracks)
        every = track.sample_count == int(track.sync.count.sum()) and track.kind != "video"
        label = f"{'' if not several else f'period {track.period}, '}track {track.id} {track.kind}"
        # Pictures are decoded before they are shown, the first ones before the span begins.
        times = np.maximum(times, first)
        lanes.append(
            Lane(
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
    """At most so many of many values, evenly chosen, the last one among them.

    >>> thinned(np.arange(10), 4).tolist()
    [0, 3, 6, 9]
    """
    if len(values) <= most:
        return values
    return values[np.linspace(0, len(values) - 1, most).astype(np.int64)]


def _samples(track: Any) -> tuple[Floats, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    table = track.samples
    shift = float(track.presentation(0))
    return table.dts / track.timescale + shift, table.offset, table.size


def _fragments(track: Any) -> tuple[Floats, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
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
