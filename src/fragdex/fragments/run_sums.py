"""Sums and times inside many runs of samples at once; in Python, where no compiled hop is."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fragdex.fragments.headers import Int64, RowColumns, Sums
from fragdex.fragments.hop_plain import join_plain

__all__ = ["sums_plain"]

MAX_STRIDE = 1 << 16
"""Bytes of a row; a trun's have 16 at most."""

_Flags = npt.NDArray[np.uint8]


class _Spans:
    """The samples of several runs, one run behind the other; none is empty.

    Args:
        count: samples of each run.
        durations: big-endian durations of all samples, or None where the default holds.
        default: default duration of each run.
        offsets: big-endian composition offsets, or None.
        is_signed: whether durations may be below 0; the default ones are as they are meant.

    Where every run has the same number of samples, tables are seen as one row a run.
    """

    def __init__(
        self,
        count: Int64,
        durations: npt.NDArray[Any] | None,
        default: Int64,
        offsets: npt.NDArray[Any] | None,
        *,
        is_signed: bool,
    ) -> None:
        self.count, self.default = count, default
        self.starts = np.cumsum(count)
        self.starts -= count
        self.each = int(count[0]) if (count == count[0]).all() else 0
        self.durations: Int64 | None = None
        self.backward = int(count[default < 0].sum()) if durations is None and is_signed else 0
        if durations is not None:
            native = durations.astype(np.uint32)
            self.durations = (native.view(np.int32) if is_signed else native).astype(np.int64)
            self.backward = int((self.durations < 0).sum()) if is_signed else 0
        self.offsets: Int64 | None = None
        self.negative = np.zeros(len(count), np.int64)
        self._dts: Int64 | None = None
        if offsets is not None:
            signed = offsets.astype(np.uint32).view(np.int32)
            self.offsets = signed.astype(np.int64)
            below = signed < 0
            if below.any():
                self.negative = self._added(below)

    def total(self) -> Int64:
        """Sum of the durations of each run."""
        if self.durations is None:
            return self.default * self.count
        return self._added(self.durations)

    def added(self, column: npt.NDArray[Any]) -> Int64:
        """Sum of each run's samples of a big-endian column."""
        return self._added(column.astype(np.uint32))

    def _added(self, native: npt.NDArray[Any]) -> Int64:
        """A run never reaches 2^31 rows of u4: int64 cannot overflow."""
        if self.each:
            total: Int64 = native.reshape(-1, self.each).sum(axis=1, dtype=np.int64)
            return total
        return np.add.reduceat(native, self.starts, dtype=np.int64)

    def _decode_times(self) -> Int64:
        """Decode time of each sample, from its run's start."""
        if self._dts is None:
            if self.durations is not None:
                running = np.cumsum(self.durations)
                running -= self.durations
                running -= np.repeat(running[self.starts], self.count)
            elif self.each:
                running = np.multiply.outer(self.default, np.arange(self.each)).ravel()
            else:
                running = np.arange(int(self.count.sum()))
                running -= np.repeat(self.starts, self.count)
                running *= np.repeat(self.default, self.count)
            self._dts = running
        return self._dts

    def edges(self, total: Int64) -> tuple[Int64, Int64]:
        """Least composition time, and greatest composition time plus duration, of each run."""
        if self.offsets is None and not self.backward:
            return np.zeros(len(total), np.int64), total
        if self.offsets is None and self.durations is None:
            # Evenly, forwards or backwards, without a byte of the file for each sample.
            before = np.minimum((self.count - 1) * self.default, 0)
            return before, np.where(self.default < 0, 0, total)
        cts = self._decode_times()
        cts = cts + self.offsets if self.offsets is not None else cts.copy()
        least = self._picked(np.minimum, cts)
        if self.durations is not None:
            cts += np.maximum(self.durations, 0) if self.backward else self.durations
            return least, self._picked(np.maximum, cts)
        return least, self._picked(np.maximum, cts) + np.maximum(self.default, 0)

    def _picked(self, pick: np.ufunc, values: Int64) -> Int64:
        if self.each:
            picked: Int64 = pick.reduce(values.reshape(-1, self.each), axis=1)
            return picked
        return pick.reduceat(values, self.starts)

    def points(self, flags: npt.NDArray[Any] | None, mask: int, first: _Flags, rest: _Flags) -> Any:
        """The sync samples: rows of run, index, decode and composition time."""
        if not first.any() and not rest.any():
            return np.zeros((4, 0), np.int64)
        if not rest.any() and (flags is None or not (first == 2).any()):
            run = np.flatnonzero(first == 1)
            return self._described(self.starts[run], np.zeros_like(run), run)
        said = np.repeat(rest, self.count)
        said[self.starts] = first
        is_sync = said == 1
        if flags is not None:
            is_sync |= (said == 2) & ((flags.astype(np.uint32) & mask) == 0)
        where = np.flatnonzero(is_sync)
        if self.each:
            run = where // self.each
        else:
            run = np.searchsorted(self.starts, where, side="right") - 1
        return self._described(where, where - self.starts[run], run)

    def _described(self, where: Int64, index: Int64, run: Int64) -> Int64:
        """Samples of these numbers among the samples of all runs, and in their runs."""
        if self.durations is None:
            dts = index * self.default[run]
        else:
            dts = self._decode_times()[where]
        cts = dts if self.offsets is None else dts + self.offsets[where]
        return np.stack([run, index, dts, cts])


def sums_plain(
    buffer: memoryview | bytes,
    at: Int64,
    count: Int64,
    columns: RowColumns,
    durations: Int64,
    first: _Flags,
    rest: _Flags,
    *,
    is_signed: bool = False,
) -> Sums:
    """`hop.sums` in Python.

    Args:
        is_signed: durations of 2^31 and more are below 0; a sample ends no earlier than it begins.

    >>> rows, one = RowColumns(4, size=0), np.array([1], np.uint8)
    >>> sums_plain(bytes(3) + b"z", np.array([0]), np.array([1]), rows, np.array([9]), one, one)[0]
    array([122])
    """
    _refuse(len(buffer), at, count, columns, durations, first, rest)
    if not len(at):
        nothing = np.zeros(0, np.int64)
        return Sums(nothing, nothing, nothing, nothing, nothing, np.zeros((4, 0), np.int64))
    table = np.frombuffer(join_plain(buffer, at, count * columns.stride), np.uint8)

    def column(place: int) -> npt.NDArray[Any] | None:
        if place < 0:
            return None
        rows = len(table) // columns.stride
        return np.ndarray(rows, ">u4", table, place, (columns.stride,))

    spans = _Spans(
        count,
        column(columns.duration),
        durations,
        column(columns.offset),
        is_signed=is_signed,
    )
    sizes = column(columns.size)
    total = spans.total()
    cts_min, cts_end = spans.edges(total)
    return Sums(
        np.zeros(len(at), np.int64) if sizes is None else spans.added(sizes),
        total,
        cts_min,
        cts_end,
        spans.negative,
        spans.points(column(columns.flags), columns.non_sync, first, rest),
    )


def _refuse(
    held: int,
    at: Int64,
    count: Int64,
    columns: RowColumns,
    durations: Int64,
    first: _Flags,
    rest: _Flags,
) -> None:
    stride, *places, _ = columns
    if any(len(column) != len(at) for column in (count, durations, first, rest)):
        raise ValueError("sums: arguments differ in length")
    if not 0 <= stride <= MAX_STRIDE or any(p != -1 and not 0 <= p <= stride - 4 for p in places):
        raise ValueError("sums: an impossible row")
    if len(at) and (count.min() < 1 or at.min() < 0 or at.max() > held):
        raise ValueError("sums: a run lies outside the buffer")
    if stride and (count > (held - at) // stride).any():
        raise ValueError("sums: a run lies outside the buffer")
    if not stride and (first.any() or rest.any()):
        raise ValueError("sums: samples without rows are not told apart")
