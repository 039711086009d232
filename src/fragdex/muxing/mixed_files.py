"""Tracks of several files as one file: all of them in fragments, or a clip of a stretch of time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor, inf
from typing import Any

import numpy as np

from fragdex.boxes import Box, build, parse
from fragdex.boxes.box import with_changes
from fragdex.byterange import ByteRange
from fragdex.errors import BuildError, NoSyncSample, TrackNotFound
from fragdex.formats.subsegments import period_of
from fragdex.fragments.table import FragmentTable, SampleTable
from fragdex.indexing.moov import plain_init
from fragdex.muxing.between import Between, between
from fragdex.muxing.census import LeftOut
from fragdex.muxing.clip import clip
from fragdex.muxing.media import KEPT, left_out_of_fragments, media_of, media_type
from fragdex.muxing.movie import references, track_id, traks_of, with_next_id
from fragdex.muxing.plan import Plan, PlannedTrack, least_from
from fragdex.muxing.segments import Segments, completed, seconds_of
from fragdex.muxing.view import Block, Scattered, Sources, View
from fragdex.seeking.model import Index, Period
from fragdex.seeking.origin import FileInfo
from fragdex.seeking.times import TimeLike, exact_time
from fragdex.seeking.track import Track
from fragdex.sources import Source


def clip_of_several(
    indexes: Sequence[Index],
    *,
    source: Any = None,
    start: TimeLike = 0,
    stop: TimeLike = inf,
    tracks: Collection[int] | None = None,
    exact: bool = True,
) -> View:
    """A stretch of time of several files in parallel: the clip that one file would give.

    Args:
        indexes: of the files, on one timeline.
        source: the media of each, as in `fragdex.package`; None: the files that they were made of.
        start, stop: presentation times, `stop` exclusive.
        tracks: track ids as `muxed` gives them; None: all.
        exact: whether it shows exactly its span, by an edit list. Else, and where sample tables
            cannot say what the sources do, it is what `muxed` makes.

    Raises:
        ValueError: a time is invalid, or the stretch ends before it begins.
        NoSyncSample, TrackNotFound, BuildError, InexactIndex, SourceError: as `fragdex.view`.
    """
    known = [index.file for index in indexes]
    if exact and all(one.size is not None for one in known):
        with Sources(known, source) as sources:
            cut_clip = _exact_clip(indexes, sources, start, stop, tracks)
        if cut_clip is not None:
            return cut_clip
    return muxed(indexes, source=source, start=start, stop=stop, tracks=tracks)


def _exact_clip(
    indexes: Sequence[Index],
    sources: Sources,
    start: TimeLike,
    stop: TimeLike,
    tracks: Collection[int] | None,
) -> View | None:
    """As if the files were one, each after the previous one; None: it cannot be exact."""
    known = [index.file for index in indexes]
    bases = [0]
    for one in known:
        bases.append(bases[-1] + int(one.size or 0))
    joined: list[Track] = []
    inits, findings = [], []
    for number, (index, ids) in enumerate(zip(indexes, _numbered(indexes), strict=True)):
        period = period_of(index, None)
        joined += (_moved(one, ids[one.id], bases[number]) for one in period.tracks)
        findings += [
            replace(finding, track=ids.get(finding.track))
            for finding in index.findings
            if finding.track is not None
        ]
        inits.append((_init(sources.source(number), period), ids))
    joined.sort(key=lambda track: track.id)
    period = Period(0, (), period_of(indexes[0], None).movie, tuple(joined))
    known_size = FileInfo("", bases[-1])
    whole = Index(known_size, indexes[0].how, [period], findings=findings)

    def read(part: ByteRange) -> bytes:
        pieces, at = [], part.start
        while at < part.stop:
            number = bisect_right(bases, at) - 1
            base, stop = bases[number], min(part.stop, bases[number + 1])
            pieces.append(sources.source(number).read(ByteRange(at - base, stop - base)))
            at = stop
        return b"".join(pieces)

    init = _together(inits)
    remote = any(sources.source(number).remote for number in range(len(known)))
    cut_clip = clip(whole, read, start, stop, tracks=tracks, init=init, remote=remote)
    if not cut_clip.exact:
        return None
    blocks = _placed(cut_clip.blocks, bases)
    span = [*map(str, map(exact_time, (start, stop))), sorted(cut_clip.tracks)]
    kind = media_type(track for track in joined if track.id in cut_clip.tracks)
    return View.of(kind, known, ["clip", *span], blocks, cut_clip.left_out)


def _placed(blocks: Iterable[Any], bases: list[int]) -> Iterator[Block]:
    """Bytes and ranges of the files after each other, as parts of each."""
    for block in blocks:
        if isinstance(block, bytes):
            yield block
            continue
        if isinstance(block, ByteRange):
            block = Scattered(0, np.array([block.start]), np.array([block.size]))
        owner = np.searchsorted(bases, block.start, side="right") - 1
        edges = [0, *(np.flatnonzero(np.diff(owner)) + 1).tolist(), len(owner)]
        for low, high in pairwise(edges):
            if low < high:
                number = int(owner[low])
                places = block.start[low:high] - bases[number]
                yield Scattered(number, places, block.size[low:high])


def _numbered(indexes: Sequence[Index]) -> list[dict[int, int]]:
    """New track_IDs of the tracks of each file, from 1; first of those that fragments can have."""
    periods = [period_of(index, None) for index in indexes]
    numbers: list[dict[int, int]] = [{} for _ in periods]
    number = 0
    for kept in (True, False):
        for ids, period in zip(numbers, periods, strict=True):
            for track in period.tracks:
                if _is_kept(track) == kept:
                    ids[track.id] = number = number + 1
    return numbers


def _is_kept(track: Track) -> bool:
    return track.kind in KEPT and bool(track.timescale) and track.sample_count != 0


def _moved(track: Track, number: int, base: int) -> Track:
    """The track under another track_ID, in a file that begins so many bytes earlier."""
    columns = track.fragments.columns()
    places = {
        name: np.where(columns[name] < 0, columns[name], columns[name] + base)
        for name in ("offset", "moof_offset")
    }

    def samples(start: int, stop: int) -> SampleTable:
        own = track.samples_of(start, stop)
        offset = np.where(own.offset < 0, own.offset, own.offset + base)
        return SampleTable.of(own.columns() | {"offset": offset})

    moved = _renumbered(track, number)
    return Track(
        moved.info,
        FragmentTable.of(columns | places),
        track.sync_samples,
        shift=track.shift,
        movie_timescale=track.movie_timescale,
        exact=track.exact,
        groups=track.groups,
        load_samples=samples,
    )


def muxed(
    indexes: Sequence[Index],
    *,
    source: Any = None,
    start: TimeLike = 0,
    stop: TimeLike = inf,
    segment_duration: TimeLike | None = 4,
    tracks: Collection[int] | None = None,
) -> View:
    """The video, audio and text of several files in parallel, in fragments with a sidx.

    Args:
        indexes, source: as of `clip_of_several`.
        start, stop: seconds of presentation time that are shown, `stop` exclusive. Fragments begin
            at the sync sample at or before `start`; an edit list hides what is before. At the end,
            pictures that others need are shown, too: fragments cannot hide them.
        segment_duration: wanted length of fragments; None: one for each sync sample.
        tracks: track ids as they are here, from 1 over all files; None: all.

    Raises:
        ValueError: a time is invalid, or the stretch ends before it begins.
        NoSyncSample, TrackNotFound, BuildError, InexactIndex, SourceError: as `fragdex.view`.
    """
    begin, end = exact_time(start), exact_time(stop)
    if not begin < end:
        raise ValueError(f"the stretch has to end after it starts: {start} to {stop}")
    media: list[PlannedTrack] = []
    inits = []
    left_out: list[LeftOut] = []
    besides: list[Between] = []
    with Sources([index.file for index in indexes], source) as sources:
        wanted = None if tracks is None else _known(indexes, tracks)
        for number, (index, every) in enumerate(zip(indexes, _numbered(indexes), strict=True)):
            period, opened, size = period_of(index, None), sources.source(number), index.file.size
            left_out += left_out_of_fragments(period) if wanted is None else ()
            init = _init(opened, period)
            traks, ids = traks_of(parse(init)), {}
            found = between(period, opened.read, size=size, source=number, remote=opened.remote)
            for track in period.tracks:
                if _is_kept(track) and (wanted is None or every[track.id] in wanted):
                    ids[track.id] = every[track.id]
                    one = media_of(track, size=size, source=number)
                    one = completed(one, traks.get(track.id), opened.read, trafs=found.trafs)
                    media.append(replace(one, track=_renumbered(track, ids[track.id])))
            inits.append((init, ids))
            besides.append(found.within(begin, end))
            left_out += found.findings
    known = [index.file for index in indexes]
    shown = [one for one in (_stretch(one, begin, end) for one in media) if one is not None]
    if not shown:
        raise NoSyncSample(f"no video, audio or text is shown from {start} to {stop}")
    init = _together(inits)
    parts = [(one, *head) for one, head in zip(besides, inits, strict=True)]
    plan = Plan((*shown,), init, Between.joined(parts, init), (*left_out,))
    segments = Segments(plan, seconds_of(segment_duration))
    length = "all" if segment_duration is None else str(seconds_of(segment_duration))
    recipe = ["muxed", str(begin), str(end), length]
    if wanted is not None:
        recipe.append(str(sorted(wanted)))
    return segments.whole(known, recipe)


def _known(indexes: Sequence[Index], tracks: Collection[int]) -> set[int]:
    numbers = [number for ids in _numbered(indexes) for number in ids.values()]
    for track in tracks:
        if track not in numbers:
            raise TrackNotFound(
                f"there is no track {track}",
                expected="one of " + ", ".join(map(str, sorted(numbers))),
                found=track,
            )
    return set(tracks)


def _init(source: Source, period: Period) -> bytes:
    return plain_init(b"".join(source.read(part) for part in period.init))


def _renumbered(track: Track, number: int) -> Track:
    """The track under another track_ID; parallel files may use one twice."""
    return Track(
        replace(track.info, id=number),
        track.fragments,
        track.sync_samples,
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
        boxes = parse(init)
        moov = next((box for box in boxes if box.type == "moov"), None)
        if moov is None:
            raise BuildError("the initialization segment has no moov")
        first = first or boxes
        own = (box for box in moov.children if box.type == "trak" and track_id(box) in ids)
        traks += [_trak(box, ids) for box in own]
        traks += (box for box in moov.children if box.type == "pssh")
    pieces = []
    for box in first:
        if box.type == "moov":
            # udta describes one file; the mvex is made again with the fragments
            headers = [one for one in box.children if one.type == "mvhd"]
            box = with_next_id(box.replace(children=[*headers, *traks]))
        if box.type in ("ftyp", "moov"):
            pieces.append(build(box))
    return b"".join(pieces)


def _trak(trak: Box, ids: dict[int, int]) -> Box:
    """A trak under its new track_ID, with the references to tracks that are here."""

    def renamed(one: Box) -> Box:
        if "track_IDs" not in one:
            return one
        return one.replace(track_IDs=[ids[int(n)] for n in one["track_IDs"]])

    def tref(box: Box) -> Sequence[Box]:
        here = list(map(renamed, references(box, {*ids})))
        return [box.replace(children=here)] if here else []

    number = ids[track_id(trak)]
    return with_changes(trak, {"tkhd": lambda tkhd: tkhd.replace(track_ID=number), "tref": tref})


def _stretch(
    media: PlannedTrack, start: Fraction | float, stop: Fraction | float
) -> PlannedTrack | None:
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
    least = least_from(shown)
    early = sync[least[sync] <= max(begin, int(least[sync[0]]))]
    part = slice(int(early[-1]), int(inside[-1]) + 1)
    # what is hidden before the stretch, or how late the track begins in it
    hidden = media.media_time + begin - int(media.decode[part.start])
    decode = media.decode[part] - int(media.decode[part.start]) + max(-hidden, 0)
    return media.rows(part, end=end - begin).timed(
        shown[part] - begin, decode, media.durations[part], max(hidden, 0)
    )
