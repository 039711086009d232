"""SubRip: blocks of a number, a timing and text, with empty lines between them.

There is no standard; taken is what players take: a missing number, a dot for the comma, hours of
one digit, positions behind the timing.
"""

from __future__ import annotations

import re

from fragdex.service.captions.cues import Cue, lines_of, refused, timed

__all__ = ["parse_srt"]

_TIME = r"(\d{1,6}):([0-5]?\d):([0-5]?\d)[,.](\d{1,3})"
_TIMING = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}(?:\s.*)?", re.ASCII)


def parse_srt(data: bytes) -> list[Cue]:
    r"""The cues of a SubRip file, in its order.

    Raises:
        Unprocessable: no cue, or one that cannot be read; names the line.

    >>> parse_srt(b"1\n00:00:01,000 --> 00:00:02,5\nHello\n")
    [Cue(start_ms=1000, end_ms=2500, text='Hello')]
    """
    lines = lines_of(data)
    cues: list[Cue] = []
    at = 0
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        timing = at + 1 if lines[at].strip().isdecimal() else at
        times = _TIMING.fullmatch(lines[timing]) if timing < len(lines) else None
        if times is None:
            raise refused("a number and the timing of a cue are expected", at + 1)
        end = timing + 1
        while end < len(lines) and not _begins(lines, end):
            end += 1
        text = "\n".join(lines[timing + 1 : end]).strip("\n")
        fields = times.groups()
        cues.append(timed(_ms(*fields[:4]), _ms(*fields[4:]), text, timing + 1))
        at = end
    if not cues:
        raise refused("there is no cue")
    return cues


def _begins(lines: list[str], at: int) -> bool:
    """Whether a cue begins here: text may hold empty lines, and numbers."""
    if lines[at - 1].strip():
        return False
    if _TIMING.fullmatch(lines[at]):
        return True
    following = lines[at + 1] if at + 1 < len(lines) else ""
    return lines[at].strip().isdecimal() and bool(_TIMING.fullmatch(following))


def _ms(hours: str, minutes: str, seconds: str, fraction: str) -> int:
    whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
    return whole * 1000 + int(fraction.ljust(3, "0"))
