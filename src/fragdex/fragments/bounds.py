"""Where fragments begin and end, and where media data lies, from the boxes of the top level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fragdex.fragments.headers import ROW, Rows, code
from fragdex.fragments.table import Int64

__all__ = ["Layout", "lay_out"]

MOOF, MDAT, FREE, SKIP = map(code, ("moof", "mdat", "free", "skip"))
LEAD = np.array([code(name) for name in ("styp", "sidx", "emsg", "prft")], np.uint32)
"""Boxes that introduce a fragment where they stand directly before its moof."""
AROUND = frozenset((FREE, SKIP, *map(code, ("ftyp", "moov", "mfra"))))
"""Boxes that have no part in a fragment where they stand before the first or behind the last."""
MOST_AROUND = 8
"""Of them, looked at one by one."""

BEYOND = 2**63 - 1
MDAT_HEADER = 8
"""Bytes from an mdat's start where samples may lie. A longer header has the 64-bit size in the 8
bytes behind, where no run begins by chance."""


@dataclass(frozen=True, slots=True)
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


def lay_out(tops: Sequence[Rows]) -> Layout:
    """The layout of a file, or of a stretch of it, from its top-level boxes in file order."""
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
    lead = np.isin(types, LEAD)
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
    """Where moofs and mdats stand if there is nothing else, one mdat behind each moof.

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
