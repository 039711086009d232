"""The samples of some fragments of one track, made when they are asked for.

The moofs of the wanted rows are joined and read again; decode times and repairs come from the
fragment table, so that the answer is the one the table was made with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from fragdex.boxes.tfhd import DEFAULT_BASE_IS_MOOF
from fragdex.boxes.trun import (
    SAMPLE_COMPOSITION_TIME_OFFSET,
    SAMPLE_DURATION,
    SAMPLE_FLAGS,
    SAMPLE_SIZE,
)
from fragdex.fragments import hop
from fragdex.fragments.batch import decode
from fragdex.fragments.positions import chained, run_starts
from fragdex.fragments.runs import RunDetails, column_of
from fragdex.fragments.summing import NON_SYNC
from fragdex.fragments.table import NULL, FragmentFlags, FragmentTable, Int64, SampleTable
from fragdex.fragments.tracks import SampleDefaults

__all__ = ["MoofBytes", "samples_of"]

MoofBytes = Callable[[Int64], tuple[bytes, Int64]]
"""Offsets of moofs in the file → their bytes joined, and the size of each."""

AT_ONCE = 8192
"""Fragments expanded together; bounds the memory beside the finished table."""


def samples_of(
    track: int,
    fragments: FragmentTable,
    moof_bytes: MoofBytes,
    defaults: Mapping[int, SampleDefaults],
) -> SampleTable:
    """Every sample of these rows of a track's fragment table, in decode order."""
    parts = [
        _samples(track, fragments.rows(slice(at, at + AT_ONCE)), moof_bytes, defaults)
        for at in range(0, len(fragments), AT_ONCE)
    ]
    return SampleTable.concat(parts)


def _samples(
    track: int,
    fragments: FragmentTable,
    moof_bytes: MoofBytes,
    defaults: Mapping[int, SampleDefaults],
) -> SampleTable:
    joined, _ = moof_bytes(fragments.moof_offset)
    buffer = memoryview(joined)
    met = hop.walk(buffer, 0, 1 << 62, inside=True)
    batch = decode(buffer, met.top, met.inner, 0, defaults, details=True)
    trafs, runs = batch.trafs, batch.runs
    relative, end = run_starts(runs, trafs)
    # Everything is reckoned for all tracks, since an implicit base follows the traf before it.
    moof = fragments.moof_offset[trafs.moof]
    named = trafs.base != NULL
    first = np.diff(trafs.moof, prepend=-1) != 0
    from_moof = first | ((trafs.flags & DEFAULT_BASE_IS_MOOF) != 0)
    repaired = (fragments.flags[trafs.moof] & FragmentFlags.REPAIRED) != 0
    base = chained(named | from_moof, np.where(named, trafs.base, moof), end)
    base = np.where(repaired, moof, base)
    start = base[runs.traf] + relative

    chosen = np.flatnonzero(trafs.track[runs.traf] == track)
    mine = np.flatnonzero(trafs.track == track)
    traf = np.searchsorted(mine, runs.traf[chosen])
    run = runs.rows(chosen)
    first_traf = np.diff(trafs.moof[mine], prepend=-1) != 0
    row = np.cumsum(first_traf) - 1
    advance = trafs.gap[mine] + np.bincount(traf, run.duration, len(mine)).astype(np.int64)
    # The first traf of a row starts where the table says; a later one by its own tfdt, if any.
    value = np.where(first_traf, fragments.dts[row], trafs.time[mine])
    with np.errstate(over="ignore"):
        dts = chained(first_traf | (trafs.time[mine] != NULL), value, advance)
        first_run = np.diff(traf, prepend=-1) != 0
        run_dts = chained(first_run, dts[traf], run.duration) if len(run) else run.duration
    details = batch.details
    assert details is not None
    return _expand(details, chosen, start[chosen], run_dts)


def _expand(details: RunDetails, chosen: Int64, start: Int64, run_dts: Int64) -> SampleTable:
    """One row per sample of the chosen runs."""
    count = details.count[chosen]
    total = int(count.sum())
    begin = np.cumsum(count) - count
    run = np.repeat(np.arange(len(chosen)), count)
    size = details.default_size[chosen][run]
    duration = details.default_duration[chosen][run]
    flags = details.default_flags[chosen][run]
    offset = np.zeros(total, np.int64)
    place = np.full(len(details.count), -1)
    place[chosen] = np.arange(len(chosen))
    for group in details.groups:
        wanted = np.flatnonzero((place[group.rows] >= 0) & (details.count[group.rows] > 0))
        rows = group.rows[wanted]
        counts = details.count[rows]
        table = np.frombuffer(
            hop.join(details.buffer, group.at[wanted], counts * group.stride), ">u4"
        )
        table = table.reshape(-1, max(1, group.stride // 4))
        to = _spread(begin[place[rows]], counts)
        for mask, column in (
            (SAMPLE_DURATION, duration),
            (SAMPLE_SIZE, size),
            (SAMPLE_FLAGS, flags),
            (SAMPLE_COMPOSITION_TIME_OFFSET, offset),
        ):
            values = column_of(table, group.flags, mask)
            if values is not None:
                if mask == SAMPLE_COMPOSITION_TIME_OFFSET:
                    values = values.astype(np.uint32).view(np.int32)
                column[to] = values
        if group.first_flags is not None:
            flags[begin[place[rows]]] = group.first_flags[wanted]
    dts = _running(duration, begin, count) + run_dts[run]
    return SampleTable(
        offset=_running(size, begin, count) + start[run],
        size=size,
        dts=dts,
        cts=dts + offset,
        duration=duration,
        sync=(flags & NON_SYNC) == 0,
    )


def _spread(begin: Int64, count: Int64) -> Int64:
    """begin[0], begin[0] + 1, … count[0] times, then from begin[1] on."""
    ends = np.cumsum(count)
    spread: Int64 = np.arange(int(ends[-1]) if len(ends) else 0)
    spread += np.repeat(begin - (ends - count), count)
    return spread


def _running(values: Int64, begin: Int64, count: Int64) -> npt.NDArray[np.int64]:
    """Sum of the values before each one, from the start of its run."""
    running = np.cumsum(values) - values
    filled = count > 0
    running -= np.repeat(running[begin[filled]], count[filled])
    return running
