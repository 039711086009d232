"""Progressive files: the samples that a moov names, as virtual fragments.

A virtual fragment is a run of samples from one sync sample to the next; where every sample is
sync, of at least one second.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from fragdex.fragments.sample_runs import SampleRuns
from fragdex.fragments.sync import Expansion, sync_table
from fragdex.fragments.table import (
    NULL,
    FragmentFlags,
    FragmentTable,
    Int64,
    SampleTable,
    SyncTable,
)

__all__ = ["virtual_fragments"]

MAX_VIRTUAL_FRAGMENTS = 1 << 17
"""Fragments of all tracks of one sample size in which every sample is sync, since no bytes stand
for their samples: a day and a half of seconds; and no more than the file has bytes."""
LEAST_VIRTUAL_FRAGMENTS = 16
"""As many each such track may have in any case."""


def virtual_fragments(
    runs: SampleRuns,
    timescale: int,
    file_end: int | None,
    *,
    sharing: int = 1,
    expansion: Expansion | None = None,
) -> tuple[FragmentTable, SyncTable, SampleTable | None]:
    """Fragment and sync table of a progressive track.

    Args:
        runs: its sample tables.
        timescale: ticks a second; 0: unknown, then the track is one fragment where all is sync.
        file_end: size of the file in bytes where it is known; samples past it are flagged.
        sharing: tracks of the file, which share `MAX_VIRTUAL_FRAGMENTS`.
        expansion: bounds what is written out of sync samples that overlap.

    Returns: the two tables, and the sample table where it was written out on the way.
    """
    if len(runs.size) == 1:
        room = min(MAX_VIRTUAL_FRAGMENTS, MAX_VIRTUAL_FRAGMENTS if file_end is None else file_end)
        most = max(LEAST_VIRTUAL_FRAGMENTS, room // max(1, sharing))
        return *_of_one_size(runs, timescale, file_end, most, expansion), None
    samples, rising = runs.laid_out(0, runs.count)
    starts = _starts(runs, timescale, runs.count)
    counts = np.diff(np.append(starts, runs.count))
    if rising:
        last = starts + counts - 1
        data_start, data_stop = samples.offset[starts], samples.offset[last] + samples.size[last]
    else:
        ends = samples.offset + samples.size
        data_start = np.minimum.reduceat(samples.offset, starts)
        data_stop = np.maximum.reduceat(ends, starts)
    backward = bool((runs.durations.value < 0).any())
    lasts = np.maximum(samples.duration, 0) if backward else samples.duration
    if runs.offsets is None and not backward:
        cts_min = samples.dts[starts]
        cts_end = runs.dts_at(starts + counts)
    else:
        cts_min = np.minimum.reduceat(samples.cts, starts)
        if runs.durations.constant:
            cts_end = np.maximum.reduceat(samples.cts, starts) + lasts[0]
        else:
            cts_end = np.maximum.reduceat(samples.cts + lasts, starts)
    fragments = _table(runs, starts, counts, data_start, data_stop, cts_min, cts_end, file_end)
    return fragments, _sync(runs, fragments, expansion), samples


def _of_one_size(
    runs: SampleRuns,
    timescale: int,
    file_end: int | None,
    most: int,
    expansion: Expansion | None,
) -> tuple[FragmentTable, SyncTable]:
    """Of a track whose samples have one size, of the runs alone: PCM, however long.

    Between one edge of any run and the next, places and times of samples rise evenly, so that
    first and last of them tell the least and the greatest.
    """
    starts = _starts(runs, timescale, most)
    counts = np.diff(np.append(starts, runs.count))
    cuts = [starts, runs.chunk_start, *_edges(runs)]
    begin = _rising(np.concatenate(cuts))
    stop = np.append(begin[1:], runs.count)
    first = np.searchsorted(begin, starts)
    size = int(runs.size[0])
    chunk = np.searchsorted(runs.chunk_start, begin, side="right") - 1
    place = runs.chunk_offset[chunk] + (begin - runs.chunk_start[chunk]) * size
    step = runs.durations.at(begin)
    low = runs.dts_at(np.where(step < 0, stop - 1, begin))
    high = np.where(step < 0, runs.dts_at(begin), runs.dts_at(stop))
    if runs.offsets is not None:
        offset = runs.offsets.at(begin)
        low, high = low + offset, high + offset
    fragments = _table(
        runs,
        starts,
        counts,
        np.minimum.reduceat(place, first),
        np.maximum.reduceat(place + (stop - begin) * size, first),
        np.minimum.reduceat(low, first),
        np.maximum.reduceat(high, first),
        file_end,
    )
    return fragments, _sync(runs, fragments, expansion)


def _edges(runs: SampleRuns) -> list[Int64]:
    """Where durations or composition offsets change."""
    found = [runs.durations.stop[:-1]]
    if runs.offsets is not None:
        found.append(runs.offsets.stop[:-1])
    return found


def _rising(numbers: Int64) -> Int64:
    """Each number once, rising."""
    numbers = np.sort(numbers)
    return numbers[np.diff(numbers, prepend=-1) > 0]


def _table(
    runs: SampleRuns,
    starts: Int64,
    counts: Int64,
    data_start: Int64,
    data_stop: Int64,
    cts_min: Int64,
    cts_end: Int64,
    file_end: int | None,
) -> FragmentTable:
    n = len(starts)
    dts = runs.dts_at(starts)
    sync = np.zeros(n, np.int64)
    if runs.sync is not None and (not len(runs.sync) or runs.sync[0] > 0):
        sync[0] = -1  # samples before the first sync sample
    flags = np.full(n, FragmentFlags.VIRTUAL, np.uint32)
    if file_end is not None:
        flags[data_stop > file_end] |= np.uint32(FragmentFlags.OUTSIDE)
    return FragmentTable(
        offset=data_start,
        size=data_stop - data_start,
        moof_offset=np.full(n, NULL),
        data_start=data_start,
        data_stop=data_stop,
        dts=dts,
        duration=runs.dts_at(starts + counts) - dts,
        cts_min=cts_min,
        cts_end=cts_end,
        sample_start=starts,
        sample_count=counts,
        sync=sync,
        flags=flags,
    )


def _starts(runs: SampleRuns, timescale: int, most: int) -> Int64:
    """Number of the first sample of each virtual fragment, at most so many where all are sync."""
    if runs.sync is not None:
        starts = runs.sync
        if not len(starts) or starts[0] > 0:
            starts = np.concatenate([[0], starts])
        return starts
    if not timescale:
        return np.zeros(1, np.int64)
    least = -(-runs.count // most)
    steps = runs.durations
    if steps.constant and steps.value[0]:
        return np.arange(0, runs.count, max(least, -(-timescale // int(steps.value[0]))))
    # Uneven durations: one second after another, by decode time.
    begin, times = [0, *steps.stop[:-1].tolist()], runs.dts_at(steps.stop)
    # Where times fall back, the run in which a second is over for the first time counts.
    before, ends = [0, *times[:-1].tolist()], np.maximum.accumulate(times).tolist()
    values = steps.value.tolist()
    found, at, time = [0], 0, 0
    while len(found) <= most:
        run = bisect_left(ends, time + timescale)
        if run == len(ends):
            return np.array(found, np.int64)
        at = begin[run] - (before[run] - time - timescale) // values[run]
        if at >= runs.count:
            return np.array(found, np.int64)
        time = before[run] + (at - begin[run]) * values[run]
        found.append(at)
    return np.arange(0, runs.count, least)


def _sync(runs: SampleRuns, fragments: FragmentTable, expansion: Expansion | None) -> SyncTable:
    """The sync samples; where every one is, a row for each stretch of one duration and offset."""
    if runs.sync is None:
        numbers = _rising(np.concatenate([[0], *_edges(runs)]))
        count = np.diff(np.append(numbers, runs.count))
        step = np.where(count > 1, runs.durations.at(numbers), 0)
    else:
        numbers = runs.sync
        count, step = np.ones(len(numbers), np.int64), np.zeros(len(numbers), np.int64)
    dts = runs.dts_at(numbers)
    return sync_table(
        cts=dts if runs.offsets is None else dts + runs.offsets.at(numbers),
        dts=dts,
        step=step,
        count=count,
        sample=numbers,
        fragment=np.searchsorted(fragments.sample_start, numbers, side="right") - 1,
        sample_start=fragments.sample_start,
        expansion=expansion,
    )
