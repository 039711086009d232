"""Byte ranges as HTTP writes them: the fields Range and Content-Range (RFC 9110, section 14).

The inclusive last position exists in this text alone; what comes out is half-open.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from fragdex.byterange.model import ByteRange
from fragdex.errors import InvalidRange

__all__ = [
    "MAX_POSITION_DIGITS",
    "MAX_RANGES",
    "ContentRange",
    "RangeVerdict",
    "content_range",
    "parse_content_range",
    "parse_range",
]

MAX_RANGES = 64
"""Range-specs answered in one request; players ask for one, download managers for a few."""

MAX_OVERLAPPING = 2
"""RFC 9110, 17.15: more than two overlapping ranges are a request that ought to be ignored."""

MAX_POSITION_DIGITS = 39
"""Digits of a position in Content-Range: 39 hold 128 bits; more is an attack, not a file."""


class RangeVerdict(Enum):
    """What to do with a Range field that names no bytes to send.

    >>> parse_range("bytes=900-", 500) is RangeVerdict.UNSATISFIABLE
    True
    """

    IGNORE = "ignore"
    """Answer 200 with everything: no field, another unit, no valid syntax (RFC 9110, 14.2)."""

    UNSATISFIABLE = "unsatisfiable"
    """Answer 416: valid, but no range-spec meets the content (RFC 9110, 14.1.2 and 15.5.17)."""


# RFC 9110, 14.1.1: int-range or suffix-range. The list rule (5.6.1.2) allows OWS around each.
_RANGE_SPEC = re.compile(r"([0-9]*)-([0-9]*)", re.ASCII)
_OWS = " \t"


def parse_range(
    header: str | None, size: int, *, max_ranges: int = MAX_RANGES
) -> tuple[ByteRange, ...] | Literal[RangeVerdict.IGNORE] | Literal[RangeVerdict.UNSATISFIABLE]:
    """Read the value of an HTTP `Range` field against content of `size` bytes.

    Returns one of three: the ranges to send, in the order asked for, never empty ones, cut at
    `size` (206); `RangeVerdict.IGNORE` (200); `RangeVerdict.UNSATISFIABLE` (416). Never raises for
    what the field holds, and reads it once, however long it is.

    The rules, from RFC 9110: the unit's case does not matter (14.1); a range-spec whose last
    position is before its first makes the whole field invalid (14.1.1); a last position past the
    end means the end, a suffix longer than the content means all of it (14.1.2); specs that start
    past the end are dropped if others can be sent (14.1.2); more than `max_ranges` specs, or more
    than two that overlap, are ignored (17.15). A suffix of empty content is ignored too (14.2),
    since 206 could not name its range.

    >>> parse_range("bytes=0-499, -500", 10_000)
    (ByteRange(start=0, stop=500), ByteRange(start=9500, stop=10000))
    >>> parse_range("bytes=10000-", 10_000), parse_range("lines=1-2", 10_000)
    (<RangeVerdict.UNSATISFIABLE: 'unsatisfiable'>, <RangeVerdict.IGNORE: 'ignore'>)
    """
    if header is None:
        return RangeVerdict.IGNORE
    unit, equals, range_set = header.strip(_OWS).partition("=")
    if not equals or unit.lower() != "bytes":
        return RangeVerdict.IGNORE
    ranges: list[ByteRange] = []
    specs = 0
    for element in range_set.split(","):
        spec = element.strip(_OWS)
        if not spec:
            continue  # 5.6.1.2: recipients ignore empty list elements
        specs += 1
        match = _RANGE_SPEC.fullmatch(spec)
        if match is None or specs > max_ranges:
            return RangeVerdict.IGNORE
        first, last = match[1].lstrip("0") or match[1][:1], match[2].lstrip("0") or match[2][:1]
        if not first and not last:
            return RangeVerdict.IGNORE
        # compared as text: numbers of any length, no conversion of a million digits
        if first and last and (len(last), last) < (len(first), first):
            return RangeVerdict.IGNORE
        if first:
            start = _clamped(first, size)
            stop = min(_clamped(last, size) + 1, size) if last else size
        else:
            start, stop = size - _clamped(last, size), size
            if size == 0 and last != "0":
                return RangeVerdict.IGNORE
        if start < stop:
            ranges.append(ByteRange(start, stop))
    if specs == 0 or _overlapping(ranges) > MAX_OVERLAPPING:
        return RangeVerdict.IGNORE
    return tuple(ranges) or RangeVerdict.UNSATISFIABLE


def _clamped(digits: str, size: int) -> int:
    return size if len(digits) > len(str(size)) else min(int(digits), size)


def _overlapping(ranges: list[ByteRange]) -> int:
    """Count the ranges that share a byte with another one."""
    marked: set[int] = set()
    reach, holder = 0, -1
    for place, one in sorted(enumerate(ranges), key=lambda pair: pair[1]):
        if one.start < reach:
            marked.update((place, holder))
        if one.stop > reach:
            reach, holder = one.stop, place
    return len(marked)


@dataclass(frozen=True, slots=True)
class ContentRange:
    """What a `Content-Range` field says: which bytes, of how many.

    `range` is None in the unsatisfied form `bytes */N`, `total` is None where the sender does not
    know the length (`bytes 0-1/*`).

    >>> print(ContentRange(ByteRange(0, 500), 1234))
    bytes 0-499/1234
    """

    range: ByteRange | None
    total: int | None

    def __str__(self) -> str:
        return content_range(self.range, self.total)


_CONTENT_RANGE = re.compile(
    r"bytes[ \t=]+(?:(?P<first>[0-9]+)-(?P<last>[0-9]+)/(?:(?P<total>[0-9]+)|\*)"
    r"|\*/(?P<length>[0-9]+))",
    re.ASCII | re.IGNORECASE,
)


def parse_content_range(text: str) -> ContentRange:
    """Read the value of an HTTP `Content-Range` field (RFC 9110, 14.4).

    Taken: `bytes 0-1/2`, `bytes 0-1/*`, `bytes */2`, and `bytes=0-1/2`, which some uploaders
    write. Raises InvalidRange for anything else, for a last position before the first, and for a
    total that does not reach past the last position: such a field must not be trusted (14.4).

    >>> parse_content_range("bytes 42-1233/1234")
    ContentRange(range=ByteRange(start=42, stop=1234), total=1234)
    >>> parse_content_range("bytes */1234")
    ContentRange(range=None, total=1234)
    """
    match = _CONTENT_RANGE.fullmatch(text.strip(_OWS))
    if match is None:
        raise InvalidRange(
            "this is not a Content-Range", expected="bytes FIRST-LAST/TOTAL", found=repr(text[:80])
        )
    if match["length"] is not None:
        return ContentRange(None, _position(match["length"]))
    first, last = _position(match["first"]), _position(match["last"])
    total = None if match["total"] is None else _position(match["total"])
    if last < first or (total is not None and total <= last):
        raise InvalidRange(
            "this Content-Range contradicts itself",
            expected="FIRST <= LAST < TOTAL (RFC 9110, 14.4)",
            found=repr(text[:80]),
        )
    return ContentRange(ByteRange(first, last + 1), total)


def _position(digits: str) -> int:
    digits = digits.lstrip("0")
    if len(digits) > MAX_POSITION_DIGITS:
        raise InvalidRange(
            "this position is too large for any file",
            expected=f"at most {MAX_POSITION_DIGITS} digits",
            found=f"{len(digits)} digits",
        )
    return int(digits or "0")


def content_range(range: ByteRange | None, total: int | None) -> str:
    """Write the value of an HTTP `Content-Range` field (RFC 9110, 14.4).

    `range` None writes the form of a 416 answer, `total` None writes `*` for a length not known.
    Raises InvalidRange where both are None, the range is empty, or it passes the total.

    >>> content_range(ByteRange(0, 500), 1234), content_range(None, 1234)
    ('bytes 0-499/1234', 'bytes */1234')
    """
    if range is None:
        if total is None or total < 0:
            raise InvalidRange(
                "Content-Range without a range needs a total",
                found=total,
                expected="the length of the content",
            )
        return f"bytes */{total}"
    if range.size == 0 or (total is not None and range.stop > total):
        raise InvalidRange(
            "this range cannot be written as Content-Range",
            expected="at least one byte, inside the total",
            found=f"{range} of {total}",
        )
    return f"bytes {range.start}-{range.stop - 1}/{'*' if total is None else total}"
