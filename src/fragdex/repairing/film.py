"""The repaired file: a moov made of what the walk found, and the source's bytes after it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import takewhile
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fragdex.boxes import Box, build, make_box
from fragdex.boxes.limits import MAX_MOOV_SIZE
from fragdex.byterange import ByteRange
from fragdex.fragments.table import Int64, SampleTable
from fragdex.muxing.media import media_type
from fragdex.muxing.movie import movie_brands, references, track_id, with_next_id
from fragdex.muxing.progressive import (
    WIDE,
    rows_of,
    runs_of,
    sizes_box,
    with_duration,
    with_tables,
)
from fragdex.muxing.view import Block, Scattered, SourceRange, View
from fragdex.repairing.pattern import Pattern
from fragdex.seeking.origin import FileInfo

TOGETHER: Final = 1024
"""Ranges of the source that are one block of the view."""
LEFT_OUT: Final = ("mvex", "iods", "udta", "meta", "edts")
"""Boxes of the good file that say nothing of another one."""
DATES: Final = ("creation_time", "modification_time")

Bool = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Recovered:
    """Samples of a track that were found, in decode order.

    Attributes:
        pattern: the track of the good file that they are like.
        offset, size: int64 columns; of `unit` bytes each, a row is a run of samples.
        dts, cts: int64 decode and composition times of the rows, in ticks.
        sync: bool column.
        unit: bytes of each sample, where a row stands for several; 0: for one.
        media_time: what the edit list takes off, in ticks.
        lead: seconds by which it begins after the track that begins first.
    """

    pattern: Pattern
    offset: Int64
    size: Int64
    dts: Int64
    cts: Int64
    sync: Bool
    unit: int
    media_time: int
    lead: Fraction = Fraction(0)

    @property
    def count(self) -> int:
        """Samples."""
        return int(self.size.sum()) // self.unit if self.unit else len(self.size)

    @property
    def end(self) -> int:
        """Decode time at which the last sample ends, in ticks."""
        if not len(self.dts):
            return 0
        last = int(self.size[-1]) // self.unit if self.unit else 1
        return int(self.dts[-1]) + last * self.pattern.duration

    @property
    def shown_until(self) -> int:
        """Composition time at which the last sample ends that is shown, in ticks."""
        return self.end if self.unit else int(self.cts.max(initial=0)) + self.pattern.duration

    def samples(self) -> SampleTable:
        """All samples, with their places in the source."""
        if not self.unit:
            durations = np.diff(self.dts, append=self.end)
            return SampleTable.of(
                {
                    "offset": self.offset,
                    "size": self.size,
                    "dts": self.dts,
                    "cts": self.cts,
                    "duration": durations,
                    "sync": self.sync,
                }
            )
        counts = self.size // self.unit
        number = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        dts = np.repeat(self.dts, counts) + number * self.pattern.duration
        return SampleTable.of(
            {
                "offset": np.repeat(self.offset, counts) + number * self.unit,
                "size": np.full(len(number), self.unit),
                "dts": dts,
                "cts": dts,
                "duration": np.full(len(number), self.pattern.duration),
                "sync": np.ones(len(number), np.bool_),
            }
        )


def sample_ranges(samples: Iterable[tuple[Int64, Int64]]) -> tuple[Int64, Int64]:
    """Where samples are, neighbours together: starts and sizes, rising.

    Args:
        samples: offset and size columns, of each track.
    """
    columns = [(np.zeros(0, np.int64), np.zeros(0, np.int64)), *samples]
    start, size = (np.concatenate(column) for column in zip(*columns, strict=True))
    order = np.argsort(start, kind="stable")
    start, size = start[order], size[order]
    if not len(start):
        return start, size
    heads = np.append(0, np.flatnonzero(start[1:] != start[:-1] + size[:-1]) + 1)
    return start[heads], np.add.reduceat(size, heads)


def from_zero(tracks: Sequence[Recovered]) -> list[Recovered]:
    """The tracks with decode times from 0 on, as sample tables count them (8.6.1.2).

    Where one begins later than another, its edit list delays it, so that they stay together. What
    an edit list takes off at the start of a file is not taken off where its start is missing.
    """
    moved, leads = [], []
    for track in tracks:
        begin = int(track.dts[0])
        media_time = track.media_time
        if begin > 0:
            first = int((track.cts - begin).min())
            media_time = max(media_time - begin, min(max(first, 0), media_time))
        scale = track.pattern.track.timescale or 1
        leads.append(Fraction(begin - track.media_time + media_time, scale))
        moved.append(
            replace(track, dts=track.dts - begin, cts=track.cts - begin, media_time=media_time)
        )
    origin = min(leads, default=Fraction(0))
    return [replace(track, lead=lead - origin) for track, lead in zip(moved, leads, strict=True)]


def film_view(tracks: Sequence[Recovered], boxes: Sequence[Box], moov: Box, info: FileInfo) -> View:
    """The repaired file.

    Args:
        tracks: at least one sample of each.
        boxes: those of which the ftyp is taken.
        moov: of the good file.
        info: the source whose bytes the file has.
    """
    start, size = sample_ranges((track.offset, track.size) for track in tracks)
    total = int(size.sum())
    brands = movie_brands(boxes) or build(
        make_box("ftyp", major_brand="isom", minor_version=512, compatible_brands=("isom", "mp41"))
    )
    header = (total + 8).to_bytes(4, "big") + b"mdat"
    if total + 8 >= WIDE:
        header = b"\0\0\0\1mdat" + (total + 16).to_bytes(8, "big")
    code, width = ("co64", ">u8") if total >= WIDE - MAX_MOOV_SIZE else ("stco", ">u4")
    places = np.cumsum(size) - size
    chunks = [_chunks(track) for track in tracks]
    offsets = []
    for track, (heads, _) in zip(tracks, chunks, strict=True):
        at = track.offset[heads]
        row = np.searchsorted(start, at, side="right") - 1
        column = np.empty(len(at), [("chunk_offset", width)])
        column["chunk_offset"] = places[row] + at - start[row]
        offsets.append(column)
    # Boxes hold these very rows: they are moved when the size of the moov is known.
    tables = {
        track.pattern.track.id: [*_tables(track, counts), make_box(code, entries=column)]
        for track, (_, counts), column in zip(tracks, chunks, offsets, strict=True)
    }
    rebuilt = _moov(moov, {track.pattern.track.id: track for track in tracks}, tables)
    begin = len(brands) + len(build(rebuilt)) + len(header)
    for column in offsets:
        column["chunk_offset"] += begin
    head = brands + build(rebuilt) + header
    blocks: list[Block] = [head]
    for low in range(0, len(start), TOGETHER):
        part = slice(low, low + TOGETHER)
        if len(start) == 1:
            blocks.append(SourceRange(0, ByteRange.of(int(start[0]), total)))
        else:
            blocks.append(Scattered(0, start[part], size[part]))
    sizes = [
        len(head),
        *(int(size[low : low + TOGETHER].sum()) for low in range(0, len(start), TOGETHER)),
    ]
    recipe = ["repair", hashlib.md5(head, usedforsecurity=False).hexdigest()]
    kinds = media_type(track.pattern.track for track in tracks)
    return View(kinds, [info], recipe, sizes, lambda number: blocks[number : number + 1])


def _chunks(track: Recovered) -> tuple[Int64, Int64]:
    """Rows with which chunks begin, and samples of each."""
    heads = np.append(
        0, np.flatnonzero(track.offset[1:] != track.offset[:-1] + track.size[:-1]) + 1
    )
    if track.unit:
        return heads, np.add.reduceat(track.size, heads) // track.unit
    return heads, np.diff(heads, append=len(track.offset))


def _tables(track: Recovered, counts: Int64) -> list[Box]:
    """The sample tables, less the one that says where chunks are."""
    made_tables = []
    if track.unit:
        made_tables.append(_even_times(track))
    else:
        durations = np.diff(track.dts, append=track.end)
        made_tables.append(make_box("stts", entries=runs_of(durations, "sample_delta")))
        offsets = track.cts - track.dts
        if offsets.any():
            made_tables.append(_composition(offsets))
        if not track.sync.all():
            made_tables.append(
                make_box("stss", entries=rows_of(sample_number=np.flatnonzero(track.sync) + 1))
            )
    changes = np.append(0, np.flatnonzero(np.diff(counts)) + 1)
    rows = rows_of(
        first_chunk=changes + 1,
        samples_per_chunk=counts[changes],
        sample_description_index=np.ones(len(changes), np.int64),
    )
    made_tables.append(make_box("stsc", entries=rows))
    if track.unit:
        made_tables.append(make_box("stsz", sample_size=track.unit, sample_count=track.count))
    else:
        made_tables.append(sizes_box(track.size))
    return made_tables


def _even_times(track: Recovered) -> Box:
    """Durations (stts) of runs of samples of one size: a gap makes the sample before it longer."""
    each = track.pattern.duration
    counts = track.size // track.unit
    ends = track.dts + counts * each
    gaps = np.append(track.dts[1:] - ends[:-1], 0)
    rows: list[tuple[int, int]] = []
    total = 0
    for count, gap in zip(counts.tolist(), gaps.tolist(), strict=True):
        total += count
        if gap:
            rows += [(total - 1, each)] if total > 1 else []
            rows.append((1, each + gap))
            total = 0
    if total:
        rows.append((total, each))
    return make_box("stts", entries=rows)


def _composition(offsets: Int64) -> Box:
    if (offsets >= 0).all():
        return make_box("ctts", entries=runs_of(offsets, "sample_offset"))
    edges = np.append(0, np.flatnonzero(np.diff(offsets)) + 1)
    counts = np.diff(edges, append=len(offsets))
    return make_box(
        "ctts",
        version=1,
        entries=list(zip(counts.tolist(), offsets[edges].tolist(), strict=True)),
    )


def _moov(moov: Box, tracks: dict[int, Recovered], tables: dict[int, list[Box]]) -> Box:
    mvhd = moov.find("mvhd")
    timescale = int(mvhd["timescale"]) if mvhd is not None else 1000
    edits = {number: _edits(track, timescale) for number, track in tracks.items()}
    lengths = {number: sum(row[0] for row in rows) for number, rows in edits.items()}
    children = []
    for child in moov:
        if child.type == "mvhd":
            child = with_duration(child, max(lengths.values()), **_no_dates(child))
        elif child.type == "trak":
            number = track_id(child)
            if number not in tracks:
                continue
            child = _trak(
                child, tracks[number], tables[number], edits[number], lengths[number], set(tracks)
            )
        elif child.type != "mvhd":
            continue
        children.append(child)
    return with_next_id(moov.replace(children=children, size_form="compact"))


def _no_dates(box: Box) -> dict[str, Any]:
    """When the file was made is not known."""
    return {name: 0 for name in DATES if name in box}


Row = tuple[int, int]
"""Duration in ticks of the movie, and media time in ticks of the track."""


def _edits(track: Recovered, timescale: int) -> list[Row]:
    """The edit list: the delay of the good file, its own, and what is taken off at the start."""
    info = track.pattern.track.info
    delays = [edit.duration for edit in takewhile(lambda one: one.media_time < 0, info.edits)]
    lead = round(track.lead * timescale)
    if lead:
        delays = [sum(delays) + lead]
    shown = max(track.shown_until - track.media_time, 0)
    scale = track.pattern.track.timescale  # 0: how long a tick is is not known
    length = -(-shown * timescale // scale) if scale else 0
    return [*((delay, -1) for delay in delays), (length, track.media_time)]


def _trak(
    trak: Box, track: Recovered, tables: list[Box], edits: list[Row], length: int, ids: set[int]
) -> Box:
    children: list[Box] = []
    for child in trak:
        if child.type in LEFT_OUT:
            continue
        if child.type == "tkhd":
            children.append(with_duration(child, length, **_no_dates(child)))
            if track.pattern.track.info.edits or track.media_time or len(edits) > 1:
                wide = any(row[0] >= WIDE or row[1] >= WIDE >> 1 for row in edits)
                rows = [(duration, at, 1, 0) for duration, at in edits]
                elst = make_box("elst", version=int(wide), entries=rows)
                children.append(make_box("edts", children=[elst]))
            continue
        if child.type == "tref":
            child = references(child, ids)
            if not child.children:
                continue
        elif child.type == "mdia":
            child = _mdia(child, track, tables)
        children.append(child)
    return trak.replace(children=children)


def _mdia(mdia: Box, track: Recovered, tables: list[Box]) -> Box:
    children = []
    for child in mdia:
        if child.type == "mdhd":
            child = with_duration(child, track.end, **_no_dates(child))
        elif child.type == "minf":
            inner = [with_tables(box, tables) if box.type == "stbl" else box for box in child]
            child = child.replace(children=inner)
        children.append(child)
    return mdia.replace(children=children)
