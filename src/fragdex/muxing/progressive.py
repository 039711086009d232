"""The writer of progressive files: ftyp, a moov with sample tables and edit lists, one mdat.

Edit lists of progressive files are what players agree on: they show exactly what is requested.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fragdex.boxes import Box, build, find, make_box, parse, parse_box
from fragdex.boxes.box import with_changes
from fragdex.boxes.limits import MAX_MOOV_SIZE
from fragdex.errors import BuildError
from fragdex.fragments.findings import Findings
from fragdex.fragments.table import Int64, SampleTable
from fragdex.indexing.movie import sample_tables
from fragdex.indexing.progressive import read_sample_runs
from fragdex.muxing.between import Trafs
from fragdex.muxing.clip_fragments import Places, check_samples
from fragdex.muxing.groups import descriptions_of_groups, groupings_of
from fragdex.muxing.kept import Kept
from fragdex.muxing.movie import (
    described,
    movie_brands,
    protected_entries,
    references,
    track_id,
    traks_of,
    with_chapters,
    with_next_id,
)
from fragdex.muxing.plan import Plan, PlannedTrack
from fragdex.muxing.subsamples import with_subsamples
from fragdex.muxing.view import Scattered

CHUNK_SECONDS = 1
"""Pictures and sound of so many seconds lie together."""
WIDE = 1 << 32


class Chunks(NamedTuple):
    """Where the samples of a track lie in the mdat of an output.

    Attributes:
        first: int64 row that each chunk begins with.
        place: int64 byte of the mdat's payload at which it begins.
        description: int64 sample description of each.
    """

    first: Int64
    place: Int64
    description: Int64


def clip_movie(
    plan: Plan, boxes: Sequence[Box], timescale: int, kept: Kept
) -> tuple[bytes, Scattered, list[Box]]:
    """A progressive file of samples of one source, a second of each track after the other.

    Args:
        plan: `unfit` says nothing against its tracks.

    Returns: all in front of the samples that are copied, where these lie, and its ftyp and moov.
    """
    moov = find(boxes, "moov")
    assert moov is not None  # unfit has found the tracks in it
    traks = traks_of(boxes)
    trafs = plan.between.trafs
    parts = [_described(part, traks[part.track.id], trafs) for part in plan.tracks]
    turns = list(map(_turns, parts))
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
        for number, rows in enumerate(turns)
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
    chunks = [
        Chunks(
            np.array([low for _, low, _, _ in rows]),
            np.array([mine[low] for _, low, _, _ in rows]),
            np.array([description for _, _, _, description in rows]),
        )
        for mine, rows in zip(places, turns, strict=True)
    ]
    moov = with_changes(moov, {"udta": partial(with_chapters, kept=kept)})
    brands = movie_brands(boxes)
    head, moov = movie(brands, moov, parts, chunks, media, timescale, remade)
    return head, media, [*parse(brands), moov]


def movie(
    brands: bytes,
    moov: Box,
    parts: Sequence[PlannedTrack],
    chunks: Sequence[Chunks],
    media: Scattered,
    timescale: int,
    remade: bytes = b"",
) -> tuple[bytes, Box]:
    """All of a progressive file in front of the samples that are copied, checked, and its moov.

    Args:
        moov: whose boxes describe the tracks; what speaks of their samples is written again.
        timescale: of the movie; edits count in it.
        remade: what stands in the mdat before that.
    """
    payload = len(remade) + int(media.size.sum())
    header = (payload + 8).to_bytes(4, "big") + b"mdat"
    if payload + 8 >= WIDE:
        header = b"\0\0\0\1mdat" + (payload + 16).to_bytes(8, "big")
    # Boxes hold these very rows: they are moved when the size of the moov is known.
    wide = payload >= WIDE - MAX_MOOV_SIZE
    tables = {
        part.track.id: tables_of(part, rows, wide) for part, rows in zip(parts, chunks, strict=True)
    }
    written = _moov(moov, {part.track.id: part for part in parts}, tables, timescale)
    begin = len(brands) + len(build(written)) + len(header)
    for boxes in tables.values():
        boxes[-1]["entries"]["chunk_offset"] += begin
    head = brands + build(written) + header + remade
    _check(head, len(brands), parts, media)
    return head, written


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
        if trak is not None and len(stsd.children) > 1 and not part.track.extent.is_virtual:
            if protected_entries(trak):
                return f"samples of track {part.track.id} are encrypted"
            described(part.track, trak, part.source_numbers[:1])
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
    tables = sample_tables(parse_box(memoryview(head)[moov:]))
    for part in parts:
        if part.unit:
            continue  # an hour of sound that is not coded has 170 million samples
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


Turn = tuple[float, int, int, int]
"""Second at which it is decoded, first and last (exclusive) sample, sample description."""


def _turns(part: PlannedTrack) -> list[Turn]:
    """The samples that lie together when tracks take turns."""
    samples = part.samples
    description = part.descriptions
    if description is None:
        description = np.ones(len(part), np.int64)
    turn = samples.dts // (CHUNK_SECONDS * part.timescale)
    changes = np.flatnonzero((np.diff(turn) != 0) | (np.diff(description) != 0)) + 1
    alone = {at for number in part.made for at in (number, number + 1)}
    edges = sorted({0, *changes.tolist(), *alone, len(samples)})
    return [(float(turn[low]), low, high, int(description[low])) for low, high in pairwise(edges)]


def tables_of(part: PlannedTrack, chunks: Chunks, wide: bool) -> list[Box]:
    """The sample tables of a track; the last one places chunks from the mdat's payload on."""
    counts, (deltas, offsets) = part.counts, _times(part.samples)
    boxes = [make_box("stts", entries=_durations(part, counts, deltas))]
    if offsets.any():
        boxes.append(_composition(offsets))
    if not part.samples.sync.all():
        numbers = np.flatnonzero(part.samples.sync) + 1
        boxes.append(make_box("stss", entries=_rows(sample_number=numbers)))
    if part.dependence is not None:
        size = 12 + len(part.dependence)
        boxes.append(parse_box(struct.pack(">I4sI", size, b"sdtp", 0) + part.dependence.tobytes()))
    boxes += [parse_box(data) for one in part.subsamples if (data := one.box(0, len(part)))]
    many = np.add.reduceat(counts, chunks.first)
    changed = (np.diff(many) != 0) | (np.diff(chunks.description) != 0)
    heads = np.append(0, np.flatnonzero(changed) + 1)
    rows = _rows(
        first_chunk=heads + 1,
        samples_per_chunk=many[heads],
        sample_description_index=chunks.description[heads],
    )
    boxes.append(make_box("stsc", entries=rows))
    if part.unit:
        boxes.append(make_box("stsz", sample_size=part.unit, sample_count=part.count))
    else:
        boxes.append(_sizes(part.samples.size))
    places = np.empty(len(chunks.place), [("chunk_offset", ">u8" if wide else ">u4")])
    places["chunk_offset"] = chunks.place
    return [*boxes, *_groups(part), make_box("co64" if wide else "stco", entries=places)]


def _durations(part: PlannedTrack, counts: Int64, deltas: Int64) -> Rows:
    """How long samples last; where a row stands for several, the last of them lasts longer."""
    if not part.unit:
        return _runs(deltas, "sample_delta")
    each = part.durations // counts
    last = deltas - (counts - 1) * each
    pairs = np.stack([np.stack([counts - 1, each]), np.stack([np.ones_like(counts), last])], axis=2)
    count, delta = pairs.reshape(2, -1)
    count, delta = count[count > 0], delta[count > 0]
    heads = np.append(0, np.flatnonzero(np.diff(delta)) + 1)
    return _rows(sample_count=np.add.reduceat(count, heads), sample_delta=delta[heads])


def _composition(offsets: Int64) -> Box:
    if (offsets >= 0).all():
        return make_box("ctts", entries=_runs(offsets, "sample_offset"))
    signed = _runs(offsets, "sample_offset", ">i4")
    return make_box("ctts", version=1, entries=signed)


def _sizes(sizes: Int64) -> Box:
    """Readers of raw sound want one size for all samples where they have one."""
    if sizes[0] and (sizes == sizes[0]).all():
        return make_box("stsz", sample_size=int(sizes[0]), sample_count=len(sizes))
    return make_box("stsz", entries=_rows(entry_size=sizes))


Rows = npt.NDArray[np.void]


def _runs(values: Int64, name: str, width: str = ">u4") -> Rows:
    """(how many, value) of equal neighbours."""
    edges = np.concatenate([[0], np.flatnonzero(np.diff(values)) + 1, [len(values)]])
    rows = np.empty(len(edges) - 1, [("sample_count", ">u4"), (name, width)])
    rows["sample_count"], rows[name] = np.diff(edges), values[edges[:-1]]
    return rows


def _rows(**columns: Int64) -> Rows:
    """Columns as rows of a table of 32 bits; a long track has millions."""
    rows = np.empty(len(next(iter(columns.values()))), [(name, ">u4") for name in columns])
    for name, column in columns.items():
        rows[name] = column
    return rows


def _described(part: PlannedTrack, trak: Box, trafs: Trafs) -> PlannedTrack:
    """With the groups that its samples are in, and their descriptions, where no others are made."""
    groups = groupings_of(part.track, trak, part.source_numbers, trafs)
    part = replace(part, groups=groups, dependence=_dependence(part, trak))
    part = with_subsamples(part, trak, trafs)
    if part.descriptions is not None:
        return part
    return replace(part, descriptions=described(part.track, trak, part.source_numbers))


def _dependence(part: PlannedTrack, trak: Box) -> npt.NDArray[np.uint8] | None:
    """What the sdtp says of the samples (ISO/IEC 14496-12, 8.6.4); of made ones nothing."""
    sdtp, numbers = trak.find("mdia/minf/stbl/sdtp"), part.source_numbers
    if sdtp is None or part.unit or not len(numbers):
        return None
    said = np.frombuffer(build(sdtp), np.uint8)[sdtp.header_size + 4 :]
    if int(numbers.max()) >= len(said):
        return None
    dependence = said[numbers]
    dependence[[*part.made]] = 0
    return dependence


def _groups(part: PlannedTrack) -> list[Box]:
    members = [(one, one.box(0, len(part))) for one in part.groups]
    used = [one for one, box in members if box is not None]
    return [*descriptions_of_groups(used), *(box for _, box in members if box is not None)]


def _moov(
    moov: Box,
    parts: dict[int, PlannedTrack],
    tables: dict[int, list[Box]],
    timescale: int,
) -> Box:
    duration = max(part.duration for part in parts.values())
    ids = set(parts)

    def trak(box: Box) -> Box | Sequence[Box]:
        part = parts.get(track_id(box))
        return () if part is None else _trak(box, part, tables[part.track.id], ids, timescale)

    moov = with_changes(
        moov,
        {
            "mvhd": partial(with_duration, duration=duration, timescale=timescale),
            "trak": trak,
            "mvex": _nothing,
            "iods": _nothing,
        },
    )
    return with_next_id(moov.replace(size_form="compact"))


def _nothing(_: Box) -> Sequence[Box]:
    return ()


def with_duration(box: Box, duration: int, **fields: Any) -> Box:
    """A header box with another duration, in the version that has room for it."""
    version = 1 if duration >= WIDE - 1 else box["version"]
    return box.replace(version=version, duration=duration, **fields)


def _trak(trak: Box, part: PlannedTrack, tables: list[Box], ids: set[int], timescale: int) -> Box:
    samples = part.samples
    length = int(samples.dts[-1] + samples.duration[-1])
    # FFmpeg takes the lesser of this and the edits, empty ones included, for the track's length.
    if part.timescale and part.edits and part.edits[0][1] < 0:
        shown = sum(ticks for ticks, media_time, _ in part.edits if media_time >= 0)
        length = min(length, -(-shown * part.timescale // timescale))

    def tref(box: Box) -> Sequence[Box]:
        here = references(box, ids)
        return [here] if here.children else []

    def tkhd(box: Box) -> Sequence[Box]:
        edts = [_edts(part)] if part.edits else []
        return [with_duration(box, part.duration), *edts]

    def mdhd(box: Box) -> Box:
        return with_duration(box, length, timescale=part.timescale or box["timescale"])

    def stbl(box: Box) -> Box:
        stsd = box.find("stsd")
        return box.replace(children=([] if stsd is None else [stsd]) + tables)

    changes = {"edts": _nothing, "tref": tref, "tkhd": tkhd}
    return with_changes(trak, changes | {"mdia/mdhd": mdhd, "mdia/minf/stbl": stbl})


def _edts(part: PlannedTrack) -> Box:
    wide = any(d >= WIDE or t >= WIDE >> 1 for d, t, _ in part.edits)
    rows: list[Any] = []
    for duration, media_time, rate in part.edits:
        fixed = round(rate * 65536)
        fraction = fixed & 0xFFFF
        rows.append((duration, media_time, fixed >> 16, fraction - (fraction >> 15 << 16)))
    return make_box("edts", children=[make_box("elst", version=int(wide), entries=rows)])
