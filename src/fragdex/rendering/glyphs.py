"""Characters that no font has: which writing they belong to, and what has to be installed."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Final

# The first word of a character's name in Unicode → the writing, and the package of Debian.
_CJK: Final = "fonts-noto-cjk"
_PACKAGES: Final = {
    "CJK": ("Han", _CJK),
    "IDEOGRAPHIC": ("Han", _CJK),
    "KANGXI": ("Han", _CJK),
    "BOPOMOFO": ("Bopomofo", _CJK),
    "HIRAGANA": ("Hiragana", _CJK),
    "KATAKANA": ("Katakana", _CJK),
    "HANGUL": ("Hangul", _CJK),
    "FULLWIDTH": ("Fullwidth", _CJK),
    "HALFWIDTH": ("Halfwidth", _CJK),
}
_OTHER: Final = "fonts-noto-core"
_EMOJI: Final = ("emoji", "fonts-noto-color-emoji")
_FIRST_EMOJI: Final = 0x1F000
_SYMBOLS: Final = ("symbols", "fonts-noto-core, fonts-symbola")
_SHOWN: Final = 8


def missing_fonts(glyphs: Iterable[str]) -> list[str]:
    """What to say of characters that no font has: a line for each writing.

    >>> missing_fonts("漢字")
    ['no font has 2 characters of Han, such as 漢字 (U+6F22): on Debian, install fonts-noto-cjk']
    """
    found: dict[tuple[str, str | None], list[str]] = {}
    for one in glyphs:
        found.setdefault(_writing(one), []).append(one)
    lines = []
    for (writing, package), members in found.items():
        many = "1 character" if len(members) == 1 else f"{len(members)} characters"
        sample, code = "".join(members[:_SHOWN]), f"U+{ord(members[0]):04X}"
        if package is None:
            # They have no picture anywhere but in the page's own font.
            advice = f"({code}): was the page's icon font loaded?"
        else:
            advice = f"such as {sample} ({code}): on Debian, install {package}"
        comma = "" if package is None else ","
        lines.append(f"no font has {many} of {writing}{comma} {advice}")
    return lines


def _writing(one: str) -> tuple[str, str | None]:
    if unicodedata.category(one) == "Co":
        return "private use", None
    if ord(one) >= _FIRST_EMOJI and unicodedata.category(one) in ("So", "Sk"):
        return _EMOJI
    if unicodedata.category(one).startswith("S"):
        return _SYMBOLS
    word = unicodedata.name(one, "UNKNOWN").split()[0].split("-")[0]
    return _PACKAGES.get(word, (word.capitalize(), _OTHER))
