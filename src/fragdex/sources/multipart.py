"""The body of an answer that carries several ranges: multipart/byteranges (RFC 9110, 14.6)."""

from __future__ import annotations

import re

from fragdex.byterange import ByteRange, ContentRange, parse_content_range
from fragdex.errors import InvalidRange
from fragdex.sources.answers import BrokenAnswer

__all__ = ["PART_HEAD", "boundary_of", "parts_of"]

PART_HEAD = 512
"""Bytes that the delimiter and the fields of one part may take; servers send about 130."""

# RFC 2046, 5.1.1: a boundary has up to 70 of these characters
_BOUNDARY = re.compile(
    r"multipart/byteranges\s*;(?:.*;)?\s*boundary=(?:\"([^\"]{1,70})\"|([^\s;\"]{1,70})(?=$|[\s;]))",
    re.ASCII | re.IGNORECASE,
)


def boundary_of(content_type: str) -> bytes | None:
    """Return the boundary that a Content-Type names, or None where it is no multipart/byteranges.

    >>> boundary_of('multipart/byteranges; boundary="3d6b"'), boundary_of("video/mp4")
    (b'3d6b', None)
    """
    match = _BOUNDARY.match(content_type.strip())
    return (match[1] or match[2]).encode("latin-1") if match else None


def parts_of(body: bytes, boundary: bytes) -> list[tuple[ContentRange, bytes]]:
    r"""Return what each part says of its place, and its bytes, in the order they were sent.

    The length of a part comes from its Content-Range: its bytes are never searched for a boundary.
    Raises BrokenAnswer where the body is not made as it should be.

    >>> part = b"\r\n--x\r\nContent-Range: bytes 2-3/9\r\n\r\nab"
    >>> [(str(told), data) for told, data in parts_of(part + b"\r\n--x--\r\n", b"x")]
    [('bytes 2-3/9', b'ab')]
    """
    delimiter = b"--" + boundary
    found: list[tuple[ContentRange, bytes]] = []
    # What stands before the first delimiter is a preamble; servers send an empty line.
    at = body.find(delimiter, 0, PART_HEAD)
    while at >= 0:
        at += len(delimiter)
        if body.startswith(b"--", at):
            return found
        head_end = body.find(b"\r\n\r\n", at, at + PART_HEAD)
        if head_end < 0:
            break
        told, size = _place(body[at:head_end])
        start = head_end + 4
        if start + size > len(body):
            raise BrokenAnswer("a response of several ranges ended early")
        found.append((told, body[start : start + size]))
        at = start + size + 2
        if body[at - 2 : at] != b"\r\n" or not body.startswith(delimiter, at):
            break
    raise BrokenAnswer("a response of several ranges does not follow RFC 9110")


def _place(head: bytes) -> tuple[ContentRange, int]:
    """What a part's fields say of its place, and its size."""
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-range":
            try:
                told = parse_content_range(value.decode("latin-1"))
            except InvalidRange:
                break
            if told.range is not None:
                return told, told.range.size
    raise BrokenAnswer("a part of a response does not say which bytes it has")


def pieces_of(wanted: ByteRange, parts: list[tuple[ByteRange, bytes]]) -> bytes | None:
    """Return the bytes of a range out of parts, one of which must hold all of it; else None.

    >>> pieces_of(ByteRange(3, 5), [(ByteRange(2, 6), b"abcd")])
    b'bc'
    """
    for place, data in parts:
        if place.start <= wanted.start and wanted.stop <= place.stop:
            return data[wanted.start - place.start : wanted.stop - place.start]
    return None
