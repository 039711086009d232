"""A rendition of a title: a track of a file, cut into segments that stand on their own."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from fragdex.fragments.table import Int64
from fragdex.muxing.between import schemes_of
from fragdex.muxing.plan import Plan, PlannedTrack
from fragdex.muxing.protection import Keys
from fragdex.muxing.segmentation import Promise, gaps, parts_of
from fragdex.muxing.segments import STYP, Segments
from fragdex.muxing.view import View
from fragdex.packaging.date_ranges import DateRange
from fragdex.packaging.m3u8 import highest_rate, spoken
from fragdex.packaging.mpd import Timeline
from fragdex.record import record
from fragdex.seeking.model import Track
from fragdex.seeking.origin import FileInfo


@record(frozen=True, slots=True)
class RenditionSegment:
    """One segment of a rendition.

    Attributes:
        number: from 0.
        time: presentation time in ticks of the rendition's timescale; its name in addresses.
        start: seconds of the presentation; the first one's is where the title begins.
        seconds: until the next one's start or the gap before it, the last one's to the end of the
            track.
        size: bytes.
    """

    number: int
    time: int
    start: Fraction
    seconds: Fraction
    size: int


@record(frozen=True, eq=False)
class Rendition:
    """A track of a title.

    Attributes:
        name: its part of addresses: v1, a1, s1, … in the order of the files and their tracks.
        title: what people choose it by; no other of its kind has the same.
        source: the file that holds it.
        plan: of it alone: its samples, and the events that its segments hold.
        cuts: first sample of each segment, and the end.
        begins: presentation time in seconds at which the first rendition of the title begins.
        entry_keys: which keys decrypt what each sample description describes; None: it is clear.
        later: whether more of it comes.
        date_ranges: those of its events that playlists have tags for.
        single_file: whether its segments are ranges of one file, `NAME.mp4`, or files of their own.
        promised: how long segments and parts last at most; None: as their key frames need.
        open: the segment after them, of which only some parts are complete: its samples.
        open_parts: first sample of each of these parts, and the end.
        produced: media time in ticks of the source, and when that was made; None: not known.
        first_segment, first_part: numbers of its first ones, where it is a stretch of a rendition.
    """

    name: str
    title: str
    source: FileInfo
    plan: Plan
    cuts: Int64
    begins: Fraction
    entry_keys: tuple[Keys | None, ...] = ()
    later: bool = False
    date_ranges: tuple[DateRange, ...] = ()
    single_file: bool = False
    promised: Promise | None = None
    open: PlannedTrack | None = None
    open_parts: Int64 | None = None
    produced: tuple[int, datetime] | None = None
    first_segment: int = 0
    first_part: int = 0

    @property
    def media(self) -> PlannedTrack:
        """Its samples."""
        return self.plan.tracks[0]

    @property
    def track(self) -> Track:
        """The track."""
        return self.media.track

    @property
    def timescale(self) -> int:
        """Ticks a second of its fragments."""
        return self.media.timescale

    @property
    def kind(self) -> str:
        """Video, audio or text."""
        return self.track.kind

    @property
    def language(self) -> str | None:
        """BCP 47 tag, or None."""
        return spoken(self.track)

    @cached_property
    def keys(self) -> Keys | None:
        """Which keys decrypt it, or the first part of it that is not clear; None: all is clear."""
        return next(filter(None, self.entry_keys if self.later else self.segment_keys), None)

    @cached_property
    def segment_keys(self) -> list[Keys | None]:
        """Which keys decrypt each segment; None: it is clear."""
        entries = dict(enumerate(self.entry_keys, 1))
        used = self.media.descriptions
        if used is None:
            return [entries.get(1)] * (len(self.cuts) - 1)
        if not any(entries.values()):
            return [None] * (len(self.cuts) - 1)
        return [
            next(filter(None, map(entries.get, dict.fromkeys(used[low:high].tolist()))), None)
            for low, high in pairwise(self.cuts.tolist())
        ]

    @cached_property
    def parts(self) -> Int64 | None:
        """First sample of each part of the segments, and the end; None: a segment is one."""
        return None if self.promised is None else parts_of(self.media, self.cuts, self.promised)

    @cached_property
    def made(self) -> Segments:
        """Its fragments, sizes and times."""
        # what begins after the title: players put a segment where its first tfdt is
        begins, is_first = int(self.begins * self.timescale // 1), not self.first_segment
        late = is_first and int(self.media.decode[0]) - begins > self.timescale // 1000
        return Segments(
            self.plan if is_first else _since_its_begin(self.plan),
            None,
            [self.cuts],
            head=b"" if self.single_file else STYP,
            begins=begins if late else None,
            later=self.later,
            parts=self.parts,
            first_number=self.first_part + 1,
        )

    @cached_property
    def begun(self) -> Segments | None:
        """The parts of the segment that is not complete; None: there is none."""
        media = self.open
        if media is None or self.open_parts is None or self.parts is None:
            return None
        ends = media.presentation + media.durations
        shown = replace(media, end=int(ends.max()))  # what comes later stands in front of the next
        return Segments(
            _since_its_begin(replace(self.plan, tracks=(shown,))),
            None,
            [self.open_parts[[0, -1]]],
            head=STYP,
            later=True,
            parts=self.open_parts,
            first_number=self.first_part + len(self.parts),
        )

    @property
    def event_schemes(self) -> tuple[tuple[str, str], ...]:
        """Scheme and value of its events, each once."""
        return schemes_of(self.plan.between.events)

    @property
    def init(self) -> bytes:
        """Its initialization segment."""
        return self.made.init

    @property
    def count(self) -> int:
        """How many segments are complete."""
        return len(self.cuts) - 1

    @property
    def times(self) -> Int64:
        """int64 presentation time of each segment in ticks, as addresses name it."""
        return self.made.time

    @property
    def sizes(self) -> Int64:
        """int64 bytes of each segment."""
        return self.made.sizes

    @property
    def ticks(self) -> Int64:
        """int64 ticks of each segment in manifests: the first one from its own time on."""
        return self.made.duration - self.gaps

    @cached_property
    def timeline(self) -> Timeline:
        """Its segments, for manifests."""
        return Timeline().then(self.times.tolist(), self.ticks.tolist())

    @property
    def picture_sizes(self) -> Int64:
        """int64 bytes of each segment up to the end of its first sample."""
        fragments, firsts = self.made.fragments, self.made.firsts[:-1]
        heads = (fragments.sizes - fragments.payload)[firsts]
        ends: Int64 = heads + self.media.samples.size[self.cuts[:-1]]
        return ends

    def segment(self, time: int, recipe: Any) -> View | None:
        """The segment whose address says this time; None: there is none."""
        number = self.number_at(time)
        if number is None:
            return None
        return self.made.view(number, self.source, recipe, self.first_segment + number)

    def part_view(self, number: int, recipe: Any) -> View | None:
        """A part by its number in the rendition, from 0; None: it is not there."""
        recipe, number = [*recipe, "part", number], number - self.first_part
        if self.parts is None or number < 0:
            return None
        complete = len(self.parts) - 1
        if number < complete:
            return self.made.part(number, self.source, recipe)
        if self.begun is None or number - complete >= len(self.begun.fragments):
            return None
        return self.begun.part(number - complete, self.source, recipe)

    @property
    def open_count(self) -> int:
        """How many parts of the segment that is not complete are there."""
        return 0 if self.open_parts is None else len(self.open_parts) - 1

    @property
    def part_count(self) -> int:
        """How many parts are complete, those of the open segment too."""
        closed = 0 if self.parts is None else len(self.parts) - 1
        return self.first_part + self.open_count + closed

    def parts_in(self, number: int) -> range:
        """The numbers of the parts of a segment, by its number."""
        first, stop = self.made.firsts[number : number + 2].tolist()
        return range(self.first_part + first, self.first_part + stop)

    def part_rows(self, first: int) -> list[tuple[int, int, bool]]:
        """The parts of segments from a number on: segment, ticks, whether one has a sync sample."""
        if self.parts is None:
            return []
        begins = int(self.made.firsts[min(first, len(self.made))])
        rows = _part_rows(self.media, self.parts[begins:])
        numbers = np.searchsorted(self.made.firsts, np.arange(begins, begins + len(rows)), "right")
        listed = [(int(n) - 1, *row) for n, row in zip(numbers, rows, strict=True)]
        if self.open is not None and self.open_parts is not None:
            last = len(self.cuts) - 1
            listed += [(last, *row) for row in _part_rows(self.open, self.open_parts)]
        return listed

    @cached_property
    def edges(self) -> Int64:
        """int64 ticks of the presentation at which segments begin, and the end.

        The first one begins where the title does, be there a sample or not.
        """
        times = self.made.time
        edges = np.append(times, max(self.media.end, int(times[-1])))
        if not self.first_segment:
            edges[0] = min(int(self.begins * self.timescale // 1), int(times[0]))
        return edges

    @cached_property
    def gaps(self) -> Int64:
        """int64 ticks after each segment for which there is nothing."""
        if self.promised is None:
            return np.zeros(len(self.cuts) - 1, np.int64)
        return gaps(self.media, self.cuts, self.edges)

    @property
    def lasts(self) -> Int64:
        """int64 ticks of each segment, without the gap after it."""
        return np.diff(self.edges) - self.gaps

    @cached_property
    def hidden(self) -> int:
        """Ticks of its first samples that the edit list hides: sound that decoders begin with."""
        return max(0, -int(self.media.presentation.min()))

    @cached_property
    def segments(self) -> tuple[RenditionSegment, ...]:
        """Its segments in order. With the gaps, they add up to the end of the track, exactly."""
        scale = self.timescale
        edges = [Fraction(at, scale) for at in self.edges.tolist()]
        lasts = [Fraction(ticks, scale) for ticks in self.lasts.tolist()]
        sizes = self.sizes.tolist()
        columns = zip(self.times.tolist(), edges[:-1], lasts, sizes, strict=True)
        return tuple(RenditionSegment(number, *row) for number, row in enumerate(columns))

    @property
    def seconds(self) -> Fraction:
        """From where the title begins to its end."""
        return Fraction(int(self.edges[-1] - self.edges[0]), self.timescale)

    @cached_property
    def starts_with_sync(self) -> bool:
        """Whether each of its segments can be decoded without the one before."""
        return bool(self.syncs.all())

    @property
    def syncs(self) -> npt.NDArray[np.bool_]:
        """Of each segment, whether it begins with a sync sample."""
        starts: npt.NDArray[np.bool_] = self.media.samples.sync[self.cuts[:-1]]
        return starts

    @cached_property
    def is_closed(self) -> bool:
        """Whether nothing in a segment is presented before the sample that it begins with."""
        return self.made.is_closed

    @cached_property
    def frame_rate(self) -> Fraction | None:
        """Pictures a second on average, as a fraction of small numbers; None: not video."""
        shown = self.media.end - int(self.media.presentation.min())
        if self.kind != "video" or shown <= 0:
            return None
        pictures = len(self.media) - self.media.hidden
        return Fraction(pictures * self.timescale, shown).limit_denominator(1001)

    @cached_property
    def highest_frame_rate(self) -> Fraction | None:
        """Most pictures a second, for players that choose by it; None: not video."""
        mean = self.frame_rate
        if mean is None:
            return None
        return highest_rate(self.media.samples.duration[:-1], self.timescale, mean)

    @cached_property
    def offsets(self) -> Int64:
        """int64 first byte of each segment in its one file."""
        sizes = self.made.sizes
        return np.cumsum(sizes) - sizes + (len(self.made.init) + len(self.made.sidx))

    def file(self, recipe: Any) -> View:
        """Its one file: initialization segment, sidx and all segments."""
        return self.made.whole([self.source], recipe)

    def number_at(self, time: int) -> int | None:
        """The number of the segment whose address says this time, or None."""
        times = self.times
        number = int(times.searchsorted(time))
        return number if number < len(times) and times[number] == time else None


def _since_its_begin(plan: Plan) -> Plan:
    """A plan with the events of its samples, not of those before them."""
    (media,) = plan.tracks
    if not plan.between.events:
        return plan
    begin = Fraction(int(media.presentation.min()), media.timescale)
    return replace(plan, between=plan.between.since(begin))


def _part_rows(media: PlannedTrack, edges: Int64) -> list[tuple[int, bool]]:
    """Ticks of each part, and whether a sync sample is in it."""
    if len(edges) < 2:
        return []
    lasts = np.add.reduceat(media.durations, edges[:-1])
    syncs = np.add.reduceat(media.samples.sync.astype(np.int64), edges[:-1])
    return list(zip(lasts.tolist(), (syncs > 0).tolist(), strict=True))
