"""A rendition of a title: a track of a file, cut into segments that stand on their own."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from fragdex.fragments.table import Int64
from fragdex.muxing.between import Between, Event
from fragdex.muxing.plan import PlannedTrack
from fragdex.muxing.protection import Keys
from fragdex.muxing.segments import STYP, Segments
from fragdex.muxing.view import View
from fragdex.packaging.date_ranges import DateRange
from fragdex.packaging.m3u8 import highest_rate, spoken
from fragdex.seeking.model import Track
from fragdex.seeking.origin import FileInfo


@dataclass(frozen=True, slots=True)
class RenditionSegment:
    """One segment of a rendition.

    Attributes:
        number: from 0.
        time: presentation time in ticks of the rendition's timescale; its name in addresses.
        start: seconds of the presentation; the first one's is where the title begins.
        seconds: until the next one's start, the last one's to the end of the track.
        size: bytes.
    """

    number: int
    time: int
    start: Fraction
    seconds: Fraction
    size: int


@dataclass(frozen=True, eq=False)
class Rendition:
    """A track of a title.

    Attributes:
        name: its part of addresses: v1, a1, s1, … in the order of the files and their tracks.
        title: what people choose it by; no other of its kind has the same.
        source: the file that holds it.
        media: its samples.
        source_init: ftyp and moov of that file, without other tracks.
        cuts: first sample of each segment, and the end.
        begins: presentation time in seconds at which the first rendition of the title begins.
        keys: which keys decrypt them; None: they are clear.
        events: of its file that its segments hold.
        later: whether more of it comes.
        date_ranges: those of its events that playlists have tags for.
        besides: what else its file has between samples.
        single_file: whether its segments are ranges of one file, `NAME.mp4`, or files of their own.
    """

    name: str
    title: str
    source: FileInfo
    media: PlannedTrack
    source_init: bytes
    cuts: Int64
    begins: Fraction
    keys: Keys | None = None
    events: tuple[Event, ...] = ()
    later: bool = False
    date_ranges: tuple[DateRange, ...] = ()
    besides: Between = field(default_factory=Between)
    single_file: bool = False

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
    def made(self) -> Segments:
        """Its fragments, sizes and times."""
        # what begins after the title: players put a segment where its first tfdt is
        begins = int(self.begins * self.timescale // 1)
        late = int(self.media.decode[0]) - begins > self.timescale // 1000
        return Segments(
            self.source_init,
            [self.media],
            None,
            [self.cuts],
            head=b"" if self.single_file else STYP,
            begins=begins if late else None,
            events=self.events,
            later=self.later,
        )

    @cached_property
    def edges(self) -> Int64:
        """int64 ticks of the presentation at which segments begin, and the end.

        The first one begins where the title does, be there a sample or not.
        """
        times = self.made.time
        edges = np.append(times, max(self.media.end, int(times[-1])))
        edges[0] = min(int(self.begins * self.timescale // 1), int(times[0]))
        return edges

    @cached_property
    def hidden(self) -> int:
        """Ticks of its first samples that the edit list hides: sound that decoders begin with."""
        return max(0, -int(self.media.presentation.min()))

    @cached_property
    def segments(self) -> tuple[RenditionSegment, ...]:
        """Its segments in order. Their seconds add up to the end of the track, exactly."""
        scale = self.timescale
        edges = [Fraction(at, scale) for at in self.edges.tolist()]
        sizes = self.made.fragments.sizes.tolist()
        return tuple(
            RenditionSegment(number, time, start, stop - start, size)
            for number, (time, (start, stop), size) in enumerate(
                zip(self.made.time.tolist(), pairwise(edges), sizes, strict=True)
            )
        )

    @property
    def seconds(self) -> Fraction:
        """From where the title begins to its end."""
        return Fraction(int(self.edges[-1] - self.edges[0]), self.timescale)

    @cached_property
    def starts_with_sync(self) -> bool:
        """Whether each of its segments can be decoded without the one before."""
        return bool(self.media.samples.sync[self.cuts[:-1]].all())

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
        sizes = self.made.fragments.sizes
        return np.cumsum(sizes) - sizes + (len(self.made.init) + len(self.made.sidx))

    def file(self, recipe: Any) -> View:
        """Its one file: initialization segment, sidx and all segments."""
        return self.made.whole([self.source], recipe)

    def number_at(self, time: int) -> int | None:
        """The number of the segment whose address says this time, or None."""
        times = self.made.time
        number = int(times.searchsorted(time))
        return number if number < len(times) and times[number] == time else None
