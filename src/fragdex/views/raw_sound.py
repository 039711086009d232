"""Sound that is not coded, in groups of samples: an hour of it has 170 million.

A sample of such sound is a few bytes, and all are alike. A group stands for neighbours that lie one
behind the other, so that tables have a row for a fiftieth of a second and not for each sample.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fragdex.fragments.table import NULL, FragmentFlags, Int64, SampleTable
from fragdex.seeking.model import TrackIndex

__all__ = ["GROUPED_FROM", "grouped"]

GROUPED_FROM: Final = 1 << 20
"""Samples of a track from which on they are grouped: 22 s at 48 kHz."""
_EACH: Final = 1024
"""Samples of a group at most, as many as of a packet of coded sound."""
_MOST_AT_ONCE: Final = 1 << 20
"""Samples that are written out at once."""


def grouped(track: TrackIndex) -> tuple[SampleTable, int] | None:
    """Groups of a track's samples, and bytes of each sample; None where samples are not alike.

    Each row has the place, size and duration of its samples together, and the times of its first.
    Groups end where the next sample lies elsewhere.

    Raises:
        InexactIndex: the index does not know the track's samples.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> grouped(fragdex.index(movie()).track(1)) is None
    True
    """
    table = track.fragments
    count = track.sample_count
    alike = track.kind == "audio" and track.info.encryption is None
    if not alike or count is None or count < GROUPED_FROM:
        return None
    virtual = (table.flags & FragmentFlags.VIRTUAL) != 0
    if not virtual.all() or int(table.sample_count.max()) > _MOST_AT_ONCE:
        return None
    first = track.samples_of(0, 1).rows(slice(0, 1))
    unit, ticks = int(first.size[0]), int(first.duration[0])
    if not unit or not ticks:
        return None
    starts = table.sample_start
    uneven = (table.duration != table.sample_count * ticks) | (table.cts_min != table.dts)
    if uneven.any() or (table.cts_min == NULL).any():
        return None
    places: list[Int64] = []
    counts: list[Int64] = []
    for low, high in _batches(table.sample_count):
        samples = track.samples_of(low, high)
        if not (
            (samples.size == unit).all()
            and (samples.duration == ticks).all()
            and (samples.cts == samples.dts).all()
            and samples.sync.all()
        ):
            return None
        heads = np.append(0, np.flatnonzero(np.diff(samples.offset) != unit) + 1)
        lengths = np.diff(heads, append=len(samples))
        parts = -(-lengths // _EACH)
        before = np.repeat(np.cumsum(parts) - parts, parts)
        number = (np.arange(int(parts.sum())) - before) * _EACH
        places.append(np.repeat(samples.offset[heads], parts) + number * unit)
        counts.append(np.minimum(np.repeat(lengths, parts) - number, _EACH))
    offset, each = np.concatenate(places), np.concatenate(counts)
    dts = int(first.dts[0]) + (np.cumsum(each) - each) * ticks
    assert int(each.sum()) == count == int(starts[-1] + table.sample_count[-1])
    sync = np.ones(len(each), np.bool_)
    return SampleTable(offset, each * unit, dts, dts, each * ticks, sync), unit


def _batches(counts: Int64) -> list[tuple[int, int]]:
    """Rows of fragments, as many together as may be written out at once."""
    found = []
    low = held = 0
    for row, count in enumerate(counts.tolist()):
        if held and held + count > _MOST_AT_ONCE:
            found.append((low, row))
            low, held = row, 0
        held += count
    return [*found, (low, len(counts))]
