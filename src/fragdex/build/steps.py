"""One read of what a scan needs, and how much is asked for where nothing is known yet."""

from __future__ import annotations

from fragdex.byterange import ByteRange
from fragdex.fragments.scan import Scan
from fragdex.sources import Source

__all__ = ["FIRST_GUESS", "READ_AHEAD", "feed", "needed", "read_there", "step"]

FIRST_GUESS = 1 << 16
"""Bytes asked for at once at the start of a remote object: the moov and sidx of most files."""
READ_AHEAD = 1 << 12
"""Bytes asked for at least at each further hop: a small moof and the header behind it."""


def needed(source: Source, scan: Scan) -> ByteRange | None:
    """What the scan needs next, maybe beyond the source; None where either is at its end."""
    need = scan.need
    if need is None or (source.size is not None and need.start >= source.size):
        return None
    return need


def feed(source: Source, scan: Scan, data: bytes, start: int) -> bool:
    """Give a scan what was read for it; False where that was nothing."""
    if not data:
        return False
    scan.size = source.size
    scan.feed(data, start)
    return True


def step(source: Source, scan: Scan, ahead: int) -> bool:
    """One read of what the scan needs, `ahead` bytes at least; False at the end."""
    need = needed(source, scan)
    if need is None:
        return False
    stop = max(need.stop, need.start + ahead)
    if source.size is not None:
        stop = min(stop, source.size)
    return feed(source, scan, read_there(source, ByteRange(need.start, stop)), need.start)


def read_there(source: Source, wanted: ByteRange) -> bytes:
    """Read what there is of a range; what comes short ends a source that has not told its size."""
    data = source.read_up_to(wanted)
    if source.size is None and 0 < len(data) < wanted.size:
        source.size = wanted.start + len(data)
    return data
