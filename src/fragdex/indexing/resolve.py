"""When a fragment's samples play, and the tables that follow: the only place that knows.

Times (ISO/IEC 14496-12, 8.8.12): tfdt, PIFF's tfxd where there is none, else the end of the
fragment before. Positions come from `positions`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from fragdex.errors import LimitExceeded
from fragdex.fragments.findings import Findings
from fragdex.fragments.table import (
    FARTHEST,
    NULL,
    FragmentFlags,
    FragmentTable,
    Growing,
    Int64,
    SyncTable,
)
from fragdex.indexing import native
from fragdex.indexing.batch import PlainTrack, Trafs, track_ids
from fragdex.indexing.positions import (
    EVERY,
    MDAT_HEADER,
    Layout,
    Positions,
    Which,
    begins,
    chained,
    rows_of,
)
from fragdex.indexing.runs import Runs, SyncPoints
from fragdex.record import record

FEW_TRACKS = 8
"""Tracks up to which each is picked out by comparing; many more are sorted."""

Mask = npt.NDArray[np.bool_]
Settled = tuple[FragmentTable, SyncTable]


@record(slots=True)
class TrackState:
    """What continues from one part of a file to the next.

    Attributes:
        next_dts: decode time of the next sample, where nothing else says it.
        samples, rows: samples and fragments so far.
        short_time: decode time of the last traf if its tfdt has 32 bits, which run over.
        began: decode time of the last traf that has samples.
    """

    next_dts: int = 0
    samples: int = 0
    rows: int = 0
    short_time: int | None = None
    began: int | None = None


@record(slots=True)
class _Track:
    trafs: Int64
    runs: Int64
    points: Int64


def resolve(
    trafs: Trafs,
    runs: Runs,
    points: SyncPoints,
    where: Positions,
    layout: Layout,
    states: dict[int, TrackState],
    findings: Findings,
) -> dict[int, Settled]:
    """The tables of every track that the trafs name; sync runs are not joined yet.

    Args:
        trafs, runs, points: what the batches say; `trafs.moof` counts in `layout.moof`.
        states: track_ID → where it continues; brought up to date.
    """
    tables = {}
    for track, chosen in _by_track(trafs, runs, points):
        mine, run, point = (
            trafs.rows(chosen.trafs),
            runs.rows(chosen.runs),
            points.rows(chosen.points),
        )
        run = Runs.of(run.columns() | {"traf": np.searchsorted(chosen.trafs, run.traf)})
        point = SyncPoints.of(point.columns() | {"run": np.searchsorted(chosen.runs, point.run)})
        here = Positions(
            where.start[chosen.runs], where.repaired[chosen.trafs], where.outside[chosen.trafs]
        )
        state = states.setdefault(track, TrackState())
        tables[track] = track_tables(track, mine, run, point, here, layout, state, findings)
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
    ids = track_ids(track)
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


def regular_tables(
    plain: PlainTrack,
    layout: Layout,
    state: TrackState,
    fragments: Growing[FragmentTable],
    sync: Growing[SyncTable],
    done: float | None = None,
) -> TrackState | None:
    """What `track_tables` makes of positions by the rule, where there is nothing to note.

    Args:
        state: where the track continues; it stays as it is.
        fragments, sync: the rows are written after those of these tables, which do not have them
            until they `grow` by the rows and the marks of `plain`.
        done: as in `Growing.add`.

    Returns: where the track continues then; None where something must be looked at more closely,
    or the C extension is not there.
    """
    if layout.columns is None:
        return None
    settled = native.settle(
        plain.trafs,
        plain.points,
        layout.columns,
        (state.samples, state.rows, _or_null(state.short_time), _or_null(state.began)),
        *(*fragments.reserve(plain.length, done), *sync.reserve(plain.marks, done)),
    )
    if settled is None:
        return None
    next_dts, samples, short_time, began = settled
    return TrackState(
        next_dts,
        samples,
        state.rows + plain.length,
        None if short_time == NULL else short_time,
        None if began == NULL else began,
    )


def _or_null(time: int | None) -> int:
    return NULL if time is None else time


def track_tables(
    track: int,
    mine: Trafs,
    run: Runs,
    point: SyncPoints,
    where: Positions,
    layout: Layout,
    state: TrackState,
    findings: Findings,
) -> Settled:
    """The tables of one track; sync runs are not joined yet.

    Args:
        mine, run, point: of this track alone; `run.traf` counts in `mine`, `point.run` in `run`.
        state: where the track continues; brought up to date.
    """
    n, start = len(mine), where.start
    traf = rows_of(run.traf, n)
    new_row = begins(mine.moof)
    heads: Which = EVERY if new_row.all() else np.flatnonzero(new_row)
    row_of_traf: Which = EVERY if heads is EVERY else np.cumsum(new_row) - 1
    row = _through(row_of_traf, traf)
    rows = int(new_row.sum())

    # Decode times: a chain over the trafs, then one over the runs of each traf.
    timed = mine.time != NULL
    advance = _added(traf, run.duration, n) + mine.gap
    begin = 0 if timed[0] else state.next_dts
    # Floats do not wrap; a single run lasts less than 2^60 ticks.
    total = max(float(np.abs(part).sum(dtype=np.float64)) for part in (advance, run.duration))
    if total >= FARTHEST / 2 or abs(begin) + total >= FARTHEST * 1.5:
        raise LimitExceeded(  # the times would leave 64 bits
            "the samples of a track last too long",
            path="moof/traf",
            expected="less than 2^60 ticks",
            found=f"about {total:.3g}, from {begin} on",
        )
    anchor, value = timed, mine.time
    if not timed[0]:
        anchor, value = timed.copy(), np.where(timed, mine.time, state.next_dts)
        anchor[0] = True
    with np.errstate(over="ignore"):
        traf_dts = run_dts = chained(anchor, value, advance)
        if traf is not EVERY:
            run_dts = chained(begins(run.traf), traf_dts[traf], run.duration)
    _note_times(track, mine, traf_dts, advance, layout, state, findings)

    count = _added(row, run.count, rows)
    sample_start = np.cumsum(count) - count + state.samples
    run_sample = sample_start
    if row is not EVERY:
        run_sample = np.cumsum(run.count) - run.count + state.samples
    dts = traf_dts[heads]
    filled = run.count > 0
    if not filled.all():
        kept, row_kept = run.rows(filled), _through(row, np.flatnonzero(filled))
        start_kept, run_dts_kept = start[filled], run_dts[filled]
    else:
        kept, row_kept, start_kept, run_dts_kept = run, row, start, run_dts
    cts_min = _edge(np.minimum, row_kept, run_dts_kept + kept.cts_min, dts)
    cts_end = _edge(np.maximum, row_kept, run_dts_kept + kept.cts_end, dts)
    size, null, sized = kept.size, np.full(rows, NULL), kept.size > 0
    if not sized.all():  # runs of no bytes lie nowhere
        row_kept = _through(row_kept, np.flatnonzero(sized))
        start_kept, size = start_kept[sized], size[sized]
    data_start = _edge(np.minimum, row_kept, start_kept, null)
    data_stop = _edge(np.maximum, row_kept, start_kept + size, null)

    flags = np.zeros(rows, np.uint32)
    for which, flag in (
        (where.repaired, FragmentFlags.REPAIRED),
        (where.outside, FragmentFlags.OUTSIDE),
        (~timed, FragmentFlags.NO_TFDT),
        (mine.base != NULL, FragmentFlags.DECLARED_BASE),
    ):
        if which.any():
            flags[_through(row_of_traf, np.flatnonzero(which))] |= np.uint32(flag)

    point_run = rows_of(point.run, len(run))
    sample = run_sample[point_run] + point.index
    point_row, point_dts = _through(row, point.run), run_dts[point_run]
    sync = np.full(rows, -1)
    if len(point_row):
        first = np.flatnonzero(begins(point_row))
        with_sync = point_row[first]
        sync[with_sync] = sample[first] - sample_start[with_sync]
    moof = rows_of(mine.moof[heads], len(layout.moof))
    offset, stop = layout.start[moof], layout.stop[moof]
    before = (data_start != NULL) & (data_start < offset)
    own = layout.own_first[moof]
    before &= own < len(layout.mdat_start)
    if before.any():
        # One producer writes the mdat in front of its moof.
        head = layout.mdat_start[np.minimum(own, len(layout.mdat_start) - 1)] - MDAT_HEADER
        stop = np.where(before & (data_stop <= offset), layout.moof_stop[moof], stop)
        offset = np.where(before & (head <= data_start), head, offset)
    offset, stop = _with_data(offset, stop, data_start, data_stop, layout)
    fragments = FragmentTable(
        offset=np.array(offset) if moof is EVERY else offset,
        size=stop - offset,
        moof_offset=np.array(layout.moof) if moof is EVERY else layout.moof[moof],
        data_start=data_start,
        data_stop=data_stop,
        dts=dts,
        duration=_added(row_of_traf, advance, rows),
        cts_min=cts_min,
        cts_end=cts_end,
        sample_start=sample_start,
        sample_count=count,
        first_sync=sync,
        flags=flags,
    )
    table = SyncTable(
        cts=point_dts + point.cts,
        dts=point_dts + point.dts,
        step=point.step,
        count=point.count,
        sample=sample,
        sample_step=np.ones_like(sample),
        fragment=point_row + state.rows,
    )
    with np.errstate(over="ignore"):
        state.next_dts = int(traf_dts[-1] + advance[-1])
    state.samples += int(count.sum())
    state.rows += rows
    return fragments, table


def _through(outer: Which, inner: Any) -> Any:
    """Rows that are named through others: those of `outer` that `inner` names."""
    return inner if outer is EVERY else outer[inner]  # type: ignore[index]


def _with_data(
    offset: Int64, stop: Int64, data_start: Int64, data_stop: Int64, layout: Layout
) -> tuple[Int64, Int64]:
    """Extents that hold the samples: as far as the mdats that these lie in, wherever they are."""
    mdats = layout.mdat_start
    out = (data_start != NULL) & ((data_start < offset) | (data_stop > stop))
    if not out.any() or not len(mdats):
        return offset, stop
    first = np.searchsorted(mdats, data_start, side="right") - 1
    last = np.searchsorted(mdats, data_stop, side="left") - 1
    out &= (first >= 0) & (last >= 0)
    out &= (data_start < layout.mdat_stop[first]) & (data_stop <= layout.mdat_stop[last])
    return (
        np.where(out, np.minimum(offset, mdats[first] - MDAT_HEADER), offset),
        np.where(out, np.maximum(stop, layout.mdat_stop[last]), stop),
    )


def _added(group: Which, values: Int64, groups: int) -> Int64:
    """Sum of the values of each group; groups are sorted."""
    if isinstance(group, slice):
        return values
    out = np.zeros(groups, np.int64)
    if len(group):
        first = np.flatnonzero(begins(group))
        out[group[first]] = np.add.reduceat(values, first)
    return out


def _edge(pick: np.ufunc, group: Which, values: Int64, default: Int64) -> Int64:
    """Least or greatest value of each group; the default where a group has none."""
    if isinstance(group, slice):
        return values
    out = default.copy()
    if len(group):
        first = np.flatnonzero(begins(group))
        out[group[first]] = pick.reduceat(values, first)
    return out


def _note_times(
    track: int,
    trafs: Trafs,
    dts: Int64,
    advance: Int64,
    layout: Layout,
    state: TrackState,
    findings: Findings,
) -> None:
    def note(which: Mask, code: str, message: str) -> None:
        where = np.flatnonzero(which)
        if len(where):
            at = int(layout.moof[trafs.moof[where[0]]])
            findings.add(code, message, offset=at, path="moof/traf", track=track, count=len(where))

    kind = trafs.time_kind
    short = kind == 1
    if not short.all():
        note(kind == 0, "no-tfdt", "no tfdt; decode times continue from the fragment before")
        far = (kind != 0) & (trafs.time == NULL)
        note(far, "far-tfdt", "the decode time is further than 2^61 ticks from 0; it is ignored")
        negative = (kind == 2) & (trafs.time < 0) & ~far
        note(negative, "negative-tfdt", "the decode time is 2^63 or more; it was read as negative")
    back = np.zeros(len(dts), np.bool_)
    back[1:] = short[1:] & short[:-1] & (dts[1:] - dts[:-1] < -(2**31))
    back[0] = short[0] and state.short_time is not None and dts[0] - state.short_time < -(2**31)
    state.short_time = int(dts[-1]) if short[-1] else None
    note(back, "tfdt-wrapped", "a 32-bit decode time falls back by more than 2^31 ticks")
    lasting = rows_of(np.flatnonzero(advance > 0), len(dts))
    began = dts[lasting]
    if len(began):
        again = np.zeros(len(dts), np.bool_)
        fresh = state.began is None or began[0] > state.began
        again[lasting] = np.append(not fresh, began[1:] <= began[:-1])
        note(
            again & ~back & (kind != 0),
            "time-again",
            "a fragment begins no later than the one before it, as one that comes twice does",
        )
        state.began = int(began[-1])
