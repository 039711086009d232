"""Where a fragment's samples lie: the only place that knows (ISO/IEC 14496-12, 8.8.7 and 8.8.8).

The base is base_data_offset if it is there; else the moof, for the first traf or with
default-base-is-moof; else the end of the data of the traf before. data_offset counts from the
base; a run without one follows the run before it.

Everything is computed for all fragments at once. A value that depends on the row before it
(a chain) is an anchor plus the difference of two running sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fragdex.boxes.fragments import DEFAULT_BASE_IS_MOOF
from fragdex.errors import LimitExceeded
from fragdex.fragments.batch import Trafs
from fragdex.fragments.bounds import Layout
from fragdex.fragments.findings import Findings
from fragdex.fragments.runs import Runs
from fragdex.fragments.table import FARTHEST, NULL, Int64

__all__ = [
    "EVERY",
    "Positions",
    "Which",
    "begins",
    "chained",
    "positions",
    "regular_positions",
    "rows_of",
    "rule_bases",
    "run_starts",
]

MOST_NOTED = 64
"""Tracks of which a finding speaks one by one."""

Mask = npt.NDArray[np.bool_]
Which: TypeAlias = Int64 | slice
"""Row numbers, or `EVERY` for all rows in order, of which numpy makes no copy."""
EVERY = slice(None)


def begins(group: Int64) -> Mask:
    """Which rows begin a new group; the rows of a group stand together.

    >>> begins(np.array([4, 4, 7])).tolist()
    [True, False, True]
    """
    found = np.ones(len(group), np.bool_)
    np.not_equal(group[1:], group[:-1], out=found[1:])
    return found


def rows_of(owner: Int64, owners: int) -> Which:
    """The owner of each row, rising; `EVERY` where each owner has exactly one.

    >>> rows_of(np.array([0, 1]), 2), rows_of(np.array([1, 1]), 2)
    (slice(None, None, None), array([1, 1]))
    """
    return EVERY if len(owner) == owners and begins(owner).all() else owner


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
    total = float(runs.size.sum(dtype=np.float64))
    if total >= FARTHEST:
        raise LimitExceeded(
            "the samples of fragments take more bytes than any file has",
            path="moof/traf",
            expected="less than 2^61",
            found=f"about {total:.3g}",
        )
    named = runs.data_offset != NULL
    if rows_of(runs.traf, len(trafs)) is EVERY and named.all():
        return runs.data_offset, runs.data_offset + runs.size
    start = chained(named | begins(runs.traf), np.where(named, runs.data_offset, 0), runs.size)
    end = np.zeros(len(trafs), np.int64)
    last = np.flatnonzero(np.diff(runs.traf, append=-1) != 0)
    end[runs.traf[last]] = (start + runs.size)[last]
    return start, end


@dataclass(frozen=True, slots=True)
class Positions:
    """Where the runs of some fragments start.

    Attributes:
        start: of each run, in bytes of the file.
        repaired: of each traf: the moof was taken for the base that the rule gives.
        outside: of each traf: some of its samples lie outside of every mdat.
    """

    start: Int64
    repaired: Mask
    outside: Mask


def regular_positions(trafs: Trafs, runs: Runs, layout: Layout) -> Positions | None:
    """Positions by the rule, if every run lies in its fragment's own mdats and no base is named.

    None where that is not so: then the whole file must be known.
    """
    if (trafs.base != NULL).any():
        return None
    relative, end = run_starts(runs, trafs)
    base = rule_bases(trafs, layout.moof[trafs.moof], end)
    start = base[rows_of(runs.traf, len(trafs))] + relative
    if not _inside(start, trafs, runs, layout).all():
        return None
    nothing = np.zeros(len(trafs), np.bool_)
    return Positions(start, nothing, nothing)


def positions(
    trafs: Trafs, runs: Runs, layout: Layout, findings: Findings, *, strict: bool
) -> Positions:
    """Positions by the rule, repaired where they miss the media data.

    Args:
        strict: keep the positions of the rule.
    """
    relative, end = run_starts(runs, trafs)
    moof = layout.moof[trafs.moof]
    base = rule_bases(trafs, moof, end)
    start = base[runs.traf] + relative
    repaired = np.zeros(len(trafs), np.bool_)
    good = _inside(start, trafs, runs, layout)
    if not good.all() and not strict:
        # Decided for a whole moof: with a stale base only some of its runs leave the media data.
        other = moof[runs.traf] + relative
        bad_moof = np.zeros(len(layout.moof), np.bool_)
        bad_moof[trafs.moof[~good]] = True
        fine_moof = np.ones(len(layout.moof), np.bool_)
        fine_moof[trafs.moof[~_inside(other, trafs, runs, layout, own=True)]] = False
        repaired = (bad_moof & fine_moof)[trafs.moof] & (base != moof)
        start = np.where(repaired[runs.traf], other, start)
        good |= repaired
        named = trafs.base != NULL
        for stale, code, text in (
            (named, "stale-base-offset", "base_data_offset does not point to the media data"),
            (~named, "base-not-moof", "no base is declared, and positions count from the moof"),
        ):
            _note(findings, repaired & stale, trafs, moof, code, text + "; the moof is used")
    if not good.all():
        # Nothing binds a fragment to the mdat behind it (8.8.4): samples may lie in any.
        good |= _inside(start, trafs, runs, layout, of_all=True)
    _note(
        findings,
        ~good,
        trafs,
        moof,
        "data-outside",
        "samples are outside every mdat, or past the end of the file",
    )
    return Positions(start, repaired, ~good)


def rule_bases(trafs: Trafs, moof: Int64, end: Int64) -> Int64:
    """Base of each traf by the rule (8.8.7.1)."""
    named = trafs.base != NULL
    from_moof = (trafs.flags & DEFAULT_BASE_IS_MOOF) != 0
    if from_moof.all() and not named.any():
        return moof
    from_moof |= begins(trafs.moof)
    return chained(named | from_moof, np.where(named, trafs.base, moof), end)


def _note(
    findings: Findings, which: Mask, trafs: Trafs, moof: Int64, code: str, message: str
) -> None:
    where = np.flatnonzero(which)
    tracks, first, counts = np.unique(trafs.track[where], return_index=True, return_counts=True)
    for track, row, count in zip(tracks[:MOST_NOTED], first, counts, strict=False):
        findings.add(
            code,
            message,
            offset=int(moof[where[row]]),
            path="moof/traf",
            track=int(track),
            count=int(count),
        )


def _inside(
    start: Int64,
    trafs: Trafs,
    runs: Runs,
    layout: Layout,
    *,
    own: bool = False,
    of_all: bool = False,
) -> Mask:
    """Which trafs have every run inside an mdat: with a named base any, else their own ones.

    Args:
        start: of each run.
        own: ask for the fragment's own mdats in any case.
        of_all: ask for any mdat in any case.
    """
    stop = start + runs.size
    good = np.ones(len(trafs), np.bool_)
    # A run of nothing lies anywhere.
    real = runs.size > 0
    moof = trafs.moof[rows_of(runs.traf, len(trafs))]
    # Nearly always the run lies in the last mdat before the next moof.
    fits = (start >= layout.last_start[moof]) & (stop <= layout.last_stop[moof])
    if (fits | ~real).all():
        return good
    if not len(layout.mdat_start):
        good[runs.traf[real]] = False
        return good
    first, last = layout.own_first[moof], layout.own_last[moof]
    mdat = np.searchsorted(layout.mdat_start, start, side="right") - 1
    fits = (mdat >= 0) & (stop <= layout.mdat_stop[mdat])
    inside = ((mdat >= first) & (mdat <= last)) | of_all
    if not own:
        inside |= trafs.base[runs.traf] != NULL
    good[runs.traf[~(fits & inside) & real]] = False
    return good
