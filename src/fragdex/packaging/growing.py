"""A title that grows by what comes: of each append only the last segments are made.

The samples of a title are read in windows: parts of the indexes that begin with a segment that is
complete, and end where the files do. When a window has enough segments, the early ones become rows
and lines of `Kept`, and the next window begins later. They are made again, from the indexes, when
somebody requests them.

Of several periods the last one grows. Those before it are packaged when the moov comes that ends
them: that costs what the period has, and what comes afterwards costs nothing for them.

Events are kept with the rows and lines of the segments that they are in.

Files that need more than that are packaged as a whole, as before:

- with encryption, or several sample descriptions: what decrypts a sample is read from its moof;
- with subtitles: cues of all segments are in one table;
- with pictures that an edit list hides: the timescale of all is another one;
- with more than 16,384 events: of a whole file only some are looked for;
- with fragments that say more of their samples, or are odd (their index has findings, such as a
  clock that falls back): what comes may change what is known.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from fractions import Fraction
from math import ceil
from typing import Any, Final, NamedTuple

import numpy as np

from fragdex.byterange import ByteRange
from fragdex.errors import BuildError, NoSyncSample
from fragdex.fragments.table import NULL, Int64
from fragdex.indexing.growing import continued, part_of
from fragdex.lru_cache import LRUCache
from fragdex.muxing.between import MOST_EVENTS, Between, Event, between, schemes_of
from fragdex.muxing.media import Before, media_of
from fragdex.muxing.plan import Plan, PlannedTrack
from fragdex.muxing.segmentation import (
    NOTHING,
    Cuts,
    Decided,
    bridged,
    first_of,
    limited,
    reference,
    reordered,
    settled,
)
from fragdex.muxing.segments import completed, seconds_of
from fragdex.packaging import stretches
from fragdex.packaging.continued import Continued, Kept, Shortened
from fragdex.packaging.m3u8 import SKIPPED_UNTIL
from fragdex.packaging.package import Package, package_of
from fragdex.packaging.periods import PackageOptions, Periods, carrier
from fragdex.packaging.renditions import Rendition
from fragdex.packaging.titling import PACKAGED, UNIX, Chosen, Title
from fragdex.record import record
from fragdex.seeking.model import Index
from fragdex.seeking.times import TimeLike
from fragdex.sources import Source

AT_ONCE: Final = 256
"""Fragments of a window of a file that is there already."""
_LEAST, SURPLUS = 4, 4
"""Segments that stay in a window, and those beyond them that are kept together."""
_AT_HAND: Final = SKIPPED_UNTIL + 2
"""Target durations whose segments stay: of a list that ends two segments early, without others."""
_AGAIN: Final = 16
"""Stretches that were made again and are remembered."""


class Irregular(Exception):
    """The title needs more than windows of its samples."""


class _Chunk(NamedTuple):
    """A stretch of kept segments, as it is made again.

    Attributes:
        first_segment, first_part: numbers of its first ones.
        span: bytes of the file that its window had.
        before: as of `media_of`.
        cuts: first sample of each, counted in the window, and the end.
        end: presentation time at which it ends, in ticks.
        besides: what stood between the samples of its window.
    """

    first_segment: int
    first_part: int
    span: ByteRange
    before: Before | None
    cuts: Int64
    end: int
    besides: Between


@record(slots=True)
class _Growing:
    """A rendition as it grows.

    Attributes:
        chosen: its track.
        file: number of its file.
        start: of the rendition of the first window: its name, title and rates.
        listed: the one of the first period, whose list it is in.
        carries: whether its segments have the events of its file.
        decided: of its samples in the window.
        context: first sample of the last kept segment, in the window; None: nothing is kept.
        before: as of `media_of`.
        kept, chunks: segments that are kept.
        media: its samples in the window.
        shown: the same, bridged.
        rest: the segments of the window.
        besides: what stands between its samples in the window.
        schemes: of all events that it had.
    """

    chosen: Chosen
    file: int
    start: Rendition
    listed: Rendition
    carries: bool
    decided: Decided = NOTHING
    context: int | None = None
    before: Before | None = None
    kept: Kept = field(default_factory=Kept)
    chunks: list[_Chunk] = field(default_factory=list)
    media: PlannedTrack | None = None
    shown: PlannedTrack | None = None
    rest: Rendition | None = None
    besides: Between = field(default_factory=Between)
    schemes: dict[tuple[str, str], None] = field(default_factory=dict)

    @property
    def new(self) -> int:
        """Number of the first segment of the window that is not kept."""
        return int(self.context is not None)


class _GrowingPeriod:
    """The last period of files that grow, with those before it; `low_latency`.

    Args:
        first: of the first window.
        periods: that it is of.
        windows: the index of each file, from the last kept segments on.
        length: as of `package`.

    Attributes:
        windows: as given.
        package: of all that is known.
    """

    def __init__(
        self, first: Package, periods: Periods, windows: Sequence[Index], length: Fraction | None
    ) -> None:
        title, listed = periods.titles[-1], periods.listed[-1]
        known = [one for one in title.renditions if one.media.hidden]
        chosen = [one for kind in PACKAGED for one in listed if one.media.track.kind == kind]
        is_plain = len(chosen) == len(title.renditions) and len(listed) == len(chosen)
        promised = title.promised
        if known or title.subtitles or promised is None or not is_plain:
            raise Irregular
        sources = periods.sources
        files = [[one.source is source for source in sources].index(True) for one in chosen]
        self._first, self._length, self._promised = first, length, promised
        self._number = windows[0].periods[-1].number
        self.windows, self.package = list(windows), first
        carries = [carrier([c.media for c in listed if c.source is x.source]) for x in chosen]
        every = zip(chosen, files, title.renditions, first.title.renditions, strict=True)
        self._tracks = [
            _Growing(*one, carries=kind == one[0].media.track.kind)
            for one, kind in zip(every, carries, strict=True)
        ]
        lead = reference([one.media for one in listed])
        self._lead = next(one for one in self._tracks if one.chosen.media.track is lead.track)
        self._again: LRUCache[Rendition] = LRUCache(_AGAIN)
        self._events: list[list[Event]] = [[] for _ in windows]
        self._gone = 0
        for one in self._tracks:
            if any(one.chosen.entry_keys):
                raise Irregular
            if one.carries:
                self._events[one.file] = one.chosen.plan.between.events

    def take(
        self,
        windows: Sequence[Index],
        sources: Sequence[Source],
        whole: Callable[[int], Index],
        surplus: int,
    ) -> Package:
        """The package where the windows are these.

        Args:
            windows: of each file, from the same fragment on.
            sources: the files.
            whole: gives the index of one, by its number.
            surplus: how many segments are kept together at least.

        Raises:
            Irregular: what has come cannot be continued with.
        """
        self.windows = list(windows)
        for number, (window, source) in enumerate(zip(windows, sources, strict=True)):
            self._events[number] = _events(window, source, self._events[number])
        try:
            self._make()
            self._keep(surplus)
        except (BuildError, NoSyncSample) as error:
            raise Irregular from error
        self.package = self._packaged(whole)
        return self.package

    # -- the window

    def _make(self) -> None:
        """The segments of the windows."""
        for one in self._tracks:
            one.media, one.shown = self._media(one, self.windows[one.file], one.before)
            events = self._events[one.file] if one.carries else []
            besides = replace(one.chosen.plan.between, events=events)
            one.besides = besides.carried_by(one.media, later=True)
            one.schemes |= dict.fromkeys(schemes_of(one.besides.events))
        made = {}
        for one in self._tracks:
            pace = self._pace(one)
            if id(pace) not in made:
                assert pace.shown is not None
                cuts = limited(pace.shown, self._length, self._promised, True, pace.decided)
                made[id(pace)] = cuts
            one.rest = self._rest(one, made[id(pace)])

    def _media(
        self, one: _Growing, window: Index, before: Before | None
    ) -> tuple[PlannedTrack, PlannedTrack]:
        """The samples of a track, and the same as they are shown."""
        chosen = one.chosen
        track = next((t for t in window.tracks if t.id == chosen.media.track.id), None)
        if track is None:
            raise Irregular
        size = window.file.size
        media = media_of(track, size=size, growing=True, for_players=True, before=before)
        media = completed(media, chosen.trak, later=True)
        if media.descriptions is not None or media.numbers is not None:
            raise Irregular
        return media, bridged(media, self._promised.longest)

    def _rest(self, one: _Growing, cuts: Cuts) -> Rendition:
        media, pace = one.shown, self._pace(one)
        assert media is not None
        assert pace.shown is not None
        complete = settled(media, pace.shown, cuts, self._promised, one.decided)
        if complete is None:
            raise Irregular
        edges, times, places = complete
        opened = media.rows(slice(int(edges[-1]), int(places[-1])))
        if one.context is not None:
            edges = np.append(one.context, edges)
        more: dict[str, Any] = {}
        if len(opened):
            more = {"open": opened, "open_parts": places - places[0]}
        known, first = one.kept, one.new
        chunk_parts = known.parts - self._last_parts(one) if first else 0
        about = int(times[-1]), known.count - first, chunk_parts, one.besides
        return self._stretch(one, media, edges, *about, **more)

    def _last_parts(self, one: _Growing) -> int:
        """How many parts the last kept segment has."""
        parts = one.kept.column("parts")[-2:]
        return int(parts[-1]) - (int(parts[0]) if len(parts) > 1 else 0)

    def _stretch(
        self,
        one: _Growing,
        media: PlannedTrack,
        cuts: Int64,
        end: int,
        first_segment: int,
        first_part: int,
        besides: Between,
        **more: Any,
    ) -> Rendition:
        """Segments of some samples."""
        base, start = int(cuts[0]), one.start
        rows = media.rows(slice(base, int(cuts[-1])), end=end)
        return Rendition(
            start.name,
            start.title,
            start.source,
            Plan((rows,), one.chosen.plan.init, besides),
            cuts - base,
            start.begins,
            one.chosen.entry_keys,
            later=True,
            promised=self._promised,
            first_segment=first_segment,
            first_part=first_part,
            produced=start.produced,
            **more,
        )

    def _pace(self, one: _Growing) -> _Growing:
        """Video has its own key frames; all else follows the first video."""
        kinds = (one.chosen.media.track.kind, self._lead.chosen.media.track.kind)
        return self._lead if kinds[0] != kinds[1] else one

    # -- segments that are kept

    def _keep(self, surplus: int) -> None:
        """Keep the early segments of the windows, where there are enough."""
        stops = self._stops(surplus)
        if stops is None:
            return
        before = [one.rest for one in self._tracks]
        span = [window.resume_offset for window in self.windows]
        firsts = [self._fragment(one, stop) for one, stop in zip(self._tracks, stops, strict=True)]
        starts = [
            min(
                first for one, first in zip(self._tracks, firsts, strict=True) if one.file == number
            )
            for number in range(len(self.windows))
        ]
        for one, stop in zip(self._tracks, stops, strict=True):
            self._keep_of(one, stop, starts[one.file], span[one.file])
        self._drop_events(starts)
        self.windows = _all_there(
            [part_of(*both) for both in zip(self.windows, starts, strict=True)]
        )
        self._make()
        for one, former, stop in zip(self._tracks, before, stops, strict=True):
            if not _is_same(former, one.rest, stop - 1):
                raise Irregular

    def _drop_events(self, starts: Sequence[int]) -> None:
        """Leave out the events that arrive before the next windows.

        Args:
            starts: bytes at which these begin.

        Raises:
            Irregular: there are more events than are looked for in a file.
        """
        for number, (start, events) in enumerate(zip(starts, self._events, strict=True)):
            rows = [
                one.media.track.fragments.moof_offset
                for one in self._tracks
                if one.file == number and one.carries and one.media is not None
            ]
            # up to this moof all of them have arrived
            before = (at[: np.searchsorted(at, start)] for at in rows)
            last = min((int(at[-1]) if len(at) else -1 for at in before), default=start)
            self._events[number] = [one for one in events if one.place.start > last]
            self._gone += len(events) - len(self._events[number])
        if self._gone > MOST_EVENTS // 2:
            raise Irregular

    def _stops(self, surplus: int) -> list[int] | None:
        """Of each track the number of the first segment in its window that is not kept."""
        stops: dict[int, int] = {}
        for one in (self._lead, *self._tracks):
            rest, pace = one.rest, self._pace(one)
            assert rest is not None
            if pace is one:
                stop = self._leaving(rest)
                if stop < max(one.new, 1) + (surplus if one is self._lead else 0):
                    return None
            else:
                lead = self._lead
                assert lead.rest is not None
                assert one.shown is not None
                time, scale = int(lead.rest.times[stops[id(lead)]]), lead.rest.timescale
                sample = first_of(one.shown, time, scale) - self._base(one)
                stop = int(np.searchsorted(rest.cuts, sample))
                if stop >= rest.count or rest.cuts[stop] != sample or stop < max(one.new, 1):
                    return None
            stops[id(one)] = stop
        return [stops[id(one)] for one in self._tracks]

    def _leaving(self, rest: Rendition) -> int:
        """The segment after which enough stay for lists that leave out what players have."""
        growth = self._first.title.growth
        assert growth is not None
        wanted = _AT_HAND * growth.target * rest.timescale
        left = np.cumsum(rest.lasts[::-1])
        stay = max(int(np.searchsorted(left, wanted)) + 1, _LEAST)
        return rest.count - stay

    def _base(self, one: _Growing) -> int:
        """The sample of the window with which its segments begin."""
        return one.decided.first if one.context is None else one.context

    def _fragment(self, one: _Growing, stop: int) -> int:
        """The moof with the first sample of the segment before."""
        rest, media = one.rest, one.media
        assert rest is not None
        assert media is not None
        rows = media.track.fragments
        sample = self._base(one) + int(rest.cuts[stop - 1])
        return int(rows.moof_offset[int(np.searchsorted(rows.sample_start, sample, "right")) - 1])

    def _keep_of(self, one: _Growing, stop: int, start: int, end: int) -> None:
        """Keep the segments of a track before one, and begin its window with the last of them.

        Args:
            stop: number of that in the window.
            start: byte at which the next window begins.
            end: byte at which this one ends.
        """
        rest, media, shown = one.rest, one.media, one.shown
        assert rest is not None
        assert media is not None
        assert shown is not None
        base, rows = self._base(one), media.track.fragments
        dropped = int(rows.sample_start[int(np.searchsorted(rows.moof_offset, start))])
        first, context = (int(rest.cuts[n]) + base for n in (stop, stop - 1))
        if stop > one.new:
            assert rest.parts is not None
            low = int(np.searchsorted(rest.parts, rest.cuts[one.new]))
            chunk = _Chunk(
                rest.first_segment + one.new,
                rest.first_part + low,
                ByteRange(int(rows.moof_offset[0]), end),
                one.before,
                rest.cuts[one.new : stop + 1] + base,
                int(rest.times[stop]),
                one.besides,
            )
            one.chunks.append(chunk)
            title = self._first.title
            if title.later and not one.kept.count:
                before = stretches.first_lines(one.listed, title, len(title.later))
                one.kept = Kept.after(before)
            text, missing = stretches.kept_lines(rest, title, one.new, stop)
            one.kept = one.kept.then(rest, one.new, stop, text, missing)
        known = Before.of(media, dropped, first)
        if known is None:
            raise Irregular
        one.before, one.context = known, context - dropped
        one.decided = Decided(first - dropped, max(one.decided.back, reordered(shown)))

    def _remade(self, one: _Growing, number: int, whole: Callable[[int], Index]) -> Rendition:
        """The stretch with a kept segment."""
        chunks = one.chunks
        place = bisect_right(chunks, number, key=lambda chunk: chunk.first_segment) - 1

        def make() -> Rendition:
            chunk = chunks[place]
            every = _alone(whole(one.file), self._number)
            index = part_of(every, chunk.span.start, chunk.span.stop)
            if index is None:
                raise BuildError(_CHANGED)
            _, media = self._media(one, index, chunk.before)
            return self._stretch(
                one,
                media,
                chunk.cuts,
                chunk.end,
                chunk.first_segment,
                chunk.first_part,
                chunk.besides,
            )

        return self._again.get_or_make((one.start.name, place), _AGAIN, make)

    # -- the package

    def _packaged(self, whole: Callable[[int], Index]) -> Package:
        first, renditions = self._first, []
        for one in self._tracks:
            rest = one.rest
            assert rest is not None
            if one.context is None:
                renditions.append(rest)
                continue
            rates = one.start.frame_rate, one.start.highest_frame_rate
            again = _Again(self, one, whole)
            about = rates, one.start.hidden, tuple(one.schemes)
            renditions.append(Continued.of(rest, one.kept, again, *about))
        growth = first.title.growth
        assert growth is not None
        stamps = [window.file.mtime_ns or 0 for window in self.windows]
        changed: datetime = UNIX + timedelta(microseconds=max(stamps) // 1000)
        title = first.title
        if title.later:
            last = replace(title.later[-1], renditions=tuple(renditions))
            title = replace(title, later=(*title.later[:-1], last))
        else:
            title = replace(title, renditions=tuple(renditions))
        changed = changed if max(stamps) else growth.changed
        return first.continued(replace(title, growth=replace(growth, changed=changed)))


class _Again:
    """Makes stretches of a rendition again; it keeps no window."""

    def __init__(self, title: _GrowingPeriod, one: _Growing, whole: Callable[[int], Index]) -> None:
        self._title, self._one, self._whole = title, one, whole

    def __call__(self, number: int) -> Rendition:
        return self._title._remade(self._one, number, self._whole)


def _is_same(former: Rendition | None, latter: Rendition | None, first: int) -> bool:
    """Whether the segments of a window are those of the one before from a number on."""
    assert former is not None
    assert latter is not None
    names = ("times", "sizes", "edges", "gaps", "ticks")
    return former.part_count == latter.part_count and all(
        np.array_equal(getattr(former, name)[first:], getattr(latter, name)) for name in names
    )


def _events(window: Index, source: Source, known: Sequence[Event]) -> list[Event]:
    """The events of a window.

    Args:
        known: those of the window before.

    Raises:
        Irregular: its fragments say more of their samples.
    """
    period, start = window.periods[-1], _start(window)
    # what stands after the last moof comes with the next one
    besides = between(period, source.read, part=ByteRange(start + 1, 1 << 62))
    if besides.trafs:
        raise Irregular
    return [*(one for one in known if one.place.start < start), *besides.events]


class GrowingTitle:
    """The package of files that grow, with `low_latency`.

    Args:
        indexes: of the files.
        sources: the files.
        whole: gives the index of one with all that is there, by its number.
        options: of `fragdex.package`: `segment_duration` and `began`.

    Attributes:
        windows: the index of each file, from the last kept segments on.
        package: of all that is known.

    Raises:
        Irregular: they have to be packaged as a whole.
        BuildError, NoSyncSample: as `fragdex.package`, of files that grow.
    """

    windows: list[Index]
    package: Package
    _last: _GrowingPeriod | None

    def __init__(
        self,
        indexes: Sequence[Index],
        sources: Sequence[Source],
        whole: Callable[[int], Index],
        *,
        segment_duration: TimeLike | None,
        began: datetime | None,
    ) -> None:
        self._options = PackageOptions(
            seconds_of(segment_duration), growing=True, began=began, low_latency=True
        )
        self._over, self._number = Periods(), 0
        self._shortened: tuple[datetime | None, tuple[Title, ...]] = (None, ())
        self._last = None
        self._begin(indexes, sources, whole)

    def grow(self, sources: Sequence[Source], whole: Callable[[int], Index]) -> Package:
        """The package of files that have grown.

        Args:
            sources: the files.
            whole: as of the title.

        Raises:
            Irregular: what has come cannot be continued with.
        """
        windows = []
        for window, source in zip(self.windows, sources, strict=True):
            grown = continued(window, source)
            if grown is None:
                break
            windows.append(grown)
        try:
            if len(windows) < len(sources):
                self._begin_again(sources, whole)
            else:
                self._take(windows, sources, whole)
        except (BuildError, NoSyncSample) as error:
            raise Irregular from error
        return self.package

    def _begin_again(self, sources: Sequence[Source], whole: Callable[[int], Index]) -> None:
        """Begin with the last period, where a moov has come, or no fragment yet after one."""
        indexes = [whole(number) for number in range(len(sources))]
        for source in sources:
            source.refresh()
        if len(indexes[0].periods) - 1 > self._number or self._last is None:
            self._begin(indexes, sources, whole)
            return
        # whether the moov begins a period, its first fragment says
        lasts = [_alone(index, self._number) for index in indexes]
        starts = map(_start, self.windows)
        self._take(_all_there(list(map(part_of, lasts, starts))), sources, whole)

    def _begin(
        self, indexes: Sequence[Index], sources: Sequence[Source], whole: Callable[[int], Index]
    ) -> None:
        number = len(indexes[0].periods) - 1
        if any(len(one.periods) != number + 1 or not one.periods[-1].tracks for one in indexes):
            raise Irregular
        ended = range(self._number, number)
        self._over = self._over.then(indexes, sources, ended, self._options, over=True)
        self._number, self._last = number, None
        over = self._over
        keys = (key for tracks in over.listed for one in tracks for key in one.entry_keys)
        if over.waits or over.ended or any(keys) or any(one.subtitles for one in over.titles):
            raise Irregular
        lasts = [_alone(index, number) for index in indexes]
        if not any(len(track.fragments) for index in lasts for track in index.tracks):
            self._take(lasts, sources, whole)
            return
        every, starts = list(_windows(lasts)), [*map(_start, lasts)]
        for place, stops in enumerate(every):
            parts = _all_there(list(map(part_of, lasts, starts, stops)))
            if self._take(parts, sources, whole, is_last=place == len(every) - 1):
                starts = [*map(_start, self.windows)]

    def _take(
        self,
        windows: Sequence[Index],
        sources: Sequence[Source],
        whole: Callable[[int], Index],
        is_last: bool = True,
    ) -> bool:
        """Begin the last period, or continue it, with these windows of it.

        Args:
            is_last: whether there are no more of the samples that are known.

        Returns: whether it has begun.
        """
        if self._last is None:
            try:
                periods = self._over.then(windows, sources, [self._number], self._options)
            except (BuildError, NoSyncSample):
                if is_last:
                    raise
                return False
            if periods.ended:
                raise Irregular
            if periods.waits and not is_last:
                return False
            first = package_of(periods, windows, self._options)
            first = first.continued(self._with_shortened(first.title))
            self.windows, self.package = list(windows), first
            if periods.waits:
                return False
            self._last = _GrowingPeriod(first, periods, windows, self._options.length)
        self._last.take(windows, sources, whole, SURPLUS if is_last else 1)
        self.windows, self.package = self._last.windows, self._last.package
        return True

    def _with_shortened(self, title: Title) -> Title:
        """A title whose lists are not made of all lines of the periods that are over."""
        count = len(self._over.titles)
        if not count:
            return title
        zero, known = self._shortened
        if zero != title.zero or len(known) != count:
            assert title.growth is not None
            over = replace(title, later=title.later[: count - 1])
            known = _shortened(over)
            self._shortened = title.zero, known
        first, *later = (*known, *title.periods[count:])
        return replace(title, renditions=first.renditions, later=tuple(later))


def _shortened(title: Title) -> tuple[Title, ...]:
    """The periods of a title to which nothing more comes, without lines far from its end."""
    assert title.growth is not None
    periods = [[*one.renditions] for one in title.periods]
    for place, rendition in enumerate(title.renditions):
        left = Fraction(_AT_HAND * title.growth.target)
        for number, one in reversed(list(enumerate(title.through(rendition)))):
            before = np.cumsum(one.lasts[::-1])
            wanted = ceil(left * one.timescale)
            stay = int(np.searchsorted(before, wanted)) + 1 if wanted > 0 else 0
            stop = one.count - stay
            if stop > 0:
                kept = Kept.after(stretches.first_lines(rendition, title, number + 1, stop))
                periods[number][place] = Shortened.at(one, stop, kept)
                break
            left -= Fraction(int(before[-1]), one.timescale)
    return tuple(
        replace(one, renditions=tuple(renditions), later=())
        for one, renditions in zip(title.periods, periods, strict=True)
    )


def _all_there(windows: Sequence[Index | None]) -> list[Index]:
    """Windows of files.

    Raises:
        Irregular: one of them needs the whole file.
    """
    there = [one for one in windows if one is not None]
    if len(there) < len(windows):
        raise Irregular
    return there


_CHANGED: Final = "the file is not what it was when its first segments were read"


def _alone(index: Index, number: int) -> Index:
    """The index of one period."""
    period = next((one for one in index.periods if one.number == number), None)
    if period is None:
        raise BuildError(_CHANGED)
    return Index(
        index.file,
        index.how,
        (period,),
        # of a moov that is the same, and stands before fragments that are known
        findings=tuple(one for one in index.findings if one.code != "repeated-moov"),
        complete=index.complete,
        resume_offset=index.resume_offset,
    )


def _start(index: Index) -> int:
    """Where the first moof of a window begins."""
    places = [int(t.fragments.moof_offset[0]) for t in index.tracks if len(t.fragments)]
    if not places or NULL in places:
        raise Irregular
    return min(places)


def _windows(indexes: Sequence[Index]) -> Iterator[list[int | None]]:
    """Where the windows of files end that are there already, so that none is too large."""
    places = [
        np.unique(np.concatenate([track.fragments.moof_offset for track in index.tracks]))
        for index in indexes
    ]
    most = max(len(one) for one in places)
    for count in range(AT_ONCE, most, AT_ONCE):
        # files are as far as their fragments are many
        numbers = [len(one) * count // most for one in places]
        yield [
            int(one[n]) if n < len(one) else None for one, n in zip(places, numbers, strict=True)
        ]
    yield [None] * len(places)
