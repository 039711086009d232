"""Parse one, read thousands: fragments of one shape, whose integers stand at the same places.

Fragments that one muxer writes look alike. One of each size is parsed by the declared layouts,
which tell where its fields stand; the bytes that decide this (box headers, versions, flags, counts,
track numbers) make a mask, and every fragment that agrees with it is read at the same places.
Fragments that are not plain (a named base, several runs or trafs of one track, no tfdt, access
point groups) are left to `batch`, which reads any.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from struct import Struct
from typing import Any, NamedTuple

import numpy as np

from fragdex.boxes.fragments import (
    DEFAULT_BASE_IS_MOOF,
    DURATION_IS_EMPTY,
    SAMPLE_COMPOSITION_TIME_OFFSET,
    SAMPLE_DURATION,
    SAMPLE_FLAGS,
    SAMPLE_SIZE,
    TFDT,
    TFHD,
    TRUN,
)
from fragdex.boxes.layout import BoxLayout
from fragdex.indexing.batch import TFDT_CODE, TFHD_CODE, TRAF, TRUN_CODE
from fragdex.indexing.groups import SBGP, SGPD
from fragdex.indexing.native_plain import inside_of
from fragdex.indexing.runs import DECIDING, MAX_COUNT_WITHOUT_ROWS, fixed_fields

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
    """One tfhd, tfdt or trun of a shape.

    Attributes:
        version, flags: as far as they decide the layout.
        width: bytes of version, flags and fixed fields.
        places: where they stand, from the moof's start.
    """

    version: int
    flags: int
    width: int
    places: Mapping[str, Place]


@dataclass(frozen=True, slots=True)
class Traf:
    """One traf of a shape.

    Attributes:
        start: number of its first field among the places of the shape.
        cells: number of each, by name; they follow each other.
        rows_at: bytes from the moof's start to the rows of its samples.
    """

    track: int
    flags: int
    time: int
    run: _Box
    count: int
    rows_at: int
    start: int
    cells: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Shape:
    """Where the fields of fragments stand: template and mask (see `headers.Packed`), and trafs."""

    template: bytes
    mask: bytes
    places: tuple[Place, ...]
    trafs: tuple[Traf, ...]

    @property
    def packed(self) -> tuple[bytes, bytes, bytes]:
        """What `fit_plain` needs."""
        places = [(at, dtype.itemsize, dtype.kind == "i") for at, dtype in self.places]
        return self.template, self.mask, np.array(places, np.int64).tobytes()


class _Recent(NamedTuple):
    """A shape of some file: what it asks of a moof, as numbers, which are compared at once."""

    size: int
    template: int
    mask: int
    shape: Shape


MOST_RECENT = 16
"""Shapes that are remembered from file to file: clips of a set are written by one muxer."""
MOST_RECENT_BYTES = 1 << 12
_RECENT: deque[_Recent] = deque(maxlen=MOST_RECENT)


def shape_of(data: memoryview) -> Shape | None:
    """The shape of a moof, or None where it is not plain.

    That of a moof of another file is taken where it holds: what decides it is the same.
    """
    number = -1
    for one in _RECENT.copy():
        if one.size == len(data):
            number = int.from_bytes(data, "big") if number < 0 else number
            if not (number ^ one.template) & one.mask:
                return one.shape
    shape = parsed_shape(data)
    if shape is not None and len(data) <= MOST_RECENT_BYTES:
        template, mask = (int.from_bytes(part, "big") for part in (shape.template, shape.mask))
        _RECENT.appendleft(_Recent(len(data), template, mask, shape))
    return shape


def parsed_shape(data: memoryview) -> Shape | None:
    """`shape_of`, whatever was met before."""
    inside = inside_of(data, 0, len(data))
    if inside is None:
        return None
    deciding = inside.deciding
    trafs: list[dict[int, tuple[int, int]]] = []
    for at, length, kind, header, depth, _, _ in inside.rows:
        if depth == 1 and kind == TRAF:
            trafs.append({})
        elif depth == 2 and kind in (TFHD_CODE, TFDT_CODE, TRUN_CODE):
            if not trafs or kind in trafs[-1]:
                return None
            trafs[-1][kind] = (at + header, length - header)
        elif kind in (SBGP, SGPD):
            return None
    listed: list[Traf] = []
    places: list[Place] = []
    for boxes in trafs:
        if len(boxes) < 3 or any(room < 4 or data[body] > 1 for body, room in boxes.values()):
            return None
        traf = _traf(data, boxes, places, deciding, first=not listed)
        if traf is None or traf.track in (known.track for known in listed):
            return None
        listed.append(traf)
        # Version and flags; track_ID and sample_count stand first after them.
        deciding += [
            (body, body + (4 if kind == TFDT_CODE else 8)) for kind, (body, _) in boxes.items()
        ]
    if not listed:
        return None
    mask = bytearray(len(data))
    for start, stop in deciding:
        mask[start:stop] = b"\xff" * (stop - start)
    return Shape(bytes(data), bytes(mask), tuple(places), tuple(listed))


def _traf(
    data: memoryview,
    boxes: Mapping[int, tuple[int, int]],
    places: list[Place],
    deciding: list[tuple[int, int]],
    *,
    first: bool,
) -> Traf | None:
    """One traf, or None where it is not plain; what is read of it is added to the places."""
    (head, head_room), (time, time_room) = boxes[TFHD_CODE], boxes[TFDT_CODE]
    run, run_room = boxes[TRUN_CODE]
    header, tfdt, trun = _box(data, head, TFHD), _box(data, time, TFDT), _box(data, run, TRUN)
    flags = int.from_bytes(data[head + 1 : head + 4], "big")
    from_moof = first or flags & DEFAULT_BASE_IS_MOOF
    if not from_moof or flags & DURATION_IS_EMPTY or "base_data_offset" in header.places:
        return None
    if header.width > head_room or tfdt.width > time_room or trun.width > run_room:
        return None
    if "data_offset" not in trun.places:
        return None
    entry = header.places.get("sample_description_index")
    if entry is not None:
        # Another entry than the first is looked at: the moov may not have it.
        if int.from_bytes(data[entry[0] : entry[0] + 4], "big") != 1:
            return None
        deciding.append((entry[0], entry[0] + 4))
    (count,) = _WORD(data, trun.places["sample_count"][0])
    (track,) = _WORD(data, header.places["track_ID"][0])
    stride = 4 * (trun.flags & 0xF00).bit_count()
    most = (run_room - trun.width) // stride if stride else MAX_COUNT_WITHOUT_ROWS
    if not 0 < count <= most or run_room != trun.width + count * stride:
        return None
    wanted = {**header.places, **tfdt.places, **trun.places}
    for name in DECIDED:
        del wanted[name]
    if count == 1:
        # The row of a single sample stands at the same place, too.
        wanted |= {name: (run + at, d) for name, (at, d) in _row_places(trun, trun.width).items()}
    start = len(places)
    cells = dict(zip(wanted, range(start, start + len(wanted)), strict=True))
    places.extend(wanted.values())
    return Traf(track, flags, tfdt.version, trun, count, run + trun.width, start, cells)


def _row_places(trun: _Box, at: int) -> dict[str, Place]:
    """Columns of one row of samples that starts `at` bytes after the start of the body."""
    places: dict[str, Place] = {}
    for name, mask, kind in ROW_COLUMNS:
        if trun.flags & mask:
            places[name] = (at + 4 * len(places), np.dtype(kind))
    return places


_WORD = Struct(">I").unpack_from


def _box(data: memoryview, body: int, layout: BoxLayout) -> _Box:
    """Places of a box's fixed fields, from the start of the moof."""
    word = _WORD(data, body)[0] & (0xFF000000 | DECIDING[layout.code])
    fixed = fixed_fields(layout, word)
    places = zip(fixed.names, fixed.places, strict=True)
    at = {name: (body + at, dtype) for name, (at, dtype) in places}
    return _Box(word >> 24, word & 0xFFFFFF, fixed.width, at)
