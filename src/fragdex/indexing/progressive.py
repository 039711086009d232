"""Progressive files: the sample tables of a moov, and virtual fragments made of them.

The tables stay in the run form of the file (ISO/IEC 14496-12, 8.6 and 8.7) and are written out for
the samples that are requested. A file of PCM names billions of samples in a few hundred bytes;
nothing here is as large as a number that the file claims.

A virtual fragment is a run of samples from one sync sample to the next; where every sample is
sync, of at least one second.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fragdex.boxes import Box
from fragdex.errors import LimitExceeded
from fragdex.fragments.findings import Findings
from fragdex.fragments.table import (
    NULL,
    FragmentFlags,
    FragmentTable,
    Int64,
    SampleTable,
    SyncTable,
)
from fragdex.indexing import native
from fragdex.indexing.headers import Extents
from fragdex.indexing.positions import begins
from fragdex.indexing.runs import LONGEST, signed
from fragdex.indexing.sync import Expansion, sync_table
from fragdex.record import record

MAX_SAMPLES_AT_ONCE = 1 << 26
"""Samples written out in one table: 2.6 GiB; more than three days of pictures and sound."""


Sizes: TypeAlias = npt.NDArray[np.uint32]

NEGATIVE_DURATION = "a sample duration of 2^31 or more was read as negative"
MANY = 1 << 16
"""Samples of one size from which on their number is held against the file's size."""


@record(frozen=True, slots=True)
class Steps:
    """A value for each sample, as runs: `value[i]` for samples before `stop[i]`."""

    stop: Int64
    value: Int64

    def between(self, a: int, b: int) -> Int64:
        """The values of samples a to b (exclusive)."""
        first = int(np.searchsorted(self.stop, a, side="right"))
        last = int(np.searchsorted(self.stop, b, side="left")) + 1
        counts = self.stop[first:last].copy()
        counts[-1] = min(counts[-1], b)
        counts[1:] -= self.stop[first : last - 1]
        counts[0] -= a
        if len(counts) == 1:
            return np.full(b - a, self.value[first])
        values: Int64 = np.repeat(self.value[first:last], counts)
        return values

    def at(self, samples: Int64) -> Int64:
        """The values of these samples."""
        values: Int64 = self.value[np.searchsorted(self.stop, samples, side="right")]
        return values

    @property
    def constant(self) -> bool:
        """Whether one value holds for all samples."""
        return len(self.value) == 1


@record(frozen=True, slots=True)
class SampleRuns:
    """The sample tables of one track.

    Attributes:
        size: bytes of each sample as the file has them (`>u4`), or None: each has `each` bytes.
        durations, offsets: in ticks; composition offsets are None where there is no ctts.
        sync: numbers of the sync samples from 0, rising; None: every sample is one.
        chunk_offset: byte of each chunk; chunk_start: number of its first sample.
    """

    count: int
    size: Sizes | None
    each: int
    durations: Steps
    offsets: Steps | None
    sync: Int64 | None
    chunk_offset: Int64
    chunk_start: Int64

    def dts_at(self, samples: Int64) -> Int64:
        """Decode times of these samples (the count itself gives the end)."""
        steps = self.durations
        if steps.constant:
            even: Int64 = samples * steps.value[0]
            return even
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
                "too many samples for one table",
                expected=f"at most {MAX_SAMPLES_AT_ONCE}",
                found=b - a,
                advice="ask for the samples of fewer fragments at a time",
            )
        if a >= b:
            return SampleTable.empty()
        offset, size = self._places(a, b)
        duration = self.durations.between(a, b)
        dts = self._decode_times(a, b, duration)
        cts = dts
        if self.offsets is not None:
            cts = self.offsets.between(a, b)
            cts += dts
        if self.sync is None:
            sync = np.ones(b - a, np.bool_)
        else:
            sync = np.zeros(b - a, np.bool_)
            low, high = np.searchsorted(self.sync, [a, b])
            sync[self.sync[low:high] - a] = True
        return SampleTable(offset, size, dts, cts, duration, sync)

    def _decode_times(self, a: int, b: int, duration: Int64) -> Int64:
        """Decode times of samples a to b, whose durations these are."""
        each = int(duration[0])
        if each and self.durations.constant and b * each < 2**63:
            return np.arange(a * each, b * each, each)
        dts = np.cumsum(duration)
        dts -= duration
        dts += self.dts_at(np.array([a]))[0]
        return dts

    def _places(self, a: int, b: int) -> tuple[Int64, Int64]:
        """Offset and size of samples a to b."""
        first = int(np.searchsorted(self.chunk_start, a, side="right")) - 1
        last = int(np.searchsorted(self.chunk_start, b, side="left"))
        begin = int(self.chunk_start[first])
        starts, offset = self.chunk_start[first:last] - begin, np.empty(b - a, np.int64)
        if self.size is None:
            size, sizes = np.full(b - a, self.each), np.array([self.each])
        else:
            sizes = self.size[begin:b].astype(np.int64)
            size = sizes[a - begin :]
        native.places(sizes, starts, self.chunk_offset[first:last], a - begin, offset)
        return offset, size

    def bytes_between(self, edges: Int64) -> Int64:
        """Bytes of the samples from each of these numbers (rising or equal) to the next."""
        counts = np.diff(edges)
        if self.size is None:
            return counts * self.each
        sizes, some = np.zeros(len(counts), np.int64), np.flatnonzero(counts)
        if len(some):
            counted = self.size[: edges[-1]]
            sizes[some] = np.add.reduceat(counted, edges[some], dtype=np.int64)
        return sizes


def read_sample_runs(
    stbl: Box, track: int, findings: Findings, *, file_end: int | None = None
) -> SampleRuns | None:
    """The sample tables of a parsed stbl; None where it names no sample.

    Tables that contradict each other are cut to what all of them cover, and noted.

    Args:
        stbl: with stsz or stz2, stsc, stco or co64, stts.
        file_end: bytes of the file; one size for all samples bounds how many there can be.
    """

    def note(code: str, message: str) -> None:
        findings.add(
            code, message, offset=stbl.offset, path="moov/trak/mdia/minf/stbl", track=track
        )

    def table(code: str) -> Box | None:
        box = stbl.find(code)
        if box is None or not box.opaque:
            if box is not None and box.trailing:
                note("table-rest", f"{code} has more bytes than its rows take; they are ignored")
            return box
        note("opaque-table", f"{code} is of an unknown version, or damaged; it is ignored")
        return None

    size, each, count = _sizes(table("stsz"), table("stz2"))
    chunks = table("stco") or table("co64")
    mapping = table("stsc")
    if not count or chunks is None or mapping is None:
        if count:
            note("samples-without-chunk", f"{count:,} samples are in no chunk; they are left out")
        elif chunks is not None and len(chunks["entries"]):
            note("chunks-without-samples", "there are chunks, and no samples to be in them")
        return None
    total = count
    chunk_offset = chunks["entries"]["chunk_offset"].astype(np.int64)
    entries = mapping["entries"]
    if len(entries) and entries["first_chunk"][0] > 1 and entries["first_chunk"].min() > 1:
        note(
            "stsc-late",
            "stsc begins after the first chunk; its first entry is used for the chunks before, too",
        )
    if len(entries) and (
        entries["first_chunk"][0] == 0
        or (entries["first_chunk"][1:] <= entries["first_chunk"][:-1]).any()
    ):
        note("stsc-order", "the first chunks of stsc do not rise from 1; they are sorted")
    numbers = entries["sample_description_index"]
    described = len(stbl.find_all("stsd/*"))
    if described and len(numbers) and not 1 <= numbers.min() <= numbers.max() <= described:
        note(
            "no-description",
            f"stsc names sample entry {numbers.max() if numbers.min() else 0} of {described}",
        )
    chunk_start, in_chunks = _chunk_starts(entries, len(chunk_offset))
    if in_chunks > count:
        note(
            "chunks-without-samples",
            f"the chunks hold {in_chunks:,} samples, and stsz counts {count:,};"
            " the others are left out",
        )
    if in_chunks < count:
        note(
            "samples-without-chunk",
            f"{count - in_chunks:,} samples are in no chunk; they are left out",
        )
        count = in_chunks
    if file_end is not None and size is None and count > max(MANY, file_end // each):
        # Sizes of their own take bytes each; a claimed number of equal ones takes none.
        room = file_end // each
        note(
            "samples-past-end", f"{count - room:,} samples cannot be in the file; they are left out"
        )
        count = room
    if not count:
        return None
    used = int(np.searchsorted(chunk_start, count, side="left"))
    chunk_offset, chunk_start = chunk_offset[:used], chunk_start[:used]

    stts = table("stts")
    durations = _steps(stts, "sample_delta", count) if stts is not None else None
    if durations is None:
        note("no-durations", "no sample durations (stts); times are unreliable")
        durations = Steps(np.array([count]), np.array([0]))
    elif durations.stop[-1] < count:
        note(
            "stts-short", "stts covers fewer samples than there are; its last duration is repeated"
        )
        durations.stop[-1] = count
    if durations.value.max() >= LONGEST:
        note("negative-duration", NEGATIVE_DURATION)
        durations = _backward(durations, count)
    if stts is not None and _covered(stts) > total:
        note("stts-long", "stts covers more samples than there are; the rest is ignored")
    ctts = table("ctts")
    if ctts is not None and _covered(ctts) != total:
        note(
            "ctts-count",
            f"ctts covers {_covered(ctts):,} samples of {total:,}; the offset of others is 0",
        )
    offsets = _steps(ctts, "sample_offset", count) if ctts is not None else None
    if ctts is not None and offsets is not None:
        wide = offsets.value >= 2**31
        if ctts["version"] == 0 and wide.any():
            note(
                "wide-composition-offset",
                "an unsigned composition offset of 2^31 or more was read as signed",
            )
            offsets = Steps(offsets.stop, np.where(wide, offsets.value - 2**32, offsets.value))
        if offsets.stop[-1] < count:
            offsets = Steps(np.append(offsets.stop, count), np.append(offsets.value, 0))
    stss = table("stss")
    sync = None
    if stss is not None:
        numbers = stss["entries"]["sample_number"].astype(np.int64) - 1
        if len(numbers) and numbers[0] < 0:
            note("stss-from-zero", "stss counts samples from 0, not from 1; it is read so")
            numbers += 1
        if len(numbers) and (numbers.min() < 0 or numbers.max() >= total):
            note("stss-outside", "stss names samples that there are not; they are left out")
        numbers = numbers[(numbers >= 0) & (numbers < count)]
        if len(numbers) > 1 and (numbers[1:] <= numbers[:-1]).any():
            note("stss-order", "sync sample numbers do not increase; they are sorted")
            numbers = np.unique(numbers)
        sync = None if len(numbers) == count else numbers
    return SampleRuns(count, size, each, durations, offsets, sync, chunk_offset, chunk_start)


def _backward(durations: Steps, count: int) -> Steps:
    """Durations as they are meant; a last one below 0 corrects nothing and is 0."""
    stop, value = durations.stop, signed(durations.value)
    if value[-1] < 0:
        # The last sample by itself, unless it is the only one of its run.
        alone = count - 1 == (stop[-2] if len(stop) > 1 else 0)
        stop = stop if alone else np.insert(stop, len(stop) - 1, count - 1)
        value = np.append(value[: len(value) - alone], 0)
    return Steps(stop, value)


def _covered(box: Box) -> int:
    """Samples that an stts or ctts has values for."""
    counts = box["entries"]["sample_count"]
    return int(counts[0]) if len(counts) == 1 else int(counts.sum(dtype=np.int64))


def names_samples(stbl: Box) -> bool:
    """Whether a stbl names any sample; those of fragmented files name none."""
    return any(box.get("sample_count") for box in (stbl.find("stsz"), stbl.find("stz2")) if box)


def _sizes(stsz: Box | None, stz2: Box | None) -> tuple[Sizes | None, int, int]:
    """Bytes of each sample, or of all of them, and how many there are."""
    if stsz is not None and "sample_count" in stsz.fields:
        if stsz["sample_size"]:
            return None, int(stsz["sample_size"]), int(stsz["sample_count"])
        sizes = stsz["entries"]["entry_size"]
        return sizes, 0, len(sizes)
    if stz2 is not None and "sample_count" in stz2.fields:
        sizes = np.asarray(stz2["entry_size"]).astype(">u4")
        return sizes, 0, len(sizes)
    return None, 0, 0


def _chunk_starts(entries: npt.NDArray[np.void], chunks: int) -> tuple[Int64, int]:
    """Number of each chunk's first sample, and samples that the chunks hold in all (8.7.4)."""
    if not len(entries) or not chunks:
        return np.zeros(0, np.int64), 0
    starts = np.empty(chunks, np.int64)
    fields: Any = entries.dtype.fields
    row = entries.itemsize, fields["first_chunk"][1], fields["samples_per_chunk"][1]

    def count(rows: npt.NDArray[np.void]) -> int | None:
        return native.chunk_starts(np.ascontiguousarray(rows).view(np.uint8).data, *row, starts)

    described = count(entries)
    if described is None:
        described = count(entries[np.argsort(entries["first_chunk"], kind="stable")])
    return starts, described or 0


def _steps(box: Box, column: str, count: int) -> Steps | None:
    entries = box["entries"]
    if not len(entries):
        return None
    if len(entries) == 1:
        every = min(int(entries["sample_count"][0]), count)
        return Steps(np.array([every]), np.array([int(entries[column][0])])) if every else None
    stop = np.cumsum(entries["sample_count"], dtype=np.int64)
    if stop[-1] > count:
        np.minimum(stop, count, out=stop)
    keep = np.empty(len(stop), np.bool_)
    keep[0] = stop[0] > 0
    np.greater(stop[1:], stop[:-1], out=keep[1:])
    if not keep.any():
        return None
    value = entries[column].astype(np.int64)
    if not keep.all():
        stop, value = stop[keep], value[keep]
    # Neighbours with one value are one run: some muxers write an entry for every sample.
    change = value[1:] != value[:-1]
    if change.all():
        return Steps(stop, value)
    change = np.append(change, True)
    return Steps(stop[change], value[change])


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
) -> tuple[FragmentTable, SyncTable]:
    """Fragment and sync table of a progressive track.

    Args:
        timescale: ticks a second; 0: unknown, then the track is one fragment where all is sync.
        sharing: tracks of the file, which share `MAX_VIRTUAL_FRAGMENTS`.
        expansion: bounds what is written out of sync samples that overlap.
    """
    most = runs.count
    if runs.size is None:
        room = min(MAX_VIRTUAL_FRAGMENTS, MAX_VIRTUAL_FRAGMENTS if file_end is None else file_end)
        most = max(LEAST_VIRTUAL_FRAGMENTS, room // max(1, sharing))
    starts = _starts(runs, timescale, most)
    edges = native.extents(
        runs.size,
        runs.each,
        (runs.chunk_start, runs.chunk_offset),
        (runs.durations.stop, runs.durations.value),
        None if runs.offsets is None else (runs.offsets.stop, runs.offsets.value),
        starts,
        runs.count,
    )
    fragments = _table(runs, starts, edges, file_end)
    return fragments, _sync(runs, fragments, expansion)


def _table(runs: SampleRuns, starts: Int64, edges: Extents, file_end: int | None) -> FragmentTable:
    n = len(starts)
    sync = np.zeros(n, np.int64)
    if runs.sync is not None and (not len(runs.sync) or runs.sync[0] > 0):
        sync[0] = -1  # samples before the first sync sample
    flags = np.full(n, FragmentFlags.VIRTUAL, np.uint32)
    if file_end is not None:
        flags[edges.data_stop > file_end] |= np.uint32(FragmentFlags.OUTSIDE)
    counts = np.empty(n, np.int64)
    np.subtract(starts[1:], starts[:-1], out=counts[:-1])
    counts[-1] = runs.count - starts[-1]
    return FragmentTable(
        offset=edges.data_start,
        size=edges.data_stop - edges.data_start,
        moof_offset=np.full(n, NULL),
        data_start=edges.data_start,
        data_stop=edges.data_stop,
        dts=edges.dts,
        duration=edges.duration,
        cts_min=edges.cts_min,
        cts_end=edges.cts_end,
        sample_start=starts,
        sample_count=counts,
        first_sync=sync,
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
    borders, at, time = [0], 0, 0
    while len(borders) <= most:
        run = bisect_left(ends, time + timescale)
        if run == len(ends):
            return np.array(borders, np.int64)
        at = begin[run] - (before[run] - time - timescale) // values[run]
        if at >= runs.count:
            return np.array(borders, np.int64)
        time = before[run] + (at - begin[run]) * values[run]
        borders.append(at)
    return np.arange(0, runs.count, least)


def _sync(runs: SampleRuns, fragments: FragmentTable, expansion: Expansion | None) -> SyncTable:
    """The sync samples; where every one is, a row for each stretch of one duration and offset."""
    if runs.sync is None and runs.durations.constant and runs.offsets is None:
        numbers, dts, fragment = (np.zeros(1, np.int64) for _ in range(3))
        count, step = np.array([runs.count]), runs.durations.value * (runs.count > 1)
    elif runs.sync is None:
        # A row begins where durations or composition offsets change.
        steps = [runs.durations] if runs.offsets is None else [runs.durations, runs.offsets]
        numbers = np.sort(np.concatenate([[0], *(one.stop[:-1] for one in steps)]))
        numbers = numbers[begins(numbers)]
        count = np.diff(np.append(numbers, runs.count))
        step = np.where(count > 1, runs.durations.at(numbers), 0)
        dts = runs.dts_at(numbers)
        fragment = np.searchsorted(fragments.sample_start, numbers, side="right") - 1
    else:
        # A fragment begins with each; one more may stand before the first.
        numbers, before = runs.sync, len(fragments) - len(runs.sync)
        count, step = np.ones(len(numbers), np.int64), np.zeros(len(numbers), np.int64)
        dts, fragment = fragments.dts[before:], np.arange(before, len(fragments))
    return sync_table(
        cts=dts if runs.offsets is None else dts + runs.offsets.at(numbers),
        dts=dts,
        step=step,
        count=count,
        sample=numbers,
        fragment=fragment,
        sample_start=fragments.sample_start,
        expansion=expansion,
    )
