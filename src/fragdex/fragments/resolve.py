"""Where a fragment's samples lie and when they play: the only place that knows.

Positions (ISO/IEC 14496-12, 8.8.7 and 8.8.8): base_data_offset if it is there; else the moof,
for the first traf or with default-base-is-moof; else the end of the data of the traf before.
data_offset counts from there; a run without one follows the run before it.

Times (8.8.12): tfdt, PIFF's tfxd where there is none, else the end of the fragment before.

Everything is computed for all fragments at once. A value that depends on the row before it
(a chain) is an anchor plus the difference of two running sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fragdex.boxes.tfhd import DEFAULT_BASE_IS_MOOF
from fragdex.fragments.batch import Trafs
from fragdex.fragments.bounds import Layout
from fragdex.fragments.findings import Findings
from fragdex.fragments.runs import Runs, SyncPoints
from fragdex.fragments.table import NULL, FragmentFlags, FragmentTable, Int64, SyncTable

__all__ = ["Settled", "TrackState", "regular", "resolve", "run_starts"]

FEW_TRACKS = 8
"""Tracks up to which each is picked out by comparing; many more are sorted."""

Mask = npt.NDArray[np.bool_]
Settled = tuple[FragmentTable, SyncTable]


@dataclass(slots=True)
class TrackState:
    """What goes on from one part of a file to the next: decode time and sample number.

    >>> TrackState().samples
    0
    """

    next_dts: int = 0
    samples: int = 0
    rows: int = 0


@dataclass(slots=True)
class _Track:
    trafs: Int64
    runs: Int64
    points: Int64


def chained(anchor: Mask, value: Int64, advance: Int64) -> Int64:
    """Value where `anchor`, else what stands before plus what it advances by.

    The first row must be an anchor.

    >>> chained(np.array([True, False, True]), np.array([10, 0, 50]), np.array([1, 2, 3]))
    array([10, 11, 50])
    """
    if anchor.all():
        return value
    running = np.cumsum(advance) - advance
    last = np.maximum.accumulate(np.where(anchor, np.arange(len(anchor)), 0))
    chain: Int64 = value[last] + running - running[last]
    return chain


def run_starts(runs: Runs, trafs: Trafs) -> tuple[Int64, Int64]:
    """Start of each run from its traf's base, and the end of each traf's last run from it."""
    named = runs.data_offset != NULL
    first = np.diff(runs.traf, prepend=-1) != 0
    start = chained(named | first, np.where(named, runs.data_offset, 0), runs.size)
    end = np.zeros(len(trafs), np.int64)
    last = np.flatnonzero(np.diff(runs.traf, append=-1) != 0)
    end[runs.traf[last]] = (start + runs.size)[last]
    return start, end


def regular(trafs: Trafs, runs: Runs, layout: Layout) -> bool:
    """Whether every run lies in its fragment's own mdats by the rule, with no base named."""
    if (trafs.base != NULL).any():
        return False
    relative, end = run_starts(runs, trafs)
    base = _rule(trafs, layout.moof[trafs.moof], end)
    return bool(_inside(base, trafs, runs, relative, layout).all())


def resolve(
    trafs: Trafs,
    runs: Runs,
    points: SyncPoints,
    layout: Layout,
    states: dict[int, TrackState],
    findings: Findings,
    *,
    strict: bool = False,
) -> dict[int, Settled]:
    """The tables of every track that the trafs name; sync runs are not joined yet.

    Args:
        trafs, runs, points: what the batches say; `trafs.moof` counts in `layout.moof`.
        states: track_ID → where it goes on; brought up to date.
        findings: odd things are noted here.
        strict: keep the positions of the rule where they miss the media data.
    """
    relative, end = run_starts(runs, trafs)
    base, repaired, outside = _bases(trafs, runs, relative, end, layout, strict, findings)
    start = base[runs.traf] + relative
    tables = {}
    for track, chosen in _by_track(trafs, runs, points):
        state = states.setdefault(track, TrackState())
        tables[track] = _track_tables(
            track, chosen, trafs, runs, points, start, repaired, outside, layout, state, findings
        )
    return tables


def _by_track(trafs: Trafs, runs: Runs, points: SyncPoints) -> Iterator[tuple[int, _Track]]:
    """The rows of each track, by track_ID."""
    if not len(trafs):
        return
    track = trafs.track
    if (track == track[0]).all():
        every = (np.arange(len(table)) for table in (trafs, runs, points))
        yield int(track[0]), _Track(*every)
        return
    by_run = track if _same_rows(runs.traf, trafs) else track[runs.traf]
    by_point = by_run if _same_rows(points.run, runs) else by_run[points.run]
    ids = np.unique(track).tolist()
    if len(ids) <= FEW_TRACKS:
        for one in ids:
            mine = np.flatnonzero(track == one)
            my_runs = mine if by_run is track else np.flatnonzero(by_run == one)
            my_points = my_runs if by_point is by_run else np.flatnonzero(by_point == one)
            yield one, _Track(mine, my_runs, my_points)
        return
    parts = []
    for column in (track, by_run, by_point):
        order = np.argsort(column, kind="stable")
        parts.append(np.split(order, np.searchsorted(column[order], ids[1:])))
    for one, mine, my_runs, my_points in zip(ids, *parts, strict=True):
        yield one, _Track(mine, my_runs, my_points)


def _same_rows(owner: Int64, owners: Runs | Trafs) -> bool:
    """Whether every row owns exactly one, in order."""
    n = len(owners)
    return len(owner) == n and bool((owner == np.arange(n)).all())


def _bases(
    trafs: Trafs,
    runs: Runs,
    relative: Int64,
    end: Int64,
    layout: Layout,
    strict: bool,
    findings: Findings,
) -> tuple[Int64, Mask, Mask]:
    """Base of each traf, whether it was repaired, and whether its data lies outside."""
    moof = layout.moof[trafs.moof]
    named = trafs.base != NULL
    base = _rule(trafs, moof, end)
    repaired = np.zeros(len(trafs), np.bool_)
    good = _inside(base, trafs, runs, relative, layout)
    if good.all():
        return base, repaired, ~good
    if not strict:
        # Decided for a whole moof: with a stale base only some of its runs leave the media data.
        other = _inside(moof, trafs, runs, relative, layout, own=True)
        bad_moof = np.zeros(len(layout.moof), np.bool_)
        bad_moof[trafs.moof[~good]] = True
        fine_moof = np.ones(len(layout.moof), np.bool_)
        fine_moof[trafs.moof[~other]] = False
        repaired = (bad_moof & fine_moof)[trafs.moof] & (base != moof)
        if repaired.any():
            base = np.where(repaired, moof, base)
            good |= repaired
            for stale, code, text in (
                (named, "stale-base-offset", "base_data_offset does not lead to the media data"),
                (~named, "base-not-moof", "no base is declared, and positions count from the moof"),
            ):
                _note(findings, repaired & stale, trafs, moof, code, text + "; the moof was taken")
    _note(
        findings,
        ~good,
        trafs,
        moof,
        "data-outside",
        "samples lie outside of every mdat, or past the end of the file",
    )
    return base, repaired, ~good


def _rule(trafs: Trafs, moof: Int64, end: Int64) -> Int64:
    """Base of each traf by the rule (8.8.7.1)."""
    named = trafs.base != NULL
    from_moof = (trafs.flags & DEFAULT_BASE_IS_MOOF) != 0
    if from_moof.all() and not named.any():
        return moof
    from_moof |= np.diff(trafs.moof, prepend=-1) != 0
    return chained(named | from_moof, np.where(named, trafs.base, moof), end)


def _note(
    findings: Findings, which: Mask, trafs: Trafs, moof: Int64, code: str, message: str
) -> None:
    where = np.flatnonzero(which)
    for track in np.unique(trafs.track[where])[:64].tolist():
        mine = where[trafs.track[where] == track]
        findings.add(
            code,
            message,
            offset=int(moof[mine[0]]),
            path="moof/traf",
            track=track,
            count=len(mine),
        )


def _inside(
    base: Int64, trafs: Trafs, runs: Runs, relative: Int64, layout: Layout, *, own: bool = False
) -> Mask:
    """Which trafs have every run inside an mdat: with a named base any, else their own ones.

    Args:
        own: ask for the fragment's own mdats in any case.
    """
    start = base[runs.traf] + relative
    stop = start + runs.size
    good = np.ones(len(trafs), np.bool_)
    # A run of nothing lies anywhere.
    real = runs.size > 0
    if not len(layout.mdat_start):
        good[runs.traf[real]] = False
        return good
    moof = trafs.moof[runs.traf]
    first, last = layout.own_first[moof], layout.own_last[moof]
    # Nearly always the run lies in the first mdat behind its moof.
    mdat = np.minimum(last, len(layout.mdat_start) - 1)
    fits = (start >= layout.mdat_start[mdat]) & (stop <= layout.mdat_stop[mdat]) & (first <= last)
    if (fits | ~real).all():
        return good
    mdat = np.searchsorted(layout.mdat_start, start, side="right") - 1
    fits = (mdat >= 0) & (stop <= layout.mdat_stop[mdat])
    inside = (mdat >= first) & (mdat <= last)
    if not own:
        inside |= trafs.base[runs.traf] != NULL
    good[runs.traf[~(fits & inside) & real]] = False
    return good


def _track_tables(
    track: int,
    chosen: _Track,
    trafs: Trafs,
    runs: Runs,
    points: SyncPoints,
    start: Int64,
    repaired: Mask,
    outside: Mask,
    layout: Layout,
    state: TrackState,
    findings: Findings,
) -> Settled:
    mine = trafs.rows(chosen.trafs)
    run = runs.rows(chosen.runs)
    start = start[chosen.runs]
    n = len(mine)
    # Rows of this track's trafs and runs, counted within the track.
    paired = chosen.runs is chosen.trafs  # one run in each traf
    traf = np.arange(n) if paired else np.searchsorted(chosen.trafs, run.traf)
    new_row = np.diff(mine.moof, prepend=-1) != 0
    row_of_traf = np.arange(n) if new_row.all() else np.cumsum(new_row) - 1
    row = row_of_traf if paired else row_of_traf[traf]
    rows = int(row_of_traf[-1]) + 1

    # Decode times: a chain over the trafs, then one over the runs of each traf.
    timed = mine.time != NULL
    advance = _added(traf, run.duration, n) + mine.gap
    anchor, value = timed.copy(), mine.time
    if not timed[0]:
        anchor[0], value = True, np.where(timed, mine.time, state.next_dts)
    with np.errstate(over="ignore"):
        traf_dts = chained(anchor, value, advance)
        first_run = np.diff(traf, prepend=-1) != 0
        run_dts = chained(first_run, traf_dts[traf], run.duration)
    _note_times(track, mine, traf_dts, layout, findings)

    count = _added(row, run.count, rows)
    sample_start = np.cumsum(count) - count + state.samples
    run_sample = np.cumsum(run.count) - run.count + state.samples
    heads = np.flatnonzero(new_row)
    dts = traf_dts[heads]
    filled = run.count > 0
    if not filled.all():
        kept, row_kept = run.rows(filled), row[filled]
        start_kept, run_dts_kept = start[filled], run_dts[filled]
    else:
        kept, row_kept, start_kept, run_dts_kept = run, row, start, run_dts
    cts_min = _edge(np.minimum, row_kept, run_dts_kept + kept.cts_min, dts)
    cts_end = _edge(np.maximum, row_kept, run_dts_kept + kept.cts_end, dts)
    null = np.full(rows, NULL)
    data_start = _edge(np.minimum, row_kept, start_kept, null)
    data_stop = _edge(np.maximum, row_kept, start_kept + kept.size, null)

    flags = np.zeros(rows, np.uint32)
    for which, flag in (
        (repaired[chosen.trafs], FragmentFlags.REPAIRED),
        (outside[chosen.trafs], FragmentFlags.OUTSIDE),
        (~timed, FragmentFlags.NO_TFDT),
    ):
        if which.any():
            flags[row_of_traf[which]] |= np.uint32(flag)

    point = points.rows(chosen.points)
    alike = chosen.points is chosen.runs  # one stretch of sync samples in each run
    point_run = np.arange(len(point)) if alike else np.searchsorted(chosen.runs, point.run)
    sample = run_sample[point_run] + point.index
    point_row = row[point_run]
    sync = np.full(rows, -1)
    if len(point_row):
        first = np.flatnonzero(np.diff(point_row, prepend=-1))
        sync[point_row[first]] = sample[first] - sample_start[point_row[first]]
    moof = mine.moof[heads]
    offset, stop = layout.start[moof], layout.stop[moof]
    before = (data_start != NULL) & (data_start < offset) & (layout.own_first[moof] >= 0)
    if before.any():
        # One producer writes the mdat in front of its moof.
        head = layout.mdat_start[layout.own_first[moof]] - 8
        stop = np.where(before & (data_stop <= offset), layout.moof_stop[moof], stop)
        offset = np.where(before & (head <= data_start), head, offset)
    fragments = FragmentTable(
        offset=offset,
        size=stop - offset,
        moof_offset=layout.moof[moof],
        data_start=data_start,
        data_stop=data_stop,
        dts=dts,
        duration=_added(row_of_traf, advance, rows),
        cts_min=cts_min,
        cts_end=cts_end,
        sample_start=sample_start,
        sample_count=count,
        sync=sync,
        flags=flags,
    )
    table = SyncTable(
        cts=run_dts[point_run] + point.cts,
        dts=run_dts[point_run] + point.dts,
        step=point.step,
        count=point.count,
        sample=sample,
        sample_step=np.ones_like(sample),
        fragment=point_row + state.rows,
    )
    state.next_dts = int(traf_dts[-1] + advance[-1])
    state.samples += int(count.sum())
    state.rows += rows
    return fragments, table


def _added(group: Int64, values: Int64, groups: int) -> Int64:
    """Sum of the values of each group; groups are sorted."""
    if _one_each(group, groups):
        return values
    out = np.zeros(groups, np.int64)
    if len(group):
        first = np.flatnonzero(np.diff(group, prepend=-1))
        out[group[first]] = np.add.reduceat(values, first)
    return out


def _one_each(group: Int64, groups: int) -> bool:
    """Whether every group has exactly one member; equal numbers of both do not say so."""
    return len(group) == groups and bool((group[1:] != group[:-1]).all())


def _edge(pick: np.ufunc, group: Int64, values: Int64, default: Int64) -> Int64:
    """Least or greatest value of each group; the default where a group has none."""
    if _one_each(group, len(default)):
        return values
    out = default.copy()
    if len(group):
        first = np.flatnonzero(np.diff(group, prepend=-1))
        out[group[first]] = pick.reduceat(values, first)
    return out


def _note_times(track: int, trafs: Trafs, dts: Int64, layout: Layout, findings: Findings) -> None:
    def note(which: Mask, code: str, message: str) -> None:
        where = np.flatnonzero(which)
        if len(where):
            at = int(layout.moof[trafs.moof[where[0]]])
            findings.add(code, message, offset=at, path="moof/traf", track=track, count=len(where))

    kind = trafs.time_kind
    if not (kind == 1).all():
        note(kind == 0, "no-tfdt", "no tfdt; decode times continue from the fragment before")
        negative = (kind == 2) & (trafs.time < 0)
        note(negative, "negative-tfdt", "the decode time is 2^63 or more; it was read as negative")
    back = np.zeros(len(dts), np.bool_)
    back[1:] = (kind[1:] == 1) & (kind[:-1] == 1) & (np.diff(dts) < -(2**31))
    note(back, "tfdt-wrapped", "a 32-bit decode time falls back by more than 2^31 ticks")
