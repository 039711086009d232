"""Where a fragment's samples lie: the only place that knows (ISO/IEC 14496-12, 8.8.7 and 8.8.8).

The base is base_data_offset if it is there; else the moof, for the first traf or with
default-base-is-moof; else the end of the data of the traf before. data_offset counts from the
base; a run without one follows the run before it.

Everything is computed for all fragments at once. A value that depends on the row before it
(a chain) is an anchor plus the difference of two running sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fragdex.boxes.fragments import DEFAULT_BASE_IS_MOOF
from fragdex.errors import LimitExceeded
from fragdex.fragments.findings import Findings
from fragdex.fragments.table import FARTHEST, NULL, Int64
from fragdex.indexing import native
from fragdex.indexing.batch import Trafs
from fragdex.indexing.headers import ROW, Rows, code
from fragdex.indexing.runs import Runs
from fragdex.record import record

MOOF, MDAT, FREE, SKIP = map(code, ("moof", "mdat", "free", "skip"))
_LEAD = b"stypsidxemsgprft"
LEAD = np.frombuffer(_LEAD, ">u4").astype(np.uint32)
LEAD_CODES = frozenset(LEAD.tolist())
"""Boxes that introduce a fragment where they stand directly before its moof."""
AROUND = frozenset((FREE, SKIP, *map(code, ("ftyp", "moov", "mfra"))))
"""Boxes that have no part in a fragment where they stand before the first or after the last."""
MOST_AROUND = 8
"""Of them, looked at one by one."""

BEYOND = 2**63 - 1
MDAT_HEADER = 8
"""Bytes from an mdat's start where samples may lie. A longer header has the 64-bit size in the 8
bytes after, where no run begins by chance."""


@record(frozen=True, slots=True)
class Layout:
    """Where the fragments and the media data of a file lie, in bytes from its start.

    Attributes:
        moof: of each moof, in file order.
        start, stop: of each fragment: from the boxes that introduce its moof to the end of its
            last mdat (exclusive), or of the moof where none follows.
        moof_stop: end of each moof.
        mdat_start, mdat_stop: of each mdat's payload, in file order.
        own_first, own_last: rows of the mdats that a fragment may use without naming a base:
            from the one directly before its moof to the last one before the next moof.
        last_start, last_stop: payload of the last of them; nothing lies in it where there is none.
        columns: those of the moofs, one after the other, where the C extension made them.
    """

    moof: Int64
    start: Int64
    stop: Int64
    moof_stop: Int64
    mdat_start: Int64
    mdat_stop: Int64
    own_first: Int64
    own_last: Int64
    last_start: Int64
    last_stop: Int64
    columns: Int64 | None = None


def lay_out(tops: Sequence[Rows]) -> Layout:
    """The layout of a file, or of a stretch of it, from its top-level boxes in file order."""
    if native.compiled is None:
        return lay_out_plain(tops)
    columns, mdats = native.lay_out(tops, MOOF, MDAT, _LEAD)
    moof, start, stop, moof_stop, own_first, own_last, last_start, last_stop = columns
    return Layout(
        *(moof, start, stop, moof_stop, *mdats, own_first, own_last, last_start, last_stop, columns)
    )


def lay_out_plain(tops: Sequence[Rows]) -> Layout:
    """`lay_out` in Python."""
    offset, size, types = (
        np.concatenate([top[name] for top in [np.zeros(0, ROW), *tops]])
        for name in ("offset", "size", "type")
    )
    n = len(offset)
    end = offset + size
    pattern = _alternating(types)
    if pattern is not None:
        moofs, mdats = pattern
        ahead = len(offset[mdats]) - len(offset[moofs])
        own = np.arange(ahead, len(offset[mdats]))
        mdat_start, mdat_stop = offset[mdats] + MDAT_HEADER, end[mdats]
        return Layout(
            moof=offset[moofs],
            start=offset[moofs],
            stop=mdat_stop[ahead:],
            moof_stop=end[moofs],
            mdat_start=mdat_start,
            mdat_stop=mdat_stop,
            own_first=np.maximum(own - 1, 0),
            own_last=own,
            last_start=mdat_start[ahead:],
            last_stop=mdat_stop[ahead:],
        )
    index = np.arange(n)
    is_moof, is_mdat = types == MOOF, types == MDAT
    moof = np.flatnonzero(is_moof)
    mdat = np.flatnonzero(is_mdat)
    mdat_start, mdat_stop = offset[mdat] + MDAT_HEADER, end[mdat]
    if not len(moof):
        none = np.zeros(0, np.int64)
        return Layout(none, none, none, none, mdat_start, mdat_stop, none, none, none, none)
    lead = (types[:, None] == LEAD).any(axis=1)  # np.isin imports numpy.ma
    if lead.any():
        before = np.maximum.accumulate(np.where(lead, -1, index))
        head = np.where(moof > 0, before[moof - 1] + 1, 0)
        # Only boxes directly before the moof: a stretch that ends at it.
        head = np.where((moof > 0) & lead[moof - 1], head, moof)
    else:
        head = moof
    behind = np.append(moof[1:], n)
    last_mdat = np.maximum.accumulate(np.where(is_mdat, index, -1))
    last = last_mdat[behind - 1]
    tail = np.where(last > moof, last, moof)
    mdats_before = np.cumsum(is_mdat)
    own_last = mdats_before[behind - 1] - 1
    # The mdat directly before the moof (and what introduces it): one producer writes it first.
    own_first = mdats_before[moof]
    direct = (head > 0) & is_mdat[head - 1]
    own_first = np.where(direct, own_first - 1, own_first)
    has = own_first <= own_last
    last_start, last_stop = np.full(len(moof), BEYOND), np.full(len(moof), -BEYOND)
    last_start[has], last_stop[has] = mdat_start[own_last[has]], mdat_stop[own_last[has]]
    return Layout(
        offset[moof],
        offset[head],
        end[tail],
        end[moof],
        mdat_start,
        mdat_stop,
        own_first,
        own_last,
        last_start,
        last_stop,
    )


def _alternating(types: npt.NDArray[np.uint32]) -> tuple[slice, slice] | None:
    """Where moofs and mdats stand if there is nothing else, one mdat after each moof.

    One more mdat may stand in front, as where a stretch follows another; and boxes that have no
    part in fragments may stand around, as a moov and an mfra do.
    """
    start, stop = 0, len(types)
    while start < stop and start < MOST_AROUND and types[start] in AROUND:
        start += 1
    while stop > start and len(types) - stop < MOST_AROUND and types[stop - 1] in AROUND:
        stop -= 1
    first = start + int(start < stop and types[start] == MDAT)
    if stop - start < 2 or (stop - first) % 2:
        return None
    moof, mdat = slice(first, stop, 2), slice(2 * start + 1 - first, stop, 2)
    if (types[moof] == MOOF).all() and (types[mdat] == MDAT).all():
        return moof, mdat
    return None


MOST_NOTED = 64
"""Tracks of which a finding speaks one by one."""

Mask = npt.NDArray[np.bool_]
Which: TypeAlias = Int64 | slice
"""Row numbers, or `EVERY` for all rows in order, of which numpy makes no copy."""
EVERY = slice(None)


def begins(group: Int64) -> Mask:
    """Which rows begin a new group; the rows of a group stand together."""
    begins = np.ones(len(group), np.bool_)
    np.not_equal(group[1:], group[:-1], out=begins[1:])
    return begins


def rows_of(owner: Int64, owners: int) -> Which:
    """The owner of each row, rising; `EVERY` where each owner has exactly one."""
    return EVERY if len(owner) == owners and begins(owner).all() else owner


def chained(anchor: Mask, value: Int64, advance: Int64) -> Int64:
    """Value where `anchor`, else what stands before plus what it advances by.

    The first row must be an anchor.
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


@record(frozen=True, slots=True)
class Positions:
    """Where the runs of some fragments start.

    Attributes:
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
    base = rule_bases(trafs, layout.moof[rows_of(trafs.moof, len(layout.moof))], end)
    start = base[rows_of(runs.traf, len(trafs))] + relative
    if not _inside(start, trafs, runs, layout).all():
        return None
    nothing = np.zeros(len(trafs), np.bool_)
    return Positions(start, nothing, nothing)


def positions(
    trafs: Trafs, runs: Runs, layout: Layout, findings: Findings, *, strict: bool
) -> Positions:
    """Positions by the rule, repaired where they miss the media data."""
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
        # Nothing binds a fragment to the mdat after it (8.8.4): samples may lie in any.
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
        own: ask for the fragment's own mdats in any case.
        of_all: ask for any mdat in any case.
    """
    stop = start + runs.size
    good = np.ones(len(trafs), np.bool_)
    # A run of nothing lies anywhere.
    real = runs.size > 0
    which = rows_of(runs.traf, len(trafs))
    moof = rows_of(trafs.moof[which], len(layout.moof))
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
