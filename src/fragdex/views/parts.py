"""What a view consists of: bytes that are made, and ranges of sources."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fragdex.byterange import ByteRange

__all__ = ["Part", "SourceRange", "sizes_of"]


class SourceRange(NamedTuple):
    """Bytes of a source that stand in a view as they are.

    Attributes:
        source: number of the source, from 0, in `View.sources`.
        range: bytes of it.

    >>> SourceRange(0, ByteRange(8, 20)).range.size
    12
    """

    source: int
    range: ByteRange


Part = bytes | SourceRange
"""Made bytes, or bytes of a source."""


def sizes_of(parts: Iterable[Part]) -> int:
    """Bytes of parts.

    >>> sizes_of([b"moof", SourceRange(0, ByteRange(8, 20))])
    16
    """
    return sum(len(p) if isinstance(p, bytes) else p.range.size for p in parts)
