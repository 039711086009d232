"""HLS and DASH from the indexes of files, made when they are requested; nothing is stored.

Each track of video, audio and subtitles is a rendition whose segments stand on their own.
Playlists, manifest and segments come from one table, so that what they say of each other is true
to the tick.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property, partial
from hashlib import md5
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal

from fragdex.errors import BuildError
from fragdex.formats.media_or_index import MediaOrIndex, index_and_media, is_one, lasting
from fragdex.formats.subsegments import period_of
from fragdex.lru_cache import LRUCache
from fragdex.muxing.segments import seconds_of
from fragdex.muxing.view import View, one_for_each
from fragdex.packaging.periods import PackageOptions, Periods
from fragdex.packaging.playlists import MANIFEST
from fragdex.packaging.renditions import Rendition
from fragdex.packaging.subtitles import Captions, Subtitles, read_captions
from fragdex.packaging.titling import (
    UNIX,
    Title,
    growth,
    joined,
    uneven,
)
from fragdex.seeking.model import Index
from fragdex.seeking.origin import FileInfo
from fragdex.seeking.times import TimeLike
from fragdex.sources import SourceLike, SourcesLike

__all__ = ["MANIFEST", "MULTIVARIANT", "Package", "package"]

MULTIVARIANT: Final = "master.m3u8"
HLS: Final = "application/vnd.apple.mpegurl"
DASH: Final = "application/dash+xml"


_KEPT: Final = 8 << 20
"""Bytes of playlists and manifests that a package keeps."""
_WRITERS: Final = 16
"""Lists of a growing title of which what all forms share is kept."""


class Package(Mapping[str, View]):
    """The files of a title in HLS and DASH, by their names; made by `package`.

    Names are `master.m3u8`, `manifest.mpd`, and for each rendition `NAME.m3u8`, `NAME/init.mp4`,
    `NAME/TIME.m4s` for the segment that begins at TIME ticks, and for video
    `NAME-iframes.m3u8`. Where each rendition is a single file, that is `NAME.mp4` instead of
    initialization segment and segments. Subtitles have `NAME/TIME.vtt`, and `NAME.vtt` where they
    have no fragments. Periods after the first have `pPERIOD-NAME` for NAME in the same playlists.

    Attributes:
        title: the renditions.
        sources: the files, as their indexes know them; of growing ones only the names, since
            their sizes and times change.
        findings: why players cannot switch between renditions, and omitted content, as
            sentences.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> data = movie(8, samples=5, fps=5)
    >>> made = package(fragdex.index(data), source=data)
    >>> list(made)[:4]
    ['master.m3u8', 'manifest.mpd', 'v1.m3u8', 'v1-iframes.m3u8']
    >>> made["v1/init.mp4"].read()[4:8]
    b'ftyp'
    """

    def __init__(
        self,
        title: Title,
        sources: Sequence[FileInfo],
        recipe: object,
        left_out: Sequence[str] = (),
        media: Sequence[SourceLike | None] | None = None,
        named_by: Mapping[str, object] | None = None,
        low_latency: bool = False,
    ) -> None:
        self.title, self.sources, self._recipe = title, tuple(sources), recipe
        self._named_by, self._low_latency = named_by or {}, low_latency
        self._given = None if media is None or all(m is None for m in media) else [*media]
        self._left_out = tuple(left_out)
        self._kept: LRUCache[View] = LRUCache(_KEPT)
        self._writers: LRUCache[Callable[[bool], bytes]] = LRUCache(_WRITERS)

    @cached_property
    def findings(self) -> tuple[str, ...]:
        """Why players cannot switch between renditions, and omitted content."""
        reasons = (sentence for one in self.title.periods for sentence in uneven(one.of("video")))
        lacking = dict.fromkeys(x for one in self._renditions.values() for x in one.made.left_out)
        return (*reasons, *self._left_out, *lacking)

    @cached_property
    def _renditions(self) -> dict[str, Rendition]:
        own = [one for title in self.title.periods for one in title.renditions]
        text = [one.rendition for one in self._subtitles.values() if one.rendition is not None]
        return {one.name: one for one in (*own, *text)}

    @cached_property
    def _subtitles(self) -> dict[str, Subtitles]:
        return {one.name: one for title in self.title.periods for one in title.subtitles}

    @cached_property
    def _playlists(self) -> frozenset[str]:
        """Names of what has a playlist: one for all periods."""
        title = self.title
        return frozenset(
            [*(one.name for one in title.renditions), *(one.name for one in title.subtitles)]
        )

    def __iter__(self) -> Iterator[str]:
        """The names of all files: first those that players ask for first."""
        from fragdex.packaging import playlists

        yield from (MULTIVARIANT, MANIFEST)
        for one in self.title.renditions:
            yield f"{one.name}.m3u8"
            if playlists.has_iframes(one, self.title):
                yield f"{one.name}-iframes.m3u8"
            yield from _fragments(one)
        for later in self.title.later:
            for rendition in later.renditions:
                yield from _fragments(rendition)
        for text in self._subtitles.values():
            if text.name in self._playlists:
                yield f"{text.name}.m3u8"
            if text.cues is not None:
                yield from (f"{text.name}/{time}.vtt" for time in text.times)
            if text.rendition is not None:
                yield from _fragments(text.rendition)
            else:
                yield f"{text.name}.vtt"

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        renditions = ", ".join(self._renditions)
        return f"<Package: {renditions} of {', '.join(one.name for one in self.sources)}>"

    def save(self, folder: str | PathLike[str], *, source: SourcesLike | None = None) -> None:
        """Write all files into a folder, each atomically; the playlists last.

        Args:
            folder: made where it is not there; what else is in it stays.
            source: the media, as of `View.read`; of several files, one for each of `sources`.

        Raises: as `View.save`.
        """
        if source is None:
            source = self._given
        given = one_for_each(source, len(self.sources))
        for name in sorted(self, key=lambda name: name.endswith((".m3u8", ".mpd"))):
            view = self[name]
            path = Path(folder, *name.split("/"))
            path.parent.mkdir(parents=True, exist_ok=True)
            view.save(path, source=self._media_of(view, given))

    @cached_property
    def _numbers(self) -> dict[FileInfo | str, int]:
        """Numbers of the files, by what is known of each, and by name; of equal ones the first."""
        files = [*enumerate(self.sources)][::-1]
        return {one.name: n for n, one in files} | {one: n for n, one in files}

    def _media_of(
        self, view: View, given: Sequence[SourceLike | None]
    ) -> Sequence[SourceLike | None]:
        """Media of the sources of a view, of those of all."""
        if view.sources is self.sources:  # a text, which depends on all
            return given
        numbers = self._numbers
        # what grows is not as it was: only its name stays
        places = (numbers[one if one in numbers else one.name] for one in view.sources)
        return [given[place] for place in places]

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other  # a mapping would make every file of both

    def continued(self, title: Title) -> Package:
        """The package of the same files when more of them is there."""
        return Package(
            title, self.sources, self._recipe, self._left_out, self._given, self._named_by,
            self._low_latency,
        )  # fmt: skip

    def cached(self, name: str, make: Callable[[], View]) -> View:
        """A text that is made once, and then kept while there is room.

        Args:
            name: of the file.
            make: makes it.
        """
        return self._kept.get_or_make(name, _KEPT, make, weight=lambda view: view.size)

    def __getitem__(self, name: str) -> View:
        """A file as a view.

        Raises:
            KeyError: the title has no such file.
        """
        view = self._file(name)
        if self._given is None:
            return view
        return view.with_media(self._media_of(view, self._given))

    def _file(self, name: str) -> View:
        head, _, tail = name.partition("/")
        if tail:
            return self._media(head, tail)
        # A request for a segment does not load the writers.
        from fragdex.packaging import playlists

        low = self._low_latency
        if name == MULTIVARIANT:
            return self._text(HLS, name, lambda: playlists.multivariant(self.title))
        if name == MANIFEST:
            return self._text(DASH, name, lambda: playlists.manifest(self.title, low))
        stem, dot, suffix = head.rpartition(".")
        text = self._subtitles.get(stem)
        if dot and suffix == "m3u8" and stem.removesuffix("-iframes") in self._playlists:
            if text is not None:
                return self._text(HLS, name, lambda: playlists.subtitles(text, self.title))
            one = self._renditions.get(stem.removesuffix("-iframes"))
            if one is not None and one.name == stem:
                return self._media_list(one, name, ahead=not self.title.captioned)
            if one is not None and playlists.has_iframes(one, self.title):
                return self._text(HLS, name, lambda: playlists.iframes(one, self.title))
        whole = self._renditions.get(stem)
        if suffix == "mp4" and whole is not None and whole.single_file:
            return whole.file([self._recipe, name])
        if suffix == "vtt" and text is not None and text.rendition is None:
            return _existing(text.whole([self._recipe, stem, *self._of(stem)]), name)
        raise KeyError(name)

    def _media_list(
        self,
        one: Rendition,
        name: str,
        ahead: bool = False,
        skip: bool = False,
        until: int | None = None,
    ) -> View:
        from fragdex.packaging import playlists, stretches

        low, kept = self._low_latency, stretches.shortened(one, self.title)
        digest = None if kept is None or skip else kept.kept.digest

        def write() -> bytes:
            make = partial(playlists.media_writer, one, self.title, low, ahead, until)
            if self.title.growth is None:
                return make()(skip)
            return self._writers.get_or_make((one.name, ahead, until), _WRITERS, make)(skip)

        return self._text(HLS, name, write, digest)

    def reloaded(self, name: str, *, skip: bool = False, segment: int | None = None) -> View:
        """A media playlist as players get it who load it again while the title grows.

        It names the parts of the segment that is not complete, and the one that comes next.

        Args:
            name: of the playlist.
            skip: without the segments that players have already.
            segment: that is waited for: the list ends where `playlists.shown_until` says.

        Raises:
            KeyError: the title has no such playlist.
        """
        from fragdex.packaging import playlists

        one = self._renditions.get(name.removesuffix(".m3u8"))
        if one is None or one.name not in self._playlists:
            return self[name]
        until = playlists.shown_until(one, self.title, segment) if self._low_latency else None
        return self._media_list(one, f"{name} {skip} {until}", ahead=True, skip=skip, until=until)

    def hold_back(self, name: str, segment: int | None, part: int | None = None) -> float:
        """Seconds to wait before a list is sent to a player that is led to the end of a title.

        Lists that say all that is there, and do not end, are sent at once: 0. Else a player that
        is in time may take so long to load the last parts that it knows of (PART-HOLD-BACK).

        Args:
            segment, part: that are waited for, and there.

        Raises:
            KeyError: the title has no such playlist.
        """
        from fragdex.packaging import playlists

        one, growth = self._renditions.get(name.removesuffix(".m3u8")), self.title.growth
        if one is None or one.promised is None or growth is None or not self._low_latency:
            return 0.0
        is_led = playlists.shown_until(one, self.title, segment) is not None and not part
        is_over = segment is not None and growth.ended and not part
        return float(3 * one.promised.part) if is_led or is_over else 0.0

    def progress(self, name: str) -> tuple[int, int] | None:
        """How many segments of a media playlist are complete, and parts of the one after them.

        None: players cannot wait for more, since it has ended, or is no such playlist.

        Raises:
            KeyError: the title has no such playlist.
        """
        from fragdex.packaging import playlists

        stem, growth = name.removesuffix(".m3u8"), self.title.growth
        if stem.removesuffix("-iframes") not in self._playlists:
            raise KeyError(name)
        one = self._renditions.get(stem)
        if one is None or not self._low_latency or growth is None or growth.ended:
            return None
        return None if one.parts is None else playlists.progress(one, self.title)

    def last_part(self, name: str) -> tuple[int, int]:
        """Numbers of the last segment of a list that `progress` is known of, and of its last part.

        The segment need not be complete.
        """
        from fragdex.packaging import playlists

        return playlists.last_part(self._renditions[name.removesuffix(".m3u8")], self.title)

    def is_next_part(self, name: str) -> bool:
        """Whether a name is that of the part that comes next, while the title grows."""
        from fragdex.packaging import playlists

        one = self._growing(name)
        if one is None:
            return False
        first = self.title.renditions[self.title.periods[-1].renditions.index(one)]
        is_named = playlists.names_open(first, self.title)
        return is_named and name == playlists.part_name(one, one.part_count)

    def parts_of_open(self, name: str) -> int | None:
        """How many parts of a segment that is not complete are there; None: it is no such name."""
        from fragdex.packaging import playlists

        one = self._growing(name)
        if one is None or one.parts is None or name != playlists.open_name(one):
            return None
        return one.open_count

    def parts_of(self, name: str) -> list[View]:
        """The parts of a segment, one after the other; of one that is not complete those there are.

        Raises:
            KeyError: the title has no such segment.
        """
        head, _, tail = name.partition("/")
        one, stem = self._renditions.get(head), tail.removesuffix(".m4s")
        if one is None or one.parts is None or f"{stem}.m4s" != tail or not stem.isdigit():
            raise KeyError(name)
        numbers = range(one.part_count - one.open_count, one.part_count)
        if self.parts_of_open(name) is None:
            number = one.number_at(int(stem))
            if number is None:
                raise KeyError(name)
            numbers = one.parts_in(number)
        return [self[f"{head}/part-{n}.m4s"] for n in numbers]

    def _growing(self, name: str) -> Rendition | None:
        """The rendition of the last period that a name is below, while more of it comes."""
        growth = self.title.growth
        if not self._low_latency or growth is None or growth.ended:
            return None
        head, latest = name.partition("/")[0], self.title.periods[-1].renditions
        return next((one for one in latest if one.name == head), None)

    def _media(self, rendition: str, name: str) -> View:
        recipe = [self._recipe, rendition, *self._of(rendition)]
        whole, one = f"{rendition}/{name}", self._renditions.get(rendition)
        if one is not None and one.single_file:
            one = None
        if name == "init.mp4" and one is not None:
            init = one.init
            return View(one.made.media_type, [one.source], [recipe, name], [len(init)], _only(init))
        stem, _, suffix = name.rpartition(".")
        is_part = stem.startswith("part-")
        stem = stem.removeprefix("part-")
        if not (stem.isascii() and stem.isdigit() and str(int(stem)) == stem):
            raise KeyError(whole)
        if suffix == "vtt" and rendition in self._subtitles:
            return _existing(self._subtitles[rendition].segment(int(stem), recipe), whole)
        if is_part:
            part = one.part_view(int(stem), recipe) if one and suffix == "m4s" else None
            return _existing(part, whole)
        return _existing(one.segment(int(stem), recipe) if one and suffix == "m4s" else None, whole)

    def _of(self, name: str) -> list[object]:
        """What the tags of a growing rendition name besides: how its period begins."""
        return [self._named_by[name]] if name in self._named_by else []

    def _text(
        self,
        media_type: str,
        name: str,
        write: Callable[[], bytes],
        digest: Callable[[bytes], str] | None = None,
    ) -> View:
        def make() -> View:
            text = write()
            recipe = [self._recipe, name]
            if self.title.growth is not None:
                recipe.append((digest or _md5)(text))
            return View(media_type, self.sources, recipe, [len(text)], _only(text))

        return self.cached(name, make)


def _fragments(one: Rendition) -> Iterator[str]:
    if one.single_file:
        yield f"{one.name}.mp4"
        return
    yield f"{one.name}/init.mp4"
    yield from (f"{one.name}/{time}.m4s" for time in one.times.tolist())


def _existing(view: View | None, name: str) -> View:
    if view is None:
        raise KeyError(name)
    return view


def package(
    what: MediaOrIndex | Iterable[MediaOrIndex],
    *,
    source: SourcesLike | None = None,
    segment_duration: TimeLike | None = 4,
    tracks: Iterable[int] | None = None,
    captions: Iterable[Captions | str | PathLike[str]] = (),
    single_file: bool = False,
    growing: bool | Literal["ended"] = False,
    began: datetime | None = None,
    period: int | None = None,
    date_ranges: bool = False,
    low_latency: bool = False,
) -> Package:
    """A title in HLS (RFC 8216) and DASH (ISO/IEC 23009-1), with nothing stored.

    Args:
        what: media (path, URL, bytes, file) or an index of them, or several that are renditions of
            one title. Each track of video, audio and subtitles (wvtt, tx3g, stpp) is a rendition.
        source: the media of indexes, in any form that `fragdex.open_source` takes, one for each;
            None: where the indexes say. Only their moovs are read here.
        segment_duration: approximate seconds of a segment; None: one per sync sample. Segments
            begin at sync samples of the video, audio is cut at the nearest access unit. Those of
            fragmented files last as long at most (12 s where the first sync samples are so far
            apart): where the next sync sample comes later, one begins at another sample.
        tracks: track ids; None: all of video, audio and subtitles.
        captions: caption files: paths or URLs of WebVTT, SubRip or JSON with the language in the
            name, as in `film.fr.vtt` and `film.fr.forced.srt`; or
            `fragdex.packaging.subtitles.Captions`.
        single_file: whether each rendition is one file, whose segments are ranges of it: then
            the playlists have EXT-X-BYTERANGE, and the MPD is of DASH's on-demand profile.
        growing: whether the files still grow: then only segments that can no longer change are
            listed, the HLS playlists have the type EVENT, and the MPD is dynamic. Make another
            package after each `index.extend`, and pass "ended" for the last one. Only fragmented
            files can grow. Of several periods the last one grows; one with other tracks ends the
            title.
        began: the time of day at time 0 of a growing title, or of one with `date_ranges`; None:
            the creation time in its moov, or else 1970.
        period: number of the period of files with several (a recorder that began again, several
            movies); None: all, one after the other: EXT-X-DISCONTINUITY parts them, and each is a
            Period of the MPD. Each needs the same number of tracks of each kind.
        date_ranges: whether playlists have the cues of SCTE 35 and the ID3 tags among the events
            of the files as EXT-X-DATERANGE, and dates that count from `began`.
        low_latency: whether the HLS playlists of a growing title name the parts of segments, for
            servers that answer `_HLS_msn`, `_HLS_part` and `_HLS_skip` (RFC 8216bis, 6.2.5).

    Raises:
        ValueError: an invalid length, or single files for a growing title.
        BuildError: there is no video and no audio, a track cannot be made into fragments, or of a
            growing file no segment is complete yet; the message says which.
        NoSyncSample: a track has no sync sample.
        InexactIndex: an index does not know its samples.
        MalformedCaptions: captions cannot be read.
        SourceError: a source cannot be read, or changed since it was indexed.

    >>> from fragdex.testing import movie
    >>> made = package(movie(4, tracks=2))
    >>> [one.name for one in made.title.renditions]
    ['v1', 'a1']
    """
    named: list[Any] = [what] if is_one(what) else [*what]  # type: ignore[misc]
    places = one_for_each(source, len(named))
    both = [
        index_and_media(one, place, "package") for one, place in zip(named, places, strict=True)
    ]
    given, several = [index for index, _ in both], [place for _, place in both]
    kept = [lasting(one, place) for one, (_, place) in zip(named, both, strict=True)]
    length = seconds_of(segment_duration)
    if single_file and growing:
        raise ValueError("a title that grows has a file for each segment, not one for all")
    wanted = None if tracks is None else frozenset(tracks)
    texts = [one if isinstance(one, Captions) else read_captions(one) for one in captions]
    numbers, known = _periods(given, period, bool(growing)), Periods()
    if len(numbers) > 1 and texts:
        if not growing:
            raise BuildError(
                f"captions of a file are for one period, and there are {len(numbers)}",
                advice=f"package one of them: period={numbers[0]}, or --period {numbers[0]}",
            )
        why = f"captions: they are for one period, and there are {len(numbers)}"
        known, texts = replace(known, left_out=(why,)), []
    options = PackageOptions(length, wanted, tuple(texts), growing, began, date_ranges, low_latency)
    known = known.then(given, several, numbers, options)
    is_named = not growing and any(len(index.periods) > 1 for index in given)
    return package_of(known, given, options, kept, single_file, numbers if is_named else ())


def package_of(
    periods: Periods,
    indexes: Sequence[Index],
    options: PackageOptions,
    media: Sequence[SourceLike | None] | None = None,
    single_file: bool = False,
    numbers: Sequence[int] = (),
) -> Package:
    """The package of periods.

    Args:
        periods: of the title.
        indexes: of the files.
        options: what the periods were made for.
        media, single_file: as of `package`.
        numbers: of the periods, where the tags of its files name them.

    Raises:
        BuildError: a period has other tracks.
    """
    title = joined(periods.titles, periods.numbers)
    began = options.began or periods.created
    if options.growing:
        growing = "ended" if periods.ended else options.growing
        grows_so = growth(title, growing, began, indexes)
        title = replace(title, growth=grows_so, captioned=periods.captioned)
    if options.date_ranges or (options.growing and options.low_latency):
        title = replace(title, zero=began or UNIX)
    if single_file:
        title = title.in_single_files()
    listed = periods.listed[: 1 if options.growing else None]
    ids = [one.media.track.id for part in listed for one in part]
    length = "all" if options.length is None else str(options.length)
    recipe: list[Any] = ["package", length, ids]
    if single_file:
        recipe.append("single files")
    if numbers:
        recipe.append(["periods", *numbers])
    if options.date_ranges:
        recipe.append(["date ranges", str(title.zero)])
    named_by = periods.named_by if options.growing else {}
    return Package(
        title, periods.sources, recipe, periods.left_out, media, named_by, options.low_latency
    )


def _periods(indexes: Sequence[Index], period: int | None, growing: bool) -> list[int]:
    """The numbers of the periods that are packaged, one after the other; those that all files have.

    Raises:
        BuildError: the files have not all as many.
    """
    if period is not None:
        return [period]
    counts = {len(index.periods) for index in indexes}
    if len(counts) > 1 and not growing:
        raise BuildError(
            "files of one title need as many periods each",
            found=", ".join(str(len(index.periods)) for index in indexes),
            advice="package one period: period=0",
        )
    if not indexes:
        raise BuildError("there are no samples of video or audio to package")
    numbers = [one.number for one in indexes[0].periods][: min(counts)]
    return numbers or [period_of(indexes[0], None).number]


def _md5(text: bytes) -> str:
    return md5(text, usedforsecurity=False).hexdigest()


def _only(data: bytes) -> Callable[[int], list[bytes]]:
    return lambda _: [data]
