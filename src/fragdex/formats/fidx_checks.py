"""The tables of a saved index, checked in integers that cannot wrap.

Every check is a few passes over whole columns. First each number is compared with its bounds, so
that the sum of two of them fits in 64 bits; then the tables are compared with each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from fragdex.errors import DamagedIndex
from fragdex.fragments.table import FAR, NULL, FragmentTable, SampleTable, SyncTable, Table
from fragdex.fragments.track_info import SampleGroup

__all__ = ["check_samples", "check_tables"]

Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_SIGNED: Final = frozenset(("dts", "cts", "cts_min", "cts_end", "duration"))
"""Columns in ticks: they may be negative."""


def check_tables(
    track: int,
    fragments: FragmentTable,
    sync: SyncTable,
    groups: Sequence[SampleGroup],
    sample_rows: int | None,
    pointer: str,
) -> None:
    """Check the tables of one track, without its samples.

    Args:
        track: track_ID, for messages.
        sample_rows: rows of its sample table; None where it has none.
        pointer: JSON pointer of its tables.

    Raises:
        DamagedIndex: a number leaves its bounds, or two tables contradict each other.

    >>> check_tables(1, FragmentTable.empty(), SyncTable.empty(), (), None, "/periods/0/tracks/0")
    """
    _bounded(track, fragments, pointer)
    _bounded(track, sync, pointer)
    starts, counts = fragments.sample_start, fragments.sample_count
    numbered = not ((starts == NULL) | (counts == NULL)).any()
    total = int(starts[-1] + counts[-1]) if numbered and len(starts) else 0
    rules = {
        "bytes of samples start before they stop": _before(fragments),
        "sample numbers count the samples before": not numbered or _counted(starts, counts),
        "the samples are as many as the fragments say": sample_rows is None
        or (numbered and total == sample_rows),
        "fewer than 2^62 samples": total < FAR,
        "the first sync sample is one of its fragment": _first_within(fragments),
        "sync samples are in rows of the fragment table": not (
            (sync.fragment < 0) | (sync.fragment >= len(fragments))
        ).any(),
        "each run has a sync sample": not (sync.count < 1).any(),
        "runs are in order of time": not (sync.cts[1:] < sync.cts[:-1]).any(),
        "groups count samples": all(
            0 <= group.sample_start < FAR and 0 <= group.sample_count < FAR for group in groups
        ),
    }
    _need(track, rules, pointer)
    known = sync.dts != NULL
    rules = {
        "times fit in 64 bits": _reach(sync.cts, sync.step, sync.count, FAR)
        and _reach(sync.dts[known], sync.step[known], sync.count[known], FAR),
        "runs of several sync samples say which samples they are": _numbered(sync, numbered),
        "sync samples are samples of their fragments": _within(fragments, sync),
        "there are no more sync samples than samples": not numbered or _few(sync.count, total),
    }
    if numbered:
        known = sync.sample != NULL
        rules["runs of sync samples end inside the track"] = _reach(
            sync.sample[known], sync.sample_step[known], sync.count[known], total
        )
    _need(track, rules, pointer)


def check_samples(track: int, samples: SampleTable, pointer: str) -> None:
    """Check rows of a sample table.

    Raises:
        DamagedIndex: a number leaves its bounds.

    >>> check_samples(1, SampleTable.empty(), "/periods/0/tracks/0")
    """
    _bounded(track, samples, pointer)
    if (samples.sync.view(np.uint8) > 1).any():
        raise _outside(track, "samples", "sync", "bytes 0 and 1", pointer)


def _need(track: int, rules: dict[str, bool], pointer: str) -> None:
    for rule, holds in rules.items():
        if not holds:
            raise DamagedIndex(
                f"the tables of track {track} contradict this: {rule}",
                path=pointer,
                advice="build the index again",
            )


def _outside(track: int, table: str, column: str, expected: str, pointer: str) -> DamagedIndex:
    return DamagedIndex(
        f"track {track} has numbers that no file has (column {column} of {table})",
        path=f"{pointer}/{table}",
        expected=expected,
        found="others",
        advice="build the index again",
    )


def _bounded(track: int, table: Table, pointer: str) -> None:
    for column in table.schema():
        values = getattr(table, column.name)
        if values.dtype != np.int64 or not len(values):
            continue
        least = -FAR + 1 if column.name in _SIGNED else -1 if column.name == "sync" else 0
        # Nearly always two passes: the least value and the greatest one.
        if values.min() >= least and values.max() < FAR:
            continue
        bad = (values < least) | (values >= FAR)
        if column.nullable:
            bad &= values != NULL
        if bad.any():
            expected = f"{least} to {FAR - 1}"
            raise _outside(track, table.SCHEMA_NAME, column.name, expected, pointer)


def _before(fragments: FragmentTable) -> bool:
    start, stop = fragments.data_start, fragments.data_stop
    return not (stop < start).any() and not ((start == NULL) != (stop == NULL)).any()


def _counted(starts: Int64, counts: Int64) -> bool:
    return not len(starts) or (
        int(starts[0]) == 0 and bool((starts[1:] - starts[:-1] == counts[:-1]).all())
    )


def _first_within(fragments: FragmentTable) -> bool:
    known = fragments.sample_count != NULL
    return not (known & (fragments.sync >= fragments.sample_count) & (fragments.sync >= 0)).any()


def _reach(first: Int64, step: Int64, count: Int64, end: int) -> bool:
    """Whether the last of each run is below `end`; the first ones are above −`FAR`."""
    several = count > 1
    if several.any():
        most = (end - 1 - first[several]) // (count[several] - 1)
        if (step[several] > most).any():
            return False
    return not (first >= end).any()


def _numbered(sync: SyncTable, known: bool) -> bool:
    several = sync.count > 1
    if not several.any():
        return True
    return known and not (several & ((sync.sample == NULL) | (sync.sample_step < 1))).any()


def _within(fragments: FragmentTable, sync: SyncTable) -> bool:
    first, count = fragments.sample_start[sync.fragment], fragments.sample_count[sync.fragment]
    known = (sync.sample != NULL) & (first != NULL) & (count != NULL)
    within = np.where(known, sync.sample, 0) - np.where(known, first, 0)
    return not (known & ((within < 0) | (within >= count))).any()


def _few(count: Int64, total: int) -> bool:
    if not len(count):
        return True
    # The sum itself may wrap where the greatest one does not.
    many = int(count.max()) * len(count) >= FAR
    return (sum(count.tolist()) if many else int(count.sum())) <= total
