"""The bytes of a source as a walk needs them: a large block at a time."""

from __future__ import annotations

from typing import Final

from fragdex.byterange import ByteRange
from fragdex.sources import Source

BLOCK: Final = 4 << 20
"""Bytes that are read and held at once."""

_ZEROS: Final = memoryview(bytes(BLOCK))


class Window:
    r"""Bytes of a source up to `stop`, of which two blocks are held.

    Args:
        source: where they are.
        stop: behind the last byte that may be looked at.
        cut: whether media data may go on behind it, where the file was cut off.

    >>> from fragdex.sources import open_source
    >>> window = Window(open_source(b"ab\0\0\3cd\0\0\1"), 10)
    >>> window.take(1, 3), window.is_escaped(0, 7), window.is_escaped(0, 10)
    (b'b\x00\x00', True, False)
    """

    def __init__(self, source: Source, stop: int, *, cut: bool = False) -> None:
        self._source, self.stop, self.cut = source, stop, cut
        # A walk looks ahead and comes back: the block before the last one is still wanted.
        self._start, self._data = 0, b""
        self._other, self._other_data = 0, b""
        self._clean = (0, 0)

    def take(self, at: int, count: int) -> bytes:
        """`count` bytes from `at` on; fewer where they end."""
        stop = min(at + count, self.stop)
        low = at - self._start
        if low >= 0 and stop <= self._start + len(self._data):
            return self._data[low : low + stop - at]
        if stop <= at:
            return b""
        low = at - self._other
        if low >= 0 and stop <= self._other + len(self._other_data):
            return self._other_data[low : low + stop - at]
        last = min(max(stop, at + BLOCK), self.stop)
        self._other, self._other_data = self._start, self._data
        self._start, self._data = at, self._source.read_up_to(ByteRange(at, last))
        return self._data[: stop - at]

    def is_escaped(self, start: int, stop: int) -> bool:
        """Whether no two zeros are followed by 0, 1 or 2 in these bytes.

        So it is in every NAL unit (ISO/IEC 14496-10, 7.4.1; ISO/IEC 23008-2, 7.4.2). What was
        looked at once is not looked at again, so that no file makes this slow.
        """
        low, high = self._clean
        if not low <= start <= high:
            low = high = start
        while high < stop:
            place = self._find_bare(high, stop)
            if place is not None:
                self._clean = (low, place)
                return False
            high = stop
        self._clean = (low, high)
        # Two zeros at the very end may belong to what follows: a unit does not end so.
        return True

    def _find_bare(self, start: int, stop: int) -> int | None:
        """Where two zeros begin that 0, 1 or 2 follows."""
        at = start
        while at + 2 < stop:
            piece = self.take(at, min(BLOCK, stop - at))
            if len(piece) < 3:
                return at
            place = piece.find(b"\0\0")
            while place >= 0:
                if place + 2 < len(piece) and piece[place + 2] < 3:
                    return at + place
                place = piece.find(b"\0\0", place + 1)
            at += len(piece) - 2
        return None

    def find(self, pattern: bytes, start: int, stop: int) -> int | None:
        """Where a pattern stands in these bytes, or None."""
        at = start
        while at < stop:
            piece = self.take(at, min(BLOCK, stop - at))
            place = piece.find(pattern)
            if place >= 0:
                return at + place
            if at + len(piece) >= stop or not piece:
                return None
            at += max(1, len(piece) - len(pattern) + 1)
        return None

    def skip_zeros(self, at: int) -> int:
        """The first byte from `at` on that is not 0, or where the bytes end."""
        while at < self.stop:
            piece = self.take(at, BLOCK)
            if not piece:
                break
            # comparing is ten times as fast as looking for the first other byte
            left = b"" if piece == _ZEROS[: len(piece)] else piece.lstrip(b"\0")
            if left:
                return at + len(piece) - len(left)
            at += len(piece)
        return self.stop
