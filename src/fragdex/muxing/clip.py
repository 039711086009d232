"""A playable clip out of a file, without re-encoding: the pieces to write one after the other.

From a fragmented file: the initialization segment and whole fragments. Media bytes are copied by
range; of the boxes around them only what the new place breaks is changed: decode times, declared
base offsets, durations. From a progressive file, or one with samples in its moov: the same samples
in fragments of our own (`fragments`).

A clip's own timeline starts at 0, or as near as decode times allow: the same span of time is taken
off every track, so that sound and picture stay together. On request the times of the source are
kept.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

from fragdex.box_header import read_header
from fragdex.boxes import Box, parse, parse_box
from fragdex.byterange import ByteRange
from fragdex.errors import BuildError, MissingExtra, NoSyncSample
from fragdex.formats.subsegments import have_own_bytes, period_of
from fragdex.fragments.table import NULL, FragmentFlags, SampleTable
from fragdex.indexing.moov import plain_init
from fragdex.muxing.between import Between, between, fronts_of
from fragdex.muxing.census import NO_SAMPLES, BoxKind, boxes_left_out, content, track_left_out
from fragdex.muxing.clip_fragments import Move, decode_times, moved_fragment
from fragdex.muxing.embed import default_sizes
from fragdex.muxing.fragments import Fragments, inside_fragments
from fragdex.muxing.groups import descriptions_of_groups, groupings_of
from fragdex.muxing.movie import clip_init, described, track_id, traks_of, with_chapters
from fragdex.muxing.plan import PlannedTrack, one_source
from fragdex.muxing.progressive import clip_movie, unfit
from fragdex.muxing.protection import protected
from fragdex.muxing.spans import (
    FAR,
    RESERVOIR,
    Reader,
    decoded_sooner,
    longest_tick,
    movie_timescale,
    part_of,
    without_empty,
)
from fragdex.muxing.timecode import timecode_cut, timecode_part
from fragdex.muxing.view import Block, Derived, Scattered, SourceRange
from fragdex.seeking.forms import offered
from fragdex.seeking.model import Index, Period, Track
from fragdex.seeking.times import TimeLike, exact_time, floor_ticks

Read = Callable[[ByteRange], bytes]
Piece = bytes | ByteRange
"""Bytes to write as they are, or a range of the source to copy."""


@dataclass(frozen=True, slots=True)
class Clip:
    """What a clip is made of.

    Attributes:
        blocks: bytes and ranges of the source, to be written in this order; can be iterated once.
        start, stop: seconds of the source's presentation that the clip really spans (exclusive).
        tracks: track ids in it.
        whole_fragments: whether fragments were taken as they are, and samples were not chosen.
        exact: whether it presents what was requested and no more.
        left_out: which tracks, and what else, are not in it and why, as sentences.
        encoded: pictures next to the cuts that were re-encoded.
        head: what its first blocks hold: ftyp and moov, and more.

    >>> Clip(iter([b"abc"]), Fraction(0), Fraction(2), (1,), True).stop
    Fraction(2, 1)
    """

    blocks: Iterator[Block | ByteRange]
    start: Fraction
    stop: Fraction
    tracks: tuple[int, ...]
    whole_fragments: bool
    exact: bool = False
    left_out: tuple[str, ...] = ()
    encoded: int = 0
    head: tuple[bytes, ...] = ()

    def noting(self, tracks: Iterable[Track], findings: Iterable[str]) -> Clip:
        """The same, with these tracks in its `left_out` where it does not have them."""
        known = " ".join(self.left_out)
        gone = [
            track_left_out(track, "nothing of it is shown" if track.sample_count else NO_SAMPLES)
            for track in tracks
            if track.id not in self.tracks and f"track {track.id} " not in known
        ]
        return replace(self, left_out=(*self.left_out, *gone, *findings))

    def lacking(
        self, init: bytes, besides: Mapping[BoxKind, int], kept: Iterable[BoxKind], why: str
    ) -> Clip:
        """The same, with what of its source it lacks in its `left_out`.

        Args:
            init: the source's ftyp and moov.
            besides: content of the source elsewhere, of the part that it spans.
            kept: what it has elsewhere than in its first boxes.
            why: the reason.
        """
        spanned = [_of_span(box, self.start, self.stop) for box in parse(init)]
        source = content(spanned, {*self.tracks}) + Counter(besides)
        made = content(_head_boxes(self.head))
        for kind in kept:
            made[kind] = max(made[kind], source.get(kind, 0))
        lost = boxes_left_out(source, made, why, tracks=self.tracks)
        return replace(self, left_out=(*self.left_out, *lost), head=())

    @property
    def pieces(self) -> Iterator[Piece]:
        """The blocks, with each range by itself."""
        for block in self.blocks:
            if isinstance(block, Scattered):
                yield from (part.range for part in block.parts())
            elif isinstance(block, SourceRange):
                yield block.range
            elif not isinstance(block, Derived):
                yield block


def _of_span(moov: Box, start: Fraction, stop: Fraction) -> Box:
    """A moov without the chapters that other spans have."""
    if moov.type != "moov":
        return moov
    children = [
        with_chapters(child, start, stop)
        if child.type == "udta" and not any(one.opaque for one in child.find_all("chpl"))
        else child
        for child in moov
    ]
    return moov.replace(children=children)


def _head_boxes(head: Iterable[bytes]) -> Iterator[Box]:
    """The boxes in front of the media data."""
    for whole in head:
        piece, at = memoryview(whole), 0
        while (header := read_header(piece, at)) is not None and header.type != b"mdat":
            if not header.fits(len(piece) - at):
                return
            yield parse_box(piece[at : at + header.size])
            at += header.size


@dataclass(frozen=True, slots=True)
class ClipSpan:
    """The rows of one track that a clip needs.

    Attributes:
        first, last: numbers of the rows, last exclusive.
        sample: number of the sync sample that decoding begins at, in the track; None: not known.
        limit: ticks of composition time; samples before it are shown.
    """

    track: Track
    first: int
    last: int
    sample: int | None
    limit: int

    @property
    def rows(self) -> Any:
        """Those rows of the track's table of fragments."""
        return self.track.fragments.rows(slice(self.first, self.last))

    @property
    def falls_back(self) -> bool:
        """Whether a row is decoded before the one that stands before it."""
        dts = self.rows.dts
        return bool(((dts[1:] < dts[:-1]) & (dts[1:] != NULL)).any())


def period_at(index: Index, start: Fraction | float, stop: Fraction | float) -> Period:
    """The period that shows something from `start` to `stop`; the first where none does.

    Raises:
        BuildError: several do.
    """
    shown = [
        period
        for period in index.periods
        if any(
            track.start is not None
            and track.stop is not None
            and track.start < stop
            and (track.stop > start or track.stop == track.start == start)
            for track in period.tracks
        )
    ]
    return period_of(index, None) if len(shown) > 1 else next(iter(shown), index.periods[0])


def spans_of(
    period: Period, start: Fraction | float, stop: Fraction | float, ids: set[int] | None
) -> list[ClipSpan]:
    """The rows of each track that show something from `start` to `stop` (seconds, exclusive).

    Args:
        ids: of the tracks; None: all.

    Raises:
        TrackNotFound: there is no such track.
        NoSyncSample: nothing can be shown.
    """
    for wanted in ids or ():
        period.track(wanted)
    chosen = [
        track
        for track in period.tracks
        if (ids is None or track.id in ids)
        and (track.timescale and len(track.sync_samples))
        and track.stop is not None
        and (track.stop > start or track.kind == "timecode" or track.stop == track.start == start)
    ]
    # Sound begins with the first picture, which may be shown before `start`.
    pictures = next((track for track in chosen if track.kind == "video"), None)
    begin = start if pictures is None else min(start, pictures.seek(start).time.fraction)
    spans = []
    for track in chosen:
        # A composition time before the limit is presented before `stop`.
        limit = -floor_ticks(-stop, track.timescale, -track.shift)
        hit = track.seek(start if track is pictures else begin)
        rows, here = track.fragments, hit.fragment
        shown = (rows.cts_min < limit) & (rows.cts_min != NULL)
        # Where decode times fall back, what stands before may be shown after.
        shown[:here] &= (rows.dts[:here] > rows.dts[here]) & (rows.dts[here] != NULL)
        places = np.flatnonzero(shown)
        if len(places) and places[-1] >= here:
            first = min(int(places[0]), here)
            sample = hit.sample if first == here else int(rows.sample_start[first])
            spans.append(ClipSpan(track, first, int(places[-1]) + 1, sample, limit))
    if not spans:
        end = "the end" if stop == float("inf") else f"{float(stop):g} s"
        stops = [track.stop.fraction for track in period.tracks if track.stop is not None]
        known = ""
        if stops and start >= (over := max(stops)):
            known = f": it ends at {float(over):g} s"
            if over <= 0:
                known = ": no track shows anything after time 0"
        raise NoSyncSample(f"nothing can be shown from {float(start):g} s to {end}{known}")
    return spans


def bound(track: Track, column: Any, pick: Callable[[Any], Any]) -> Fraction:
    """The least or greatest known composition time of a column, in seconds of presentation."""
    known = column[column != NULL]
    return track.presentation(int(pick(known)) if len(known) else 0).fraction


def delay(track: Track) -> Fraction:
    """Ticks by which empty edits delay a track (ISO/IEC 14496-12, 8.6.6)."""
    media_times = (edit.media_time for edit in track.info.edits if edit.media_time >= 0)
    return track.info.shift(track.movie_timescale) + next(media_times, 0)


def moves(firsts: Sequence[tuple[Track, int, int]]) -> tuple[Fraction, dict[int, int]]:
    """What is taken off all times: seconds, and ticks of each track's media timeline.

    Args:
        firsts: each track with the decode and the composition time of its first sample.

    The first sample is shown at 0, or as soon after it as decode times of 0 or more allow. Delays
    are gone then: they are in the decode times.
    """
    delays = {track.id: delay(track) for track, _, _ in firsts}
    origin = min(
        min(track.presentation(cts).fraction, (dts + delays[track.id]) / track.timescale)
        for track, dts, cts in firsts
    )
    return origin, {t.id: int((origin * t.timescale - delays[t.id]) // 1) for t, _, _ in firsts}


def whole_fragments(
    spans: Sequence[ClipSpan], period: Period, init: bytes, read: Read, keep_times: bool
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
    copied = _as_copied([s for s in spans if s.track.kind != "timecode"] or spans)
    first = min(bound(s.track, s.rows.cts_min, min) for s in copied)
    last = max(bound(s.track, s.rows.cts_end, max) for s in copied)
    places = np.concatenate([s.rows.offset for s in copied])
    late = {s.track.id: s.track for s in beginnings if s.rows.offset[0] not in places}
    why = "its sample is in a fragment before those that are copied"
    left_out = tuple(track_left_out(track, why) for track in late.values())
    fronts = fronts_of(period)
    head, body = _copied(copied, init, read, keep_times, default_sizes(period), last, fronts)
    ids = tuple(s.track.id for s in spans if s.track.id not in late)
    return Clip(chain(head, body), first, last, ids, True, left_out=left_out, head=tuple(head))


def _as_copied(spans: Sequence[ClipSpan]) -> list[ClipSpan]:
    """With what comes along: rows of these tracks in fragments that another one of them needs."""
    copied = np.concatenate([span.rows.offset for span in spans])
    spans_copied = []
    for span in spans:
        rows = np.flatnonzero(np.isin(span.track.fragments.offset, copied))
        spans_copied.append(replace(span, first=int(rows[0]), last=int(rows[-1]) + 1))
    return spans_copied


def _copied(
    spans: Sequence[ClipSpan],
    init: bytes,
    read: Read,
    keep_times: bool,
    sizes: Mapping[int, int],
    stop: Fraction,
    fronts: Mapping[int, int],
) -> tuple[list[bytes], Iterator[Piece]]:
    """The initialization segment, and whole fragments in file order, each once."""
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
    return head, _fragments(read, sorted(places.items()), fronts, sum(map(len, head)), move)


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


BESIDE = ("timecode", "hint")
"""Kinds of tracks whose samples speak of the source's first sample, or of its bytes: taken out of
their place they would lie. Timecode is rewritten, hints are left out."""

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
) -> Clip:
    """The pieces of a clip that plays from `start` to `stop`.

    It is a progressive file, whose edit lists present exactly this span. Where sample tables cannot
    say what the source does (encrypted samples, decode times that fall back), and on request, it
    is made of fragments and begins at the sync sample at or before `start`.

    Args:
        index: of the source.
        read: exactly the bytes of a range of the source. Called while the pieces are iterated, too.
        start: a presentation time as `Track.seek` takes it; the clip begins at the sync
            sample at or before it.
        stop: likewise, exclusive; infinity: to the end.
        tracks: track ids; None: all. Other tracks in the same fragments come along.
        keep_times: keep the decode times of the source, in fragments.
        init: the initialization segment, for segments that have none.
        remote: whether a read costs more than its bytes.
        fragmented: make a fragmented file: whole fragments of a fragmented source, else samples in
            fragments of about a second.
        period: number of the period; None: the one that shows this span, if one alone does.
        smart: re-encode the pictures next to the cuts, so that none is hidden.

    Raises:
        ValueError: stop does not lie after start, or one of them is NaN.
        NoSyncSample: no track has a sample in this span.
        TrackNotFound: there is no such track.
        BuildError: there is no initialization segment, or the samples are encrypted in a way that
            cannot be moved into fragments (keys that change between samples), or pictures cannot be
            cut in the way that `smart` requires.
        LimitExceeded: the tracks claim more samples than the source has bytes for.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> data = movie(fragments=4)
    >>> index = fragdex.index(data)
    >>> made = clip(index, lambda part: data[part.start : part.stop], 0.1, 0.3)
    >>> made.exact, made.start, made.stop
    (True, Fraction(1, 10), Fraction(3, 10))
    """
    begin, end = exact_time(start), exact_time(stop)
    if not begin < end:
        raise ValueError(f"a clip must end ({stop}) after it starts ({start})")
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
    unfit_for_tables = any(s.track.info.encryption or s.falls_back for s in chosen)
    if not (fragmented or keep_times or unfit_for_tables):
        played = [span.track for span in chosen]
        exact = _progressive(played, begin, end, init_boxes, source, smart=smart)
        if exact is not None:
            told = besides.everything + besides.event_boxes
            why = "a progressive file has no place for it"
            return exact.noting(unshown, besides.findings).lacking(init_boxes, told, (), why)
    if smart:
        raise BuildError(
            "the pictures next to the cuts cannot be re-encoded: the clip has to consist of "
            "fragments, or is encrypted",
            advice="cut without smart",
        )
    virtual = any((s.rows.flags & FragmentFlags.VIRTUAL).any() for s in chosen)
    if not virtual and have_own_bytes(within):
        copied = whole_fragments(chosen, within, init_boxes, read, keep_times)
        why = "it is not in one of the fragments that are copied"
        return copied.noting(unshown, ()).lacking(init_boxes, besides.outer, (), why)
    made = _samples(chosen, init_boxes, read, source, keep_times, besides)
    return made.noting(unshown, besides.findings)


def _bytes_of(spans: Sequence[ClipSpan]) -> ByteRange:
    """From the first fragment that spans need to the end of the last."""
    first = min(int(span.rows.offset.min()) for span in spans)
    return ByteRange(first, max(int((span.rows.offset + span.rows.size).max()) for span in spans))


def clip_range(
    index: Index, start: Any, stop: Any, tracks: Iterable[int] | None = None
) -> ByteRange:
    """The bytes whose fragments a clip needs; for an index that does not know samples.

    Raises: as `clip`.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> index = fragdex.index(movie(fragments=4))
    >>> clip_range(index, 0, 0.1).start - int(index.track(1).fragments.offset[0])
    0
    """
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
    *,
    smart: bool = False,
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
    played = [track for track in paced if track.kind != "timecode"]
    parts = [part for track in played if (part := part_of(track, first, last, timescale, source))]
    boxes = parse(init)
    if unfit(parts, boxes):
        return None
    if parts:
        # Where no track has anything to show yet, the clip has not begun.
        waiting = min(part.edits[0][0] if part.edits[0][1] < 0 else 0 for part in parts)
        parts = [part.without_delay(waiting) for part in parts]
        first += Fraction(waiting, timescale)
        last = first + Fraction(max(part.duration for part in parts), timescale)

    encoded = 0
    lacks: tuple[str, ...] = ()
    if smart:
        parts, boxes, lacks = _without_hidden(parts, boxes, init, timescale, source)
        encoded = sum(len(part.made) for part in parts)

    def timecode(track: Track, trak: Box) -> PlannedTrack | str:
        part = timecode_part(track, trak, first, last, timescale, source)
        return part if isinstance(part, str) else unfit([part], boxes) or part

    beside = [t for t in tracks if t.kind == "timecode" or (media and t.kind == "hint")]
    added, notes = _beside(beside, boxes, timecode)
    parts += added
    if not parts:
        raise NoSyncSample("the file has none of the samples of this span")
    stop_at = first + Fraction(max(part.duration for part in parts), timescale)
    head, copied = clip_movie(parts, boxes, timescale, first)
    ids = tuple(part.track.id for part in parts)
    notes = (*notes, *lacks)
    return Clip(iter((head, copied)), first, stop_at, ids, False, True, notes, encoded, (head,))


def _without_hidden(
    parts: Sequence[PlannedTrack], boxes: Sequence[Box], init: bytes, timescale: int, source: Reader
) -> tuple[list[PlannedTrack], tuple[Box, ...], tuple[str, ...]]:
    """Pictures next to the cuts re-encoded, the moov that describes them, and what they lack."""
    try:
        seamed = offered("seamed")
    except ImportError as error:
        raise MissingExtra("re-encoding pictures needs PyAV", extra="media") from error
    traks = traks_of(boxes)
    moovs: dict[int, Box] = {}
    changed: list[PlannedTrack] = []
    lacks: list[str] = []
    for part in parts:
        if part.track.kind == "video":
            trak = traks[part.track.id]
            part, moovs[part.track.id], lost = seamed(part, trak, init, timescale, source)
            lacks += lost
        changed.append(part)

    def described(box: Box) -> Box:
        is_trak = box.type == "trak" and track_id(box) in moovs
        return moovs[track_id(box)] if is_trak else box

    moov = tuple(
        box.replace(children=list(map(described, box))) if box.type == "moov" else box
        for box in boxes
    )
    return changed, moov, tuple(lacks)


def _samples(
    chosen: Sequence[ClipSpan],
    init: bytes,
    read: Read,
    source: Reader,
    keep_times: bool,
    besides: Between,
) -> Clip:
    """A clip of samples in fragments of our own, from the sync sample on.

    Args:
        besides: what stands between the samples of its span.
    """
    paced = [s for s in chosen if s.track.kind not in BESIDE] or chosen
    beside = [
        s.track for s in chosen if s.track.kind in BESIDE and paced[0].track.kind not in BESIDE
    ]
    chosen = paced
    paced = [s for s in chosen if s.track.kind in ("video", "audio")] or chosen
    cuts = [cut for s in paced if (cut := _cut(s, source)) is not None]
    if not cuts:
        raise NoSyncSample("the file ends before the samples of this span")
    first = min(bound(c.track, c.samples.cts, min) for c in cuts)
    rest = (_cut(s, source) for s in chosen if s not in paced)
    cuts += [_trimmed(cut, first) for cut in rest if cut is not None]
    last = max(bound(c.track, c.samples.cts + c.samples.duration, max) for c in cuts)
    # Timecode begins with the first picture: sound may begin earlier, inside a frame.
    pictures = [c for c in cuts if c.track.kind == "video"] or cuts
    begin = min(bound(c.track, c.samples.cts, min) for c in pictures)
    codes, left_out = _beside(
        beside,
        parse(init),
        lambda track, trak: timecode_cut(track, trak, begin, last, source),
    )
    cuts += codes
    ids = tuple(c.track.id for c in cuts)
    back: dict[int, int] = {}
    span = None
    if not keep_times:
        cuts = [decoded_sooner(cut) for cut in cuts]
        firsts = [(c.track, int(c.samples.dts[0]), int(c.samples.cts.min())) for c in cuts]
        origin, back = moves(firsts)
        for code in codes:
            # Its ticks may last as long as frames: it does not begin a tick late.
            least = ceil(origin * code.track.timescale - delay(code.track))
            back[code.track.id] = min(least, int(code.samples.dts[0]))
        span = origin, last
    boxes = parse(init)
    traks = traks_of(boxes)
    cuts = [_described(cut, traks.get(cut.track.id), read) for cut in cuts]
    head = clip_init(
        init,
        set(ids),
        delays=keep_times,
        from_samples=True,
        span=span,
        boxes=boxes,
        groups={one.track.id: descriptions_of_groups(one.groups) for one in cuts},
    )
    by = Fraction(0) if span is None else -span[0]
    moved = [(event.arrives, event.moved(by).block) for event in besides.events]
    body = _sample_fragments(cuts, back, moved)
    made = Clip(chain(head, body), first, last, ids, False, left_out=left_out, head=tuple(head))
    kept = [kind for cut in cuts for kind in inside_fragments(cut)]
    return made.lacking(init, besides.everything, kept, "made fragments do not have it")


def _beside(
    tracks: Iterable[Track],
    boxes: Sequence[Box],
    make: Callable[[Track, Box], PlannedTrack | str],
) -> tuple[list[PlannedTrack], tuple[str, ...]]:
    """The results of timecode tracks, and which tracks are left out and why.

    Args:
        boxes: the source's ftyp and moov.
        make: the result of a track and its trak, or why nothing is; "" where it has nothing.
    """
    added, notes = [], []
    traks = traks_of(boxes)
    for track in tracks:
        part: PlannedTrack | str = "its samples name bytes of the source"
        if track.kind == "timecode":
            part = "the moov does not describe it"
            if track.id in traks:
                part = make(track, traks[track.id])
        if not isinstance(part, str):
            added.append(part)
        elif part:
            notes.append(track_left_out(track, part))
    return added, tuple(notes)


def _exact(seconds: Any) -> Fraction:
    if seconds in (float("inf"), float("-inf")):
        return Fraction(FAR if seconds > 0 else -FAR)
    return Fraction(*seconds.as_integer_ratio())


def _cut(span: ClipSpan, source: Reader) -> PlannedTrack | None:
    """The samples from the sync sample on, in decode order, up to the last that is shown.

    Of a truncated file, those that are in it; None where that is not even the first.
    """
    samples = source.budget.take(span.track, span.first, span.last, span.first)
    start = int(span.track.fragments.sample_start[span.first])
    low = (span.sample or 0) - start
    shown = np.flatnonzero(samples.cts[low:] < span.limit)
    high = low + int(shown[-1]) + 1 if len(shown) else low + 1
    outside = np.flatnonzero((samples.offset + samples.size)[low:high] > (source.size or FAR))
    high = low + int(outside[0]) if len(outside) else high
    if high == low:
        return None
    samples, numbers = samples.rows(slice(low, high)), start + np.arange(low, high)
    sources = one_source(0, len(samples))
    planned = PlannedTrack(span.track, samples, span.track.timescale, sources, numbers=numbers)
    return without_empty(planned)


def _trimmed(cut: PlannedTrack, first: Fraction) -> PlannedTrack:
    """A text is shown for as long as it lasts: the part before the clip's first picture is cut."""
    track, samples = cut.track, cut.samples
    late = -(-(first * track.timescale - track.shift) // 1) - int(samples.cts[0])
    if late <= 0 or late >= int(samples.duration[0]):
        return cut
    columns = {name: column.copy() for name, column in samples.columns().items()}
    columns["dts"][0] += late
    columns["cts"][0] += late
    columns["duration"][0] -= late
    return replace(cut, samples=SampleTable.of(columns))


def _described(cut: PlannedTrack, trak: Box | None, read: Read) -> PlannedTrack:
    """With the descriptions and groups of the samples, and what decrypts them.

    Raises:
        BuildError: what decrypts them cannot be found or moved.
    """
    groups = groupings_of(cut.track, trak, cut.source_numbers)
    if trak is None:
        return replace(cut, groups=groups)
    numbers = described(cut.track, trak, cut.source_numbers)
    planned = replace(cut, descriptions=numbers, groups=groups)
    return replace(planned, protection=protected(trak, planned, read))


LEAST_SECONDS = 1.0
"""A fragment starts at a sync sample, at least so long after the one before."""


def _sample_fragments(
    cuts: Sequence[PlannedTrack],
    back: Mapping[int, int],
    events: Iterable[tuple[Fraction, Block]],
) -> Iterator[Block]:
    """The blocks of fragments with these samples.

    Args:
        cuts: at least one, each with at least one sample.
        back: track_ID → ticks to take off decode times.
        events: seconds of the source with which they come, in front of that fragment.

    Raises:
        BuildError: a value does not fit into a fragment.
    """
    bounds = _bounds(cuts)
    edges = [np.array([0, *np.searchsorted(_seconds(c), bounds), len(c)]) for c in cuts]
    planned = []
    for cut in cuts:
        if int(cut.durations.min()) < 0:
            raise BuildError(
                f"decode times of track {cut.track.id} fall back (negative-duration), and a clip "
                "cannot say that",
                path="moov/trak/mdia/minf/stbl/stts",
                advice="make a fragmented view first (fragdex view), and the clip of that",
            )
        # a tfdt is a number of 64 bits: where times lie beyond, they go round as it does
        earlier = (back.get(cut.track.id, 0) + (1 << 63)) % (1 << 64) - (1 << 63)
        planned.append(cut.timed(cut.presentation - earlier, cut.decode - earlier, cut.durations))
    in_front: dict[int, list[Block]] = {}
    for arrives, event in events:
        in_front.setdefault(bisect_right(bounds, arrives), []).append(event)
    made = Fragments(planned, edges, explicit=True, events=in_front)
    return (block for number in range(len(made)) for block in made.parts(number))


def _bounds(cuts: Sequence[PlannedTrack]) -> list[float]:
    """Decode times in seconds at which fragments start, but for the first."""
    pace = next((c for c in cuts if c.track.kind == "video"), cuts[0])
    starts = _seconds(pace)[pace.samples.sync]
    bounds = []
    last = starts[0] if len(starts) else 0.0
    for at in starts[1:].tolist():
        if at - last >= LEAST_SECONDS:
            bounds.append(at)
            last = at
    return bounds


def _seconds(cut: PlannedTrack) -> npt.NDArray[np.float64]:
    return np.asarray(cut.decode / cut.timescale)
