"""Where fragments begin and end, and where media data lies, from the boxes of the top level."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fragdex.fragments.headers import code
from fragdex.fragments.table import Int64

__all__ = ["Layout", "lay_out"]

MOOF, MDAT, FREE, SKIP = map(code, ("moof", "mdat", "free", "skip"))
LEAD = np.array([code(name) for name in ("styp", "sidx", "emsg", "prft")], np.uint32)
"""Boxes that introduce a fragment where they stand directly before its moof."""


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
    """

    moof: Int64
    start: Int64
    stop: Int64
    moof_stop: Int64
    mdat_start: Int64
    mdat_stop: Int64
    own_first: Int64
    own_last: Int64


def lay_out(offset: Int64, size: Int64, types: npt.NDArray[np.uint32]) -> Layout:
    """The layout of a file from offset, size and type of its top-level boxes, in file order."""
    n = len(offset)
    index = np.arange(n)
    is_moof, is_mdat = types == MOOF, types == MDAT
    moof = np.flatnonzero(is_moof)
    mdat = np.flatnonzero(is_mdat)
    # 16 bytes of header would be a size of 2^32 or more, or one written so without need; the
    # payload is taken from byte 8 on, which no run can reach into by chance: there is the size.
    mdat_start = offset[mdat] + 8
    mdat_stop = offset[mdat] + size[mdat]
    if not len(moof):
        none = np.zeros(0, np.int64)
        return Layout(none, none, none, none, mdat_start, mdat_stop, none, none)
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
    return Layout(
        offset[moof],
        offset[head],
        offset[tail] + size[tail],
        offset[moof] + size[moof],
        mdat_start,
        mdat_stop,
        own_first,
        own_last,
    )
