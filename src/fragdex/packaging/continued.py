"""A rendition that grows: its early segments are kept as rows and lines, without their samples.

What is known of a segment that is complete never changes, so that rows and lines are appended to
those before, and each append makes the last segments alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from fractions import Fraction
from functools import cached_property
from hashlib import md5
from typing import Any, Final

import numpy as np

from fragdex.fragments.table import Int64
from fragdex.muxing.segments import Segments
from fragdex.muxing.view import View
from fragdex.packaging.m3u8 import Written
from fragdex.packaging.mpd import Timeline
from fragdex.packaging.renditions import Rendition
from fragdex.record import record

_COLUMNS: Final = ("begins", "times", "sizes", "gaps", "ticks", "pictures", "syncs", "parts")
_ROOM: Final = 64


class Kept:
    """The first segments of a rendition; what is appended makes another one of the same columns.

    Attributes:
        count: of segments.
        text: their lines in the media playlist, and those of the periods before, as UTF-8.
        missing: segments of the playlist besides them: those that stand for gaps between them, and
            of the periods before.
        timeline: of them, for manifests.
    """

    def __init__(self) -> None:
        self._rows = np.empty((len(_COLUMNS), _ROOM), np.int64)
        self.count = self.missing = 0
        self.text, self.timeline = b"", Timeline()
        self._digests: dict[bytes, Any] = {}

    @classmethod
    def after(cls, written: Written) -> Kept:
        """Of a period that follows others, whose lines are written."""
        one = cls()
        one.text, one.missing = written.text, written.count
        return one

    def then(self, one: Rendition, first: int, stop: int, text: bytes, missing: int) -> Kept:
        """With segments of a stretch after these.

        Args:
            one: the stretch.
            first, stop: numbers of its segments (stop exclusive).
            text: their lines.
            missing: segments that stand for gaps in front of them.
        """
        which, more = slice(first, stop), Kept.__new__(Kept)
        firsts = np.searchsorted(one.parts, one.cuts) if one.parts is not None else one.cuts
        columns = (
            one.edges[:-1], one.times, one.sizes, one.gaps, one.ticks, one.picture_sizes, one.syncs,
            firsts[1:] + one.first_part,
        )  # fmt: skip
        more.count, more.missing = self.count + stop - first, self.missing + missing
        rows = self._rows
        if more.count > rows.shape[1]:
            # rows are written once, so that all share them until there is no room
            rows = np.empty((len(_COLUMNS), 2 * more.count), np.int64)
            rows[:, : self.count] = self._rows[:, : self.count]
        for place, column in enumerate(columns):
            rows[place, self.count : more.count] = column[which]
        more._rows, more.text, more._digests = rows, self.text + text, {}
        more.timeline = self.timeline.then(one.times[which].tolist(), one.ticks[which].tolist())
        for head, digest in self._digests.items():
            more._digests[head] = digest.copy()
            more._digests[head].update(text)
        return more

    def column(self, name: str) -> Int64:
        """int64 values of each segment: ticks, bytes, or the number of the part after it."""
        values: Int64 = self._rows[_COLUMNS.index(name), : self.count]
        return values

    @property
    def parts(self) -> int:
        """How many parts they have."""
        return int(self._rows[_COLUMNS.index("parts"), self.count - 1]) if self.count else 0

    def digest(self, text: bytes) -> str:
        """The MD5 of a list, of which only what is not kept is read."""
        head, _, _ = text.partition(b"#EXT-X-MAP:")
        known = self._digests.get(head)
        size = len(head) + len(self.text)
        if known is None:
            known = self._digests[head] = md5(text[:size], usedforsecurity=False)
        whole = known.copy()
        whole.update(memoryview(text)[size:])
        return str(whole.hexdigest())


@record(frozen=True, eq=False)
class Shortened(Rendition):
    """A rendition whose first lines are kept, so that lists are made of its last segments alone.

    Attributes:
        kept: the first segments. The last one of them is the first one of the rest, too.
        rest: a stretch of it; None: it has no segments.
    """

    kept: Kept = field(default_factory=Kept)
    rest: Rendition | None = None

    @classmethod
    def at(cls, whole: Rendition, first: int, kept: Kept) -> Shortened:
        """A rendition to which nothing more comes, without the lines before a segment.

        Args:
            whole: all of it.
            first: number of the segment, 1 or greater; or how many there are.
            kept: the lines of those before it.
        """
        base = int(whole.cuts[first - 1])
        media = whole.media.rows(slice(base, len(whole.media)), end=whole.media.end)
        rest = replace(
            whole,
            plan=replace(whole.plan, tracks=(media,)),
            cuts=whole.cuts[first - 1 :] - base,
            first_segment=first - 1,
            first_part=0 if whole.parts is None else whole.parts_in(first - 1).start,
        )
        return cls(**_fields(whole), kept=kept, rest=rest)

    @property
    def stretch(self) -> Rendition:
        """Its last segments."""
        assert self.rest is not None
        return self.rest

    @property
    def written(self) -> Written:
        """The lines that are kept."""
        return Written(self.kept.text, self.kept.count + self.kept.missing)


def _fields(one: Rendition) -> dict[str, Any]:
    return {name: getattr(one, name) for name in Rendition.__dataclass_fields__}


@record(frozen=True, eq=False)
class Continued(Shortened):
    """A rendition of whose first segments no samples are kept.

    Its own samples, cuts and parts are of the rest.

    Attributes:
        again: gives the stretch that a kept segment is in, by its number.
        rates: pictures a second, and most, of its beginning.
        early: ticks of its first samples that the edit list hides.
        schemes: of all its events.
    """

    again: Callable[[int], Rendition] | None = None
    rates: tuple[Fraction | None, Fraction | None] = (None, None)
    early: int = 0
    schemes: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(
        cls,
        rest: Rendition,
        kept: Kept,
        again: Callable[[int], Rendition],
        rates: tuple[Fraction | None, Fraction | None],
        early: int,
        schemes: tuple[tuple[str, str], ...],
    ) -> Continued:
        """A rendition of kept segments and a stretch that begins with the last one of them."""
        more: dict[str, Any] = {"again": again, "rates": rates, "early": early, "schemes": schemes}
        return cls(**_fields(rest), kept=kept, rest=rest, **more)

    @property
    def made(self) -> Segments:
        """Of its last segments."""
        return self.stretch.made

    @property
    def parts(self) -> Int64 | None:
        """As of `Rendition`, of its last segments."""
        return self.stretch.parts

    @property
    def begun(self) -> Segments | None:
        """As of `Rendition`."""
        return self.stretch.begun

    def _joined(self, name: str, rest: Int64) -> Int64:
        return np.concatenate([self.kept.column(name), rest[1:]])

    @property
    def count(self) -> int:
        """How many segments are complete."""
        return self.kept.count + self.stretch.count - 1

    @cached_property
    def edges(self) -> Int64:
        """As of `Rendition`."""
        return self._joined("begins", self.stretch.edges)

    @cached_property
    def gaps(self) -> Int64:
        """As of `Rendition`."""
        return self._joined("gaps", self.stretch.gaps)

    @cached_property
    def times(self) -> Int64:
        """As of `Rendition`."""
        return self._joined("times", self.stretch.times)

    @cached_property
    def sizes(self) -> Int64:
        """As of `Rendition`."""
        return self._joined("sizes", self.stretch.sizes)

    @cached_property
    def ticks(self) -> Int64:
        """As of `Rendition`."""
        return self._joined("ticks", self.stretch.ticks)

    @cached_property
    def picture_sizes(self) -> Int64:
        """As of `Rendition`."""
        return self._joined("pictures", self.stretch.picture_sizes)

    @property
    def syncs(self) -> Any:
        """As of `Rendition`."""
        return self._joined("syncs", self.stretch.syncs.astype(np.int64)).astype(np.bool_)

    @cached_property
    def is_closed(self) -> bool:
        """As of `Rendition`; of what grows nobody asks."""
        return False

    @property
    def event_schemes(self) -> tuple[tuple[str, str], ...]:
        """As of `Rendition`."""
        return self.schemes

    @property
    def hidden(self) -> int:
        """As of `Rendition`."""
        return self.early

    @property
    def frame_rate(self) -> Fraction | None:
        """As of `Rendition`, of its beginning."""
        return self.rates[0]

    @property
    def highest_frame_rate(self) -> Fraction | None:
        """As of `Rendition`, of its beginning."""
        return self.rates[1]

    @property
    def seconds(self) -> Fraction:
        """From where the title begins to its end."""
        first = int(self.kept.column("begins")[0])
        return Fraction(int(self.stretch.edges[-1]) - first, self.timescale)

    def parts_in(self, number: int) -> range:
        """The numbers of the parts of a segment, by its number."""
        local = number - self.stretch.first_segment
        if local >= 0:
            return self.stretch.parts_in(local)
        before, stop = self.kept.column("parts")[[number - 1, number]].tolist()
        return range(before if number else 0, stop)

    def segment(self, time: int, recipe: Any) -> View | None:
        """The segment whose address says this time; None: there is none."""
        view = self.stretch.segment(time, recipe)
        if view is not None:
            return view
        times = self.kept.column("times")
        number = int(times.searchsorted(time))
        if number == len(times) or times[number] != time:
            return None
        assert self.again is not None
        return self.again(number).segment(time, recipe)

    def part_view(self, number: int, recipe: Any) -> View | None:
        """A part by its number in the rendition, from 0; None: it is not there."""
        if number >= self.stretch.first_part or number < 0:
            return self.stretch.part_view(number, recipe)
        assert self.again is not None
        segment = int(np.searchsorted(self.kept.column("parts"), number, side="right"))
        return self.again(segment).part_view(number, recipe)
