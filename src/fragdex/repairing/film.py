"""The repaired file: a moov made of what the walk found, and the source's bytes after it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import takewhile
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fragdex.boxes import Box, build, make_box
from fragdex.fragments.table import Int64, SampleTable
from fragdex.muxing.media import media_type
from fragdex.muxing.movie import movie_brands
from fragdex.muxing.plan import Edit, PlannedTrack, one_source
from fragdex.muxing.progressive import Chunks, movie
from fragdex.muxing.view import Scattered, View
from fragdex.record import record
from fragdex.repairing.between import run_heads
from fragdex.repairing.pattern import Pattern
from fragdex.seeking.origin import FileInfo

LEFT_OUT: Final = ("mvex", "iods", "udta", "meta", "edts")
"""Boxes of the good file that say nothing of another one."""
DATES: Final = ("creation_time", "modification_time")

Bool = npt.NDArray[np.bool_]


@record(frozen=True, slots=True, eq=False)
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

    def planned(self, timescale: int) -> PlannedTrack:
        """What the repaired file has of it.

        The edit list has the delay of the good file, its own, and what is taken off at the start.
        """
        info, scale = self.pattern.track.info, self.pattern.track.timescale
        delays = [edit.duration for edit in takewhile(lambda one: one.media_time < 0, info.edits)]
        lead = round(self.lead * timescale)
        if lead:
            delays = [sum(delays) + lead]
        shown = max(self.shown_until - self.media_time, 0)
        length = -(-shown * timescale // scale) if scale else 0  # 0: a tick's length is not known
        edits: list[Edit] = [(delay, -1, Fraction(1)) for delay in delays]
        edits.append((length, self.media_time, Fraction(1)))
        plain = not (info.edits or self.media_time or delays)
        counts = self.size // self.unit if self.unit else None
        durations = np.diff(self.dts, append=self.end)
        if counts is not None:
            durations = counts * self.pattern.duration
        columns = {"offset": self.offset, "size": self.size, "dts": self.dts, "cts": self.cts}
        table = SampleTable.of(columns | {"duration": durations, "sync": self.sync})
        return PlannedTrack(
            self.pattern.track,
            table,
            scale,
            one_source(0, len(table)),
            () if plain else tuple(edits),
            unit=self.unit,
            shown=length,
        )

    def samples(self) -> SampleTable:
        """All samples, with their places in the source."""
        table, each = self.planned(1).samples, self.pattern.duration
        if not self.unit:
            return table
        counts = self.size // self.unit
        columns = {name: np.repeat(column, counts) for name, column in table.columns().items()}
        number = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        columns["offset"] += number * self.unit
        columns["dts"] += number * each
        columns["size"][:], columns["duration"][:] = self.unit, each
        return SampleTable.of(columns | {"cts": columns["dts"]})


def sample_ranges(samples: Iterable[tuple[Int64, Int64]]) -> tuple[Int64, Int64]:
    """Where samples are, neighbours together: starts and sizes, rising."""
    columns = [(np.zeros(0, np.int64), np.zeros(0, np.int64)), *samples]
    start, size = (np.concatenate(column) for column in zip(*columns, strict=True))
    order = np.argsort(start, kind="stable")
    start, size = start[order], size[order]
    if not len(start):
        return start, size
    heads = run_heads(start, size)
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
        moov: of the good file.
    """
    start, size = sample_ranges((track.offset, track.size) for track in tracks)
    places = np.cumsum(size) - size
    brands = movie_brands(boxes) or build(
        make_box("ftyp", major_brand="isom", minor_version=512, compatible_brands=("isom", "mp41"))
    )
    mvhd = moov.find("mvhd")
    timescale = int(mvhd["timescale"]) if mvhd is not None else 1000
    chunks = []
    for track in tracks:
        heads = run_heads(track.offset, track.size)
        at = track.offset[heads]
        row = np.searchsorted(start, at, side="right") - 1
        chunks.append(Chunks(heads, places[row] + at - start[row], np.ones_like(heads)))
    media = Scattered(0, start, size)
    planned = [track.planned(timescale) for track in tracks]
    head, _ = movie(brands, _of_another(moov), planned, chunks, media, timescale)
    recipe = ["repair", hashlib.md5(head, usedforsecurity=False).hexdigest()]
    return View.of(media_type(one.track for one in planned), [info], recipe, [head, media])


def _of_another(box: Box) -> Box:
    """A box of the good file without what says nothing of another file: names, dates, edits."""
    dates: dict[str, Any] = {name: 0 for name in DATES if name in box}
    if box.type not in ("moov", "trak", "mdia"):
        return box.replace(**dates) if dates else box
    children = [
        _of_another(child)
        for child in box
        if child.type not in LEFT_OUT and (box.type != "moov" or child.type in ("mvhd", "trak"))
    ]
    return box.replace(children=children)
