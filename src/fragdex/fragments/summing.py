"""Runs of samples of one kind, thousands at a time: what they add up to, and their sync samples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fragdex.boxes.fragments import (
    SAMPLE_COMPOSITION_TIME_OFFSET,
    SAMPLE_DURATION,
    SAMPLE_FLAGS,
    SAMPLE_SIZE,
)
from fragdex.fragments.headers import RowColumns
from fragdex.fragments.hop import sums
from fragdex.fragments.run_sums import sums_plain
from fragdex.fragments.table import Int64

__all__ = ["LONGEST", "NON_SYNC", "RunKind", "Summed", "signed", "summed"]

NON_SYNC = 0x00010000
"""sample_is_non_sync_sample (ISO/IEC 14496-12, 8.8.3.1)."""

LONGEST = 2**31
"""Durations from here on are corrections backwards: what they say is meant as a signed number."""

Flags = npt.NDArray[np.uint8]


def signed(durations: Int64) -> Int64:
    """Durations as they are meant: those of 2^31 and more are below 0.

    >>> signed(np.array([1, 2**31, 2**32 - 1])).tolist()
    [1, -2147483648, -1]
    """
    if not len(durations) or durations.max() < LONGEST:
        return durations
    return np.where(durations >= LONGEST, durations - 2**32, durations)


class RunKind(NamedTuple):
    """What decides how the rows of a trun's samples look: its version and flags."""

    version: int
    flags: int

    @property
    def stride(self) -> int:
        """Bytes of a row."""
        return 4 * (self.flags & 0xF00).bit_count()

    @property
    def columns(self) -> RowColumns:
        """Where the columns of a row stand."""
        return RowColumns(
            self.stride,
            self._place(SAMPLE_DURATION),
            self._place(SAMPLE_SIZE),
            self._place(SAMPLE_FLAGS),
            self._place(SAMPLE_COMPOSITION_TIME_OFFSET),
            NON_SYNC,
        )

    def _place(self, mask: int) -> int:
        # Columns stand in the order of their flag bits.
        return 4 * (self.flags & 0xF00 & (mask - 1)).bit_count() if self.flags & mask else -1


class Summed(NamedTuple):
    """Runs of one kind, summed up.

    Attributes:
        size, duration, cts_min, cts_end: as in `Runs`.
        points: the columns of `SyncPoints`.
        wide: unsigned composition offsets of 2^31 or more, read as signed.
        backward: durations of 2^31 or more, read as signed.
    """

    size: Int64
    duration: Int64
    cts_min: Int64
    cts_end: Int64
    points: tuple[Int64, ...]
    wide: int
    backward: int


def summed(
    buffer: memoryview,
    kind: RunKind,
    at: Int64,
    count: Int64,
    defaults: tuple[Int64, Int64, Int64],
    first_flags: Int64 | None,
) -> Summed:
    """Sum up runs of one kind.

    Args:
        buffer: holds them.
        kind: of all of them.
        at: where the rows of samples of each start.
        count: samples of each, 1 at least.
        defaults: of each run the duration (`signed`), size and flags of samples that have none of
            their own.
        first_flags: of each run the flags of its first sample, or None.
    """
    duration, size, flags = defaults
    n, told = len(at), bool(kind.flags & SAMPLE_FLAGS)
    rest = np.full(n, 2, np.uint8) if told else ((flags & NON_SYNC) == 0).view(np.uint8)
    # first_sample_flags stand for the first sample's (8.8.8.1).
    first = rest if first_flags is None else ((first_flags & NON_SYNC) == 0).view(np.uint8)
    even = not kind.flags & (SAMPLE_DURATION | SAMPLE_COMPOSITION_TIME_OFFSET)
    asked = (first, rest) if told or not even else (np.zeros(n, np.uint8),) * 2
    found = sums(buffer, at, count, kind.columns, duration, *asked)
    backward = 0
    # Durations of 2^31 and more are rare, and a run without one is seldom so long.
    if found.duration.max() >= LONGEST or duration.min() < 0:
        backward = int(count[duration < 0].sum())
        unsigned = found.duration
        found = sums_plain(buffer, at, count, kind.columns, duration, *asked, is_signed=True)
        if kind.flags & SAMPLE_DURATION:
            backward = int((unsigned - found.duration).sum()) >> 32
    run, index, dts, cts = found.points
    points: tuple[Int64, ...] = (run, index, dts, cts, np.zeros_like(run), np.ones_like(run))
    if even and not told:
        points = _even(duration, count, first, rest)
    elif even and len(run) == count.sum():
        every = np.ones(n, np.uint8)
        points = _even(duration, count, every, every)
    return Summed(
        found.size if kind.flags & SAMPLE_SIZE else size * count,
        found.duration,
        found.cts_min,
        found.cts_end,
        points,
        0 if kind.version else int(found.negative.sum()),
        backward,
    )


def _even(duration: Int64, count: Int64, first: Flags, rest: Flags) -> tuple[Int64, ...]:
    """Evenly spaced samples: a run is one row, less its first sample where that is none."""
    rows = np.arange(len(count))
    if first.all() and rest.all():
        zero = np.zeros(len(rows), np.int64)
        return rows, zero, zero, zero, np.where(count > 1, duration, 0), count
    start = np.where(first, 0, 1)
    length = np.where(rest, count - start, np.where(first, 1, 0))
    some = length > 0
    dts = start * duration
    step = np.where(length > 1, duration, 0)
    return tuple(c[some] for c in (rows, start, dts, dts, step, length))
