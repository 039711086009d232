"""Subtitles of a title: WebVTT segments of cues, or fragments of text as they are."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np

from fragdex.boxes import Box
from fragdex.errors import BuildError
from fragdex.fragments.table import FAR, Int64
from fragdex.seeking.origin import SourceInfo
from fragdex.views.caption_files import Captions
from fragdex.views.media import Media
from fragdex.views.parts import Block, Derived, Scattered, size_of
from fragdex.views.renditions import Rendition
from fragdex.views.view import View
from fragdex.views.webvtt import (
    SAMPLE_BYTES,
    TIMING,
    VttCue,
    cues_of_sample,
    header,
    sample_bound,
    written,
)

__all__ = ["CUES", "FRAGMENTS", "FileCues", "Subtitles", "TrackCues", "forced", "styles"]

CUES: Final = ("wvtt", "tx3g")
"""Formats of text whose samples become WebVTT."""
FRAGMENTS: Final = ("wvtt", "stpp")
"""Formats of text that players take in fragments."""
_AT_ONCE: Final = 16 << 20
"""Bytes of samples that are read for one text."""
_ROLES: Final = ("urn:mpeg:dash:role:2011", "about:html-kind")
_FORCED: Final = ("forced-subtitle", "forced_subtitle", "forced")
_ALL_FORCED: Final = 0x80000000
"""displayFlags of tx3g: all samples are forced (QuickTime File Format, subtitle media)."""


@dataclass(frozen=True, eq=False)
class FileCues:
    """The cues of a caption file."""

    captions: Captions

    @property
    def sources(self) -> tuple[SourceInfo, ...]:
        """No file of the title: they are in memory."""
        return ()

    @property
    def recipe(self) -> str:
        """What decides them."""
        return self.captions.digest

    @cached_property
    def _times(self) -> tuple[Int64, Int64]:
        """Milliseconds of starts, which rise, and the latest end up to each cue."""
        starts = np.array([cue.start_ms for cue, _ in self.captions.cues], np.int64)
        return starts, np.maximum.accumulate(self._ends)

    def block(self, start: Fraction, stop: Fraction | None) -> Block:
        """WebVTT with the cues that are shown between two times in seconds."""
        low, high = (int(one[0]) for one in _rows(*self._times, 1000, [start], [stop]))
        shown = (low + np.flatnonzero(self._ends[low:high] > min(start * 1000 // 1, FAR))).tolist()
        head = header(self.captions.blocks)
        if self._texts is None:
            return written(head, (self._cues[number] for number in shown))
        return head.encode() + b"".join([self._texts[number] for number in shown])

    @cached_property
    def _ends(self) -> Int64:
        return np.array([cue.end_ms for cue, _ in self.captions.cues], np.int64)

    @cached_property
    def _cues(self) -> list[VttCue]:
        return [
            VttCue(Fraction(cue.start_ms, 1000), Fraction(cue.end_ms, 1000), cue.text, settings)
            for cue, settings in self.captions.cues
        ]

    @cached_property
    def _texts(self) -> list[bytes] | None:
        """Each cue as it is written; None: some touch, and what is written is their sum.

        A cue that lasts is in every segment that shows it, and is put into words once.
        """
        ends = {(cue.end, cue.text, cue.settings) for cue in self._cues}
        if any((cue.start, cue.text, cue.settings) in ends for cue in self._cues):
            return None
        return [written("", [cue]) for cue in self._cues]

    def sizes(self, starts: Sequence[Fraction], stops: Sequence[Fraction | None]) -> Int64:
        """Bytes of each of such texts, at most."""
        sizes = [len(f"{cue.text}{settings}".encode()) for cue, settings in self.captions.cues]
        bounds = np.cumsum([0, *(TIMING + size for size in sizes)])
        low, high = _rows(*self._times, 1000, starts, stops)
        found: Int64 = len(header(self.captions.blocks).encode()) + bounds[high] - bounds[low]
        return found


@dataclass(frozen=True, eq=False)
class TrackCues:
    """The cues of a track of text.

    Attributes:
        media: its samples.
        source: the file that holds them.
        code: of the sample entry: wvtt or tx3g.
        blocks: styles and regions.
    """

    media: Media
    source: SourceInfo
    code: str
    blocks: tuple[str, ...] = ()

    @property
    def sources(self) -> tuple[SourceInfo, ...]:
        """The file that is read."""
        return (self.source,)

    @property
    def recipe(self) -> int:
        """What decides them: the track."""
        return self.media.track.id

    @cached_property
    def _times(self) -> tuple[Int64, Int64]:
        """Ticks of starts, which rise, and of ends."""
        begins = np.maximum.accumulate(self.media.presentation)
        return begins, begins + self.media.durations

    def _readable(self, rows: slice) -> Int64:
        """Samples that hold text, and not more than subtitles have."""
        sizes = self.media.samples.size[rows]
        found: Int64 = np.flatnonzero((sizes > 2) & (sizes <= SAMPLE_BYTES)) + (rows.start or 0)
        return found

    def block(self, start: Fraction, stop: Fraction | None) -> Block:
        """As `FileCues.block`; the text is read when it is needed.

        Raises:
            BuildError: there is more text than a title has.
        """
        media, scale = self.media, self.media.timescale
        low, high = (int(one[0]) for one in _rows(*self._times, scale, [start], [stop]))
        rows = self._readable(slice(low, high))
        sizes = media.samples.size[rows]
        head = header(self.blocks)
        if not len(rows):
            return head.encode()
        if int(sizes.sum()) > _AT_ONCE:
            raise BuildError(
                f"the samples of text track {media.track.id} are too large for subtitles",
                expected=f"at most {_AT_ONCE} bytes",
                found=int(sizes.sum()),
                advice="leave it out with tracks=",
            )
        columns = (times[rows].tolist() for times in self._times)
        times = [(Fraction(a, scale), Fraction(b, scale)) for a, b in zip(*columns, strict=True)]
        size = len(head.encode()) + int(sample_bound(sizes).sum())

        def make(data: Sequence[bytes]) -> bytes:
            cues = [
                cue
                for one, (begin, end) in zip(data, times, strict=True)
                for cue in cues_of_sample(one, self.code, begin, end)
            ]
            return written(head, cues).ljust(size, b"\n")

        ranges = Scattered(int(media.source[low]), media.samples.offset[rows], sizes)
        return Derived(ranges, make, 0, size)

    def sizes(self, starts: Sequence[Fraction], stops: Sequence[Fraction | None]) -> Int64:
        """Bytes of each of such texts."""
        bounds = np.zeros(len(self.media) + 1, np.int64)
        rows = self._readable(slice(0, None))
        bounds[rows + 1] = sample_bound(self.media.samples.size[rows])
        bounds = np.cumsum(bounds)
        low, high = _rows(*self._times, self.media.timescale, starts, stops)
        found: Int64 = len(header(self.blocks).encode()) + bounds[high] - bounds[low]
        return found


def _rows(
    begins: Int64,
    ends: Int64,
    scale: int,
    starts: Sequence[Fraction],
    stops: Sequence[Fraction | None],
) -> tuple[Int64, Int64]:
    """Of some spans the first cue that is shown in each, and the one behind the last."""
    lows = np.searchsorted(ends, [min(at * scale // 1, FAR) for at in starts], side="right")
    most = [FAR if at is None else min(-(-at * scale // 1), FAR) for at in stops]
    highs = np.searchsorted(begins, most, side="left")
    return lows, np.maximum(lows, highs)


@dataclass(frozen=True, eq=False)
class Subtitles:
    """A rendition of text.

    Attributes:
        name: its part of addresses: s1, s2, …
        title: what people choose it by.
        language: BCP 47 tag, or None.
        forced: whether players show it to those who chose no subtitles.
        default: whether players show it unless people choose something else.
        lead: the rendition whose segments cut it.
        cues: as WebVTT; None: it has fragments alone.
        rendition: its fragments; None: it has cues alone.
        growing: whether only segments are named whose text is all there.
    """

    name: str
    title: str
    language: str | None
    forced: bool
    default: bool
    lead: Rendition
    cues: FileCues | TrackCues | None
    rendition: Rendition | None = None
    growing: bool = False

    @cached_property
    def _edges(self) -> list[int]:
        edges: list[int] = self.lead.edges.tolist()
        if self.growing and isinstance(self.cues, TrackCues):
            media = self.cues.media
            reached = Fraction(media.end * self.lead.timescale, media.timescale)
            edges = [at for at in edges if at <= reached]
        return edges

    @property
    def times(self) -> list[int]:
        """Names of its WebVTT segments: ticks of the lead at which they begin."""
        return self._edges[:-1]

    def segment(self, time: int, recipe: Any) -> View | None:
        """The WebVTT segment of this name, or None."""
        number = bisect_left(self.times, time)
        if self.cues is None or self.times[number : number + 1] != [time]:
            return None
        start, stop = self._spans[number]
        return self._view(start, stop, [*recipe, number])

    @cached_property
    def _spans(self) -> list[tuple[Fraction, Fraction | None]]:
        """What its segments hold: what is shown before or after the title, the outer ones do."""
        scale = self.lead.timescale
        starts: list[Fraction] = [Fraction(at, scale) for at in self._edges]
        stops: list[Fraction | None] = [*starts[1:-1], *([starts[-1]] if self.growing else [None])]
        return list(zip([Fraction(0), *starts[1:-1]], stops, strict=True)) if self.times else []

    @property
    def sizes(self) -> Int64:
        """int64 bytes of each of its WebVTT segments, at most."""
        if self.cues is None or not self._spans:
            return np.zeros(len(self._spans), np.int64)
        starts, stops = zip(*self._spans, strict=True)
        return self.cues.sizes(starts, stops)

    @property
    def size(self) -> int:
        """Bytes of all cues as one file, at most."""
        return 0 if self.cues is None else int(self.cues.sizes([Fraction(0)], [None])[0])

    def whole(self, recipe: Any) -> View | None:
        """All cues as one WebVTT file, or None."""
        return self._view(Fraction(0), None, [*recipe, "all"])

    def _view(self, start: Fraction, stop: Fraction | None, recipe: Any) -> View | None:
        if self.cues is None:
            return None
        block = self.cues.block(start, stop)
        recipe = [*recipe, self.cues.recipe]
        return View("text/vtt", self.cues.sources, recipe, [size_of(block)], lambda _: [block])


def forced(trak: Box) -> bool:
    """Whether a track of text is said to hold forced subtitles alone."""
    for kind in trak.find_all("udta/kind"):
        if kind.get("schemeURI") in _ROLES and kind.get("value") in _FORCED:
            return True
    entry = trak.find("mdia/minf/stbl/stsd/tx3g")
    return entry is not None and bool(entry.get("displayFlags", 0) & _ALL_FORCED)


def styles(trak: Box) -> tuple[str, ...]:
    """Styles and regions of a track of WebVTT (ISO/IEC 14496-30, 7.5)."""
    config = trak.find("mdia/minf/stbl/stsd/wvtt/vttC")
    text = config.get("config") if config is not None else None
    if not isinstance(text, str) or "-->" in text:
        return ()
    blocks = text.replace("\r\n", "\n").replace("\r", "\n").split("\n\n")
    return tuple(b.strip("\n") for b in blocks if b.lstrip("\n").startswith(("STYLE", "REGION")))
