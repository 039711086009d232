"""The top-level boxes of a source, one at a time, without the media data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fragdex.box_header import BoxHeader, read_header
from fragdex.boxes import OPAQUE, Box, parse_box
from fragdex.boxes.limits import MAX_BOXES, MAX_MOOV_SIZE
from fragdex.byterange import ByteRange
from fragdex.errors import LimitExceeded, MalformedBox, NotISOBMFF, TruncatedInput
from fragdex.indexing.scan import MEDIA_TYPES

__all__ = ["top_level_boxes"]

HEADER = 32
"""Bytes of the longest box header: 64-bit size and user type."""

MOST_AHEAD = 1 << 16

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
    ahead = _Ahead(source)
    while head := ahead.header(at):
        header, size = _header(head, at, source)
        count += 1
        if count > MAX_BOXES:
            raise LimitExceeded("too many boxes", offset=at, expected=MAX_BOXES)
        code = header.type.decode("latin-1")
        whole = source.size is None or at + size <= source.size
        if not at and not whole and int.from_bytes(header.type, "big") not in MEDIA_TYPES:
            raise _no_media(source)
        if not whole:
            raise TruncatedInput(
                "the input ends inside a box",
                path=code,
                offset=at,
                expected=f"{size} bytes",
                found=source.size - at,
            )
        if code in _SKIPPED or not wanted & {"*", code, code.rstrip()}:
            yield _without_payload(header, code, at, size)
        else:
            if size > MAX_MOOV_SIZE:
                raise LimitExceeded(
                    f"{code} is too large to be read as a whole",
                    offset=at,
                    expected=f"at most {MAX_MOOV_SIZE}",
                    found=size,
                )
            data = ahead.box(at, size)
            yield parse_box(data, offset=at, strict=strict)
        at += size
    if at == 0:
        raise NotISOBMFF(f"{source.name} is empty")


def _no_media(source: Any) -> NotISOBMFF:
    return NotISOBMFF(
        f"{source.name} is not an ISO base media file",
        offset=0,
        expected="a box such as ftyp, styp, moov or moof",
        found="something else",
    )


class _Ahead:
    """Reads a little ahead where boxes are small and many, and no more where they are large."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self._data, self._start, self._size = b"", 0, HEADER

    def header(self, at: int) -> bytes:
        """The bytes of a box header, fewer at the end of the source."""
        place = at - self._start
        if place + HEADER > len(self._data):
            # Where the next box lies in what was read before, boxes are small.
            near = 0 <= place <= len(self._data)
            self._size = min(self._size * 4, MOST_AHEAD) if near and at else HEADER
            self._data = self._source.read_up_to(ByteRange.of(at, self._size))
            self._start, place = at, 0
        return bytes(self._data[place : place + HEADER])

    def box(self, at: int, size: int) -> bytes:
        """A whole box."""
        place = at - self._start
        if place + size <= len(self._data):
            return bytes(self._data[place : place + size])
        return bytes(self._source.read(ByteRange.of(at, size)))


def _header(head: bytes, at: int, source: Any) -> tuple[BoxHeader, int]:
    """What the header of a box says, and the bytes of the box."""
    header = read_header(head)
    if header is None:
        raise TruncatedInput("the input ends inside a box header", offset=at)
    if header.form == "to_end" and source.size is not None:
        return header, int(source.size) - at
    if header.size < header.length:
        if at == 0:
            raise _no_media(source)
        raise MalformedBox(
            "a box size smaller than its header",
            offset=at,
            expected=f"at least {header.length}",
            found=header.size,
        )
    return header, header.size


def _without_payload(header: BoxHeader, code: str, at: int, size: int) -> Box:
    return Box(
        code,
        {"data": b""},
        size_form="compact" if header.form == "cut" else header.form,
        offset=at,
        size=size,
        header_size=header.length,
    )
