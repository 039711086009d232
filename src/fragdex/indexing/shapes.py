"""Parse one, read thousands: fragments of one shape, whose integers stand at the same places.

Fragments that one muxer writes look alike. One of each size is parsed by the declared layouts,
which tell where its fields stand; the bytes that decide this (box headers, versions, flags, counts,
track numbers) make a mask, and every fragment that agrees with it is read at the same places. The
shapes of a file are kept, so that the compiled walk reads such fragments as it passes them.
Fragments that are not plain (a named base, several runs or trafs of one track, no tfdt, access
point groups) are left to `batch`, which reads any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

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
from fragdex.fragments.table import NULL
from fragdex.fragments.track_info import SampleDefaults
from fragdex.indexing.batch import (
    SAMPLE_DEFAULTS,
    TFDT_CODE,
    TFHD_CODE,
    TRAF,
    TRUN_CODE,
    Trafs,
    apply_defaults,
    in_file_order,
    near_times,
)
from fragdex.indexing.groups import SBGP, SGPD
from fragdex.indexing.headers import NO_SHAPE, Fits, Int64, Packed
from fragdex.indexing.native import fit
from fragdex.indexing.native_plain import inside_of
from fragdex.indexing.runs import (
    DECIDING,
    MAX_COUNT_WITHOUT_ROWS,
    NON_SYNC,
    RunKind,
    Runs,
    SyncPoints,
    fixed_fields,
    signed,
    summed,
)

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
    """Where the fields of fragments stand: a box shape (see `headers.Packed`), and its trafs."""

    packed: tuple[bytes, bytes, bytes]
    trafs: tuple[Traf, ...]


def shape_of(data: memoryview) -> Shape | None:
    """The shape of a moof, or None where it is not plain."""
    inside = inside_of(data, 0, len(data))
    if inside is None:
        return None
    mask = bytearray(len(data))

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
            trafs[-1][kind] = (at + header, length - header)
        elif kind in (SBGP, SGPD):
            return None
    found: list[Traf] = []
    places: list[Place] = []
    for boxes in trafs:
        if len(boxes) < 3 or any(room < 4 or data[body] > 1 for body, room in boxes.values()):
            return None
        traf = _traf(data, boxes, places, decide, first=not found)
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
    return Shape(box, tuple(found)) if found else None


def _traf(
    data: memoryview,
    boxes: Mapping[int, tuple[int, int]],
    places: list[Place],
    decide: Callable[[int, int], None],
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
        decide(entry[0], entry[0] + 4)
    count, track = (
        int.from_bytes(data[at : at + dtype.itemsize], "big")
        for at, dtype in (trun.places["sample_count"], header.places["track_ID"])
    )
    stride = 4 * (trun.flags & 0xF00).bit_count()
    most = (run_room - trun.width) // stride if stride else MAX_COUNT_WITHOUT_ROWS
    if not 0 < count <= most or run_room != trun.width + count * stride:
        return None
    wanted = {**header.places, **tfdt.places, **trun.places}
    wanted = {name: place for name, place in wanted.items() if name not in DECIDED}
    if count == 1:
        # The row of a single sample stands at the same place, too.
        wanted |= {name: (run + at, d) for name, (at, d) in _row_places(trun, trun.width).items()}
    start = len(places)
    cells = {name: start + number for number, name in enumerate(wanted)}
    places.extend(wanted.values())
    return Traf(track, flags, tfdt.version, trun, count, run + trun.width, start, cells)


def _row_places(trun: _Box, at: int) -> dict[str, Place]:
    """Columns of one row of samples that starts `at` bytes behind the start of the body."""
    found: dict[str, Place] = {}
    for name, mask, kind in ROW_COLUMNS:
        if trun.flags & mask:
            found[name] = (at + 4 * len(found), np.dtype(kind))
    return found


def _box(data: memoryview, body: int, layout: BoxLayout) -> _Box:
    """Places of a box's fixed fields, from the start of the moof."""
    word = int.from_bytes(data[body : body + 4], "big") & (0xFF000000 | DECIDING[layout.code])
    fixed = fixed_fields(layout, word)
    places = zip(fixed.names, fixed.places, strict=True)
    at = {name: (body + at, dtype) for name, (at, dtype) in places}
    return _Box(word >> 24, word & 0xFFFFFF, fixed.width, at)


Plain: TypeAlias = dict[int, tuple[Trafs, Runs, SyncPoints]]
"""track_ID → its trafs, each with one run, and their sync samples, in file order."""

MAX_SHAPES = 24
"""Shapes of one stretch; where there are more, reading them one after the other costs more."""
MAX_SHAPE_BYTES = 1 << 14
"""Of a fragment that is read by its shape; larger ones have little company."""
FEW = 4
"""Fragments of a stretch below which looking for shapes costs more than it spares."""


@dataclass(slots=True)
class Shapes:
    """The shapes of a file's fragments that are known so far, at most `MAX_SHAPES`."""

    _known: list[Shape] = field(default_factory=list)
    _alone: int = 0
    _spared: int = 0

    def worth(self, count: int) -> bool:
        """Whether to look for the shapes of `count` fragments that come by themselves.

        The first few are not; later ones are as long as shapes are met again.
        """
        if count < FEW:
            self._alone += count
        return count >= FEW or (self._alone > FEW and self._spared >= -MAX_SHAPES)

    @property
    def packed(self) -> Packed:
        """What a walk needs to read fragments of these shapes."""
        return tuple(shape.packed for shape in self._known)

    def learn(self, moof: memoryview) -> tuple[bytes, bytes, bytes] | None:
        """The shape of a fragment that fits none of those known; None where it is not plain."""
        if len(self._known) >= MAX_SHAPES or len(moof) > MAX_SHAPE_BYTES:
            return None
        shape = shape_of(moof)
        if shape is None:
            return None
        self._known.append(shape)
        self._spared -= 1
        return shape.packed

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
            self._spared += len(at) - len(left)
            if len(left) and len(self._known) >= MAX_SHAPES // 2:
                # Those that a file has left behind make room for others.
                self._known = [one.shape for one in found]
        while len(left):
            start = int(at[left[0]])
            packed = self.learn(buffer[start : start + int(sizes[left[0]])])
            if packed is None:
                return None
            fits = fit(buffer, at[left], sizes[left], (packed,))
            _note(found, self._known[-1:], left, fits)
            left = left[fits.which == NO_SHAPE]
        return found


@dataclass(frozen=True, slots=True)
class _Members:
    """Fragments of one shape: their numbers, rising, and their fields."""

    shape: Shape
    numbers: Int64
    cells: Int64


def _note(found: list[_Members], shapes: list[Shape], numbers: Int64, fits: Fits) -> None:
    for number, (shape, cells) in enumerate(zip(shapes, fits.cells, strict=True)):
        if cells.shape[1]:
            mine = np.flatnonzero(fits.which == number)
            found.append(_Members(shape, numbers[mine], cells))


def by_shape(
    buffer: memoryview,
    at: Int64,
    sizes: Int64,
    first_moof: int,
    defaults: Mapping[int, SampleDefaults],
    shapes: Shapes,
    fits: Fits | None = None,
) -> tuple[Plain, int, int] | None:
    """Read the fragments of a stretch, if all of them are plain and of few shapes.

    Args:
        buffer: holds the moofs.
        at: where each starts; sizes: bytes of each.
        first_moof: number of the first one in the whole scan.
        defaults: the trex of each track.
        shapes: those of the file; new ones are added.
        fits: what a walk found with shapes that `shapes.packed` gave it.

    Returns: the tables, and how many unsigned composition offsets and durations were read as
    signed; None where the fragments must be read otherwise.
    """
    if fits is None and not shapes.worth(len(at)):
        return None
    found = shapes.read(buffer, at, sizes, fits)
    if found is None:
        return None
    parts: dict[int, list[tuple[Trafs, Runs, SyncPoints]]] = {}
    wide = backward = 0
    for alike in _alike(found):
        read = _read(buffer, at, first_moof, alike, defaults)
        if read is None:
            return None
        wide += read[1]
        backward += read[2]
        parts.setdefault(alike.traf.track, []).append(read[0])
    plain = {track: in_file_order(tables) for track, tables in parts.items()}
    return plain, wide, backward


@dataclass(frozen=True, slots=True)
class _Alike:
    """Trafs of one track that differ in their numbers of samples alone, in file order.

    Attributes:
        traf: one of them.
        numbers: of their fragments, rising.
        counts: samples of each, or of all of them; rows_at: likewise.
        cells: their fields, as `traf` names them from its first one on.
    """

    traf: Traf
    numbers: Int64
    counts: Int64
    rows_at: Int64
    cells: Int64


def _alike(found: list[_Members]) -> list[_Alike]:
    """The trafs of fragments of several shapes, such as a muxer makes that fills up two seconds."""
    groups: dict[Any, list[tuple[_Members, Traf]]] = {}
    for members in found:
        for traf in members.shape.trafs:
            run, single = traf.run, traf.count == 1
            key = (traf.track, traf.flags, traf.time, run.version, run.flags, single, *traf.cells)
            groups.setdefault(key, []).append((members, traf))
    return [_joined(group) for group in groups.values()]


def _joined(group: list[tuple[_Members, Traf]]) -> _Alike:
    first = group[0][1]
    parts = [members.cells[traf.start : traf.start + len(traf.cells)] for members, traf in group]
    numbers = [members.numbers for members, _ in group]
    counts, rows_at = (
        np.array(c) for c in zip(*((t.count, t.rows_at) for _, t in group), strict=True)
    )
    if len(group) == 1:
        return _Alike(first, numbers[0], counts, rows_at, parts[0])
    mixed = np.concatenate(numbers)
    order = np.argsort(mixed, kind="stable")
    member = np.repeat(np.arange(len(group)), [len(some) for some in numbers])[order]
    cells = np.take(np.concatenate(parts, axis=1), order, axis=1)
    return _Alike(first, mixed[order], counts[member], rows_at[member], cells)


def _read(
    buffer: memoryview,
    at: Int64,
    first_moof: int,
    alike: _Alike,
    defaults: Mapping[int, SampleDefaults],
) -> tuple[tuple[Trafs, Runs, SyncPoints], int, int] | None:
    """The tables of some trafs; None where a default is not known."""
    traf, n = alike.traf, len(alike.numbers)
    values = {name: alike.cells[row - traf.start] for name, row in traf.cells.items()}
    track = np.full(n, traf.track)
    unsaid = np.full((len(SAMPLE_DEFAULTS), n), NULL)
    samples = {
        name: values.get(f"default_sample_{name}", unsaid[row])
        for row, name in enumerate(SAMPLE_DEFAULTS)
    }
    if apply_defaults(samples, track, defaults):
        return None
    samples["duration"] = signed(samples["duration"])
    trafs = Trafs(
        alike.numbers + first_moof,
        track,
        np.full(n, traf.flags),
        np.full(n, NULL),
        near_times(values["baseMediaDecodeTime"]),
        np.full(n, 1 + traf.time),
        np.zeros(n, np.int64),
    )
    if traf.count == 1:
        runs, points, backward = _single(values, samples, n)
        return (trafs, runs, points), _wide(values, traf.run.version), backward
    counts = alike.counts if len(alike.counts) == n else np.full(n, traf.count)
    found = summed(
        buffer,
        RunKind(traf.run.version, traf.run.flags),
        at[alike.numbers] + alike.rows_at,
        counts,
        (samples["duration"], samples["size"], samples["flags"]),
        values.get("first_sample_flags"),
    )
    runs = Runs(
        np.arange(n),
        counts,
        values["data_offset"],
        found.size,
        found.duration,
        found.cts_min,
        found.cts_end,
    )
    return (trafs, runs, SyncPoints(*found.points)), found.wide, found.backward


def _single(
    values: Mapping[str, Int64], defaults: Mapping[str, Int64], n: int
) -> tuple[Runs, SyncPoints, int]:
    """Runs of one sample each: nothing is to be summed up; and how many durations are below 0."""
    every, zero, one = np.arange(n), np.zeros(n, np.int64), np.ones(n, np.int64)
    duration = signed(values.get("sample_duration", defaults["duration"]))
    backward = int((duration < 0).sum())
    lasts = np.maximum(duration, 0) if backward else duration
    size = values.get("sample_size", defaults["size"])
    # first_sample_flags stand for the first sample's (8.8.8.1).
    flags = values.get("sample_flags", defaults["flags"])
    flags = values.get("first_sample_flags", flags)
    offset = values.get("sample_composition_time_offset", zero)
    end = lasts if offset is zero else offset + lasts
    runs = Runs(every, one, values["data_offset"], size, duration, offset, end)
    is_sync = (flags & NON_SYNC) == 0
    if is_sync.all():
        return runs, SyncPoints(every, zero, zero, offset, zero, one), backward
    where = np.flatnonzero(is_sync)
    zero = zero[: len(where)]
    points = SyncPoints(where, zero, zero, offset[where], zero, one[: len(where)])
    return runs, points, backward


def _wide(values: Mapping[str, Int64], version: int) -> int:
    """Unsigned composition offsets that were read as signed."""
    offset = values.get("sample_composition_time_offset")
    return int((offset < 0).sum()) if offset is not None and not version else 0
