"""Fragments whose decode times (tfdt) are stale: their order, and when each begins."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from fragdex.box_header import read_header
from fragdex.byterange import ByteRange
from fragdex.fragments.table import NULL, FragmentTable, Int64, SampleTable
from fragdex.record import record
from fragdex.repairing.pattern import Pattern
from fragdex.sources import Source

AT_ONCE: Final = 1 << 12
"""Fragments whose samples are written out at once, to look at their last ones."""


@record(frozen=True, slots=True, eq=False)
class FragmentOrder:
    """The fragments of a track in the order of their times.

    Attributes:
        rows: numbers of rows of the fragment table, in decode order.
        later: int64 of each row of the table: ticks by which its samples are later than it says.
        moved: how many rows do not stand in that order.
    """

    rows: Int64
    later: Int64
    moved: int

    @property
    def stale(self) -> int:
        """Fragments whose decode time is not the one that the file gives."""
        return int(np.count_nonzero(self.later))

    def timed(self, samples: SampleTable, counts: Int64, low: int, high: int) -> SampleTable:
        """Samples of rows `low` (inclusive) to `high` (exclusive) with the right times."""
        later = np.repeat(self.later[low:high], counts[low:high])
        columns = {"dts": samples.dts + later, "cts": samples.cts + later}
        return SampleTable.of(samples.columns() | columns)


class _Times(NamedTuple):
    """When each fragment of a track is decoded, as the file says: int64 ticks of each row.

    Attributes:
        first: decode time of its first sample.
        last: decode time of its last sample.
        end: where that ends.
    """

    first: Int64
    last: Int64
    end: Int64

    def follow(self, rows: Int64) -> bool:
        """Whether none begins before the last sample of the one before it, in this order."""
        first, last, end = self.first[rows[1:]], self.last[rows[:-1]], self.end[rows[:-1]]
        return bool(((first > last) | (first >= end)).all())


def orders_of(patterns: Sequence[Pattern], source: Source) -> list[FragmentOrder | None]:
    """The order and times of the fragments of each track; None: they are as they stand.

    Two parts of a file that were joined in the wrong order have decode times that fall back once,
    but fit without overlaps in their own order, and `sequence_number` (ISO/IEC 14496-12, 8.8.5)
    does not fall in it. All others that fall back are stale: such a fragment begins where the one
    before it ends, and those after it keep their distance.

    Raises:
        SourceError: the headers of fragments could not be read.
    """
    times = {n: one for n, each in enumerate(patterns) if (one := _times_of(each)) is not None}
    orders = {n: np.lexsort((one.end, one.first)) for n, one in times.items()}
    is_joined = all(times[n].follow(order) for n, order in orders.items()) and all(
        _rises(source, patterns[n].track.fragments, order) for n, order in orders.items()
    )
    settled: list[FragmentOrder | None] = [None] * len(patterns)
    for n, order in orders.items():
        numbers = np.arange(len(order))
        rows = order if is_joined else numbers
        moved = int(np.count_nonzero(rows != numbers))
        settled[n] = FragmentOrder(rows, _later(times[n], rows), moved)
    return settled


def _times_of(pattern: Pattern) -> _Times | None:
    """The times of a track's fragments where they fall back; None: they do not."""
    table = pattern.track.fragments
    columns = (table.dts, table.duration, table.sample_count)
    if len(table) < 2 or any((column == NULL).any() for column in columns):
        return None
    end = table.dts + table.duration
    if (table.moof_offset == NULL).all() or (table.dts[1:] >= end[:-1]).all():
        return None
    last = table.dts.copy()
    for low in range(0, len(table), AT_ONCE):
        high = min(low + AT_ONCE, len(table))
        samples = pattern.track.samples_of(low, high)
        counts = table.sample_count[low:high]
        held = np.flatnonzero(counts) + low
        last[held] = samples.dts[(np.cumsum(counts) - 1)[held - low]]
    times = _Times(table.dts, last, end)
    return None if times.follow(np.arange(len(table))) else times


def _later(times: _Times, rows: Int64) -> Int64:
    """By how many ticks each fragment is later than it says, in this order."""
    later = np.zeros(len(rows), np.int64)
    shift = 0
    for row, other in pairwise(rows.tolist()):
        last, end = int(times.last[row]) + shift, int(times.end[row]) + shift
        first = int(times.first[other])
        # what it says, or that with the shift of those before it: the nearer one
        gaps = {step: first + step - end for step in (0, shift)}
        fitting = [step for step, gap in gaps.items() if gap >= 0 or first + step > last]
        shift = min(fitting, key=lambda step: abs(gaps[step]), default=end - first)
        later[other] = shift
    return later


def _rises(source: Source, table: FragmentTable, order: Int64) -> bool:
    """Whether the sequence numbers of fragments do not fall in this order."""
    moofs = table.moof_offset[order]
    numbers = [_sequence_number(source, at) for at in moofs[moofs != NULL].tolist()]
    return all(one <= other for one, other in pairwise(numbers))


def _sequence_number(source: Source, moof: int) -> int:
    """The `sequence_number` of the mfhd that a moof begins with; 0: there is none."""
    data = source.read_up_to(ByteRange.of(moof, 48))
    head = read_header(data)
    inner = None if head is None else read_header(data[head.length :])
    if head is None or inner is None or inner.type != b"mfhd":
        return 0
    at = head.length + inner.length + 4
    return int.from_bytes(data[at : at + 4], "big")
