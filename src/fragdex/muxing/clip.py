"""A playable clip out of a file, without re-encoding: the pieces to write one after the other.

From a fragmented file: the initialization segment and whole fragments. Media bytes are copied by
range; of the boxes around them only what the new place breaks is changed. From a progressive file,
or one with samples in its moov: the same samples in fragments of our own (`fragments`).

A clip's own timeline starts at 0, or as near as decode times allow: the same span of time is taken
off every track, so that sound and picture stay together. On request the times of the source are
kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np

from fragdex.boxes import Box, parse
from fragdex.boxes.box import with_changes
from fragdex.byterange import ByteRange
from fragdex.errors import BuildError, MissingExtra, NoSyncSample
from fragdex.formats.subsegments import have_own_bytes, period_of
from fragdex.fragments.table import NULL, FragmentFlags
from fragdex.indexing.moov import plain_init
from fragdex.muxing.between import Between, between, fronts_of
from fragdex.muxing.census import BoxKind, LeftOut, boxes_left_out, content, track_left_out
from fragdex.muxing.clip_fragments import Move, decode_times, moved_fragment
from fragdex.muxing.clip_samples import clip_of_samples
from fragdex.muxing.clip_span import (
    BESIDE,
    Clip,
    ClipSpan,
    Piece,
    Read,
    bound,
    moves,
    period_at,
    planned_beside,
    spans_of,
)
from fragdex.muxing.embed import default_sizes
from fragdex.muxing.kept import KeptSpan, between_removed, following, lasting, later
from fragdex.muxing.movie import clip_init, spanning, track_id, traks_of
from fragdex.muxing.plan import Plan, PlannedTrack
from fragdex.muxing.progressive import clip_movie, unfit
from fragdex.muxing.removal import (
    Removed,
    gone_besides,
    rest_of,
    whole_pictures,
    without_help,
)
from fragdex.muxing.spans import (
    FAR,
    RESERVOIR,
    Reader,
    longest_tick,
    movie_timescale,
    part_of,
)
from fragdex.muxing.timecode import timecode_part
from fragdex.seeking.forms import offered
from fragdex.seeking.model import Index, Period, Track
from fragdex.seeking.times import TimeLike, exact_time


def whole_fragments(
    spans: Sequence[ClipSpan],
    period: Period,
    init: bytes,
    read: Read,
    keep_times: bool,
    outer: Counter[BoxKind],
) -> Clip:
    """A clip of the fragments that have the rows of tracks."""
    # The beginning of a timecode may be an hour before: it does not widen the clip.
    beginnings = [s for s in spans if s.track.kind == "timecode"]
    copied = _as_copied([s for s in spans if s.track.kind != "timecode"] or spans)
    first = min(bound(s.track, s.rows.cts_min, min) for s in copied)
    last = max(bound(s.track, s.rows.cts_end, max) for s in copied)
    places = np.concatenate([s.rows.offset for s in copied])
    late = {s.track.id: s.track for s in beginnings if s.rows.offset[0] not in places}
    sizes = default_sizes(period)
    extents: dict[int, int] = {}
    repaired: set[tuple[int, int]] = set()
    for span in copied:
        rows = span.rows
        for offset, size, moof, flags in zip(
            *(c.tolist() for c in (rows.offset, rows.size, rows.moof_offset, rows.flags)),
            strict=True,
        ):
            extents[offset] = max(size, extents.get(offset, 0))
            if flags & FragmentFlags.REPAIRED:
                repaired.add((moof, span.track.id))
    # An exact index has looked; a strict one has looked and kept what the file declares.
    repair = any((s.rows.flags & FragmentFlags.APPROXIMATE).any() for s in copied)
    move = Move(Fraction(0), {}, {}, repaired, repair, sizes)
    shown = None
    if not keep_times:
        firsts = _firsts(copied, read)
        seconds, back = moves(firsts)
        # Where no tfdt says it, readers would start each track at 0.
        untold = {track.id: dts for track, dts, _ in firsts}
        move = Move(seconds, back, untold, repaired, repair, sizes)
        shown = following([(seconds, last)])
    head = clip_init(init, None, delays=keep_times, from_samples=False, kept=shown)
    begins = sum(map(len, head))
    body = _fragments(read, sorted(extents.items()), fronts_of(period), begins, move)
    ids = tuple(s.track.id for s in spans if s.track.id not in late)
    why = "its sample is in a fragment before those that are copied"
    gone = (track_left_out(track, why) for track in late.values())
    source = content(spanning(parse(init), following([(first, last)])), {*ids}) + outer
    why = "it is not in one of the fragments that are copied"
    lost = boxes_left_out(source, content(parse(b"".join(head))), why, tracks=ids)
    return Clip(chain(head, body), first, last, ids, True, left_out=(*gone, *lost))


def _as_copied(spans: Sequence[ClipSpan]) -> list[ClipSpan]:
    """With what comes along: rows of these tracks in fragments that another one of them needs."""
    copied = np.concatenate([span.rows.offset for span in spans])
    spans_copied = []
    for span in spans:
        rows = np.flatnonzero(np.isin(span.track.fragments.offset, copied))
        spans_copied.append(replace(span, first=int(rows[0]), last=int(rows[-1]) + 1))
    return spans_copied


def _fragments(
    read: Read,
    places: Iterable[tuple[int, int]],
    fronts: Mapping[int, int],
    at: int,
    move: Move,
) -> Iterator[Piece]:
    """Fragments from byte `at` of a copy on, with what stands in front of them."""
    for offset, size in places:
        place = ByteRange(fronts.get(offset, offset), offset + size)
        for piece in moved_fragment(read, place, at, move):
            at += len(piece) if isinstance(piece, bytes) else piece.size
            yield piece


def _firsts(spans: Sequence[ClipSpan], read: Read) -> list[tuple[Track, int, int]]:
    """Each track with the decode time and the least composition time of its first fragment."""
    firsts = []
    for span in spans:
        rows = span.rows
        dts = int(rows.dts[0])
        if dts == NULL:
            place = ByteRange.of(int(rows.offset[0]), int(rows.size[0]))
            dts = decode_times(read, place).get(span.track.id, 0)
        cts = int(rows.cts_min[0])
        firsts.append((span.track, dts, dts if cts == NULL else cts))
    return firsts


DOUBTS = ("sync-depends", "sync-reordered")
"""Findings on pictures that are marked sync and may need others before them."""


def clip(
    index: Index,
    read: Read,
    start: TimeLike,
    stop: TimeLike,
    *,
    tracks: Iterable[int] | None = None,
    keep_times: bool = False,
    init: bytes | None = None,
    remote: bool = False,
    fragmented: bool = False,
    period: int | None = None,
    smart: bool = False,
    removed: Removed = (),
) -> Clip:
    """The pieces of a clip that plays from `start` to `stop`.

    It is a progressive file, whose edit lists present exactly this span. Where sample tables cannot
    say what the source does (encrypted samples, decode times that fall back), and on request, it
    is made of fragments and begins at the sync sample at or before `start`.

    Args:
        start, stop, and all others: as `fragdex.muxing.copies.ClipRequest` has them.

    Raises:
        ValueError: stop does not lie after start, or one of them is NaN.
        NoSyncSample: no track has a sample in this span, or nothing is left of it.
        TrackNotFound: there is no such track.
        BuildError: there is no initialization segment, or the samples are encrypted in a way that
            cannot be moved into fragments (keys that change between samples), or pictures cannot be
            cut in the way that `smart` requires.
        LimitExceeded: the tracks claim more samples than the source has bytes for.
    """
    begin, end = exact_time(start), exact_time(stop)
    if not begin < end:
        raise ValueError(f"a clip must end ({stop}) after it starts ({start})")
    for low, high in removed:
        if not low < high:
            raise ValueError(f"what is removed must end ({high}) after it starts ({low})")
    within = period_at(index, begin, end) if period is None else period_of(index, period)
    if init is None and not within.init:
        raise BuildError(
            "there is no initialization segment, so a clip could not be played",
            advice="give it with init=",
        )
    chosen = spans_of(within, begin, end, None if tracks is None else set(tracks))
    init_boxes = plain_init(
        init if init is not None else b"".join(read(part) for part in within.init)
    )
    doubted = {finding.track for finding in index.findings if finding.code in DOUBTS}
    source = Reader(read, index.file.size, remote, doubted)
    besides = between(within, read, size=index.file.size, remote=remote, part=_bytes_of(chosen))
    whole = tracks is None and begin <= 0 and end == float("inf")
    unshown = within.tracks if whole else ()
    unfit_for_tables = any(s.track.is_encrypted() or s.falls_back for s in chosen)
    if not (fragmented or keep_times or unfit_for_tables):
        played = [span.track for span in chosen]
        exact = _progressive(
            *(played, begin, end, init_boxes, source, besides),
            smart=smart,
            removed=removed,
        )
        if exact is not None:
            return exact.noting(unshown)
    if removed:
        raise BuildError(
            "parts cannot be removed from the middle: the result has to consist of fragments, or "
            "is encrypted",
            advice="extract what stays (fragdex extract), and make a timeline of it",
        )
    if smart:
        raise BuildError(
            "the pictures next to the cuts cannot be re-encoded: the clip has to consist of "
            "fragments, or is encrypted",
            advice="cut without smart",
        )
    virtual = any((s.rows.flags & FragmentFlags.VIRTUAL).any() for s in chosen)
    if not virtual and have_own_bytes(within):
        copied = whole_fragments(chosen, within, init_boxes, read, keep_times, besides.outer)
        return copied.noting(unshown)
    made = clip_of_samples(chosen, init_boxes, read, source, keep_times, besides)
    return made.noting(unshown)


def _bytes_of(spans: Sequence[ClipSpan]) -> ByteRange:
    """From the first fragment that spans need to the end of the last."""
    first = min(int(span.rows.offset.min()) for span in spans)
    return ByteRange(first, max(int((span.rows.offset + span.rows.size).max()) for span in spans))


def clip_range(
    index: Index, start: Any, stop: Any, tracks: Iterable[int] | None = None
) -> ByteRange:
    """The bytes whose fragments a clip needs; for an index that does not know samples."""
    period = period_at(index, start, stop)
    early = max(start - float(RESERVOIR), 0) if start > 0 else start
    spans = spans_of(period, early, stop, None if tracks is None else set(tracks))
    return _bytes_of(spans)


def _progressive(
    tracks: Sequence[Track],
    start: Any,
    stop: Any,
    init: bytes,
    source: Reader,
    besides: Between,
    *,
    smart: bool = False,
    removed: Removed = (),
) -> Clip | None:
    """A clip that presents exactly what is requested; None where sample tables cannot say it."""
    media = [track for track in tracks if track.kind not in BESIDE]
    paced = media or tracks
    timescale = movie_timescale(paced)
    begin = min(t.start.fraction for t in paced if t.start is not None)
    end = max(t.stop.fraction for t in paced if t.stop is not None)
    shortest = longest_tick(paced, timescale)
    if _exact(stop) >= end:  # the last picture may have a duration of 0
        end += Fraction(shortest, timescale)
    ticks = [round(at * timescale) for at in (begin, max(_exact(start), begin), end)]
    # A span in the last part of a tick shows what that tick does.
    from_tick = max(ticks[0], min(ticks[1], ticks[2] - shortest))
    to_tick = max(round(min(_exact(stop), end) * timescale), from_tick + shortest)
    first, last = Fraction(from_tick, timescale), Fraction(to_tick, timescale)
    kept = between_removed(first, last, removed, Fraction(1, timescale))
    more: tuple[LeftOut, ...] = ()
    played = [track for track in paced if track.kind != "timecode"]
    groups: list[list[tuple[Fraction, PlannedTrack]]] = []
    if removed:
        asked, kept = kept, (whole_pictures if smart else without_help)(played, kept, source)
        reasons = ("the picture shown there is removed",) if smart else ()
        more = gone_besides(asked, kept, *reasons)
        if not kept:
            raise NoSyncSample("nothing would be left")
    for track in played:
        if removed and not (smart and track.kind == "video"):
            cut = [(Fraction(0), rest_of(track, kept, timescale, source))]
        else:
            spans = kept if removed else [KeptSpan(first, last, first)]
            cut = [
                (one.start - one.earlier, part_of(track, one.start, one.stop, timescale, source))
                for one in spans
            ]
        groups.append([(at, part) for at, part in cut if part is not None])
    groups = [group for group in groups if group]
    boxes = source_boxes = parse(init)
    if unfit([part for group in groups for _, part in group], boxes):
        return None
    encoded, lacks = 0, tuple[LeftOut, ...]()
    parts = [group[0][1] for group in groups]
    if smart:
        parts, boxes, lacks = _without_hidden(groups, boxes, init, timescale, source)
        encoded = sum(len(part.made) for part in parts)
    if parts:
        # Where no track has anything to show yet, the clip has not begun.
        waiting = min(part.edits[0][0] if part.edits[0][1] < 0 else 0 for part in parts)
        parts = [part.without_delay(waiting) for part in parts]
        kept = later(kept, Fraction(waiting, timescale))
        kept = lasting(kept, Fraction(max(part.duration for part in parts), timescale))

    def timecode(track: Track, trak: Box) -> PlannedTrack | str:
        part = timecode_part(track, trak, kept, timescale, source)
        return part if isinstance(part, str) else unfit([part], boxes) or part

    beside = [t for t in tracks if t.kind == "timecode" or (media and t.kind == "hint")]
    added, notes = planned_beside(beside, boxes, timecode)
    parts += added
    if not parts:
        raise NoSyncSample("the file has none of the samples of this span")
    kept = lasting(kept, Fraction(max(part.duration for part in parts), timescale))
    plan = Plan((*parts,), between=besides, left_out=(*notes, *lacks))
    head, copied, written = clip_movie(plan, boxes, timescale, kept)
    why = "a progressive file has no place for it"
    lost = plan.lacking(source_boxes, written, why, kept=kept)
    ids = tuple(part.track.id for part in parts)
    first, last = kept[0].start, kept[-1].stop
    blocks = iter((head, copied))
    return Clip(blocks, first, last, ids, False, True, (*more, *lost), encoded, kept)


def _without_hidden(
    groups: Sequence[Sequence[tuple[Fraction, PlannedTrack]]],
    boxes: Sequence[Box],
    init: bytes,
    timescale: int,
    source: Reader,
) -> tuple[list[PlannedTrack], tuple[Box, ...], tuple[LeftOut, ...]]:
    """Pictures next to the cuts re-encoded, the moov that describes them, and what they lack."""
    try:
        seamed = offered("seamed")
    except ImportError as error:
        raise MissingExtra("re-encoding pictures needs PyAV", extra="media") from error
    traks = traks_of(boxes)
    moovs: dict[int, Box] = {}
    changed: list[PlannedTrack] = []
    lacks: list[LeftOut] = []
    for group in groups:
        part = group[0][1]
        if part.track.kind == "video":
            trak = traks[part.track.id]
            part, moovs[part.track.id], lost = seamed(group, trak, init, timescale, source)
            lacks += lost
        changed.append(part)

    moov = tuple(
        with_changes(box, {"trak": lambda trak: moovs.get(track_id(trak), trak)})
        if box.type == "moov"
        else box
        for box in boxes
    )
    return changed, moov, tuple(lacks)


def _exact(seconds: Any) -> Fraction:
    if seconds in (float("inf"), float("-inf")):
        return Fraction(FAR if seconds > 0 else -FAR)
    return Fraction(*seconds.as_integer_ratio())
