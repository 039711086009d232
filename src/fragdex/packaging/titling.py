"""A title: from the tracks of files to renditions, and whether players can change between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cache
from math import ceil
from typing import Any, Final

import numpy as np

from fragdex.boxes import Box, find, parse
from fragdex.byterange import ByteRange
from fragdex.errors import BuildError, FormatError
from fragdex.fragments.table import FragmentFlags
from fragdex.muxing.plan import Plan, PlannedTrack
from fragdex.muxing.protection import Keys, Read
from fragdex.muxing.segmentation import (
    Cuts,
    Promise,
    bridged,
    changes,
    cuts_of,
    edges_of,
    limited,
    promise,
    reference,
    settled,
)
from fragdex.packaging.date_ranges import DateRange
from fragdex.packaging.m3u8 import spoken, target_duration
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
from fragdex.record import record
from fragdex.seeking.model import Index, Track
from fragdex.seeking.origin import FileInfo

LATE: Final = 1e-3
"""Seconds that segments may begin apart: times of different timescales are rounded."""


@record(frozen=True, slots=True)
class Growth:
    """How a title grows.

    Attributes:
        target: seconds that no segment exceeds when it is rounded; the same from the first one on.
        ended: whether nothing comes any more.
        began: when its time 0 was, in UTC.
        changed: when its files were last written, in UTC.
    """

    target: int
    ended: bool
    began: datetime
    changed: datetime


@record(frozen=True, slots=True, eq=False)
class Title:
    """The renditions that are one video, in one period.

    Attributes:
        renditions: video first, then audio, each in the order of files and tracks.
        subtitles: text, first of tracks, then of caption files.
        growth: how it grows; None: it does not.
        later: of the periods that follow; each has as many renditions of each kind.
        zero: when time 0 of the first period was; None: playlists have no dates.
        promised: how long segments and parts last at most, but for what the first ones have at
            their beginning; None: they are as long as their key frames need.
        captioned: whether pictures may carry closed captions (CEA-608, CEA-708), for which some
            players look into segments before they play.
    """

    renditions: tuple[Rendition, ...]
    subtitles: tuple[Subtitles, ...] = ()
    growth: Growth | None = None
    later: tuple[Title, ...] = ()
    zero: datetime | None = None
    promised: Promise | None = None
    captioned: bool = True

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


@record(frozen=True, slots=True, eq=False)
class Chosen:
    """A track that becomes a rendition.

    Attributes:
        plan: of it alone, with the ftyp and moov of its file without other tracks.
        source: that file.
        trak: of the moov.
        entry_keys, date_ranges, produced: as of `Rendition`.
    """

    plan: Plan
    source: FileInfo
    trak: Box
    entry_keys: tuple[Keys | None, ...] = ()
    date_ranges: tuple[DateRange, ...] = ()
    produced: tuple[int, datetime] | None = None

    @property
    def media(self) -> PlannedTrack:
        """Its samples."""
        return self.plan.tracks[0]


def titled(
    listed: Sequence[Chosen],
    length: Fraction | None,
    captions: Sequence[Captions],
    growing: object,
    prefix: str = "",
    promised: Promise | None = None,
) -> Title:
    """The renditions of some tracks and caption files.

    Args:
        listed: at least one of video or audio.
        length: wanted seconds of a segment; None: one for each sync sample.
        captions: those of the files.
        growing: True: only segments that are complete are named.
        prefix: of the names of renditions.
        promised: how long segments and parts last at most, of fragmented files; None: what the
            first segments need.

    Raises:
        NoSyncSample: a track has no sync sample.
        BuildError: the files grow, and not one segment is complete.
    """
    lead = reference([one.media for one in listed])
    if growing is True or any(map(_is_fragmented, listed)):
        if promised is None:
            promised = _promise(listed, lead, length, growing is True)
        listed = [_bridged(one, promised.longest) for one in listed]
        lead = reference([one.media for one in listed])
    else:
        promised = None
    begins = min(
        Fraction(max(int(one.media.presentation.min()), 0), one.media.timescale)
        for one in listed
        if one.media.track.kind in PACKAGED
    )

    @cache  # all that follow a track
    def cuts(pace: PlannedTrack) -> Cuts:
        if growing is True and promised is not None:
            return limited(pace, length, promised, growing=True)
        return cuts_of(pace, length, promised)

    def rendition(name: str, title: str, one: Chosen) -> Rendition | None:
        # video has its own key frames; all else follows the first video
        pace = one.media if one.media.track.kind == lead.track.kind else lead
        return _rendition(name, title, one, pace, cuts, promised, begins, growing)

    names = _Names()
    renditions = []
    for kind in PACKAGED:
        mine = [one for one in listed if one.media.track.kind == kind]
        for number, one in enumerate(mine, 1):
            name = f"{prefix}{kind[0]}{number}"
            title = names.free(kind, _title(one.media, number))
            made = rendition(name, title, one)
            if made is None:
                raise _incomplete(one.media)
            renditions.append(made)
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
        made = None
        if info.format in FRAGMENTS:
            made = rendition(name, title, one)
            if made is None:
                continue
        is_forced = forced(one.trak)
        default = info.enabled and not is_forced and not chosen
        chosen |= default
        about = (name, title, language, is_forced, default, first)
        texts.append(Subtitles(*about, cues, made, growing is True))
    for given in captions:
        name, number = f"s{len(texts) + 1}", len(texts) + 1
        title = names.free("text", given.title or given.language or f"subtitles {number}")
        default = given.default and not chosen
        chosen |= default
        about = (name, title, given.language, given.forced, default, first)
        texts.append(Subtitles(*about, FileCues(given), None, growing is True))
    return Title(tuple(renditions), tuple(texts), promised=promised)


def _incomplete(media: PlannedTrack) -> BuildError:
    return BuildError(
        f"the file grows, and of track {media.track.id} no segment is complete",
        advice="ask again when more of it is there",
    )


def _is_fragmented(one: Chosen) -> bool:
    return bool(((one.media.track.fragments.flags & FragmentFlags.VIRTUAL) == 0).any())


def _bridged(one: Chosen, longest: Fraction) -> Chosen:
    """With samples of video and audio that last no longer; a text may stay for as long as it is."""
    if one.media.track.kind not in PACKAGED:
        return one
    return replace(one, plan=replace(one.plan, tracks=(bridged(one.media, longest),)))


def _promise(
    listed: Sequence[Chosen], lead: PlannedTrack, length: Fraction | None, growing: bool
) -> Promise:
    """Of tracks that have key frames of their own, the one that needs most.

    Raises:
        BuildError: what has come does not decide it.
    """
    needed = []
    for one in listed:
        if one.media.track.kind == lead.track.kind:
            promised = promise(one.media, length, growing)
            if promised is None:
                raise _incomplete(one.media)
            needed.append(promised)
    return Promise(max(one.target for one in needed), max(one.part for one in needed))


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
    pace: PlannedTrack,
    cuts_of: Callable[[PlannedTrack], Cuts],
    promised: Promise | None,
    begins: Fraction,
    growing: object,
) -> Rendition | None:
    """A track as a rendition; None: it grows, and has no segment that is complete.

    Args:
        pace: the track that decides where it is cut, and `cuts_of` where that is cut.
    """
    media = one.media
    places = opened = None
    if growing is True:
        assert promised is not None
        is_settled = media.settled and pace.settled
        complete = settled(media, pace, cuts_of(pace), promised) if is_settled else None
        if complete is None:
            return None
        edges, times, places = complete
        opened = media.rows(slice(int(edges[-1]), int(places[-1])))
        media = media.rows(slice(0, int(edges[-1])), end=int(times[-1]))
    else:
        edges = edges_of(media, pace, cuts_of(pace), promised)
    # a segment has one sample description, so that it is clear or encrypted
    inside = changes(media)
    edges = np.unique(np.concatenate([edges, inside[media.samples.sync[inside]]]))
    more: dict[str, Any] = {}
    if promised is not None and media.track.kind in PACKAGED:
        more = {"promised": promised}
        if opened is not None and places is not None and len(opened):
            more |= {"open": opened, "open_parts": places - places[0]}
    more["produced"] = one.produced
    plan = replace(one.plan, tracks=(media,))
    about = (one.entry_keys, growing is True, one.date_ranges)
    return Rendition(name, title, one.source, plan, edges, begins, *about, **more)


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


_CAPTIONS: Final = b"\xb5\x00\x31GA94"
"""What closed captions begin with, in each codec of video (ATSC A/53, 6.2.3; ITU-T T.35)."""
_BEFORE_SLICES: Final = 4096
"""Bytes of a picture in which they stand, if there are any."""


def captioned(one: Chosen, read: Read) -> bool:
    """Whether pictures may carry closed captions: the first one does, or that cannot be seen.

    Raises: as `read`.
    """
    samples = one.media.samples
    if any(one.entry_keys) or not len(samples):
        return True
    start, size = int(samples.offset[0]), int(samples.size[0])
    return _CAPTIONS in read(ByteRange.of(start, min(size, _BEFORE_SLICES)))


_NTP: Final = datetime(1900, 1, 1, tzinfo=UTC)


def produced(track: Track, read: Read) -> tuple[int, datetime] | None:
    """A media time, and when it was made, as the prft before the first fragment has it; or None.

    Raises: as `read`.
    """
    rows = track.fragments
    start, stop = (int(rows.offset[0]), int(rows.moof_offset[0])) if len(rows) else (0, 0)
    if not start < stop <= start + _BEFORE_SLICES:  # samples of a moov have no moof
        return None
    with suppress(FormatError):
        for box in parse(read(ByteRange(start, stop))):
            if box.type == "prft" and box["reference_track_ID"] == track.id:
                made = _NTP + timedelta(seconds=box["ntp_timestamp"] / (1 << 32))
                return int(box["media_time"]), made
    return None


def growth(
    title: Title,
    growing: object,
    began: datetime | None,
    indexes: Sequence[Index],
) -> Growth:
    """How a title grows, by what does not change while it does: the first segments."""
    written = [index.file.mtime_ns for index in indexes]
    changed = max((stamp for stamp in written if stamp is not None), default=0)
    began = began or UNIX
    long = max((one.seconds for one in title.renditions), default=Fraction(0))
    reached = began + timedelta(seconds=ceil(long))
    last = UNIX + timedelta(microseconds=changed // 1000) if changed else reached
    firsts = [Fraction(int(one.lasts[0]) + one.hidden, one.timescale) for one in title.renditions]
    promised = 1 if title.promised is None else title.promised.target
    target = max(promised, target_duration(firsts))
    return Growth(target, growing == "ended", began, last)
