"""Who speaks when: turns of voices, found stretch by stretch and matched by how voices sound.

A stretch is ten minutes of the track, from cut to cut: a function of the sound, whatever the slices
are, so that stretches can be heard in any order and on any machine. What is spoken in it is cut
into pieces of a second or two, where it is quietest; pieces that sound alike are one voice
(`voices`). Then some seconds of each voice of every stretch are compared in the same way, and those
that sound alike are one speaker of the whole track.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fragdex.speech import voices
from fragdex.speech.cutting import FRAME, FRAME_MS, SAMPLE_RATE, ReadFrames, loudness, runs, smooth
from fragdex.speech.engines import Sound
from fragdex.speech.moonshine import audible
from fragdex.speech.voices import COLUMNS, DIMENSIONS, OFFSET, STEP, Flags, Floats, Report

_ALIKE: Final = 0.33
"""How much parts of one voice sound alike: at least 0.37, and those of two at most 0.25."""
_MOST_PIECE: Final = 2.4
_EDGE: Final = 0.8
"""Seconds that a longer piece has at least on both sides of where it is cut."""
_MIXED: Final = 0.15
"""How much of a second voice a piece has in it that is cut again."""
_MIXED_EDGE: Final = 0.35
_JUDGED: Final = 1.2
"""Seconds of a piece that are judged, in its middle; more cost more and tell little."""
_LEAST_JUDGED: Final = 0.15
_CLEAR: Final = 0.7
"""Seconds of a piece that may be the first of a voice."""
_LEAST_VOICE: Final = 2.0
"""Judged seconds of a voice that counts: all that it says is said by others where it has less."""
_PAUSE: Final = 6
"""Frames within a turn in which nobody speaks."""
_SAMPLE_MS: Final = 20_000
"""Of each voice of a stretch are heard again to match it."""
_MOST_SAMPLE_MS: Final = 4_000
"""Of one turn."""


class Turn(NamedTuple):
    """Somebody speaks from `start_ms` (inclusive) to `end_ms` (exclusive).

    Attributes:
        voice: a number from 0; within a stretch, or of the track once voices are matched.
    """

    start_ms: int
    end_ms: int
    voice: int

    def later(self, ms: int) -> Turn:
        """The same turn at another time."""
        return self._replace(start_ms=self.start_ms + ms, end_ms=self.end_ms + ms)


class _Piece(NamedTuple):
    """Speech within a column of the segmentation, from frame `start` (inclusive) to `stop`.

    Attributes:
        seconds: that were judged.
        vector: how it sounds; zeros where others speak all the time.
    """

    start: int
    stop: int
    column: int
    seconds: float
    vector: Floats


class Diarizer:
    """Tells voices apart in sound.

    Raises:
        EngineUnavailable: a package is not installed, or carries no model.
    """

    def __init__(self) -> None:
        self._voices = voices.Voices()

    def speech_turns(self, sound: Sound, report: Report = lambda done, of: None) -> list[Turn]:
        """Turns in order of time.

        Args:
            report: called with how many samples are judged, and of how many; may raise to end it.
        """
        stretch = _Stretch(audible(sound), self._voices, report)
        pieces = stretch.pieces()
        clear = [piece for piece in pieces if piece.seconds >= _CLEAR]
        clear = clear or [piece for piece in pieces if piece.seconds]
        if not clear:
            return []
        centres = _centres(clear)
        pieces = stretch.unmixed(pieces, centres)
        for _ in range(2):
            centres = _moved(centres, pieces)
        return sorted(_turns(pieces, centres))

    def likeness(self, sounds: Iterable[Sound]) -> Floats:
        """How a voice sounds in the mean of some sounds in which nobody else speaks."""
        vectors = [
            self._voices.embedding(features)
            for features in (voices.fbank(audible(sound)) for sound in sounds)
            if len(features) * FRAME_MS >= _LEAST_JUDGED * 1000
        ]
        mean: Floats = np.mean(vectors or np.zeros((1, DIMENSIONS)), axis=0, dtype=np.float32)
        return mean


class _Stretch:
    """The sound of a stretch, and its pieces."""

    def __init__(self, sound: Sound, models: voices.Voices, report: Report) -> None:
        self._sound, self._voices, self._report = sound, models, report
        self._active: Flags = models.activity(sound, report)
        self._alone = self._active.sum(axis=1) == 1
        self._levels = smooth(loudness(sound), 9)

    def pieces(self) -> list[_Piece]:
        """All that is spoken, cut where it is quietest."""
        spans = [
            (first, last, column)
            for column in range(COLUMNS)
            for start, stop in runs(self._active[:, column])
            for first, last in self._cut(start, stop)
        ]
        return [self._piece(*span) for span in sorted(spans)]

    def unmixed(self, pieces: Sequence[_Piece], centres: Floats) -> list[_Piece]:
        """Pieces, those of which two voices speak cut again."""
        if len(centres) < 2:
            return list(pieces)
        between = centres @ centres.T
        left, done = list(pieces), []
        while left:
            piece = left.pop()
            alike = centres @ piece.vector
            first, second = np.argsort(-alike)[:2].tolist()
            mixed = float(alike[second] - alike[first] * between[first, second]) > _MIXED
            cut = self._quietest(piece.start, piece.stop, _MIXED_EDGE) if mixed else None
            if cut is None:
                done.append(piece)
            else:
                left.append(self._piece(piece.start, cut, piece.column))
                left.append(self._piece(cut, piece.stop, piece.column))
        return sorted(done, key=lambda piece: piece[:3])

    def _cut(self, start: int, stop: int) -> list[tuple[int, int]]:
        left, done = [(start, stop)], []
        while left:
            first, last = left.pop()
            long = (last - first) * STEP > _MOST_PIECE * SAMPLE_RATE
            cut = self._quietest(first, last, _EDGE) if long else None
            if cut is None:
                done.append((first, last))
            else:
                left += [(first, cut), (cut, last)]
        return done

    def _quietest(self, start: int, stop: int, edge: float) -> int | None:
        """The frame at which it is quietest, so many seconds from both ends; None: too short."""
        low = (start * STEP + OFFSET) // FRAME + round(edge * 1000 / FRAME_MS)
        high = (stop * STEP + OFFSET) // FRAME - round(edge * 1000 / FRAME_MS)
        levels = self._levels[low:high]
        if low >= high or not len(levels):
            return None
        quiet = np.flatnonzero(levels <= levels.min())
        at = ((low + int(quiet[len(quiet) // 2])) * FRAME - OFFSET) // STEP
        return min(max(at, start + 1), stop - 1)

    def _piece(self, start: int, stop: int, column: int) -> _Piece:
        self._report(start * STEP, len(self._sound))
        frames = np.flatnonzero(self._alone[start:stop]) + start
        most = int(_JUDGED * SAMPLE_RATE) // STEP
        frames = frames[max(0, len(frames) - most) // 2 :][:most]
        seconds = len(frames) * STEP / SAMPLE_RATE
        if seconds >= _LEAST_JUDGED:
            first, last = int(frames[0]), int(frames[-1]) + 1
            features = voices.fbank(self._sound[first * STEP + OFFSET : last * STEP + OFFSET])
            middles = first + (np.arange(len(features)) * FRAME + FRAME) // STEP
            features = features[np.isin(middles, frames)]
            if len(features) * FRAME_MS >= _LEAST_JUDGED * 500:
                return _Piece(start, stop, column, seconds, self._voices.embedding(features))
        return _Piece(start, stop, column, 0.0, np.zeros(DIMENSIONS, np.float32))


def _centres(pieces: Sequence[_Piece]) -> Floats:
    """How the voices sound that pieces are of: shape (voices, 256)."""
    vectors = np.stack([piece.vector for piece in pieces])
    seconds = np.array([piece.seconds for piece in pieces])
    groups = grouped(vectors, seconds, parted=np.zeros((len(pieces),) * 2, bool))
    longest = max(seconds[group].sum() for group in groups)
    counted = [group for group in groups if seconds[group].sum() >= min(_LEAST_VOICE, longest)]
    return _unit(np.stack([seconds[group] @ vectors[group] for group in counted]))


def _moved(centres: Floats, pieces: Sequence[_Piece]) -> Floats:
    """The same voices by all pieces that sound most like them."""
    vectors = np.stack([piece.vector for piece in pieces])
    seconds = np.array([piece.seconds for piece in pieces])
    nearest = (vectors @ centres.T).argmax(axis=1)
    sums = [seconds[nearest == n] @ vectors[nearest == n] for n in range(len(centres))]
    return _unit(np.where(np.any(sums, axis=1, keepdims=True), sums, centres))


def _unit(vectors: npt.NDArray[Any]) -> Floats:
    norms = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    units: Floats = (vectors / norms).astype(np.float32)
    return units


def _turns(pieces: Sequence[_Piece], centres: Floats) -> Iterator[Turn]:
    """Turns of the voices that pieces sound most like."""
    heard = [piece for piece in pieces if piece.seconds]
    spans: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for piece in pieces:
        near = piece
        if not piece.seconds:  # as what is nearest in its column, where others do not speak
            beside = [one for one in heard if one.column == piece.column] or heard
            near = min(beside, key=lambda one: max(one.start - piece.stop, piece.start - one.stop))
        spans[int((centres @ near.vector).argmax())].append(piece[:2])
    for voice, of_voice in spans.items():
        start, end = of_voice[0]
        for first, stop in [*of_voice[1:], (1 << 60, 0)]:
            if first <= end + _PAUSE:
                end = max(end, stop)
                continue
            yield Turn(_ms(start), _ms(end), voice)
            start, end = first, stop


def _ms(frame: int) -> int:
    return (frame * STEP + OFFSET) * 1000 // SAMPLE_RATE


def grouped(vectors: Floats, weights: npt.NDArray[np.float64], *, parted: Flags) -> list[list[int]]:
    """Groups of what sounds alike, the most alike put together first (centroid linkage)."""
    groups: list[list[int]] = [[n] for n in range(len(vectors))]
    sums, parted = vectors * weights[:, None], parted | np.eye(len(vectors), dtype=bool)
    units = _unit(sums)
    alike = np.where(parted, -np.inf, units @ units.T)
    while alike.size:
        one, other = sorted(divmod(int(alike.argmax()), len(alike)))
        if alike[one, other] < _ALIKE:
            break
        groups[one] += groups[other]
        groups[other] = []
        sums[one] += sums[other]
        units[one] = _unit(sums[[one]])[0]
        parted[one] |= parted[other]
        parted[:, one] |= parted[:, other]
        parted[other] = parted[:, other] = True
        alike[one] = alike[:, one] = np.where(parted[one], -np.inf, units @ units[one])
        alike[other] = alike[:, other] = -np.inf
    return [group for group in groups if group]


def matched(
    stretches: Sequence[Sequence[Turn]],
    read: ReadFrames,
    diarizer: Diarizer,
    report: Report = lambda done, of: None,
) -> list[Turn]:
    """The turns of all stretches, in which a voice has one number."""
    samples = [
        (number, voice, turns)
        for number, stretch in enumerate(stretches)
        for voice, turns in sorted(_clearest(stretch).items())
    ]
    if sum(bool(stretch) for stretch in stretches) < 2:
        return [turn for stretch in stretches for turn in stretch]
    vectors = np.zeros((len(samples), DIMENSIONS), np.float32)
    for place, (_, _, turns) in enumerate(samples):
        report(place, len(samples))
        vectors[place] = diarizer.likeness(
            read(turn.start_ms // FRAME_MS, -(-turn.end_ms // FRAME_MS)) for turn in turns
        )
    stretch_of = np.array([number for number, _, _ in samples])
    groups = grouped(vectors, np.ones(len(samples)), parted=stretch_of[:, None] == stretch_of)
    numbers = {samples[place][:2]: number for number, group in enumerate(groups) for place in group}
    return sorted(
        turn._replace(voice=numbers[number, turn.voice])
        for number, stretch in enumerate(stretches)
        for turn in stretch
    )


def _clearest(turns: Sequence[Turn]) -> dict[int, list[Turn]]:
    """Of each voice some seconds of the longest turns in which nobody else speaks."""
    alone: dict[int, list[Turn]] = defaultdict(list)
    for turn in turns:
        alone[turn.voice] += _without(turn, [one for one in turns if one.voice != turn.voice])
    chosen: dict[int, list[Turn]] = {}
    for voice, parts in alone.items():
        left = _SAMPLE_MS
        chosen[voice] = []
        for part in sorted(parts, key=lambda one: (one.start_ms - one.end_ms, one.start_ms)):
            if left <= 0:
                break
            end = min(part.end_ms, part.start_ms + min(left, _MOST_SAMPLE_MS))
            chosen[voice].append(part._replace(end_ms=end))
            left -= end - part.start_ms
    return chosen


def _without(turn: Turn, others: Sequence[Turn]) -> list[Turn]:
    """The parts of a turn in which nobody else speaks; all of it where there are none."""
    edges = [(turn.start_ms, turn.start_ms), (turn.end_ms, turn.end_ms)]
    edges += [(one.start_ms, one.end_ms) for one in others]
    parts, at = [], turn.start_ms
    for start, stop in sorted(edges):
        low, high = max(at, turn.start_ms), min(start, turn.end_ms)
        if high > low:
            parts.append(turn._replace(start_ms=low, end_ms=high))
        at = max(at, stop)
    return parts or [turn]
