"""The fragments that one moov governs, from batches to tables.

Fragments are settled group by group while the file goes by, so that memory holds the finished
tables and one group: positions of a regular file need only the boxes around a fragment. At the
first group that is not regular (data elsewhere than in its own mdats, or a moov that comes later),
everything from there on waits for the end of the file, where the whole layout is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fragdex.boxes import Box
from fragdex.boxes.limits import MAX_TRACKS
from fragdex.errors import LimitExceeded
from fragdex.fragments.findings import Findings
from fragdex.fragments.table import NULL, FragmentTable, Growing, SyncTable
from fragdex.fragments.track_info import SampleDefaults, SampleGroup
from fragdex.indexing import native
from fragdex.indexing.batch import Batch, Plain, PlainTrack, Trafs, decode, joined_plain
from fragdex.indexing.groups import GroupBox, fragment_groups
from fragdex.indexing.headers import Int64, Rows, Shaped
from fragdex.indexing.positions import (
    MDAT,
    MOOF,
    Layout,
    Positions,
    lay_out,
    positions,
    regular_positions,
    rule_bases,
    run_starts,
)
from fragdex.indexing.resolve import Settled, TrackState, regular_tables, resolve, track_tables
from fragdex.indexing.runs import Runs, SyncPoints
from fragdex.indexing.shapes import Shapes, by_shape
from fragdex.record import record

ENOUGH = 2048
"""Fragments that are settled together; fewer cost more calls, more leave the processor's cache."""


Parts: TypeAlias = tuple[Growing[FragmentTable], Growing[SyncTable]]
"""The tables of one track, as far as they are settled."""


@record(slots=True)
class Section:
    """The fragments that one moov governs.

    Attributes:
        moov: number of the moov in the file, or -1 where none came before.
        states: track_ID → where the track continues.
        deferred: whether everything that comes waits for the end of the file.
        stbls: track_ID → stbl, whose group descriptions fragments may name.
        decoders: track_ID → what decodes its samples.
        repeats: whether its moov is that of the section before: by its bytes, or by tracks that
            decode alike and name no samples.
        more: whether fragments may say more of samples, by boxes that are content.
        grouped: whether fragments put samples into access-point groups.
        doubted: track_IDs of which some sync sample may say that it depends on others.
        done: about which share of the file has been seen; tables grow by it.
    """

    moov: int
    states: dict[int, TrackState] = field(default_factory=dict)
    deferred: bool = False
    stbls: Mapping[int, Box] = field(default_factory=dict)
    decoders: Mapping[int, bytes] = field(default_factory=dict)
    repeats: bool = False
    more: bool = False
    grouped: bool = False
    wide_offsets: int = 0
    backward: int = 0
    entries: set[tuple[int, int]] = field(default_factory=set)
    loose: int = 0
    unknown_defaults: set[tuple[int, str]] = field(default_factory=set)
    doubted: set[int] = field(default_factory=set)
    done: float = 0.5
    _parts: dict[int, Parts] = field(default_factory=dict)
    _groups: dict[int, list[SampleGroup]] = field(default_factory=dict)
    _batches: list[Batch] = field(default_factory=list)
    _tops: list[Rows] = field(default_factory=list)
    _waiting: int = 0

    def add(self, top: Rows, batch: Batch | None, findings: Findings) -> None:
        """Take the next stretch of the file."""
        if not len(top):
            return
        if self._waiting >= ENOUGH and not self.deferred and self._closed(top):
            self._settle(findings)
        self._tops.append(top)
        if batch is not None:
            self._batches.append(batch)
            self._waiting += len(batch.damaged)
            self._count_in(batch)

    def _count_in(self, other: Batch | Section) -> None:
        """Add what is odd about other fragments."""
        self.wide_offsets += other.wide_offsets
        self.backward += other.backward
        self.entries |= other.entries
        self.loose += other.loose
        self.more |= other.more
        self.unknown_defaults |= other.unknown_defaults

    def _closed(self, top: Rows) -> bool:
        """Whether the fragments that wait are whole, and what comes begins a new one.

        Other boxes may stand between: only a moof shows that no more media data comes.
        """
        if _first_of_them(top["type"]) != MOOF:
            return False
        passed = (_first_of_them(one["type"][::-1]) for one in reversed(self._tops))
        return next(filter(None, passed)) == MDAT

    def _settle(self, findings: Findings) -> None:
        layout = lay_out(self._tops)
        first = self._batches[0].first_moof
        plain = joined_plain(self._batches)
        if plain is not None:
            if not self._settle_plain(plain, layout, findings, self.done):
                self.deferred = True
                return
            self._go_on()
            return
        trafs, runs, points, boxes = _joined(self._batches, first)
        where = regular_positions(trafs, runs, layout)
        if where is None:
            self.deferred = True
            return
        self._resolve(trafs, runs, points, boxes, where, layout, findings)
        self._go_on()

    def _go_on(self) -> None:
        """Forget what is settled but for the last mdat: a moof after it may have its data there.

        Boxes after that introduce the moof.
        """
        tail = [self._tops.pop()]
        while (mdat := last_place(tail[-1], MDAT)) is None:
            tail.append(self._tops.pop())
        tail[-1] = tail[-1][mdat:]
        self._tops = tail[::-1]
        self._batches.clear()
        self._waiting = 0

    def _settle_plain(
        self, plain: Plain, layout: Layout, findings: Findings, done: float | None
    ) -> bool:
        """Settle fragments that are already separated by track; False where one is not regular.

        `done`: as in `Growing.add`.
        """
        self.doubted |= {track for track, rows in plain.items() if rows.doubted}
        if len(self.states) + len(plain) > MAX_TRACKS:
            return False
        states: dict[int, TrackState] = {}
        parts: dict[int, Parts] = {}
        for track, rows in plain.items():
            parts[track] = self._parts.get(track) or (Growing(FragmentTable), Growing(SyncTable))
            state = self.states.get(track) or TrackState()
            later = regular_tables(rows, layout, state, *parts[track], done)
            if later is None:
                return self._settle_by_rules(plain, layout, findings)
            states[track] = later
        self.states |= states
        self._parts |= parts
        for track, rows in plain.items():
            fragments, sync = parts[track]
            fragments.grow(rows.length)
            sync.grow(rows.marks)
        return True

    def _settle_by_rules(
        self, plain: Mapping[int, PlainTrack], layout: Layout, findings: Findings
    ) -> bool:
        """The same where there is something to note, or the C extension is not there."""
        parts = {track: rows.tables() for track, rows in plain.items()}
        places = {}
        for track, (trafs, runs, _) in parts.items():
            where = regular_positions(trafs, runs, layout)
            if where is None:
                return False
            places[track] = where
        for track, (trafs, runs, points) in parts.items():
            state = self.states.setdefault(track, TrackState())
            where = places[track]
            tables = track_tables(track, trafs, runs, points, where, layout, state, findings)
            self._put(track, tables)
        return True

    def finish(
        self,
        whole: Callable[[], Layout],
        moofs: int,
        findings: Findings,
        *,
        strict: bool,
    ) -> dict[int, Settled]:
        """The tables of every track, by track_ID, once the file has ended.

        Sync runs are not joined yet.

        Args:
            whole: gives the layout of the whole file, for what had to wait for it.
            moofs: fragments from this number (in the file) on are left out.
        """
        if self._batches and not self._finish_plain(moofs, findings):
            if self.deferred:
                layout, first = whole(), 0
            else:
                layout, first = lay_out(self._tops), self._batches[0].first_moof
            trafs, runs, points, boxes = _joined(self._batches, first)
            keep = int(np.searchsorted(trafs.moof, moofs - first))
            if keep < len(trafs):
                trafs = trafs.rows(slice(keep))
                runs = runs.rows(slice(int(np.searchsorted(runs.traf, keep))))
                points = points.rows(slice(int(np.searchsorted(points.run, len(runs)))))
                boxes = [box for box in boxes if box.traf < keep]
            where = positions(trafs, runs, layout, findings, strict=strict)
            self._resolve(trafs, runs, points, boxes, where, layout, findings)
        self._batches.clear()
        return {track: (rows.taken(), sync.taken()) for track, (rows, sync) in self._parts.items()}

    def _finish_plain(self, moofs: int, findings: Findings) -> bool:
        """Settle the last fragments at once where they are plain and regular, and none is left out.

        Then positions have nothing to repair and nothing to note, so that `strict` does not matter.
        """
        last = self._batches[-1]
        plain = None if self.deferred else joined_plain(self._batches)
        if plain is None or last.first_moof + len(last.damaged) > moofs:
            return False
        return self._settle_plain(plain, lay_out(self._tops), findings, None)

    def _put(self, track: int, tables: Settled) -> None:
        if track not in self._parts:
            self._parts[track] = Growing(FragmentTable), Growing(SyncTable)
        fragments, sync = self._parts[track]
        fragments.add(tables[0], self.done)
        sync.add(tables[1], self.done)

    def groups(self, track: int) -> tuple[SampleGroup, ...]:
        """The access-point groups of a track's fragments; after `finish`."""
        return tuple(self._groups.get(track, ()))

    def wants_data(self, moof: int, at: int) -> bool:
        """Whether a fragment that waits, its moof at byte `at`, names samples after its moof."""
        for batch in map(Batch.flat, reversed(self._batches)):
            trafs, runs = batch.trafs, batch.runs
            mine = (trafs.moof[runs.traf] == moof) & (runs.size > 0)
            # A base or an offset may lead back, to media data that stands before. Most muxers
            # that name a base name the moof's own place.
            relative, end = run_starts(runs, trafs)
            start = rule_bases(trafs, np.full(len(trafs), at), end)[runs.traf] + relative
            if mine.any():
                return bool((mine & (start >= at)).any())
        return False

    def take_over(self, other: Section) -> None:
        """Put the fragments of another section, which stood before, in front."""
        self._batches[:0] = other._batches
        self._count_in(other)
        self.deferred = True

    def first_times(self) -> dict[int, int]:
        """track_ID → the first decode time that its fragments state; before any is settled."""
        return _stated(self._batches, last=False)

    def last_times(self) -> dict[int, int]:
        """track_ID → the last decode time that its fragments state."""
        settled = {track: int(rows.last("dts")) for track, (rows, _) in self._parts.items()}
        return settled | _stated(self._batches, last=True)

    def append(self, other: Section) -> None:
        """Append the fragments of another section, which continue with its times."""
        self._tops += other._tops
        self._batches += other._batches
        self._waiting += other._waiting
        self._count_in(other)
        self.deferred = True

    @property
    def empty(self) -> bool:
        """Whether it has no fragments."""
        return not self._batches and not self._parts

    def _resolve(
        self,
        trafs: Trafs,
        runs: Runs,
        points: SyncPoints,
        boxes: list[GroupBox],
        where: Positions,
        layout: Layout,
        findings: Findings,
    ) -> None:
        self._refuse_many(trafs, layout)
        resolved = resolve(trafs, runs, points, where, layout, self.states, findings)
        self.doubted |= resolved.keys()
        for track, tables in resolved.items():
            self._put(track, tables)
        if boxes:
            self._group(trafs, runs, boxes)

    def _refuse_many(self, trafs: Trafs, layout: Layout) -> None:
        """Raise where these trafs name more tracks than a movie may have."""
        if len(self.states) + len(trafs) <= MAX_TRACKS:
            return
        # Numbers that lie close together cannot be many.
        if len(self.states) + int(np.ptp(trafs.track)) < MAX_TRACKS:
            return
        seen = set(self.states)
        for row, track in enumerate(trafs.track.tolist()):
            seen.add(track)
            if len(seen) > MAX_TRACKS:
                raise LimitExceeded(
                    "the fragments have too many tracks",
                    path="moof/traf/tfhd",
                    offset=int(layout.moof[trafs.moof[row]]),
                    expected=f"at most {MAX_TRACKS}",
                    found=f"more than {MAX_TRACKS}",
                )

    def _group(self, trafs: Trafs, runs: Runs, boxes: list[GroupBox]) -> None:
        """Note the access-point groups of trafs whose samples `states` has counted in."""
        self.grouped = True
        order = np.argsort(trafs.track, kind="stable")
        track = trafs.track[order]
        heads = np.flatnonzero(np.diff(track, prepend=-1))
        sizes = np.diff(np.append(heads, len(track)))
        counts = np.zeros(len(trafs), np.int64)
        np.add.at(counts, runs.traf, runs.count)
        ends = np.cumsum(counts[order])
        samples = np.array([self.states[one].samples for one in track[heads].tolist()])
        first = np.empty(len(trafs), np.int64)
        first[order] = ends - counts[order] + np.repeat(samples - ends[heads + sizes - 1], sizes)
        chosen: dict[int, list[GroupBox]] = {}
        for box in boxes:
            chosen.setdefault(int(trafs.track[box.traf]), []).append(box)
        for one, mine in chosen.items():
            groups = fragment_groups(mine, first, counts, self.stbls.get(one))
            self._groups.setdefault(one, []).extend(groups)


def _stated(batches: Sequence[Batch], *, last: bool) -> dict[int, int]:
    """track_ID → the first or the last decode time that its trafs state."""
    times: dict[int, int] = {}
    for batch in batches if last else reversed(batches):
        trafs = batch.flat().trafs
        timed = trafs.rows(trafs.time != NULL)
        order = slice(None) if last else slice(None, None, -1)
        times |= dict(zip(timed.track[order].tolist(), timed.time[order].tolist(), strict=True))
    return times


NEAR = 8
"""Boxes at an end of a stretch that are looked at before all others."""


def last_place(top: Rows, kind: int) -> int | None:
    """Number of the last box of a type, or None."""
    types = top["type"]
    near: list[int] = types[-NEAR:].tolist()
    if kind in near:
        return len(types) - 1 - near[::-1].index(kind)
    places = np.flatnonzero(types == kind)
    return int(places[-1]) if len(places) else None


def _first_of_them(types: npt.NDArray[np.uint32]) -> int:
    """The first moof or mdat among types of boxes, or 0."""
    first = next((kind for kind in types[:NEAR].tolist() if kind in (MOOF, MDAT)), 0)
    if not first:
        places = np.flatnonzero((types == MOOF) | (types == MDAT))
        first = int(types[places[0]]) if len(places) else 0
    return first


def read_batch(
    buffer: memoryview,
    at: Int64,
    sizes: Int64,
    first_moof: int,
    defaults: Mapping[int, SampleDefaults],
    shapes: Shapes,
    walked: Shaped | None = None,
) -> Batch:
    """What the fragments of a stretch say, read by their shape where they are plain.

    Args: as of `by_shape`, besides:
        first_moof: number of the first one in the whole scan.
    """
    shaped = by_shape(buffer, at, sizes, defaults, shapes, walked)
    if shaped is not None:
        plain, wide, backward = shaped
        undamaged = np.zeros(len(at), np.bool_)
        nothing = (Trafs.empty(), Runs.empty(), SyncPoints.empty())
        return Batch(
            first_moof,
            *nothing,
            undamaged,
            wide_offsets=wide,
            backward=backward,
            more=shapes.more,
            plain=plain,
        )
    # Joined, moofs follow each other and can be walked with their inside.
    joined = memoryview(native.join(buffer, at, sizes))
    met = native.walk(joined, 0, 1 << 62, inside=True)
    return decode(joined, met.top, met.inner, first_moof, defaults)


def _joined(
    batches: Sequence[Batch], first_moof: int
) -> tuple[Trafs, Runs, SyncPoints, list[GroupBox]]:
    """Several batches as one; moofs are counted from `first_moof` on."""
    trafs_before = runs_before = 0
    parts: tuple[list[Trafs], list[Runs], list[SyncPoints]] = ([], [], [])
    boxes: list[GroupBox] = []
    for batch in map(Batch.flat, batches):
        trafs, runs, points = batch.trafs, batch.runs, batch.points
        boxes += [GroupBox(box.traf + trafs_before, box.data) for box in batch.groups]
        if trafs_before:
            runs = Runs.of(runs.columns() | {"traf": runs.traf + trafs_before})
            points = SyncPoints.of(points.columns() | {"run": points.run + runs_before})
        if first_moof:
            trafs = Trafs.of(trafs.columns() | {"moof": trafs.moof - first_moof})
        parts[0].append(trafs)
        parts[1].append(runs)
        parts[2].append(points)
        trafs_before += len(trafs)
        runs_before += len(runs)
    return Trafs.concat(parts[0]), Runs.concat(parts[1]), SyncPoints.concat(parts[2]), boxes
