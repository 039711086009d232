"""The bytes of samples, read in few requests."""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from fragdex.byterange import ByteRange, coalesce
from fragdex.errors import TruncatedInput
from fragdex.fragments.table import SampleTable
from fragdex.sources import Source

__all__ = ["Fetched", "fetched"]

REMOTE_GAP = 32 << 10
"""Bytes between two samples of a remote file that are rather read for nothing than asked twice."""
LONGEST_READ = 8 << 20
"""Bytes that are asked for at once."""


@dataclass(slots=True)
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
        found = self.pieces[starts[place]][at : at + size]
        while len(found) < size:
            place += 1
            at = offset + len(found) - starts[place] if place < len(starts) else -1
            data = self.pieces[starts[place]][at : at + size - len(found)] if at >= 0 else b""
            if not data:
                return None
            found += data
        return found


def fetched(source: Source, tables: Iterable[SampleTable]) -> Fetched:
    """The bytes of all these samples, as far as the file has them."""
    ranges = [part for table in tables for part in _stretches(table)]
    held = Fetched()
    for part in coalesce(ranges, max_gap=REMOTE_GAP if source.remote else 0):
        stop = part.stop if source.size is None else min(part.stop, source.size)
        for start in range(part.start, stop, LONGEST_READ):
            with contextlib.suppress(TruncatedInput):
                piece = ByteRange(start, min(start + LONGEST_READ, stop))
                held.pieces[start] = source.read_up_to(piece)
    return held


def _stretches(table: SampleTable) -> Iterator[ByteRange]:
    """Samples that lie one behind the other as one range."""
    known = (table.size > 0) & (table.offset >= 0)
    offset, size = table.offset[known], table.size[known]
    if not len(offset):
        return
    stop = offset + size
    first = np.append(True, offset[1:] != stop[:-1])
    last = np.append(first[1:], True)
    for start, end in zip(offset[first].tolist(), stop[last].tolist(), strict=True):
        yield ByteRange(start, end)
