"""Captions of every kind, read whole: WebVTT, SubRip and JSON; and the timing line of a cue.

WebVTT is that of W3C (The Web Video Text Tracks Format, 4.1 and 6.1). Players pass over a cue whose
times they cannot read; here it is refused, while somebody is there to put it right.

SubRip has no standard: blocks of a number, a timing and text, with empty lines between them. Taken
is what players take: a missing number, a dot for the comma, hours of one digit, positions after
the timing.

JSON is `{"segments": [{"start", "end", "text"}], "word_segments": [...]}`, times in seconds. Words
are as segments; unknown keys are kept.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, Final

from fragdex.errors import MalformedCaptions
from fragdex.formats.captions_track import CaptionCue

MAX_MS: Final = 1000 * 3600 * 1000
"""Latest time of a cue; more is no caption of any file."""

_ARROW: Final = "-->"
_VTT_TIME = r"(?:(\d{2,6}):)?([0-5]\d):([0-5]\d)\.(\d{3})"
_VTT_TIMING = re.compile(rf"\s*{_VTT_TIME}\s*-->\s*{_VTT_TIME}(?:\s+(.*))?", re.ASCII)
_SRT_TIME = r"(\d{1,6}):([0-5]?\d):([0-5]?\d)[,.](\d{1,3})"
_SRT_TIMING = re.compile(rf"\s*{_SRT_TIME}\s*-->\s*{_SRT_TIME}(?:\s.*)?", re.ASCII)
_NO_CUES: Final = ("NOTE", "STYLE", "REGION")


def timing(start_ms: int, end_ms: int, point: str = ".") -> str:
    """The line of a cue that says when it is shown.

    Args:
        point: in front of the milliseconds: a dot in WebVTT, a comma in SubRip.

    >>> timing(1000, 3_723_500)
    '00:00:01.000 --> 01:02:03.500'
    """
    return f" {_ARROW} ".join(
        f"{ms // 3_600_000:02}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02}{point}{ms % 1000:03}"
        for ms in (start_ms, end_ms)
    )


def parse_webvtt(data: bytes) -> list[CaptionCue]:
    r"""The cues of a WebVTT file, in its order.

    Raises:
        MalformedCaptions: no signature, or a cue that cannot be read; names the line.

    >>> parse_webvtt(b"WEBVTT\n\n00:01.000 --> 00:02.500\nHello")
    [CaptionCue(start_ms=1000, end_ms=2500, text='Hello')]
    """
    return [cue for cue, _ in webvtt_cues(data)[1]]


def webvtt_cues(data: bytes) -> tuple[list[str], list[tuple[CaptionCue, str]]]:
    r"""The blocks of styles and regions of a WebVTT file, and its cues with their settings.

    Raises: as `parse_webvtt`.

    >>> webvtt_cues(b"WEBVTT\n\nSTYLE\n::cue{}\n\n00:01.000 --> 00:02.000 line:0\nHello")
    (['STYLE\n::cue{}'], [(CaptionCue(start_ms=1000, end_ms=2000, text='Hello'), 'line:0')])
    """
    lines = _lines_of(data)
    if not re.match(r"WEBVTT(?:[ \t]|$)", lines[0]):
        raise _refused("WebVTT begins with WEBVTT", 1)
    blocks: list[str] = []
    cues: list[tuple[CaptionCue, str]] = []
    at = 1
    while at < len(lines) and lines[at] and _ARROW not in lines[at]:
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
        elif not cues and re.match(r"(?:STYLE|REGION)(?:[ \t]|$)", lines[at]):
            blocks.append("\n".join(lines[at:end]))
        at = end
    return blocks, cues


def _block(lines: list[str], at: int, end: int) -> tuple[CaptionCue, str] | None:
    first = lines[at]
    if _ARROW not in first:
        if first.split(" ")[0].split("\t")[0] in _NO_CUES or at + 1 == end:
            return None
        at += 1  # the identifier of a cue
        if _ARROW not in lines[at]:
            return None
    times = _VTT_TIMING.fullmatch(lines[at])
    if times is None:
        raise _refused("this is not the timing of a cue", at + 1)
    text = lines[at + 1 : end]
    for place, line in enumerate(text):
        if _ARROW in line:
            raise _refused("there is no empty line before this cue", at + 2 + place)
    return _cue(times, "\n".join(text), at + 1), (times[9] or "").strip()


def parse_srt(data: bytes) -> list[CaptionCue]:
    r"""The cues of a SubRip file, in its order.

    Raises:
        MalformedCaptions: no cue, or one that cannot be read; names the line.

    >>> parse_srt(b"1\n00:00:01,000 --> 00:00:02,5\nHello\n")
    [CaptionCue(start_ms=1000, end_ms=2500, text='Hello')]
    """
    lines = _lines_of(data)
    cues: list[CaptionCue] = []
    at = 0
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        timing = at + 1 if lines[at].strip().isdecimal() else at
        times = _SRT_TIMING.fullmatch(lines[timing]) if timing < len(lines) else None
        if times is None:
            raise _refused("a number and the timing of a cue are expected", at + 1)
        end = timing + 1
        while end < len(lines) and not _begins(lines, end):
            end += 1
        text = "\n".join(lines[timing + 1 : end]).strip("\n")
        cues.append(_cue(times, text, timing + 1))
        at = end
    if not cues:
        raise _refused("there is no cue")
    return cues


def _begins(lines: list[str], at: int) -> bool:
    """Whether a cue begins here: text may hold empty lines, and numbers."""
    if lines[at - 1].strip():
        return False
    if _SRT_TIMING.fullmatch(lines[at]):
        return True
    following = lines[at + 1] if at + 1 < len(lines) else ""
    return lines[at].strip().isdecimal() and bool(_SRT_TIMING.fullmatch(following))


def parse_json(data: bytes) -> list[CaptionCue]:
    """The segments of captions in JSON, in their order; the words are looked at, too.

    Raises:
        MalformedCaptions: no JSON, or a member that is not what it should be; names it.

    >>> parse_json(b'{"segments": [{"start": 1, "end": 2.5, "text": "Hello"}]}')
    [CaptionCue(start_ms=1000, end_ms=2500, text='Hello')]
    """
    text = "\n".join(_lines_of(data))
    try:
        document = json.loads(text, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise _refused(f"it is not JSON: {error.msg}", error.lineno) from None
    except (RecursionError, ValueError):
        raise _refused("it is JSON, but not captions") from None
    if not isinstance(document, dict) or not isinstance(document.get("segments"), list):
        raise _refused("an object with a list of segments is expected")
    words = document.get("word_segments", [])
    if not isinstance(words, list):
        raise _refused("word_segments is not a list")
    for _ in _cues("word_segments", words):
        pass
    return list(_cues("segments", document["segments"]))


def _cues(name: str, members: list[Any]) -> Iterator[CaptionCue]:
    for place, member in enumerate(members):
        if not isinstance(member, dict) or not isinstance(member.get("text"), str):
            raise _refused(f"{name}[{place}] has no text")
        start, end = (_milliseconds(member.get(key)) for key in ("start", "end"))
        if start is None or end is None:
            raise _refused(f"{name}[{place}]: start and end are seconds from 0 on")
        try:
            yield _timed(start, end, member["text"], 0)
        except MalformedCaptions as error:
            raise _refused(f"{name}[{place}]: it ends before it starts, or too far away") from error


def _milliseconds(seconds: Any) -> int | None:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    try:
        value = float(seconds)
    except OverflowError:
        return None
    return round(value * 1000) if 0 <= value < math.inf else None


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _refused(why: str, line: int | None = None) -> MalformedCaptions:
    """The error for captions that break the rules of their kind; `line` counts from 1."""
    return MalformedCaptions(f"the captions cannot be read: {why}", line=line)


def _lines_of(data: bytes) -> list[str]:
    """Lines of UTF-8 text, whatever ends them; without the mark of the byte order.

    Raises:
        MalformedCaptions: it is no UTF-8.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refused("it is not UTF-8", data.count(b"\n", 0, error.start) + 1) from None
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _timed(start_ms: int, end_ms: int, text: str, line: int) -> CaptionCue:
    """A cue, its times looked at.

    Raises:
        MalformedCaptions: it ends before it starts, or lies beyond all files.
    """
    if end_ms < start_ms:
        raise _refused("a cue ends before it starts", line)
    if end_ms > MAX_MS:
        raise _refused("a cue is too far away", line)
    return CaptionCue(start_ms, end_ms, text)


def _cue(times: re.Match[str], text: str, line: int) -> CaptionCue:
    """A cue by its timing, which stands in a line that counts from 1."""
    fields = times.groups()
    return _timed(_ms(*fields[:4]), _ms(*fields[4:8]), text, line)


def _ms(hours: str | None, minutes: str, seconds: str, fraction: str) -> int:
    whole = (int(hours or 0) * 60 + int(minutes)) * 60 + int(seconds)
    return whole * 1000 + int(fraction.ljust(3, "0"))
