"""Wanted samples to runs of samples that are decoded, and the reads that bring their bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fragdex.byterange import ByteRange, coalesce, plan_reads
from fragdex.fragments.table import Int64, SampleTable

__all__ = ["FramePlan", "Run", "SyncStarts", "are_apart", "reads_of", "runs_of"]

REMOTE_GAP: Final = 32 << 10
"""Bytes between samples of a remote file that are rather read for nothing than asked for twice."""
LOCAL_GAP: Final = 4 << 10
LONGEST_READ: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring samples, decoded from a fresh decoder.

    Attributes:
        start, stop: in decode order; stop is exclusive.
        wanted: those whose pictures are wanted, rising.

    >>> Run(0, 3, (1, 2)).stop
    3
    """

    start: int
    stop: int
    wanted: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FramePlan:
    """What answering costs, before anything is read.

    Attributes:
        frames: wanted frames, each counted once.
        decoded: samples that are decoded for them at most; those that no other picture refers to
            are passed over.
        reads: of the file, in order.
        runs: how many times decoding begins at a sync sample.

    >>> FramePlan(2, 30, (ByteRange(0, 100), ByteRange(200, 300)), 1).bytes
    200
    """

    frames: int
    decoded: int
    reads: tuple[ByteRange, ...]
    runs: int

    @property
    def bytes(self) -> int:
        """Bytes of all reads."""
        return sum(read.size for read in self.reads)


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

    def before(self, start: int, steps: int) -> int:
        """The sync sample so many before one; without it, the first sample."""
        place = int(np.searchsorted(self._sync, start, side="left")) - steps
        return int(self._sync[place]) if place >= 0 else 0

    def end(self, start: int, count: int) -> int:
        """Behind the last sample of the group that begins at a sync sample."""
        place = int(np.searchsorted(self._sync, start, side="right"))
        return int(self._sync[place]) if place < len(self._sync) else count

    def drop(self, sample: int) -> None:
        """A sample that is marked sync and is none."""
        self._sync = self._sync[self._sync != sample]


def runs_of(samples: Iterable[int], starts: SyncStarts) -> list[Run]:
    """The runs that bring all these samples, each decoded once, by rising start."""
    found: dict[int, list[int]] = {}
    for sample in sorted(set(samples)):
        found.setdefault(starts.of(sample), []).append(sample)
    runs: list[Run] = []
    for start, wanted in sorted(found.items()):
        if runs and start < runs[-1].stop:
            # The run before goes over this sync sample anyhow.
            both = tuple(sorted({*runs[-1].wanted, *wanted}))
            runs[-1] = Run(runs[-1].start, max(runs[-1].stop, wanted[-1] + 1), both)
        else:
            runs.append(Run(start, wanted[-1] + 1, tuple(wanted)))
    return runs


def are_apart(before: Run, after: Run, samples: SampleTable) -> bool:
    """Whether one read of a remote file would not do for both."""
    stop = int(samples.offset[before.stop - 1] + samples.size[before.stop - 1])
    return abs(int(samples.offset[after.start]) - stop) > REMOTE_GAP


def reads_of(
    runs: Sequence[Run], samples: SampleTable, *, remote: bool, max_requests: int | None = None
) -> tuple[ByteRange, ...]:
    """The reads that bring the bytes of runs.

    Raises:
        BudgetExceeded: so few requests do not do.
    """
    gap = REMOTE_GAP if remote else LOCAL_GAP
    ranges: list[ByteRange] = []
    for run in runs:
        offset = samples.offset[run.start : run.stop]
        stop = offset + samples.size[run.start : run.stop]
        kept = (stop > offset) & (offset >= 0)
        offset, stop = offset[kept], stop[kept]
        if not len(offset):
            continue
        between = offset[1:] - stop[:-1]
        # Sound lies between pictures: many ranges, which would be put together one by one.
        if ((between >= 0) & (between <= gap)).all() and stop[-1] - offset[0] <= LONGEST_READ:
            ranges.append(ByteRange(int(offset[0]), int(stop[-1])))
            continue
        first = np.append(True, between != 0)
        last = np.append(first[1:], True)
        pairs = zip(offset[first].tolist(), stop[last].tolist(), strict=True)
        ranges += [ByteRange(low, high) for low, high in pairs]
    return plan_reads(
        coalesce(ranges),
        max_gap=gap,
        max_size=LONGEST_READ,
        max_requests=max_requests,
    )
