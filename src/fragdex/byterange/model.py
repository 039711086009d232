"""The byte range as a value: half-open, ordered, hashable."""

from __future__ import annotations

from dataclasses import dataclass
from operator import index

from fragdex.errors import InvalidRange

__all__ = ["ByteRange"]


@dataclass(frozen=True, slots=True, order=True)
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
        """Return the bytes that are in both, or None where there are none.

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
