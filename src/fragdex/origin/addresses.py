"""What a path and its query ask for: `/film.mp4/hls/master.m3u8`, `/film.mp4/clip.mp4?start=60`.

Several files of one folder that are renditions of one title stand with commas between them:
`/film/low.mp4,high.mp4/hls/master.m3u8`.

A signed address names a file, until when, and a signature of both. The signature stands in the
path, not after a question mark, so that the addresses in playlists and manifests, which are
relative, carry it on: `/UNTIL/SIGNATURE/film.mp4/hls/master.m3u8`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import math
import re
import time
from collections.abc import Mapping
from typing import Any, Final

from fragdex.decoding.picture_files import FORMATS
from fragdex.record import record
from fragdex.seeking.time_texts import parse_time

_PICTURE = "|".join(map(re.escape, FORMATS.values()))
PREVIEW: Final = re.compile(
    rf"thumbnail(?:{_PICTURE})|storyboard\.(?:vtt|m3u8)"
    rf"|storyboard-\d{{1,6}}(?:{_PICTURE})|peaks\.(?:json|dat)|loudness\.json"
)
"""Names of previews."""
VIEWS: Final = ("clip.mp4", "fragmented.mp4", "faststart.mp4")
"""Names of files that are views of one title."""
MOST_FILES: Final = 32
"""Renditions of one title."""
_PACKAGED = re.compile(r"(.+?)/(hls|dash)/(.+)", re.DOTALL)


@record(frozen=True, slots=True)
class Address:
    """A file and the requested view of it.

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
    """The address that a path is, without the slash in front; None: it is not an address.

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


Query = Mapping[str, str]


def seconds(query: Query, name: str, default: float) -> Any:
    """A time as `fragdex.seek` takes it.

    Raises:
        ValueError: it is invalid.

    >>> seconds({"t": "1:30"}, "t", 0)
    Fraction(90, 1)
    """
    text = query.get(name)
    if text is None:
        return default
    try:
        return parse_time(text)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def number(query: Query, name: str, least: int, most: int) -> int | None:
    """A whole number; None: it is not requested.

    Raises:
        ValueError: it is invalid, or out of bounds.

    >>> number({"w": "320"}, "w", 1, 4096)
    320
    """
    text = query.get(name)
    if text is None:
        return None
    digits = text.isascii() and text.isdigit() and len(text) < 16
    if not digits or not least <= int(text) <= most:
        raise ValueError(f"{name}: expected {least} to {most:,}, found {text!r}")
    return int(text)


def flag(query: Query, name: str, default: bool) -> bool:
    """`true` or `false`.

    Raises:
        ValueError: it is neither.
    """
    text = query.get(name)
    if text not in (None, "true", "false"):
        raise ValueError(f"{name}: expected true or false, found {text!r}")
    return default if text is None else text == "true"


def track_ids(query: Query) -> list[int] | None:
    """The ids in `tracks`, with commas between them; None: they are not requested.

    Raises:
        ValueError: one is invalid.
    """
    text = query.get("tracks")
    if text is None:
        return None
    ids = text.split(",")
    if not all(part.isascii() and part.isdigit() and len(part) < 11 for part in ids):
        raise ValueError(f"tracks: expected track ids with commas between them, found {text!r}")
    return [int(part) for part in ids]


def view_options(name: str, query: Query) -> tuple[str, dict[str, Any]]:
    """Kind and options of a view, as `fragdex.view` takes them.

    Args:
        name: one of `VIEWS`.
        query: `tracks`; `start`, `end` and `exact` of clips.

    Raises:
        ValueError: a value is invalid.

    >>> view_options("clip.mp4", {"start": "1", "exact": "false"})
    ('clip', {'tracks': None, 'start': Fraction(1, 1), 'stop': inf, 'exact': False})
    """
    kind = name.removesuffix(".mp4")
    options: dict[str, Any] = {"tracks": track_ids(query)}
    if kind == "clip":
        options["start"] = seconds(query, "start", 0.0)
        options["stop"] = seconds(query, "end", math.inf)
        options["exact"] = flag(query, "exact", True)
    return kind, options


def signed(secret: str, film: str, until: int) -> str:
    """What stands in front of a file's path for it to be served until a time.

    Args:
        secret: known to who signs and to the server.
        film: its name as in addresses, with commas where it has several files; "" for the list
            of all files, whose addresses are signed until the same time.
        until: seconds since 1970.

    >>> signed("secret", "film.mp4", 2_000_000_000)
    '2000000000/tn0xq6gREtssCFyHh7OR4w'
    """
    return f"{until}/{_signature(secret, film, until)}"


def may_pass(secret: str, film: str, until: str, signature: str) -> bool:
    """Whether a signature is that of a file, and has not ended."""
    if not (until.isascii() and until.isdigit() and len(until) <= 12) or int(until) < time.time():
        return False
    return hmac.compare_digest(_signature(secret, film, int(until)).encode(), signature.encode())


def _signature(secret: str, film: str, until: int) -> str:
    digest = hmac.new(secret.encode(), f"{until}\n{film}".encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest[:16]).decode().rstrip("=")
