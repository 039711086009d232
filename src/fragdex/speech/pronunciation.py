"""How English words are said: by the dictionary that pocketsphinx carries, else by their letters.

Phones are those of the CMU pronouncing dictionary. A guess by letters is good enough to find a word
among its neighbours, and no more.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

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


class Said(NamedTuple):
    """How a word is said.

    Attributes:
        phones: in order; none where there is nothing to say.
        known: whether the dictionary tells all of it.
    """

    phones: tuple[str, ...]
    known: bool


class Pronunciations:
    """The dictionary, looked up where it lies: 130,000 lines are not made into objects.

    Args:
        path: lines of a word and its phones, parted by spaces.
    """

    def __init__(self, path: Path) -> None:
        self._lines = b"\n" + path.read_bytes()
        self.said = lru_cache(maxsize=4096)(self._said)

    def _said(self, text: str) -> Said:
        phones: list[str] = []
        known = True
        for word in spoken_words(text):
            found = self._found(word)
            known &= found is not None
            phones += guessed(word) if found is None else found
        return Said(tuple(phones), known)

    def _found(self, word: str) -> list[str] | None:
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
    """A word as it is written, as the words that are said: lower case, numbers in letters.

    >>> spoken_words("Mr."), spoken_words("well-known,"), spoken_words("2,500%")
    (['mister'], ['well', 'known'], ['two', 'thousand', 'five', 'hundred', 'percent'])
    """
    plain = unicodedata.normalize("NFKD", text[:_MOST_LETTERS]).lower().replace("’", "'")
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    for sign, word in _SIGNS.items():
        plain = plain.replace(sign, word)
    said: list[str] = []
    for part in _PARTS.findall(plain):
        if part[0].isdigit():
            said += number_in_words(part.replace(",", ""))
        elif part := part.strip("'"):
            said += _SHORT.get(part, part).split()
    return said


def number_in_words(digits: str) -> list[str]:
    """A whole number; a year is said in two parts, and a long number digit by digit.

    >>> " ".join(number_in_words("1984")), " ".join(number_in_words("305"))
    ('nineteen eighty four', 'three hundred five')
    """
    if len(digits) > _MOST_DIGITS or (digits[0] == "0" and len(digits) > 1):
        return [_ONES[int(digit)] for digit in digits[:_MOST_LETTERS]]
    value = int(digits)
    if 1100 <= value < 2000 and value % 100 >= 10:
        return _below_hundred(value // 100) + _below_hundred(value % 100)
    if value == 0:
        return [_ONES[0]]
    said: list[str] = []
    for size, name in _LARGE:
        if value >= size:
            said += [*number_in_words(str(value // size)), name]
            value %= size
    return said + (_below_hundred(value) if value else [])


def _below_hundred(value: int) -> list[str]:
    if value < len(_ONES):
        return [_ONES[value]]
    return [_TENS[value // 10], *([_ONES[value % 10]] if value % 10 else [])]


def guessed(word: str) -> list[str]:
    """Phones of a word by its letters.

    >>> guessed("fragdex")
    ['F', 'R', 'AE', 'G', 'D', 'EH', 'K', 'S']
    """
    phones: list[str] = []
    letters = word.replace("'", "")
    if len(letters) > 3 and letters.endswith("e"):
        letters = letters[:-1]
    at = 0
    while at < len(letters):
        for length in (4, 3, 2, 1):
            if found := _LETTERS.get(letters[at : at + length]):
                phones += found.split()
                at += length
                break
        else:
            at += 1
    return phones
