"""What a view consists of: bytes that are made, and ranges of sources."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from fragdex.byterange import ByteRange
from fragdex.fragments.table import Int64

__all__ = ["Block", "Derived", "Part", "Scattered", "SourceRange", "size_of", "sizes_of"]


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


class Scattered(NamedTuple):
    """Many ranges of a source, one behind the other in a view: samples among those of others.

    Attributes:
        source: number of the source, from 0.
        start, size: int64 columns: where each range begins, and its bytes.

    >>> import numpy as np
    >>> [part.range.stop for part in Scattered(0, np.array([8, 30]), np.array([2, 5])).parts()]
    [10, 35]
    """

    source: int
    start: Int64
    size: Int64

    def parts(self) -> Iterator[SourceRange]:
        """The ranges one by one."""
        stops = (self.start + self.size).tolist()
        for start, stop in zip(self.start.tolist(), stops, strict=True):
            yield SourceRange(self.source, ByteRange(start, stop))


class Derived(NamedTuple):
    """Bytes that are made from bytes of a source when they are read, such as the text of samples.

    Attributes:
        ranges: where the source's bytes are.
        make: gives the bytes from those of each range.
        low: of what `make` gives, the first byte that is meant.
        size: bytes from there on; what is made is at least `low + size` long.

    >>> import numpy as np
    >>> Derived(Scattered(0, np.array([8]), np.array([2])), lambda data: data[0].upper(), 0, 2).size
    2
    """

    ranges: Scattered
    make: Callable[[Sequence[bytes]], bytes]
    low: int
    size: int

    def made(self, data: Sequence[bytes]) -> bytes:
        """The bytes, from those of each range."""
        return self.make(data)[self.low : self.low + self.size]


Block = Part | Scattered | Derived
"""What views are made of; `View.parts` gives scattered ranges one by one."""


def size_of(part: Block) -> int:
    """Bytes of a part.

    >>> import numpy as np
    >>> size_of(Scattered(0, np.array([8, 30]), np.array([2, 5])))
    7
    """
    if isinstance(part, bytes):
        return len(part)
    if isinstance(part, Derived):
        return part.size
    return part.range.size if isinstance(part, SourceRange) else int(part.size.sum())


def sizes_of(parts: Iterable[Block]) -> int:
    """Bytes of parts.

    >>> sizes_of([b"moof", SourceRange(0, ByteRange(8, 20))])
    16
    """
    return sum(map(size_of, parts))
