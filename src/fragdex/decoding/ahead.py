"""A source that remembers the stretch it read last, so that what lies beside needs no request."""

from __future__ import annotations

from fragdex.byterange import ByteRange
from fragdex.sources import Source

__all__ = ["Ahead"]


class Ahead(Source):
    r"""Reads of another source, of which one stretch at a time is kept.

    Its own counts are those of what it was asked for; the other source counts what was read.

    >>> from fragdex.sources import open_source
    >>> below = open_source(bytes(range(100)))
    >>> source = Ahead(below)
    >>> source.take(ByteRange(10, 50))
    >>> source.read(ByteRange(20, 22)), source.read(ByteRange(48, 50)), below.requests
    (b'\x14\x15', b'01', 1)
    """

    def __init__(self, below: Source) -> None:
        super().__init__(below.name, size=below.size, etag=below.etag, remote=below.remote)
        self._below = below
        self._start, self._held = 0, b""

    def take(self, stretch: ByteRange) -> None:
        """Read a stretch at once, as far as the file has it, and keep it instead of the last."""
        if not self._holds(stretch):
            self._start, self._held = stretch.start, self._below.read_up_to(stretch)

    def read_up_to(self, range: ByteRange) -> bytes:
        """As of every source."""
        cut = self._spend(range)
        if self._holds(cut):
            return self._held[cut.start - self._start : cut.stop - self._start]
        return self._below.read_up_to(cut)

    def _holds(self, part: ByteRange) -> bool:
        return self._start <= part.start and part.stop <= self._start + len(self._held)
