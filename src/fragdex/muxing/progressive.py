"""The writer of progressive files: ftyp, a moov with sample tables and edit lists, one mdat.

Edit lists of progressive files are what players agree on: they show exactly what is requested.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from fragdex.boxes import Box, build, find, make_box, parse_box
from fragdex.boxes.limits import MAX_MOOV_SIZE
from fragdex.errors import BuildError
from fragdex.fragments.findings import Findings
from fragdex.fragments.table import FragmentFlags, Int64, SampleTable
from fragdex.indexing.movie import sample_tables
from fragdex.indexing.progressive import read_sample_runs
from fragdex.muxing.clip_fragments import Places, check_samples
from fragdex.muxing.movie import (
    described,
    movie_brands,
    references,
    track_id,
    traks_of,
    with_chapters,
    with_next_id,
)
from fragdex.muxing.plan import PlannedTrack
from fragdex.muxing.view import Scattered

Rows = npt.NDArray[np.void]
CHUNK_SECONDS = 1
"""Pictures and sound of so many seconds lie together."""
WIDE = 1 << 32


def progressive(
    parts: Sequence[PlannedTrack], boxes: Sequence[Box], timescale: int, start: Fraction
) -> tuple[bytes, Scattered]:
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
    media = Scattered.joined(
        0,
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


def unfit(parts: Sequence[PlannedTrack], boxes: Sequence[Box]) -> str:
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


def _check(head: bytes, moov: int, parts: Sequence[PlannedTrack], media: Scattered) -> None:
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


def _chunks(part: PlannedTrack, trak: Box) -> list[Chunk]:
    samples = part.samples
    description = part.descriptions
    if description is None:
        description = described(trak, part.source_numbers)
    turn = samples.dts // (CHUNK_SECONDS * part.timescale)
    changes = np.flatnonzero((np.diff(turn) != 0) | (np.diff(description) != 0)) + 1
    alone = {at for number in part.made for at in (number, number + 1)}
    edges = sorted({0, *changes.tolist(), *alone, len(samples)})
    return [(float(turn[low]), low, high, int(description[low])) for low, high in pairwise(edges)]


def _tables(part: PlannedTrack, chunks: Sequence[Chunk]) -> list[Box]:
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


def _roll(part: PlannedTrack) -> list[Box]:
    """Pre-roll, where the source says one distance for all of these samples (10.1)."""
    numbers = part.source_numbers
    groups = [group for group in part.track.groups if group.grouping_type == "roll"]
    reached = np.zeros(len(part.source_numbers), np.bool_)
    for group in groups:
        behind = group.sample_start + group.sample_count
        reached |= (numbers >= group.sample_start) & (numbers < behind)
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
    parts: dict[int, PlannedTrack],
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


def _trak(trak: Box, part: PlannedTrack, tables: list[Box], ids: set[int], timescale: int) -> Box:
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


def _edts(part: PlannedTrack) -> Box:
    wide = any(d >= WIDE or t >= WIDE >> 1 for d, t, _ in part.edits)
    rows: list[Any] = []
    for duration, media_time, rate in part.edits:
        fixed = round(rate * 65536)
        fraction = fixed & 0xFFFF
        rows.append((duration, media_time, fixed >> 16, fraction - (fraction >> 15 << 16)))
    return make_box("edts", children=[make_box("elst", version=int(wide), entries=rows)])


def _mdia(mdia: Box, part: PlannedTrack, tables: list[Box], timescale: int) -> Box:
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
