"""Wanted samples to runs of neighbouring samples, each decoded from a sync sample on."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass

import numpy as np

from fragdex.fragments.table import Int64, SampleTable

MOST_REORDERED = 16
"""Pictures that a decoder holds back at most (ISO/IEC 14496-10, A.3.1: MaxDpbFrames)."""


@dataclass(frozen=True, slots=True)
class FrameRun:
    """Neighbouring samples, decoded from a fresh decoder.

    Attributes:
        start, stop: in decode order; stop is exclusive.
        wanted: those whose pictures are wanted, rising.

    >>> FrameRun(0, 3, (1, 2)).stop
    3
    """

    start: int
    stop: int
    wanted: tuple[int, ...]


class SyncStarts:
    """Where decoding has to begin for a sample.

    Args:
        samples: all samples, in decode order.

    >>> SyncStarts(SampleTable.empty()).of(0)
    0
    """

    def __init__(self, samples: SampleTable) -> None:
        self._cts = samples.cts
        self._sync: Int64 = np.flatnonzero(samples.sync).astype(np.int64)
        self._is_open: bool | None = None

    def of(self, sample: int) -> int:
        """The sync sample that a sample is decoded from; without one, the first sample.

        What is shown before the sync sample that it follows (a leading picture of an open group)
        may refer to the group before (ISO/IEC 14496-12, Annex I: SAP type 3).
        """
        place = int(np.searchsorted(self._sync, sample, side="right")) - 1
        while place > 0 and self._cts[sample] < self._cts[self._sync[place]]:
            place -= 1
        if place < 0 or self._cts[sample] < self._cts[self._sync[place]]:
            return 0
        return int(self._sync[place])

    def has_leading_pictures(self) -> bool:
        """Whether any sample after a sync sample is shown before it: groups are open."""
        if self._is_open is None:
            place = np.searchsorted(self._sync, np.arange(len(self._cts)), side="right") - 1
            known = place >= 0
            early = self._cts[known] < self._cts[self._sync[place[known]]]
            self._is_open = bool(early.any())
        return self._is_open

    def before(self, start: int, steps: int) -> int:
        """The sync sample so many before one; without it, the first sample."""
        place = int(np.searchsorted(self._sync, start, side="left")) - steps
        return int(self._sync[place]) if place >= 0 else 0

    def end(self, start: int, count: int) -> int:
        """After the last sample of the group that begins at a sync sample."""
        place = int(np.searchsorted(self._sync, start, side="right"))
        return int(self._sync[place]) if place < len(self._sync) else count

    def drop(self, first: int, stop: int | None = None) -> None:
        """Samples that are wrongly marked sync: one, or those up to `stop` (exclusive)."""
        stop = first + 1 if stop is None else stop
        self._sync = self._sync[(self._sync < first) | (self._sync >= stop)]
        self._is_open = None

    def copy(self) -> SyncStarts:
        """The same, to drop samples of."""
        return copy(self)


def runs_of(samples: Iterable[int], starts: SyncStarts) -> list[FrameRun]:
    """The runs that bring all these samples, each decoded once, by rising start."""
    by_start: dict[int, list[int]] = {}
    for sample in sorted(set(samples)):
        by_start.setdefault(starts.of(sample), []).append(sample)
    runs: list[FrameRun] = []
    for start, wanted in sorted(by_start.items()):
        if runs and start < runs[-1].stop:
            # The run before goes over this sync sample anyhow.
            both = tuple(sorted({*runs[-1].wanted, *wanted}))
            runs[-1] = FrameRun(runs[-1].start, max(runs[-1].stop, wanted[-1] + 1), both)
        else:
            runs.append(FrameRun(start, wanted[-1] + 1, tuple(wanted)))
    return runs


def reorder_depth(cts: Int64) -> int:
    """How many pictures a decoder has to hold back to give all of them in the order of their times.

    Args:
        cts: composition times of neighbouring samples, in decode order.

    The largest number of samples that are decoded before another and shown after it; 16 at most.

    >>> reorder_depth(np.array([0, 4, 2, 1, 3, 5]))
    2
    """
    rank = np.empty(len(cts), np.int64)
    rank[np.argsort(cts, kind="stable")] = np.arange(len(cts))
    # A sample of which no later one is shown earlier has all that is shown before it before it:
    # what else was decoded before it waits. Of other samples more are in front, and fewer wait.
    return min(int((np.arange(len(cts)) - rank).max(initial=0)), MOST_REORDERED)
