"""Pieces of a new file, made bytes and ranges of a source, to the bytes to write."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

from fragdex.byterange import ByteRange, coalesce

__all__ = ["bytes_of", "bytes_of_view"]

PIECE = 1 << 20
BATCH = 4 << 20
GAP = 64 << 10
"""Bytes between two ranges that are read for nothing, rather than asking twice."""


def bytes_of(pieces: Iterable[Any], source: Any) -> Iterator[bytes]:
    """The bytes of pieces; from afar, ranges that lie near each other come in one request."""

    def parts() -> Iterator[Any]:
        for piece in pieces:
            if isinstance(piece, bytes):
                yield piece
                continue
            for at in range(piece.start, piece.stop, PIECE):
                yield ByteRange(at, min(at + PIECE, piece.stop))

    if not source.remote:
        for part in parts():
            yield part if isinstance(part, bytes) else source.read(part)
        return
    for batch in _batches(parts()):
        ranges = [part for part in batch if not isinstance(part, bytes)]
        merged = coalesce(ranges, max_gap=GAP)
        starts = [block.start for block in merged]
        blocks = [source.read(block) for block in merged]
        for part in batch:
            if isinstance(part, bytes):
                yield part
                continue
            block = bisect_right(starts, part.start) - 1
            low = part.start - starts[block]
            yield blocks[block][low : low + part.size]


def bytes_of_view(view: Any, source: Any) -> Iterator[bytes]:
    """The bytes of a view, piece by piece; `source` is that of its one file, open."""
    from fragdex.views.view_sources import Sources

    with Sources(view.sources, source) as sources:
        yield from sources.bytes_of(view.parts())


def _batches(parts: Iterator[Any]) -> Iterator[list[Any]]:
    """Pieces of a few MiB together."""
    batch: list[Any] = []
    size = 0
    for part in parts:
        batch.append(part)
        size += len(part) if isinstance(part, bytes) else part.size
        if size >= BATCH:
            yield batch
            batch, size = [], 0
    yield batch
