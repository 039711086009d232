"""Times as texts, such as people give them; light to import, for the command line."""

from __future__ import annotations

import re
from fractions import Fraction

# Longer ones say nothing more: 18 digits of seconds are the age of the universe.
_MOST_TEXT = 40
_TEXT = re.compile(
    r"(?P<minus>-?)(?:(?:(?P<hours>[0-9]+):)?(?P<minutes>[0-9]+):(?P<rest>[0-9]+(?:\.[0-9]*)?)"
    r"|(?P<seconds>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)s?)"
)


def parse_time(text: str) -> Fraction:
    """Seconds from a text: `90`, `90.5s`, `1:30` or `1:02:03.5`, as the exact number it is.

    After a colon, minutes and seconds are below 60. A minus may stand in front.

    Raises:
        ValueError: it is none of these.

    >>> float(parse_time("1:02:03.5")), parse_time("90s"), parse_time("-0.1")
    (3723.5, Fraction(90, 1), Fraction(-1, 10))
    >>> parse_time("1:99")
    Traceback (most recent call last):
    ...
    ValueError: '1:99' is not a time: minutes and seconds after a colon are below 60
    """
    match = _TEXT.fullmatch(text.strip()) if len(text) <= _MOST_TEXT else None
    if match is None:
        shown = repr(text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…")
        raise ValueError(f"{shown} is not a time: give seconds (90, 90.5s) or a clock (1:02:03.5)")
    if match["seconds"] is not None:
        value = Fraction(match["seconds"])
    else:
        hours, minutes, rest = int(match["hours"] or 0), int(match["minutes"]), match["rest"]
        value = Fraction(rest)
        if value >= 60 or (match["hours"] is not None and minutes >= 60):
            raise ValueError(
                f"{text!r} is not a time: minutes and seconds after a colon are below 60"
            )
        value += hours * 3600 + minutes * 60
    return -value if match["minus"] else value
