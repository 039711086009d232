"""One slice of a track, heard by itself, equal to the same part of the whole.

A track is parted at multiples of the slice's length, each border is moved to a pause near it, and
both slices beside it find the same place. So slices can be heard in any order, on any machine, and
again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from fragdex import NULL, FragmentIndex, Source, TrackIndex
from fragdex.decoding import AudioReader
from fragdex.errors import LimitExceeded, UndecodableMedia
from fragdex.service.transcriptions.cutting import (
    FRAME,
    FRAME_MS,
    HARD_CONTEXT,
    PAUSE,
    SAMPLE_RATE,
    Cut,
    Ints,
    ReadFrames,
    cut_near,
    joined,
    threshold,
    utterances,
)
from fragdex.service.transcriptions.engines.contract import Engine
from fragdex.service.transcriptions.words import Heard, Missing, Word

__all__ = ["LEAST_SLICE_MS", "MOST_SLICE_MS", "Listener", "Plan", "need_sound"]

LEAST_SLICE_MS: Final = 5_000
MOST_SLICE_MS: Final = 60_000
_MOST_SLICES: Final = 48 * 3600 // 5
"""Slices of a track: two days in the shortest ones; times beyond are those of a broken file."""
_PROBES: Final = 8
_PROBE_FRAMES: Final = 200
_REACH: Final = 500
"""Frames that a cut may lie away from its border."""
_FRAMES_A_SECOND: Final = 1000 // FRAME_MS
_AT_ONCE: Final = 16
"""Utterances that are given to an engine at once, so that it can be stopped between them."""
_MOST_AHEAD: Final = 12_000
"""Frames that are decoded into one piece: two minutes are 4 MB."""
_BESIDE: Final = 10
"""Frames on both sides of a slice, for levels that are smoothed."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a track is heard; kept with the job, so that every slice is heard alike.

    Attributes:
        track: track_ID.
        work_slice_ms: slice n is the sound from n to n + 1 times that, but for the move of its
            borders to pauses.
        first_frame, last_frame: frames of 10 ms from presentation time 0 that the track has (last
            exclusive).
        quiet: the track's threshold in dB.
        language: ISO 639-1, as asked for or as detected; None where nobody knows.
        slices: numbers of the slices that may hold sound.
    """

    track: int
    work_slice_ms: int
    first_frame: int
    last_frame: int
    quiet: float
    language: str | None
    slices: tuple[int, ...]

    def as_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self) | {"slices": list(self.slices)}

    @classmethod
    def of_json(cls, plain: Mapping[str, Any]) -> Plan:
        """The same again.

        >>> plan = Plan(1, 30000, 0, 700, 21.5, "en", (0,))
        >>> Plan.of_json(plan.as_json()) == plan
        True
        """
        return cls(**{**plain, "slices": tuple(plain["slices"])})

    @property
    def reach(self) -> int:
        """Frames that a cut may lie away from its border."""
        return _reach(self.work_slice_ms)


def _reach(work_slice_ms: int) -> int:
    return min(_REACH, work_slice_ms // FRAME_MS // 3)


class Listener:
    """Hears slices of one track.

    Args:
        index: of the file.
        source: the file.
        track: track_ID; None: the first audio track.
        init: the initialization segment, for segments that have none.

    Raises:
        TrackNotFound, UndecodableMedia: as `fragdex.audio`.
    """

    def __init__(
        self,
        index: FragmentIndex,
        source: Source,
        track: int | None = None,
        *,
        init: bytes | None = None,
    ) -> None:
        self._source = source
        self._reader = AudioReader(index, source, track=track, rate=SAMPLE_RATE, init=init)

    @property
    def track(self) -> TrackIndex:
        """The track that is heard."""
        return self._reader.track

    def read(self, start: int, stop: int) -> Ints:
        """Frames [start, stop)."""
        seconds = (Fraction(at, _FRAMES_A_SECOND) for at in (start, stop))
        return self._reader.read(*seconds)

    def plan(self, work_slice_ms: int, engine: Engine, language: str | None = None) -> Plan:
        """How to hear this track.

        Args:
            work_slice_ms: 5,000 to 60,000; also one larger number, for all of it at once.
            engine: open; asked which language is spoken where none is given.

        Raises:
            LimitExceeded: it is longer than two days.
        """
        spans = _spans(self.track)
        if not spans:
            return Plan(self.track.id, work_slice_ms, 0, 0, 0.0, language, ())
        probes = [self.read(low, high) for low, high in _probes(spans)]
        if language is None:
            language = engine.detect(probes)
        size, reach = work_slice_ms // FRAME_MS, _reach(work_slice_ms)
        numbers: set[int] = set()
        for low, high in spans:
            first, last = max(0, low - reach) // size, (high + reach - 1) // size
            if last - first > _MOST_SLICES or len(numbers) > _MOST_SLICES:
                raise LimitExceeded(
                    "the track is too long to be transcribed",
                    expected="at most 48 hours",
                    found=f"{spans[-1][1] / _FRAMES_A_SECOND / 3600:.0f} hours",
                )
            numbers.update(range(first, last + 1))
        end = spans[-1][1]
        return Plan(
            self.track.id,
            work_slice_ms,
            spans[0][0],
            end,
            threshold(probes),
            language,
            tuple(sorted(n for n in numbers if n * size < end)),
        )

    def cut(self, plan: Plan, number: int) -> Cut:
        """The cut in front of slice `number`."""
        border = number * plan.work_slice_ms // FRAME_MS
        if border <= plan.first_frame:
            return Cut(plan.first_frame, PAUSE)
        if border >= plan.last_frame:
            return Cut(plan.last_frame, PAUSE)
        return cut_near(
            self.read, border, plan.reach, plan.quiet, plan.first_frame, plan.last_frame
        )

    def hear(
        self,
        plan: Plan,
        number: int,
        engine: Engine,
        told: Callable[[int, int], None] = lambda done, of: None,
    ) -> Heard:
        """The words of a slice.

        Args:
            plan: of this track.
            number: of the slice.
            engine: open.
            told: called with how many of its utterances are done; may raise to end it.
        """
        before, after = self.cut(plan, number), self.cut(plan, number + 1)
        low = max(plan.first_frame, before.frame - (HARD_CONTEXT if before.hard else 0))
        high = min(plan.last_frame, after.frame + (HARD_CONTEXT if after.hard else 0))
        most = engine.max_utterance_ms // FRAME_MS
        read = self._ahead(low, high)
        spans = utterances(read, low, high, plan.quiet, most)
        if engine.window_ms:
            spans = joined(spans, engine.window_ms // FRAME_MS)
        words: list[Word] = []
        for at in range(0, len(spans), _AT_ONCE):
            told(at, len(spans))
            part = spans[at : at + _AT_ONCE]
            sounds = [read(start, stop) for start, stop in part]
            heard = engine.transcribe(sounds, plan.language)
            for (start, _), found in zip(part, heard, strict=True):
                words += [word.later(start * FRAME_MS) for word in found]
        told(len(spans), len(spans))
        begin, end = before.frame * FRAME_MS, after.frame * FRAME_MS
        kept = [w for w in words if 2 * begin <= w.start_ms + w.end_ms < 2 * end]
        gaps = self._reader.gaps(Fraction(begin, 1000), Fraction(end, 1000))
        missing = [
            Missing(
                max(begin, math.floor(gap.start * 1000)),
                min(end, math.ceil(gap.stop * 1000)),
                gap.reason,
            )
            for gap in gaps
        ]
        return Heard(number, tuple(kept), tuple(missing), len(spans), self._source.bytes_read)

    def _ahead(self, low: int, high: int) -> ReadFrames:
        """Reads frames of a slice, out of one piece where that is not too long."""
        if not 0 < high - low <= _MOST_AHEAD:
            return self.read
        begin = low - _BESIDE
        sound = self.read(begin, high + _BESIDE)

        def read(start: int, stop: int) -> Ints:
            return sound[(start - begin) * FRAME : (stop - begin) * FRAME]

        return read

    def close(self) -> None:
        """Forget what was decoded; the source stays open."""
        self._reader.close()


def need_sound(plan: Plan, missing: tuple[Missing, ...]) -> None:
    """Refuse a track of which nothing could be decoded.

    Raises:
        UndecodableMedia: tells the reason and the span.
    """
    lost = sum(span.end_ms - span.start_ms for span in missing)
    whole = (plan.last_frame - plan.first_frame) * FRAME_MS
    # The edges of spans are rounded to frames, and a little sound is left out of the last one.
    if missing and lost >= whole - 100:
        raise UndecodableMedia(
            f"the sound of track {plan.track} cannot be decoded: {missing[0].reason}",
            start=missing[0].start_ms / 1000,
            stop=missing[-1].end_ms / 1000,
        )


def _spans(track: TrackIndex) -> list[tuple[int, int]]:
    """Frames [low, high) in which the track has samples, joined where they touch."""
    table = track.fragments
    known = (table.cts_min != NULL) & (table.cts_end != NULL) & (table.sample_count != 0)
    starts, stops = table.cts_min[known], table.cts_end[known]
    if not len(starts):
        return []
    order = np.argsort(starts, kind="stable")
    starts, stops = starts[order], np.maximum.accumulate(stops[order])
    breaks = np.flatnonzero(starts[1:] > stops[:-1] + track.timescale) + 1
    edges = zip(
        starts[np.append(0, breaks)].tolist(),
        stops[np.append(breaks - 1, len(stops) - 1)].tolist(),
        strict=True,
    )
    spans = []
    for start, stop in edges:
        low, high = (track.presentation(at).exact * _FRAMES_A_SECOND for at in (start, stop))
        first, last = max(0, math.floor(low)), math.ceil(high)
        if last > first:
            spans.append((first, last))
    return spans


def _probes(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Parts of a track that tell how loud it is, spread evenly over what it has."""
    whole = sum(high - low for low, high in spans)
    if whole <= _PROBES * _PROBE_FRAMES:
        return spans
    found = []
    for number in range(_PROBES):
        place = whole * (2 * number + 1) // (2 * _PROBES)
        for low, high in spans:
            if place < high - low:
                start = min(max(low, low + place - _PROBE_FRAMES // 2), high - 1)
                found.append((start, min(high, start + _PROBE_FRAMES)))
                break
            place -= high - low
    return found
