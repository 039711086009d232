"""Sync samples as evenly spaced runs: few rows, exact times (see `SyncTable`)."""

from __future__ import annotations

import numpy as np

from fragdex.boxes.limits import MAX_OVERLAPPING
from fragdex.errors import LimitExceeded
from fragdex.fragments.table import Int64, SyncTable
from fragdex.indexing import native
from fragdex.record import record

LEAST_ROW = 4
"""Bytes of a sample that has any of its own in a trun or stss."""


@record(slots=True)
class Expansion:
    """How many sync samples may still be written out one by one, since runs of them overlap.

    One for all tracks of a file: what has bytes of its own may be, and `MAX_OVERLAPPING` more.
    """

    left: int = MAX_OVERLAPPING

    @classmethod
    def of(cls, structure: int) -> Expansion:
        """For a file whose boxes, without media data, have so many bytes."""
        return cls(MAX_OVERLAPPING + structure // LEAST_ROW)

    def take(self, count: int) -> None:
        """Count samples that are about to be written out.

        Raises:
            LimitExceeded: they are too many.
        """
        if count > self.left:
            raise LimitExceeded(
                "too many samples without bytes of their own overlap in time",
                path="moof/traf/trun",
                expected=f"at most {self.left}",
                found=count,
            )
        self.left -= count


def sync_table(
    *,
    cts: Int64,
    dts: Int64,
    step: Int64,
    count: Int64,
    sample: Int64,
    fragment: Int64,
    sample_start: Int64 | None = None,
    expansion: Expansion | None = None,
) -> SyncTable:
    """A table from runs of neighbouring samples (sample_step 1), in decode order.

    Runs are sorted by composition time, split where they overlap, and joined where they continue
    each other.

    Args:
        sample_start: of the track's fragments; needed where a run reaches over several.

    Raises:
        LimitExceeded: more of them overlap than `expansion` allows.
    """
    ones = np.ones_like(sample)
    table = SyncTable(cts, dts, step, count, sample, ones, fragment)
    return merged([table], sample_start, expansion=expansion)


def merged(
    tables: list[SyncTable],
    sample_start: Int64 | None = None,
    *,
    expansion: Expansion | None = None,
) -> SyncTable:
    """Several tables of one track as one, sorted by composition time.

    Args:
        sample_start: of the track's fragments; needed where a run reaches over several.

    Raises:
        LimitExceeded: that is more than `expansion` allows.
    """
    table = SyncTable.concat([part for part in tables if len(part)])
    if len(table) < 2 and (not len(table) or table.step[0] >= 0):
        return table
    cells = np.array([getattr(table, column.name) for column in table.schema()])
    joined = native.join_ordered_sync(cells)
    if joined is None:
        table = _parted_where_they_overlap(table, sample_start, expansion or Expansion())
        if len(table) < 2:
            return table
        joined = native.join_sync(np.array(list(table.columns().values())))
    return SyncTable(*joined)


def _parted_where_they_overlap(
    table: SyncTable, sample_start: Int64 | None, expansion: Expansion
) -> SyncTable:
    """The same sync samples in order of time, in runs none of which falls or overlaps others."""
    if table.step.min() < 0:
        falling = table.step < 0
        expansion.take(int(table.count[falling].sum()))
        back = expanded(table.rows(falling), sample_start)
        table = SyncTable.concat([table.rows(~falling), back])
        table = table.rows(np.argsort(table.sample, kind="stable"))
    last = table.cts + (table.count - 1) * table.step
    if len(table) > 1 and (last[:-1] > table.cts[1:]).any():
        total = int(table.count.sum())
        if total <= expansion.left:
            expansion.take(total)
            table = expanded(table, sample_start)
        else:
            table = _parted(table, sample_start, expansion)
        table = table.rows(np.argsort(table.cts, kind="stable"))
    return table


def _parted(table: SyncTable, sample_start: Int64 | None, expansion: Expansion) -> SyncTable:
    """The same sync samples, one by one where runs overlap, in decode order."""
    run, first, stop = _alone(table)
    # The rest of each run stands before, between and after its pieces.
    pieces = np.bincount(run, minlength=len(table))
    heads = np.cumsum(pieces + 1) - pieces - 1
    owner = np.repeat(np.arange(len(table)), pieces + 1)
    begin, end = np.zeros(len(owner), np.int64), table.count[owner]
    begin[np.delete(np.arange(len(owner)), heads)] = stop
    end[np.delete(np.arange(len(owner)), heads + pieces)] = first
    left = end > begin
    expansion.take(int((end - begin).sum()))
    singles = _part(table, owner[left], begin[left], end[left], sample_start)
    wholes = _part(table, run, first, stop, sample_start)
    both = SyncTable.concat([wholes, expanded(singles, sample_start)])
    return both.rows(np.argsort(both.sample, kind="stable"))


def _alone(table: SyncTable) -> tuple[Int64, Int64, Int64]:
    """Parts of runs at whose time no other run has samples: run, first sample, end; sorted."""
    n = len(table)
    numbers = np.arange(n)
    last = table.cts + (table.count - 1) * table.step
    time = np.concatenate([table.cts, last + 1])
    order = np.argsort(time, kind="stable")
    time = time[order]
    open_runs = np.cumsum(np.repeat([1, -1], n)[order])
    # Of one open run, what was added and taken off again leaves its number.
    number = np.cumsum(np.concatenate([numbers, -numbers])[order])
    settled = np.append(time[1:] != time[:-1], True)
    time, open_runs, number = time[settled], open_runs[settled], number[settled]
    single = np.flatnonzero(open_runs[:-1] == 1)
    run, low, high = number[single], time[single], time[single + 1]
    step, cts = table.step[run], table.cts[run]
    each = np.maximum(step, 1)
    first = -((cts - low) // each)
    stop = np.where(step > 0, np.minimum(-((cts - high) // each), table.count[run]), 0)
    # Samples without a duration all stand at one time.
    stop = np.where(step > 0, stop, table.count[run])
    some = np.flatnonzero(stop > first)
    some = some[np.lexsort((first[some], run[some]))]
    return run[some], first[some], stop[some]


def _part(
    table: SyncTable, run: Int64, first: Int64, stop: Int64, sample_start: Int64 | None
) -> SyncTable:
    """Samples `first` to `stop` (exclusive) of some runs."""
    rows, count = table.rows(run), stop - first
    sample = rows.sample + first * rows.sample_step
    return SyncTable(
        rows.cts + first * rows.step,
        rows.dts + first * rows.step,
        np.where(count > 1, rows.step, 0),
        count,
        sample,
        rows.sample_step,
        rows.fragment if sample_start is None else _holding(sample, sample_start),
    )


def _holding(sample: Int64, sample_start: Int64) -> Int64:
    """Rows of the fragments that hold these samples."""
    rows: Int64 = np.searchsorted(sample_start, sample, side="right") - 1
    return rows


def expanded(table: SyncTable, sample_start: Int64 | None = None) -> SyncTable:
    """Every sync sample a row of its own."""
    run = np.repeat(np.arange(len(table)), table.count)
    turn = np.arange(len(run)) - np.repeat(np.cumsum(table.count) - table.count, table.count)
    ones, zeros = np.ones_like(run), np.zeros_like(run)
    sample = table.sample[run] + turn * table.sample_step[run]
    fragment = table.fragment[run]
    if sample_start is not None:
        fragment = _holding(sample, sample_start)
    return SyncTable(
        table.cts[run] + turn * table.step[run],
        table.dts[run] + turn * table.step[run],
        zeros,
        ones,
        sample,
        zeros,
        fragment,
    )
