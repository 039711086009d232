"""What an output has: the value between what was read and what is written.

Whoever makes an output decides which samples it has, when each is decoded and shown, what describes
them, what stands between them, and what it lacks, with the reasons. Nothing of that is bytes yet:
`fragments` and `progressive` write it, and know nothing of where it came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fragdex.boxes import Box
from fragdex.fragments.table import Int64, SampleTable
from fragdex.muxing.between import Between
from fragdex.muxing.census import BoxKind, LeftOut, boxes_left_out, content
from fragdex.muxing.groups import Grouping
from fragdex.muxing.kept import Kept
from fragdex.muxing.movie import spanning
from fragdex.record import record
from fragdex.seeking.model import Track

if TYPE_CHECKING:
    from fragdex.muxing.protection import Protected
    from fragdex.muxing.subsamples import Subsamples

Edit: TypeAlias = tuple[int, int, Fraction]
"""Ticks of the movie, media time in ticks of the track or -1 for nothing, and rate."""


def one_source(number: int, count: int) -> Int64:
    """The source of so many samples, where all have the same."""
    return np.broadcast_to(np.int64(number), count)


@record(frozen=True, slots=True, eq=False)
class PlannedTrack:
    """Samples of one track of an output.

    Attributes:
        samples: in decode order; offset and size are those of the source, dts, cts and duration
            count on the output's timeline, before its edit list.
        timescale: ticks a second of that timeline.
        source: int64 number of the source that holds each sample.
        edits: one after the other from the start of the output; none: all is shown. Of fragments
            one that takes off a time.
        numbers: int64 number of each in the track of the source; None: all from the first one on.
        descriptions: int64 sample_description_index of each sample; None: 1 for all.
        dependence: uint8 of each what the sdtp of its source says of it; None: there is none.
        subsamples: what subs boxes say of the parts of these samples.
        protection: what decrypts samples, besides their keys; None: nothing, or not needed.
        made: bytes of samples that are not copied, by their number here.
        unit: bytes of a sample, where a row stands for several that are alike; 0: for one.
        end: presentation time in ticks at which the last sample ends.
        settled: whether `edits` and decode times stay what they are when samples follow.
        hidden: pictures at time 0 that are there for others alone, a tick each.
        shown: ticks of the movie for which it is shown, where it has no edits.
    """

    track: Track
    samples: SampleTable
    timescale: int
    source: Int64
    edits: tuple[Edit, ...] = ()
    numbers: Int64 | None = None
    descriptions: Int64 | None = None
    dependence: npt.NDArray[np.uint8] | None = None
    subsamples: tuple[Subsamples, ...] = ()
    protection: Protected | None = None
    groups: tuple[Grouping, ...] = ()
    made: Mapping[int, bytes] = field(default_factory=dict)
    unit: int = 0
    end: int = 0
    settled: bool = True
    hidden: int = 0
    shown: int = 0

    def __len__(self) -> int:
        return len(self.samples)

    @property
    def decode(self) -> Int64:
        """int64 decode time of each, in ticks."""
        return self.samples.dts

    @property
    def durations(self) -> Int64:
        """int64 ticks that each lasts."""
        return self.samples.duration

    @property
    def media_time(self) -> int:
        """Ticks that the edit list takes off; 0: there is none."""
        return next((at for _, at, _ in self.edits if at >= 0), 0)

    @property
    def presentation(self) -> Int64:
        """int64 presentation time of each in fragments, in ticks; below 0: hidden."""
        back = self.media_time
        return self.samples.cts - back if back else self.samples.cts

    @property
    def offsets(self) -> Int64:
        """int64 composition offset of each sample, in ticks."""
        return self.samples.cts - self.samples.dts

    @property
    def duration(self) -> int:
        """Ticks of the movie until the last edit ends."""
        return sum(duration for duration, _, _ in self.edits) if self.edits else self.shown

    @property
    def counts(self) -> Int64:
        """int64 samples of each row."""
        return self.samples.size // self.unit if self.unit else np.ones(len(self), np.int64)

    @property
    def count(self) -> int:
        """Samples of all rows."""
        return int(self.samples.size.sum()) // self.unit if self.unit else len(self)

    @property
    def source_numbers(self) -> Int64:
        """int64 number in the source's track of the first sample of each row, from 0."""
        if self.numbers is not None:
            return self.numbers
        if not self.unit:
            return np.arange(len(self))
        each = self.counts
        return np.cumsum(each) - each

    def rows(self, which: slice | Int64, **changes: Any) -> PlannedTrack:
        """Some of its rows, with other attributes besides."""
        columns = ("source", "numbers", "descriptions", "dependence")
        kept: dict[str, Any] = {
            name: value[which] for name in columns if (value := getattr(self, name)) is not None
        }
        kept["groups"] = tuple(one.rows(which) for one in self.groups)
        kept["subsamples"] = tuple(one.rows(which, len(self)) for one in self.subsamples)
        kept["protection"] = None if self.protection is None else self.protection.rows(which)
        return replace(self, **{"samples": self.samples.rows(which), **kept, **changes})

    def timed(
        self, presentation: Int64, decode: Int64, durations: Int64, media_time: int = 0, **more: Any
    ) -> PlannedTrack:
        """The same samples at other times, for fragments.

        Args:
            media_time: ticks that an edit list takes off.
        """
        shown = presentation + media_time if media_time else presentation
        times = {"dts": decode, "cts": shown, "duration": durations}
        samples = SampleTable.of(self.samples.columns() | times)
        return replace(self, samples=samples, edits=taking_off(media_time), **more)

    def without_delay(self, ticks: int) -> PlannedTrack:
        """The same with so many ticks of the movie less before its first sample is shown."""
        if not ticks:
            return self
        (empty, _, rate), *rest = self.edits
        edits = ((empty - ticks, -1, rate), *rest) if empty > ticks else tuple(rest)
        return replace(self, edits=edits)

    def kept_in_fragments(self) -> Iterator[BoxKind]:
        """What made fragments say of its samples besides their times and places."""
        for one in self.groups:
            yield BoxKind(self.track.id, f"sbgp {one.kind}".rstrip())
        if self.subsamples:
            yield BoxKind(self.track.id, "subs")
        if self.protection is not None:
            yield from (BoxKind(self.track.id, name) for name in ("saiz", "saio"))


@record(frozen=True, slots=True, eq=False)
class Plan:
    """All that one output has.

    Attributes:
        init: ftyp and moov that describe them, as the source has them; for fragments.
        left_out: what is known not to be in it, and why.
    """

    tracks: tuple[PlannedTrack, ...]
    init: bytes = b""
    between: Between = field(default_factory=Between)
    left_out: tuple[LeftOut, ...] = ()

    def lacking(
        self,
        source: Sequence[Box],
        written: Iterable[Box],
        why: str,
        *,
        in_fragments: bool = False,
        kept: Kept | None = None,
    ) -> tuple[LeftOut, ...]:
        """All that the sources have and a written file does not.

        Args:
            in_fragments: whether the rest of it is made fragments, which hold more.
            kept: what it shows of the source; None: all.
        """
        ids = {one.track.id for one in self.tracks}
        given = content(spanning(source, kept), ids) + self.between.everything
        made = content(written)
        if in_fragments:
            for kind in (kind for one in self.tracks for kind in one.kept_in_fragments()):
                made[kind] = max(made[kind], given[kind])
        else:
            given += self.between.event_boxes
        lost = boxes_left_out(given, made, why, tracks=ids)
        return (*self.left_out, *self.between.findings, *lost)


def taking_off(ticks: int) -> tuple[Edit, ...]:
    """The edit list of fragments that takes off a time at the start."""
    return ((0, ticks, Fraction(1)),) if ticks else ()


def begins_of(lead: PlannedTrack, edges: Int64) -> Int64:
    """int64 presentation time from which on nothing earlier is presented, of each part of a track.

    Args:
        edges: its first sample in each part, and the end.
    """
    least = np.minimum.reduceat(lead.presentation, edges[:-1])
    return least_from(least)


def least_from(times: Int64) -> Int64:
    """Of each time the least of it and all after it; most tracks are in order."""
    rises = bool((times[1:] >= times[:-1]).all())
    return times if rises else np.minimum.accumulate(times[::-1])[::-1]


def greatest_from(times: Int64) -> Int64:
    """Of each time the greatest of it and all after it."""
    if len(times) and (times[1:] >= times[:-1]).all():
        return np.broadcast_to(times[-1], len(times))
    return np.maximum.accumulate(times[::-1])[::-1]


def greatest_to(times: Int64) -> Int64:
    """Of each time the greatest of it and all before it."""
    rises = bool((times[1:] >= times[:-1]).all())
    return times if rises else np.maximum.accumulate(times)
