"""What the query of an address says: times, numbers, track ids, and what a view is made of."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from fragdex.seeking.time_texts import parse_time

__all__ = ["VIEWS", "Query", "flag", "number", "seconds", "track_ids", "view_options"]

Query = Mapping[str, str]

VIEWS: Final = ("clip.mp4", "fragmented.mp4", "faststart.mp4")
"""Names of files that are views of one film."""


def seconds(asked: Query, name: str, default: float) -> Any:
    """A time as `fragdex.seek` takes it.

    Raises:
        ValueError: it is none.

    >>> seconds({"t": "1:30"}, "t", 0)
    Fraction(90, 1)
    """
    text = asked.get(name)
    if text is None:
        return default
    try:
        return parse_time(text)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def number(asked: Query, name: str, least: int, most: int) -> int | None:
    """A whole number; None: it is not asked for.

    Raises:
        ValueError: it is none, or out of bounds.

    >>> number({"w": "320"}, "w", 1, 4096)
    320
    """
    text = asked.get(name)
    if text is None:
        return None
    digits = text.isascii() and text.isdigit() and len(text) < 16
    if not digits or not least <= int(text) <= most:
        raise ValueError(f"{name}: expected {least} to {most:,}, found {text!r}")
    return int(text)


def flag(asked: Query, name: str, default: bool) -> bool:
    """`true` or `false`.

    Raises:
        ValueError: it is neither.
    """
    text = asked.get(name)
    if text not in (None, "true", "false"):
        raise ValueError(f"{name}: expected true or false, found {text!r}")
    return default if text is None else text == "true"


def track_ids(asked: Query) -> list[int] | None:
    """The ids in `tracks`, with commas between them; None: it is not asked for.

    Raises:
        ValueError: one is none.
    """
    text = asked.get("tracks")
    if text is None:
        return None
    ids = text.split(",")
    if not all(part.isascii() and part.isdigit() and len(part) < 11 for part in ids):
        raise ValueError(f"tracks: expected track ids with commas between them, found {text!r}")
    return [int(part) for part in ids]


def view_options(name: str, asked: Query) -> tuple[str, dict[str, Any]]:
    """Kind and options of a view, as `fragdex.view` takes them.

    Args:
        name: one of `VIEWS`.
        asked: `tracks`; `start`, `end` and `exact` of clips.

    Raises:
        ValueError: a value is none.

    >>> view_options("clip.mp4", {"start": "1", "exact": "false"})
    ('clip', {'tracks': None, 'start': Fraction(1, 1), 'stop': inf, 'exact': False})
    """
    kind = name.removesuffix(".mp4")
    options: dict[str, Any] = {"tracks": track_ids(asked)}
    if kind == "clip":
        options["start"] = seconds(asked, "start", 0.0)
        options["stop"] = seconds(asked, "end", math.inf)
        options["exact"] = flag(asked, "exact", True)
    return kind, options
