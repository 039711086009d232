"""Many fragments at once: what their tfhd, tfdt and trun say, read by numpy.

Fragments made by one muxer look alike. The boxes of one kind that share version and flags are
read together, at the offsets that their declaration gives (`BoxLayout.offsets`); the bytes of
their rows are joined and become columns. Nothing here decides what a value means: precedence and
positions are settled in `resolve`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fragdex.boxes.layout import BoxLayout, Rows
from fragdex.boxes.tfdt import TFDT
from fragdex.boxes.tfhd import DURATION_IS_EMPTY, TFHD
from fragdex.boxes.trun import (
    FIRST_SAMPLE_FLAGS,
    SAMPLE_COMPOSITION_TIME_OFFSET,
    SAMPLE_DURATION,
    SAMPLE_FLAGS,
    SAMPLE_SIZE,
    TRUN,
)
from fragdex.fragments.hop import code, join
from fragdex.fragments.table import NULL, Int64, Table, _column
from fragdex.fragments.tracks import SampleDefaults

__all__ = ["Batch", "Runs", "SyncPoints", "Trafs", "decode"]

NON_SYNC = 0x00010000
"""sample_is_non_sync_sample (ISO/IEC 14496-12, 8.8.3.1)."""

MAX_COUNT_WITHOUT_ROWS = 1 << 24
"""Samples of a run that has no bytes for them; real runs of that kind hold seconds of PCM."""

MOOF, TRAF, TFHD_CODE, TFDT_CODE, TRUN_CODE, UUID = map(
    code, ("moof", "traf", "tfhd", "tfdt", "trun", "uuid")
)
TFXD = bytes.fromhex("6d1d9b0542d544e680e2141daff757b2")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Trafs(Table):
    """One row per traf, in file order."""

    SCHEMA_NAME: ClassVar[str] = "trafs"

    moof: Int64 = _column("i8", "row", "number of the moof in the scan")
    track: Int64 = _column("i8", "", "track_ID")
    flags: Int64 = _column("i8", "bits", "flags of the tfhd")
    base: Int64 = _column("i8", "byte", "base_data_offset", nullable=True)
    time: Int64 = _column("i8", "tick", "tfdt, else tfxd", nullable=True)
    time_kind: Int64 = _column("i8", "", "0: none, 1: tfdt v0, 2: tfdt v1, 3: tfxd")
    gap: Int64 = _column("i8", "tick", "time without samples, by duration-is-empty")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Runs(Table):
    """One row per trun, in file order."""

    SCHEMA_NAME: ClassVar[str] = "runs"

    traf: Int64 = _column("i8", "row", "row of Trafs")
    count: Int64 = _column("i8", "sample", "samples")
    data_offset: Int64 = _column("i8", "byte", "data_offset", nullable=True)
    size: Int64 = _column("i8", "byte", "sum of the sample sizes")
    duration: Int64 = _column("i8", "tick", "sum of the sample durations")
    cts_min: Int64 = _column("i8", "tick", "least composition time, from the run's start")
    cts_end: Int64 = _column("i8", "tick", "greatest composition time + duration, likewise")
    sync: Int64 = _column("i8", "sample", "first sync sample in the run; -1: none")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SyncPoints(Table):
    """Sync samples, relative to their run; a row stands for `count` samples in a row."""

    SCHEMA_NAME: ClassVar[str] = "points"

    run: Int64 = _column("i8", "row", "row of Runs")
    index: Int64 = _column("i8", "sample", "in the run")
    dts: Int64 = _column("i8", "tick", "from the run's start")
    cts: Int64 = _column("i8", "tick", "from the run's start")
    step: Int64 = _column("i8", "tick", "from one to the next")
    count: Int64 = _column("i8", "sample", "how many")


@dataclass(slots=True)
class RunGroup:
    """Runs of one version and flags, and where their rows of samples lie."""

    rows: Int64
    at: Int64
    flags: int
    stride: int
    first_flags: Int64 | None


@dataclass(slots=True)
class RunDetails:
    """What is needed to write out every sample of every run of a batch."""

    buffer: memoryview
    count: Int64
    default_duration: Int64
    default_size: Int64
    default_flags: Int64
    groups: list[RunGroup]


@dataclass(slots=True)
class Batch:
    """What one batch of fragments says.

    Attributes:
        trafs, runs, points: the tables above.
        damaged: numbers (in the batch) of moofs that break the rules and are left out.
        wide_offsets: unsigned composition offsets of 2^31 or more, read as signed.
        unknown_defaults: (track_ID, duration, size or flags) that neither tfhd nor trex says.
        details: what is needed to write out every sample, where it was asked for.
    """

    trafs: Trafs
    runs: Runs
    points: SyncPoints
    damaged: npt.NDArray[np.bool_]
    wide_offsets: int = 0
    unknown_defaults: set[tuple[int, str]] = field(default_factory=set)
    details: RunDetails | None = None


def _known_flags(layout: BoxLayout) -> int:
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


_MASKS = {layout.code: _known_flags(layout) for layout in (TFHD, TFDT, TRUN)}


def _groups(words: npt.NDArray[np.uint32]) -> Iterator[tuple[int, Any]]:
    """Each different value, and which rows have it."""
    if not len(words):
        return
    if (words == words[0]).all():
        yield int(words[0]), slice(None)
        return
    order = np.argsort(words, kind="stable")
    ordered = words[order]
    for rows in np.split(order, np.flatnonzero(np.diff(ordered)) + 1):
        yield int(words[rows[0]]), rows


def _fields(
    buffer: memoryview,
    at: Int64,
    room: Int64,
    layout: BoxLayout,
) -> Iterator[tuple[int, int, Any, dict[str, Int64], int, npt.NDArray[np.bool_] | None]]:
    """The fixed fields of many boxes of one kind, group by group of equal version and flags.

    Yields version, flags, which rows, name → int64 values, where the rows start, and which of
    them are too short for their fields (None: none is).
    """
    short = room < 4
    if short.any():
        rows = np.flatnonzero(short)
        yield 0, 0, rows, {}, 4, np.ones(len(rows), np.bool_)
        keep = np.flatnonzero(~short)
    else:
        keep = None
    at_kept = at if keep is None else at[keep]
    words = np.frombuffer(join(buffer, at_kept, 4), ">u4").astype(np.uint32)
    # From version 1 on the layouts do not change any more.
    words = (words & (0xFF000000 | _MASKS[layout.code])).clip(None, 0x01FFFFFF)
    for word, group in _groups(words):
        version, flags = word >> 24, word & _MASKS[layout.code]
        places = layout.offsets(version, flags)
        fixed = {name: place for name, place in places.items() if place[1].names is None}
        width = max((o + d.itemsize for o, d in fixed.values()), default=4)
        rows = group if keep is None else keep[group]
        where = at[rows]
        fits = room[rows] >= width
        too_short = None
        if not fits.all():
            rows = np.arange(len(at))[rows]
            yield version, flags, rows[~fits], {}, width, np.ones(int((~fits).sum()), np.bool_)
            rows, where = rows[fits], where[fits]
        dtype = np.dtype(
            {
                "names": list(fixed),
                "formats": [d for _, d in fixed.values()],
                "offsets": [o for o, _ in fixed.values()],
                "itemsize": width,
            }
        )
        table = np.frombuffer(join(buffer, where, width), dtype)
        yield version, flags, rows, {n: table[n].astype(np.int64) for n in fixed}, width, too_short


def decode(
    buffer: memoryview,
    rows: npt.NDArray[np.void],
    first_moof: int,
    defaults: Mapping[int, SampleDefaults],
    *,
    details: bool = False,
) -> Batch:
    """Read the fragments of one batch.

    Args:
        buffer: holds every moof of the batch.
        rows: rows of the moofs and their insides as `hop.walk` gives them, offsets in `buffer`.
        first_moof: number of the first moof in the whole scan.
        defaults: the trex of each track.
        details: keep what is needed to write out every sample.
    """
    kinds, depth = rows["type"], rows["depth"]
    body = rows["offset"] + rows["header"]
    room = rows["size"] - rows["header"]
    is_moof = (depth == 0) & (kinds == MOOF)
    is_traf = (depth == 1) & (kinds == TRAF)
    deep = depth == 2
    moof_of = np.cumsum(is_moof) - 1
    traf_of = np.cumsum(is_traf) - 1
    damaged = rows["damaged"][is_moof] != 0
    traf_moof = moof_of[is_traf]
    n = len(traf_moof)

    def owned(kind: int) -> tuple[Int64, Int64]:
        where = np.flatnonzero(deep & (kinds == kind))
        return where, traf_of[where]

    # tfhd: exactly one in each traf (8.8.7.1); where there are more, the first counts.
    where, owner = owned(TFHD_CODE)
    track, flags = np.zeros(n, np.int64), np.zeros(n, np.int64)
    values = {
        name: np.full(n, NULL)
        for name in (
            "base_data_offset",
            "default_sample_duration",
            "default_sample_size",
            "default_sample_flags",
        )
    }
    if len(owner) != n or (owner != np.arange(n)).any():
        owner, first = np.unique(owner, return_index=True)
        where = where[first]
        missing = np.ones(n, np.bool_)
        missing[owner] = False
        damaged[traf_moof[missing]] = True
    words = np.zeros(n, np.int64)
    for _, _, group, found, _, too_short in _fields(buffer, body[where], room[where], TFHD):
        if too_short is not None:
            damaged[traf_moof[owner[group]]] = True
            continue
        to = owner[group]
        track[to] = found.pop("track_ID")
        for name, column in found.items():
            if name in values:
                values[name][to] = column
    if n:
        # The flags that change no layout (duration-is-empty, default-base-is-moof) count as well.
        whole = np.frombuffer(join(buffer, body[where][room[where] >= 4], 4), ">u4")
        words[owner[room[where] >= 4]] = whole.astype(np.int64)
        flags = words & 0xFFFFFF

    # tfdt: version 1 is read as signed; producers wrote negative times (8.8.12).
    time, time_kind = np.full(n, NULL), np.zeros(n, np.int64)
    where, owner = owned(TFDT_CODE)
    for version, _, group, found, _, too_short in _fields(buffer, body[where], room[where], TFDT):
        if too_short is not None:
            damaged[traf_moof[owner[group]]] = True
            continue
        to = owner[group]
        time[to], time_kind[to] = found["baseMediaDecodeTime"], 1 + (version > 0)
    where, owner = owned(UUID)
    if len(where):
        _read_tfxd(buffer, rows[where], owner, time, time_kind)

    lacks: dict[str, npt.NDArray[np.bool_]] = {}
    duration, size, sample_flags = _defaults(track, values, defaults, lacks)
    gap = np.where(flags & DURATION_IS_EMPTY, duration, 0)
    base = values["base_data_offset"]
    trafs = Trafs(traf_moof + first_moof, track, flags, base, time, time_kind, gap)

    where, owner = owned(TRUN_CODE)
    decoder = _RunDecoder(buffer, owner, duration[owner], size[owner], sample_flags[owner], details)
    decoder.missing = {name: lacking[owner] for name, lacking in lacks.items()}
    bad = decoder.read(body[where], room[where])
    damaged[traf_moof[owner[bad]]] = True
    batch = Batch(trafs, decoder.runs(), decoder.points(), damaged)
    batch.wide_offsets = decoder.wide_offsets
    for name, lacking in decoder.lacking.items():
        batch.unknown_defaults |= {(t, name) for t in np.unique(track[owner[lacking]]).tolist()}
    if details:
        batch.details = decoder.details(~damaged[traf_moof[owner]])
    return _without(batch, traf_moof) if damaged.any() else batch


def _read_tfxd(
    buffer: memoryview, rows: npt.NDArray[np.void], owner: Int64, time: Int64, kind: Int64
) -> None:
    """PIFF's own time box, used where there is no tfdt; never both added."""
    for row, traf in zip(rows, owner.tolist(), strict=True):
        end = int(row["offset"]) + int(row["header"])
        if row["header"] < 24 or kind[traf] or buffer[end - 16 : end] != TFXD:
            continue
        width = 8 if row["size"] > row["header"] and buffer[end] else 4
        if row["size"] - row["header"] >= 4 + width:
            signed = width == 8
            value = int.from_bytes(buffer[end + 4 : end + 4 + width], "big", signed=signed)
            time[traf], kind[traf] = value, 3


def _defaults(
    track: Int64,
    values: Mapping[str, Int64],
    defaults: Mapping[int, SampleDefaults],
    missing: dict[str, npt.NDArray[np.bool_]],
) -> tuple[Int64, Int64, Int64]:
    """tfhd over trex (8.8.7.1); what neither says is 0, and which trafs lack it is noted."""
    found = []
    for name in ("duration", "size", "flags"):
        column = values[f"default_sample_{name}"]
        absent = column == NULL
        if absent.any():
            # Track ids are few; a hostile file with many is bounded by its own bytes.
            for one in np.unique(track[absent]).tolist():
                known = defaults.get(one)
                if known is None:
                    lacking = missing.setdefault(name, np.zeros(len(track), np.bool_))
                    lacking |= absent & (track == one)
                value = getattr(known, name) if known is not None else 0
                column[absent & (track == one)] = value
        found.append(column)
    return found[0], found[1], found[2]


class _RunDecoder:
    """Reads truns and sums them up, group by group of equal version and flags."""

    def __init__(
        self,
        buffer: memoryview,
        owner: Int64,
        duration: Int64,
        size: Int64,
        sample_flags: Int64,
        keep_groups: bool,
    ) -> None:
        n = len(owner)
        self.keep_groups = keep_groups
        self.missing: dict[str, npt.NDArray[np.bool_]] = {}
        self.lacking: dict[str, Int64] = {}
        self.buffer, self.owner = buffer, owner
        self.default_duration, self.default_size = duration, size
        self.default_flags = sample_flags
        self.count, self.data_offset = np.zeros(n, np.int64), np.full(n, NULL)
        self.size, self.duration = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.cts_min, self.cts_end = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.sync = np.full(n, -1)
        self.found: list[tuple[Any, ...]] = []
        self.groups: list[RunGroup] = []
        self.wide_offsets = 0

    def details(self, keep: npt.NDArray[np.bool_]) -> RunDetails:
        """The groups as they were read; runs that are not kept are renumbered away."""
        number = np.where(keep, np.cumsum(keep) - 1, -1)
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

    def runs(self) -> Runs:
        return Runs(
            self.owner,
            self.count,
            self.data_offset,
            self.size,
            self.duration,
            self.cts_min,
            self.cts_end,
            self.sync,
        )

    def points(self) -> SyncPoints:
        if not self.found:
            return SyncPoints.empty()
        columns = [np.concatenate(c) for c in zip(*self.found, strict=True)]
        order = np.lexsort((columns[1], columns[0])) if len(self.found) > 1 else slice(None)
        return SyncPoints(*(c[order] for c in columns))

    def read(self, at: Int64, room: Int64) -> Int64:
        """Fill the columns; returns the rows that are damaged."""
        bad = []
        for version, flags, group, found, width, too_short in _fields(self.buffer, at, room, TRUN):
            if too_short is not None:
                bad.append(np.arange(len(at))[group])
                continue
            rows = np.arange(len(at))[group] if isinstance(group, slice) else group
            count = found["sample_count"]
            stride = 4 * (flags & 0xF00).bit_count()
            fits = count * stride <= room[rows] - width
            if not stride:
                fits &= count <= MAX_COUNT_WITHOUT_ROWS
            if not fits.all():
                bad.append(rows[~fits])
                rows, count = rows[fits], count[fits]
                found = {name: column[fits] for name, column in found.items()}
            self.count[rows] = count
            if "data_offset" in found:
                self.data_offset[rows] = found["data_offset"]
            first_flags = found.get("first_sample_flags")
            if self.keep_groups:
                group_at = at[rows] + width
                self.groups.append(RunGroup(rows, group_at, flags, stride, first_flags))
            self._sum(version, flags, rows, at[rows] + width, first_flags)
        return np.concatenate(bad) if bad else np.zeros(0, np.int64)

    def _sum(
        self, version: int, flags: int, rows: Int64, at: Int64, first_flags: Int64 | None
    ) -> None:
        filled = self.count[rows] > 0
        if not filled.all():
            rows, at = rows[filled], at[filled]
            first_flags = first_flags[filled] if first_flags is not None else None
        if not len(rows):
            return
        count = self.count[rows]
        stride = 4 * (flags & 0xF00).bit_count()
        table = np.frombuffer(join(self.buffer, at, count * stride), ">u4")
        table = table.reshape(-1, stride // 4) if stride else table
        starts = np.cumsum(count) - count

        def column(mask: int) -> npt.NDArray[Any] | None:
            if not flags & mask:
                return None
            return table[:, (flags & 0xF00 & (mask - 1)).bit_count()]

        for name, mask in (
            ("size", SAMPLE_SIZE),
            ("duration", SAMPLE_DURATION),
            ("flags", SAMPLE_FLAGS),
        ):
            if name in self.missing and not flags & mask:
                lacks = rows[self.missing[name][rows]]
                self.lacking[name] = np.append(self.lacking.get(name, lacks[:0]), lacks)
        sizes, durations = column(SAMPLE_SIZE), column(SAMPLE_DURATION)
        default = self.default_duration[rows]
        self.size[rows] = (
            self.default_size[rows] * count if sizes is None else _sums(sizes, starts, count)
        )
        self.duration[rows] = (
            default * count if durations is None else _sums(durations, starts, count)
        )
        offsets = column(SAMPLE_COMPOSITION_TIME_OFFSET)
        spans = _Spans(starts, count, durations, default, offsets, version)
        self.wide_offsets += spans.wide
        self.cts_min[rows], self.cts_end[rows] = spans.edges(self.duration[rows])
        self._sync(rows, flags, column(SAMPLE_FLAGS), first_flags, spans)

    def _sync(
        self,
        rows: Int64,
        flags: int,
        sample_flags: npt.NDArray[Any] | None,
        first_flags: Int64 | None,
        spans: _Spans,
    ) -> None:
        """Note the sync samples; first_sample_flags stand for the first sample's (8.8.8.1)."""
        zero = np.zeros(len(rows), np.int64)
        if sample_flags is not None:
            is_sync = (sample_flags.astype(np.uint32) & NON_SYNC) == 0
            if first_flags is not None:
                is_sync[spans.starts] = (first_flags & NON_SYNC) == 0
            where = np.flatnonzero(is_sync)
            if len(where) < len(is_sync) or not spans.even:
                run = np.searchsorted(spans.starts, where, side="right") - 1
                self._note(rows[run], where - spans.starts[run], spans, where, run)
                return
            rest = first = np.ones(len(rows), np.bool_)
        else:
            rest = (self.default_flags[rows] & NON_SYNC) == 0
            first = rest if first_flags is None else (first_flags & NON_SYNC) == 0
        count = spans.count
        if spans.even:
            # Evenly spaced: the run is one row, less its first sample where that is none.
            start = np.where(first, 0, 1)
            length = np.where(rest, count - start, np.where(first, 1, 0))
            some = length > 0
            self.sync[rows[some]] = start[some]
            dts = start * spans.default
            step = np.where(length > 1, spans.default, 0)
            self.found.append(tuple(c[some] for c in (rows, start, dts, dts, step, length)))
            return
        alone = first & ~rest
        if alone.any():
            self._note(rows[alone], zero[alone], spans, spans.starts[alone], np.flatnonzero(alone))
        every = np.flatnonzero(rest)
        if len(every):
            skip = np.where(first[every], 0, 1)
            length = count[every] - skip
            run = np.repeat(every, length)
            index = np.arange(len(run)) - np.repeat(np.cumsum(length) - length - skip, length)
            self._note(rows[run], index, spans, spans.starts[run] + index, run)

    def _note(self, rows: Int64, index: Int64, spans: _Spans, where: Int64, run: Int64) -> None:
        if not len(rows):
            return
        first = np.flatnonzero(np.diff(rows, prepend=-1))
        self.sync[rows[first]] = index[first]
        dts, cts = spans.times(where, index, run)
        self.found.append((rows, index, dts, cts, np.zeros_like(rows), np.ones_like(rows)))


def _sums(column: npt.NDArray[Any], starts: Int64, count: Int64) -> Int64:
    """Sum of each run's rows. A run never reaches 2^31 rows of u4, so int64 cannot overflow."""
    if (count == count[0]).all():
        sums: Int64 = column.reshape(len(count), -1).astype(np.uint32).sum(axis=1, dtype=np.int64)
        return sums
    sums = np.add.reduceat(column.astype(np.uint32), starts, dtype=np.int64)
    return sums


class _Spans:
    """Times inside the runs of one group, relative to each run's start."""

    def __init__(
        self,
        starts: Int64,
        count: Int64,
        durations: npt.NDArray[Any] | None,
        default: Int64,
        offsets: npt.NDArray[Any] | None,
        version: int,
    ) -> None:
        self.starts, self.count, self.default = starts, count, default
        self.even = offsets is None and durations is None
        self.durations: Int64 | None = None
        self.offsets: Int64 | None = None
        self.dts: Int64 | None = None
        self.wide = 0
        if durations is not None:
            self.durations = durations.astype(np.int64)
            running = np.cumsum(self.durations) - self.durations
            running -= np.repeat(running[starts], count)
            self.dts = running
        if offsets is not None:
            # Unsigned in version 0 by the standard; from 2^31 up producers mean it signed.
            self.offsets = offsets.astype(np.uint32).view(np.int32).astype(np.int64)
            if version == 0:
                self.wide = int((self.offsets < 0).sum())

    def _dts(self) -> Int64:
        if self.dts is None:
            index = np.arange(int(self.count.sum())) - np.repeat(self.starts, self.count)
            index *= np.repeat(self.default, self.count)
            self.dts = index
        return self.dts

    def edges(self, total: Int64) -> tuple[Int64, Int64]:
        """Least composition time, and greatest composition time plus duration, of each run."""
        if self.offsets is None:
            return np.zeros(len(total), np.int64), total
        cts = self._dts() + self.offsets
        least = np.minimum.reduceat(cts, self.starts)
        if self.durations is not None:
            cts += self.durations
            return least, np.maximum.reduceat(cts, self.starts)
        return least, np.maximum.reduceat(cts, self.starts) + self.default

    def times(self, where: Int64, index: Int64, run: Int64) -> tuple[Int64, Int64]:
        """Decode and composition times of the samples at rows `where` of the group's table."""
        dts = self.dts[where] if self.dts is not None else index * self.default[run]
        return dts, dts if self.offsets is None else dts + self.offsets[where]


def _without(batch: Batch, traf_moof: Int64) -> Batch:
    """The batch less its damaged moofs."""
    keep_traf = ~batch.damaged[traf_moof]
    new_traf = np.cumsum(keep_traf) - 1
    keep_run = keep_traf[batch.runs.traf]
    new_run = np.cumsum(keep_run) - 1
    runs = batch.runs.rows(keep_run)
    points = batch.points.rows(keep_run[batch.points.run])
    batch.trafs = batch.trafs.rows(keep_traf)
    batch.runs = Runs.of(runs.columns() | {"traf": new_traf[runs.traf]})
    batch.points = SyncPoints.of(points.columns() | {"run": new_run[points.run]})
    return batch
