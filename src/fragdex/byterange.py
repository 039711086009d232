"""Byte ranges: the value, its text in HTTP (RFC 9110, section 14), and plans of what to read.

Everything here is a pure function of its arguments. Inside fragdex a range is half-open
(`start <= position < stop`); the inclusive last position of HTTP exists only in text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import field
from itertools import pairwise
from operator import index
from typing import Literal

from fragdex.errors import BudgetExceeded, InvalidRange, LimitExceeded
from fragdex.record import record

__all__ = [
    "MAX_PLANNED_READS",
    "MAX_POSITION_DIGITS",
    "MAX_RANGES",
    "ByteRange",
    "ContentRange",
    "Fetched",
    "RangeAnswer",
    "coalesce",
    "content_range",
    "parse_content_range",
    "parse_range",
    "plan_reads",
]


@record(frozen=True, slots=True, order=True)
class ByteRange:
    """The bytes from `start` (inclusive) to `stop` (exclusive), counted from 0.

    Any integer type is accepted and stored as int. Ordered by start, then stop. An empty range
    (`start == stop`) is valid, but cannot be written in HTTP. Raises InvalidRange unless
    0 <= start <= stop.

    >>> head = ByteRange(0, 500)
    >>> head.size, head.header, 499 in head, 500 in head
    (500, 'bytes=0-499', True, False)
    >>> print(head)
    [0, 500)
    """

    start: int
    stop: int

    def __post_init__(self) -> None:
        start, stop = self.start, self.stop
        if type(start) is not int or type(stop) is not int:
            try:
                start, stop = index(start), index(stop)
            except TypeError as error:
                raise InvalidRange(
                    "positions are whole numbers", expected="two integers", found=(start, stop)
                ) from error
            object.__setattr__(self, "start", start)
            object.__setattr__(self, "stop", stop)
        if not 0 <= start <= stop:
            raise InvalidRange(
                "these positions are not a range",
                expected="0 <= start <= stop",
                found=f"start {_shown(start)}, stop {_shown(stop)}",
            )

    @classmethod
    def of(cls, start: int, size: int) -> ByteRange:
        """Make the range of `size` bytes from `start`.

        >>> ByteRange.of(100, 20)
        ByteRange(start=100, stop=120)
        """
        return cls(start, start + size)

    @property
    def size(self) -> int:
        """Number of bytes.

        >>> ByteRange(10, 30).size
        20
        """
        return self.stop - self.start

    @property
    def header(self) -> str:
        """The value of an HTTP `Range` field (RFC 9110, 14.1.2), whose end is inclusive.

        Raises InvalidRange for an empty range, which that field cannot name.

        >>> ByteRange(500, 1000).header
        'bytes=500-999'
        """
        if self.start == self.stop:
            raise InvalidRange(
                "an empty range cannot be written in HTTP", found=self, expected="bytes"
            )
        return f"bytes={self.start}-{self.stop - 1}"

    def __contains__(self, position: int) -> bool:
        return self.start <= position < self.stop

    def overlaps(self, other: ByteRange) -> bool:
        """Tell whether at least one byte is in both.

        >>> (
        ...     ByteRange(0, 10).overlaps(ByteRange(9, 20)),
        ...     ByteRange(0, 10).overlaps(ByteRange(10, 20)),
        ... )
        (True, False)
        """
        return max(self.start, other.start) < min(self.stop, other.stop)

    def intersection(self, other: ByteRange) -> ByteRange | None:
        """Return the bytes that are in both, or None if there are no such bytes.

        >>> ByteRange(0, 10).intersection(ByteRange(5, 20))
        ByteRange(start=5, stop=10)
        """
        start, stop = max(self.start, other.start), min(self.stop, other.stop)
        return ByteRange(start, stop) if start < stop else None

    def shift(self, distance: int) -> ByteRange:
        """Return the range moved by `distance` bytes; InvalidRange if that is before byte 0.

        >>> ByteRange(100, 120).shift(-100)
        ByteRange(start=0, stop=20)
        """
        return ByteRange(self.start + distance, self.stop + distance)

    def __str__(self) -> str:
        return f"[{self.start}, {self.stop})"


def _shown(number: int) -> str:
    # Python refuses to print integers past its own limit of digits
    return str(number) if number.bit_length() <= 4096 else f"a number of {number.bit_length()} bits"


MAX_PLANNED_READS = 1_000_000
"""Reads in one plan; a table that needs more names sizes that no file has."""


def coalesce(ranges: Iterable[ByteRange], max_gap: int = 0) -> tuple[ByteRange, ...]:
    """Return the same bytes as sorted ranges that neither overlap nor touch.

    With `max_gap` > 0, ranges with at most so many bytes between them become one, gap included.
    Empty ranges vanish.

    >>> coalesce([ByteRange(8, 9), ByteRange(0, 5), ByteRange(5, 7)])
    (ByteRange(start=0, stop=7), ByteRange(start=8, stop=9))
    >>> coalesce([ByteRange(8, 9), ByteRange(0, 5), ByteRange(5, 7)], max_gap=1)
    (ByteRange(start=0, stop=9),)
    """
    merged: list[list[int]] = []
    for one in sorted(one for one in ranges if one.start < one.stop):
        if merged and one.start - merged[-1][1] <= max_gap:
            merged[-1][1] = max(merged[-1][1], one.stop)
        else:
            merged.append([one.start, one.stop])
    return tuple(ByteRange(start, stop) for start, stop in merged)


def plan_reads(
    ranges: Iterable[ByteRange],
    *,
    max_gap: int,
    max_size: int | None,
    max_requests: int | None = None,
) -> tuple[ByteRange, ...]:
    """Plan the fewest reads that cover every byte of `ranges`.

    Reads are sorted and disjoint. No read is longer than `max_size` bytes (None: any length), and
    none has more than `max_gap` unwanted bytes in a row; a range longer than
    `max_size` is read in pieces. Where that gives more than `max_requests` reads, wider gaps are
    read too, as few and as small as possible. Raises BudgetExceeded where even that is not enough,
    LimitExceeded past MAX_PLANNED_READS, InvalidRange for impossible limits.

    >>> wanted = [ByteRange(0, 100), ByteRange(110, 200), ByteRange(5000, 5100)]
    >>> [str(read) for read in plan_reads(wanted, max_gap=64, max_size=4096)]
    ['[0, 200)', '[5000, 5100)']
    >>> [str(read) for read in plan_reads(wanted, max_gap=64, max_size=None, max_requests=1)]
    ['[0, 5100)']
    """
    if max_gap < 0 or (max_size is not None and max_size < 1):
        raise InvalidRange(
            "no plan fits these limits",
            expected="max_gap >= 0 and max_size >= 1",
            found=f"max_gap {max_gap}, max_size {max_size}",
        )
    wanted = coalesce(ranges)
    allowed = MAX_PLANNED_READS if max_requests is None else min(max_requests, MAX_PLANNED_READS)
    plan = _covering(wanted, max_gap, max_size, allowed)
    if plan is None and max_requests is not None:
        # the count falls as the gap grows, so the smallest gap that will do is found by halving
        gaps = sorted({b.start - a.stop for a, b in pairwise(wanted)})
        low, high = 0, len(gaps)
        while low < high:
            middle = (low + high) // 2
            tried = _covering(wanted, max(gaps[middle], max_gap), max_size, allowed)
            if tried is None:
                low = middle + 1
            else:
                plan, high = tried, middle
    if plan is None:
        if max_requests is not None:
            raise BudgetExceeded(
                "these ranges do not fit into so few reads",
                expected=f"{max_requests} reads of at most {max_size} bytes",
                found=f"{sum(one.size for one in wanted)} bytes in {len(wanted)} places",
                advice="raise max_requests or the size of a read",
            )
        raise LimitExceeded(
            "the plan has too many reads",
            expected=f"at most {MAX_PLANNED_READS}",
            found=f"{sum(one.size for one in wanted)} bytes by {max_size}",
        )
    return plan


@record(slots=True)
class Fetched:
    """Bytes that were read.

    Attributes:
        pieces: by where they lie in the file.

    >>> Fetched({10: b"abc", 13: b"def"}).ranges([ByteRange(12, 14), ByteRange(15, 17)])
    [b'cd', None]
    """

    pieces: dict[int, bytes] = field(default_factory=dict)

    def ranges(self, wanted: Sequence[ByteRange]) -> list[bytes | None]:
        """The bytes of each range; None where they are not all here."""
        return self.parts((part.start, part.size) for part in wanted)

    def parts(self, wanted: Iterable[tuple[int, int]]) -> list[bytes | None]:
        """The same by offset and size."""
        if len(self.pieces) == 1:
            # nearly always; and sound has hundreds of thousands of samples
            ((first, data),) = self.pieces.items()
            stop = first + len(data)
            return [
                data[at - first : at - first + size] if at >= first and at + size <= stop
                else None if size else b""
                for at, size in wanted
            ]  # fmt: skip
        starts = sorted(self.pieces)
        return [self._one(starts, offset, size) for offset, size in wanted]

    def _one(self, starts: list[int], offset: int, size: int) -> bytes | None:
        place = bisect_right(starts, offset) - 1
        if place < 0:
            return None if size else b""
        at = offset - starts[place]
        piece = self.pieces[starts[place]][at : at + size]
        while len(piece) < size:
            place += 1
            at = offset + len(piece) - starts[place] if place < len(starts) else -1
            data = self.pieces[starts[place]][at : at + size - len(piece)] if at >= 0 else b""
            if not data:
                return None
            piece += data
        return piece


def _covering(
    wanted: tuple[ByteRange, ...], max_gap: int, max_size: int | None, allowed: int
) -> tuple[ByteRange, ...] | None:
    """Cover greedily from the left, which is the fewest; None past `allowed` reads."""
    reads: list[ByteRange] = []
    start = stop = -1
    for one in wanted:
        begin = one.start
        if stop >= 0:
            if begin - stop <= max_gap and (max_size is None or begin - start < max_size):
                stop = one.stop if max_size is None else min(one.stop, start + max_size)
                begin = stop
                if begin == one.stop:
                    continue
            reads.append(ByteRange(start, stop))
        if max_size is not None and one.stop - begin > max_size:
            full = (one.stop - begin - 1) // max_size
            if len(reads) + full >= allowed:
                return None
            reads += [ByteRange.of(begin + i * max_size, max_size) for i in range(full)]
            begin += full * max_size
        start, stop = begin, one.stop
        if len(reads) >= allowed:
            return None
    if stop >= 0:
        reads.append(ByteRange(start, stop))
    return tuple(reads)


MAX_RANGES = 64
"""Range-specs answered in one request; players ask for one, download managers for a few."""

MAX_OVERLAPPING = 2
"""RFC 9110, 17.15: more than two overlapping ranges are a request that ought to be ignored."""

MAX_POSITION_DIGITS = 39
"""Digits of a position in Content-Range: 39 hold 128 bits; more is an attack, not a file."""


# RFC 9110, 14.1.1: int-range or suffix-range. The list rule (5.6.1.2) allows OWS around each.
_RANGE_SPEC = re.compile(r"([0-9]*)-([0-9]*)", re.ASCII)
_OWS = " \t"


@record(frozen=True, slots=True)
class RangeAnswer:
    """How to answer a request with a `Range` field.

    Attributes:
        status: 206: send `ranges`; 200: send everything, since the field is missing or invalid;
            416: no range meets the content.
        ranges: what to send, in the requested order, each inside the content and none empty; of 200
            the whole content, of 416 nothing.
        size: bytes of the content.

    >>> answer = parse_range("bytes=0-499", 10_000)
    >>> answer.status, answer.ranges
    (206, (ByteRange(start=0, stop=500),))
    >>> answer.headers["Content-Range"], answer.headers["Content-Length"]
    ('bytes 0-499/10000', '500')
    """

    status: Literal[200, 206, 416]
    ranges: tuple[ByteRange, ...]
    size: int

    @property
    def headers(self) -> dict[str, str]:
        """Header fields of the answer: Accept-Ranges, Content-Range and Content-Length.

        Content-Range is that of 416 and of 206 with one range; Content-Length that of a body of one
        range. Several ranges make a multipart body, whose parts have a Content-Range each (RFC
        9110, 14.6).

        >>> parse_range("bytes=900-", 500).headers
        {'Accept-Ranges': 'bytes', 'Content-Range': 'bytes */500'}
        """
        fields = {"Accept-Ranges": "bytes"}
        if self.status == 416:
            return {**fields, "Content-Range": content_range(None, self.size)}
        if len(self.ranges) == 1:
            (part,) = self.ranges
            if self.status == 206:
                fields["Content-Range"] = content_range(part, self.size)
            fields["Content-Length"] = str(part.size)
        return fields


def parse_range(header: str | None, size: int, *, max_ranges: int = MAX_RANGES) -> RangeAnswer:
    """Read the value of an HTTP `Range` field, for content of `size` bytes.

    Args:
        header: None: the request has no such field.
        size: bytes of the content.
        max_ranges: with more of them, the field is ignored.

    Returns: the status of the answer, and the ranges to send. Never raises for what the field
    holds, and reads it once, however long it is.

    The rules, from RFC 9110: the unit's case does not matter (14.1); a range-spec whose last
    position is before its first makes the whole field invalid (14.1.1); a last position past the
    end means the end, a suffix longer than the content means all of it (14.1.2); specs that start
    past the end are dropped if others can be sent (14.1.2); more than `max_ranges` specs, or more
    than two that overlap, are ignored (17.15). A suffix of empty content is ignored too (14.2),
    since 206 could not name its range.

    >>> parse_range("bytes=0-499, -500", 10_000).ranges
    (ByteRange(start=0, stop=500), ByteRange(start=9500, stop=10000))
    >>> parse_range("bytes=10000-", 10_000).status, parse_range("lines=1-2", 10_000).status
    (416, 200)
    """
    ranges = None if header is None else _ranges(header, size, max_ranges)
    if ranges is None:
        return RangeAnswer(200, (ByteRange(0, size),), size)
    return RangeAnswer(206 if ranges else 416, ranges, size)


def _ranges(header: str, size: int, max_ranges: int) -> tuple[ByteRange, ...] | None:
    """The ranges that a field requests; None: it is ignored, as are other units and bad syntax."""
    unit, equals, range_set = header.strip(_OWS).partition("=")
    if not equals or unit.lower() != "bytes":
        return None
    ranges: list[ByteRange] = []
    specs = 0
    for element in range_set.split(","):
        spec = element.strip(_OWS)
        if not spec:
            continue  # 5.6.1.2: recipients ignore empty list elements
        specs += 1
        match = _RANGE_SPEC.fullmatch(spec)
        if match is None or specs > max_ranges:
            return None
        first, last = match[1].lstrip("0") or match[1][:1], match[2].lstrip("0") or match[2][:1]
        if not first and not last:
            return None
        # compared as text: numbers of any length, no conversion of a million digits
        if first and last and (len(last), last) < (len(first), first):
            return None
        if first:
            start = _clamped(first, size)
            stop = min(_clamped(last, size) + 1, size) if last else size
        else:
            start, stop = size - _clamped(last, size), size
            if size == 0 and last != "0":
                return None
        if start < stop:
            ranges.append(ByteRange(start, stop))
    if specs == 0 or _overlapping(ranges) > MAX_OVERLAPPING:
        return None
    return tuple(ranges)


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


@record(frozen=True, slots=True)
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


def __dir__() -> list[str]:
    return sorted(__all__)
