"""Tracks that were made, and where their source has the bytes of those that were copied.

A demuxer says where each packet begins, or where what it lies in does: a block with a header, a
frame after a header of its own. So each sample is looked for from there on. What is not found, or
was changed on the way, is simply not told: the bytes of the track decide, not where they came from.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np

from fragdex import Track
from fragdex.fragments.table import Int64
from fragdex.record import record

SCRUB_TRACK: Final = -1
"""The track id of the low-resolution track for scrubbing."""
REPAIRABLE: Final = "repairable"
"""The member of `Unprocessable.more` of a file that cannot be opened because it lacks its index."""


@record(frozen=True, slots=True)
class TranscodedTrack:
    """A track that was made.

    Attributes:
        track_id: of the source's stream; SCRUB_TRACK for the scrub track.
        type: `video` or `audio`.
        codec: FFmpeg's name of what is in the file.
        path, index_path: the fragmented file, and its index (`.fidx`).
        duration_ms: from its first presentation time to its end.
        probe_info: what the source's stream was, whether it was copied, and why not.
        ranges_path: a file of `COPIED_RANGE`s: where the source has its bytes; "" where nobody
            looked.
    """

    track_id: int
    type: str
    codec: str
    path: str
    index_path: str
    byte_size: int
    duration_ms: int
    probe_info: dict[str, Any]
    ranges_path: str = ""


COPIED_RANGE: Final = np.dtype(("<i8", 3))
"""First byte in the track's file, first byte in the source, bytes."""

_AHEAD: Final = 4 << 10
"""Bytes after the place that a demuxer tells in which a sample may begin."""
_RUN: Final = 1 << 20
"""Bytes that are compared together at most, unless one sample has more."""
_LEAST: Final = 24
"""Shorter ranges cost more to name than to repeat."""


def copied_ranges(track: Track, path: Path, origins: Sequence[int], source: BinaryIO) -> Int64:
    """The ranges of a track's file that a source has, as rows of `COPIED_RANGE`, ascending.

    Args:
        track: its index, with all samples.
        origins: for each sample, where the demuxer read it from; below 0: not known.
        source: what it was copied from, seekable.
    """
    offsets, sizes = track.samples.offset.tolist(), track.samples.size.tolist()
    rows: list[list[int]] = []
    if len(origins) != len(offsets):
        return _array(rows)
    with path.open("rb") as file:
        end = 0  # after what was found last
        for first, last in _runs(offsets, sizes, origins):
            start = offsets[first]
            file.seek(start)
            data = file.read(offsets[last - 1] + sizes[last - 1] - start)
            if origins[first] >= 0 and _read(source, origins[first], len(data)) == data:
                end = origins[first] + len(data)
                _add(rows, start, origins[first], len(data))
                continue
            for at in range(first, last):
                low = offsets[at] - start
                sample = data[low : low + sizes[at]]
                place = _find(source, sample, (origins[at], end))
                if place is not None:
                    end = place + len(sample)
                    _add(rows, offsets[at], place, len(sample))
    return _array([row for row in rows if row[2] >= _LEAST])


def _array(rows: list[list[int]]) -> Int64:
    return np.array(rows, np.int64).reshape(-1, 3)


def _runs(offsets: list[int], sizes: list[int], origins: Sequence[int]) -> list[tuple[int, int]]:
    """Samples that are neighbours in both files, as half-open ranges of their numbers."""
    runs, first = [], 0
    for at in range(1, len(offsets) + 1):
        if (
            at < len(offsets)
            and offsets[at] == offsets[at - 1] + sizes[at - 1]
            and origins[at] == origins[at - 1] + sizes[at - 1]
            and offsets[at] + sizes[at] - offsets[first] <= _RUN
        ):
            continue
        runs.append((first, at))
        first = at
    return runs if offsets else []


def _read(source: BinaryIO, start: int, size: int) -> bytes:
    source.seek(start)
    return source.read(size)


def _find(source: BinaryIO, sample: bytes, places: Sequence[int]) -> int | None:
    """Where a source has a sample, at or soon after one of some places."""
    for place in places:
        if place >= 0 and sample:
            at = _read(source, place, len(sample) + _AHEAD).find(sample)
            if at >= 0:
                return place + at
    return None


def _add(rows: list[list[int]], start: int, place: int, size: int) -> None:
    if rows and rows[-1][0] + rows[-1][2] == start and rows[-1][1] + rows[-1][2] == place:
        rows[-1][2] += size
    else:
        rows.append([start, place, size])
