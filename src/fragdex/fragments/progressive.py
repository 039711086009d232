"""Progressive files: the sample tables of a moov as virtual fragments.

The tables stay in the run form in which they stand in the file (ISO/IEC 14496-12, 8.6 and 8.7)
and are written out for the samples that are asked for. A file of PCM names billions of samples in
a few hundred bytes; nothing here is as large as a number that the file claims.

A virtual fragment is a run of samples from one sync sample to the next; where every sample is
sync, of at least one second.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fragdex.boxes import Box
from fragdex.errors import LimitExceeded
from fragdex.fragments.findings import Findings
from fragdex.fragments.sync import sync_table
from fragdex.fragments.table import (
    NULL,
    FragmentFlags,
    FragmentTable,
    Int64,
    SampleTable,
    SyncTable,
)

__all__ = ["SampleRuns", "names_samples", "read_sample_runs", "virtual_fragments"]

MAX_SAMPLES_AT_ONCE = 1 << 26
"""Samples written out in one table: 2.6 GiB; more than three days of pictures and sound."""
MAX_VIRTUAL_FRAGMENTS = 1 << 20
"""Fragments of a track in which every sample is sync: twelve days of seconds."""
WRITTEN_OUT = 1 << 22
"""Up to so many samples, a track of constant sample size is treated like any other."""


@dataclass(frozen=True, slots=True)
class _Steps:
    """A value for each sample, as runs: `value[i]` for samples before `stop[i]`."""

    stop: Int64
    value: Int64

    def between(self, a: int, b: int) -> Int64:
        """The values of samples a to b (exclusive)."""
        first = int(np.searchsorted(self.stop, a, side="right"))
        last = int(np.searchsorted(self.stop, b, side="left")) + 1
        stops = np.minimum(self.stop[first:last], b)
        counts = np.diff(stops, prepend=a)
        if len(counts) == 1:
            return np.full(b - a, self.value[first])
        values: Int64 = np.repeat(self.value[first:last], counts)
        return values

    @property
    def constant(self) -> bool:
        return len(self.value) == 1


@dataclass(frozen=True, slots=True)
class SampleRuns:
    """The sample tables of one track.

    Attributes:
        count: samples.
        size: bytes of each sample, or of all of them (one element).
        durations, offsets: in ticks; composition offsets are None where there is no ctts.
        sync: numbers of the sync samples from 0, rising; None: every sample is one.
        chunk_offset: byte of each chunk; chunk_start: number of its first sample.
    """

    count: int
    size: Int64
    durations: _Steps
    offsets: _Steps | None
    sync: Int64 | None
    chunk_offset: Int64
    chunk_start: Int64

    def dts_at(self, samples: Int64) -> Int64:
        """Decode times of these samples (the count itself gives the end)."""
        steps = self.durations
        starts = np.concatenate([[0], steps.stop[:-1]])
        before = np.concatenate([[0], np.cumsum((steps.stop - starts) * steps.value)])
        run = np.minimum(np.searchsorted(steps.stop, samples, side="right"), len(starts) - 1)
        times: Int64 = before[run] + (samples - starts[run]) * steps.value[run]
        return times

    def expand(self, a: int, b: int) -> SampleTable:
        """Samples a to b (exclusive), in decode order.

        Raises:
            LimitExceeded: that is more than fragdex writes out at once.
        """
        if b - a > MAX_SAMPLES_AT_ONCE:
            raise LimitExceeded(
                "a table of so many samples is not written out",
                expected=f"at most {MAX_SAMPLES_AT_ONCE}",
                found=b - a,
                advice="ask for the samples of fewer fragments at a time",
            )
        if a >= b:
            return SampleTable.empty()
        offset, size = self._places(a, b)
        duration = self.durations.between(a, b)
        first = int(self.dts_at(np.array([a]))[0])
        if self.durations.constant:
            dts = np.arange(b - a)
            dts *= duration[0]
            dts += first
        else:
            dts = np.cumsum(duration)
            dts -= duration
            dts += first
        cts = dts if self.offsets is None else dts + self.offsets.between(a, b)
        if self.sync is None:
            sync = np.ones(b - a, np.bool_)
        else:
            sync = np.zeros(b - a, np.bool_)
            low, high = np.searchsorted(self.sync, [a, b])
            sync[self.sync[low:high] - a] = True
        return SampleTable(offset, size, dts, cts, duration, sync)

    def _places(self, a: int, b: int) -> tuple[Int64, Int64]:
        """Offset and size of samples a to b."""
        first = int(np.searchsorted(self.chunk_start, a, side="right")) - 1
        last = int(np.searchsorted(self.chunk_start, b, side="left"))
        starts = self.chunk_start[first:last]
        begin = int(starts[0])
        counts = np.diff(np.append(starts, b))
        if len(self.size) == 1:
            size = np.full(b - a, self.size[0])
            base = self.chunk_offset[first:last] - starts * self.size[0]
            offset = np.repeat(base, counts)[a - begin :]
            offset += np.arange(a, b) * self.size[0]
            return offset, size
        size = self.size[begin:b]
        running = np.cumsum(size)
        running -= size
        base = self.chunk_offset[first:last] - running[starts - begin]
        offset = np.repeat(base, counts)
        offset += running
        return offset[a - begin :], size[a - begin :]


def read_sample_runs(stbl: Box, track: int, findings: Findings) -> SampleRuns | None:
    """The sample tables of a parsed stbl; None where it names no sample.

    Tables that contradict each other are cut to what all of them cover, and noted.
    """

    def note(code: str, message: str) -> None:
        findings.add(
            code, message, offset=stbl.offset, path="moov/trak/mdia/minf/stbl", track=track
        )

    size, count = _sizes(stbl)
    chunks = stbl.find("stco") or stbl.find("co64")
    mapping = stbl.find("stsc")
    if not count or chunks is None or mapping is None:
        return None
    chunk_offset = chunks["entries"]["chunk_offset"].astype(np.int64)
    chunk_start, held = _chunk_starts(mapping["entries"], len(chunk_offset))
    if held < count:
        note(
            "samples-without-chunk", f"{count - held:,} samples lie in no chunk; they are left out"
        )
        count = held
        size = size[:count] if len(size) > 1 else size
    if not count:
        return None
    used = int(np.searchsorted(chunk_start, count, side="left"))
    chunk_offset, chunk_start = chunk_offset[:used], chunk_start[:used]

    stts = stbl.find("stts")
    durations = _steps(stts, "sample_delta", count) if stts is not None else None
    if durations is None:
        note("no-durations", "no sample durations (stts); times are not to be trusted")
        durations = _Steps(np.array([count]), np.array([0]))
    elif durations.stop[-1] < count:
        note("stts-short", "stts covers fewer samples than there are; its last duration goes on")
        durations.stop[-1] = count
    ctts = stbl.find("ctts")
    offsets = _steps(ctts, "sample_offset", count) if ctts is not None else None
    if ctts is not None and offsets is not None:
        wide = offsets.value >= 2**31
        if ctts["version"] == 0 and wide.any():
            note(
                "wide-composition-offset",
                "an unsigned composition offset of 2^31 or more was read as signed",
            )
            offsets = _Steps(offsets.stop, np.where(wide, offsets.value - 2**32, offsets.value))
        if offsets.stop[-1] < count:
            offsets = _Steps(np.append(offsets.stop, count), np.append(offsets.value, 0))
    stss = stbl.find("stss")
    sync = None
    if stss is not None:
        numbers = stss["entries"]["sample_number"].astype(np.int64) - 1
        numbers = numbers[(numbers >= 0) & (numbers < count)]
        if len(numbers) > 1 and (np.diff(numbers) <= 0).any():
            note("stss-order", "sync sample numbers do not rise; they were sorted")
            numbers = np.unique(numbers)
        sync = None if len(numbers) == count else numbers
    return SampleRuns(count, size, durations, offsets, sync, chunk_offset, chunk_start)


def names_samples(stbl: Box) -> bool:
    """Whether a stbl names any sample; those of fragmented files name none."""
    return any(box.get("sample_count") for box in (stbl.find("stsz"), stbl.find("stz2")) if box)


def _sizes(stbl: Box) -> tuple[Int64, int]:
    box = stbl.find("stsz")
    if box is not None and "sample_count" in box.fields:
        if box["sample_size"]:
            return np.array([box["sample_size"]], np.int64), int(box["sample_count"])
        sizes = box["entries"]["entry_size"].astype(np.int64)
        return sizes, len(sizes)
    box = stbl.find("stz2")
    if box is not None and "sample_count" in box.fields:
        sizes = np.asarray(box["entry_size"]).astype(np.int64)
        return sizes, len(sizes)
    return np.zeros(0, np.int64), 0


def _chunk_starts(entries: npt.NDArray[np.void], chunks: int) -> tuple[Int64, int]:
    """Number of each chunk's first sample, and samples that the chunks hold in all (8.7.4)."""
    if not len(entries) or not chunks:
        return np.zeros(0, np.int64), 0
    first = entries["first_chunk"].astype(np.int64) - 1
    order = np.argsort(first, kind="stable") if (np.diff(first) < 0).any() else slice(None)
    first = np.clip(first[order], 0, chunks)
    per_chunk = entries["samples_per_chunk"].astype(np.int64)[order]
    # Chunks before the first entry hold what it says.
    first[0] = 0
    held = np.repeat(per_chunk, np.diff(np.append(first, chunks)))
    running = np.cumsum(held)
    # 2^32 chunks of 2^32 samples would not fit; nobody's file comes near.
    total = int(min(running[-1], 2**62)) if running[-1] >= 0 else 2**62
    return running - held, total


def _steps(box: Box, column: str, count: int) -> _Steps | None:
    entries = box["entries"]
    if not len(entries):
        return None
    stop = np.minimum(np.cumsum(entries["sample_count"].astype(np.int64)), count)
    keep = np.diff(stop, prepend=0) > 0
    if not keep.any():
        return None
    stop, value = stop[keep], entries[column].astype(np.int64)[keep]
    # Neighbours with one value are one run: some muxers write an entry for every sample.
    change = np.append(value[1:] != value[:-1], True)
    return _Steps(stop[change], value[change])


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
    samples = runs.expand(0, runs.count)
    starts = _starts(runs, timescale)
    counts = np.diff(np.append(starts, runs.count))
    ends = samples.offset + samples.size
    rising = bool((samples.offset[1:] >= ends[:-1]).all())
    if rising:
        data_start, data_stop = samples.offset[starts], ends[starts + counts - 1]
    else:
        data_start = np.minimum.reduceat(samples.offset, starts)
        data_stop = np.maximum.reduceat(ends, starts)
    if runs.offsets is None:
        cts_min = samples.dts[starts]
        cts_end = runs.dts_at(starts + counts)
    else:
        cts_min = np.minimum.reduceat(samples.cts, starts)
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
    numbers = np.flatnonzero(samples.sync)
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
