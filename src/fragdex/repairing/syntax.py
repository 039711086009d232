"""What a walk asks of a codec, over the bytes of a source: where a sample begins, and ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final, NamedTuple

from fragdex.byterange import ByteRange
from fragdex.indexing.native import compiled
from fragdex.sources import Source

BLOCK: Final = 4 << 20
"""Bytes that are read and held at once."""

_ZEROS: Final = memoryview(bytes(BLOCK))


class Window:
    r"""Bytes of a source up to `stop`, of which two blocks are held.

    Args:
        source: where they are.
        stop: after the last byte that may be looked at.
        cut: whether media data may continue after it, where the file was cut off.

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
            place = bare_zeros(piece)
            if place >= 0:
                return at + place
            at += len(piece) - 2
        return None

    def find(self, pattern: bytes, start: int, stop: int) -> int | None:
        """Where a pattern stands in these bytes, or None."""
        at = start
        while at < stop:
            piece = self.take(at, min(BLOCK, stop - at))
            place = find_bytes(piece, pattern)
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


def find_bytes(data: bytes, pattern: bytes) -> int:
    """`bytes.find`, which the C extension is faster at where the first byte is rare."""
    return data.find(pattern) if compiled is None else int(compiled.find_bytes(data, pattern))


def bare_zeros(data: bytes) -> int:
    r"""Where two zeros begin that 0, 1 or 2 follows; -1: nowhere.

    >>> bare_zeros(b"a\0\0\3\0\0\1"), bare_zeros(b"\0\0\3\0\0")
    (4, -1)
    """
    if compiled is not None:
        return int(compiled.bare_zeros(data))
    return bare_zeros_plain(data)


def bare_zeros_plain(data: bytes) -> int:
    """`bare_zeros` without the C extension."""
    place = data.find(b"\0\0")
    while place >= 0:
        if place + 2 < len(data) and data[place + 2] < 3:
            return place
        place = data.find(b"\0\0", place + 1)
    return -1


HOLE: Final = bytes(16)
"""So many zeros are not in coded samples: they come of bytes that were never written."""


class Found(NamedTuple):
    """A sample by the syntax of its codec.

    Attributes:
        stop: after its last byte.
        sync: whether decoding can start here.
        fresh: whether the order of pictures starts again here.
        order: number in the order in which pictures are shown, since the last fresh one, or in the
            codec's own terms until it was accepted.
        head: what the codec needs to place it, or None.
    """

    stop: int
    sync: bool = True
    fresh: bool = False
    order: int = 0
    head: tuple[int, ...] | None = None


class Syntax(ABC):
    """A codec of a track, as it stands in samples."""

    delimited = True
    """Whether a sample says where it ends; else only its neighbours do."""
    learned = False
    """Whether a good file was studied."""
    remembers = False
    """Whether what is a sample depends on the samples before it."""
    holes = False
    """Whether samples of the good file have so many zeros all the same."""
    ends_alike = False
    """Whether the end of a sample may look like a whole one."""
    spent = 0
    """Bytes that were read in vain or not, where a look costs more than a few of them."""

    @abstractmethod
    def find(self, window: Window, at: int, stop: int) -> Found | None:
        """The sample that begins at `at` and ends at or before `stop`; None: none does."""

    def finds(self, window: Window, at: int, stop: int) -> list[Found]:
        """The samples that may begin at `at`: several where it is not clear which end is right."""
        found = self.find(window, at, stop)
        return [] if found is None else [found]

    def may_follow(self, found: Found) -> bool:
        """Whether a sample may come right after the last one that was accepted."""
        return True

    def accept(self, found: Found) -> Found:
        """A sample of the file, in its turn: with its place in the order of pictures."""
        return found

    def is_whole(self, window: Window, at: int, found: Found) -> bool:
        """Whether a sample that was found after a loss cannot have begun before it."""
        return False

    def study(self, window: Window, at: int, found: Found) -> None:
        """Learn from a sample of a good file."""
        return  # most codecs have nothing to learn

    def begins(self, window: Window, at: int) -> bool:
        """Whether a sample begins here that ends after the last byte that is there."""
        return False

    def interrupted(self) -> None:
        """Samples are missing from here on."""
        return  # most codecs have nothing to forget

    def starts(self, data: bytes) -> list[int]:
        """Places in `data` where a sample may begin, rising; cheap, and never too few."""
        return list(range(len(data)))
