"""The chapter list of a clip: that of the source, for the span of the clip."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor
from typing import Any, Final

from fragdex.boxes import Box

__all__ = ["with_chapters"]

SECOND: Final = 10_000_000
"""Starts count in units of 100 ns (Nero chapters)."""


def with_chapters(udta: Box, start: Fraction, stop: Fraction) -> Box:
    """User data of a movie whose chapters are those from `start` to `stop`, moved to begin at 0.

    The chapter that is on at `start` begins at 0. A list that would be empty, and one that cannot
    be read, goes.

    Args:
        udta: of the source's moov; without a chapter list, it stays as it is.
        start, stop: seconds of the source's presentation, stop exclusive.

    >>> with_chapters(Box("udta", {}), Fraction(0), Fraction(1)).children
    ()
    """
    children: list[Box] = []
    for child in udta.children:
        if child.type == "chpl":
            rows = [] if child.opaque else _moved(child["chapters"], start, stop)
            if not rows:
                continue
            child = child.replace(chapters=rows)
        children.append(child)
    return udta.replace(children=children) if udta.children else udta


def _moved(rows: Any, start: Fraction, stop: Fraction) -> list[dict[str, Any]]:
    first, last = floor(start * SECOND), ceil(stop * SECOND)
    shown = max((at for row in rows if (at := int(row["start"])) <= first), default=first)
    return [
        {"start": max(int(row["start"]) - first, 0), "title": row["title"]}
        for row in rows
        if shown <= int(row["start"]) < last
    ]
