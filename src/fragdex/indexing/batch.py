"""Many fragments at once: what their tfhd, tfdt and trun say, read by numpy.

Fragments made by one muxer look alike. The boxes of one kind that share version and flags are
read together, at the offsets that their declaration gives (`fields`); the bytes of their samples
are joined and become columns (`runs`). Nothing here decides what a value means: positions and
times are settled in `resolve`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from fragdex.boxes.fragments import DURATION_IS_EMPTY, TFDT, TFHD
from fragdex.fragments.table import FARTHEST, NULL, Int64, Table, column
from fragdex.fragments.track_info import SampleDefaults
from fragdex.indexing.beside import inside_says_more
from fragdex.indexing.groups import CSGP, SBGP, SGPD, GroupBox, group_boxes
from fragdex.indexing.headers import Rows, code
from fragdex.indexing.runs import RunDecoder, RunDetails, Runs, SyncPoints, groups_of, signed
from fragdex.record import record

MOOF, TRAF, TFHD_CODE, TFDT_CODE, TRUN_CODE, UUID = map(
    code, ("moof", "traf", "tfhd", "tfdt", "trun", "uuid")
)
TFXD = bytes.fromhex("6d1d9b0542d544e680e2141daff757b2")
"""User type of PIFF's time box."""

SMALL_IDS = 1 << 10
"""Track_IDs up to which they are counted, however few: a page of counters."""

SAMPLE_DEFAULTS = ("duration", "size", "flags")
"""What tfhd and trex say of samples, as `SampleDefaults` names it."""

MOST_ENTRIES = 1 << 12
"""Different sample entries that the tfhd boxes of a stretch are looked through for."""

MAX_PERIOD = 16
"""Boxes of one traf, up to which regular fragments are recognized."""

Mask = npt.NDArray[np.bool_]


@record(frozen=True, slots=True, eq=False, repr=False)
class Trafs(Table):
    """One row per traf, in file order."""

    SCHEMA_NAME: ClassVar[str] = "trafs"

    moof: Int64 = column("i8", "row", "number of the moof in the scan")
    track: Int64 = column("i8", "", "track_ID")
    flags: Int64 = column("i8", "bits", "flags of the tfhd")
    base: Int64 = column("i8", "byte", "base_data_offset", nullable=True)
    time: Int64 = column("i8", "tick", "tfdt, else tfxd", nullable=True)
    time_kind: Int64 = column("i8", "", "0: none, 1: tfdt v0, 2: tfdt v1, 3: tfxd")
    gap: Int64 = column("i8", "tick", "time without samples, by duration-is-empty")


class PlainTrack(NamedTuple):
    """The trafs of one track, each with one run, in file order.

    Attributes:
        trafs: rows one after the other: of `Trafs` moof, flags, time and time_kind, of `Runs` all
            but traf. Moofs count from the first one of the batch.
        points: likewise the columns of `SyncPoints`.
        doubted: whether some sync samples may say that they depend on others (see `runs.DEPENDS`).
    """

    track: int
    trafs: Int64
    points: Int64
    doubted: bool = True

    @classmethod
    def of(cls, trafs: Trafs, runs: Runs, points: SyncPoints) -> PlainTrack:
        """The rows of three tables of one track, without a base or a gap."""
        columns = [trafs.moof, trafs.flags, trafs.time, trafs.time_kind]
        columns += list(runs.columns().values())[1:]
        marks = list(points.columns().values())
        rows, marked = (np.array(c, np.int64).T.reshape(-1) for c in (columns, marks))
        return cls(int(trafs.track[0]), rows, marked)

    @classmethod
    def from_bytes(cls, track: int, trafs: bytes, points: bytes, doubted: bool) -> PlainTrack:
        """The rows as they are packed, int64 each."""
        rows = np.frombuffer(trafs, np.int64), np.frombuffer(points, np.int64)
        return cls(track, *rows, doubted)

    @property
    def length(self) -> int:
        """Trafs."""
        return len(self.trafs) // (3 + len(Runs.schema()))

    @property
    def marks(self) -> int:
        """Sync samples, evenly spaced ones as one."""
        return len(self.points) // len(SyncPoints.schema())

    def moved(self, moofs: int, runs: int) -> PlainTrack:
        """The same with so many moofs and so many trafs of the track before them."""
        if not moofs and not runs:
            return self
        trafs, points = self.trafs.copy(), self.points.copy()
        trafs[:: 3 + len(Runs.schema())] += moofs
        points[:: len(SyncPoints.schema())] += runs
        return self._replace(trafs=trafs, points=points)

    def tables(self, first_moof: int = 0) -> tuple[Trafs, Runs, SyncPoints]:
        """The three tables; moofs are counted from `first_moof`."""
        moof, flags, time, time_kind, *of_runs = self.trafs.reshape(-1, 3 + len(Runs.schema())).T
        n = len(moof)
        track, base, gap = np.full(n, self.track), np.full(n, NULL), np.zeros(n, np.int64)
        trafs = Trafs(moof + first_moof, track, flags, base, time, time_kind, gap)
        points = self.points.reshape(-1, len(SyncPoints.schema())).T
        return trafs, Runs(np.arange(n), *of_runs), SyncPoints(*points)


Plain: TypeAlias = dict[int, PlainTrack]
"""track_ID → its trafs and their sync samples, where all fragments are plain (see `shapes`)."""


@record(slots=True)
class Batch:
    """What one batch of fragments says.

    Attributes:
        first_moof: number of its first moof in the whole scan.
        trafs, runs, points: the tables.
        damaged: which moofs of the batch break the rules; they are left out of the tables.
        wide_offsets: unsigned composition offsets of 2^31 or more, read as signed.
        backward: durations of 2^31 or more, read as signed.
        entries: (track_ID, sample_description_index) that tfhd boxes name.
        descriptions: of each traf the index that its tfhd names, 0: none; with details.
        loose: truns that have more bytes than their samples take.
        unknown_defaults: (track_ID, duration, size or flags) that were needed and that neither
            tfhd nor trex says.
        details: what is needed to write out every sample, where it was requested.
        groups: sbgp, csgp and sgpd boxes that speak of access points; `traf` counts in `trafs`.
        more: whether fragments may say more of their samples, by boxes that are content.
        plain: the same by track_ID, where all fragments are plain (see `shapes`); then trafs, runs
            and points are empty until `flat` is called.
    """

    first_moof: int
    trafs: Trafs
    runs: Runs
    points: SyncPoints
    damaged: Mask
    wide_offsets: int = 0
    backward: int = 0
    entries: set[tuple[int, int]] = field(default_factory=set)
    descriptions: Int64 | None = None
    loose: int = 0
    unknown_defaults: set[tuple[int, str]] = field(default_factory=set)
    details: RunDetails | None = None
    groups: list[GroupBox] = field(default_factory=list)
    more: bool = False
    plain: Plain | None = None

    def flat(self) -> Batch:
        """The batch with its trafs, runs and points in file order, if it holds them by track."""
        if self.plain is not None:
            tables = [track.tables(self.first_moof) for track in self.plain.values()]
            self.trafs, self.runs, self.points = in_file_order(tables)
            self.plain = None
        return self


def joined_plain(batches: Sequence[Batch]) -> Plain | None:
    """Several batches as one, where all of them are plain; moofs count from the first of all."""
    if any(batch.plain is None for batch in batches):
        return None
    if len(batches) == 1:
        return batches[0].plain
    parts: dict[int, list[PlainTrack]] = {}
    rows: dict[int, int] = {}
    for batch in batches:
        moofs = batch.first_moof - batches[0].first_moof
        for track, part in (batch.plain or {}).items():
            before = rows.get(track, 0)
            moved = part.moved(moofs, before)
            parts.setdefault(track, []).append(moved)
            rows[track] = before + moved.length
    return {
        track: PlainTrack(
            track,
            np.concatenate([part.trafs for part in some]),
            np.concatenate([part.points for part in some]),
            any(part.doubted for part in some),
        )
        for track, some in parts.items()
    }


def in_file_order(
    parts: list[tuple[Trafs, Runs, SyncPoints]],
) -> tuple[Trafs, Runs, SyncPoints]:
    """Plain fragments of several tracks or shapes as one table each, in file order.

    Where each starts does not depend on the others, so that their order in a moof is free.
    """
    if len(parts) == 1:
        return parts[0]
    parts = sorted(parts, key=lambda part: int(part[0].moof[0]))
    trafs = Trafs.concat([part[0] for part in parts])
    before = np.cumsum([0] + [len(part[0]) for part in parts])[:-1]
    runs = Runs.concat([part[1] for part in parts])
    points = SyncPoints.concat([part[2] for part in parts])
    run = points.run + np.repeat(before, [len(part[2]) for part in parts])
    if (trafs.moof[1:] >= trafs.moof[:-1]).all():
        # Mostly an odd fragment or two stand at the start or the end.
        runs = replace(runs, traf=np.arange(len(trafs)))
        return trafs, runs, replace(points, run=run)
    order = np.argsort(trafs.moof, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    run = rank[run]
    by_run = np.argsort(run, kind="stable")
    return (
        trafs.rows(order),
        Runs.of(runs.rows(order).columns() | {"traf": np.arange(len(order))}),
        SyncPoints.of(points.rows(by_run).columns() | {"run": run[by_run]}),
    )


def track_ids(track: Int64) -> list[int]:
    """The different track_IDs of a column, rising.

    They are small numbers as a rule, for which counting is faster than sorting; it also spares
    the import of numpy.ma, which numpy's unique needs.
    """
    if len(track) and int(track.max()) < SMALL_IDS + 16 * len(track):
        return np.flatnonzero(np.bincount(track)).tolist()
    return sorted(set(track.tolist()))


class _Owners:
    """Which traf each box inside a traf belongs to.

    Where every traf holds the same kinds of boxes in the same order, as one muxer writes them,
    the boxes of a kind are every p-th row.
    """

    def __init__(self, rows: Rows) -> None:
        self.kinds = rows["type"].copy()
        depth = rows["depth"].copy()
        self.offset, self.size = rows["offset"].copy(), rows["size"].copy()
        self.body = self.offset + rows["header"]
        self.room = self.size - rows["header"]
        self.period = self._period(depth)
        if self.period:
            self.traf = np.arange(0, len(rows), self.period)
            return
        self.traf = np.flatnonzero((self.kinds == TRAF) & (depth == 1))
        # Boxes of these kinds elsewhere than in a traf are nobody's: a moof in a moof is gone into.
        around = np.maximum.accumulate(np.where(depth == 1, np.arange(len(rows)), 0))
        self.kinds[(depth != 2) | (self.kinds[around] != TRAF)] = 0
        self.traf_of = np.zeros(len(rows), np.int64)
        self.traf_of[self.traf] = 1
        np.cumsum(self.traf_of, out=self.traf_of)

    def _period(self, depth: npt.NDArray[np.uint8]) -> int:
        kinds = self.kinds
        if not len(kinds) or kinds[0] != TRAF:
            return 0
        behind = np.flatnonzero(kinds[1:MAX_PERIOD] == TRAF)
        period = int(behind[0]) + 1 if len(behind) else len(kinds)
        if period > MAX_PERIOD or len(kinds) % period or len(set(kinds[:period].tolist())) < period:
            return 0
        if TFHD_CODE not in kinds[:period]:
            return 0  # a traf without one is damaged, and is looked for by itself
        same = (kinds.reshape(-1, period) == kinds[:period]).all()
        levels = depth.reshape(-1, period)
        return period if same and (levels[:, 0] == 1).all() and (levels[:, 1:] == 2).all() else 0

    def boxes(self, kind: int) -> tuple[Any, Int64]:
        """Rows of the boxes of a kind (an index), and the number of the traf of each."""
        if self.period:
            place = np.flatnonzero(self.kinds[: self.period] == kind)
            if not len(place):
                return slice(0, 0), np.zeros(0, np.int64)
            return slice(int(place[0]), None, self.period), np.arange(len(self.traf))
        where = np.flatnonzero(self.kinds == kind)
        return where, self.traf_of[where] - 1


def decode(
    buffer: memoryview,
    moofs: Rows,
    inner: Rows,
    first_moof: int,
    defaults: Mapping[int, SampleDefaults],
    *,
    details: bool = False,
) -> Batch:
    """Read the fragments of one batch.

    Args:
        buffer: holds every moof of the batch.
        moofs: rows of the moofs, as `native.walk` gives them among its `top`; offsets in `buffer`.
        inner: rows of what stands inside of them, likewise.
    """
    owners = _Owners(inner)
    body, room = owners.body, owners.room
    traf_moof = _moof_of(moofs["offset"], owners.offset[owners.traf])
    damaged = moofs["damaged"] != 0
    n = len(traf_moof)

    # tfhd: exactly one in each traf (8.8.7.1); where there are more, the first counts.
    where, owner = owners.boxes(TFHD_CODE)
    if not owners.period and (len(owner) != n or (owner != np.arange(n)).any()):
        owner, first = np.unique(owner, return_index=True)
        where = where[first]
        missing = np.ones(n, np.bool_)
        missing[owner] = False
        damaged[traf_moof[missing]] = True
    track, flags = np.zeros(n, np.int64), np.zeros(n, np.int64)
    values = {name: np.full(n, NULL) for name in (*SAMPLE_DEFAULTS, "base")}
    entries: set[tuple[int, int]] = set()
    descriptions = np.zeros(n, np.int64)
    words, groups = groups_of(buffer, body[where], room[where], TFHD)
    flags[owner] = words & 0xFFFFFF
    for group in groups:
        to = owner[group.rows]
        if group.short:
            damaged[traf_moof[to]] = True
            continue
        track[to] = group.fields["track_ID"]
        for name, column_values in values.items():
            declared = "base_data_offset" if name == "base" else f"default_sample_{name}"
            if declared in group.fields:
                column_values[to] = group.fields[declared]
        if "sample_description_index" in group.fields:
            descriptions[to] = group.fields["sample_description_index"]
            named = track[to].astype(np.uint64) << np.uint64(32)
            keys = np.sort(named | descriptions[to].astype(np.uint64))
            is_new = np.ones(len(keys), np.bool_)  # most boxes of a track name the same
            is_new[1:] = keys[1:] != keys[:-1]
            keys = keys[is_new][:MOST_ENTRIES]
            entries |= {(key >> 32, key & 0xFFFFFFFF) for key in keys.tolist()}
    lacks = apply_defaults(values, track, defaults)

    time, time_kind = _times(buffer, owners, n, damaged, traf_moof)
    gap = np.where(flags & DURATION_IS_EMPTY, values["duration"], 0)
    values["duration"] = signed(values["duration"])
    base = values["base"]
    # No file is so large: a position there is outside of it, and sums with it fit in 64 bits.
    base[(base != NULL) & ((base < 0) | (base > FARTHEST))] = FARTHEST
    trafs = Trafs(traf_moof + first_moof, track, flags, base, time, time_kind, gap)

    where, owner = owners.boxes(TRUN_CODE)
    decoder = RunDecoder(
        buffer,
        owner,
        *(values[name][owner] for name in SAMPLE_DEFAULTS),
        missing={name: lacking[owner] for name, lacking in lacks.items()},
        keep_groups=details,
    )
    bad = decoder.read(body[where], room[where])
    damaged[traf_moof[owner[bad]]] = True
    batch = Batch(
        first_moof,
        trafs,
        decoder.runs(),
        decoder.points(),
        damaged,
        wide_offsets=decoder.wide_offsets,
        backward=decoder.backward,
        entries=entries,
        loose=decoder.loose,
        more=inside_says_more(buffer, inner),
    )
    for name, lacking in decoder.lacking.items():
        batch.unknown_defaults |= {(t, name) for t in track_ids(track[owner[lacking]])}
    for kind in (SBGP, CSGP, SGPD):
        at, trafs_of = owners.boxes(kind)
        if len(trafs_of):
            sizes = owners.size[at]
            batch.groups += group_boxes(buffer, owners.offset[at], sizes, body[at], trafs_of)
    if details:
        batch.details = decoder.details(~damaged[traf_moof[owner]])
        batch.descriptions = descriptions
    return _without(batch, traf_moof) if damaged.any() else batch


def _moof_of(moofs: Int64, trafs: Int64) -> Int64:
    """Number of the moof around each traf."""
    if len(moofs) == len(trafs) and (trafs[:-1] < moofs[1:]).all() and (trafs > moofs).all():
        return np.arange(len(trafs))
    return np.searchsorted(moofs, trafs) - 1


def _times(
    buffer: memoryview, owners: _Owners, trafs: int, damaged: Mask, traf_moof: Int64
) -> tuple[Int64, Int64]:
    """Tfdt of each traf, or PIFF's tfxd where there is none; never both added.

    Version 1 of tfdt is read as signed: producers wrote negative times (8.8.12).
    """
    time, kind = np.full(trafs, NULL), np.zeros(trafs, np.int64)
    where, owner = owners.boxes(TFDT_CODE)
    for group in groups_of(buffer, owners.body[where], owners.room[where], TFDT)[1]:
        to = owner[group.rows]
        if group.short:
            damaged[traf_moof[to]] = True
            continue
        time[to], kind[to] = group.fields["baseMediaDecodeTime"], 1 + (group.version > 0)
    where, owner = owners.boxes(UUID)
    bodies, rooms = owners.body[where].tolist(), owners.room[where].tolist()
    for traf, end, room in zip(owner.tolist(), bodies, rooms, strict=True):
        if kind[traf] or room < 8 or buffer[end - 16 : end] != TFXD:
            continue
        width = 8 if buffer[end] else 4
        if room >= 4 + width:
            raw = buffer[end + 4 : end + 4 + width]
            time[traf], kind[traf] = int.from_bytes(raw, "big", signed=width == 8), 3
    return near_times(time), kind


def near_times(time: Int64) -> Int64:
    """Decode times, NULL where they lie further than 2^61 ticks from 0.

    No recording lasts so long, and what is added to such a time leaves 64 bits.
    """
    if not len(time) or (time.max() <= FARTHEST and time.min() >= -FARTHEST):
        return time
    return np.where((time > FARTHEST) | (time < -FARTHEST), NULL, time)


def apply_defaults(
    values: Mapping[str, Int64], track: Int64, defaults: Mapping[int, SampleDefaults]
) -> dict[str, Mask]:
    """Fill what no tfhd says, NULL in its columns, with the track's trex (8.8.7.1).

    Returns: by column the trafs that neither gives a value, which is 0 then.
    """
    lacks: dict[str, Mask] = {}
    for name in SAMPLE_DEFAULTS:
        column = values[name]
        where = np.flatnonzero(column == NULL)
        if not len(where):
            continue
        ids = track_ids(track[where])
        known = [defaults.get(one) for one in ids]
        place = np.searchsorted(ids, track[where])
        column[where] = np.array([getattr(trex, name) if trex else 0 for trex in known])[place]
        lacking = np.array([trex is None for trex in known])[place]
        if lacking.any():
            lacks[name] = np.zeros(len(track), np.bool_)
            lacks[name][where[lacking]] = True
    return lacks


def _without(batch: Batch, traf_moof: Int64) -> Batch:
    """The batch less its damaged moofs."""
    keep_traf = ~batch.damaged[traf_moof]
    new_traf = np.cumsum(keep_traf) - 1
    keep_run = keep_traf[batch.runs.traf]
    new_run = np.cumsum(keep_run) - 1
    runs = batch.runs.rows(keep_run)
    points = batch.points.rows(keep_run[batch.points.run])
    batch.trafs = batch.trafs.rows(keep_traf)
    if batch.descriptions is not None:
        batch.descriptions = batch.descriptions[keep_traf]
    batch.groups = [
        GroupBox(int(new_traf[g.traf]), g.data) for g in batch.groups if keep_traf[g.traf]
    ]
    batch.runs = Runs.of(runs.columns() | {"traf": new_traf[runs.traf]})
    batch.points = SyncPoints.of(points.columns() | {"run": new_run[points.run]})
    return batch
