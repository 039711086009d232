"""How a track is heard: which units there are, and which of them are a slice."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fragdex import Track
from fragdex.decoding.open_track import TrackSamples
from fragdex.errors import LimitExceeded, UndecodableMedia
from fragdex.fragments.table import NULL
from fragdex.record import record
from fragdex.speech.cutting import FRAME_MS, REACH, UNIT
from fragdex.speech.words import SpanNote

LEAST_SLICE_MS: Final = 5_000
MOST_SLICE_MS: Final = 60_000
STRETCH: Final = 60
"""Units in which voices are told apart at once, and one language is spoken: ten minutes."""
_MOST_UNITS: Final = 48 * 3600 * 100 // UNIT
"""Units of a track: two days; times beyond are those of a broken file."""
_LONG_SECONDS: Final = 60
"""Fragments that say they last longer are looked into."""
_MOST_SAMPLE_SECONDS: Final = 10
"""The longest frames of sound there are: FLAC has 65,535 samples, 8 s at 8 kHz."""
_MOST_SAMPLES: Final = 1 << 22
"""Fragments of more samples are believed: to look into them costs more than to hear them."""
_FRAMES_A_SECOND: Final = 1000 // FRAME_MS


@record(frozen=True, slots=True)
class TranscriptionPlan:
    """How a track is heard; kept with the job, so that every slice is heard alike.

    Attributes:
        track: track_ID.
        work_slice_ms: slice n is the sound from n to n + 1 times that, but for the move of its
            borders to the nearest multiples of `block` units, and from there to cuts.
        first_frame, last_frame: frames of 10 ms from presentation time 0 that the track has (last
            exclusive).
        quiet: the track's threshold in dB.
        language: ISO 639-1, as requested, else what the engine detects in most of the track or
            knows alone; None where nobody knows.
        slices: numbers of the slices that may hold sound.
        block: units that an engine may hear together, counted from unit 0: no slice parts them.
        vocabulary: names and terms that the engine prefers where they are said.
        languages: stretches from which on another language is spoken, and which, in order; empty
            where the track has one.
    """

    track: int
    work_slice_ms: int
    first_frame: int
    last_frame: int
    quiet: float
    language: str | None
    slices: tuple[int, ...]
    block: int = 1
    vocabulary: tuple[str, ...] = ()
    languages: tuple[tuple[int, str], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    @classmethod
    def of_json(cls, plain: Mapping[str, Any]) -> TranscriptionPlan:
        """The same again."""
        # Plans of earlier versions have no vocabulary and no languages.
        lists = {name: tuple(plain.get(name, ())) for name in ("slices", "vocabulary")}
        languages = tuple((stretch, language) for stretch, language in plain.get("languages", ()))
        return cls(**{**plain, **lists, "languages": languages})

    def language_of(self, unit: int) -> str | None:
        """The language in which a unit is heard."""
        if not self.languages:
            return self.language
        place = bisect_right(self.languages, unit // STRETCH, key=itemgetter(0))
        return self.languages[max(0, place - 1)][1]

    def units(self, number: int) -> tuple[int, int]:
        """The first unit of slice `number`, and the first one of the next slice."""
        frames = UNIT * self.block
        first, last = (
            (2 * at * self.work_slice_ms // FRAME_MS + frames) // (2 * frames) * self.block
            for at in (number, number + 1)
        )
        return first, last

    def slice_of(self, unit: int) -> int:
        """The slice that a unit belongs to."""
        frames, block = UNIT * self.block, unit // self.block
        return -(-frames * (2 * block + 1) * FRAME_MS // (2 * self.work_slice_ms)) - 1

    @property
    def stretches(self) -> tuple[int, ...]:
        """Numbers of the stretches of `STRETCH` units that may hold sound."""
        end = -(-self.last_frame // UNIT)
        stretches: set[int] = set()
        for number in self.slices:
            first, last = self.units(number)
            stretches.update(range(first // STRETCH, -(-min(last, end) // STRETCH)))
        return tuple(sorted(stretches))

    def in_languages(
        self,
        spans: Sequence[tuple[int, int]],
        detect: Callable[[list[tuple[int, int]]], str | None],
    ) -> TranscriptionPlan:
        """The plan with the language of each stretch.

        Where none is detected, it is that of the stretch before; at the beginning, the first one.

        Args:
            spans: frames that have samples, as of `plan_of`.
            detect: gives the language that is spoken in some of them, or None.
        """
        languages: dict[int, str] = {}
        lasts: Counter[str] = Counter()
        for number in self.stretches:
            low, high = (at * STRETCH * UNIT for at in (number, number + 1))
            first = bisect_right(spans, low, key=itemgetter(1))
            last = bisect_left(spans, high, key=itemgetter(0))
            own = [(max(low, start), min(stop, high)) for start, stop in spans[first:last]]
            language = detect(own)
            if language is not None:
                languages[number] = language
                lasts[language] += sum(stop - start for start, stop in own)
        if not languages:
            return self
        changes = tuple(
            (next(alike)[0], language)
            for language, alike in groupby(languages.items(), itemgetter(1))
        )
        return replace(
            self,
            language=lasts.most_common(1)[0][0],
            languages=changes if len(changes) > 1 else (),
        )

    def span(self, number: int) -> tuple[int, int]:
        """Frames [low, high) of slice `number`, but for the place of its cuts."""
        low, high = (unit * UNIT for unit in self.units(number))
        return max(self.first_frame, low), max(self.first_frame, min(self.last_frame, high))

    def around(self, number: int) -> tuple[int, int]:
        """The first and the last slice in which words may be whose middle lies in time `number`."""
        low = number * self.work_slice_ms // FRAME_MS - REACH
        high = (number + 1) * self.work_slice_ms // FRAME_MS + REACH
        return self.slice_of(max(0, low // UNIT)), self.slice_of(high // UNIT)

    def ensure_sound(self, missing: Sequence[SpanNote]) -> None:
        """Refuse a track of which nothing could be decoded.

        Args:
            missing: all that could not be heard of it, in order.

        Raises:
            UndecodableMedia: tells the reason and the span.
        """
        lost = sum(span.end_ms - span.start_ms for span in missing)
        whole = (self.last_frame - self.first_frame) * FRAME_MS
        # The edges of spans are rounded to frames, and a little sound is left out of the last one.
        if missing and lost >= whole - 100:
            raise UndecodableMedia(
                f"the sound of track {self.track} cannot be decoded: {missing[0].reason}",
                start=missing[0].start_ms / 1000,
                stop=missing[-1].end_ms / 1000,
            )


def plan_of(
    track: int,
    work_slice_ms: int,
    spans: Sequence[tuple[int, int]],
    quiet: float,
    language: str | None,
    block: int = 1,
    vocabulary: tuple[str, ...] = (),
) -> TranscriptionPlan:
    """The plan of a track that has samples in some spans of frames.

    Args:
        block: units that no slice parts.
        vocabulary: as of the plan.

    Raises:
        LimitExceeded: it is longer than two days.
    """
    first, end = (spans[0][0], spans[-1][1]) if spans else (0, 0)
    units: set[int] = set()
    for low, high in spans:
        one, other = max(0, low - REACH) // UNIT, (min(high + REACH, end) - 1) // UNIT
        if other - one > _MOST_UNITS or len(units) > _MOST_UNITS:
            raise LimitExceeded(
                "the track is too long to be transcribed",
                expected="at most 48 hours",
                found=f"{end / _FRAMES_A_SECOND / 3600:.0f} hours",
            )
        units.update(range(one, other + 1))
    plan = TranscriptionPlan(
        track, work_slice_ms, first, end, quiet, language, (), block, vocabulary
    )
    return replace(plan, slices=tuple(sorted({plan.slice_of(unit) for unit in units})))


def spans_of(track: Track, samples: TrackSamples) -> list[tuple[int, int]]:
    """Frames [low, high) in which the track has sound, joined where they touch.

    A fragment that says it is long may hold little: its samples are looked at, and none of them
    counts for longer than a frame of sound can be.

    Args:
        samples: of the track.
    """
    table = track.fragments
    known = (table.cts_min != NULL) & (table.cts_end != NULL) & (table.sample_count != 0)
    long = table.cts_end - table.cts_min > _LONG_SECONDS * track.timescale
    looked_at = np.flatnonzero(known & long & (table.sample_count <= _MOST_SAMPLES))
    known[looked_at] = False
    starts, stops = [table.cts_min[known]], [table.cts_end[known]]
    for row in looked_at.tolist():
        rows = samples.rows(row, row + 1)
        cts, some = rows.cts, rows.size > 0
        lasts = np.minimum(rows.duration, _MOST_SAMPLE_SECONDS * track.timescale)
        starts.append(cts[some])
        stops.append((cts + lasts)[some])
    return _joined(track, np.concatenate(starts), np.concatenate(stops))


def _joined(
    track: Track, starts: npt.NDArray[np.int64], stops: npt.NDArray[np.int64]
) -> list[tuple[int, int]]:
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
        low, high = (track.presentation(at).fraction * _FRAMES_A_SECOND for at in (start, stop))
        first, last = max(0, math.floor(low)), math.ceil(high)
        if last > first:
            spans.append((first, last))
    return spans


def probes_of(
    spans: Sequence[tuple[int, int]], count: int = 8, frames: int = 200
) -> Sequence[tuple[int, int]]:
    """Parts of spans, spread evenly over them; all of them where that is no more.

    Args:
        count, frames: how many, and how long each is at most.
    """
    whole = sum(high - low for low, high in spans)
    if whole <= count * frames:
        return spans
    probes = []
    for number in range(count):
        place = whole * (2 * number + 1) // (2 * count)
        for low, high in spans:
            if place < high - low:
                start = min(max(low, low + place - frames // 2), high - 1)
                probes.append((start, min(high, start + frames)))
                break
            place -= high - low
    return probes
