"""Tracks of several files as one file: fragments with all of them, or with a stretch of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor, inf
from typing import Any

import numpy as np

from fragdex.boxes import Box, build, parse
from fragdex.errors import BuildError, NoSyncSample
from fragdex.formats.clip_movie import with_next_id
from fragdex.formats.subsegments import period_of
from fragdex.fragments.compressed_moov import plain_init
from fragdex.seeking.model import FragmentIndex, Period
from fragdex.seeking.times import TimeLike, exact_time
from fragdex.seeking.track import TrackIndex
from fragdex.sources import Source
from fragdex.views.media import Media, media_of
from fragdex.views.media_type import KEPT, left_out_of_fragments
from fragdex.views.segments import Segments, seconds_of
from fragdex.views.view import View
from fragdex.views.view_sources import Sources

__all__ = ["muxed"]


def muxed(
    indexes: Sequence[FragmentIndex],
    *,
    source: Any = None,
    start: TimeLike = 0,
    stop: TimeLike = inf,
    seconds: TimeLike | None = 4,
) -> View:
    """The video, audio and text of several files beside each other, in fragments with a sidx.

    Args:
        indexes: of the files, on one timeline.
        source: the media of each, as in `fragdex.package`; None: the files that they were made of.
        start, stop: seconds of presentation time that are shown, `stop` exclusive. Fragments begin
            at the sync sample at or before `start`; an edit list hides what is before. At the end,
            pictures that others need are shown, too: fragments cannot hide them.
        seconds: wanted length of fragments; None: one for each sync sample.

    Raises:
        ValueError: a time is none, or the stretch ends before it begins.
        NoSyncSample, BuildError, InexactIndex, SourceError: as `fragdex.view`.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> both = movie(4, tracks=2)
    >>> made = muxed([fragdex.index(both)], source=[both], start=0.2, stop=0.6)
    >>> made.media_type
    'video/mp4; codecs="avc1.42000A,Opus"'
    """
    begin, end = exact_time(start), exact_time(stop)
    if not begin < end:
        raise ValueError(f"the stretch has to end after it starts: {start} to {stop}")
    media: list[Media] = []
    inits = []
    left_out: list[str] = []
    with Sources([index.source for index in indexes], source) as sources:
        for number, index in enumerate(indexes):
            period = period_of(index, None)
            left_out += left_out_of_fragments(period)
            if period.movie.chapters:
                left_out.append("the chapter list is left out: it is that of one file")
            ids = {}
            for track in period.tracks:
                if track.kind in KEPT and track.timescale and track.sample_count != 0:
                    ids[track.id] = len(media) + 1
                    one = media_of(track, size=index.source.size, source=number)
                    media.append(replace(one, track=_renumbered(track, ids[track.id])))
            inits.append((_init(sources.source(number), period), ids))
    known = [index.source for index in indexes]
    shown = [one for one in (_stretch(one, begin, end) for one in media) if one is not None]
    if not shown:
        raise NoSyncSample(f"no video, audio or text is shown from {start} to {stop}")
    made = Segments(_together(inits), shown, seconds_of(seconds))
    length = "all" if seconds is None else str(seconds_of(seconds))
    return made.whole(known, ["muxed", str(begin), str(end), length], findings=left_out)


def _init(source: Source, period: Period) -> bytes:
    return plain_init(b"".join(source.read(part) for part in period.init))


def _renumbered(track: TrackIndex, number: int) -> TrackIndex:
    """The track under another track_ID; files beside each other may use one twice."""
    return TrackIndex(
        replace(track.info, id=number),
        track.fragments,
        track.sync,
        shift=track.shift,
        movie_timescale=track.movie_timescale,
        period=track.period,
        exact=track.exact,
        groups=track.groups,
        load_samples=track.samples_of,
    )


def _together(inits: Sequence[tuple[bytes, dict[int, int]]]) -> bytes:
    """One ftyp and moov with the tracks of all, under their new track_IDs."""
    first: Sequence[Box] = ()
    traks: list[Box] = []
    for init, ids in inits:
        found = parse(init)
        moov = next((box for box in found if box.type == "moov"), None)
        if moov is None:
            raise BuildError("the initialization segment has no moov")
        first = first or found
        own = (box for box in moov.children if box.type == "trak" and _id(box) in ids)
        traks += [_trak(box, ids) for box in own]
    pieces = []
    for box in first:
        if box.type == "moov":
            # udta tells of one file; the mvex is made anew with the fragments
            kept = [one for one in box.children if one.type == "mvhd"]
            box = with_next_id(box.replace(children=[*kept, *traks]))
        if box.type in ("ftyp", "moov"):
            pieces.append(build(box))
    return b"".join(pieces)


def _trak(trak: Box, ids: dict[int, int]) -> Box:
    """A trak under its new track_ID; references into its own file lead nowhere here."""
    children = [
        child.replace(track_ID=ids[_id(trak)]) if child.type == "tkhd" else child
        for child in trak.children
        if child.type != "tref"
    ]
    return trak.replace(children=children)


def _id(trak: Box) -> int:
    tkhd = trak.find("tkhd")
    return int(tkhd["track_ID"]) if tkhd is not None and "track_ID" in tkhd else 0


def _stretch(media: Media, start: Fraction | float, stop: Fraction | float) -> Media | None:
    """The samples that are shown in a stretch of time, which becomes 0 to its length.

    They begin with the sync sample that decoding needs; None: nothing is shown then.
    """
    scale = media.timescale
    begin = max(floor(start * scale), 0) if start > 0 else 0
    end = media.end if stop == inf else min(ceil(stop * scale), media.end)
    if begin == 0 and end == media.end:
        return media
    shown = media.presentation
    inside = np.flatnonzero((shown < end) & (shown + media.durations > begin))
    if not len(inside):
        return None
    sync = np.flatnonzero(media.samples.sync[: int(inside[0]) + 1])
    if not len(sync):
        raise NoSyncSample(f"track {media.track.id} has no sync sample before {float(start):g} s")
    # From a sync sample on, nothing earlier than its least time is shown.
    least = np.minimum.accumulate(shown[::-1])[::-1]
    early = sync[least[sync] <= max(begin, int(least[sync[0]]))]
    part = slice(int(early[-1]), int(inside[-1]) + 1)
    # what is hidden before the stretch, or how late the track begins in it
    hidden = media.media_time + begin - int(media.decode[part.start])
    return replace(
        media,
        samples=media.samples.rows(part),
        presentation=shown[part] - begin,
        decode=media.decode[part] - int(media.decode[part.start]) + max(-hidden, 0),
        durations=media.durations[part],
        media_time=max(hidden, 0),
        end=end - begin,
    )
