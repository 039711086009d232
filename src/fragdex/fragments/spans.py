"""Sums and times inside many runs of samples at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fragdex.fragments.table import Int64

__all__ = ["Spans", "sums"]


class Spans:
    """The samples of several runs, one run behind the other; none is empty.

    Args:
        count: samples of each run.
        durations: big-endian durations of all samples, or None where the default holds.
        default: default duration of each run.
        offsets: big-endian composition offsets, or None.
        version: of the truns; 0 has unsigned offsets by the standard, which producers ignore.

    Where every run has the same number of samples, tables are seen as one row a run.
    """

    def __init__(
        self,
        count: Int64,
        durations: npt.NDArray[Any] | None,
        default: Int64,
        offsets: npt.NDArray[Any] | None,
        version: int,
    ) -> None:
        self.count, self.default = count, default
        self.starts = np.cumsum(count)
        self.starts -= count
        self.each = int(count[0]) if (count == count[0]).all() else 0
        self.even = offsets is None and durations is None
        self.durations = durations.astype(np.int64) if durations is not None else None
        self.offsets: Int64 | None = None
        self.wide = 0
        self._dts: Int64 | None = None
        if offsets is not None:
            signed = offsets.astype(np.uint32).view(np.int32)
            if version == 0:
                self.wide = int((signed < 0).sum())
            self.offsets = signed.astype(np.int64)

    def total(self) -> Int64:
        """Sum of the durations of each run."""
        if self.durations is None:
            return self.default * self.count
        return sums(self.durations, self)

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
        if self.offsets is None:
            return np.zeros(len(total), np.int64), total
        cts = self._decode_times() + self.offsets
        least = _picked(np.minimum, cts, self)
        if self.durations is not None:
            cts += self.durations
            return least, _picked(np.maximum, cts, self)
        return least, _picked(np.maximum, cts, self) + self.default

    def run_of(self, where: Int64) -> Int64:
        """Number of the run that holds each of these samples."""
        if self.each:
            return where // self.each
        return np.searchsorted(self.starts, where, side="right") - 1

    def times(self, where: Int64, index: Int64, run: Int64) -> tuple[Int64, Int64]:
        """Decode and composition times of samples, from their run's start.

        Args:
            where: their numbers among the samples of all runs.
            index: their numbers in their runs.
            run: numbers of their runs.
        """
        if self.durations is None:
            dts = index * self.default[run]
        else:
            dts = self._decode_times()[where]
        return dts, dts if self.offsets is None else dts + self.offsets[where]


def _picked(pick: np.ufunc, values: Int64, spans: Spans) -> Int64:
    if spans.each:
        picked: Int64 = pick.reduce(values.reshape(-1, spans.each), axis=1)
        return picked
    return pick.reduceat(values, spans.starts)


def sums(column: npt.NDArray[Any], spans: Spans) -> Int64:
    """Sum of each run's samples. A run never reaches 2^31 rows of u4: int64 cannot overflow."""
    native = column if column.dtype == np.int64 else column.astype(np.uint32)
    if spans.each:
        total: Int64 = native.reshape(-1, spans.each).sum(axis=1, dtype=np.int64)
        return total
    return np.add.reduceat(native, spans.starts, dtype=np.int64)
