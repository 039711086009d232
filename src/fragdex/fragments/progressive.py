"""Progressive files: the samples that a moov names, as virtual fragments.

A virtual fragment is a run of samples from one sync sample to the next; where every sample is
sync, of at least one second.
"""

from __future__ import annotations

import numpy as np

from fragdex.fragments.sample_runs import SampleRuns
from fragdex.fragments.sync import sync_table
from fragdex.fragments.table import (
    NULL,
    FragmentFlags,
    FragmentTable,
    Int64,
    SampleTable,
    SyncTable,
)

__all__ = ["virtual_fragments"]

MAX_VIRTUAL_FRAGMENTS = 1 << 18
"""Fragments of a track in which every sample is sync: three days of seconds."""
WRITTEN_OUT = 1 << 22
"""Up to so many samples, a track of constant sample size is treated like any other."""


def virtual_fragments(
    runs: SampleRuns, timescale: int, file_end: int | None
) -> tuple[FragmentTable, SyncTable, SampleTable | None]:
    """Fragment and sync table of a progressive track.

    Args:
        runs: its sample tables.
        timescale: ticks a second; 0: unknown, then the track is one fragment where all is sync.
        file_end: size of the file in bytes where it is known; samples past it are flagged.

    Returns: the two tables, and the sample table where it was written out on the way.
    """
    if runs.sync is None and len(runs.size) == 1 and runs.count > WRITTEN_OUT:
        return *_by_chunks(runs, timescale, file_end), None
    samples, rising = runs.laid_out(0, runs.count)
    starts = _starts(runs, timescale)
    counts = np.diff(np.append(starts, runs.count))
    if rising:
        last = starts + counts - 1
        data_start, data_stop = samples.offset[starts], samples.offset[last] + samples.size[last]
    else:
        ends = samples.offset + samples.size
        data_start = np.minimum.reduceat(samples.offset, starts)
        data_stop = np.maximum.reduceat(ends, starts)
    if runs.offsets is None:
        cts_min = samples.dts[starts]
        cts_end = runs.dts_at(starts + counts)
    else:
        cts_min = np.minimum.reduceat(samples.cts, starts)
        if runs.durations.constant:
            cts_end = np.maximum.reduceat(samples.cts, starts) + samples.duration[0]
        else:
            cts_end = np.maximum.reduceat(samples.cts + samples.duration, starts)
    fragments = _table(runs, starts, counts, data_start, data_stop, cts_min, cts_end, file_end)
    return fragments, _sync(runs, samples, fragments), samples


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


def _starts(runs: SampleRuns, timescale: int) -> Int64:
    """Number of the first sample of each virtual fragment."""
    if runs.sync is not None:
        starts = runs.sync
        if not len(starts) or starts[0] > 0:
            starts = np.concatenate([[0], starts])
        return starts
    if not timescale:
        return np.zeros(1, np.int64)
    parts, steps = [], runs.durations
    begin = 0
    for stop, delta in zip(steps.stop.tolist(), steps.value.tolist(), strict=True):
        if steps.constant and delta:
            parts.append(np.arange(begin, stop, max(1, -(-timescale // delta))))
        begin = stop
    if parts:
        return parts[0]
    # Uneven durations: one second after another, by decode time.
    dts = runs.dts_at(np.arange(runs.count + 1))
    starts_list, at = [0], 0
    while True:
        at = int(np.searchsorted(dts, dts[at] + timescale, side="left"))
        if at >= runs.count:
            return np.array(starts_list, np.int64)
        starts_list.append(at)


def _sync(runs: SampleRuns, samples: SampleTable, fragments: FragmentTable) -> SyncTable:
    if runs.sync is None and runs.offsets is None:
        return _even_sync(runs, fragments)
    numbers = np.flatnonzero(samples.sync) if runs.sync is None else runs.sync
    zeros = np.zeros(len(numbers), np.int64)
    return sync_table(
        cts=samples.cts[numbers],
        dts=samples.dts[numbers],
        step=zeros,
        count=np.ones(len(numbers), np.int64),
        sample=numbers,
        fragment=np.searchsorted(fragments.sample_start, numbers, side="right") - 1,
    )


def _even_sync(runs: SampleRuns, fragments: FragmentTable) -> SyncTable:
    """One row for each stretch of equal durations."""
    steps = runs.durations
    starts = np.concatenate([[0], steps.stop[:-1]])
    dts = runs.dts_at(starts)
    count = steps.stop - starts
    return sync_table(
        cts=dts,
        dts=dts,
        step=np.where(count > 1, steps.value, 0),
        count=count,
        sample=starts,
        fragment=np.searchsorted(fragments.sample_start, starts, side="right") - 1,
    )


def _by_chunks(
    runs: SampleRuns, timescale: int, file_end: int | None
) -> tuple[FragmentTable, SyncTable]:
    """Fragments of equal numbers of samples, from chunks alone: PCM, however long."""
    delta = int(runs.durations.value[0])
    stride = max(1, -(-timescale // delta)) if delta and timescale else runs.count
    stride = max(stride, -(-runs.count // MAX_VIRTUAL_FRAGMENTS))
    starts = np.arange(0, runs.count, stride)
    counts = np.diff(np.append(starts, runs.count))
    size = int(runs.size[0])

    def place(sample: Int64) -> tuple[Int64, Int64]:
        chunk = np.searchsorted(runs.chunk_start, sample, side="right") - 1
        return chunk, runs.chunk_offset[chunk] + (sample - runs.chunk_start[chunk]) * size

    first_chunk, data_start = place(starts)
    last_chunk, data_stop = place(starts + counts - 1)
    data_stop = data_stop + size
    held = np.diff(np.append(runs.chunk_start, runs.count))
    chunk_end = runs.chunk_offset + held * size
    if len(runs.chunk_offset) > 1 and (runs.chunk_offset[1:] < chunk_end[:-1]).any():
        # Chunks out of order: the range must hold those in between, too.
        for row in np.flatnonzero(last_chunk > first_chunk).tolist():
            between = slice(int(first_chunk[row]) + 1, int(last_chunk[row]))
            others = runs.chunk_offset[between]
            tail = runs.chunk_offset[last_chunk[row]]
            head_end = chunk_end[first_chunk[row]]
            low = min([data_start[row], tail, *others[:1], others.min(initial=2**62)])
            high = max([data_stop[row], head_end, chunk_end[between].max(initial=0)])
            data_start[row], data_stop[row] = low, high
    dts = runs.dts_at(starts)
    end = runs.dts_at(starts + counts)
    if runs.offsets is not None:
        # Constant size, all sync, and composition offsets: no codec does that; bounds suffice.
        low, high = int(runs.offsets.value.min()), int(runs.offsets.value.max())
        dts_low, end_high = dts + low, end + high
    else:
        dts_low, end_high = dts, end
    fragments = _table(runs, starts, counts, data_start, data_stop, dts_low, end_high, file_end)
    return fragments, _even_sync(runs, fragments)
