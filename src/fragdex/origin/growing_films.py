"""Local films that are still being written, and those of them that are the same file with more."""

from __future__ import annotations

import os
import time
from hashlib import md5
from typing import Final

from fragdex.byterange import ByteRange
from fragdex.fragments.table import NULL, FragmentFlags
from fragdex.seeking.model import FragmentIndex
from fragdex.sources import Source

__all__ = ["NotYet", "fingerprint", "growing_until", "may_grow"]

_FINGERPRINT: Final = 64 << 10
"""Bytes of the last fragment that two files have to share to be one file with more."""
_MFRO: Final = 16
"""Bytes of the box that ends a complete file (ISO/IEC 14496-12, 8.8.11)."""


class NotYet(Exception):
    """A film is still being written, and what is wanted of it cannot be made yet."""


def growing_until(place: str, seconds: float) -> float:
    """On the clock of `time.time`, until when a file counts as being written; 0: it does not."""
    if not seconds:
        return 0.0
    try:
        written = os.stat(place).st_mtime
    except OSError:
        return 0.0  # whoever opens it says why
    # a file of the future, by a clock that is wrong, must not grow for ever
    return written + seconds if abs(time.time() - written) < seconds else 0.0


def may_grow(index: FragmentIndex, source: Source) -> bool:
    """Whether a file has fragments, or none yet, and no mfra, which writers put behind them.

    Others do not grow: their moov says all.
    """
    tables = [track.fragments for track in index.tracks if len(track.fragments)]
    real = [bool(((rows.flags & FragmentFlags.VIRTUAL) == 0).any()) for rows in tables]
    if real and not any(real):
        return False
    size = source.size or 0
    return source.read_up_to(ByteRange(max(size - _MFRO, 0), size))[4:8] != b"mfro"


def fingerprint(index: FragmentIndex, source: Source) -> str:
    """A hash of the moov and of the last fragment's begin: a file that grew still has them.

    Raises: as `Source.read_up_to`.
    """
    period = index.periods[-1]
    tables = [track.fragments for track in period.tracks if len(track.fragments)]
    last = max((int(rows.moof_offset[-1]) for rows in tables), default=NULL)
    stop = index.source.size or 0
    spans = [
        *period.init,
        ByteRange(max(last, 0), stop if last < 0 else min(last + _FINGERPRINT, stop)),
    ]
    found = md5(usedforsecurity=False)
    for span in spans:
        found.update(source.read_up_to(span))
    return found.hexdigest()
