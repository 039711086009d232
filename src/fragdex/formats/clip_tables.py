"""A clip as a progressive file: ftyp, a moov with sample tables and edit lists, one mdat.

Edit lists of progressive files are what players agree on: they show exactly what is asked for.
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
from fragdex.formats.clip_chapters import with_chapters
from fragdex.formats.clip_movie import movie_brands, references, track_id, traks_of, with_next_id
from fragdex.formats.clip_samples import Ranges, described
from fragdex.formats.clip_spans import Part
from fragdex.formats.copy_check import Places, check_samples
from fragdex.fragments.findings import Findings
from fragdex.fragments.table import FragmentFlags, Int64, SampleTable
from fragdex.indexing.movie import sample_tables
from fragdex.indexing.progressive import read_sample_runs

__all__ = ["progressive", "unfit"]

Rows = npt.NDArray[np.void]
CHUNK_SECONDS = 1
"""Pictures and sound of so many seconds lie together."""
WIDE = 1 << 32


def progressive(
    parts: Sequence[Part], boxes: Sequence[Box], timescale: int, start: Fraction
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
    made = b""
    for part, mine in zip(parts, places, strict=True):
        for number, sample in part.made.items():
            mine[number] = len(made)
            made += sample
    at = len(made)
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
    head = brands + build(written) + header + made
    _check(head, len(brands), parts, media)
    return head, media


def unfit(parts: Sequence[Part], boxes: Sequence[Box]) -> str:
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


def _check(head: bytes, moov: int, parts: Sequence[Part], media: Ranges) -> None:
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
            kept = ~np.isin(np.arange(len(wanted)), list(part.made))
            wanted, read = wanted.rows(kept), read.rows(kept[: len(read)])
        check_samples(wanted, read, copied, part.track.id)


Chunk = tuple[float, int, int, int]
"""Second at which it is decoded, first and last (exclusive) sample, sample description."""


def _chunks(part: Part, trak: Box) -> list[Chunk]:
    samples = part.samples
    description = described(trak, part.numbers)
    turn = samples.dts // (CHUNK_SECONDS * part.timescale)
    changes = np.flatnonzero((np.diff(turn) != 0) | (np.diff(description) != 0)) + 1
    alone = {at for number in part.made for at in (number, number + 1)}
    edges = sorted({0, *changes.tolist(), *alone, len(samples)})
    return [(float(turn[low]), low, high, int(description[low])) for low, high in pairwise(edges)]


def _tables(part: Part, chunks: Sequence[Chunk]) -> list[Box]:
    """The sample tables, less the one that says where chunks are."""
    samples = part.samples
    deltas, offsets = _times(samples)
    made = [make_box("stts", entries=_runs(deltas, "sample_delta"))]
    if offsets.any():
        made.append(make_box("ctts", entries=_runs(offsets, "sample_offset")))
    if not samples.sync.all():
        numbers = np.flatnonzero(samples.sync) + 1
        made.append(make_box("stss", entries=_rows(sample_number=numbers)))
    made.append(make_box("stsc", entries=_sample_to_chunk(chunks)))
    made.append(_sizes(samples.size))
    return made + _roll(part)


def _sizes(sizes: Int64) -> Box:
    """Readers of raw sound want one size for all samples where they have one."""
    if sizes[0] and (sizes == sizes[0]).all():
        return make_box("stsz", sample_size=int(sizes[0]), sample_count=len(sizes))
    return make_box("stsz", entries=_rows(entry_size=sizes))


def _runs(values: Int64, name: str) -> Rows:
    """(how many, value) of equal neighbours."""
    edges = np.concatenate([[0], np.flatnonzero(np.diff(values)) + 1, [len(values)]])
    return _rows(sample_count=np.diff(edges), **{name: values[edges[:-1]]})


def _rows(**columns: Int64) -> Rows:
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


def _roll(part: Part) -> list[Box]:
    """Pre-roll, where the source says one distance for all of these samples (10.1)."""
    groups = [group for group in part.track.groups if group.grouping_type == "roll"]
    held = np.zeros(len(part.numbers), np.bool_)
    for group in groups:
        behind = group.sample_start + group.sample_count
        held |= (part.numbers >= group.sample_start) & (part.numbers < behind)
    distances = {group.value for group in groups}
    if len(distances) != 1 or not held.all():
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
        make_box("sbgp", grouping_type="roll", entries=[(len(held), 1)]),
    ]


def _moov(
    moov: Box,
    parts: dict[int, Part],
    tables: dict[int, list[Box]],
    timescale: int,
    start: Fraction,
) -> Box:
    duration = max(part.duration for part in parts.values())
    children = []
    for child in moov:
        if child.type == "mvhd":
            child = _with_duration(child, duration, timescale=timescale)
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


def _with_duration(box: Box, duration: int, **fields: Any) -> Box:
    version = 1 if duration >= WIDE - 1 else box["version"]
    return box.replace(version=version, duration=duration, **fields)


def _trak(trak: Box, part: Part, tables: list[Box], ids: set[int], timescale: int) -> Box:
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
            children += [_with_duration(child, part.duration), _edts(part)]
        else:
            children.append(child)
    return trak.replace(children=children)


def _edts(part: Part) -> Box:
    wide = any(d >= WIDE or t >= WIDE >> 1 for d, t, _ in part.edits)
    rows: list[Any] = []
    for duration, media_time, rate in part.edits:
        fixed = round(rate * 65536)
        fraction = fixed & 0xFFFF
        rows.append((duration, media_time, fixed >> 16, fraction - (fraction >> 15 << 16)))
    return make_box("edts", children=[make_box("elst", version=int(wide), entries=rows)])


def _mdia(mdia: Box, part: Part, tables: list[Box], timescale: int) -> Box:
    samples = part.samples
    length = int(samples.dts[-1] + samples.duration[-1])
    # FFmpeg takes the lesser of this and the edits, empty ones included, for the track's length.
    if part.edits[0][1] < 0:
        shown = sum(ticks for ticks, media_time, _ in part.edits if media_time >= 0)
        length = min(length, -(-shown * part.timescale // timescale))
    children = []
    for child in mdia:
        if child.type == "mdhd":
            child = _with_duration(child, length, timescale=part.timescale)
        elif child.type == "minf":
            inner = [_stbl(box, tables) if box.type == "stbl" else box for box in child]
            child = child.replace(children=inner)
        children.append(child)
    return mdia.replace(children=children)


def _stbl(stbl: Box, tables: list[Box]) -> Box:
    stsd = stbl.find("stsd")
    return stbl.replace(children=([] if stsd is None else [stsd]) + tables)
