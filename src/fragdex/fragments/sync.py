"""Sync samples as evenly spaced runs: few rows, exact times (see `SyncTable`)."""

from __future__ import annotations

import numpy as np

from fragdex.fragments.table import Int64, SyncTable

__all__ = ["expanded", "merged", "sync_table"]

MAX_EXPANDED = 1 << 24
"""Sync samples that are written out one by one where runs of a file overlap in time."""


def sync_table(
    *, cts: Int64, dts: Int64, step: Int64, count: Int64, sample: Int64, fragment: Int64
) -> SyncTable:
    """A table from runs of neighbouring samples (sample_step 1), in decode order.

    Runs are sorted by composition time, split where they overlap, and joined where they continue
    each other.
    """
    ones = np.ones_like(sample)
    return merged([SyncTable(cts, dts, step, count, sample, ones, fragment)])


def merged(tables: list[SyncTable], sample_start: Int64 | None = None) -> SyncTable:
    """Several tables of one track as one, sorted by composition time.

    Args:
        tables: in any order.
        sample_start: of the track's fragments; needed where a run reaches over several.
    """
    table = SyncTable.concat([part for part in tables if len(part)])
    last = table.cts + (table.count - 1) * table.step
    if len(table) > 1 and (last[:-1] > table.cts[1:]).any():
        if int(table.count.sum()) <= MAX_EXPANDED:
            table = expanded(table, sample_start)
        table = table.rows(np.argsort(table.cts, kind="stable"))
    return _joined(table)


def expanded(table: SyncTable, sample_start: Int64 | None = None) -> SyncTable:
    """Every sync sample a row of its own.

    Args:
        table: any sync table.
        sample_start: of the track's fragments; needed where a run reaches over several.
    """
    run = np.repeat(np.arange(len(table)), table.count)
    turn = np.arange(len(run)) - np.repeat(np.cumsum(table.count) - table.count, table.count)
    ones, zeros = np.ones_like(run), np.zeros_like(run)
    sample = table.sample[run] + turn * table.sample_step[run]
    fragment = table.fragment[run]
    if sample_start is not None:
        fragment = np.searchsorted(sample_start, sample, side="right") - 1
    return SyncTable(
        table.cts[run] + turn * table.step[run],
        table.dts[run] + turn * table.step[run],
        zeros,
        ones,
        sample,
        zeros,
        fragment,
    )


def _joined(table: SyncTable) -> SyncTable:
    """The same sync samples in fewer rows: runs that continue each other become one."""
    if len(table) < 2:
        return table
    if (table.count == 1).any():
        table = _progressions(table)
    return _continued(table) if (table.count > 1).any() else table


def _continued(table: SyncTable) -> SyncTable:
    """Join runs where the next one starts exactly one step behind the last sample."""
    t = table
    # A run of one sample continues with any step.
    step = np.where((t.count == 1) & (np.arange(len(t)) > 0), np.roll(t.step, 1), t.step)
    span = t.count * t.step
    follows = np.zeros(len(t), np.bool_)
    follows[1:] = (
        (t.cts[1:] == t.cts[:-1] + span[:-1])
        & (t.dts[1:] == t.dts[:-1] + span[:-1])
        & (t.sample[1:] == t.sample[:-1] + t.count[:-1] * t.sample_step[:-1])
        & (step[1:] == t.step[:-1])
        & (t.step[:-1] > 0)
        & (t.sample_step[1:] == t.sample_step[:-1])
    )
    heads = np.flatnonzero(~follows)
    counts = np.add.reduceat(t.count, heads)
    rows = t.rows(heads)
    return SyncTable.of(rows.columns() | {"count": counts})


def _progressions(table: SyncTable) -> SyncTable:
    """Join single samples that are evenly spaced in time and number."""
    cts, dts, sample = np.diff(table.cts), np.diff(table.dts), np.diff(table.sample)
    alone = table.count == 1
    # Times advance alike in both, or the run cannot be written with one step.
    even = (cts == dts) & (cts > 0) & alone[1:] & alone[:-1]
    same = (cts[1:] == cts[:-1]) & (sample[1:] == sample[:-1]) & even[1:] & even[:-1]
    # A stretch of equal differences i covers rows i + 1, and the very first also row 0.
    first = np.flatnonzero(np.concatenate([[True], ~same]))
    length = np.diff(np.append(first, len(cts)))
    rows = np.append(0, first + 1)
    covered = np.append(1, length)
    if even[0]:
        rows, covered = np.delete(rows, 1), covered[1:]
        covered[0] += 1
    many = covered > 1
    picked = table.rows(rows)
    return SyncTable.of(
        picked.columns()
        | {
            "count": np.where(many, covered, picked.count),
            "step": np.where(many, np.append(cts, 0)[rows], picked.step),
            "sample_step": np.where(many, np.append(sample, 0)[rows], picked.sample_step),
        }
    )
