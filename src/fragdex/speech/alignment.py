"""When each word of a text is said: the text laid over the sound.

Every word is a chain of phones, with silence allowed in front of each. The best way through the
chain (Viterbi, all of it kept, nothing pruned) tells when words begin and end. It is looked for
twice, with what sounds all the time taken off and without; where both agree, a time is sure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from fragdex.speech.acoustics import SILENCE, STATES, Acoustics, Floats, model_folder
from fragdex.speech.cutting import FRAME, FRAME_MS, loudness
from fragdex.speech.engines import Sound
from fragdex.speech.pronunciation import Pronunciations, Said
from fragdex.speech.words import Word

_PAUSE: Final = -4.0
"""Logarithm of how likely a pause before a word is."""
_SURE_FRAMES: Final = 10.0
"""Frames that two ways to look for a word differ by where its time is half as sure."""
_GUESSED: Final = 0.7
"""How sure a time is at most where the word is not in the dictionary."""
_BY_LOUDNESS: Final = 0.2
"""How sure a time is where words are only spread over what is loud."""
_LETTER_FRAMES: Final = 6
"""Frames of a letter, about, for words that nobody knows how to say."""


class Aligner:
    """Finds the words of a text in sound.

    By the acoustic model of pocketsphinx where it is here, else by letters and loudness alone.

    Attributes:
        exact: whether there is an acoustic model.
    """

    def __init__(self) -> None:
        folder = model_folder()
        self.exact = folder is not None
        if folder is not None:
            self._acoustics = Acoustics(folder / "en-us")
            self._dictionary = Pronunciations(folder / "cmudict-en-us.dict")

    def words(self, sound: Sound, texts: Sequence[str]) -> list[Word]:
        """Words with their times.

        Args:
            sound: in which all of them are said.
            texts: words as they are written, in order.
        """
        frames = len(sound) // FRAME
        if not texts or not frames:
            return [Word(text, 0, 0) for text in texts]
        said = [self._dictionary.said(text) for text in texts] if self.exact else []
        needed = STATES * sum(len(one.phones) for one in said)
        if not 0 < needed <= frames:
            return _by_loudness(sound, texts)
        chain = _Chain(said, self._acoustics)
        scores = self._acoustics.scores(sound)
        spans = chain.way(scores)
        others = chain.way(self._acoustics.scores(sound, clean=False))
        words = []
        for text, one, (start, stop), other in zip(texts, said, spans, others, strict=True):
            sure = 0.5 ** (abs(start - other[0]) / _SURE_FRAMES)
            sure *= 1.0 if one.known else _GUESSED
            words.append(
                Word(text, start * FRAME_MS, stop * FRAME_MS, time_confidence=round(sure, 3))
            )
        return words


class _Chain:
    """States of a text in order.

    Args:
        said: how each word is said; words without a phone take no time.
    """

    def __init__(self, said: Sequence[Said], acoustics: Acoustics) -> None:
        index = {name: number for number, name in enumerate(acoustics.phones)}
        phones, firsts = [], []
        for one in said:
            phones.append((index[SILENCE], True))
            firsts.append(len(phones))
            phones += [(index[name], False) for name in one.phones if name in index]
        phones.append((index[SILENCE], True))
        # Silence is one state, a phone three.
        self._columns: list[tuple[int, int]] = []
        begins = []
        for phone, silent in phones:
            begins.append(len(self._columns))
            self._columns += [(phone, state) for state in ((1,) if silent else range(STATES))]
        self._firsts = [begins[first] for first in firsts]
        after = [*firsts[1:], len(phones)]
        self._lasts = [begins[stop - 1] - 1 for stop in after]
        silences = np.array([begins[at] for at, (_, silent) in enumerate(phones) if silent])
        self._silences = silences
        # Behind a pause comes a word; a word may also follow the one before at once.
        self._skips = silences[1:-1] + 1

    def way(self, scores: Floats) -> list[tuple[int, int]]:
        """Frames [start, stop) of each word on the best way through the chain."""
        phone = np.array([column[0] for column in self._columns])
        state = np.array([column[1] for column in self._columns])
        fits = scores[:, phone, state]
        # However silence sounds at its edges, it is silence.
        silent = scores[:, phone[self._silences[0]]].max(axis=1)
        fits[:, self._silences] = silent[:, None]
        frames, count = fits.shape
        best = np.full(count, -math.inf)
        best[:2] = fits[0, :2]
        came = np.zeros((frames, count), np.int8)
        skips = self._skips
        for frame in range(1, frames):
            moved = np.concatenate(([-math.inf], best[:-1]))
            moved[self._silences] += _PAUSE
            came[frame] = moved > best
            chosen = np.maximum(moved, best)
            if len(skips):
                over = best[skips - 2]
                better = over > chosen[skips]
                came[frame, skips[better]] = 2
                chosen[skips] = np.maximum(over, chosen[skips])
            best = chosen + fits[frame]
        at = count - 1 if best[-1] >= best[-2] else count - 2
        places = np.zeros(frames, np.int64)
        for frame in reversed(range(frames)):
            places[frame] = at
            at -= int(came[frame, at])
        return self._spans(places)

    def _spans(self, places: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
        starts = np.searchsorted(places, self._firsts)
        stops = np.searchsorted(places, np.array(self._lasts) + 1)
        spans = zip(starts.tolist(), stops.tolist(), strict=True)
        return [(start, max(start, stop)) for start, stop in spans]


def _by_loudness(sound: Sound, texts: Sequence[str]) -> list[Word]:
    """Words spread over what is loud, by the number of their letters."""
    levels = loudness(sound)
    low, high = np.percentile(levels, [5, 95])
    heard = np.flatnonzero(levels > low + 0.4 * (high - low))
    if len(heard) < len(texts):
        heard = np.arange(len(levels))
    letters = np.cumsum([0, *(len(text) + 1 for text in texts)])
    edges = letters * (len(heard) - 1) // letters[-1]
    words = []
    for text, first, last in zip(texts, edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        start, stop = int(heard[first]), int(heard[max(first, last - 1)]) + 1
        stop = min(stop, start + _LETTER_FRAMES * (len(text) + 2))
        words.append(Word(text, start * FRAME_MS, stop * FRAME_MS, time_confidence=_BY_LOUDNESS))
    return words
