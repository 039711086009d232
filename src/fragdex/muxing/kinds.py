"""The kinds of views of one file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import chain
from math import inf
from typing import Any, Final, Literal, TypeAlias

from fragdex.boxes import parse
from fragdex.errors import BuildError, NoSyncSample
from fragdex.formats.media_or_index import MediaOrIndex, index_and_media, is_one, lasting
from fragdex.formats.subsegments import period_of
from fragdex.fragments.table import FragmentFlags
from fragdex.indexing.moov import plain_init
from fragdex.muxing.between import between
from fragdex.muxing.census import LeftOut, second_tracks
from fragdex.muxing.copies import ClipRequest, clip_view, faststart
from fragdex.muxing.joined_files import Piece, Starts, segments_of
from fragdex.muxing.media import KEPT, left_out_of_fragments, media_of_each, media_type
from fragdex.muxing.movie import traks_of
from fragdex.muxing.plan import Plan
from fragdex.muxing.segments import STYP, Segments, completed, seconds_of
from fragdex.muxing.view import Sources, View, one_for_each
from fragdex.seeking.model import Index, Period, Track
from fragdex.seeking.times import TimeLike, exact_time
from fragdex.sources import SourceLike, SourcesLike

__all__ = ["AnyKind", "Kind", "clip", "described", "join", "view"]

Kind: TypeAlias = Literal["fragmented", "faststart", "tracks"]
AnyKind: TypeAlias = Literal[
    "faststart", "fragmented", "clip", "tracks", "init", "segment", "timeline"
]
_FOUR_SECONDS: Final = Fraction(4)


def view(
    what: MediaOrIndex,
    kind: Kind = "fragmented",
    *,
    tracks: Iterable[int] | None = None,
    segment_duration: TimeLike | None = _FOUR_SECONDS,
    period: int | None = None,
    source: SourceLike | None = None,
) -> View:
    """The same media as another file, which is described and never stored.

    Args:
        what: media (path, URL, bytes, file), or an index of them.
        kind: what it is:

            - `fragmented`: its samples in fragments that begin with a sync sample, with a sidx;
            - `faststart`: the file with its moov in front, so that players begin at once; of a
              fragmented file a progressive one, which has no fragments;
            - `tracks`: a choice of tracks as a progressive file.

        tracks: track ids; None: all, of fragments those of video, audio and text.
        segment_duration: wanted length of fragments; None: one for each sync sample.
        period: number of the period; needed where there are several.
        source: the media of an index, in any form that `fragdex.open_source` takes; None: where
            the index says. Only moovs are read here.

    Raises:
        ValueError: there is no such kind, or a time is invalid.
        TypeError: an option does not apply.
        TrackNotFound, NoSyncSample: there is no such track, or no sample to begin with.
        BuildError: the view cannot say what the source does; the message says what and why.
        InexactIndex: the index does not know the samples, and the media are not at hand.
        SourceError: the media cannot be read, or changed since they were indexed.

    >>> from fragdex.testing import movie
    >>> made = view(movie(8, samples=5, fps=5))
    >>> made.media_type, made.read()[4:8]
    ('video/mp4; codecs="avc1.42000A"', b'ftyp')
    """
    if kind != "fragmented" and segment_duration is not _FOUR_SECONDS:
        raise TypeError(f"segment_duration does not apply to a {kind} view: it has no fragments")
    if kind == "faststart" and tracks is not None:
        raise TypeError("tracks does not apply to a faststart view: ask for kind 'tracks'")
    if kind not in Kind.__args__:  # type: ignore[attr-defined]
        raise ValueError(f"no kind {kind!r}: expected one of {', '.join(Kind.__args__)}")  # type: ignore[attr-defined]
    index, media = index_and_media(what, source, "view")
    view = described(
        index,
        kind,
        source=media,
        tracks=tracks,
        segment_duration=segment_duration,
        period=period,
    )
    return view.with_media(lasting(what, media))


def clip(
    what: MediaOrIndex,
    start: TimeLike = 0,
    stop: TimeLike = inf,
    *,
    tracks: Iterable[int] | None = None,
    without: Iterable[tuple[TimeLike, TimeLike]] = (),
    at_key_frame: bool = False,
    smart: bool = False,
    period: int | None = None,
    source: SourceLike | None = None,
) -> View:
    """A span of time as a file of its own, cut and not encoded again.

    Args:
        what: media (path, URL, bytes, file), or an index of them.
        start: first moment, inclusive, a time as `Track.seek` takes it.
        stop: likewise, exclusive; infinity: to the end.
        tracks: track ids; None: all.
        without: spans (start inclusive, stop exclusive) that are removed: no sample of theirs is in
            the file. What cannot be decoded without them is gone, too, but with `smart`: pictures
            between the end of a span and the next sync sample, those before one that need pictures
            of it, and the sound of the same moments. Findings of the view say from when to when
            (`left-out`).
        at_key_frame: begin at the sync sample at or before `start`, in fragments, for readers that
            do not know edit lists; False: exactly the span is shown, by an edit list.
        smart: re-encode the pictures next to the cuts, so that it hides none, and nothing but
            `without` is gone (AVC, HEVC, AV1 and VP9; needs the extra `media`); all others stay bit
            for bit.
        period: number of the period; needed where there are several.
        source: the media of an index; None: where the index says.

    Raises: as `view`; ValueError: `stop` is not after `start`; TypeError: a smart cut begins at no
        key frame, and nothing is removed from fragments; BuildError: the pictures cannot
        be re-encoded, or only fragments can hold the rest.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> made = clip(movie(8, samples=5, fps=5), 1.5, "0:03")
    >>> fragdex.index(made).duration
    1.5
    >>> shorter = clip(movie(8, samples=5, fps=5), without=[(1, 2.5), ("0:06", "0:07")])
    >>> fragdex.index(shorter).duration, shorter.findings
    (5.0, ('2.500 – 3.000 is left out: its pictures need some that are removed (left-out)',))
    """
    removed = tuple(without)
    if removed and at_key_frame:
        raise TypeError("without: such a clip hides nothing: at_key_frame does not apply")
    if smart and at_key_frame:
        raise TypeError("smart cuts hide no pictures: at_key_frame does not apply")
    index, media = index_and_media(what, source, "clip")
    view = described(
        index,
        "clip",
        smart=smart,
        source=media,
        tracks=tracks,
        start=start,
        stop=stop,
        exact=not at_key_frame,
        period=period,
        without=removed,
    )
    return view.with_media(lasting(what, media))


def join(
    whats: MediaOrIndex | Iterable[MediaOrIndex],
    *,
    starts: Starts = None,
    tracks: Iterable[int] | None = None,
    segment_duration: TimeLike | None = 4,
    source: SourcesLike | None = None,
) -> View:
    """Several files one after the other as one file, in fragments; or the periods of one.

    Tracks of one kind (and language, where they have it) are joined; what an edit list hides in
    between is cut at access units or shown for a tick.

    Args:
        whats: media or indexes, in their order.
        starts: where each begins: None: where the one before ends, so that gaps close; "source":
            at its own presentation time, less that of the first, so that gaps stay; or a time for
            each.
        tracks: track ids; None: those of video, audio and text.
        segment_duration: wanted length of fragments; None: one for each sync sample.
        source: the media of indexes, one for each; None: where the indexes say.

    Raises: as `view`.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> part = movie(2, samples=5, fps=5)
    >>> fragdex.index(join([part, part])).duration
    4.0
    """
    several: list[Any] = [whats] if is_one(whats) else [*whats]  # type: ignore[misc]
    given = one_for_each(source, len(several))
    known = [
        index_and_media(what, media, "join") for what, media in zip(several, given, strict=True)
    ]
    media = [place for _, place in known]
    view = described(
        [index for index, _ in known],
        "timeline",
        source=media,
        tracks=tracks,
        segment_duration=segment_duration,
        starts=starts,
    )
    return view.with_media(
        [lasting(what, place) for what, place in zip(several, media, strict=True)]
    )


def described(
    index: Index | Sequence[Index],
    kind: AnyKind = "fragmented",
    *,
    source: SourcesLike | None = None,
    tracks: Iterable[int] | None = None,
    start: TimeLike = 0,
    stop: TimeLike = float("inf"),
    exact: bool = True,
    smart: bool = False,
    segment_duration: TimeLike | None = 4,
    number: int = 0,
    period: int | None = None,
    starts: Starts = None,
    without: Iterable[tuple[TimeLike, TimeLike]] = (),
) -> View:
    """A view of any kind; `view`, `clip`, `join` and `Package` are what users call.

    Args: as of those, besides:
        index: of the source; for a timeline those of several, in their order.
        kind: one of `view`, or `clip`; `init`, `segment`: what a playlist names, the initialization
            segment and one media segment; `timeline`: what `join` gives.
        exact: of a clip, not `at_key_frame`.
        number: of the segment, from 0.

    Raises: as those; IndexError: there is no such segment.
    """
    if kind not in AnyKind.__args__:  # type: ignore[attr-defined]
        raise ValueError(f"no kind {kind!r}: expected one of {', '.join(AnyKind.__args__)}")  # type: ignore[attr-defined]
    ids = None if tracks is None else list(dict.fromkeys(tracks))
    if kind == "timeline":
        many = [index] if isinstance(index, Index) else list(index)
        return _timeline(many, source, ids, segment_duration, starts)
    if not isinstance(index, Index):
        raise ValueError(f"a view of kind {kind} has one index: give several for a timeline")
    with Sources([index.file], source) as sources:
        opened = sources.source(0)
        if kind == "faststart" and not _has_fragments(index):
            copy, is_true = faststart(index, opened)
            if not is_true:
                # its tables name samples that are not there: it is made again of those that are
                with suppress(BuildError, NoSyncSample):
                    return clip_view(index, opened, ClipRequest(-inf, inf))[0]
            return copy
        if kind == "faststart":
            kind, ids = "tracks", None
        if kind in ("clip", "tracks"):
            if kind == "tracks":
                start, stop, exact = -float("inf"), float("inf"), True
            shown = ClipRequest(
                start,
                stop,
                tracks=ids,
                fragmented=not exact,
                period=period,
                smart=smart and kind == "clip",
                removed=tuple(without) if kind == "clip" else (),
            )
            return clip_view(index, opened, shown)[0]
        governing = period_of(index, period)
        chosen = _chosen(governing, ids)
        init = plain_init(b"".join(opened.read(part) for part in governing.init))
        traks = traks_of(parse(init))
        empty: list[LeftOut] = []
        media = media_of_each(chosen, empty, named=ids is not None, size=index.file.size)
        besides = between(governing, opened.read, size=index.file.size, remote=opened.remote)
        planned = (
            completed(one, traks.get(one.track.id), opened.read, trafs=besides.trafs)
            for one in media
        )
        left_out = [*left_out_of_fragments(governing)] if ids is None else []
        left_out += [*empty, *second_tracks(index)]
        plan = Plan((*planned,), init, besides, (*left_out,))
    head = b"" if kind == "fragmented" else STYP
    parts = Segments(plan, seconds_of(segment_duration), head=head)
    recipe = [kind, [one.track.id for one in media], governing.number, _text(segment_duration)]
    if kind == "fragmented":
        return parts.whole([index.file], recipe)
    if kind == "init":
        return View(
            parts.media_type, [index.file], recipe, [len(parts.init)], lambda _: [parts.init]
        )
    if not 0 <= number < len(parts):
        raise IndexError(f"there is no segment {number}: there are {len(parts)}, from 0")
    return parts.view(number, index.file, recipe)


def _has_fragments(index: Index) -> bool:
    """Whether samples lie in moofs; those of a moov have virtual fragments."""
    return any(not (t.fragments.flags & FragmentFlags.VIRTUAL).all() for t in index.tracks)


def _chosen(period: Period, ids: Sequence[int] | None) -> list[Track]:
    if ids is not None:
        return [period.track(track) for track in ids]
    played = [t for t in period.tracks if t.kind in KEPT and t.timescale and t.sample_count != 0]
    if not played:
        raise NoSyncSample("the file has no samples of video, audio or text")
    return played


def _text(seconds: TimeLike | None) -> str:
    return "all" if seconds is None else str(seconds_of(seconds))


def _timeline(
    indexes: Sequence[Index],
    given: Any,
    ids: Sequence[int] | None,
    seconds: TimeLike | None,
    starts: Starts,
) -> View:
    several = given if isinstance(given, (list, tuple)) or given is None else [given]
    pieces: list[Piece] = []
    with Sources([index.file for index in indexes], several) as sources:
        for number, index in enumerate(indexes):
            size = index.file.size
            for period in index.periods:
                init = plain_init(
                    b"".join(sources.source(number).read(part) for part in period.init)
                )
                chosen = _chosen(period, ids)
                empty: list[LeftOut] = []
                media = media_of_each(
                    chosen, empty, named=ids is not None, size=size, source=number, grouping=False
                )
                name = index.file.name
                name = name if name[:1] not in ("", "<") else f"file {number + 1}"
                name += f", period {period.number}" if len(index.periods) > 1 else ""
                opened = sources.source(number)
                besides = between(
                    period, opened.read, size=size, source=number, remote=opened.remote
                )
                not_here = left_out_of_fragments(period) if ids is None else ()
                plan = Plan((*media,), init, besides, (*not_here, *empty, *second_tracks(index)))
                pieces.append(Piece(len(pieces), name, plan))
    if not pieces:
        raise ValueError("a timeline needs at least one index")
    joined = segments_of(pieces, starts, seconds_of(seconds))
    begin = starts if isinstance(starts, str) else [str(exact_time(at)) for at in starts or ()]
    tracks = [[media.track for media in piece.plan.tracks] for piece in pieces]
    recipe = ["timeline", [[one.id for one in part] for part in tracks], begin, _text(seconds)]
    kind = media_type(chain.from_iterable(tracks))
    return joined.whole([index.file for index in indexes], recipe, kind)
