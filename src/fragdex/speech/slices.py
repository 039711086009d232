"""One slice of a track, heard by itself, equal to the same part of the whole.

A track is parted near multiples of ten seconds, whatever the slices are: in a pause, or where a cut
hurts least. A slice is some of these units. What an engine is given lies within one unit, so that
it hears the same whichever slice asks; slices can be heard in any order, on any machine, and again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import count, groupby, islice, pairwise
from operator import attrgetter
from typing import Final

import numpy as np

from fragdex import Index, Source, Track
from fragdex.decoding import AudioReader
from fragdex.speech.cutting import (
    FRAME,
    FRAME_MS,
    HARD_CONTEXT,
    PAUSE,
    REACH,
    SAMPLE_RATE,
    UNIT,
    Cut,
    Ints,
    ReadFrames,
    Utterance,
    cut_near,
    joined,
    threshold,
    utterances,
)
from fragdex.speech.diarization import Diarizer, Turn
from fragdex.speech.engines import Engine
from fragdex.speech.plan import STRETCH, TranscriptionPlan, plan_of, probes_of, spans_of
from fragdex.speech.words import SliceTranscript, SpanNote, Word

_BLOCK: Final = 3
"""Units whose utterances are joined for engines that hear in windows."""
_AT_ONCE: Final = 16
"""Utterances that are given to an engine at once, so that it can be stopped between them."""
_MOST_AHEAD: Final = 12_000
"""Frames that are decoded into one piece: two minutes are 4 MB."""
_BESIDE: Final = 10
"""Frames on both sides of a slice, for levels that are smoothed."""
_MIX: Final = 1000 // FRAME_MS
"""Frames for which it is decided how their channels are mixed, from a multiple of them on."""
_PROBES_OF_STRETCH: Final = 6, 1000
"""Parts of a stretch in which it is asked which language is spoken, and frames of each."""
_LEAST_SPEECH: Final = 10 * SAMPLE_RATE
"""Samples in these parts that tell a language; music and single calls do not."""
_CANCELLED: Final = 1 / 100
"""Of the energy of two channels' difference: below it their sum is taken for cancelled (20 dB)."""


class Listener:
    """Hears slices of one track.

    Args:
        index: of the file.
        source: the file.
        track: track_ID; None: the first audio track.
        init: the initialization segment, for segments that have none.

    Raises:
        TrackNotFound, UndecodableMedia: as `fragdex.decoding.audio`.
    """

    def __init__(
        self,
        index: Index,
        source: Source,
        track: int | None = None,
        *,
        init: bytes | None = None,
    ) -> None:
        self._source = source
        self._reader = AudioReader(
            index, source, track=track, rate=SAMPLE_RATE, channels=2, init=init, centre=True
        )

    @property
    def track(self) -> Track:
        """The track that is heard."""
        return self._reader.track

    def read(self, start: int, stop: int) -> Ints:
        """Frames [start, stop)."""
        first, last = start // _MIX * _MIX, -(-stop // _MIX) * _MIX
        seconds = (Fraction(at * FRAME_MS, 1000) for at in (first, last))
        sound = _one_channel(self._reader.read(*seconds))
        return sound[(start - first) * FRAME : (stop - first) * FRAME]

    def plan(
        self,
        work_slice_ms: int,
        engine: Engine,
        language: str | None = None,
        vocabulary: tuple[str, ...] = (),
        report: Callable[[int, int], None] = lambda done, of: None,
    ) -> TranscriptionPlan:
        """How to hear this track.

        Args:
            work_slice_ms: 5,000 to 60,000; also one larger number, for all of it at once.
            engine: open; asked which language is spoken where none is given: of the track, or of
                each stretch where it knows several.
            vocabulary: of `plain_vocabulary`: what is preferred where it is said.
            report: called with how many stretches are asked about; may raise to end it.

        Raises:
            LimitExceeded: it is longer than two days.
        """
        spans = spans_of(self.track, self._reader.samples)
        probes = [self.read(low, high) for low, high in probes_of(spans)]
        block = _BLOCK if engine.window_ms else 1
        quiet = threshold(probes)
        plan = plan_of(self.track.id, work_slice_ms, spans, quiet, language, block, vocabulary)
        if language is not None or not probes:
            return plan
        if len(plan.stretches) > 1 and len(engine.languages or ()) > 1:
            asked, of = count(), len(plan.stretches)

            def detect(own: list[tuple[int, int]]) -> str | None:
                report(next(asked), of)
                sounds = self._speech(probes_of(own, *_PROBES_OF_STRETCH), quiet)
                return engine.detect(sounds) if sum(map(len, sounds)) >= _LEAST_SPEECH else None

            plan = plan.in_languages(spans, detect)
        return plan if plan.language else replace(plan, language=engine.detect(probes))

    def _speech(self, spans: Sequence[tuple[int, int]], quiet: float) -> list[Ints]:
        """The speech in spans of frames."""
        sounds: list[Ints] = []
        for low, high in spans:
            read = self._ahead(low, high)
            sounds += [read(*span) for span in utterances(read, low, high, quiet)]
        return sounds

    def cut(self, plan: TranscriptionPlan, unit: int, read: ReadFrames | None = None) -> Cut:
        """The cut in front of a unit.

        Args:
            read: where its surroundings are at hand; None: they are decoded.
        """
        border = unit * UNIT
        if border <= plan.first_frame:
            return Cut(plan.first_frame, PAUSE)
        if border >= plan.last_frame:
            return Cut(plan.last_frame, PAUSE)
        read = read or self.read
        return cut_near(read, border, REACH, plan.quiet, plan.first_frame, plan.last_frame)

    def speaker_turns(
        self,
        plan: TranscriptionPlan,
        number: int,
        diarizer: Diarizer,
        report: Callable[[int, int], None] = lambda done, of: None,
    ) -> list[Turn]:
        """Who speaks when in a stretch; its voices are numbered by themselves.

        Args:
            number: of `plan.stretches`.
        """
        first, last = (self.cut(plan, (number + more) * STRETCH).frame for more in (0, 1))
        steps = [*range(first, last, _MOST_AHEAD), last]
        parts = [self.read(low, high) for low, high in pairwise(steps)]
        if not parts:
            return []
        turns = diarizer.speech_turns(np.concatenate(parts), report)
        return [turn.later(first * FRAME_MS) for turn in turns]

    def transcribe_slice(
        self,
        plan: TranscriptionPlan,
        number: int,
        engine: Engine,
        report: Callable[[int, int], None] = lambda done, of: None,
    ) -> SliceTranscript:
        """The words of a slice.

        Args:
            plan: of this track.
            number: of the slice.
            engine: open.
            report: called with how many of its utterances are done; may raise to end it.
        """
        first, last = plan.units(number)
        before, after = self.cut(plan, first), self.cut(plan, last)
        read = self._ahead(_context(plan, before)[0], _context(plan, after)[1])
        # What decides of the cuts within lies within, too: decoded once for all.
        cuts = [before, *(self.cut(plan, unit, read) for unit in range(first + 1, last)), after]
        spans = _utterances(plan, first, cuts, read, engine.window_ms // FRAME_MS)
        words: list[Word] = []
        done = 0
        for language, alike in groupby(spans, attrgetter("language")):
            while part := list(islice(alike, _AT_ONCE)):
                report(done, len(spans))
                sounds = [read(span.start, span.stop) for span in part]
                heard = engine.transcribe(sounds, language or plan.language, plan.vocabulary)
                for span, recognized in zip(part, heard, strict=True):
                    words += _words_inside(span, recognized)
                done += len(part)
        report(done, done)
        begin, end = cuts[0].frame * FRAME_MS, cuts[-1].frame * FRAME_MS
        gaps = self._reader.gaps(Fraction(begin, 1000), Fraction(end, 1000))
        missing = [
            SpanNote(
                max(begin, math.floor(gap.start * 1000)),
                min(end, math.ceil(gap.stop * 1000)),
                gap.reason,
            )
            for gap in gaps
        ]
        return SliceTranscript(
            number, tuple(words), tuple(missing), len(spans), self._source.bytes_read
        )

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


def _one_channel(sound: Ints) -> Ints:
    """Both channels in one: their sum, or their difference where they cancel each other.

    Args:
        sound: int16, shape (samples, 2): whole seconds that begin at multiples of a second.

    Returns: int16, shape (samples,).
    """
    pairs = sound.reshape(-1, SAMPLE_RATE, 2).astype(np.float32)
    mid, side = pairs.mean(axis=2), (pairs[..., 0] - pairs[..., 1]) / 2
    cancelled = (mid * mid).sum(axis=1) < _CANCELLED * (side * side).sum(axis=1)
    mid[cancelled] = side[cancelled]
    mixed: Ints = np.rint(mid).astype(np.int16).reshape(-1)
    return mixed


def _context(plan: TranscriptionPlan, cut: Cut) -> tuple[int, int]:
    """Where the unit after a cut begins to listen, and where the one in front of it ends to."""
    beyond = HARD_CONTEXT if cut.hard else 0
    return max(plan.first_frame, cut.frame - beyond), min(plan.last_frame, cut.frame + beyond)


def _utterances(
    plan: TranscriptionPlan, first: int, cuts: Sequence[Cut], read: ReadFrames, window: int
) -> list[Utterance]:
    """The speech between cuts.

    Args:
        first: the unit after the first cut.
        window: frames up to which utterances are heard together; 0: each alone.
    """
    utterances_found: list[Utterance] = []
    block: list[Utterance] = []
    for unit, (before, after) in enumerate(pairwise(cuts), first):
        if unit % plan.block == 0:
            utterances_found += joined(block, window)
            block = []
        low, high = _context(plan, before)[0], _context(plan, after)[1]
        language = plan.language_of(unit) if plan.languages else None
        block += [
            Utterance(start, stop, before.frame, after.frame, language)
            for start, stop in utterances(read, low, high, plan.quiet)
            if start < after.frame and before.frame < stop
        ]
    return utterances_found + joined(block, window)


def _words_inside(span: Utterance, words: Sequence[Word]) -> list[Word]:
    """The words of an utterance that are not those of another one, in the time of the track."""
    later = [word.later(span.start * FRAME_MS)._replace(language=span.language) for word in words]
    begin, end = span.begin * FRAME_MS, span.end * FRAME_MS
    return [word for word in later if 2 * begin <= word.start_ms + word.end_ms < 2 * end]
