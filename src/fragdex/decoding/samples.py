"""The samples of a span of media time, also where the index holds fragments only."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fragdex.fragments.table import NULL, FragmentFlags, Int64, SampleTable
from fragdex.indexing import index as index_of
from fragdex.indexing.samples import RowSamples
from fragdex.seeking.model import FragmentIndex, TrackIndex
from fragdex.sources import Source

__all__ = ["MOST_REORDERED", "TrackSamples", "decodable", "reorder_depth"]

MOST_ROWS = 4096
"""Fragments whose samples are asked for at once; a hostile file may put all at one time."""
FAR = 1 << 62
"""No time lies beyond."""
MOST_REORDERED = 16
"""Pictures that a decoder holds back at most (ISO/IEC 14496-10, A.3.1: MaxDpbFrames)."""


def reorder_depth(cts: Int64) -> int:
    """How many pictures a decoder has to hold back to give all of them in the order of their times.

    Args:
        cts: composition times of neighbouring samples, in decode order.

    The largest number of samples that are decoded before another and shown behind it; 16 at most.

    >>> reorder_depth(np.array([0, 4, 2, 1, 3, 5]))
    2
    """
    rank = np.empty(len(cts), np.int64)
    rank[np.argsort(cts, kind="stable")] = np.arange(len(cts))
    # A sample of which no later one is shown earlier has all that is shown before it before it:
    # what else was decoded before it waits. Of other samples more are in front, and fewer wait.
    return min(int((np.arange(len(cts)) - rank).max(initial=0)), MOST_REORDERED)


def decodable(
    index: FragmentIndex, track: TrackIndex, source: Source, init: bytes | None
) -> tuple[FragmentIndex, TrackIndex]:
    """Index and track where they tell when samples are decoded, else those of the source's boxes.

    A sidx or mfra tells when fragments are shown, and may tell it of one track only.

    Raises: what indexing the source raises.
    """
    table = track.fragments
    if (table.dts != NULL).all() and not (table.flags & FragmentFlags.TIMES_GUESSED).any():
        return index, track
    index = index_of(source, exact=True, init=init)
    return index, index.periods[track.period].track(track.id)


class TrackSamples(RowSamples):
    """Finds samples by decode time.

    Args:
        index: of the file.
        track: one of it.
        source: the file; read where the index holds no samples: moofs of the wanted fragments, or
            the moov, once.

    >>> import fragdex
    >>> from fragdex.sources import open_source
    >>> from fragdex.testing import movie
    >>> source = open_source(movie(fragments=3, samples=5, fps=25))
    >>> index = fragdex.index(source)
    >>> found = TrackSamples(index, index.track(1), source)
    >>> [len(table) for table in found.between(0, index.track(1).timescale // 5)]
    [5]
    """

    def __init__(self, index: FragmentIndex, track: TrackIndex, source: Source) -> None:
        period = index.periods[track.period]
        infos = [one.info for one in period.tracks]
        defaults = {info.id: info.defaults for info in infos if info.defaults is not None}
        super().__init__(track, source, period.init, defaults)

    def between(self, low: int, high: int) -> Iterator[SampleTable]:
        """Samples decoded from `low` (inclusive) to `high` (exclusive), in ticks of dts.

        One table for each stretch of neighbouring fragments, in file order; each sample is shown
        for at least a tick. A sample belongs here if any part of its duration does.

        Raises:
            InexactIndex: neither the index nor the file tells the samples.
            TruncatedInput: the file ends within a moof that is needed.
        """
        low, high = max(low, -FAR), min(high, FAR)
        table = self._track.fragments
        known = (table.dts != NULL) & (table.sample_count != 0)
        ends = table.dts + np.maximum(table.duration, 1)
        rows = np.flatnonzero(known & (table.dts < high) & (ends > low))[:MOST_ROWS]
        if not len(rows):
            return
        breaks = np.flatnonzero(np.diff(rows) != 1) + 1
        firsts = rows[np.append(0, breaks)].tolist()
        lasts = rows[np.append(breaks - 1, len(rows) - 1)].tolist()
        for first, last in zip(firsts, lasts, strict=True):
            samples = self.rows(first, last + 1)
            wanted = (samples.dts < high) & (samples.dts + np.maximum(samples.duration, 1) > low)
            places = np.flatnonzero(wanted)
            if len(places):
                yield samples.rows(slice(int(places[0]), int(places[-1]) + 1))
