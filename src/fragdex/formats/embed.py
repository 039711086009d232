"""A copy of a fragmented file with a segment index in front of its fragments, as pieces to write.

Media bytes are copied by range and never read. What the moved bytes break is mended: chunk offsets
(stco becomes co64 where it overflows), auxiliary information and item locations of the moov,
declared base offsets of fragments, the mfra. A sidx that stands in front already is left out; one
in front of a later fragment stays, since it counts from its own end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

import numpy as np

from fragdex.boxes import build
from fragdex.byterange import ByteRange
from fragdex.errors import BuildError, InexactIndex, MalformedBox
from fragdex.formats.embed_mending import Shifts, mended_box, mended_mfra, mended_moof
from fragdex.formats.sidx import boxes
from fragdex.formats.subsegments import Subsegments, period_of, reference_track, subsegments
from fragdex.fragments.table import NULL, FragmentFlags
from fragdex.seeking.model import FragmentIndex, Period, TrackIndex

__all__ = ["Edit", "Piece", "embed", "joined", "mended", "mended_fragments", "moofs_of", "walked"]

Read = Callable[[ByteRange], bytes]
Piece = bytes | ByteRange
"""Bytes to write as they are, or a range of the source to copy."""

Edit = tuple[ByteRange, bytes]
"""A range of the source and the bytes that take its place."""

MAX_MENDED = 1 << 29
"""Bytes of a moov, moof, meta or mfra that is read as a whole."""
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
    begin, stop = int(streams[0][1].offset[0]), streams[0][1].stop
    front = list(walked(read, 0, min(moofs)))
    tail = list(walked(read, stop, size))
    place = _place(front, begin, moofs)
    gone = [part for code, part in front if code in REPLACED and part.start >= place]
    made = b""
    for one, segments in reversed(streams):
        first = int(segments.offset[0])
        # Bytes that the first fragment loses, and those between the new boxes and it.
        segments.size[0] -= sum(part.size for part in gone if part.start >= first)
        between = first - place - sum(part.size for part in gone if part.start < first)
        made = build(boxes(segments, one.id, one.timescale, between + len(made))) + made
    edits: list[Edit] = [(ByteRange(place, place), made), *((part, b"") for part in gone)]
    shifts, boxes_mended = mended(read, [*front, *tail], edits)
    edits += boxes_mended
    edits += mended_fragments(read, moofs, shifts)
    return list(joined(edits, size))


def _stretches(period: Period, track: TrackIndex, min_ms: float, own: bool) -> Subsegments:
    ticks = int(min_ms * track.timescale / 1000)
    return subsegments(period, track.id, min_ticks=ticks, at_sync=min_ms > 0, own=own)


def moofs_of(index: FragmentIndex) -> dict[int, dict[int, tuple[int, int, bool]]]:
    """What is known of each moof, by offset and track_ID.

    First byte of the track's samples, byte behind the media data, whether its base is stale.
    """
    found: dict[int, dict[int, tuple[int, int, bool]]] = {}
    for track in index.tracks:
        table = track.fragments
        real = table.rows((table.flags & FragmentFlags.VIRTUAL) == 0)
        if (real.moof_offset == NULL).any():
            raise InexactIndex(
                "the places of the movie fragments are not known",
                advice="build the index with exact=True",
            )
        start = np.where(real.data_start == NULL, real.moof_offset, real.data_start)
        columns = (real.moof_offset, start, real.offset + real.size, real.flags)
        for moof, first, stop, flags in zip(*(c.tolist() for c in columns), strict=True):
            stale = bool(flags & FragmentFlags.REPAIRED)
            found.setdefault(moof, {})[track.id] = (first, stop, stale)
    return dict(sorted(found.items()))


def walked(read: Read, at: int, stop: int) -> Iterator[tuple[str, ByteRange]]:
    """Types and places of the top-level boxes; what is not whole ends the walk, and is copied."""
    while stop - at >= 8:
        head = read(ByteRange(at, min(at + 16, stop)))
        size, code = int.from_bytes(head[:4], "big"), head[4:8].decode("latin-1")
        if size == 1 and len(head) == 16:
            size = int.from_bytes(head[8:], "big")
        elif size == 0:
            size = stop - at
        if size < 8 or at + size > stop:
            return
        yield code, ByteRange.of(at, size)
        at += size


def _place(
    front: list[tuple[str, ByteRange]],
    begin: int,
    moofs: Mapping[int, Mapping[int, tuple[int, int, bool]]],
) -> int:
    """Where the sidx goes: before the first fragment, and an mdat that it refers back to."""
    least = min(first for tracks in moofs.values() for first, _, _ in tracks.values())
    if least >= begin:
        return begin
    return next((part.start for _, part in front if least in part), begin)


def mended(
    read: Read, outside: list[tuple[str, ByteRange]], edits: list[Edit]
) -> tuple[Shifts, list[Edit]]:
    """Where everything goes, and the boxes that speak of places in the file.

    A moov that grows moves what it speaks of, so that it is mended again until its size stays:
    each turn can only give more of its tables 64 bits.
    """
    todo = [(MENDING[code], part, _whole(read, part)) for code, part in outside if code in MENDING]
    made: list[Edit] = [(part, data) for _, part, data in todo]
    while True:
        shifts = Shifts((part, len(data)) for part, data in [*edits, *made])
        before = [len(data) for _, data in made]
        made = [(part, mend(data, part.start, shifts)) for mend, part, data in todo]
        if [len(data) for _, data in made] == before:
            return shifts, made


def _whole(read: Read, part: ByteRange) -> bytes:
    if part.size > MAX_MENDED:
        raise BuildError(
            "a box that must be mended is too large",
            offset=part.start,
            expected=f"at most {MAX_MENDED} bytes",
            found=part.size,
        )
    return read(part)


def mended_fragments(
    read: Read, moofs: Mapping[int, Mapping[int, tuple[int, int, bool]]], shifts: Shifts
) -> Iterator[Edit]:
    """The moofs that name places of the file."""
    for at, tracks in moofs.items():
        head = read(ByteRange.of(at, 16))
        size = int.from_bytes(head[:4], "big")
        header = 8
        if size == 1:
            size, header = int.from_bytes(head[8:], "big"), 16
        if head[4:8] != b"moof" or size < header:
            raise MalformedBox("no moof stands where the index says", offset=at)
        part = ByteRange.of(at, size)
        changed = mended_moof(
            _whole(read, part),
            header,
            at,
            max(stop for _, stop, _ in tracks.values()),
            shifts,
            {track: first for track, (first, _, _) in tracks.items()},
            {track for track, (_, _, stale) in tracks.items() if stale},
        )
        if changed is not None:
            yield part, changed


def joined(edits: list[Edit], size: int) -> Iterator[Piece]:
    """The source in file order, with the edits in it; an insertion goes before the rest."""
    reached = 0
    for part, data in sorted(edits, key=lambda edit: edit[0]):
        if part.start > reached:
            yield ByteRange(reached, part.start)
        if data:
            yield data
        reached = max(reached, part.stop)
    if reached < size:
        yield ByteRange(reached, size)
