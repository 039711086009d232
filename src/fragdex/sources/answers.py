"""What an HTTP answer to a range request means; nothing here does I/O.

Decided from the status line and the fields alone, before any of the body is read (RFC 9110, 14
and 15).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping

from fragdex.byterange import ByteRange, ContentRange, parse_content_range
from fragdex.errors import InvalidRange, RangeIgnored, SourceChanged, SourceError, SourceNotFound
from fragdex.record import record
from fragdex.sources.base import changed_since

# answers that another try may turn: time-out, too early, too many requests (RFC 9110, 8470, 6585)
RETRIED = frozenset({408, 425, 429})

_ADVICE = {
    401: "credentials are needed: pass headers=",
    403: "access is forbidden with these credentials",
    407: "the proxy needs credentials",
}


class BrokenAnswer(Exception):
    """A try that failed in a way that another one may not; `after_s` where the server said when."""

    def __init__(self, why: str, after_s: float | None = None) -> None:
        super().__init__(why)
        self.after_s = after_s


class PastTheEnd(Exception):
    """The first requested byte lies at the end of the object or after it (416)."""


@record(frozen=True, slots=True)
class BodyPart:
    """Which part of an answer's body to take: `length` bytes (None: all) after `skip`.

    `whole` tells that the body is the whole object, from its first byte.
    """

    skip: int
    length: int | None
    whole: bool


class FirstAnswer:
    """The object as the first answer described it; later answers are held to that."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.size: int | None = None
        self.etag: str | None = None
        self.last_modified: str | None = None

    def check(
        self, status: int, fields: Mapping[str, str], start: int, stop: int | None
    ) -> BodyPart:
        """Judge an answer to a request for [start, stop), or for everything if `stop` is None.

        Names in `fields` are lower-case. Raises BrokenAnswer where another try may help,
        PastTheEnd, or the error that ends the reading.
        """
        if status in {404, 410}:
            raise SourceNotFound(
                f"there is nothing at {self.name} (HTTP status {status})", filename=self.name
            )
        if status >= 500 or status in RETRIED:
            raise BrokenAnswer(f"HTTP status {status}", _retry_after(fields))
        if status == 416:
            self._judge_416(fields, start)
            raise PastTheEnd
        if status not in {200, 206}:
            raise SourceError(
                f"{self.name} cannot be read",
                expected="HTTP status 206",
                found=status,
                advice=_ADVICE.get(status),
            )
        coding = fields.get("content-encoding", "identity").lower()
        if coding != "identity":
            raise SourceError(
                f"{self.name} is sent compressed, so that its bytes cannot be counted",
                expected="Content-Encoding identity",
                found=coding,
                advice="ask for an uncompressed form, or download the file first",
            )
        if status == 200:
            return self._judge_200(fields, start, stop)
        return self._judge_206(fields, start, stop)

    def ends_at(self, position: int) -> None:
        """Learn the length where no answer told it."""
        if self.size is None:
            self.size = position

    def judge_last(self, status: int, fields: Mapping[str, str]) -> None:
        """Learn the length from an answer to a request for the last byte, if it tells it."""
        with contextlib.suppress(InvalidRange):
            place = parse_content_range(fields.get("content-range", ""))
            if status == 206 and place.range is not None:
                self._hold_to(fields, place.total)
                self.ends_at(place.range.stop)

    def judge_whole(self, fields: Mapping[str, str]) -> None:
        """Judge an answer with everything to a request for several ranges."""
        self._hold_to(fields, length_of(fields))

    def judge_part(self, fields: Mapping[str, str], place: ContentRange) -> None:
        """Judge one part of an answer with several ranges, by the answer's fields and its own."""
        self._hold_to(fields, place.total)

    def _judge_206(self, fields: Mapping[str, str], start: int, stop: int | None) -> BodyPart:
        text = fields.get("content-range")
        try:
            place = parse_content_range(text or "")
        except InvalidRange:
            place = None
        if place is None or place.range is None:
            raise SourceError(
                f"{self.name} does not say which bytes it sends",
                expected="a range in Content-Range (RFC 9110, 15.3.7)",
                found=repr(text),
                advice="its server handles Range wrongly; download the file first",
            )
        if place.range.start != start or (stop is not None and place.range.stop > stop):
            raise SourceError(
                f"{self.name} sends other bytes than requested",
                expected=f"from {start}, up to {stop}",
                found=place.range,
                advice="its server handles Range wrongly; download the file first",
            )
        self._hold_to(fields, place.total)
        return BodyPart(0, place.range.size, whole=False)

    def _judge_200(self, fields: Mapping[str, str], start: int, stop: int | None) -> BodyPart:
        """Judge the whole object: wanted, small enough to be taken, or sent instead of a range."""
        length = length_of(fields)
        self._hold_to(fields, length)
        if start == 0 and stop is None:
            return BodyPart(0, length, whole=True)
        if length is None or stop is None or length > stop - start:
            raise RangeIgnored(
                f"{self.name} is sent whole although a range was requested",
                expected="HTTP status 206",
                found="200" if length is None else f"200 with {length} bytes",
                advice="download the file first, or use a server that supports Range "
                "(RFC 9110, 14.2)",
            )
        if start >= length:
            raise PastTheEnd
        return BodyPart(start, length - start, whole=True)

    def _judge_416(self, fields: Mapping[str, str], start: int) -> None:
        total: int | None = None
        with contextlib.suppress(InvalidRange):
            total = parse_content_range(fields.get("content-range", "")).total
        if total is None and start == 0:
            total = 0  # nothing else has no first byte
        self._hold_to(fields, total)
        if self.size is not None and start < self.size:
            raise SourceError(
                f"{self.name} refuses a valid range",
                expected="HTTP status 206",
                found=f"416 for byte {start} of {self.size}",
            )

    def _hold_to(self, fields: Mapping[str, str], total: int | None) -> None:
        etag, modified = fields.get("etag"), fields.get("last-modified")
        if self.size is not None and total is not None and self.size != total:
            raise self.changed(f"{self.size} bytes", f"{total}")
        if self.etag is not None and etag is not None:
            # compared weakly (RFC 9110, 8.8.3.2): a proxy may weaken a tag on the way
            if self.etag.removeprefix("W/") != etag.removeprefix("W/"):
                raise self.changed(f"ETag {self.etag}", etag)
        elif None not in (self.last_modified, modified) and self.last_modified != modified:
            raise self.changed(f"Last-Modified {self.last_modified}", f"{modified}")
        self.size = total if self.size is None else self.size
        self.etag = self.etag or etag
        self.last_modified = self.last_modified or modified

    def changed(self, expected: str, found: str) -> SourceChanged:
        """Return the error for an object that is another one by now."""
        return changed_since(self.name, expected, found)


def length_of(fields: Mapping[str, str]) -> int | None:
    """The Content-Length, or None where there is none."""
    text = fields.get("content-length", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _retry_after(fields: Mapping[str, str]) -> float | None:
    # seconds only: the other form, a date, needs clocks that agree (RFC 9110, 10.2.3)
    text = fields.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


PART_HEAD = 512
"""Bytes that the delimiter and the fields of one part may take; servers send about 130."""

# RFC 2046, 5.1.1: a boundary has up to 70 of these characters
_BOUNDARY = re.compile(
    r"multipart/byteranges\s*;(?:.*;)?\s*boundary=(?:\"([^\"]{1,70})\"|([^\s;\"]{1,70})(?=$|[\s;]))",
    re.ASCII | re.IGNORECASE,
)


def boundary_of(content_type: str) -> bytes | None:
    """Return the boundary of a Content-Type; None where it is not multipart/byteranges."""
    match = _BOUNDARY.match(content_type.strip())
    return (match[1] or match[2]).encode("latin-1") if match else None


def parts_of(body: bytes, boundary: bytes) -> list[tuple[ContentRange, bytes]]:
    """Return what each part says of its place, and its bytes, in the order they were sent.

    The length of a part comes from its Content-Range: its bytes are never searched for a boundary.
    Raises BrokenAnswer where the body is not made as it should be.
    """
    delimiter = b"--" + boundary
    parts: list[tuple[ContentRange, bytes]] = []
    # What stands before the first delimiter is a preamble; servers send an empty line.
    at = body.find(delimiter, 0, PART_HEAD)
    while at >= 0:
        at += len(delimiter)
        if body.startswith(b"--", at):
            return parts
        head_end = body.find(b"\r\n\r\n", at, at + PART_HEAD)
        if head_end < 0:
            break
        place, size = _place(body[at:head_end])
        start = head_end + 4
        if start + size > len(body):
            raise BrokenAnswer("a response of several ranges ended early")
        parts.append((place, body[start : start + size]))
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
                place = parse_content_range(value.decode("latin-1"))
            except InvalidRange:
                break
            if place.range is not None:
                return place, place.range.size
    raise BrokenAnswer("a part of a response does not say which bytes it has")


def pieces_of(wanted: ByteRange, parts: list[tuple[ByteRange, bytes]]) -> bytes | None:
    """Return the bytes of a range out of parts, one of which must hold all of it; else None."""
    for place, data in parts:
        if place.start <= wanted.start and wanted.stop <= place.stop:
            return data[wanted.start - place.start : wanted.stop - place.start]
    return None
