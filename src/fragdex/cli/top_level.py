"""The top-level boxes of a source, one at a time, without the media data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fragdex.boxes import OPAQUE, Box, parse_box
from fragdex.boxes.limits import MAX_BOXES, MAX_MOOV_SIZE
from fragdex.byterange import ByteRange
from fragdex.errors import LimitExceeded, MalformedBox, NotISOBMFF, TruncatedInput

__all__ = ["top_level_boxes"]

HEADER = 32
"""Bytes of the longest box header: 64-bit size and user type."""

_SKIPPED = frozenset(code for code, _ in OPAQUE)


def top_level_boxes(source: Any, paths: list[str] | None, strict: bool) -> Iterator[Box]:
    """Every top-level box in file order; what stands before damage comes before the error.

    Boxes that hold media data or no meaning come without their payload, as do those whose type
    no path asks for.

    Raises:
        NotISOBMFF, MalformedBox, LimitExceeded: as `parse`.
        TruncatedInput: the last box is incomplete.
    """
    wanted = {path.partition("/")[0].partition("[")[0] for path in paths or ["*"]}
    at = count = 0
    while head := source.read_up_to(ByteRange.of(at, HEADER)):
        size = _size(head, at, source)
        count += 1
        if count > MAX_BOXES:
            raise LimitExceeded("too many boxes", offset=at, expected=MAX_BOXES)
        code = head[4:8].decode("latin-1")
        if source.size is not None and at + size > source.size:
            raise TruncatedInput(
                "the input ends inside a box",
                path=code,
                offset=at,
                expected=f"{size} bytes",
                found=source.size - at,
            )
        if code in _SKIPPED or not wanted & {"*", code, code.rstrip()}:
            yield _without_payload(head, code, at, size)
        else:
            if size > MAX_MOOV_SIZE:
                raise LimitExceeded(
                    f"{code} is too large to be read as a whole",
                    offset=at,
                    expected=f"at most {MAX_MOOV_SIZE}",
                    found=size,
                )
            data = head if size <= len(head) else source.read(ByteRange.of(at, size))
            yield parse_box(data, offset=at, strict=strict)
        at += size
    if at == 0:
        raise NotISOBMFF(f"{source.name} is empty")


def _size(head: bytes, at: int, source: Any) -> int:
    """Bytes of the box that starts with `head`; 0 is to the end of the file (4.2)."""
    if len(head) < 8:
        raise TruncatedInput("the input ends inside a box header", offset=at)
    size, least = int.from_bytes(head[:4], "big"), 8
    if size == 1 and len(head) >= 16:
        size, least = int.from_bytes(head[8:16], "big"), 16
    elif size == 0 and source.size is not None:
        return int(source.size) - at
    if size < least:
        kind, message = (
            (NotISOBMFF, "no box stands at the start")
            if at == 0
            else (
                MalformedBox,
                "a box size smaller than its header",
            )
        )
        raise kind(message, offset=at, expected=f"at least {least}", found=size)
    return size


def _without_payload(head: bytes, code: str, at: int, size: int) -> Box:
    short = int.from_bytes(head[:4], "big")
    header = 16 if short == 1 else 8
    return Box(
        code,
        {"data": b""},
        size_form="large" if short == 1 else "to_end" if short == 0 else "compact",
        offset=at,
        size=size,
        header_size=header,
    )
