"""A clip as a progressive file: ftyp, a moov with sample tables and edit lists, one mdat.

Edit lists of progressive files are what players agree on: they show exactly what is requested.

A timecode sample of 4 bytes counts the frames up to its beginning, and lasts for many of them
(QuickTime File Format, Timecode Media). A clip begins inside one: that sample is rewritten, with
the frames that have passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor, lcm
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fragdex.boxes import Box, build, find, make_box, parse_box
from fragdex.boxes.limits import MAX_MOOV_SIZE
from fragdex.byterange import ByteRange
from fragdex.errors import BuildError
from fragdex.fragments.findings import Findings
from fragdex.fragments.table import FragmentFlags, Int64, SampleTable
from fragdex.fragments.track_info import Segment
from fragdex.indexing.movie import sample_tables
from fragdex.indexing.progressive import read_sample_runs
from fragdex.muxing.clip_fragments import Places, check_samples
from fragdex.muxing.clip_movie import (
    movie_brands,
    references,
    track_id,
    traks_of,
    with_chapters,
    with_next_id,
)
from fragdex.muxing.clip_samples import Ranges, TrimmedPart, described
from fragdex.muxing.clip_spans import FAR, FINEST, ClipPart, Reader, segments_of
from fragdex.seeking.model import Track

SIZE: Final = 4
ONE: Final = Fraction(1)
DROP_FRAME, DAY, NEGATIVE, COUNTER = 1, 2, 4, 8
"""Flags: numbers of frames are dropped; they start again after 24 hours; they may be negative; they
count something that lasts for several frames."""


class Counting(NamedTuple):
    """How timecode samples count.

    Attributes:
        flags: of the sample entry.
        timescale, frame_duration: ticks a second, and of a frame.
        frames: in a second of timecode; in one step, where the flags say that it is a counter.

    >>> Counting(0, 25, 1, 25).step
    Fraction(1, 25)
    """

    flags: int
    timescale: int
    frame_duration: int
    frames: int

    @property
    def step(self) -> Fraction:
        """Seconds after which samples count one more."""
        frames = max(self.frames, 1) if self.flags & COUNTER else 1
        return Fraction(self.frame_duration * frames, self.timescale)

    def later(self, sample: bytes, steps: int) -> bytes:
        r"""A sample that counts so many more.

        >>> Counting(DAY, 25, 1, 25).later((24 * 3600 * 25 - 1).to_bytes(4, "big"), 3)
        b'\x00\x00\x00\x02'
        """
        value = int.from_bytes(sample, "big", signed=bool(self.flags & NEGATIVE)) + steps
        if self.flags & DAY and self.frames:
            a_day = 24 * 3600 * self.frames
            if self.flags & DROP_FRAME:
                # of each 30 frames two numbers a minute, but for each tenth (SMPTE ST 12-1)
                a_day -= 24 * 54 * 2 * (self.frames // 30)
            value %= a_day
        return (value % WIDE).to_bytes(SIZE, "big")


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Timecode samples that are on show from `begin` to `stop` (seconds, exclusive).

    Attributes:
        at: media time at `begin`, in ticks.
        passed: whole steps of the first sample before `begin`.
        first: number of the first sample in the track.
    """

    counting: Counting
    begin: Fraction
    stop: Fraction
    at: Fraction
    passed: int
    first: int
    samples: SampleTable

    def made(self, source: Reader) -> dict[int, bytes]:
        """What its first sample becomes, by its number here."""
        if not self.passed:
            return {}
        place = ByteRange.of(int(self.samples.offset[0]), SIZE)
        return {0: self.counting.later(source.read(place), self.passed)}


def timecode_part(
    track: Track, trak: Box, start: Fraction, stop: Fraction, timescale: int, source: Reader
) -> ClipPart | str:
    """What a timecode track gives to a clip from `start` to `stop`, or why it gives nothing.

    Args:
        trak: of the source.
        start, stop: seconds of the source's presentation, in whole ticks of `timescale`.
        timescale: of the clip's movie.
        source: the media; of each sample that is rewritten, 4 bytes are read.

    Returns: "" where it has nothing to present.
    """
    stretches = _stretches(track, trak, start, stop, source)
    if isinstance(stretches, str):
        return stretches
    scale = lcm(track.timescale, *(one.begin.denominator for one in stretches))
    if scale > FINEST or (stop - start) * scale >= WIDE >> 1:
        scale = track.timescale  # times are rounded to it
    samples_made: dict[int, bytes] = {}
    edits: list[tuple[int, int, Fraction]] = []
    tables, numbers = [], []
    shown = decoded = count = 0
    for one in stretches:
        begin, end = (round((at - start) * timescale) for at in (one.begin, one.stop))
        if end <= max(begin, shown):
            continue
        if begin > shown:
            edits.append((begin - shown, -1, ONE))
        # The first sample begins with its step, which may be on show from its middle on.
        begun = int(one.samples.cts[0]) + one.counting.step * one.passed * track.timescale
        hidden = floor((one.at - begun) * scale / track.timescale)
        later = [
            hidden + round((tick - one.at) * scale / track.timescale)
            for tick in one.samples.cts[1:].tolist()
        ]
        times = np.array([0, *later], np.int64) + decoded
        length = hidden + ceil((one.stop - one.begin) * scale)
        durations = np.diff(times, append=max(decoded + length, int(times[-1]) + 1))
        columns = {"dts": times, "cts": times, "duration": durations}
        columns["sync"] = np.ones(len(times), np.bool_)
        tables.append(SampleTable.of(one.samples.columns() | columns))
        numbers.append(one.first + np.arange(len(times)))
        samples_made |= {count + number: sample for number, sample in one.made(source).items()}
        edits.append((end - max(begin, shown), decoded + hidden, ONE))
        shown, count = end, count + len(times)
        decoded += int(durations.sum())
    if not edits:
        return ""
    samples = SampleTable.concat(tables)
    return ClipPart(track, samples, np.concatenate(numbers), tuple(edits), scale, samples_made)


def timecode_cut(
    track: Track, trak: Box, start: Fraction, stop: Fraction, source: Reader
) -> TrimmedPart | str:
    """The same for fragments: the first sample begins at `start`, or at the next tick.

    Args: as those of `timecode_part`.
    """
    stretches = _stretches(track, trak, start, stop, source)
    if isinstance(stretches, str):
        return stretches
    if len(stretches) > 1:
        return "its edit list has several parts, and fragments cannot say that"
    (one,) = stretches
    samples, data = one.samples, one.made(source)
    end = ceil(one.at + (one.stop - one.begin) * track.timescale)
    times = np.append(ceil(one.at), samples.cts[1:])
    # Fragments cannot begin inside a step, so the rest of one is a sample by itself.
    after = int(samples.cts[0]) + one.counting.step * (one.passed + 1) * track.timescale
    whole = one.at == after - one.counting.step * track.timescale
    if not whole and times[0] < ceil(after) < np.append(times[1:], end)[0]:
        place = ByteRange.of(int(samples.offset[0]), SIZE)
        data[1] = one.counting.later(source.read(place), one.passed + 1)
        samples = SampleTable.concat([samples.rows(slice(0, 1)), samples])
        times = np.insert(times, 1, ceil(after))
    durations = np.diff(times, append=max(end, int(times[-1]) + 1))
    columns = {"dts": times, "cts": times, "duration": durations}
    return TrimmedPart(track, SampleTable.of(samples.columns() | columns), one.first, data)


def _stretches(
    track: Track, trak: Box, start: Fraction, stop: Fraction, source: Reader
) -> Sequence[_Stretch] | str:
    """What is on show of a track, or why that is unknown; "" where nothing is."""
    if track.info.encryption is not None:
        return "it is encrypted"
    stretches = []
    for segment in segments_of(track):
        begin = max(start, segment.start)
        end = stop if segment.stop is None else min(stop, segment.stop)
        if segment.media_time < 0 or begin >= end:
            continue
        if segment.rate != 1:
            return "its edit list shows it at another rate than 1"
        one = _stretch(track, trak, segment, begin, end, source)
        if isinstance(one, str):
            return one
        if one is not None:
            stretches.append(one)
    return stretches or ""


def _stretch(
    track: Track,
    trak: Box,
    segment: Segment,
    begin: Fraction,
    end: Fraction,
    source: Reader,
) -> _Stretch | str | None:
    low = segment.media_time + (begin - segment.start) * track.timescale
    high = low + (end - begin) * track.timescale
    table = track.fragments
    # The last sample may have no duration, if the muxer did not know how long the video would be.
    ends = np.where(np.arange(len(table)) < len(table) - 1, table.cts_end, FAR)
    rows = np.flatnonzero((table.cts_min < ceil(high)) & (ends > floor(low)))
    if not len(rows):
        return None
    row = int(rows[0])
    samples = source.budget.take(track, row, int(rows[-1]) + 1, row)
    ends = samples.cts + samples.duration
    if rows[-1] == len(table) - 1 and not samples.duration[-1]:
        ends[-1] = FAR
    shown = np.flatnonzero((samples.cts < ceil(high)) & (ends > floor(low)))
    if not len(shown):
        return None
    first = int(table.sample_start[row]) + int(shown[0])
    samples = samples.rows(slice(int(shown[0]), int(shown[-1]) + 1))
    if (samples.size != SIZE).any():
        return f"its samples do not have {SIZE} bytes each"
    if (samples.offset + samples.size > (FAR if source.size is None else source.size)).any():
        return "the file ends before its samples"
    counting = _counting(trak, first)
    if counting is None:
        return "its sample entry does not say how long a frame is"
    at = max(low, Fraction(int(samples.cts[0])))
    last = min(high, Fraction(int(ends[shown[-1]])))
    passed = floor((at - int(samples.cts[0])) / track.timescale / counting.step)
    begin += (at - low) / track.timescale
    end -= (high - last) / track.timescale
    return _Stretch(counting, begin, end, at, passed, first, samples) if begin < end else None


def _counting(trak: Box, number: int) -> Counting | None:
    """How a sample counts, by its number."""
    stsd = trak.find("mdia/minf/stbl/stsd")
    entries = [] if stsd is None else stsd.children
    description = int(described(trak, np.array([number]))[0])
    if not 0 < description <= len(entries) or "frame_duration" not in entries[description - 1]:
        return None
    entry = entries[description - 1]
    names = ("time_code_flags", "timescale", "frame_duration", "number_of_frames")
    counting = Counting(*(int(entry[name]) for name in names))
    return counting if counting.timescale and counting.frame_duration else None


Rows = npt.NDArray[np.void]
CHUNK_SECONDS = 1
"""Pictures and sound of so many seconds lie together."""
WIDE = 1 << 32


def progressive(
    parts: Sequence[ClipPart], boxes: Sequence[Box], timescale: int, start: Fraction
) -> tuple[bytes, Ranges]:
    """What the clip consists of, checked: every sample is where the tables say.

    Args:
        parts: at least one; `unfit` says nothing against them.
        boxes: the source's ftyp and moov.
        timescale: of the movie; edits count in it.
        start: seconds of the source's presentation at which the clip begins.
    """
    moov = find(boxes, "moov")
    assert moov is not None  # unfit has found the tracks in it
    traks = traks_of(boxes)
    chunks = [_chunks(part, traks[part.track.id]) for part in parts]
    # of each part, where its chunks begin in the mdat, by their first sample
    places: list[dict[int, int]] = [{} for _ in parts]
    remade = b""
    for part, mine in zip(parts, places, strict=True):
        for number, sample in part.made.items():
            mine[number] = len(remade)
            remade += sample
    at = len(remade)
    order = sorted(
        (when, number, low, high)
        for number, rows in enumerate(chunks)
        for when, low, high, _ in rows
        if low not in parts[number].made
    )
    behind = [np.append(0, np.cumsum(part.samples.size)) for part in parts]
    for _, number, low, high in order:
        places[number][low] = at
        at += int(behind[number][high] - behind[number][low])
    none = np.zeros(0, np.int64)
    media = Ranges.joined(
        np.concatenate([none, *(parts[n].samples.offset[low:high] for _, n, low, high in order)]),
        np.concatenate([none, *(parts[n].samples.size[low:high] for _, n, low, high in order)]),
    )
    header = (at + 8).to_bytes(4, "big") + b"mdat"
    if at + 8 >= WIDE:
        header = b"\0\0\0\1mdat" + (at + 16).to_bytes(8, "big")
    brands = movie_brands(boxes)

    # Boxes hold these very rows: they are moved when the size of the moov is known.
    code, width = ("co64", ">u8") if at >= WIDE - MAX_MOOV_SIZE else ("stco", ">u4")
    offsets = [
        np.array([mine[low] for _, low, _, _ in rows], [("chunk_offset", width)])
        for mine, rows in zip(places, chunks, strict=True)
    ]
    tables = {
        part.track.id: [*_tables(part, rows), make_box(code, entries=mine)]
        for part, rows, mine in zip(parts, chunks, offsets, strict=True)
    }
    written = _moov(moov, {part.track.id: part for part in parts}, tables, timescale, start)
    begin = len(brands) + len(build(written)) + len(header)
    for rows in offsets:
        rows["chunk_offset"] += begin
    head = brands + build(written) + header + remade
    _check(head, len(brands), parts, media)
    return head, media


def unfit(parts: Sequence[ClipPart], boxes: Sequence[Box]) -> str:
    """Why sample tables cannot hold these samples; "" where they can.

    Decode times may not fall back, values have their fields' widths, and which of several sample
    descriptions a fragment uses is not known here.
    """
    traks = traks_of(boxes)
    for part in parts:
        deltas, offsets = _times(part.samples)
        for name, column, limit in (
            ("sample_delta", deltas, WIDE),
            ("sample_offset", offsets, WIDE >> 1),
            ("entry_size", part.samples.size, WIDE),
        ):
            if (column < 0).any() or (column >= limit).any():
                return f"{name} of track {part.track.id} does not fit into sample tables"
        trak = traks.get(part.track.id)
        stsd = None if trak is None else trak.find("mdia/minf/stbl/stsd")
        if stsd is None:
            return f"the moov describes no samples of track {part.track.id}"
        virtual = (part.track.fragments.flags & FragmentFlags.VIRTUAL) != 0
        if len(stsd.children) > 1 and not virtual.all():
            return f"fragments of track {part.track.id} have several sample descriptions"
    return ""


def _times(samples: SampleTable) -> tuple[Int64, Int64]:
    """Distance in decode time to the next sample, and composition offset, of each sample."""
    deltas = np.append(np.diff(samples.dts), samples.duration[-1:])
    return deltas, samples.cts - samples.dts


def _check(head: bytes, moov: int, parts: Sequence[ClipPart], media: Ranges) -> None:
    """Read the moov again, at its place in the head, and follow each sample back to the source."""
    ends = len(head) + np.cumsum(media.size)
    copied = Places(ends - media.size, media.start)
    size = int(ends[-1]) if len(ends) else len(head)
    tables = sample_tables(parse_box(head[moov:]))
    for part in parts:
        runs = read_sample_runs(tables[part.track.id], part.track.id, Findings(), file_end=size)
        read = SampleTable.empty() if runs is None else runs.expand(0, runs.count)
        wanted = part.samples
        if part.made:
            for number, sample in part.made.items():
                at = int(read.offset[number]) if number < len(read) else 0
                if head[at : at + len(sample)] != sample:
                    raise BuildError("a sample that was made is not where the tables say")
            from_source = ~np.isin(np.arange(len(wanted)), list(part.made))
            wanted, read = wanted.rows(from_source), read.rows(from_source[: len(read)])
        check_samples(wanted, read, copied, part.track.id)


Chunk = tuple[float, int, int, int]
"""Second at which it is decoded, first and last (exclusive) sample, sample description."""


def _chunks(part: ClipPart, trak: Box) -> list[Chunk]:
    samples = part.samples
    description = part.descriptions
    if description is None:
        description = described(trak, part.numbers)
    turn = samples.dts // (CHUNK_SECONDS * part.timescale)
    changes = np.flatnonzero((np.diff(turn) != 0) | (np.diff(description) != 0)) + 1
    alone = {at for number in part.made for at in (number, number + 1)}
    edges = sorted({0, *changes.tolist(), *alone, len(samples)})
    return [(float(turn[low]), low, high, int(description[low])) for low, high in pairwise(edges)]


def _tables(part: ClipPart, chunks: Sequence[Chunk]) -> list[Box]:
    """The sample tables, less the one that says where chunks are."""
    samples = part.samples
    deltas, offsets = _times(samples)
    boxes = [make_box("stts", entries=runs_of(deltas, "sample_delta"))]
    if offsets.any():
        boxes.append(make_box("ctts", entries=runs_of(offsets, "sample_offset")))
    if not samples.sync.all():
        numbers = np.flatnonzero(samples.sync) + 1
        boxes.append(make_box("stss", entries=rows_of(sample_number=numbers)))
    boxes.append(make_box("stsc", entries=_sample_to_chunk(chunks)))
    boxes.append(sizes_box(samples.size))
    return boxes + _roll(part)


def sizes_box(sizes: Int64) -> Box:
    """Readers of raw sound want one size for all samples where they have one."""
    if sizes[0] and (sizes == sizes[0]).all():
        return make_box("stsz", sample_size=int(sizes[0]), sample_count=len(sizes))
    return make_box("stsz", entries=rows_of(entry_size=sizes))


def runs_of(values: Int64, name: str) -> Rows:
    """(how many, value) of equal neighbours."""
    edges = np.concatenate([[0], np.flatnonzero(np.diff(values)) + 1, [len(values)]])
    return rows_of(sample_count=np.diff(edges), **{name: values[edges[:-1]]})


def rows_of(**columns: Int64) -> Rows:
    """Columns as rows of a table of 32 bits; a long track has millions."""
    rows = np.empty(len(next(iter(columns.values()))), [(name, ">u4") for name in columns])
    for name, column in columns.items():
        rows[name] = column
    return rows


def _sample_to_chunk(chunks: Sequence[Chunk]) -> list[tuple[int, int, int]]:
    entries: list[tuple[int, int, int]] = []
    for number, (_, low, high, description) in enumerate(chunks, 1):
        if not entries or entries[-1][1:] != (high - low, description):
            entries.append((number, high - low, description))
    return entries


def _roll(part: ClipPart) -> list[Box]:
    """Pre-roll, where the source says one distance for all of these samples (10.1)."""
    groups = [group for group in part.track.groups if group.grouping_type == "roll"]
    reached = np.zeros(len(part.numbers), np.bool_)
    for group in groups:
        behind = group.sample_start + group.sample_count
        reached |= (part.numbers >= group.sample_start) & (part.numbers < behind)
    distances = {group.value for group in groups}
    if len(distances) != 1 or not reached.all():
        return []
    distance = distances.pop().to_bytes(2, "big", signed=True)
    return [
        make_box(
            "sgpd",
            version=1,
            grouping_type="roll",
            default_length=2,
            entries=[{"data": distance}],
        ),
        make_box("sbgp", grouping_type="roll", entries=[(len(reached), 1)]),
    ]


def _moov(
    moov: Box,
    parts: dict[int, ClipPart],
    tables: dict[int, list[Box]],
    timescale: int,
    start: Fraction,
) -> Box:
    duration = max(part.duration for part in parts.values())
    children = []
    for child in moov:
        if child.type == "mvhd":
            child = with_duration(child, duration, timescale=timescale)
        elif child.type == "trak":
            part = parts.get(track_id(child))
            if part is None:
                continue
            child = _trak(child, part, tables[part.track.id], set(parts), timescale)
        elif child.type in ("mvex", "iods"):
            continue
        elif child.type == "udta":
            child = with_chapters(child, start, start + Fraction(duration, timescale))
        children.append(child)
    return with_next_id(moov.replace(children=children, size_form="compact"))


def with_duration(box: Box, duration: int, **fields: Any) -> Box:
    """A header box with another duration, in the version that has room for it."""
    version = 1 if duration >= WIDE - 1 else box["version"]
    return box.replace(version=version, duration=duration, **fields)


def _trak(trak: Box, part: ClipPart, tables: list[Box], ids: set[int], timescale: int) -> Box:
    children = []
    for child in trak:
        if child.type == "edts":
            continue
        if child.type == "tref":
            child = references(child, ids)
            if not child.children:
                continue
        elif child.type == "mdia":
            child = _mdia(child, part, tables, timescale)
        if child.type == "tkhd":
            children += [with_duration(child, part.duration), _edts(part)]
        else:
            children.append(child)
    return trak.replace(children=children)


def _edts(part: ClipPart) -> Box:
    wide = any(d >= WIDE or t >= WIDE >> 1 for d, t, _ in part.edits)
    rows: list[Any] = []
    for duration, media_time, rate in part.edits:
        fixed = round(rate * 65536)
        fraction = fixed & 0xFFFF
        rows.append((duration, media_time, fixed >> 16, fraction - (fraction >> 15 << 16)))
    return make_box("edts", children=[make_box("elst", version=int(wide), entries=rows)])


def _mdia(mdia: Box, part: ClipPart, tables: list[Box], timescale: int) -> Box:
    samples = part.samples
    length = int(samples.dts[-1] + samples.duration[-1])
    # FFmpeg takes the lesser of this and the edits, empty ones included, for the track's length.
    if part.edits[0][1] < 0:
        shown = sum(ticks for ticks, media_time, _ in part.edits if media_time >= 0)
        length = min(length, -(-shown * part.timescale // timescale))
    children = []
    for child in mdia:
        if child.type == "mdhd":
            child = with_duration(child, length, timescale=part.timescale)
        elif child.type == "minf":
            inner = [with_tables(box, tables) if box.type == "stbl" else box for box in child]
            child = child.replace(children=inner)
        children.append(child)
    return mdia.replace(children=children)


def with_tables(stbl: Box, tables: list[Box]) -> Box:
    """Sample descriptions as they are, with other sample tables."""
    stsd = stbl.find("stsd")
    return stbl.replace(children=([] if stsd is None else [stsd]) + tables)
