"""Parse one, read thousands: fragments of one shape, whose integers stand at the same places.

Fragments that one muxer writes look alike. One of each size is parsed by the declared layouts,
which tell where its fields stand; the bytes that decide this (box headers, versions, flags, counts,
track numbers) make a mask, and every fragment that agrees with it is read at the same places. The
shapes of a file are kept, so that the compiled walk reads such fragments as it passes them.
Fragments that are not plain (a named base, several runs or trafs of one track, no tfdt, access
point groups) are left to `batch`, which reads any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from fragdex.boxes.layout import BoxLayout
from fragdex.boxes.tfdt import TFDT
from fragdex.boxes.tfhd import DEFAULT_BASE_IS_MOOF, DURATION_IS_EMPTY, TFHD
from fragdex.boxes.trun import (
    SAMPLE_COMPOSITION_TIME_OFFSET,
    SAMPLE_DURATION,
    SAMPLE_FLAGS,
    SAMPLE_SIZE,
    TRUN,
)
from fragdex.fragments.batch import TFDT_CODE, TFHD_CODE, TRAF, TRUN_CODE, Trafs, in_file_order
from fragdex.fragments.fields import DECIDING, Group
from fragdex.fragments.groups import SBGP, SGPD
from fragdex.fragments.headers import NO_SHAPE, Fits, Int64, Packed
from fragdex.fragments.hop import fit
from fragdex.fragments.hop_plain import inside_of
from fragdex.fragments.runs import (
    MAX_COUNT_WITHOUT_ROWS,
    NON_SYNC,
    RunDecoder,
    Runs,
    SyncPoints,
)
from fragdex.fragments.table import NULL
from fragdex.fragments.tracks import SampleDefaults

__all__ = ["Plain", "Shapes", "by_shape"]

Plain: TypeAlias = dict[int, tuple[Trafs, Runs, SyncPoints]]
"""track_ID → its trafs, each with one run, and their sync samples, in file order."""

MAX_SHAPES = 24
"""Shapes of one stretch; where there are more, reading them one after the other costs more."""
MAX_SHAPE_BYTES = 1 << 14
"""Of a fragment that is read by its shape; larger ones have little company."""
FEW = 4
"""Fragments of a stretch below which looking for shapes costs more than it spares."""

DECIDED = ("track_ID", "sample_count")
"""Fields that are the same in all fragments of a shape."""
ROW_COLUMNS = (
    ("sample_duration", SAMPLE_DURATION, ">u4"),
    ("sample_size", SAMPLE_SIZE, ">u4"),
    ("sample_flags", SAMPLE_FLAGS, ">u4"),
    # Signed in all versions: producers write negative ones in version 0, too.
    ("sample_composition_time_offset", SAMPLE_COMPOSITION_TIME_OFFSET, ">i4"),
)
"""Columns of a trun's rows in their order (8.8.8.1)."""

Place = tuple[int, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class _Box:
    """One tfhd, tfdt or trun of a shape: version, deciding flags, and where its fields stand."""

    version: int
    flags: int
    places: Mapping[str, Place]


@dataclass(frozen=True, slots=True)
class _Traf:
    """One traf of a shape.

    Attributes:
        cells: where its fields stand among the places of the shape, by name.
        rows_at: bytes from the moof's start to the rows of its samples.
    """

    track: int
    flags: int
    time: int
    run: _Box
    count: int
    rows_at: int
    cells: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Shape:
    """Where the fields of fragments stand: a box shape (see `headers.Packed`), and its trafs."""

    packed: tuple[bytes, bytes, bytes]
    trafs: tuple[_Traf, ...]


@dataclass(slots=True)
class Shapes:
    """The shapes of a file's fragments that are known so far, at most `MAX_SHAPES`."""

    _known: list[_Shape] = field(default_factory=list)

    @property
    def packed(self) -> Packed:
        """What a walk needs to read fragments of these shapes."""
        return tuple(shape.packed for shape in self._known)

    def read(
        self, buffer: memoryview, at: Int64, sizes: Int64, fits: Fits | None
    ) -> list[_Members] | None:
        """The fragments of a stretch, shape by shape; None where one is not plain.

        Args:
            buffer: holds them.
            at: where each starts; sizes: bytes of each.
            fits: what a walk found with shapes that `packed` gave it.
        """
        found: list[_Members] = []
        left = np.arange(len(at))
        if fits is None and self._known:
            fits = fit(buffer, at, sizes, self.packed)
        if fits is not None:
            _note(found, self._known, left, fits)
            left = np.flatnonzero(fits.which == NO_SHAPE)
            if len(left) and len(self._known) >= MAX_SHAPES // 2:
                # Those that a file has left behind make room for others.
                self._known = [one.shape for one in found]
        while len(left):
            size = int(sizes[left[0]])
            if len(self._known) >= MAX_SHAPES or size > MAX_SHAPE_BYTES:
                return None
            shape = _shape(buffer, int(at[left[0]]), size)
            if shape is None:
                return None
            self._known.append(shape)
            fits = fit(buffer, at[left], sizes[left], (shape.packed,))
            _note(found, [shape], left, fits)
            left = left[fits.which == NO_SHAPE]
        return found


@dataclass(frozen=True, slots=True)
class _Members:
    """Fragments of one shape: their numbers, rising, and their fields."""

    shape: _Shape
    numbers: Int64
    cells: Int64


def _note(found: list[_Members], shapes: list[_Shape], numbers: Int64, fits: Fits) -> None:
    for number, (shape, cells) in enumerate(zip(shapes, fits.cells, strict=True)):
        if cells.shape[1]:
            found.append(_Members(shape, numbers[fits.which == number], cells))


def by_shape(
    buffer: memoryview,
    at: Int64,
    sizes: Int64,
    first_moof: int,
    defaults: Mapping[int, SampleDefaults],
    shapes: Shapes,
    fits: Fits | None = None,
) -> tuple[Plain, int] | None:
    """Read the fragments of a stretch, if all of them are plain and of few shapes.

    Args:
        buffer: holds the moofs.
        at: where each starts; sizes: bytes of each.
        first_moof: number of the first one in the whole scan.
        defaults: the trex of each track.
        shapes: those of the file; new ones are added.
        fits: what a walk found with shapes that `shapes.packed` gave it.

    Returns: the tables, and how many unsigned composition offsets were read as signed; None where
    the fragments must be read otherwise.
    """
    if len(at) < FEW:
        return None
    found = shapes.read(buffer, at, sizes, fits)
    if found is None:
        return None
    parts: dict[int, list[tuple[Trafs, Runs, SyncPoints]]] = {}
    wide = 0
    for members in found:
        for traf in members.shape.trafs:
            read = _read(buffer, at, first_moof, members, traf, defaults)
            if read is None:
                return None
            wide += read[1]
            parts.setdefault(traf.track, []).append(read[0])
    return {track: in_file_order(tables) for track, tables in parts.items()}, wide


def _shape(buffer: memoryview, offset: int, size: int) -> _Shape | None:
    """The shape of one fragment, or None where it is not plain."""
    inside = inside_of(buffer, offset, size)
    if inside is None:
        return None
    mask = bytearray(size)

    def decide(start: int, stop: int) -> None:
        mask[start:stop] = b"\xff" * (stop - start)

    for start, stop in inside.deciding:
        decide(start, stop)
    trafs: list[dict[int, tuple[int, int]]] = []
    for at, length, kind, header, depth, _, _ in inside.rows:
        if depth == 1 and kind == TRAF:
            trafs.append({})
        elif depth == 2 and kind in (TFHD_CODE, TFDT_CODE, TRUN_CODE):
            if not trafs or kind in trafs[-1]:
                return None
            trafs[-1][kind] = (at - offset + header, length - header)
        elif kind in (SBGP, SGPD):
            return None
    data = buffer[offset : offset + size]
    found: list[_Traf] = []
    places: list[Place] = []
    for boxes in trafs:
        if len(boxes) < 3 or any(room < 4 or data[body] > 1 for body, room in boxes.values()):
            return None
        traf = _traf(data, boxes, places, first=not found)
        if traf is None or traf.track in (known.track for known in found):
            return None
        found.append(traf)
        for body, _ in boxes.values():
            decide(body, body + 4)
        # track_ID and sample_count stand first behind version and flags.
        for body in (boxes[TFHD_CODE][0], boxes[TRUN_CODE][0]):
            decide(body + 4, body + 8)
    packed = [(at, dtype.itemsize, dtype.kind == "i") for at, dtype in places]
    box = (bytes(data), bytes(mask), np.array(packed, np.int64).tobytes())
    return _Shape(box, tuple(found)) if found else None


def _traf(
    data: memoryview, boxes: Mapping[int, tuple[int, int]], places: list[Place], *, first: bool
) -> _Traf | None:
    """One traf, or None where it is not plain; what is read of it is added to the places."""
    (head, head_room), (time, time_room) = boxes[TFHD_CODE], boxes[TFDT_CODE]
    run, run_room = boxes[TRUN_CODE]
    header, flags = _box(data, head, TFHD)
    tfdt, _ = _box(data, time, TFDT)
    trun, _ = _box(data, run, TRUN)
    from_moof = first or flags & DEFAULT_BASE_IS_MOOF
    if not from_moof or flags & DURATION_IS_EMPTY or "base_data_offset" in header.places:
        return None
    ends = [_end(box, body) for box, body in ((header, head), (tfdt, time), (trun, run))]
    rooms = (head_room, time_room, run_room)
    if "data_offset" not in trun.places or any(e > r for e, r in zip(ends, rooms, strict=True)):
        return None
    count, track = (
        int.from_bytes(data[at : at + dtype.itemsize], "big")
        for at, dtype in (trun.places["sample_count"], header.places["track_ID"])
    )
    stride = 4 * (trun.flags & 0xF00).bit_count()
    most = (run_room - ends[2]) // stride if stride else MAX_COUNT_WITHOUT_ROWS
    if not 0 < count <= most:
        return None
    wanted = {**header.places, **tfdt.places, **trun.places}
    wanted = {name: place for name, place in wanted.items() if name not in DECIDED}
    if count == 1:
        # The row of a single sample stands at the same place, too.
        wanted |= {name: (run + at, d) for name, (at, d) in _row_places(trun, ends[2]).items()}
    cells = {name: len(places) + number for number, name in enumerate(wanted)}
    places.extend(wanted.values())
    return _Traf(track, flags, tfdt.version, trun, count, run + ends[2], cells)


def _row_places(trun: _Box, at: int) -> dict[str, Place]:
    """Columns of one row of samples that starts `at` bytes behind the start of the body."""
    found: dict[str, Place] = {}
    for name, mask, kind in ROW_COLUMNS:
        if trun.flags & mask:
            found[name] = (at + 4 * len(found), np.dtype(kind))
    return found


def _box(data: memoryview, body: int, layout: BoxLayout) -> tuple[_Box, int]:
    """Places of a box's fixed fields, from the start of the moof; and all of its flags."""
    word = int.from_bytes(data[body : body + 4], "big")
    version, flags = word >> 24, word & 0xFFFFFF
    places = {
        name: (body + at, dtype)
        for name, (at, dtype) in layout.offsets(version, flags & DECIDING[layout.code]).items()
        if dtype.names is None
    }
    return _Box(version, flags & DECIDING[layout.code], places), flags


def _end(box: _Box, body: int) -> int:
    """Bytes of version, flags and fixed fields."""
    return max(at + dtype.itemsize for at, dtype in box.places.values()) - body


def _read(
    buffer: memoryview,
    at: Int64,
    first_moof: int,
    members: _Members,
    traf: _Traf,
    defaults: Mapping[int, SampleDefaults],
) -> tuple[tuple[Trafs, Runs, SyncPoints], int] | None:
    """The tables of one traf of all fragments of a shape; None where a default is not known."""
    n = len(members.numbers)
    values = {name: members.cells[row] for name, row in traf.cells.items()}
    known = defaults.get(traf.track)
    for name in ("duration", "size", "flags"):
        if f"default_sample_{name}" not in values:
            if known is None:
                return None
            values[f"default_sample_{name}"] = np.full(n, getattr(known, name))
    trafs = Trafs(
        members.numbers + first_moof,
        np.full(n, traf.track),
        np.full(n, traf.flags),
        np.full(n, NULL),
        values["baseMediaDecodeTime"],
        np.full(n, 1 + traf.time),
        np.zeros(n, np.int64),
    )
    if traf.count == 1:
        return (trafs, *_single(values, n)), _wide(values, traf.run.version)
    fallback = (values[f"default_sample_{name}"] for name in ("duration", "size", "flags"))
    every = np.arange(n)
    values["sample_count"] = np.full(n, traf.count)
    decoder = RunDecoder(buffer, every, *fallback, missing={}, keep_groups=False)
    run = traf.run
    group = Group(run.version, run.flags, every, 0, False, values)
    rows_at = at[members.numbers] + traf.rows_at
    decoder.take(group, rows_at, 4 * (run.flags & 0xF00).bit_count())
    return (trafs, decoder.runs(), decoder.points()), decoder.wide_offsets


def _single(values: Mapping[str, Int64], n: int) -> tuple[Runs, SyncPoints]:
    """Runs of one sample each: nothing is to be summed up."""
    every, zero, one = np.arange(n), np.zeros(n, np.int64), np.ones(n, np.int64)
    duration = values.get("sample_duration", values["default_sample_duration"])
    size = values.get("sample_size", values["default_sample_size"])
    # first_sample_flags stand for the first sample's (8.8.8.1).
    flags = values.get("sample_flags", values["default_sample_flags"])
    flags = values.get("first_sample_flags", flags)
    offset = values.get("sample_composition_time_offset", zero)
    end = duration if offset is zero else offset + duration
    runs = Runs(every, one, values["data_offset"], size, duration, offset, end)
    is_sync = (flags & NON_SYNC) == 0
    if is_sync.all():
        return runs, SyncPoints(every, zero, zero, offset, zero, one)
    where = np.flatnonzero(is_sync)
    zero = zero[: len(where)]
    return runs, SyncPoints(where, zero, zero, offset[where], zero, one[: len(where)])


def _wide(values: Mapping[str, Int64], version: int) -> int:
    """Unsigned composition offsets that were read as signed."""
    offset = values.get("sample_composition_time_offset")
    return int((offset < 0).sum()) if offset is not None and not version else 0
