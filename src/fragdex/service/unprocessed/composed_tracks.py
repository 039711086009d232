"""Tracks that are composed of the upload that they were copied from, and not stored a second time.

The process that copied a track says where the upload has its bytes. Nothing is taken at its word:
each range is compared here, byte by byte, so a composed object gives what the track's file has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

from fragdex.fragments.table import Int64
from fragdex.service.records.blobs import Blob
from fragdex.service.store.composing import MOST_RECORD_BYTES, Composition
from fragdex.transcode.tracks import COPIED_RANGE, TranscodedTrack

__all__ = ["Original", "record_of_track"]

_PIECE: Final = 1 << 20
_WORTH: Final = 2
"""A track has at least this many times the bytes of its record, or is stored."""
_LINE: Final = 1 << 10
"""Bytes of a record beside its columns and the made bytes, at most."""


@dataclass(frozen=True, slots=True)
class Original:
    """An upload: its bytes in the store, and a file of this machine that has them."""

    blob: Blob
    path: Path


def record_of_track(
    made: TranscodedTrack, original: Original, check: Callable[[], None]
) -> bytes | None:
    """The record of a track as an object that is composed of an upload.

    Args:
        check: called for each piece; what it raises ends the work.

    Returns: None where the upload has too little of it, or other bytes than were told.
    """
    ranges = _told(Path(made.ranges_path), made.byte_size, original.blob.byte_size)
    if ranges is None:
        return None
    starts, sizes = ranges[:, 0], ranges[:, 2]
    gaps = np.diff(starts + sizes, prepend=0) - sizes
    begins = gaps > 0
    begins[0] = True
    tail = made.byte_size - int(starts[-1] + sizes[-1])
    made_sizes = np.append(gaps[begins], [tail])
    firsts = np.append(np.flatnonzero(begins), [len(ranges), len(ranges)])
    columns = 16 * (len(made_sizes) + len(ranges))
    if columns + int(made_sizes.sum()) + _LINE > MOST_RECORD_BYTES:
        return None
    pieces = []
    with open(made.path, "rb") as track, original.path.open("rb") as whole:
        for (_, place, size), gap in zip(ranges.tolist(), gaps.tolist(), strict=True):
            pieces.append(track.read(gap))
            whole.seek(place)
            if not _same(track, whole, size, check):
                return None
        pieces.append(track.read(tail))
    record = Composition(
        original.blob.store_key,
        original.blob.byte_size,
        b"".join(pieces),
        made_sizes,
        np.diff(firsts),
        ranges[:, 1],
        sizes,
    ).built()
    return record if _WORTH * len(record) <= made.byte_size else None


def _told(path: Path, size: int, whole: int) -> Int64 | None:
    """The ranges that were told of a track of some bytes, if they can be: in order and inside."""
    most = MOST_RECORD_BYTES // 16
    rows = np.fromfile(path, COPIED_RANGE.base, 3 * most + 1).astype(np.int64)
    if not 0 < len(rows) <= 3 * most or len(rows) % 3:
        return None
    ranges = rows.reshape(-1, 3)
    starts, places, sizes = ranges.T
    inside = (sizes > 0) & (starts >= 0) & (places >= 0) & (sizes <= size)
    inside &= (starts <= size - sizes) & (places <= whole - sizes)
    if not inside.all() or (starts[1:] < starts[:-1] + sizes[:-1]).any():
        return None
    return ranges


def _same(track: BinaryIO, whole: BinaryIO, size: int, check: Callable[[], None]) -> bool:
    """Whether two files go on with the same bytes, so many of them."""
    while size > 0:
        check()
        wanted = min(size, _PIECE)
        piece = track.read(wanted)
        if len(piece) != wanted or whole.read(wanted) != piece:
            return False
        size -= wanted
    return True
