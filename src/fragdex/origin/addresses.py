"""What a path asks for: `/film.mp4/hls/master.m3u8`, `/film.mp4/clip.mp4?start=60`.

Several files of one folder that are renditions of one title stand with commas between them:
`/film/low.mp4,high.mp4/hls/master.m3u8`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from fragdex.origin.previews import PREVIEW
from fragdex.origin.queries import VIEWS

__all__ = ["MOST_FILES", "Address", "parse_address"]

MOST_FILES: Final = 32
"""Renditions of one title."""
_PACKAGED = re.compile(r"(.+?)/(hls|dash)/(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Address:
    """A film and what is wanted of it.

    Attributes:
        film: its part of the path.
        names: of its files.
        action: hls, dash, one of `VIEWS`, a name of a preview, or "" for its page.
        file: the name in its package; "" otherwise.
    """

    film: str
    names: tuple[str, ...]
    action: str
    file: str = ""


def parse_address(path: str) -> Address | None:
    """The address that a path is, without the slash in front; None: it is none.

    >>> parse_address("a/b.mp4/hls/v1/0.m4s")
    Address(film='a/b.mp4', names=('a/b.mp4',), action='hls', file='v1/0.m4s')
    >>> parse_address("a/low.mp4,high.mp4/clip.mp4").names
    ('a/low.mp4', 'a/high.mp4')
    >>> parse_address("a/b.mp4/").action, parse_address("a/b.mp4")
    ('', None)
    """
    if packaged := _PACKAGED.fullmatch(path):
        return _address(packaged[1], packaged[2], packaged[3])
    film, _, action = path.rpartition("/")
    if film and (not action or action in VIEWS or PREVIEW.fullmatch(action)):
        return _address(film, action, "")
    return None


def _address(film: str, action: str, file: str) -> Address | None:
    folder, _, last = film.rpartition("/")
    names = tuple(f"{folder}/{name}" if folder else name for name in last.split(",") if name)
    return Address(film, names, action, file) if 0 < len(names) <= MOST_FILES else None
