"""Runs of samples (trun): read, summed up, and their sync samples found, thousands at a time.

Fixed fields of many boxes of one kind are read at once, at the offsets that the declaration gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from struct import Struct
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from fragdex.boxes.fragments import (
    SAMPLE_COMPOSITION_TIME_OFFSET,
    SAMPLE_DURATION,
    SAMPLE_FLAGS,
    SAMPLE_SIZE,
    TFDT,
    TFHD,
    TRUN,
)
from fragdex.boxes.layout import BoxLayout
from fragdex.boxes.rows import Rows
from fragdex.fragments.table import NULL, Int64, Table, column
from fragdex.indexing.headers import RowColumns
from fragdex.indexing.native import columns, sums
from fragdex.indexing.native_plain import sums_plain
from fragdex.record import record


@record(slots=True)
class Group:
    """Boxes of one kind that share version and flags, as far as these decide the layout.

    Attributes:
        version, flags: of all of them; flags that change no layout are left out.
        rows: which of the requested boxes: an array of row numbers.
        width: bytes of version, flags and fixed fields; the table of rows follows.
        short: whether these boxes are too short for their fields; then `fields` is empty.
        fields: name → int64 values, one a row.
    """

    version: int
    flags: int
    rows: Int64
    width: int
    short: bool
    fields: dict[str, Int64]


def _deciding_flags(layout: BoxLayout) -> int:
    """The flag bits that decide which fields a box has; others must not split groups."""
    mask = 0
    for declared in layout.fields:
        mask |= declared.flag
        kinds = declared.kind.values() if isinstance(declared.kind, dict) else [declared.kind]
        for kind in kinds:
            if isinstance(kind, Rows):
                for _, _, flag in kind.columns:
                    mask |= flag
    return mask


DECIDING = {layout.code: _deciding_flags(layout) for layout in (TFHD, TFDT, TRUN)}
"""Flag bits that decide which fields a box has, by its code."""


_WORD = np.dtype(">u4")


@record(frozen=True, slots=True)
class Fixed:
    """The fixed fields under one version and flags.

    Attributes:
        width: bytes of version, flags and these.
        codec: reads all of them, as they stand one after the other.
    """

    width: int
    names: tuple[str, ...]
    places: tuple[tuple[int, np.dtype[Any]], ...]
    codec: Struct


_LETTERS = {"u1": "B", "u2": "H", "u4": "I", "u8": "Q", "i1": "b", "i2": "h", "i4": "i", "i8": "q"}
"""numpy's word for an integer → struct's."""
_FIXED: dict[tuple[str, int], Fixed] = {}


def fixed_fields(layout: BoxLayout, word: int) -> Fixed:
    """The fixed fields of a box whose version and deciding flags make up `word`.

    The cache is bounded: the deciding bits of a kind make a few hundred words at most.
    """
    key = (layout.code, word)
    if key not in _FIXED:
        places = layout.offsets(word >> 24, word & 0xFFFFFF)
        fixed = {name: place for name, place in places.items() if place[1].names is None}
        width = max((offset + dtype.itemsize for offset, dtype in fixed.values()), default=4)
        letters = "".join(_LETTERS[dtype.str[1:]] for _, dtype in fixed.values())
        _FIXED[key] = Fixed(width, tuple(fixed), tuple(fixed.values()), Struct(">" + letters))
    return _FIXED[key]


_NEWER = 0x02000000
"""Stands for every version that no edition defines: who knows what such a box holds (4.2)?"""


def groups_of(
    buffer: memoryview, at: Int64, room: Int64, layout: BoxLayout
) -> tuple[Int64, list[Group]]:
    """Read the fixed fields of many boxes of one kind.

    Args:
        at: where each body (version and flags) starts.
        room: bytes of each body.

    Returns: version and flags of each box as one number (0 where there is no room for them), and
    the boxes group by group.
    """
    n = len(at)
    if not n:
        return np.zeros(0, np.int64), []
    if int(room.min()) < 4:
        enough = np.flatnonzero(room >= 4)
        words = np.zeros(n, np.int64)
        words[enough], groups = groups_of(buffer, at[enough], room[enough], layout)
        for group in groups:
            group.rows = enough[group.rows]
        return words, [*groups, Group(0, 0, np.flatnonzero(room < 4), 0, True, {})]
    words = columns(buffer, at, [(0, _WORD)])[0]
    kinds = np.minimum(words & (0xFF000000 | DECIDING[layout.code]), _NEWER)
    groups = []
    for word, rows in _alike(kinds):
        if word == _NEWER:
            groups.append(Group(word >> 24, 0, rows, 0, True, {}))
            continue
        shape = fixed_fields(layout, word)
        fits = room[rows] >= shape.width
        if not fits.all():
            groups.append(Group(word >> 24, word & 0xFFFFFF, rows[~fits], 0, True, {}))
            rows = rows[fits]
        read = columns(buffer, at if len(rows) == n else at[rows], shape.places)
        fields = dict(zip(shape.names, read, strict=True))
        groups.append(Group(word >> 24, word & 0xFFFFFF, rows, shape.width, False, fields))
    return words, groups


def _alike(words: Int64) -> Iterator[tuple[int, Int64]]:
    """Each different value, and the numbers of the rows that have it."""
    if (words == words[0]).all():
        yield int(words[0]), np.arange(len(words))
        return
    order = np.argsort(words, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(words[order])) + 1):
        yield int(words[rows[0]]), rows


NON_SYNC = 0x00010000
"""sample_is_non_sync_sample (ISO/IEC 14496-12, 8.8.3.1)."""

DEPENDS_AND_SYNC, DEPENDS = 0x03010000, 0x01000000
"""sample_depends_on and sample_is_non_sync_sample; depends on others, and sync (8.8.3.1)."""

LONGEST = 2**31
"""Durations from here on are corrections backwards: what they say is meant as a signed number."""

Flags = npt.NDArray[np.uint8]


def signed(durations: Int64) -> Int64:
    """Durations as they are meant: those of 2^31 and more are below 0."""
    if not len(durations) or durations.max() < LONGEST:
        return durations
    return np.where(durations >= LONGEST, durations - 2**32, durations)


class RunKind(NamedTuple):
    """What decides how the rows of a trun's samples look: its version and flags."""

    version: int
    flags: int

    @property
    def stride(self) -> int:
        """Bytes of a row."""
        return 4 * (self.flags & 0xF00).bit_count()

    @property
    def columns(self) -> RowColumns:
        """Where the columns of a row stand."""
        return RowColumns(
            self.stride,
            self._place(SAMPLE_DURATION),
            self._place(SAMPLE_SIZE),
            self._place(SAMPLE_FLAGS),
            self._place(SAMPLE_COMPOSITION_TIME_OFFSET),
            NON_SYNC,
        )

    def _place(self, mask: int) -> int:
        # Columns stand in the order of their flag bits.
        return 4 * (self.flags & 0xF00 & (mask - 1)).bit_count() if self.flags & mask else -1


class Summed(NamedTuple):
    """Runs of one kind, summed up.

    Attributes:
        size, duration, cts_min, cts_end: as in `Runs`.
        points: the columns of `SyncPoints`.
        wide: unsigned composition offsets of 2^31 or more, read as signed.
        backward: durations of 2^31 or more, read as signed.
    """

    size: Int64
    duration: Int64
    cts_min: Int64
    cts_end: Int64
    points: tuple[Int64, ...]
    wide: int
    backward: int


def summed(
    buffer: memoryview,
    kind: RunKind,
    at: Int64,
    count: Int64,
    defaults: tuple[Int64, Int64, Int64],
    first_flags: Int64 | None,
) -> Summed:
    """Sum up runs of one kind.

    Args:
        at: where the rows of samples of each start.
        count: samples of each, 1 at least.
        defaults: of each run the duration (`signed`), size and flags of samples that have none of
            their own.
        first_flags: of each run the flags of its first sample, or None.
    """
    duration, size, flags = defaults
    n, has_flags = len(at), bool(kind.flags & SAMPLE_FLAGS)
    rest = np.full(n, 2, np.uint8) if has_flags else ((flags & NON_SYNC) == 0).view(np.uint8)
    # first_sample_flags stand for the first sample's (8.8.8.1).
    first = rest if first_flags is None else ((first_flags & NON_SYNC) == 0).view(np.uint8)
    even = not kind.flags & (SAMPLE_DURATION | SAMPLE_COMPOSITION_TIME_OFFSET)
    sync_masks = (first, rest) if has_flags or not even else (np.zeros(n, np.uint8),) * 2
    totals = sums(buffer, at, count, kind.columns, duration, *sync_masks)
    backward = 0
    # Durations of 2^31 and more are rare, and a run without one is seldom so long.
    if totals.duration.max() >= LONGEST or duration.min() < 0:
        backward = int(count[duration < 0].sum())
        unsigned = totals.duration
        totals = sums_plain(buffer, at, count, kind.columns, duration, *sync_masks, is_signed=True)
        if kind.flags & SAMPLE_DURATION:
            backward = int((unsigned - totals.duration).sum()) >> 32
    run, index, dts, cts = totals.points
    points: tuple[Int64, ...] = (run, index, dts, cts, np.zeros_like(run), np.ones_like(run))
    if even and not has_flags:
        points = _even(duration, count, first, rest)
    elif even and len(run):
        points = _even_or_each(points, duration, count)
    return Summed(
        totals.size if kind.flags & SAMPLE_SIZE else size * count,
        totals.duration,
        totals.cts_min,
        totals.cts_end,
        points,
        0 if kind.version else int(totals.negative.sum()),
        backward,
    )


def _even_or_each(points: tuple[Int64, ...], duration: Int64, count: Int64) -> tuple[Int64, ...]:
    """Evenly spaced sync samples of runs: those of a run whose samples all are make one row."""
    run = points[0]
    alike = np.bincount(run, minlength=len(count)) == count
    every = np.ones(len(count), np.uint8)
    even = _even(duration, count, every, every)
    if alike.all():
        return even
    if not alike.any():
        return points
    single = ~alike[run]
    mixed = [np.append(one[single], row[alike]) for one, row in zip(points, even, strict=True)]
    order = np.argsort(mixed[0], kind="stable")
    return tuple(column[order] for column in mixed)


def _even(duration: Int64, count: Int64, first: Flags, rest: Flags) -> tuple[Int64, ...]:
    """Evenly spaced samples: a run is one row, less its first sample where that is not sync."""
    rows = np.arange(len(count))
    if first.all() and rest.all():
        zero = np.zeros(len(rows), np.int64)
        return rows, zero, zero, zero, np.where(count > 1, duration, 0), count
    start = np.where(first, 0, 1)
    length = np.where(rest, count - start, np.where(first, 1, 0))
    some = length > 0
    dts = start * duration
    step = np.where(length > 1, duration, 0)
    return tuple(c[some] for c in (rows, start, dts, dts, step, length))


MAX_COUNT_WITHOUT_ROWS = 1 << 24
"""Samples of a run that has no bytes for them; real runs of that kind hold seconds of PCM."""

Mask = npt.NDArray[np.bool_]
Samples = npt.NDArray[np.uint32]


@record(frozen=True, slots=True, eq=False, repr=False)
class Runs(Table):
    """One row per trun, in file order."""

    SCHEMA_NAME: ClassVar[str] = "runs"

    traf: Int64 = column("i8", "row", "row of Trafs")
    count: Int64 = column("i8", "sample", "samples")
    data_offset: Int64 = column("i8", "byte", "data_offset", nullable=True)
    size: Int64 = column("i8", "byte", "sum of the sample sizes")
    duration: Int64 = column("i8", "tick", "sum of the sample durations")
    cts_min: Int64 = column("i8", "tick", "least composition time, from the run's start")
    cts_end: Int64 = column("i8", "tick", "greatest composition time + duration, likewise")


@record(frozen=True, slots=True, eq=False, repr=False)
class SyncPoints(Table):
    """Sync samples, relative to their run; a row stands for `count` samples in a row."""

    SCHEMA_NAME: ClassVar[str] = "points"

    run: Int64 = column("i8", "row", "row of Runs")
    index: Int64 = column("i8", "sample", "in the run")
    dts: Int64 = column("i8", "tick", "from the run's start")
    cts: Int64 = column("i8", "tick", "from the run's start")
    step: Int64 = column("i8", "tick", "from one to the next")
    count: Int64 = column("i8", "sample", "how many")


@record(slots=True)
class RunGroup:
    """Runs of one version and flags, and where their rows of samples lie."""

    rows: Int64
    at: Int64
    flags: int
    stride: int
    first_flags: Int64 | None


@record(slots=True)
class RunDetails:
    """What is needed to write out every sample of every run of a batch."""

    buffer: memoryview
    count: Int64
    default_duration: Int64
    default_size: Int64
    default_flags: Int64
    groups: list[RunGroup]


def column_of(table: Samples, flags: int, mask: int) -> Samples | None:
    """One column of the samples of runs with these flags, or None where they have it not."""
    if not flags & mask:
        return None
    # Columns stand in the order of their flag bits.
    return table[:, (flags & 0xF00 & (mask - 1)).bit_count()]


_OWN = (("size", SAMPLE_SIZE), ("duration", SAMPLE_DURATION), ("flags", SAMPLE_FLAGS))
"""What samples may say themselves, and the flags of truns whose samples do."""


class RunDecoder:
    """Reads truns and sums them up, group by group of equal version and flags.

    Args:
        owner: number of the traf of each.
        duration, size, flags: the defaults that hold for each (tfhd over trex); durations are
            `signed`.
        missing: name of a default → the runs whose default is not known.
        keep_groups: keep what `details` needs.
    """

    def __init__(
        self,
        buffer: memoryview,
        owner: Int64,
        duration: Int64,
        size: Int64,
        flags: Int64,
        *,
        missing: Mapping[str, Mask],
        keep_groups: bool,
    ) -> None:
        n = len(owner)
        self.buffer, self.owner = buffer, owner
        self.default_duration, self.default_size, self.default_flags = duration, size, flags
        self.missing, self.keep_groups = missing, keep_groups
        self.lacking: dict[str, Int64] = {}
        self.count, self.data_offset = np.zeros(n, np.int64), np.full(n, NULL)
        self.size, self.duration, self.cts_min, self.cts_end = np.zeros((4, n), np.int64)
        self.found: list[tuple[Int64, ...]] = []
        self.groups: list[RunGroup] = []
        self.wide_offsets = self.backward = self.loose = 0

    def runs(self) -> Runs:
        """The runs in file order."""
        return Runs(
            self.owner,
            self.count,
            self.data_offset,
            self.size,
            self.duration,
            self.cts_min,
            self.cts_end,
        )

    def points(self) -> SyncPoints:
        """The sync samples in file order."""
        if not self.found:
            return SyncPoints.empty()
        if len(self.found) == 1:
            return SyncPoints(*self.found[0])
        columns = [np.concatenate(parts) for parts in zip(*self.found, strict=True)]
        order = np.lexsort((columns[1], columns[0]))
        return SyncPoints(*(column[order] for column in columns))

    def details(self, keep: Mask) -> RunDetails:
        """The groups as they were read; runs that are not kept are numbered away."""
        number = np.cumsum(keep) - 1
        groups = []
        for group in self.groups:
            kept = keep[group.rows]
            first = group.first_flags[kept] if group.first_flags is not None else None
            groups.append(
                RunGroup(number[group.rows[kept]], group.at[kept], group.flags, group.stride, first)
            )
        return RunDetails(
            self.buffer,
            self.count[keep],
            self.default_duration[keep],
            self.default_size[keep],
            self.default_flags[keep],
            groups,
        )

    def read(self, at: Int64, room: Int64) -> Int64:
        """Read the runs whose bodies start at `at`; returns the rows that are damaged."""
        bad = [np.zeros(0, np.int64)]
        for group in groups_of(self.buffer, at, room, TRUN)[1]:
            if group.short:
                bad.append(group.rows)
                continue
            count, stride = group.fields["sample_count"], 4 * (group.flags & 0xF00).bit_count()
            left = room[group.rows] - group.width - count * stride
            fits = left >= 0
            self.loose += int((left > 0).sum())
            if not stride:
                fits &= count <= MAX_COUNT_WITHOUT_ROWS
            if not fits.all():
                bad.append(group.rows[~fits])
                group.rows = group.rows[fits]
                group.fields = {name: column[fits] for name, column in group.fields.items()}
            self.take(group, at[group.rows] + group.width, stride)
        return np.concatenate(bad)

    def take(self, group: Group, at: Int64, stride: int) -> None:
        """Take runs of one version and flags whose rows of samples start at `at`."""
        rows, count = group.rows, group.fields["sample_count"]
        first_flags = group.fields.get("first_sample_flags")
        self.count[rows] = count
        if "data_offset" in group.fields:
            self.data_offset[rows] = group.fields["data_offset"]
        if self.keep_groups:
            self.groups.append(RunGroup(rows, at, group.flags, stride, first_flags))
        filled = count > 0
        if not filled.all():
            rows, at, count = rows[filled], at[filled], count[filled]
            first_flags = first_flags[filled] if first_flags is not None else None
        if len(rows):
            for name, mask in _OWN:
                if name in self.missing and not group.flags & mask:
                    lacks = rows[self.missing[name][rows]]
                    self.lacking[name] = np.append(self.lacking.get(name, lacks[:0]), lacks)
            kind = RunKind(group.version, group.flags)
            duration, size = self.default_duration[rows], self.default_size[rows]
            defaults = (duration, size, self.default_flags[rows])
            totals = summed(self.buffer, kind, at, count, defaults, first_flags)
            self.size[rows], self.duration[rows] = totals.size, totals.duration
            self.cts_min[rows], self.cts_end[rows] = totals.cts_min, totals.cts_end
            self.wide_offsets += totals.wide
            self.backward += totals.backward
            run, *rest = totals.points
            if len(run):
                self.found.append((rows[run], *rest))
