"""Parse one, read thousands: fragments of one shape, whose integers stand at the same places.

Fragments that one muxer writes look alike. One of each size is parsed by the declared layouts,
which tell where its fields stand; the bytes that decide this (box headers, versions, flags, counts,
track numbers) make a mask, and every fragment that agrees with it is read at the same places.
Fragments that are not plain (a named base, several runs or trafs of one track, no tfdt, access
point groups) are left to `batch`, which reads any.

The shapes of a file are kept. The C extension runs their programs as it passes the fragments; where
it is not there, or where fragments came before their moov, they are read after the walk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import field
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
from fragdex.fragments.table import NULL
from fragdex.fragments.track_info import SampleDefaults
from fragdex.indexing import native
from fragdex.indexing.batch import (
    SAMPLE_DEFAULTS,
    TFDT_CODE,
    TFHD_CODE,
    TRAF,
    TRUN_CODE,
    Plain,
    PlainTrack,
    Trafs,
    apply_defaults,
    in_file_order,
    near_times,
)
from fragdex.indexing.beside import UUID, says_more
from fragdex.indexing.groups import CSGP, SBGP, SGPD
from fragdex.indexing.headers import NO_SHAPE, Fits, Int64, Programs, Shaped
from fragdex.indexing.native_plain import fit_plain, inside_of
from fragdex.indexing.runs import (
    DECIDING,
    DEPENDS,
    DEPENDS_AND_SYNC,
    MAX_COUNT_WITHOUT_ROWS,
    NON_SYNC,
    RunKind,
    Runs,
    SyncPoints,
    fixed_fields,
    signed,
    summed,
)
from fragdex.record import record

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


@record(frozen=True, slots=True)
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


@record(frozen=True, slots=True)
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


@record(frozen=True, slots=True)
class Shape:
    """Where the fields of fragments stand: template and mask (see `headers.Packed`), and trafs.

    Attributes:
        more: whether they say more of their samples, by boxes that are content.
    """

    template: bytes
    mask: bytes
    places: tuple[Place, ...]
    trafs: tuple[Traf, ...]
    more: bool = False

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
        elif kind in (SBGP, CSGP, SGPD):
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
    users = {
        bytes(data[at + header - 16 : at + header])
        for at, _, kind, header, *_ in inside.rows
        if kind == UUID
    }
    more = says_more({kind for _, _, kind, *_ in inside.rows}, users)
    return Shape(bytes(data), bytes(mask), tuple(places), tuple(listed), more)


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
        columns = [(name, kind) for name, mask, kind in ROW_COLUMNS if trun.flags & mask]
        for number, (name, kind) in enumerate(columns):
            wanted[name] = (run + trun.width + 4 * number, np.dtype(kind))
    start = len(places)
    cells = dict(zip(wanted, range(start, start + len(wanted)), strict=True))
    places.extend(wanted.values())
    return Traf(track, flags, tfdt.version, trun, count, run + trun.width, start, cells)


_WORD = Struct(">I").unpack_from


def _box(data: memoryview, body: int, layout: BoxLayout) -> _Box:
    """Places of a box's fixed fields, from the start of the moof."""
    word = _WORD(data, body)[0] & (0xFF000000 | DECIDING[layout.code])
    fixed = fixed_fields(layout, word)
    places = zip(fixed.names, fixed.places, strict=True)
    at = {name: (body + at, dtype) for name, (at, dtype) in places}
    return _Box(word >> 24, word & 0xFFFFFF, fixed.width, at)


# Programs: how the C extension reads fragments that look alike while it walks past them.
#
# A program is the places that the declared layouts give for one fragment, and the defaults that
# hold where a field is missing; `native/trafs.h` names its numbers. What programs read becomes
# the same rows as `shapes` makes in Python.


MAX_SLOTS = 1 << 12
"""Tracks whose rows programs make."""
_TRAF = Struct("23q")
_NOWHERE = -1


def program(
    shape: Shape, defaults: Mapping[int, SampleDefaults], slots: dict[int, int]
) -> bytes | None:
    """The program of a shape.

    Args:
        slots: track_ID → number of its rows; new ones are added.

    Returns: None where a default is not known, or the tracks are too many.
    """
    parts = []
    for traf in shape.trafs:
        slot = slots.setdefault(traf.track, len(slots))
        trex = defaults.get(traf.track)
        is_known = trex is not None or all(
            f"default_sample_{n}" in traf.cells for n in SAMPLE_DEFAULTS
        )
        if not is_known or slot >= MAX_SLOTS:
            return None
        parts.append(_packed(traf, shape.places, trex or SampleDefaults(0, 0, 0), slot))
    return b"".join(parts)


def _packed(traf: Traf, places: tuple[Place, ...], trex: SampleDefaults, slot: int) -> bytes:
    cells, run = traf.cells, traf.run

    def place(name: str) -> int:
        number = cells.get(name)
        return _NOWHERE if number is None else places[number][0]

    return _TRAF.pack(
        slot,
        traf.flags,
        place("baseMediaDecodeTime"),
        8 if traf.time else 4,
        place("data_offset"),
        traf.count,
        traf.rows_at,
        *RunKind(run.version, run.flags).columns,
        place("default_sample_duration"),
        trex.duration,
        place("default_sample_size"),
        trex.size,
        place("default_sample_flags"),
        trex.flags,
        place("first_sample_flags"),
        run.version,
        DEPENDS_AND_SYNC,
        DEPENDS,
    )


MAX_SHAPES = 24
"""Shapes of one stretch; where there are more, reading them one after the other costs more."""
MAX_SHAPE_BYTES = 1 << 14
"""Of a fragment that is read by its shape; larger ones have little company."""
FEW = 4
"""Fragments of a stretch below which looking for shapes costs more than it spares."""


class KnownShapes(NamedTuple):
    """Programs by which samples are written out.

    Attributes:
        slots: track_ID → number that programs give to the track.
    """

    programs: Programs
    slots: Mapping[int, int]
    defaults: Mapping[int, SampleDefaults]


@record(slots=True)
class Shapes:
    """The shapes of a file's fragments that are known so far, at most `MAX_SHAPES`.

    Attributes:
        more: whether one of them says more of samples, by boxes that are content.
    """

    more: bool = False

    _known: list[Shape] = field(default_factory=list)
    _programs: list[tuple[bytes, bytes, bytes]] = field(default_factory=list)
    _slots: dict[int, int] = field(default_factory=dict)
    _defaults: Mapping[int, SampleDefaults] | None = None
    _alone: int = 0
    _spared: int = 0

    def use(self, defaults: Mapping[int, SampleDefaults]) -> None:
        """Write programs with these defaults, the trex of each track, from here on."""
        if self._defaults is None or self._defaults != defaults:
            self._defaults = dict(defaults)
            known, self._known = self._known, []
            self._programs = []
            for shape in known:
                self._keep(shape)

    def worth(self, count: int) -> bool:
        """Whether to look for the shapes of `count` fragments that come by themselves.

        The first few are not; later ones are as long as shapes are met again.
        """
        if count < FEW:
            self._alone += count
        return count >= FEW or (self._alone > FEW and self._spared >= -MAX_SHAPES)

    @property
    def programs(self) -> Programs:
        """What a walk needs to read fragments of these shapes as it passes them."""
        return tuple(self._programs)

    @property
    def known(self) -> KnownShapes:
        """The shapes that are known by now."""
        return KnownShapes(self.programs, dict(self._slots), self._defaults or {})

    @property
    def learner(self) -> native.Learn | None:
        """`learn`, where defaults are known, so that programs can be written."""
        return None if self._defaults is None else self.learn

    def learn(self, moof: memoryview) -> tuple[bytes, bytes, bytes] | None:
        """The program of a fragment that has none of the shapes; None where it is not plain."""
        if len(self._known) >= MAX_SHAPES or len(moof) > MAX_SHAPE_BYTES:
            return None
        shape = shape_of(moof)
        if shape is None or not self._keep(shape):
            return None
        self._spared -= 1
        return self._programs[-1]

    def _keep(self, shape: Shape) -> bool:
        """Put a shape after those that are known; False where a default is not."""
        written = program(shape, self._defaults or {}, self._slots)
        if written is None:
            return False
        self.more |= shape.more
        self._known.append(shape)
        self._programs.append((shape.template, shape.mask, written))
        return True

    def taken(self, shaped: Shaped) -> tuple[Plain, int] | None:
        """What programs read: tables, and wide composition offsets; None where it is not all."""
        self._spared += shaped.shown - shaped.missed
        if len(self._known) >= MAX_SHAPES // 2 and len(shaped.met) == len(self._known):
            # Those that a file has left behind make room for others.
            numbers = [number for number, times in enumerate(shaped.met) if times]
            self._known = [self._known[number] for number in numbers]
            self._programs = [self._programs[number] for number in numbers]
        if shaped.missed or shaped.odd:
            return None
        rows = {
            track: PlainTrack.from_bytes(track, *shaped.tracks[slot])
            for track, slot in self._slots.items()
            if slot < len(shaped.tracks) and shaped.tracks[slot][0]
        }
        return rows, shaped.wide

    def read(self, buffer: memoryview, at: Int64, sizes: Int64) -> list[_Members] | None:
        """The fragments of a stretch, shape by shape, in Python; None where one is not plain."""
        members: list[_Members] = []
        left = np.arange(len(at))
        if self._known:
            fits = fit_plain(buffer, at, sizes, tuple(shape.packed for shape in self._known))
            _note(members, self._known, left, fits)
            left = np.flatnonzero(fits.which == NO_SHAPE)
            self._spared += len(at) - len(left)
            if len(left) and len(self._known) >= MAX_SHAPES // 2:
                self._known = [one.shape for one in members]
                self._programs = []
        while len(left):
            start = int(at[left[0]])
            if self.learn(buffer[start : start + int(sizes[left[0]])]) is None:
                return None
            fits = fit_plain(buffer, at[left], sizes[left], (self._known[-1].packed,))
            _note(members, self._known[-1:], left, fits)
            left = left[fits.which == NO_SHAPE]
        return members


@record(frozen=True, slots=True)
class _Members:
    """Fragments of one shape: their numbers, rising, and their fields."""

    shape: Shape
    numbers: Int64
    cells: Int64


def _note(members: list[_Members], shapes: list[Shape], numbers: Int64, fits: Fits) -> None:
    for number, (shape, cells) in enumerate(zip(shapes, fits.cells, strict=True)):
        if cells.shape[1]:
            mine = np.flatnonzero(fits.which == number)
            members.append(_Members(shape, numbers[mine], cells))


def by_shape(
    buffer: memoryview,
    at: Int64,
    sizes: Int64,
    defaults: Mapping[int, SampleDefaults],
    shapes: Shapes,
    shaped: Shaped | None = None,
) -> tuple[Plain, int, int] | None:
    """Read the fragments of a stretch, if all of them are plain and of few shapes.

    Args:
        at: where each starts; sizes: bytes of each.
        shaped: what a walk read with the programs of `shapes`.

    Returns: the tables, and how many unsigned composition offsets and durations were read as
    signed; None where the fragments must be read otherwise.
    """
    if shaped is None and not shapes.worth(len(at)):
        return None
    shapes.use(defaults)
    if native.compiled is None:
        return by_shape_plain(buffer, at, sizes, defaults, shapes)
    if shaped is None:
        shaped = native.fit(buffer, at, sizes, shapes.programs, shapes.learn)
    members = shapes.taken(shaped) if shaped is not None else None
    return None if members is None else (*members, 0)


def by_shape_plain(
    buffer: memoryview,
    at: Int64,
    sizes: Int64,
    defaults: Mapping[int, SampleDefaults],
    shapes: Shapes,
) -> tuple[Plain, int, int] | None:
    """`by_shape` in Python."""
    members = shapes.read(buffer, at, sizes)
    if members is None:
        return None
    parts: dict[int, list[tuple[Trafs, Runs, SyncPoints]]] = {}
    wide = backward = 0
    for alike in _alike(members):
        read = _read(buffer, at, alike, defaults)
        if read is None:
            return None
        wide += read[1]
        backward += read[2]
        parts.setdefault(alike.traf.track, []).append(read[0])
    plain = {track: PlainTrack.of(*in_file_order(tables)) for track, tables in parts.items()}
    return plain, wide, backward


@record(frozen=True, slots=True)
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


def _alike(noted: list[_Members]) -> list[_Alike]:
    """The trafs of fragments of several shapes, such as a muxer makes that fills up two seconds."""
    groups: dict[Any, list[tuple[_Members, Traf]]] = {}
    for members in noted:
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
        alike.numbers,
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
    totals = summed(
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
        totals.size,
        totals.duration,
        totals.cts_min,
        totals.cts_end,
    )
    return (trafs, runs, SyncPoints(*totals.points)), totals.wide, totals.backward


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
