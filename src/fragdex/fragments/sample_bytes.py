"""The bytes of one sample, read piece by piece as they are asked for, and what is said of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from enum import IntEnum

__all__ = ["CHUNK", "Access", "CannotTell", "SampleBytes"]

CHUNK = 4096
"""Bytes of a sample that are read at once: the headers in front of nearly every picture."""
MOST_READS = 64
"""Pieces of one sample that are read; what is not found in them is not looked for."""


class Access(IntEnum):
    """Whether decoding can start at a sample.

    >>> bool(Access.NONE), bool(Access.OPEN)
    (False, True)
    """

    NONE = 0
    """It needs samples before it, or holds no picture that a decoder takes."""
    OPEN = 1
    """It needs none; samples behind it that are shown before it may (SAP type 3)."""
    CLOSED = 2
    """Neither it nor any sample behind it needs one before it (SAP types 1 and 2)."""


class CannotTell(Exception):
    """The bytes that would say it cannot be read; its text says why."""


class SampleBytes:
    """The bytes of a sample.

    Args:
        size: of the sample.
        read: start and stop in the sample (exclusive) → those bytes, fewer where the file ends.
        clear: starts and stops (exclusive) of what is not encrypted, rising; None: all is clear.

    >>> sample = SampleBytes(4, lambda start, stop: b"abcd"[start:stop])
    >>> sample.take(1, 2), sample.take(3, 9)
    (b'bc', b'd')
    """

    def __init__(
        self,
        size: int,
        read: Callable[[int, int], bytes],
        clear: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        self.size = size
        self._read, self._clear = read, clear
        self._start, self._held = 0, b""
        self._reads = 0

    @classmethod
    def of(cls, data: bytes | memoryview) -> SampleBytes:
        """A sample that is at hand.

        >>> SampleBytes.of(b"abcd").take(0, 1)
        b'a'
        """
        return cls(len(data), lambda start, stop: bytes(data[start:stop]))

    def take(self, at: int, count: int) -> bytes:
        """`count` bytes from `at` on; fewer where the sample ends.

        Raises:
            CannotTell: one of them is encrypted, or they are too far apart from one another.
        """
        stop = min(at + count, self.size)
        if stop <= at:
            return b""
        if self._clear is not None and self._clear_from(at) < stop:
            raise CannotTell("it is encrypted")
        if not self._start <= at <= stop <= self._start + len(self._held):
            if self._reads == MOST_READS:
                raise CannotTell("its first picture lies behind too many other units")
            self._reads += 1
            self._start = at
            self._held = self._read(at, min(max(stop, at + CHUNK), self.size))
        return self._held[at - self._start : stop - self._start]

    def clear(self, at: int, count: int) -> bytes:
        """As `take`, but only up to what is encrypted."""
        if self._clear is not None:
            count = min(count, self._clear_from(at) - at)
        return self.take(at, min(count, CHUNK))

    def _clear_from(self, at: int) -> int:
        """Where the clear bytes that begin at or before `at` end."""
        assert self._clear is not None
        place = bisect_right(self._clear, (at, self.size + 1)) - 1
        return self._clear[place][1] if place >= 0 else at
