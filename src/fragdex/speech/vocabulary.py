"""Names and terms that a transcription prefers where they were said.

An engine that does not know a name writes what it knows instead. Where the sounds of an entry are
near those of the words that were written, both are laid over the sound, and the entry is taken if
it fits better: by much more where the words are words of the language, which were written for a
reason, and by less where no dictionary has them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from difflib import SequenceMatcher
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np

from fragdex.errors import InvalidRequest
from fragdex.speech.words import SENTENCE_ENDS, Word

MOST_ENTRIES: Final = 500
MOST_LETTERS: Final = 60
"""Characters of an entry."""
MOST_BYTES: Final = 1 << 17
"""Of a file of entries; all that is allowed fits in."""
_MOST_WORDS: Final = 4
"""Words that were written in place of an entry, and of an entry."""
_SPACE: Final = r"[ \t\r\n\u00a0]"
_WORD: Final = r"[^\x00-\x20\x7f-\xa0]"
_LETTER: Final = r"[^\x00-@\[-`{-\xbf\xd7\xf7]"
ENTRY: Final = (
    rf"(?=[^\x00]*{_LETTER}|{_SPACE}*$)"
    rf"{_SPACE}*(?:{_WORD}+{_SPACE}+){{0,{_MOST_WORDS - 1}}}{_WORD}*{_SPACE}*"
)
"""An entry in a request, as `written_as` takes it: at most four words with a letter, or nothing."""
_CHANGES: Final = 2
"""An entry is near where at most one of so many of its phones differs."""
_MOST_TRIED: Final = 60
"""Places that are laid over the sound, of those at hand, for half a minute of sound at most."""
_MOST_COMPARED: Final = 500
"""Pairs of words and entries whose phones are compared one by one."""
_KNOWN_GAIN: Final = 35.0
_GAIN_OF_PHONE: Final = 20.0
"""By how much an entry must fit better than words of the dictionary, and at least by so much for
each phone that differs, as a logarithm, twice: with what sounds all the time taken off, and
without. Of 912 pairs of a word that was said and one that differs from it by one phone, a third of
them each clean, by telephone and in noise, the word that was said lost by 35 in 2: one was
misspelt, one said by telephone."""
_GUESSED_GAIN: Final = 5.0
"""The same where the words are not in the dictionary, or written as a name. Of 50 entries none that
was not said reached -1 in 198 sentences."""

_ALIKE: Final = 0.5
"""Of letters that what an engine hears by hints shares with what it hears alone."""

Fit = Callable[[int, int, Sequence[str]], float]
"""What texts in place of words [first, last) gain, as a logarithm."""


def plain_vocabulary(entries: Iterable[str]) -> tuple[str, ...]:
    """Entries as they are used: each once, without spaces around them; empty ones left out.

    Raises:
        InvalidRequest: too many, too long, or no text; names the field `vocabulary`.
    """
    given = list(entries)
    plain = list(filter(None, dict.fromkeys(map(_plain, given))))
    wrong = next((entry for entry in given if not _is_entry(entry)), None)
    if wrong is not None or len(plain) > MOST_ENTRIES:
        raise InvalidRequest(
            "the vocabulary cannot be used",
            pointer="/vocabulary",
            expected=f"at most {MOST_ENTRIES} entries, each of 1 to {_MOST_WORDS} words and at most"
            f" {MOST_LETTERS} characters, at least one of them a letter",
            found=f"{len(plain)} entries" if wrong is None else ascii(wrong[: MOST_LETTERS + 1]),
        )
    return tuple(plain)


def _plain(entry: str) -> str:
    # What cannot be seen, such as a space of no width, is no part of a word.
    words = ("".join(filter(str.isprintable, word)) for word in re.split(_SPACE, entry))
    return " ".join(filter(None, words))


def _is_entry(entry: str) -> bool:
    return len(_plain(entry)) <= MOST_LETTERS and re.fullmatch(ENTRY, entry) is not None


class Pronunciation(NamedTuple):
    """How a text is said.

    Attributes:
        phones: in order; none where there is nothing to say.
        known: whether the dictionary tells all of it.
    """

    phones: tuple[str, ...]
    known: bool


class _Choice(NamedTuple):
    """An entry in place of words [first, last)."""

    gain: float
    first: int
    last: int
    texts: list[str]


def preferred(
    texts: Sequence[str],
    vocabulary: Sequence[str],
    spoken: Callable[[Sequence[str]], Pronunciation],
    fit: Fit,
) -> list[str]:
    """Texts with entries of a vocabulary where they were said.

    Args:
        fit: how much better other texts fit the sound than the words of a span.
    """
    entries = [ending for entry in vocabulary for ending in (entry, f"{entry}'s")]
    spans = [
        (first, last)
        for first in range(len(texts))
        for last in range(first + 1, min(first + _MOST_WORDS, len(texts)) + 1)
        if last == first + 1 or not any(map(_ends, texts[first : last - 1]))
    ]
    written = [spoken(texts[first:last]) for first, last in spans]
    said = [spoken(entry.split()).phones for entry in entries]
    choices: list[_Choice] = []
    tried = 0
    for at, number, far in _nearest([one.phones for one in written], said):
        (first, last), entry = spans[at], entries[number]
        if entry.endswith("'s") and not _bare(texts[last - 1]).endswith("s"):
            continue
        if _bare(texts[first:last]) == _bare([entry]):
            # A name of which only the capitals differ; of a word of the language they may be right.
            if not written[at].known:
                choices.append(_Choice(np.inf, first, last, _dressed(entry, texts[first:last])))
            continue
        guessed = not written[at].known or _is_name(texts, first, last)
        if (not far and not guessed) or tried >= _MOST_TRIED:
            continue
        tried += far > 0
        gain = fit(first, last, entry.split()) if far else 0.0
        least = max(_KNOWN_GAIN, far * _GAIN_OF_PHONE)
        if guessed:
            least = _GUESSED_GAIN if far else 0.0
        if gain >= least:
            choices.append(_Choice(gain, first, last, _dressed(entry, texts[first:last])))
    return _replaced(texts, choices)


def agreed(alone: Sequence[Word], hinted: Sequence[Word], vocabulary: Sequence[str]) -> list[Word]:
    """What an engine hears alone, with entries where it hears them by hints and nearly so alone."""
    entries = {_bare([entry]) for entry in vocabulary}
    bare = [[_bare([word.text]) for word in words] for words in (alone, hinted)]
    matcher = SequenceMatcher(None, bare[0], bare[1], autojunk=False)
    result: list[Word] = []
    for what, low, high, first, last in matcher.get_opcodes():
        spans = combinations(range(first, last + 1), 2)
        has_entry = any("".join(bare[1][start:stop]) in entries for start, stop in spans)
        one, other = "".join(bare[0][low:high]), "".join(bare[1][first:last])
        near = SequenceMatcher(None, one, other, autojunk=False).ratio() >= _ALIKE
        taken = what == "replace" and has_entry and near
        result += hinted[first:last] if taken else alone[low:high]
    return result


def _replaced(texts: Sequence[str], choices: list[_Choice]) -> list[str]:
    """Texts with choices, the best first; of those that overlap the others are left."""
    result: list[list[str]] = [[text] for text in texts]
    taken = np.zeros(len(texts), bool)
    for _, first, last, words in sorted(choices, key=lambda one: (-one.gain, one.first)):
        if not taken[first:last].any():
            taken[first:last] = True
            result[first:last] = [words, *([] for _ in range(first + 1, last))]
    return [text for part in result for text in part]


def _ends(text: str) -> bool:
    return text.endswith((*SENTENCE_ENDS, ",", ";", ":"))


def _bare(texts: Iterable[str]) -> str:
    return "".join(letter for letter in "".join(texts).casefold() if letter.isalnum())


def _is_name(texts: Sequence[str], first: int, last: int) -> bool:
    """Whether words are written as names: with capitals in the middle of a sentence."""
    begins = first == 0 or texts[first - 1].endswith(SENTENCE_ENDS)
    return not begins and all(text[:1].isupper() and text != "I" for text in texts[first:last])


def _dressed(entry: str, texts: Sequence[str]) -> list[str]:
    """An entry with the marks around the words in whose place it stands."""
    before, after = texts[0], texts[-1]
    front = before[: next((n for n, letter in enumerate(before) if letter.isalnum()), 0)]
    tail = next((n for n, letter in enumerate(reversed(after)) if letter.isalnum()), 0)
    return f"{front}{entry}{after[len(after) - tail :]}".split()


def _nearest(
    written: Sequence[Sequence[str]], entries: Sequence[Sequence[str]]
) -> list[tuple[int, int, int]]:
    """Places of phones that differ little: of what was written, of the entry, and the distance.

    Those that differ least come first. How often each phone is there tells the least distance that
    there can be; only those that are near by that are compared.
    """
    names = sorted({name for phones in (*written, *entries) for name in phones})
    counts, said = (
        np.array([[phones.count(name) for name in names] for phones in some], np.int16).reshape(
            len(some), 1, len(names)
        )
        for some in (written, entries)
    )
    more = counts - said.transpose(1, 0, 2)
    least = np.maximum(np.maximum(more, 0).sum(axis=2), -np.minimum(more, 0).sum(axis=2))
    lengths = np.maximum(1, said.sum(axis=(1, 2)))
    near = np.argwhere(least <= lengths // _CHANGES)
    order = np.argsort((least / lengths)[tuple(near.T)], kind="stable")[:_MOST_COMPARED]
    pairs = [
        (one, other, distance(written[one], entries[other])) for one, other in near[order].tolist()
    ]
    pairs = [pair for pair in pairs if pair[2] <= lengths[pair[1]] // _CHANGES]
    return sorted(pairs, key=lambda pair: pair[2] / lengths[pair[1]])


def distance(one: Sequence[str], other: Sequence[str]) -> int:
    """Least changes between two sequences."""
    row = list(range(len(other) + 1))
    for at, name in enumerate(one, 1):
        corner, row[0] = row[0], at
        for place, another in enumerate(other, 1):
            least = min(row[place] + 1, row[place - 1] + 1, corner + (name != another))
            corner, row[place] = row[place], least
    return row[-1]
