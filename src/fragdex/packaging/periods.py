"""The periods of a title, one after the other: from the indexes of files to renditions.

What is known of a period to which nothing more comes stays as it is, whatever follows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from hashlib import md5
from typing import Literal

from fragdex.boxes import Box, parse
from fragdex.byterange import ByteRange
from fragdex.errors import BuildError, NoSyncSample
from fragdex.formats.subsegments import period_of
from fragdex.fragments.table import FragmentFlags
from fragdex.indexing.moov import plain_init
from fragdex.muxing.between import Between, between
from fragdex.muxing.census import second_tracks, track_left_out, without_samples
from fragdex.muxing.media import media_of
from fragdex.muxing.movie import init_of_track, traks_of
from fragdex.muxing.plan import Plan, PlannedTrack
from fragdex.muxing.protection import keys_of, protected
from fragdex.muxing.segments import completed, init_segment
from fragdex.muxing.view import Sources
from fragdex.packaging.date_ranges import DateRange
from fragdex.packaging.date_ranges import date_ranges as ranges_of
from fragdex.packaging.subtitles import CUES, FRAGMENTS, Captions
from fragdex.packaging.titling import (
    PACKAGED,
    Chosen,
    Title,
    captioned,
    creation,
    produced,
    titled,
)
from fragdex.record import record
from fragdex.seeking.model import Index, Period
from fragdex.seeking.origin import FileInfo
from fragdex.sources import SourceLike


@record(frozen=True, slots=True)
class PackageOptions:
    """What a title is made for; as of `fragdex.package`.

    Attributes:
        length: wanted seconds of a segment; None: one for each sync sample.
        tracks: ids; None: all.
        texts: caption files.
        growing, began, date_ranges, low_latency: as there.
    """

    length: Fraction | None
    tracks: frozenset[int] | None = None
    texts: tuple[Captions, ...] = ()
    growing: bool | Literal["ended"] = False
    began: datetime | None = None
    date_ranges: bool = False
    low_latency: bool = False


@record(frozen=True, slots=True, eq=False)
class Periods:
    """The periods of a title, as far as they are packaged.

    Attributes:
        titles: of each.
        listed: their tracks.
        numbers: of them in the files.
        sources: the files; of growing ones only the names, since their sizes and times change.
        left_out: omitted content, as sentences.
        created: creation time of the first moov that says it.
        captioned: whether pictures may carry closed captions.
        waits: whether nothing of the next one can be listed yet.
        ended: whether the next one has other tracks, so that the title ends before it.
    """

    titles: tuple[Title, ...] = ()
    listed: tuple[tuple[Chosen, ...], ...] = ()
    numbers: tuple[int, ...] = ()
    sources: tuple[FileInfo, ...] = ()
    left_out: tuple[str, ...] = ()
    created: datetime | None = None
    captioned: bool = False
    waits: bool = False
    ended: bool = False

    def then(
        self,
        indexes: Sequence[Index],
        media: Sequence[SourceLike | None],
        numbers: Sequence[int],
        options: PackageOptions,
        over: bool = False,
    ) -> Periods:
        """With periods after these.

        Args:
            indexes: of the files; those with one period have it for each number.
            media: the files.
            numbers: of the periods.
            options: what they are made for.
            over: whether nothing more comes to the last one, be it that the title grows.

        Raises: as `fragdex.package`.
        """
        growing = options.growing
        sources = self.sources or tuple(
            # its size and time change with what comes
            replace(index.file, size=None, md5=None, etag=None, mtime_ns=None)
            if growing
            else index.file
            for index in indexes
        )
        known = replace(self, sources=sources)
        with Sources([index.file for index in indexes], media) as opened:
            for number in numbers:
                is_last = number == numbers[-1] and not over
                # only the last one can grow
                grows = growing if is_last else growing and "ended"
                known = known._with(indexes, opened, number, options, grows, is_last)
                if known.waits or known.ended:
                    break
        return known

    def _with(
        self,
        indexes: Sequence[Index],
        opened: Sources,
        number: int,
        options: PackageOptions,
        grows: bool | Literal["ended"],
        is_last: bool,
    ) -> Periods:
        """With one more."""
        growing, low_latency = options.growing, options.low_latency
        created, left_out = self.created, [*self.left_out]
        may_caption = self.captioned or not (growing and low_latency)
        tracks: list[Chosen] = []
        for at, (index, info) in enumerate(zip(indexes, self.sources, strict=True)):
            period = period_of(index, None if len(index.periods) == 1 else number)
            source = opened.source(at)
            read, size = source.read, index.file.size
            init = plain_init(b"".join(map(read, period.init)))
            moov = parse(init)
            created = created or creation(moov)
            besides = between(period, read, size=size, remote=source.remote)
            own = list(
                _chosen(
                    period, besides, init, moov, size, info, read, options.tracks, left_out,
                    grows is True,
                )
            )  # fmt: skip
            ranges, lost = ranges_of(besides.events, read) if options.date_ranges else ((), ())
            left_out += [*lost, *second_tracks(index)]
            if growing and low_latency:
                own = [replace(t, produced=produced(t.media.track, read)) for t in own]
            videos = [one for one in own if one.media.track.kind == "video"]
            may_caption = may_caption or any(captioned(one, read) for one in videos)
            tracks += _with_events(own, ranges, grows)
        known = replace(self, left_out=tuple(left_out), created=created, captioned=may_caption)
        titles = self.titles
        if not any(one.media.track.kind in PACKAGED for one in tracks):
            if growing and not is_last:
                return known
            if growing and titles:
                return replace(known, waits=True)
            where = f" in period {number}" if any(len(i.periods) > 1 for i in indexes) else ""
            raise BuildError(f"there are no samples of video or audio to package{where}")
        prefix = f"p{number}-" if titles else ""
        promised = titles[0].promised if titles else None
        try:
            made = titled(tracks, options.length, options.texts, grows, prefix, promised)
        except (BuildError, NoSyncSample):
            if not (growing and titles):
                raise
            return replace(known, waits=True)
        if growing and titles and made.content != titles[0].content:
            why = f"period {number} and what follows: it has other tracks"
            return replace(known, left_out=(*known.left_out, why), ended=True)
        return replace(
            known,
            titles=(*titles, made),
            listed=(*self.listed, tuple(tracks)),
            numbers=(*self.numbers, number),
        )

    @property
    def named_by(self) -> dict[str, object]:
        """What the tags of a title that grows name besides: rendition → how its period begins.

        What is announced stays, however large the file is by now, and what follows in it.
        """
        named: dict[str, object] = {}
        for one, tracks, number in zip(self.titles, self.listed, self.numbers, strict=True):
            begins = [[_beginning(track) for track in tracks], *([number] if number else [])]
            names = [*(r.name for r in one.renditions), *(text.name for text in one.subtitles)]
            named |= dict.fromkeys(names, begins)
        return named


def carrier(tracks: Iterable[PlannedTrack]) -> str | None:
    """The kind of those tracks of a file whose segments have its events."""
    kinds = {one.track.kind for one in tracks}
    return next((kind for kind in (*PACKAGED, "text") if kind in kinds), None)


def _with_events(
    listed: Sequence[Chosen], told: tuple[DateRange, ...], grows: object
) -> list[Chosen]:
    """The tracks of a file, of them only those with its events that players always read."""
    kind = carrier([one.media for one in listed])
    carrying = []
    for one in listed:
        besides = one.plan.between
        if one.media.track.kind == kind:
            carried = besides.carried_by(one.media, grows is True)
            one = replace(one, date_ranges=told)
        else:
            carried = replace(besides, events=[])
        carrying.append(replace(one, plan=replace(one.plan, between=carried)))
    return carrying


def _chosen(
    period: Period,
    besides: Between,
    init: bytes,
    moov: Sequence[Box],
    size: int | None,
    info: FileInfo,
    read: Callable[[ByteRange], bytes],
    wanted: frozenset[int] | None,
    left_out: list[str],
    later: bool,
) -> Iterator[Chosen]:
    """The tracks that become renditions."""
    traks = traks_of(moov)
    first: NoSyncSample | None = None
    is_empty = True
    is_all = all(track.info.auxiliary for track in period.tracks)  # nothing else can be presented
    for track in period.tracks:
        if not track.timescale or track.sample_count == 0:
            left_out += without_samples([track]) if wanted is None else ()
            continue
        if wanted is not None and track.id not in wanted:
            continue
        if wanted is None and track.info.auxiliary is not None and not is_all:
            left_out.append(track_left_out(track, track.info.auxiliary))
            continue
        if track.kind == "text" and track.info.format not in (*CUES, *FRAGMENTS):
            known = ", ".join(dict.fromkeys((*CUES, *FRAGMENTS)))
            why = f"its format {track.info.format} is none of {known}"
            left_out.append(track_left_out(track, why))
        elif track.kind in (*PACKAGED, "text"):
            may_grow = bool(((track.fragments.flags & FragmentFlags.VIRTUAL) == 0).any())
            try:
                media = media_of(track, size=size, growing=may_grow, for_players=True)
                media = completed(media, traks.get(track.id), later=later, trafs=besides.trafs)
            except NoSyncSample as error:
                if wanted is not None:
                    raise
                first = first or error
                left_out.append(track_left_out(track, error.message))
                continue
            except BuildError as error:
                if track.kind != "text":
                    raise
                left_out.append(track_left_out(track, str(error)))
                continue
            trak = traks[track.id]
            media = replace(media, protection=protected(trak, media, read))
            keys = keys_of(moov, trak)
            if track.kind == "text" and any(keys):
                left_out.append(track_left_out(track, "it is encrypted"))
                continue
            is_empty = False
            plan = Plan((media,), init_of_track(init, moov, trak), besides)
            yield Chosen(plan, info, trak, keys)
        else:
            left_out.append(track_left_out(track, "players of HLS and DASH do not know this kind"))
    if first is not None and is_empty:
        raise first


def _beginning(one: Chosen) -> str:
    """What tells a track that grows from another of this name: its moov and first sizes.

    How long it lasts is written at its end by some recorders, and is not in what players get.
    """
    first = int(one.media.track.fragments.sample_count[0])
    init = init_segment(one.plan.init, [one.media])
    known = init + one.media.samples.size[:first].tobytes()
    return md5(known, usedforsecurity=False).hexdigest()
