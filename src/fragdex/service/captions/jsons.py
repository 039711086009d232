"""Captions as JSON: `{"segments": [{"start", "end", "text"}], "word_segments": [...]}`.

Times are seconds. Words are `{"text", "start", "end"}`; unknown keys are kept.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from fragdex.service.captions.cues import Cue, lines_of, refused, timed
from fragdex.service.errors import Unprocessable

__all__ = ["parse_json"]


def parse_json(data: bytes) -> list[Cue]:
    """The segments of captions in JSON, in their order; the words are looked at, too.

    Raises:
        Unprocessable: no JSON, or a member that is not what it should be; names it.

    >>> parse_json(b'{"segments": [{"start": 1, "end": 2.5, "text": "Hello"}]}')
    [Cue(start_ms=1000, end_ms=2500, text='Hello')]
    """
    text = "\n".join(lines_of(data))
    try:
        document = json.loads(text, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise refused(f"it is not JSON: {error.msg}", error.lineno) from None
    except (RecursionError, ValueError):
        raise refused("it is JSON, but not captions") from None
    if not isinstance(document, dict) or not isinstance(document.get("segments"), list):
        raise refused("an object with a list of segments is expected")
    words = document.get("word_segments", [])
    if not isinstance(words, list):
        raise refused("word_segments is not a list")
    for _ in _cues("word_segments", words):
        pass
    return list(_cues("segments", document["segments"]))


def _cues(name: str, members: list[Any]) -> Iterator[Cue]:
    for place, member in enumerate(members):
        if not isinstance(member, dict) or not isinstance(member.get("text"), str):
            raise refused(f"{name}[{place}] has no text")
        start, end = (_ms(member.get(key)) for key in ("start", "end"))
        if start is None or end is None:
            raise refused(f"{name}[{place}]: start and end are seconds from 0 on")
        try:
            yield timed(start, end, member["text"], 0)
        except Unprocessable as error:
            raise refused(f"{name}[{place}]: it ends before it starts, or too far away") from error


def _ms(seconds: Any) -> int | None:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    try:
        value = float(seconds)
    except OverflowError:
        return None
    return round(value * 1000) if 0 <= value < math.inf else None


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is not JSON")
