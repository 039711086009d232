"""Words with who says them, and speakers with their names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from fragdex.errors import InvalidRequest
from fragdex.speech.diarization import Turn
from fragdex.speech.words import Word

MOST_NAME: Final = 60
"""Characters of a speaker's name."""
_FAR_MS: Final = 2_000
"""From a turn: words there have no speaker."""


def numbered(turns: Iterable[Turn], words: Sequence[Word]) -> list[Turn]:
    """Turns by time, their voices numbered in the order in which they first say a word."""
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
    """
    return [
        word if voice is None else word._replace(speaker=f"S{voice + 1}")
        for word, voice in zip(words, _voices_of(words, turns), strict=True)
    ]


def speaker_ids(count: int) -> list[str]:
    """The first speakers."""
    return [f"S{number}" for number in range(1, count + 1)]


def _voices_of(words: Sequence[Word], turns: Sequence[Turn]) -> list[int | None]:
    """Who says each word."""
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

    Raises:
        InvalidRequest: there is no such speaker, or a name is empty or too long.
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
    """A name as one line."""
    plain = " ".join(name.split())
    if not 0 < len(plain) <= MOST_NAME or not plain.isprintable():
        raise InvalidRequest(
            "this cannot be a speaker's name", pointer=pointer,
            expected=f"1 to {MOST_NAME} printable characters", found=repr(name[:80]),
        )  # fmt: skip
    return plain
