"""The samples of some fragments of one track, made when they are asked for.

The moofs of the wanted rows are joined and read again; decode times and repairs come from the
fragment table, so that the answer is the one the table was made with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fragdex.boxes.fragments import (
    SAMPLE_COMPOSITION_TIME_OFFSET,
    SAMPLE_DURATION,
    SAMPLE_FLAGS,
    SAMPLE_SIZE,
)
from fragdex.errors import LimitExceeded
from fragdex.fragments import hop
from fragdex.fragments.moof_decoder import MoofDecoder
from fragdex.fragments.positions import chained
from fragdex.fragments.runs import RunDetails, column_of
from fragdex.fragments.summing import NON_SYNC
from fragdex.fragments.table import NULL, FragmentFlags, FragmentTable, Int64, SampleTable
from fragdex.fragments.track_info import SampleDefaults

__all__ = ["MAX_WITHOUT_BYTES", "samples_of"]

LEAST_ROW = 4
"""Bytes of a row of a trun that says anything of its sample."""
MAX_WITHOUT_BYTES = 1 << 18
"""Samples of one table that no byte of the file stands for."""
AT_ONCE = 8192
"""Fragments expanded together; bounds the memory beside the finished table."""


def samples_of(
    track: int,
    fragments: FragmentTable,
    decoder: MoofDecoder,
    defaults: Mapping[int, SampleDefaults],
) -> SampleTable:
    """Every sample of these rows of a track's fragment table, in decode order.

    Raises:
        LimitExceeded: more samples are claimed by runs without rows than media bytes and the bytes
            of the moofs stand for, and `MAX_WITHOUT_BYTES` besides.
    """
    room = _Room.of(fragments)
    parts = [
        _samples(track, fragments.rows(slice(at, at + AT_ONCE)), decoder, defaults, room)
        for at in range(0, len(fragments), AT_ONCE)
    ]
    return SampleTable.concat(parts)


@dataclass(slots=True)
class _Room:
    """How many samples may still be written out that have no row of their own in a trun."""

    left: int

    @classmethod
    def of(cls, fragments: FragmentTable) -> _Room:
        """Samples of fragments have a byte of media data each, if they hold anything."""
        inside = (fragments.data_start != NULL) & (fragments.flags & FragmentFlags.OUTSIDE == 0)
        start, stop = fragments.data_start[inside], fragments.data_stop[inside]
        return cls(MAX_WITHOUT_BYTES + (int(stop.max()) - int(start.min()) if len(start) else 0))

    def take(self, claimed: int, moof_bytes: int, offset: int) -> None:
        """Count samples that fragments from `offset` on claim, whose moofs have so many bytes."""
        self.left += moof_bytes // LEAST_ROW
        if claimed > self.left:
            raise LimitExceeded(
                "too many samples for a table, as they have no bytes in the file",
                path="moof/traf/trun",
                offset=offset,
                expected=f"at most {self.left}",
                found=claimed,
                advice="ask for the samples of other fragments; these have no media",
            )
        self.left -= claimed


def _samples(
    track: int,
    fragments: FragmentTable,
    decoder: MoofDecoder,
    defaults: Mapping[int, SampleDefaults],
    room: _Room,
) -> SampleTable:
    moofs = decoder(fragments.moof_offset, defaults)
    mine, chosen = moofs.of(track)
    claimed = moofs.unwritten[chosen]
    if claimed.any():
        worst = moofs.trafs.moof[moofs.runs.traf[chosen[claimed.argmax()]]]
        room.take(int(claimed.sum()), moofs.size, int(fragments.moof_offset[worst]))
    start = moofs.starts((fragments.flags & FragmentFlags.REPAIRED) != 0)

    trafs, run = moofs.trafs.rows(mine), moofs.runs.rows(chosen)
    traf = np.searchsorted(mine, run.traf)
    first_traf = np.diff(trafs.moof, prepend=-1) != 0
    row = np.cumsum(first_traf) - 1
    advance = trafs.gap + np.bincount(traf, run.duration, len(mine)).astype(np.int64)
    # The first traf of a row starts where the table says; a later one by its own tfdt, if any.
    value = np.where(first_traf, fragments.dts[row], trafs.time)
    with np.errstate(over="ignore"):
        dts = chained(first_traf | (trafs.time != NULL), value, advance)
        first_run = np.diff(traf, prepend=-1) != 0
        run_dts = chained(first_run, dts[traf], run.duration) if len(run) else run.duration
    return _expand(moofs.details, chosen, start[chosen], run_dts)


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
    for group in details.groups:
        if not len(group.rows):
            continue
        place = np.searchsorted(group.rows, chosen)
        held = (count > 0) & (group.rows[np.minimum(place, len(group.rows) - 1)] == chosen)
        wanted, first, counts = place[held], begin[held], count[held]
        table = np.frombuffer(
            hop.join(details.buffer, group.at[wanted], counts * group.stride), ">u4"
        )
        table = table.reshape(-1, max(1, group.stride // 4))
        to = _spread(first, counts)
        for mask, column in (
            (SAMPLE_DURATION, duration),
            (SAMPLE_SIZE, size),
            (SAMPLE_FLAGS, flags),
            (SAMPLE_COMPOSITION_TIME_OFFSET, offset),
        ):
            values = column_of(table, group.flags, mask)
            if values is not None:
                if mask in (SAMPLE_COMPOSITION_TIME_OFFSET, SAMPLE_DURATION):
                    values = values.astype(np.uint32).view(np.int32)
                column[to] = values
        if group.first_flags is not None:
            flags[first] = group.first_flags[wanted]
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
