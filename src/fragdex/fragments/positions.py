"""Where a fragment's samples lie: the only place that knows (ISO/IEC 14496-12, 8.8.7 and 8.8.8).

The base is base_data_offset if it is there; else the moof, for the first traf or with
default-base-is-moof; else the end of the data of the traf before. data_offset counts from the
base; a run without one follows the run before it.

Everything is computed for all fragments at once. A value that depends on the row before it
(a chain) is an anchor plus the difference of two running sums.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fragdex.boxes.tfhd import DEFAULT_BASE_IS_MOOF
from fragdex.fragments.batch import Trafs
from fragdex.fragments.bounds import Layout
from fragdex.fragments.findings import Findings
from fragdex.fragments.runs import Runs
from fragdex.fragments.table import NULL, Int64

__all__ = ["Positions", "chained", "positions", "regular_positions", "rule_bases", "run_starts"]

Mask = npt.NDArray[np.bool_]


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
    start = base[runs.traf] + relative
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
    return Positions(start, repaired, ~good)


def rule_bases(trafs: Trafs, moof: Int64, end: Int64) -> Int64:
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
    for track in sorted(set(trafs.track[where].tolist()))[:64]:
        mine = where[trafs.track[where] == track]
        findings.add(
            code,
            message,
            offset=int(moof[mine[0]]),
            path="moof/traf",
            track=track,
            count=len(mine),
        )


def _inside(start: Int64, trafs: Trafs, runs: Runs, layout: Layout, *, own: bool = False) -> Mask:
    """Which trafs have every run inside an mdat: with a named base any, else their own ones.

    Args:
        start: of each run.
        own: ask for the fragment's own mdats in any case.
    """
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
