"""Parse one, read thousands: fragments of one shape, whose integers stand at the same places.

Fragments that one muxer writes look alike. One of each size is parsed by the declared layouts,
which tell where its fields stand; the bytes that decide this (box headers, versions, flags, counts,
track numbers) make a mask, and every fragment that agrees with it is read at the same places.
Fragments that are not plain (a named base, several runs or trafs of one track, no tfdt, access
point groups) are left to `batch`, which reads any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from fragdex.boxes.layout import BoxLayout
from fragdex.boxes.tfdt import TFDT
from fragdex.boxes.tfhd import DEFAULT_BASE_IS_MOOF, DURATION_IS_EMPTY, TFHD
from fragdex.boxes.trun import TRUN
from fragdex.fragments.batch import TFDT_CODE, TFHD_CODE, TRAF, TRUN_CODE, Trafs, in_file_order
from fragdex.fragments.fields import DECIDING, Group
from fragdex.fragments.groups import SBGP, SGPD
from fragdex.fragments.headers import Int64
from fragdex.fragments.hop import alike, columns
from fragdex.fragments.hop_plain import inside_of
from fragdex.fragments.runs import MAX_COUNT_WITHOUT_ROWS, RunDecoder, Runs, SyncPoints
from fragdex.fragments.table import NULL
from fragdex.fragments.tracks import SampleDefaults

__all__ = ["Plain", "by_shape"]

Plain: TypeAlias = dict[int, tuple[Trafs, Runs, SyncPoints]]
"""track_ID → its trafs, each with one run, and their sync samples, in file order."""

MAX_SHAPES = 24
"""Shapes of one stretch; where there are more, reading them one after the other costs more."""
FEW = 4
"""Fragments of a stretch below which looking for shapes costs more than it spares."""

Place = tuple[int, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class _Box:
    """One tfhd, tfdt or trun of a shape: version, deciding flags, and where its fields stand."""

    version: int
    flags: int
    places: Mapping[str, Place]


@dataclass(frozen=True, slots=True)
class _Traf:
    track: int
    flags: int
    header: _Box
    time: _Box
    run: _Box
    count: int
    rows_at: int


@dataclass(frozen=True, slots=True)
class _Shape:
    """Where the fields of fragments stand, in bytes from their start."""

    template: bytes
    mask: bytes
    trafs: tuple[_Traf, ...]


def by_shape(
    buffer: memoryview, at: Int64, sizes: Int64, defaults: Mapping[int, SampleDefaults]
) -> tuple[Plain, int] | None:
    """Read the fragments of a stretch, if all of them are plain and of few shapes.

    Args:
        buffer: holds the moofs.
        at: where each starts; sizes: bytes of each.
        defaults: the trex of each track.

    Returns: the tables, with moofs numbered from 0, and how many unsigned composition offsets were
    read as signed; None where the fragments must be read otherwise.
    """
    if len(at) < FEW:
        return None
    parts: dict[int, list[tuple[Trafs, Runs, SyncPoints]]] = {}
    wide = shapes = 0
    left = np.arange(len(at))
    while len(left):
        shapes += 1
        size = int(sizes[left[0]])
        shape = _shape(buffer, int(at[left[0]]), size) if shapes <= MAX_SHAPES else None
        if shape is None:
            return None
        fitting = sizes[left] == size
        sized = left[fitting]
        same = alike(buffer, at[sized], shape.template, shape.mask)
        members = sized[same]
        for traf in shape.trafs:
            read = _read(buffer, at[members], members, traf, defaults)
            if read is None:
                return None
            wide += read[1]
            parts.setdefault(traf.track, []).append(read[0])
        fitting[fitting] = same
        left = left[~fitting]
    return {track: in_file_order(found) for track, found in parts.items()}, wide


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
    for boxes in trafs:
        if len(boxes) < 3 or any(room < 4 or data[body] > 1 for body, room in boxes.values()):
            return None
        traf = _traf(data, boxes, first=not found)
        if traf is None or traf.track in (known.track for known in found):
            return None
        found.append(traf)
        for body, _ in boxes.values():
            decide(body, body + 4)
        for place, dtype in (traf.header.places["track_ID"], traf.run.places["sample_count"]):
            decide(place, place + dtype.itemsize)
    return _Shape(bytes(data), bytes(mask), tuple(found)) if found else None


def _traf(data: memoryview, boxes: Mapping[int, tuple[int, int]], *, first: bool) -> _Traf | None:
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
    return _Traf(track, flags, header, tfdt, trun, count, run + ends[2])


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
    members: Int64,
    traf: _Traf,
    defaults: Mapping[int, SampleDefaults],
) -> tuple[tuple[Trafs, Runs, SyncPoints], int] | None:
    """The tables of one traf of all fragments of a shape; None where a default is not known."""
    n = len(at)
    wanted = {**traf.header.places, **traf.time.places, **traf.run.places}
    values = dict(zip(wanted, columns(buffer, at, tuple(wanted.values())), strict=True))
    known = defaults.get(traf.track)
    fallback = []
    for name in ("duration", "size", "flags"):
        column = values.get(f"default_sample_{name}")
        if column is None:
            if known is None:
                return None
            column = np.full(n, getattr(known, name))
        fallback.append(column)
    every = np.arange(n)
    decoder = RunDecoder(buffer, every, *fallback, missing={}, keep_groups=False)
    run = traf.run
    group = Group(run.version, run.flags, every, 0, False, values)
    decoder.take(group, at + traf.rows_at, 4 * (run.flags & 0xF00).bit_count())
    kind = np.full(n, 1 + traf.time.version)
    trafs = Trafs(
        members,
        np.full(n, traf.track),
        np.full(n, traf.flags),
        np.full(n, NULL),
        values["baseMediaDecodeTime"],
        kind,
        np.zeros(n, np.int64),
    )
    return (trafs, decoder.runs(), decoder.points()), decoder.wide_offsets
