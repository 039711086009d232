"""Renditions of a title: each a track of a file, cut into segments that stand on their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np

from fragdex.fragments.table import Int64
from fragdex.seeking.model import TrackIndex
from fragdex.seeking.origin import SourceInfo
from fragdex.views.fragments_made import STYP
from fragdex.views.media import Media
from fragdex.views.segments import Segments

__all__ = ["Rendition", "Segment", "Title", "uneven"]

LATE: Final = 1e-3
"""Seconds that segments may begin apart: times of different timescales are rounded."""


@dataclass(frozen=True, slots=True)
class Segment:
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
        name: its part of addresses: v1, a1, … in the order of the files and their tracks.
        title: what people choose it by; no other of its kind has the same.
        source: the file that holds it.
        media: its samples.
        source_init: ftyp and moov of that file.
        cuts: first sample of each segment, and the end.
        begins: presentation time in seconds at which the first rendition of the title begins.
        descriptions: sample_description_index of its samples; None: 1 for all.
    """

    name: str
    title: str
    source: SourceInfo
    media: Media
    source_init: bytes
    cuts: Int64
    begins: Fraction
    descriptions: Int64 | None = None

    @property
    def track(self) -> TrackIndex:
        """The track."""
        return self.media.track

    @property
    def kind(self) -> str:
        """Video or audio."""
        return self.track.kind

    @property
    def language(self) -> str | None:
        """BCP 47 tag, or else ISO 639-2 code."""
        return self.track.info.extended_language or self.track.info.language

    @cached_property
    def made(self) -> Segments:
        """Its fragments, sizes and times."""
        return Segments(
            self.source_init,
            [self.media],
            None,
            [self.cuts],
            descriptions=[self.descriptions],
            head=STYP,
        )

    @cached_property
    def edges(self) -> Int64:
        """int64 ticks of the presentation at which segments begin, and the end.

        The first one begins where the title does, be there a sample or not.
        """
        times = self.made.time
        edges = np.append(times, max(self.media.end, int(times[-1])))
        edges[0] = min(int(self.begins * self.track.timescale // 1), int(times[0]))
        return edges

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """Its segments in order. Their seconds add up to the end of the track, exactly."""
        scale = self.track.timescale
        edges = [Fraction(at, scale) for at in self.edges.tolist()]
        sizes = self.made.fragments.sizes.tolist()
        return tuple(
            Segment(number, time, start, stop - start, size)
            for number, (time, (start, stop), size) in enumerate(
                zip(self.made.time.tolist(), pairwise(edges), sizes, strict=True)
            )
        )

    @property
    def seconds(self) -> Fraction:
        """From where the title begins to its end."""
        return Fraction(int(self.edges[-1] - self.edges[0]), self.track.timescale)

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
        return Fraction(len(self.media) * self.track.timescale, shown).limit_denominator(1001)

    def at(self, time: int) -> Segment | None:
        """The segment whose address says this time, or None."""
        times = self.made.time
        number = int(np.searchsorted(times, time))
        return self.segments[number] if number < len(times) and times[number] == time else None


@dataclass(frozen=True, slots=True, eq=False)
class Title:
    """What is told of several renditions together.

    Attributes:
        renditions: video first, then audio, each in the order of files and tracks.
        findings: what keeps players from changing between them without a break.
    """

    renditions: tuple[Rendition, ...]
    findings: tuple[str, ...] = ()

    def of(self, kind: str) -> list[Rendition]:
        """The renditions of one kind."""
        return [one for one in self.renditions if one.kind == kind]


def uneven(renditions: Sequence[Rendition]) -> tuple[str, ...]:
    """Where segments of video renditions do not begin at one time.

    Players change between renditions where segments begin; without a common moment they stall.
    """
    found = []
    first = renditions[0] if renditions else None
    for other in renditions[1:]:
        assert first is not None
        mine, theirs = (one.edges[:-1] / one.track.timescale for one in (first, other))
        both = min(len(mine), len(theirs))
        different = np.flatnonzero(np.abs(mine[:both] - theirs[:both]) > LATE)
        apart = float(mine[different[0]]) if len(different) else None
        if apart is None and len(mine) != len(theirs):
            apart = float(max(mine, theirs, key=len)[both])
        if apart is not None:
            found.append(
                f"key frames of {first.title} and {other.title} do not agree from "
                f"{apart:.3f} s on, so that players cannot change between them there"
            )
    return tuple(found)
