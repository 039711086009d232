"""A source whose reads are held to the digests of an index before anyone sees them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fragdex.byterange import ByteRange
from fragdex.errors import SourceChanged
from fragdex.fragments.pieces import PieceDigests
from fragdex.sources import Source

__all__ = ["CheckedSource"]

_HELD: Final = 8
"""Reads whose pieces stay at hand: readers continue where they stopped, often inside of a piece."""
_MOST_HELD: Final = 8 << 20
"""Bytes of them at most, in addition to those of the last one."""


class CheckedSource(Source):
    r"""The bytes of a source, each read checked against the digests of its pieces.

    A read takes in the whole pieces that its range touches, which have a megabyte at most each, and
    gives the range. The source stays the caller's: closing this one does not close it.

    Args:
        source: the media.
        digests: of an index of it.

    Raises (on reading):
        SourceChanged: a piece has other bytes than when it was indexed; `offset` is where it
            begins.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> data = bytearray(movie(fragments=3))
    >>> index = fragdex.index(bytes(data), digests=True)
    >>> data[-1] ^= 1
    >>> source = CheckedSource(fragdex.open_source(bytes(data)), index.digests)
    >>> source.read(ByteRange(4, 8))
    b'ftyp'
    >>> try:
    ...     source.read(ByteRange(len(data) - 2, len(data) - 1))
    ... except SourceChanged as error:
    ...     print(error.message)
    <bytes> has other bytes than when it was indexed
    """

    def __init__(self, source: Source, digests: PieceDigests) -> None:
        super().__init__(source.name, size=source.size, etag=source.etag, remote=source.remote)
        self.mtime_ns, self.connections = source.mtime_ns, source.connections
        self._source, self._digests = source, digests
        self._kept: list[tuple[ByteRange, bytes]] = []

    def read_up_to(self, range: ByteRange) -> bytes:
        """Return the bytes of `range`, cut at the end."""
        return self.read_many([range])[0]

    def read_many(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Return the bytes of each range; the pieces of all are read together."""
        self._within_budget(0, 0)
        cut = [self._cut(one) for one in ranges]
        whole = [self._pieces_of(one) for one in cut]
        held = {one: self._found(one) for one in whole}
        missing = [one for one, data in held.items() if data is None]
        if missing:
            for one, data in zip(missing, self._source.read_many(missing), strict=True):
                held[one] = self._checked(one, data)
                self._keep(one, data)
            self.requests, self.bytes_read = self._source.requests, self._source.bytes_read
        return [
            (held[pieces] or b"")[one.start - pieces.start : one.stop - pieces.start]
            for one, pieces in zip(cut, whole, strict=True)
        ]

    def twin(self) -> Source | None:
        """Open the same bytes a second time, checked as well; None where that cannot be."""
        twin = self._source.twin()
        return None if twin is None else CheckedSource(twin, self._digests)

    def _cut(self, range: ByteRange) -> ByteRange:
        end = self._digests.size
        return ByteRange(min(range.start, end), min(range.stop, end))

    def _pieces_of(self, range: ByteRange) -> ByteRange:
        """The whole pieces that a range touches, as one range."""
        if not range.size:
            return range
        rows = self._digests.touching(range)
        first, last = self._digests.range(rows.start), self._digests.range(rows.stop - 1)
        return ByteRange(first.start, last.stop)

    def _found(self, range: ByteRange) -> bytes | None:
        if not range.size:
            return b""
        for known, data in self._kept:
            if known.start <= range.start and range.stop <= known.stop:
                return data[range.start - known.start : range.stop - known.start]
        return None

    def _checked(self, range: ByteRange, data: bytes) -> bytes:
        rows = self._digests.touching(range)
        wrong = self._digests.wrong(rows, data)
        if wrong:
            raise SourceChanged(
                f"{self.name} has other bytes than when it was indexed",
                offset=self._digests.range(wrong[0]).start,
                expected=f"SHA-256 {self._digests.table.digest[wrong[0]].tobytes().hex()} of the "
                f"bytes {self._digests.range(wrong[0])}",
                found="another",
                advice="fragdex verify names all that is damaged",
            )
        return data

    def _keep(self, range: ByteRange, data: bytes) -> None:
        self._kept.append((range, data))
        while len(self._kept) > 1 and (
            len(self._kept) > _HELD or sum(len(held) for _, held in self._kept) > _MOST_HELD
        ):
            del self._kept[0]
