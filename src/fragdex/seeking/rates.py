"""Pictures and bits a second of a track, counted from its samples."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Protocol

import numpy as np

from fragdex.errors import InexactIndex, LimitExceeded
from fragdex.fragments.table import NULL, FragmentTable, SampleTable
from fragdex.fragments.track_info import TrackInfo

__all__ = ["Rates", "rates_of"]

AT_ONCE = 1 << 18
"""Samples that are written out together."""
MOST = 1 << 24
"""Samples up to which bits are counted: four days of sound."""


@dataclass(frozen=True, slots=True)
class Rates:
    """What a track has a second.

    Attributes:
        frame_rate: pictures a second on average, exact; None for other tracks.
        bit_rate: bits a second on average; None where the index does not know the samples' sizes.
        peak_bit_rate: most bits in any second of decode time that begins with a sample.

    >>> Rates(Fraction(30000, 1001)).bit_rate is None
    True
    """

    frame_rate: Fraction | None = None
    bit_rate: float | None = None
    peak_bit_rate: float | None = None


class _Track(Protocol):
    """What is asked of a track here; `TrackIndex` is one."""

    @property
    def info(self) -> TrackInfo: ...
    @property
    def fragments(self) -> FragmentTable: ...
    def samples_of(self, start: int, stop: int) -> SampleTable: ...


def rates_of(track: _Track, most: int = MOST) -> Rates:
    """The rates of a track; what the index cannot tell is None.

    Args:
        track: of an index.
        most: samples up to which bits are counted; of more, bit rates are None.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> rates_of(fragdex.index(movie(fragments=2, fps=25)).track(1)).frame_rate
    Fraction(25, 1)
    """
    scale, table = track.info.timescale, track.fragments
    counts = table.sample_count
    if not scale or not len(table) or (counts == NULL).any() or (table.duration == NULL).any():
        return Rates()
    total, ticks = int(counts.sum()), sum(table.duration.tolist())
    if total < 1 or ticks < 1:
        return Rates()
    frames = Fraction(total * scale, ticks) if track.info.kind == "video" else None
    if total > most:
        return Rates(frames)
    try:
        sizes, times = _columns(track, counts)
    except (InexactIndex, LimitExceeded):
        return Rates(frames)
    average = int(sizes.sum()) * 8 * scale / ticks
    if (times[1:] < times[:-1]).any():
        order = np.argsort(times, kind="stable")
        sizes, times = sizes[order], times[order]
    before = np.concatenate([[0], np.cumsum(sizes)])
    ends = np.searchsorted(times, times + scale, side="left")
    peak = float((before[ends] - before[:-1]).max()) * 8
    # Less than a second of media has no fuller second than itself.
    return Rates(frames, average, max(peak, average) if ticks >= scale else average)


def _columns(track: _Track, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sizes and decode times of all samples, written out a part at a time."""
    turns = np.cumsum(counts) // AT_ONCE
    edges = [0, *(np.flatnonzero(np.diff(turns)) + 1).tolist(), len(counts)]
    parts = []
    for start, stop in pairwise(edges):
        samples = track.samples_of(start, stop)
        parts.append((samples.size.astype(np.int64), samples.dts.copy()))
    sizes, times = (np.concatenate(column) for column in zip(*parts, strict=True))
    return sizes, times
