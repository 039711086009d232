"""WebVTT (W3C, WebVTT: The Web Video Text Tracks Format, 4.1 and 6.1).

Players pass over a cue whose times they cannot read; here it is refused, while somebody is there
to put it right.
"""

from __future__ import annotations

import re

from fragdex.service.captions.cues import Cue, lines_of, refused, timed

__all__ = ["parse_webvtt"]

ARROW = "-->"
_TIME = r"(?:(\d{2,6}):)?([0-5]\d):([0-5]\d)\.(\d{3})"
_TIMING = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}(?:\s+(.*))?", re.ASCII)
_NO_CUES = ("NOTE", "STYLE", "REGION")


def parse_webvtt(data: bytes) -> list[Cue]:
    r"""The cues of a WebVTT file, in its order.

    Raises:
        Unprocessable: no signature, or a cue that cannot be read; names the line.

    >>> parse_webvtt(b"WEBVTT\n\n00:01.000 --> 00:02.500\nHello")
    [Cue(start_ms=1000, end_ms=2500, text='Hello')]
    """
    lines = lines_of(data)
    if not re.match(r"WEBVTT(?:[ \t]|$)", lines[0]):
        raise refused("WebVTT begins with WEBVTT", 1)
    cues: list[Cue] = []
    at = 1
    while at < len(lines) and lines[at] and ARROW not in lines[at]:
        at += 1  # the rest of the header
    while at < len(lines):
        if not lines[at]:
            at += 1
            continue
        end = at
        while end < len(lines) and lines[end]:
            end += 1
        cue = _block(lines, at, end)
        if cue is not None:
            cues.append(cue)
        at = end
    return cues


def _block(lines: list[str], at: int, end: int) -> Cue | None:
    first = lines[at]
    if ARROW not in first:
        if first.split(" ")[0].split("\t")[0] in _NO_CUES or at + 1 == end:
            return None
        at += 1  # the identifier of a cue
        if ARROW not in lines[at]:
            return None
    times = _TIMING.fullmatch(lines[at])
    if times is None:
        raise refused("this is not the timing of a cue", at + 1)
    text = lines[at + 1 : end]
    for place, line in enumerate(text):
        if ARROW in line:
            raise refused("there is no empty line before this cue", at + 2 + place)
    return timed(_ms(*times.groups()[:4]), _ms(*times.groups()[4:8]), "\n".join(text), at + 1)


def _ms(hours: str | None, minutes: str, seconds: str, fraction: str) -> int:
    return ((int(hours or 0) * 60 + int(minutes)) * 60 + int(seconds)) * 1000 + int(fraction)
