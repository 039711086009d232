"""A copy of a fragmented file with a segment index in front of its fragments, as pieces to write.

Media bytes are copied by range and never read. What the moved bytes break is mended: chunk offsets
(stco becomes co64 where it overflows), auxiliary information and item locations of the moov,
declared base offsets of fragments, the mfra. A sidx that stands in front already is left out; one
in front of a later fragment stays, since it counts from its own end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

import numpy as np

from fragdex.box_header import read_header
from fragdex.boxes import build, parse_box
from fragdex.byterange import ByteRange
from fragdex.errors import BuildError, InexactIndex
from fragdex.formats.clip_movie import with_relative
from fragdex.formats.embed_fragments import (
    MAX_MENDED,
    Edit,
    Fragments,
    Moofs,
    Piece,
    Read,
    default_sizes,
    moofs_of,
    whole,
)
from fragdex.formats.embed_mending import Shifts, mended_box, mended_mfra
from fragdex.formats.sidx import boxes
from fragdex.formats.subsegments import Subsegments, period_of, reference_track, subsegments
from fragdex.seeking.model import FragmentIndex, Period, TrackIndex

__all__ = ["embed", "mended", "obsolete", "relative", "walked"]

REPLACED = ("sidx", "ssix")
"""Indexes in front of the first fragment: the new one takes their place."""
MENDING = {"moov": mended_box, "meta": mended_box, "mfra": mended_mfra}


def embed(
    index: FragmentIndex,
    read: Read,
    *,
    track: int | None = None,
    period: int | None = None,
    min_segment_ms: float = 0,
) -> list[Piece]:
    """The pieces of the copy, to be written one behind the other.

    Args:
        index: of the source; exact, so that the places of all moofs are known.
        read: gives the bytes of a range of the source.
        track: the reference stream of the only sidx; None: one for every track, the first video
            or audio track first.
        period: number of the period that gets the sidx; needed where there are several.
        min_segment_ms: as for `sidx.write`.

    Packets have the same sizes and times as before. Base offsets that the index found to be stale
    are repaired.

    Raises:
        BuildError: there are no movie fragments, or what must be mended cannot be.
        InexactIndex: places or times of fragments are not known.

    >>> from fragdex.seeking.model import How, SourceInfo
    >>> embed(FragmentIndex(SourceInfo(), How("boxes", True), ()), lambda part: b"")
    Traceback (most recent call last):
    ...
    fragdex.errors.BuildError: the index has no period
    """
    found = period_of(index, period)
    chosen = reference_track(found, track)
    size = index.source.size
    if size is None:
        raise BuildError("the size of the source is not known")
    moofs = moofs_of(index)
    streams = [(chosen, _stretches(found, chosen, min_segment_ms, False))]
    for other in found.tracks if track is None else ():
        if other.id != chosen.id and len(other.fragments):
            # What cannot be said of another track is left out: its times are guessed from this.
            with suppress(BuildError, InexactIndex):
                streams.append((other, _stretches(found, other, min_segment_ms, True)))
    place, stop = int(streams[0][1].offset[0]), streams[0][1].stop
    _refuse_data_in_front(moofs)
    front = list(walked(read, 0, min(moofs)))
    tail = list(walked(read, stop, size))
    # Before a later period stands what describes an earlier one.
    first_period = place <= min(moofs)
    gone = [part for code, part in front if code in REPLACED and first_period]
    fragments = Fragments(read, moofs, default_sizes(found))
    # What the fragments gain, and lose; all else between the new boxes and the end stays.
    grown = [*fragments.grown, *((part, -part.size) for part in gone)]
    made = b""
    for one, segments in reversed(streams):
        first, last = int(segments.offset[0]), segments.stop
        between = first - place
        for part, more in grown:
            if part.start < first:
                between += more * (part.start >= place)
            elif part.start < last:
                segments.size[np.searchsorted(segments.offset, part.start, "right") - 1] += more
        made = build(boxes(segments, one.id, one.timescale, between + len(made))) + made
    edits: list[Edit] = [(ByteRange(place, place), made), *((part, b"") for part in gone)]
    if fragments.grown:
        edits += [*relative(read, front), *obsolete(read, min(moofs), stop)]
    shifts, boxes_mended = mended(read, [*front, *tail], [*edits, *fragments.edits])
    return fragments.finished([*edits, *boxes_mended], shifts, size)


def _refuse_data_in_front(moofs: Moofs) -> None:
    for moof, tracks in moofs.items():
        for track, (first, _, _) in tracks.items():
            if first < moof:
                raise BuildError(
                    f"media data of track {track} comes before its moof, and a sidx cannot "
                    "refer to such a fragment",
                    path="moof",
                    offset=moof,
                    expected=f"media data after byte {moof}",
                    found=f"media data at byte {first}",
                    advice="move it first: fragdex extract FILE 0 end --fragmented -o COPY.mp4",
                )


def relative(read: Read, outside: Iterable[tuple[str, ByteRange]]) -> list[Edit]:
    """The ftyp, where its brands do not allow the default-base-is-moof of what is written anew."""
    found: list[Edit] = []
    for code, part in outside:
        if code == "ftyp" and part.size < MAX_MENDED:
            box = parse_box(read(part))
            if with_relative(box) is not box:
                found.append((part, build(with_relative(box))))
    return found


def obsolete(read: Read, start: int, stop: int) -> list[Edit]:
    """Segment indexes as free space: they speak of sizes that have changed."""
    found: list[Edit] = []
    for code, part in walked(read, start, stop):
        if code in REPLACED and part.size < MAX_MENDED:
            data = read(part)
            found.append((part, data[:4] + b"free" + data[8:]))
    return found


def _stretches(period: Period, track: TrackIndex, min_ms: float, own: bool) -> Subsegments:
    ticks = int(min_ms * track.timescale / 1000)
    return subsegments(period, track.id, min_ticks=ticks, at_sync=min_ms > 0, own=own)


def walked(read: Read, at: int, stop: int) -> Iterator[tuple[str, ByteRange]]:
    """Types and places of the top-level boxes; what is not whole ends the walk, and is copied."""
    while stop - at >= 8:
        head = read(ByteRange(at, min(at + 16, stop)))
        header = read_header(head)
        if header is None or not (size := header.size_in(stop - at)):
            return
        yield header.type.decode("latin-1"), ByteRange.of(at, size)
        at += size


def mended(
    read: Read, outside: list[tuple[str, ByteRange]], edits: list[Edit]
) -> tuple[Shifts, list[Edit]]:
    """Where everything goes, and the boxes that speak of places in the file.

    A moov that grows moves what it speaks of, so that it is mended again until its size stays:
    each turn can only give more of its tables 64 bits.
    """
    todo = [(MENDING[code], part, whole(read, part)) for code, part in outside if code in MENDING]
    made: list[Edit] = [(part, data) for _, part, data in todo]
    while True:
        shifts = Shifts((part, len(data)) for part, data in [*edits, *made])
        before = [len(data) for _, data in made]
        made = [(part, mend(data, part.start, shifts)) for mend, part, data in todo]
        if [len(data) for _, data in made] == before:
            return shifts, made
