"""The segments of some tracks: their times, their sizes, and the parts of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from fragdex.boxes import build, parse
from fragdex.formats.clip_movie import traks_of
from fragdex.formats.sidx import boxes
from fragdex.formats.subsegments import Subsegments
from fragdex.fragments.table import NULL, Int64
from fragdex.seeking.origin import SourceInfo
from fragdex.seeking.times import TimeLike, exact_time
from fragdex.views.fragments_made import Fragments
from fragdex.views.init_segment import descriptions_of, init_segment
from fragdex.views.media import Media
from fragdex.views.media_type import media_type
from fragdex.views.parts import Block
from fragdex.views.protection import Protected
from fragdex.views.segmentation import cut, reference
from fragdex.views.view import View

__all__ = ["Segments", "seconds_of"]


def seconds_of(seconds: TimeLike | None) -> Fraction | None:
    """A wanted length as an exact number of seconds; None stays.

    Raises:
        ValueError: it is not above 0.

    >>> seconds_of("2.5s")
    Fraction(5, 2)
    """
    if seconds is None:
        return None
    found = exact_time(seconds)
    if not 0 < found < float("inf"):
        raise ValueError(f"segments must last longer than 0 s, and not for ever: {seconds}")
    return Fraction(found)


class Segments:
    """Tracks cut into segments, each a fragment with all of them.

    Args:
        init: the source's ftyp and moov.
        media: the tracks, at least one.
        seconds: wanted length; None: a segment for each sync sample.
        edges: of each track the first sample of each segment, and the end; None: cut anew.
        descriptions: of each track, as `descriptions_of` gives them; None: asked anew.
        protection: of each track, as `protected` gives it; None: all are clear.
        head: bytes in front of each fragment.
        begins: as `Fragments` takes it.

    Attributes:
        media, edges: as given or cut.
        fragments: sizes and parts of the fragments.
        lead: the track whose times are those of the segments.
        time: int64 presentation time of each segment in ticks of the lead; the first begins where
            the track does, or at 0 where the edit list hides what is before.
        is_closed: whether nothing in a segment is presented before its first sample.
        duration: int64 ticks to the next one's time, the last one's to the end of the track.

    Raises:
        NoSyncSample, BuildError: as `cut` and `Fragments`.
    """

    def __init__(
        self,
        init: bytes,
        media: Sequence[Media],
        seconds: Fraction | None,
        edges: Sequence[Int64] | None = None,
        *,
        descriptions: Sequence[Int64 | None] | None = None,
        protection: Sequence[Protected | None] | None = None,
        head: bytes = b"",
        begins: int | None = None,
    ) -> None:
        self.media = list(media)
        self.lead = reference(self.media)
        self.edges = list(edges) if edges is not None else cut(self.media, seconds, self.lead)
        self._source_init = init
        self.media_type = media_type(one.track for one in self.media)
        if descriptions is None:
            traks = traks_of(parse(init))
            descriptions = [descriptions_of(traks.get(m.track.id), m) for m in self.media]
        self.fragments = Fragments(self.media, self.edges, descriptions, head, protection, begins)
        mine = self.edges[next(n for n, one in enumerate(self.media) if one is self.lead)]
        shown = self.lead.presentation
        # From a segment on nothing earlier is presented: its least time, and those behind it.
        least = np.minimum.reduceat(shown, mine[:-1])
        least = np.minimum.accumulate(least[::-1])[::-1]
        self.time: Int64 = np.maximum(least, 0)
        self.duration: Int64 = np.diff(self.time, append=max(self.lead.end, int(self.time[-1])))
        starts = self.lead.samples.sync[mine[:-1]]
        self.is_closed = bool((shown[mine[:-1]] <= least).all())
        self._access = np.where(starts, np.maximum(shown[mine[:-1]], 0), NULL)

    def __len__(self) -> int:
        return len(self.fragments)

    @cached_property
    def init(self) -> bytes:
        """The initialization segment; made when it is asked for."""
        return init_segment(self._source_init, self.media)

    @cached_property
    def sidx(self) -> bytes:
        """The segment index that stands between initialization segment and fragments."""
        return build(boxes(self._subsegments, self.lead.track.id, self.lead.timescale))

    @property
    def _subsegments(self) -> Subsegments:
        """The fragments as stretches, for a sidx."""
        sizes = self.fragments.sizes
        return Subsegments(
            np.cumsum(sizes) - sizes,
            sizes,
            self.time,
            self.duration,
            self._access,
            (self._access != NULL).astype(np.int64),
            np.arange(len(sizes)),
        )

    def whole(
        self,
        sources: Sequence[SourceInfo],
        recipe: Any,
        media_type: str | None = None,
        findings: Iterable[str] = (),
    ) -> View:
        """One file as a view: initialization segment, sidx and all fragments.

        Args:
            sources: of the tracks.
            recipe: what else decides its bytes.
            media_type: None: that of the tracks.
            findings: of the view.
        """
        head = self.init + self.sidx
        sizes = np.concatenate([[len(head)], self.fragments.sizes])

        def block(number: int) -> Sequence[Block]:
            return self.fragments.parts(number - 1) if number else [head]

        return View(media_type or self.media_type, sources, recipe, sizes, block, findings)

    def view(self, number: int, source: SourceInfo, recipe: Any) -> View:
        """One segment as a view; `recipe` says what else decides its bytes."""
        size = int(self.fragments.sizes[number])
        return View(
            self.media_type,
            [source],
            [*recipe, number],
            [size],
            lambda _: self.fragments.parts(number),
        )
