"""The bytes of samples, read in few requests."""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

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
        starts = sorted(self.pieces)
        return [self._one(starts, part) for part in wanted]

    def _one(self, starts: list[int], part: ByteRange) -> bytes | None:
        found = b""
        place = bisect_right(starts, part.start) - 1
        while 0 <= place < len(starts) and len(found) < part.size:
            at = part.start + len(found) - starts[place]
            data = self.pieces[starts[place]][at : at + part.size - len(found)]
            if not data:
                break
            found += data
            place += 1
        return found if len(found) == part.size else None


def fetched(source: Source, tables: Iterable[SampleTable]) -> Fetched:
    """The bytes of all these samples, as far as the file has them."""
    ranges = [
        ByteRange.of(offset, size)
        for table in tables
        for offset, size in zip(table.offset.tolist(), table.size.tolist(), strict=True)
        if size > 0 and offset >= 0
    ]
    held = Fetched()
    for part in coalesce(ranges, max_gap=REMOTE_GAP if source.remote else 0):
        stop = part.stop if source.size is None else min(part.stop, source.size)
        for start in range(part.start, stop, LONGEST_READ):
            with contextlib.suppress(TruncatedInput):
                piece = ByteRange(start, min(start + LONGEST_READ, stop))
                held.pieces[start] = source.read_up_to(piece)
    return held
