"""When each word of a text is said: the text laid over the sound.

Every word is a chain of phones, with silence allowed in front of each. The best way through the
chain (Viterbi, all of it kept, nothing pruned) tells when words begin and end. It is looked for
twice, with what sounds all the time taken off and without; where both agree, a time is sure.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fragdex.speech.acoustics import SILENCE, STATES, Acoustics, Floats, model_folder
from fragdex.speech.cutting import FRAME, FRAME_MS, loudness
from fragdex.speech.engines import Sound
from fragdex.speech.vocabulary import Pronunciation, preferred
from fragdex.speech.words import Word

# How English words are said: by the dictionary that pocketsphinx carries, else by their letters.
# Phones are those of the CMU pronouncing dictionary. A guess by letters is good enough to find a
# word among its neighbours, and no more.

_ONES: Final = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS: Final = (
    "zero", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
)  # fmt: skip
_LARGE: Final = ((10**9, "billion"), (10**6, "million"), (1000, "thousand"), (100, "hundred"))
_MOST_DIGITS: Final = 12
"""Longer numbers are said digit by digit."""
_SIGNS: Final = {
    "%": " percent ", "&": " and ", "+": " plus ", "=": " equals ", "@": " at ", "$": " dollars ",
    "£": " pounds ", "€": " euros ", "°": " degrees ",
}  # fmt: skip
_SHORT: Final = {
    "mr": "mister", "mrs": "missus", "dr": "doctor", "st": "saint", "vs": "versus",
    "etc": "et cetera",
}  # fmt: skip
_PARTS: Final = re.compile(r"\d+(?:,\d{3})+|\d+|[a-z']+")
_INNER_Y: Final = re.compile("(?<=[^aeiou])y(?=[^aeiouy])")
_MOST_LETTERS: Final = 60

# Letters to phones where the dictionary does not know a word: the longest match counts.
_LETTERS: Final = {
    "tion": "SH AH N", "sion": "ZH AH N", "ough": "AO", "augh": "AO", "eigh": "EY",
    "igh": "AY", "tch": "CH", "sch": "S K", "dge": "JH", "que": "K",
    "ch": "CH", "sh": "SH", "th": "TH", "ph": "F", "wh": "W", "ck": "K", "ng": "NG", "qu": "K W",
    "kn": "N", "wr": "R", "gh": "G", "ee": "IY", "ea": "IY", "oo": "UW", "ou": "AW", "ow": "OW",
    "oi": "OY", "oy": "OY", "ai": "EY", "ay": "EY", "ey": "IY", "au": "AO", "aw": "AO", "ew": "UW",
    "ie": "IY", "ei": "EY", "oa": "OW", "ue": "UW", "er": "ER", "ir": "ER", "ur": "ER",
    "ar": "AA R", "or": "AO R", "bb": "B", "cc": "K", "dd": "D", "ff": "F", "gg": "G", "ll": "L",
    "mm": "M", "nn": "N", "pp": "P", "rr": "R", "ss": "S", "tt": "T", "zz": "Z",
    "a": "AE", "b": "B", "c": "K", "d": "D", "e": "EH", "f": "F", "g": "G", "h": "HH", "i": "IH",
    "j": "JH", "k": "K", "l": "L", "m": "M", "n": "N", "o": "AA", "p": "P", "q": "K", "r": "R",
    "s": "S", "t": "T", "u": "AH", "v": "V", "w": "W", "x": "K S", "y": "IY", "z": "Z",
}  # fmt: skip


class Pronunciations:
    """The dictionary, looked up where it lies: 130,000 lines are not made into objects.

    Args:
        path: lines of a word and its phones, parted by spaces.
    """

    def __init__(self, path: Path) -> None:
        self._lines = b"\n" + path.read_bytes()
        self.pronunciation = lru_cache(maxsize=4096)(self._pronounced)

    def _pronounced(self, text: str) -> Pronunciation:
        phones: list[str] = []
        known = True
        for word in spoken_words(text):
            pronunciations = self._phones_of(word)
            known &= pronunciations is not None
            phones += self._guess(word) if pronunciations is None else pronunciations
        return Pronunciation(tuple(phones), known)

    def _guess(self, word: str) -> list[str]:
        """Phones of a word that is in no dictionary; without a vowel it is said by its letters."""
        if set(word) & set("aeiouy"):
            return guessed(word)
        return [phone for letter in word for phone in self._line(letter) or guessed(letter)]

    def together(self, texts: Sequence[str]) -> Pronunciation:
        """How texts are said one after the other."""
        parts = [self.pronunciation(text) for text in texts]
        phones = tuple(phone for part in parts for phone in part.phones)
        return Pronunciation(phones, all(part.known for part in parts))

    def _phones_of(self, word: str) -> list[str] | None:
        """Phones of a word of the dictionary, also with an ending that it has not written down."""
        if line := self._line(word):
            return line
        stem, _, ending = word.rpartition("'")
        if stem and (line := self._line(stem)) and ending in ("", "s", "d"):
            return line + {"": [], "s": ["Z"], "d": ["D"]}[ending]
        for ending, phones in (("s", ["Z"]), ("ed", ["D"]), ("ing", ["IH", "NG"])):
            stem = word.removesuffix(ending)
            if len(word) - len(ending) > 2 and stem != word and (line := self._line(stem)):
                return line + phones
        return None

    def _line(self, word: str) -> list[str] | None:
        at = self._lines.find(f"\n{word} ".encode())
        if at < 0:
            return None
        end = self._lines.find(b"\n", at + 1)
        return self._lines[at : len(self._lines) if end < 0 else end].decode().split()[1:]


def spoken_words(text: str) -> list[str]:
    """A word as it is written, as the words that are said: lower case, numbers in letters."""
    plain = unicodedata.normalize("NFKD", text[:_MOST_LETTERS]).lower().replace("’", "'")
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    for sign, word in _SIGNS.items():
        plain = plain.replace(sign, word)
    words: list[str] = []
    for part in _PARTS.findall(plain):
        if part[0].isdigit():
            words += number_in_words(part.replace(",", ""))
        elif part := part.strip("'"):
            words += _SHORT.get(part, part).split()
    return words


def number_in_words(digits: str) -> list[str]:
    """A whole number; a year is said in two parts, and a long number digit by digit."""
    if len(digits) > _MOST_DIGITS or (digits[0] == "0" and len(digits) > 1):
        return [_ONES[int(digit)] for digit in digits[:_MOST_LETTERS]]
    value = int(digits)
    if 1100 <= value < 2000 and value % 100 >= 10:
        return _below_hundred(value // 100) + _below_hundred(value % 100)
    if value == 0:
        return [_ONES[0]]
    words: list[str] = []
    for size, name in _LARGE:
        if value >= size:
            words += [*number_in_words(str(value // size)), name]
            value %= size
    return words + (_below_hundred(value) if value else [])


def _below_hundred(value: int) -> list[str]:
    if value < len(_ONES):
        return [_ONES[value]]
    return [_TENS[value // 10], *([_ONES[value % 10]] if value % 10 else [])]


def guessed(word: str) -> list[str]:
    """Phones of a word by its letters."""
    phones: list[str] = []
    letters = _INNER_Y.sub("i", word.replace("'", ""))
    last: list[str] = []
    if len(letters) > 3 and letters[-1] in "ae":
        last = ["AH"] if letters[-1] == "a" else []
        letters = letters[:-1]
    at = 0
    while at < len(letters):
        for length in (4, 3, 2, 1):
            if match := _LETTERS.get(letters[at : at + length]):
                phones += match.split()
                at += length
                break
        else:
            at += 1
    return phones + last


_PAUSE: Final = -4.0
"""Logarithm of how likely a pause before a word is."""
_SURE_FRAMES: Final = 10.0
"""Frames that two ways to look for a word differ by where its time is half as sure."""
_GUESSED: Final = 0.7
"""How sure a time is at most where the word is not in the dictionary."""
_BY_LOUDNESS: Final = 0.2
"""How sure a time is where words are only spread over what is loud."""
_BESIDE: Final = 5
"""Frames on both sides of the words around an entry of the vocabulary."""
_LETTER_FRAMES: Final = 6
"""Frames of a letter, about, for words that nobody knows how to say."""


_AROUND: Final = 250
"""Frames on both sides of a word by which it is judged whether it was said."""
_USUAL_MISS: Final = 2.5
"""By how much the phones of a text fit worse than the best ones in each frame, in logarithms; and
`_USUAL_GAIN`: what the text gains on one that nobody said, as part of that. About, of speech."""
_USUAL_GAIN: Final = 0.5
_USUAL_FRAMES: Final = 50
"""Frames of usual speech that are counted in addition: a short word alone says little."""
_EVEN: Final = 0.28
"""The gain where it is as likely that the words were said as that they were not: of 672 words that
the default model wrote for five other languages 658 have less, and none of 515 in English, a
quarter of them with noise of 12 dB."""


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

    def words(
        self, sound: Sound, texts: Sequence[str], vocabulary: Sequence[str] = ()
    ) -> list[Word]:
        """Words with their times.

        Args:
            vocabulary: names and terms that are preferred where they fit the sound better.
        """
        frames = len(sound) // FRAME
        if not texts or not frames:
            return [Word(text, 0, 0) for text in texts]
        pronunciations = (
            [self._dictionary.pronunciation(text) for text in texts] if self.exact else []
        )
        needed = STATES * sum(len(one.phones) for one in pronunciations)
        if not 0 < needed <= frames:
            spread = _by_loudness(sound, texts)
            # nobody says so much in so little time
            return [word._replace(doubted=True) for word in spread] if needed else spread
        chain = _Chain(pronunciations, self._acoustics)
        scores = self._acoustics.scores(sound)
        way = chain.way(scores)
        plain = self._acoustics.scores(sound, clean=False)
        others = chain.way(plain).spans
        known = np.zeros(frames, np.bool_)
        for one, (start, stop) in zip(pronunciations, way.spans, strict=True):
            known[start:stop] = one.known
        backwards = _Chain(_backwards(pronunciations), self._acoustics).way(scores)
        said = _said(scores, way, backwards, known)
        words = []
        for text, one, (start, stop), other in zip(
            texts, pronunciations, way.spans, others, strict=True
        ):
            sure = 0.5 ** (abs(start - other[0]) / _SURE_FRAMES)
            sure *= 1.0 if one.known else _GUESSED
            likely = float(said[min(start + stop, 2 * frames - 1) // 2])
            words.append(
                Word(
                    text,
                    start * FRAME_MS,
                    stop * FRAME_MS,
                    confidence=round(likely, 3),
                    time_confidence=round(sure, 3),
                    doubted=likely < 0.5,
                )
            )
        fit = _Fit(self._acoustics, self._dictionary, words, (scores, plain))
        chosen = (
            preferred(texts, vocabulary, self._dictionary.together, fit) if vocabulary else texts
        )
        return words if chosen == texts else self.words(sound, chosen)


def with_vocabulary(
    sounds: Sequence[Sound], heard: list[list[Word]], vocabulary: Sequence[str]
) -> list[list[Word]]:
    """Words of an engine that has no such way of its own, with entries that were said.

    Words and times of utterances in which no entry is preferred stay as they are.
    """
    if not vocabulary:
        return heard
    aligner = Aligner()
    chosen = []
    for sound, words in zip(sounds, heard, strict=True):
        texts = [word.text for word in words]
        aligned = aligner.words(sound, texts, vocabulary)
        same = [word.text for word in aligned] == texts
        chosen.append(words if same else [word._replace(doubted=False) for word in aligned])
    return chosen


class _Fit:
    """How much better other texts fit the sound than words that were written."""

    def __init__(
        self, acoustics: Acoustics, dictionary: Pronunciations, words: Sequence[Word],
        scores: Sequence[Floats],
    ) -> None:  # fmt: skip
        self._acoustics, self._dictionary, self._scores = acoustics, dictionary, scores
        self._words = words
        self._as_written = lru_cache(self._fits)

    def __call__(self, first: int, last: int, texts: Sequence[str]) -> float:
        """What texts gain in place of words [first, last), as `vocabulary.Fit`."""
        if any(word.doubted for word in self._words[first:last]):
            return -math.inf
        written = self._as_written(first, last, None)
        gains = zip(self._fits(first, last, tuple(texts)), written, strict=True)
        return min(new - old for new, old in gains)

    def _fits(self, first: int, last: int, texts: tuple[str, ...] | None) -> list[float]:
        """By each of the scores, of what lies between the middles of the words around."""
        before, after = self._words[:first][-1:], self._words[last:][:1]
        within = self._words[first:last]
        parts = [
            [word.text for word in before],
            [word.text for word in within] if texts is None else texts,
            [word.text for word in after],
        ]
        pronunciations = [self._dictionary.pronunciation(text) for part in parts for text in part]
        edges = [*before, *within, *after]
        low = max(0, edges[0].start_ms // FRAME_MS - _BESIDE)
        high = edges[-1].end_ms // FRAME_MS + _BESIDE
        chain = _Chain(pronunciations, self._acoustics)
        if chain.shortest > min(high, len(self._scores[0])) - low:
            return [-math.inf] * len(self._scores)
        return [float(chain.way(scores[low:high]).fits.sum()) for scores in self._scores]


def _backwards(pronunciations: Sequence[Pronunciation]) -> list[Pronunciation]:
    """A text of the same phones that nobody said: each word from its end to its start."""
    return [Pronunciation(one.phones[::-1], one.known) for one in pronunciations]


def _said(
    scores: Floats, way: _Way, backwards: _Way, known: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    """How likely it is that a text was said, around each frame: float64, shape (frames,).

    Any text is laid over any sound. One that was said fits better than its phones in another
    order; how much better is held against what it misses of the phones that fit best. Words that
    are in no dictionary gain nothing: a model writes those for the sounds of other languages.

    Args:
        way, backwards: of the text, and of `_backwards` of it.
    """
    missed = np.where(way.silent, 0, scores.max(axis=(1, 2)) - way.fits)
    gained = np.where(known | way.silent, way.fits - backwards.fits, 0)

    def around(values: Floats) -> npt.NDArray[np.float64]:
        sums = np.concatenate(([0], np.cumsum(values, dtype=np.float64)))
        frames = np.arange(len(values))
        low, high = np.maximum(frames - _AROUND, 0), np.minimum(frames + _AROUND, len(values))
        return sums[high] - sums[low]

    usual = _USUAL_FRAMES * _USUAL_MISS
    part = np.maximum(around(gained) + _USUAL_GAIN * usual, 0) / (around(missed) + usual)
    return part / (part + _EVEN)


class _Way(NamedTuple):
    """The best way through a chain.

    Attributes:
        spans: frames [start, stop) of each word.
        fits: logarithm of how well each frame fits where the way is.
        silent: whether the way is in a pause.
    """

    spans: list[tuple[int, int]]
    fits: Floats
    silent: npt.NDArray[np.bool_]


class _Chain:
    """States of a text in order.

    Args:
        said: how each word is said; words without a phone take no time.
    """

    def __init__(self, pronunciations: Sequence[Pronunciation], acoustics: Acoustics) -> None:
        index = {name: number for number, name in enumerate(acoustics.phones)}
        phones, firsts = [], []
        for one in pronunciations:
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
        # After a pause comes a word; a word may also follow the one before at once.
        self._skips = silences[1:-1] + 1

    @property
    def shortest(self) -> int:
        """Frames that its words last at least."""
        return len(self._columns) - len(self._silences)

    def way(self, scores: Floats) -> _Way:
        """The best way through the chain."""
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
        on_way = fits[np.arange(frames), places]
        return _Way(self._spans(places), on_way, np.isin(places, self._silences))

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
