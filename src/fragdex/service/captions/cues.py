"""What every kind of captions comes to, and how one is refused."""

from __future__ import annotations

from typing import NamedTuple

from fragdex.service.errors import Unprocessable

__all__ = ["MAX_MS", "Cue", "lines_of", "refused", "timed"]

MAX_MS = 1000 * 3600 * 1000
"""Latest time of a cue; more is no caption of any file."""


class Cue(NamedTuple):
    """Text from `start_ms` (inclusive) to `end_ms` (exclusive)."""

    start_ms: int
    end_ms: int
    text: str


def refused(why: str, line: int | None = None) -> Unprocessable:
    """The error for captions that break the rules of their kind; `line` counts from 1."""
    place = "" if line is None else f" (line {line})"
    more = {"next_byte": 0} if line is None else {"line": line, "next_byte": 0}
    return Unprocessable(f"the captions cannot be read: {why}{place}", more=more)


def lines_of(data: bytes) -> list[str]:
    """Lines of UTF-8 text, whatever ends them; without the mark of the byte order.

    Raises:
        Unprocessable: it is no UTF-8.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise refused("it is not UTF-8", data.count(b"\n", 0, error.start) + 1) from None
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def timed(start_ms: int, end_ms: int, text: str, line: int) -> Cue:
    """A cue, its times looked at.

    Raises:
        Unprocessable: it ends before it starts, or lies beyond all files.
    """
    if end_ms < start_ms:
        raise refused("a cue ends before it starts", line)
    if end_ms > MAX_MS:
        raise refused("a cue is too far away", line)
    return Cue(start_ms, end_ms, text)
