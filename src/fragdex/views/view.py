"""The value of a view: parts in order, each made bytes or a range of a source; nothing is stored.

A view consists of blocks. How many bytes each has is known beforehand; a block is made when a
range touches it, and forgotten.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from fragdex.byterange import ByteRange
from fragdex.fragments.table import Int64
from fragdex.seeking.origin import SourceInfo
from fragdex.sources import Source
from fragdex.views.parts import Block, Derived, Part, Scattered, SourceRange, size_of
from fragdex.views.view_sources import Sources

__all__ = ["View"]

_FORMAT: Final = 3
"""Grows with each change of the bytes that a recipe gives, so that no cache mixes two."""


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A file that is described and never stored.

    Attributes:
        media_type: of all of it, with codecs (RFC 6381).
        sources: the files whose bytes it holds, as their indexes know them.
        size: bytes.
        etag: a strong entity tag (RFC 9110, 8.8.3), in quotes: equal for equal sources and recipe.
        findings: which tracks of the sources are not in it and why, as sentences.

    >>> view = View("text/plain", (), "example", [3, 2], lambda block: [b"abc", b"de"][block:][:1])
    >>> view.size, view.read(ByteRange(2, 4))
    (5, b'cd')
    """

    media_type: str
    sources: tuple[SourceInfo, ...]
    recipe: str
    starts: Int64
    make: Callable[[int], Sequence[Block]]
    findings: tuple[str, ...]

    def __init__(
        self,
        media_type: str,
        sources: Iterable[SourceInfo],
        recipe: Any,
        sizes: Any,
        make: Callable[[int], Sequence[Block]],
        findings: Iterable[str] = (),
    ) -> None:
        """Describe a view.

        Args:
            media_type, sources: as the attributes.
            recipe: what decides the bytes besides the sources, of values that JSON knows.
            sizes: bytes of each block.
            make: gives the parts of a block, by its number from 0.
            findings: as the attribute.
        """
        lengths = np.asarray(sizes, np.int64)
        starts = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=starts[1:])
        for name, value in (
            ("media_type", media_type),
            ("sources", tuple(sources)),
            ("recipe", json.dumps(recipe, sort_keys=True)),
            ("starts", starts),
            ("make", make),
            ("findings", tuple(findings)),
        ):
            object.__setattr__(self, name, value)

    @property
    def size(self) -> int:
        """Bytes, known before any of them is made."""
        return int(self.starts[-1])

    @property
    def etag(self) -> str:
        """A strong entity tag, of the sources' validators and the recipe."""
        known = [[s.size, s.md5] if s.md5 else [s.size, s.etag, s.mtime_ns] for s in self.sources]
        told = json.dumps([_FORMAT, known, self.recipe]).encode()
        return f'"{hashlib.md5(told, usedforsecurity=False).hexdigest()}"'

    def parts(self, range: ByteRange | None = None) -> Iterator[Part | Derived]:
        """The parts of a range of bytes, cut at its ends; of the whole view without one.

        Only blocks that the range touches are made. Bytes behind the end are left out.

        >>> view = View("text/plain", (), "", [3, 2], lambda block: [b"abc", b"de"][block:][:1])
        >>> list(view.parts(ByteRange(1, 99)))
        [b'bc', b'de']
        """
        for block in self.blocks(range):
            if isinstance(block, Scattered):
                yield from block.parts()
            else:
                yield block

    def blocks(self, range: ByteRange | None = None) -> Iterator[Block]:
        """`parts`, with scattered ranges that are whole together, so that they can be read so."""
        start = 0 if range is None else range.start
        stop = self.size if range is None else min(range.stop, self.size)
        block = int(np.searchsorted(self.starts, start, side="right")) - 1
        while start < stop:
            at = int(self.starts[block])
            for part in self.make(block):
                size = size_of(part)
                low, high = max(start - at, 0), min(stop - at, size)
                if low < high:
                    yield part if high - low == size else _cut(part, low, high)
                at += size
            start = max(start, int(self.starts[block + 1]))
            block += 1

    def read(self, range: ByteRange | None = None, *, source: Any = None) -> bytes:
        """The bytes of a range, or of the whole view.

        Args:
            range: bytes of the view; behind its end there are none.
            source: the media, in any form that `fragdex.open_source` takes, or one for each of
                `sources`; None: the files that the indexes were made from.

        Raises:
            SourceChanged: a source is not the one that was indexed, or changes meanwhile.
            SourceError: it cannot be read.
        """
        with Sources(self.sources, source) as sources:
            return b"".join(sources.bytes_of(self.blocks(range)))

    def write_to(self, file: Any, *, source: Any = None) -> int:
        """Write the whole view into an open binary file; returns how many bytes that were.

        Args:
            file: with a method `write`.
            source: as in `read`.

        Raises: as `read`.
        """
        with Sources(self.sources, source) as sources:
            for piece in sources.bytes_of(self.blocks()):
                file.write(piece)
        return self.size

    def open(self, *, source: Any = None) -> io.BufferedReader:
        """The view as a binary file that can seek, for libraries that want one.

        Args:
            source: as in `read`; open until the file is closed.

        >>> view = View("text/plain", (), "", [5], lambda block: [b"abcde"])
        >>> with view.open() as file:
        ...     file.seek(-2, 2), file.read()
        (3, b'de')
        """
        return io.BufferedReader(_File(self, Sources(self.sources, source)), 1 << 16)

    def as_source(self, *, source: Any = None) -> Source:
        """The view as a source, so that it can be indexed and packaged as a file can be.

        `fragdex.index(view)` and whatever else takes media call it; call it yourself where the
        media have to be given.

        Args:
            source: as in `read`; open until the source is closed.

        >>> view = View("text/plain", (), "example", [5], lambda block: [b"abcde"])
        >>> view.as_source().read(ByteRange(1, 3)), view.as_source().etag == view.etag
        (b'bc', True)
        """
        return _ViewSource(self, Sources(self.sources, source))

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"<View: {self.media_type}, {self.size:,} bytes>"


def _cut(part: Block, low: int, high: int) -> Block:
    if isinstance(part, bytes):
        return part[low:high]
    if isinstance(part, Scattered):
        return _cut_ranges(part, low, high)
    if isinstance(part, Derived):
        return part._replace(low=part.low + low, size=high - low)
    return SourceRange(part.source, ByteRange(part.range.start + low, part.range.start + high))


def _cut_ranges(part: Scattered, low: int, high: int) -> Scattered:
    ends = np.cumsum(part.size)
    first = int(np.searchsorted(ends, low, side="right"))
    last = int(np.searchsorted(ends, high, side="left"))
    start, size = part.start[first : last + 1].copy(), part.size[first : last + 1].copy()
    size[-1] -= int(ends[last]) - high
    into = low - (int(ends[first]) - int(part.size[first]))
    start[0] += into
    size[0] -= into
    return Scattered(part.source, start, size)


class _ViewSource(Source):
    """Reads of a view; the files behind it are opened when they are needed."""

    def __init__(self, view: View, sources: Sources) -> None:
        super().__init__("<view>", size=view.size, etag=view.etag)
        self._view, self._sources = view, sources

    def read_up_to(self, range: ByteRange) -> bytes:
        """Return the bytes of `range`, cut at the end."""
        return b"".join(self._sources.bytes_of(self._view.blocks(self._spend(range))))

    def close(self) -> None:
        """Close the files behind it."""
        super().close()
        self._sources.__exit__(None, None, None)


class _File(io.RawIOBase):
    def __init__(self, view: View, sources: Sources) -> None:
        self._view, self._sources, self._at = view, sources, 0
        sources.__enter__()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        base = (0, self._at, self._view.size)[whence]
        if base + offset < 0:
            raise ValueError(f"negative position {base + offset}")
        self._at = base + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        target = memoryview(buffer).cast("B")
        at = 0
        asked = ByteRange(self._at, self._at + len(target))
        for piece in self._sources.bytes_of(self._view.blocks(asked)):
            target[at : at + len(piece)] = piece
            at += len(piece)
        self._at += at
        return at

    def close(self) -> None:
        if not self.closed:
            self._sources.__exit__(None, None, None)
        super().close()
