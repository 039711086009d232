"""Every sample as a line of CSV, in decode order: what other tools' packet lists hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import chain

import numpy as np

from fragdex.formats.digits import text_rows
from fragdex.seeking.model import FragmentIndex, TrackIndex

__all__ = ["HEADER", "pieces", "write"]

HEADER = "track_id,timescale,dts,pts,duration,size,pos,key"
"""The first line; `period` follows as a last column where there are several periods."""


def write(
    index: FragmentIndex, *, presentation: bool = False, tracks: Iterable[int] | None = None
) -> bytes:
    r"""One line a sample, track after track, in decode order; lines end with a line feed.

    `dts`, `pts` and `duration` are ticks of the track's `timescale` on the media timeline: `pts`
    holds dts + composition offset. `pos` is the first byte in the file, `size` counts bytes, `key`
    is 1 for a sync sample.

    Args:
        presentation: add the edit list's shift to dts and pts.
        tracks: track ids to write; None: all.

    Raises:
        InexactIndex: the index holds fragments only.
        TrackNotFound: a track asked for is not there.

    >>> from fragdex.seeking.model import How, SourceInfo
    >>> write(FragmentIndex(SourceInfo(), How("boxes", True), ()))
    b'track_id,timescale,dts,pts,duration,size,pos,key\n'
    """
    return b"".join(pieces(index, presentation=presentation, tracks=tracks))


def pieces(
    index: FragmentIndex, *, presentation: bool = False, tracks: Iterable[int] | None = None
) -> Iterator[bytes]:
    """`write` piece by piece.

    >>> from fragdex.seeking.model import How, SourceInfo
    >>> len(list(pieces(FragmentIndex(SourceInfo(), How("boxes", True), ()))))
    1
    """
    several = len(index.periods) > 1
    yield (HEADER + (",period" if several else "") + "\n").encode()
    wanted = None if tracks is None else set(tracks)
    for track_id in sorted(wanted or ()):
        if not any(track.id == track_id for track in index.tracks):
            index.track(track_id)  # raises
    for track in index.tracks:
        if wanted is None or track.id in wanted:
            yield from _lines(track, presentation, several)


def whole_ticks(shift: Fraction) -> int:
    """The nearest whole tick of a shift; halves go up.

    >>> whole_ticks(Fraction(-3, 2))
    -1
    """
    return (2 * shift.numerator + shift.denominator) // (2 * shift.denominator)


def _lines(track: TrackIndex, presentation: bool, several: bool) -> Iterator[bytes]:
    samples = track.samples
    if not len(samples):
        return iter(())
    shift = np.int64(whole_ticks(track.shift) if presentation else 0)
    columns = (
        samples.dts + shift,
        samples.cts + shift,
        samples.duration,
        samples.size,
        samples.offset,
        samples.sync,
    )
    separated = chain.from_iterable((b",", column) for column in columns)
    end = f",{track.period}\n" if several else "\n"
    return text_rows([f"{track.id},{track.timescale}".encode(), *separated, end.encode()])
