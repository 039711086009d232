"""A title: from the tracks of files to renditions, and whether players can change between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from math import ceil
from typing import Final

import numpy as np

from fragdex.boxes import Box, find
from fragdex.errors import BuildError
from fragdex.muxing.between import Between, Event
from fragdex.muxing.plan import PlannedTrack
from fragdex.muxing.protection import Keys
from fragdex.muxing.segmentation import cut, reference, settled
from fragdex.packaging.date_ranges import DateRange
from fragdex.packaging.m3u8 import spoken
from fragdex.packaging.renditions import Rendition
from fragdex.packaging.subtitles import (
    CUES,
    FRAGMENTS,
    Captions,
    FileCues,
    Subtitles,
    TrackCues,
    forced,
    styles,
)
from fragdex.seeking.model import Index
from fragdex.seeking.origin import FileInfo

LATE: Final = 1e-3
"""Seconds that segments may begin apart: times of different timescales are rounded."""


@dataclass(frozen=True, slots=True)
class Growth:
    """How a title grows.

    Attributes:
        target: seconds that no segment is expected to exceed; the same from the first one on.
        ended: whether nothing comes any more.
        began: when its time 0 was, in UTC.
        changed: when its files were last written, in UTC.
    """

    target: int
    ended: bool
    began: datetime
    changed: datetime


@dataclass(frozen=True, slots=True, eq=False)
class Title:
    """The renditions that are one video, in one period.

    Attributes:
        renditions: video first, then audio, each in the order of files and tracks.
        subtitles: text, first of tracks, then of caption files.
        growth: how it grows; None: it does not.
        later: of the periods that follow; each has as many renditions of each kind.
        zero: when time 0 of the first period was; None: playlists have no dates.
    """

    renditions: tuple[Rendition, ...]
    subtitles: tuple[Subtitles, ...] = ()
    growth: Growth | None = None
    later: tuple[Title, ...] = ()
    zero: datetime | None = None

    @property
    def periods(self) -> tuple[Title, ...]:
        """This one and those that follow, each on its own clock."""
        return (self, *self.later)

    @property
    def content(self) -> str:
        """How many renditions of each kind it has, as text."""
        counts = {kind: len(self.of(kind)) for kind in PACKAGED} | {"text": len(self.subtitles)}
        return ", ".join(f"{count} of {kind}" for kind, count in counts.items() if count)

    @property
    def seconds(self) -> Fraction:
        """Of this period."""
        return max((one.seconds for one in self.renditions), default=Fraction(0))

    def in_single_files(self) -> Title:
        """The same with one file for each rendition."""
        texts = [
            one
            if one.rendition is None
            else replace(one, rendition=replace(one.rendition, single_file=True))
            for one in self.subtitles
        ]
        own = tuple(replace(one, single_file=True) for one in self.renditions)
        later = tuple(one.in_single_files() for one in self.later)
        return replace(self, renditions=own, subtitles=tuple(texts), later=later)

    def of(self, kind: str) -> list[Rendition]:
        """The renditions of video or audio."""
        return [one for one in self.renditions if one.kind == kind]

    def through(self, rendition: Rendition) -> list[Rendition]:
        """A rendition, and those that continue it in the periods that follow."""
        if not self.later:
            return [rendition]
        place = self.renditions.index(rendition)
        return [one.renditions[place] for one in self.periods]

    def text_through(self, text: Subtitles) -> list[Subtitles]:
        """Subtitles, and those that continue them in the periods that follow."""
        if not self.later:
            return [text]
        place = self.subtitles.index(text)
        return [one.subtitles[place] for one in self.periods]


def joined(titles: Sequence[Title], numbers: Sequence[int]) -> Title:
    """The periods of a title one after the other.

    Args:
        numbers: of the periods.

    Raises:
        BuildError: one has other tracks: players could not continue.
    """
    first, *later = titles
    for title, number in zip(later, numbers[1:], strict=True):
        if title.content != first.content:
            raise BuildError(
                f"period {number} has other tracks than period {numbers[0]}, so that players "
                "cannot continue from one to the other",
                expected=first.content,
                found=title.content,
                advice=f"package one of them: period={numbers[0]}, or --period {numbers[0]}",
            )
    return replace(first, later=tuple(later))


def uneven(renditions: Sequence[Rendition]) -> tuple[str, ...]:
    """Where segments of video renditions do not begin at one time.

    Players change between renditions where segments begin; without a common moment they stall.
    """
    reasons = []
    first = renditions[0] if renditions else None
    for other in renditions[1:]:
        assert first is not None
        mine, theirs = (one.edges[:-1] / one.timescale for one in (first, other))
        both = min(len(mine), len(theirs))
        different = np.flatnonzero(np.abs(mine[:both] - theirs[:both]) > LATE)
        apart = float(mine[different[0]]) if len(different) else None
        if apart is None and len(mine) != len(theirs):
            apart = float(max(mine, theirs, key=len)[both])
        if apart is not None:
            reasons.append(
                f"key frames of {first.title} and {other.title} do not agree from "
                f"{apart:.3f} s on, so that players cannot change between them there"
            )
    return tuple(reasons)


PACKAGED: Final = ("video", "audio")
_EPOCH: Final = datetime(1904, 1, 1, tzinfo=UTC)
"""Times in MP4 count from here (ISO/IEC 14496-12, 8.2.2.3)."""
UNIX: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """A track that becomes a rendition.

    Attributes:
        media: its samples.
        init: ftyp and moov of its file, without other tracks.
        source: that file.
        trak: of the moov.
        keys, events, date_ranges, besides: as of `Rendition`.
    """

    media: PlannedTrack
    init: bytes
    source: FileInfo
    trak: Box
    keys: Keys | None = None
    events: tuple[Event, ...] = ()
    date_ranges: tuple[DateRange, ...] = ()
    besides: Between = field(default_factory=Between)


def titled(
    listed: Sequence[Chosen],
    length: Fraction | None,
    captions: Sequence[Captions],
    growing: object,
    prefix: str = "",
) -> Title:
    """The renditions of some tracks and caption files.

    Args:
        listed: at least one of video or audio.
        length: wanted seconds of a segment; None: one for each sync sample.
        captions: those of the files.
        growing: True: only segments that are complete are named.
        prefix: of the names of renditions.

    Raises:
        NoSyncSample: a track has no sync sample.
        BuildError: the files grow, and not one segment is complete.
    """
    lead = reference([one.media for one in listed])
    begins = min(
        Fraction(max(int(one.media.presentation.min()), 0), one.media.timescale)
        for one in listed
        if one.media.track.kind in PACKAGED
    )
    names = _Names()
    renditions = []
    for kind in PACKAGED:
        mine = [one for one in listed if one.media.track.kind == kind]
        for number, one in enumerate(mine, 1):
            name = f"{prefix}{kind[0]}{number}"
            title = names.free(kind, _title(one.media, number))
            rendition = _rendition(name, title, one, lead, length, begins, growing)
            if rendition is None:
                raise BuildError(
                    f"the file grows, and of track {one.media.track.id} no segment is complete",
                    advice="ask again when more of it is there",
                )
            renditions.append(rendition)
    first = renditions[0]
    texts: list[Subtitles] = []
    chosen = False
    for one in (one for one in listed if one.media.track.kind == "text"):
        info, name = one.media.track.info, f"{prefix}s{len(texts) + 1}"
        language = spoken(one.media.track)
        title = names.free("text", info.title or language or f"subtitles {len(texts) + 1}")
        cues = None
        if info.format in CUES:
            cues = TrackCues(one.media, one.source, info.format, styles(one.trak))
        rendition = None
        if info.format in FRAGMENTS:
            rendition = _rendition(name, title, one, lead, length, begins, growing)
            if rendition is None:
                continue
        is_forced = forced(one.trak)
        default = info.enabled and not is_forced and not chosen
        chosen |= default
        about = (name, title, language, is_forced, default, first)
        texts.append(Subtitles(*about, cues, rendition, growing is True))
    for given in captions:
        name, number = f"s{len(texts) + 1}", len(texts) + 1
        title = names.free("text", given.title or given.language or f"subtitles {number}")
        default = given.default and not chosen
        chosen |= default
        about = (name, title, given.language, given.forced, default, first)
        texts.append(Subtitles(*about, FileCues(given), None, growing is True))
    return Title(tuple(renditions), tuple(texts))


class _Names:
    """Names that people choose renditions by: of one kind no two have the same."""

    def __init__(self) -> None:
        self._taken: set[tuple[str, str]] = set()
        self._next: dict[tuple[str, str], int] = {}

    def free(self, kind: str, title: str) -> str:
        """The title, with a number where it is taken."""
        name, number = title, self._next.get((kind, title), 2)
        while (kind, name) in self._taken:
            name, number = f"{title} ({number})", number + 1
        self._next[kind, title] = number
        self._taken.add((kind, name))
        return name


def _rendition(
    name: str,
    title: str,
    one: Chosen,
    lead: PlannedTrack,
    length: Fraction | None,
    begins: Fraction,
    growing: object,
) -> Rendition | None:
    """A track as a rendition; None: it grows, and has no segment that is complete."""
    media = one.media
    # video has its own key frames; all else follows the first video
    pace = media if media.track.kind == lead.track.kind else lead
    if growing is True:
        complete = settled(media, pace, length) if media.settled and pace.settled else None
        if complete is None:
            return None
        media, edges = complete
    else:
        edges = np.unique(cut([pace] if pace is media else [pace, media], length, pace)[-1])
    more = (one.keys, one.events, growing is True, one.date_ranges, one.besides)
    return Rendition(name, title, one.source, media, one.init, edges, begins, *more)


def _title(media: PlannedTrack, number: int) -> str:
    info = media.track.info
    if info.title:
        return info.title
    if media.track.kind == "video":
        return f"{info.width}x{info.height}" if info.width and info.height else f"video {number}"
    return spoken(media.track) or f"audio {number}"


def creation(boxes: Sequence[Box]) -> datetime | None:
    """When a movie was made, as its mvhd says; None: it does not."""
    mvhd = find(boxes, "moov/mvhd")
    seconds = int(mvhd.get("creation_time", 0)) if mvhd is not None else 0
    instant = _EPOCH + timedelta(seconds=min(seconds, 1 << 34))
    return instant if instant > UNIX else None


def growth(
    title: Title,
    length: Fraction | None,
    growing: object,
    began: datetime | None,
    indexes: Sequence[Index],
) -> Growth:
    """How a title grows, by what does not change while it does: the first segments."""
    first = max(one.segments[0].seconds for one in title.renditions)
    written = [index.file.mtime_ns for index in indexes]
    changed = max((stamp for stamp in written if stamp is not None), default=0)
    began = began or UNIX
    long = max((one.seconds for one in title.renditions), default=Fraction(0))
    reached = began + timedelta(seconds=ceil(long))
    last = UNIX + timedelta(microseconds=changed // 1000) if changed else reached
    return Growth(ceil(2 * max(first, length or Fraction(0))), growing == "ended", began, last)
