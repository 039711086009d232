"""Languages by their tags (BCP 47) and by the three letters of MP4 (ISO 639-2/T)."""

from __future__ import annotations

from typing import Final

_CODES: Final = """
ar=ara bg=bul ca=cat cs=ces cy=cym da=dan de=deu el=ell en=eng es=spa et=est eu=eus fa=fas fi=fin
fr=fra ga=gle gl=glg he=heb hi=hin hr=hrv hu=hun hy=hye id=ind is=isl it=ita ja=jpn ka=kat ko=kor
la=lat lt=lit lv=lav mk=mkd ms=msa nl=nld no=nor pl=pol pt=por ro=ron ru=rus sk=slk sl=slv sq=sqi
sr=srp sv=swe sw=swa ta=tam te=tel th=tha tr=tur uk=ukr ur=urd vi=vie zh=zho
"""
_LETTERS: Final = dict(pair.split("=") for pair in _CODES.split())
_BIBLIOGRAPHIC: Final = {
    "baq": "eu",
    "chi": "zh",
    "cze": "cs",
    "dut": "nl",
    "fre": "fr",
    "geo": "ka",
    "ger": "de",
    "gre": "el",
    "ice": "is",
    "mac": "mk",
    "may": "ms",
    "per": "fa",
    "rum": "ro",
    "slo": "sk",
    "alb": "sq",
    "arm": "hy",
    "wel": "cy",
}
_TAGS: Final = {letters: tag for tag, letters in _LETTERS.items()} | _BIBLIOGRAPHIC


def three_letters(tag: str | None) -> str | None:
    """The ISO 639-2 code of a tag's language; None: there is none.

    >>> three_letters("de-CH"), three_letters("eng"), three_letters("x-klingon")
    ('deu', 'eng', None)
    """
    letters = (tag or "").split("-")[0].lower()
    letters = _LETTERS.get(letters, letters)
    return letters if len(letters) == 3 and letters.isascii() and letters.isalpha() else None


def language_tag(code: str | None) -> str | None:
    """The shortest tag of a language, as BCP 47 wants it (RFC 5646, 2.2.1).

    >>> language_tag("eng"), language_tag("ger"), language_tag("en-GB"), language_tag("tlh")
    ('en', 'de', 'en-GB', 'tlh')
    """
    if code is None:
        return None
    first, dash, rest = code.partition("-")
    return _TAGS.get(first.lower(), first) + dash + rest
