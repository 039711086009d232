"""Who speaks when: turns of voices, found stretch by stretch and matched by how voices sound.

The library of `moonshine-voice` tells voices apart (pyannote's community-1, CC BY 4.0), whichever
engine hears the words. A stretch is ten minutes of the track, from cut to cut: a function of the
sound, whatever the slices are, so that stretches can be heard in any order and on any machine.
Within one, voices are numbered by themselves; then some seconds of each voice of every stretch are
heard one after the other, and those that sound alike are one speaker of the whole track.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from fragdex.errors import EngineUnavailable, InvalidRequest, Unprocessable
from fragdex.speech.cutting import FRAME_MS, SAMPLE_RATE, ReadFrames
from fragdex.speech.engines import Sound, required_package
from fragdex.speech.moonshine import VoiceDetector, audible, built_in_model
from fragdex.speech.words import Word

MOST_NAME: Final = 60
"""Characters of a speaker's name."""
_WINDOW: Final = 10
"""Seconds that the library judges at once."""
_LEAST_STEP, _MOST_STEP = 1.0, 5.0
"""Seconds from one window to the next: each costs as much, and the fewer of them there are, the
likelier two voices are taken for one."""
_ENOUGH: Final = 120
"""Windows."""
_SAMPLE_SECONDS: Final = 60
"""Of each voice of a stretch are heard again to match it."""
_OPTIONS: Final = {
    "identify_speakers": "true",
    "skip_transcription": "true",
    "return_audio_data": "false",
    "vad_threshold": 0.0,
    "vad_max_segment_duration": 60.0,
    # Voices are told apart when a stretch is over, by all of it.
    "diarization_cluster_cadence": 1e6,
    "diarization_cluster_window_sec": 1e6,
}
_NEVER: Final = 1e9
_PIECE: Final = _WINDOW * SAMPLE_RATE
_MINUTE: Final = 60 * SAMPLE_RATE
_FAR_MS: Final = 2_000
"""From a turn: words there have no speaker."""
_BETWEEN: Final = SAMPLE_RATE // 5
_ADVICE: Final = "pip install 'fragdex[speech]'"

Report = Callable[[int, int], None]


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


def diarization_model() -> Path:
    """The folder that the library wants to see.

    Raises:
        EngineUnavailable: the package is not installed, or carries no model.
    """
    try:
        version = required_package("moonshine")
    except EngineUnavailable as error:
        raise EngineUnavailable(
            "speakers are told apart by moonshine-voice, which is not installed", advice=_ADVICE
        ) from error
    folder = built_in_model()
    if folder is None:
        raise EngineUnavailable(
            f"moonshine-voice {version} carries no model", advice=_ADVICE,
            expected="a version up to 0.0.73, which fragdex[speech] installs",
        )  # fmt: skip
    return folder


class Diarizer:
    """Tells voices apart in sound.

    Raises:
        EngineUnavailable: the package is not installed, or carries no model.
    """

    def __init__(self) -> None:
        folder = diarization_model()
        from moonshine_voice.errors import MoonshineError
        from moonshine_voice.moonshine_api import ModelArch
        from moonshine_voice.transcriber import Transcriber

        def library(step: float) -> Any:
            options = {**_OPTIONS, "diarization_analyze_cadence": step}
            return Transcriber(str(folder), ModelArch.TINY, options=options)

        self._library, self._refusal, self._voice = library, MoonshineError, VoiceDetector()
        try:
            library(_MOST_STEP).close()
        except MoonshineError as error:
            raise EngineUnavailable(
                "this moonshine-voice does not tell speakers apart",
                expected="version 0.0.73", found=required_package("moonshine"), advice=_ADVICE,
            ) from error  # fmt: skip

    def speech_turns(self, sound: Sound, report: Report = lambda done, of: None) -> list[Turn]:
        """Turns in order of time; what is no speech is not looked at.

        Args:
            sound: some minutes.
            report: called with how many samples are judged, and of how many; may raise to end it.
        """
        sound = audible(sound)
        spans = [
            (at + first, at + stop)
            for at in range(0, len(sound), _MINUTE)
            for first, stop in self._voice.spans(sound[at : at + _MINUTE])
        ]
        if not spans:
            return []
        speech = np.concatenate([sound[first:stop] for first, stop in spans])
        turns = self.turns(speech, report)
        return sorted(_moved_back(turns, spans))

    def turns(self, sound: Sound, report: Report = lambda done, of: None) -> list[Turn]:
        """Turns of all that a sound is."""
        seconds = len(sound) / SAMPLE_RATE
        library = self._library(min(max(_LEAST_STEP, seconds / _ENOUGH), _MOST_STEP))
        stream = library.create_stream(update_interval=_NEVER)
        try:
            stream.start()
            for at in range(0, len(sound), _PIECE):
                report(at, len(sound))
                stream.add_audio(sound[at : at + _PIECE] / np.float32(32768), SAMPLE_RATE)
                stream.update_transcription()
            result = stream.stop()
        except self._refusal as error:
            raise Unprocessable(f"speakers cannot be told apart: {error}") from error
        finally:
            stream.close()
            library.close()
        if result is None:
            raise Unprocessable("speakers cannot be told apart in this sound")
        spans = [span for line in result.lines for span in line.speaker_spans or ()]
        turns = {
            Turn(
                round(span.start_time * 1000),
                round((span.start_time + span.duration) * 1000),
                int(span.speaker_index),
            )
            for span in spans
        }
        return sorted(turns)


def _moved_back(turns: Iterable[Turn], spans: Sequence[tuple[int, int]]) -> Iterator[Turn]:
    """Turns in parts of a sound that were put together, at their times in the whole.

    Args:
        spans: samples [start, stop) of each part.

    >>> list(_moved_back([Turn(500, 1500, 0)], [(16_000, 32_000), (48_000, 64_000)]))
    [Turn(start_ms=1500, end_ms=2000, voice=0), Turn(start_ms=3000, end_ms=3500, voice=0)]
    """
    begin = 0
    for first, stop in spans:
        end = begin + (stop - first) * 1000 // SAMPLE_RATE
        later = first * 1000 // SAMPLE_RATE - begin
        for turn in turns:
            low, high = max(turn.start_ms, begin), min(turn.end_ms, end)
            if low < high:
                yield Turn(low + later, high + later, turn.voice)
        begin = end


def matched(
    stretches: Sequence[Sequence[Turn]],
    read: ReadFrames,
    diarizer: Diarizer,
    report: Report = lambda done, of: None,
) -> list[Turn]:
    """The turns of all stretches, in which a voice has one number.

    Args:
        stretches: turns of each, at their times in the track; each numbers voices by itself.
        read: the sound of the track.
    """
    samples = [
        (number, voice, turns)
        for number, stretch in enumerate(stretches)
        for voice, turns in sorted(_clearest(stretch).items())
    ]
    if sum(bool(stretch) for stretch in stretches) < 2:
        return [turn for stretch in stretches for turn in stretch]
    sounds = [_sample(turns, read) for _, _, turns in samples]
    heard = diarizer.turns(np.concatenate(sounds), report)
    numbers: dict[tuple[int, int], int] = {}
    end = 0
    for place, (number, voice, _) in enumerate(samples):
        lasts: dict[int, int] = defaultdict(int)
        begin, end = end, end + len(sounds[place]) * 1000 // SAMPLE_RATE
        for turn in heard:
            lasts[turn.voice] += max(0, min(turn.end_ms, end) - max(turn.start_ms, begin))
        best = max(lasts, key=lambda one: (lasts[one], -one), default=0)
        # what has no voice in it is nobody else's
        numbers[number, voice] = best if lasts.get(best) else len(samples) + place
    return sorted(
        turn._replace(voice=numbers[number, turn.voice])
        for number, stretch in enumerate(stretches)
        for turn in stretch
    )


def _clearest(turns: Sequence[Turn]) -> dict[int, list[Turn]]:
    """Of each voice the longest turns in which nobody else speaks, for a minute together."""
    alone: dict[int, list[Turn]] = defaultdict(list)
    for turn in turns:
        alone[turn.voice] += _without(turn, [one for one in turns if one.voice != turn.voice])
    chosen: dict[int, list[Turn]] = {}
    for voice, parts in alone.items():
        left = _SAMPLE_SECONDS * 1000
        chosen[voice] = []
        for part in sorted(parts, key=lambda one: (one.start_ms - one.end_ms, one.start_ms)):
            if left <= 0:
                break
            end = min(part.end_ms, part.start_ms + left)
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


def _sample(turns: Sequence[Turn], read: ReadFrames) -> Sound:
    """Turns one after the other, with a little quiet after each."""
    quiet = np.zeros(_BETWEEN, np.int16)
    parts: list[Sound] = []
    for turn in turns:
        parts += [read(turn.start_ms // FRAME_MS, -(-turn.end_ms // FRAME_MS)), quiet]
    return audible(np.concatenate(parts))


def numbered(turns: Iterable[Turn], words: Sequence[Word]) -> list[Turn]:
    """Turns by time, their voices numbered in the order in which they first say a word.

    >>> numbered([Turn(0, 100, 7), Turn(200, 300, 2)], [Word("Yes.", 210, 290)])
    [Turn(start_ms=0, end_ms=100, voice=1), Turn(start_ms=200, end_ms=300, voice=0)]
    """
    ordered = sorted(turns)
    voices = [*_voices_of(words, ordered), *(turn.voice for turn in ordered)]
    numbers = {
        voice: n for n, voice in enumerate(dict.fromkeys(v for v in voices if v is not None))
    }
    return [turn._replace(voice=numbers[turn.voice]) for turn in ordered]


def with_speakers(words: Sequence[Word], turns: Sequence[Turn]) -> list[Word]:
    """Words with who says each, S1, S2 …: a function of the word and the turns around it.

    A word is said by the voice that speaks for most of its time, of two that speak for as much by
    the one that began first; where nobody does, by whoever speaks next to it, if that is near.

    Args:
        turns: as `numbered` gives them.

    >>> words = Word("Yes?", 0, 400), Word("No.", 500, 900)
    >>> [word.speaker for word in with_speakers(words, [Turn(0, 440, 0), Turn(450, 950, 1)])]
    ['S1', 'S2']
    """
    return [
        word if voice is None else word._replace(speaker=f"S{voice + 1}")
        for word, voice in zip(words, _voices_of(words, turns), strict=True)
    ]


def speaker_ids(count: int) -> list[str]:
    """The first speakers.

    >>> speaker_ids(2)
    ['S1', 'S2']
    """
    return [f"S{number}" for number in range(1, count + 1)]


def _voices_of(words: Sequence[Word], turns: Sequence[Turn]) -> list[int | None]:
    """Who says each word.

    Args:
        turns: by time.
    """
    longest = max((turn.end_ms - turn.start_ms for turn in turns), default=0) + _FAR_MS
    starts = np.array([turn.start_ms for turn in turns])
    voices = []
    for word in words:
        low = int(np.searchsorted(starts, word.start_ms - longest))
        high = int(np.searchsorted(starts, word.end_ms + _FAR_MS, side="right"))
        voices.append(_voice_of(word, turns[low:high]))
    return voices


def _voice_of(word: Word, turns: Sequence[Turn]) -> int | None:
    """Who says a word, of those whose turns are near."""
    lasts: dict[int, int] = defaultdict(int)
    near: dict[int, int] = {}
    for turn in turns:
        both = min(turn.end_ms, word.end_ms) - max(turn.start_ms, word.start_ms)
        lasts[turn.voice] += max(0, both)
        near[turn.voice] = max(near.get(turn.voice, both), both)
    # of equal ones `max` takes the first: turns come by time
    best = max(near, key=lambda one: (lasts[one], near[one]), default=None)
    return None if best is None or near[best] < -_FAR_MS else best


def speaker_names(given: Mapping[str, str], speakers: Sequence[str]) -> dict[str, str]:
    """A table of names, checked and without line breaks.

    Args:
        given: names by speaker.
        speakers: those that there are.

    Raises:
        InvalidRequest: there is no such speaker, or a name is empty or too long.

    >>> speaker_names({"S1": " Ada  Lovelace "}, ["S1", "S2"])
    {'S1': 'Ada Lovelace'}
    """
    names = {}
    for speaker, name in given.items():
        if speaker not in speakers:
            raise InvalidRequest(
                "there is no such speaker", pointer=f"/names/{speaker}",
                expected=f"one of {', '.join(speakers)}" if speakers else "none: nobody speaks",
                found=speaker,
            )  # fmt: skip
        names[speaker] = plain_name(name, f"/names/{speaker}")
    return names


def plain_name(name: str, pointer: str = "/speaker") -> str:
    """A name as one line.

    Raises:
        InvalidRequest: it is empty, longer than `MOST_NAME`, or has control characters.
    """
    plain = " ".join(name.split())
    if not 0 < len(plain) <= MOST_NAME or not plain.isprintable():
        raise InvalidRequest(
            "this cannot be a speaker's name", pointer=pointer,
            expected=f"1 to {MOST_NAME} printable characters", found=repr(name[:80]),
        )  # fmt: skip
    return plain
