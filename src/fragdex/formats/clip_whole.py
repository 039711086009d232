"""A clip of whole fragments, as the source has them; boxes around the media say the new place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from fragdex.byterange import ByteRange
from fragdex.formats.clip_fragments import Move, decode_times, moved_fragment
from fragdex.formats.clip_movie import clip_init
from fragdex.formats.clip_pieces import Clip, Piece, Read
from fragdex.formats.clip_rows import Span, bound, moves
from fragdex.formats.embed_fragments import default_sizes
from fragdex.formats.left_out import track_left_out
from fragdex.fragments.table import NULL, FragmentFlags
from fragdex.seeking.model import Period, TrackIndex

__all__ = ["whole_fragments"]


def whole_fragments(
    spans: Sequence[Span], period: Period, init: bytes, read: Read, keep_times: bool
) -> Clip:
    """A clip of the fragments that have the rows of tracks.

    Args:
        spans: at least one; their fragments are the source's own.
        period: of the tracks.
        init: the initialization segment.
        read, keep_times: as `clip` takes them.
    """
    # The beginning of a timecode may be an hour before: it does not widen the clip.
    beginnings = [s for s in spans if s.track.kind == "timecode"]
    taken = _as_copied([s for s in spans if s.track.kind != "timecode"] or spans)
    first = min(bound(s.track, s.rows.cts_min, min) for s in taken)
    last = max(bound(s.track, s.rows.cts_end, max) for s in taken)
    places = np.concatenate([s.rows.offset for s in taken])
    late = {s.track.id: s.track for s in beginnings if s.rows.offset[0] not in places}
    why = "its sample is in a fragment before those that are copied"
    left_out = tuple(track_left_out(track, why) for track in late.values())
    pieces = _copied(taken, init, read, keep_times, default_sizes(period), last)
    ids = tuple(s.track.id for s in spans if s.track.id not in late)
    return Clip(pieces, first, last, ids, True, left_out=left_out)


def _as_copied(spans: Sequence[Span]) -> list[Span]:
    """With what comes along: rows of these tracks in fragments that another one of them needs."""
    copied = np.concatenate([span.rows.offset for span in spans])
    found = []
    for span in spans:
        rows = np.flatnonzero(np.isin(span.track.fragments.offset, copied))
        found.append(replace(span, first=int(rows[0]), last=int(rows[-1]) + 1))
    return found


def _copied(
    spans: Sequence[Span],
    init: bytes,
    read: Read,
    keep_times: bool,
    sizes: Mapping[int, int],
    stop: Fraction,
) -> Iterator[Piece]:
    """Whole fragments in file order, each once, however many tracks share it."""
    places: dict[int, int] = {}
    repaired: set[tuple[int, int]] = set()
    for span in spans:
        rows = span.rows
        for offset, size, moof, flags in zip(
            *(c.tolist() for c in (rows.offset, rows.size, rows.moof_offset, rows.flags)),
            strict=True,
        ):
            places[offset] = max(size, places.get(offset, 0))
            if flags & FragmentFlags.REPAIRED:
                repaired.add((moof, span.track.id))
    # An exact index has looked; a strict one has looked and kept what the file declares.
    repair = any((s.rows.flags & FragmentFlags.APPROXIMATE).any() for s in spans)
    move = Move(Fraction(0), {}, {}, repaired, repair, sizes)
    shown = None
    if not keep_times:
        firsts = _firsts(spans, read)
        seconds, back = moves(firsts)
        # Where no tfdt says it, readers would start each track at 0.
        untold = {track.id: dts for track, dts, _ in firsts}
        move = Move(seconds, back, untold, repaired, repair, sizes)
        shown = seconds, stop
    head = clip_init(init, None, delays=keep_times, from_samples=False, span=shown)
    yield from head
    at = sum(map(len, head))
    for offset, size in sorted(places.items()):
        place = ByteRange.of(offset, size)
        for piece in moved_fragment(read, place, at, move):
            at += len(piece) if isinstance(piece, bytes) else piece.size
            yield piece


def _firsts(spans: Sequence[Span], read: Read) -> list[tuple[TrackIndex, int, int]]:
    """Each track with the decode time and the least composition time of its first fragment."""
    found = []
    for span in spans:
        rows = span.rows
        dts = int(rows.dts[0])
        if dts == NULL:
            place = ByteRange.of(int(rows.offset[0]), int(rows.size[0]))
            dts = decode_times(read, place).get(span.track.id, 0)
        cts = int(rows.cts_min[0])
        found.append((span.track, dts, dts if cts == NULL else cts))
    return found
