"""What a walk asks of a codec, over the bytes of a source: where a sample begins, and ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from fragdex.byterange import ByteRange
from fragdex.indexing.native import compiled
from fragdex.sources import Source
from fragdex.sources.base import PIECE_SIZE

BLOCK: Final = 4 << 20
"""Bytes that are read and held at once."""

_ZEROS: Final = bytes(BLOCK)


class Window:
    """Bytes of a source up to `stop`, of which two blocks are held.

    Args:
        source: where they are.
        stop: after the last byte that may be looked at.
        cut: whether media data may continue after it, where the file was cut off.
    """

    def __init__(self, source: Source, stop: int, *, cut: bool = False) -> None:
        self.source, self.stop, self.cut = source, stop, cut
        # A walk looks ahead and comes back: the block before the last one is still wanted.
        self._start, self._data = 0, b""
        self._other, self._other_data = 0, b""
        # The C extension walks over a buffer that is used again and again.
        self._begin = self._end = 0
        self._buffer = memoryview(b"")
        self._clean = self._zeros = (0, 0)

    def hold(self, at: int, ahead: int) -> tuple[memoryview, int]:
        """A buffer with `ahead` bytes or more from `at` on, fewer where they end; where it begins.

        It is valid until the next call.
        """
        if self._begin <= at <= self._end and self._end >= min(at + ahead, self.stop):
            return self._buffer[: self._end - self._begin], self._begin
        kept = self._buffer[:0]
        if self._begin <= at < self._end:
            kept = self._buffer[at - self._begin : self._end - self._begin]
        stop = min(at + max(ahead, PIECE_SIZE), self.stop)
        if stop - at > len(self._buffer):
            self._buffer = memoryview(bytearray(stop - at))
        self._buffer[: len(kept)] = kept  # they may overlap
        self._begin, self._end = at, at + len(kept)
        if self._end < stop:
            wanted = ByteRange(self._end, stop)
            place = self._buffer[len(kept) : len(kept) + wanted.size]
            if self.source.read_resident(wanted, place):
                self._end = stop
            else:
                data = self.source.read_up_to(wanted)
                place[: len(data)] = data
                self._end += len(data)
        return self._buffer[: self._end - at], at

    def take(self, at: int, count: int) -> bytes:
        """`count` bytes from `at` on; fewer where they end."""
        stop = min(at + count, self.stop)
        low = at - self._start
        if low >= 0 and stop <= self._start + len(self._data):
            return self._data[low : low + stop - at]
        if stop <= at:
            return b""
        if self._begin <= at and stop <= self._end:
            return self._buffer[at - self._begin : stop - self._begin].tobytes()
        low = at - self._other
        if low >= 0 and stop <= self._other + len(self._other_data):
            return self._other_data[low : low + stop - at]
        last = min(max(stop, at + BLOCK), self.stop)
        self._other, self._other_data = self._start, self._data
        self._start, self._data = at, self.source.read_up_to(ByteRange(at, last))
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
            place = self._find_bare(max(start, high - 2), stop)
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
            if pattern[0] and (at := self.source.next_data(at)) >= stop:
                return None
            piece = self.take(at, min(BLOCK, stop - at))
            place = find_bytes(piece, pattern)
            if place >= 0:
                return at + place
            if at + len(piece) >= stop or not piece:
                return None
            at += max(1, len(piece) - len(pattern) + 1)
        return None

    def skip_zeros(self, at: int) -> int:
        """The first byte from `at` on that is not 0, or where the bytes end.

        Holes of a sparse file are not read, and zeros that were counted once are not again.
        """
        low, high = self._zeros
        if low <= at < high:
            return high
        start = at
        while at < self.stop:
            at = min(self.source.next_data(at), self.stop)
            piece = self.take(at, BLOCK)
            # comparing is ten times as fast as looking for the first other byte
            if len(piece) == BLOCK and piece == _ZEROS:
                at += BLOCK
                continue
            left = piece.lstrip(b"\0")
            at = at + len(piece) - len(left) if piece else self.stop
            if left:
                break
        self._zeros = (start, at)
        return at


def occurrences(data: bytes, pattern: bytes) -> Iterator[int]:
    """Places of a pattern, rising; they may overlap."""
    at = data.find(pattern)
    while at >= 0:
        yield at
        at = data.find(pattern, at + 1)


def find_bytes(data: bytes, pattern: bytes) -> int:
    """`bytes.find`, which the C extension is faster at where the first byte is rare."""
    return data.find(pattern) if compiled is None else int(compiled.find_bytes(data, pattern))


def bare_zeros(data: bytes) -> int:
    """Where two zeros begin that 0, 1 or 2 follows; -1: nowhere."""
    if compiled is not None:
        return int(compiled.bare_zeros(data))
    return bare_zeros_plain(data)


def bare_zeros_plain(data: bytes) -> int:
    """`bare_zeros` without the C extension."""
    places = (at for at in occurrences(data, b"\0\0") if data[at + 2 : at + 3] in _BARE)
    return next(places, -1)


_BARE: Final = (b"\0", b"\1", b"\2")
HOLE: Final = bytes(16)
"""So many zeros are not in coded samples: they come of bytes that were never written."""


class FoundSample(NamedTuple):
    """A sample by the syntax of its codec.

    Attributes:
        stop: after its last byte.
        sync: whether decoding can start here.
        fresh: whether the order of pictures starts again here.
        order: number in the order in which pictures are shown, since the last fresh one, or in the
            codec's own terms until it was accepted.
        head: what the codec needs to place it, or None.
        sets: parameter sets in it that were not known before.
    """

    stop: int
    sync: bool = True
    fresh: bool = False
    order: int = 0
    head: tuple[int, ...] | None = None
    sets: tuple[bytes, ...] = ()


class Kind(IntEnum):
    """Codecs that the C extension reads; the numbers of native/lanes.h."""

    AVC = 0
    HEVC = 1
    AV1 = 2
    AAC = 3
    EVEN = 4
    OPUS = 5


class NativeSyntax(NamedTuple):
    """What the C extension is lent of a syntax.

    Attributes:
        kind: which one.
        numbers: what it needs to know, and the state in which it is.
        tables: columns and units of the codec.
    """

    kind: Kind
    numbers: list[int]
    tables: tuple[bytes, ...] = ()


def units_table(units: Iterable[bytes]) -> bytes:
    """Units one after the other, each after its length in 32 bits."""
    return b"".join(len(unit).to_bytes(4, "big") + unit for unit in units)


def flags_table(marked: Iterable[int], size: int = 256) -> bytes:
    """A byte of 1 at each number that is marked."""
    table = bytearray(size)
    for number in marked:
        table[number] = 1
    return bytes(table)


def places_of(data: bytes, marked: Iterable[int]) -> list[int]:
    """Places of bytes that are one of some."""
    table = np.frombuffer(flags_table(marked), np.bool_)
    return np.flatnonzero(table[np.frombuffer(data, np.uint8)]).tolist()


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
    """Whether the end of a sample may look like a whole one, for which `is_whole` is asked."""
    large_leads = False
    """Whether what may be in front of such an end is large, and so is the sound it is taken for."""
    open_ended = False
    """Whether more may belong to a sample that seems to end where the file was cut off."""
    rare = False
    """Whether there are so few samples that the C extension walks without them."""
    most = 1 << 27
    """Bytes of a sample: one that is larger by far than those of a good file is refused."""
    spent = 0
    """Bytes that were read in vain or not, where a look costs more than a few of them."""

    def lent(self) -> NativeSyntax | None:
        """What the C extension walks with as this syntax does; None: it cannot."""
        return None

    def resume(self, state: tuple[int, int], spent: int) -> None:
        """Continue after samples that the C extension has found.

        Args:
            state: what `accept` has left, in the terms of the codec.
        """
        self.spent += spent

    @abstractmethod
    def find(self, window: Window, at: int, stop: int) -> FoundSample | None:
        """The sample that begins at `at` and ends at or before `stop`; None: none does."""

    def finds(self, window: Window, at: int, stop: int) -> list[FoundSample]:
        """The samples that may begin at `at`: several where it is not clear which end is right."""
        sample = self.find(window, at, stop)
        return [] if sample is None else [sample]

    def may_follow(self, sample: FoundSample) -> bool:
        """Whether a sample may come right after the last one that was accepted."""
        return True

    def accept(self, sample: FoundSample) -> FoundSample:
        """A sample of the file, in its turn: with its place in the order of pictures."""
        return sample

    def trust(self, sample: FoundSample) -> None:
        """Learn from a sample that is in its place, though it is not accepted."""
        return  # most codecs have nothing to learn

    def forget_ahead(self) -> bool:
        """Forget what is known of samples that were looked at and not accepted; whether any was."""
        return False

    def is_whole(self, window: Window, at: int, sample: FoundSample) -> bool:
        """Whether a sample that was found after a loss cannot have begun before it."""
        return False

    def study(self, window: Window, at: int, sample: FoundSample) -> None:
        """Learn from a sample of a good file."""
        return  # most codecs have nothing to learn

    def may_begin(self, window: Window, at: int) -> bool:
        """Whether what is here may be the beginning of a sample that ends after the last byte."""
        return False

    def begins(self, window: Window, at: int) -> bool:
        """Whether a sample begins here that ends after the last byte that is there."""
        return False

    def interrupted(self) -> None:
        """Samples are missing from here on."""
        return  # most codecs have nothing to forget

    def starts(self, data: bytes) -> list[int]:
        """Places in `data` where a sample may begin, rising; cheap, and never too few."""
        return list(range(len(data)))
