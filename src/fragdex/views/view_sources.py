"""The bytes behind the parts of a view: few large reads, and never those of two versions."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from fragdex.byterange import ByteRange
from fragdex.errors import SourceNotFound
from fragdex.indexing import native
from fragdex.seeking.origin import SourceInfo
from fragdex.sources import Source, open_source
from fragdex.views.parts import Block, Derived, Part, Scattered, size_of

if TYPE_CHECKING:
    from typing import Self


__all__ = ["Sources"]

_GAP: Final = 64 << 10
"""Bytes between two ranges that are read for nothing, rather than asking a remote source twice."""
_LOCAL_GAP: Final = 4 << 10
"""The same for a file, where a read costs as much as copying so many bytes."""
_WASTE, _REMOTE_WASTE = 4, 1.25
"""How many times the wanted bytes are read to have scattered ones at one go."""
_AT_ONCE: Final = 4 << 20
"""Bytes that are read together at most."""
_MOST_OPEN: Final = 64
"""Sources that are open at once."""
_TOGETHER: Final = 1 << 12
"""Parts that are looked at together."""


class Sources:
    """The files behind a view, opened when they are first read and checked at each read.

    Args:
        known: the files, as their indexes know them.
        given: the media in any form that `open_source` takes, a sequence of them with one for each
            file, or None: they are opened by their names. What was open before stays open.

    >>> with Sources([SourceInfo("", 3)], b"abc") as sources:
    ...     b"".join(sources.bytes_of([b"x"]))
    b'x'
    """

    def __init__(self, known: Sequence[SourceInfo], given: Any = None) -> None:
        several = isinstance(given, (list, tuple))
        if several and len(given) != len(known):
            raise ValueError(f"{len(given)} sources are given for {len(known)} files")
        self._known = known
        self._given = list(given) if several else [given] * len(known)
        self._open: dict[int, Source] = {}
        self._mine: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self._mine:
            self._open.pop(self._mine.pop()).close()
        self._open.clear()

    def source(self, number: int) -> Source:
        """The open source of this number.

        Raises:
            SourceChanged: it is not the file that was indexed.
            SourceNotFound: its name is not known, or there is no such file.
        """
        if number not in self._open:
            given, known = self._given[number], self._known[number]
            # bytes and open files are named in angle brackets
            if given is None and known.name[:1] in ("", "<"):
                raise SourceNotFound(
                    "the index was not made from a file or URL that has a name",
                    advice="give the media with source=",
                )
            self._close_oldest()
            opened = open_source(known.name if given is None else given)
            self._open[number] = opened
            if opened is not given:
                self._mine.append(number)
            self._check(number)
        return self._open[number]

    def _close_oldest(self) -> None:
        """A timeline may have more files than a process may have open."""
        if len(self._mine) >= _MOST_OPEN:
            self._open.pop(self._mine.pop(0)).close()

    def bytes_of(self, parts: Iterable[Block]) -> Iterator[bytes]:
        """The bytes of parts, piece by piece in their order.

        Neighbouring ranges of a source are read together where little lies between.

        Raises:
            SourceChanged: a source changed since it was indexed.
            TruncatedInput: it ends too early.
        """
        waiting: list[Part] = []
        held = 0
        for part in self._gathered(parts):
            size = size_of(part)
            if waiting and (held + size > _AT_ONCE or len(waiting) >= _TOGETHER):
                yield from self._read(waiting)
                waiting, held = [], 0
            while not isinstance(part, bytes) and part.range.size > _AT_ONCE:
                head = ByteRange.of(part.range.start, _AT_ONCE)
                yield from self._read([part._replace(range=head)])
                part = part._replace(range=ByteRange(head.stop, part.range.stop))
            waiting.append(part)
            held += size_of(part)
        yield from self._read(waiting)

    def _gathered(self, blocks: Iterable[Block]) -> Iterator[Part]:
        """Scattered ranges: read at one go where what lies between is not much more, or each."""
        for block in blocks:
            if isinstance(block, Derived):
                yield block.made([*self._read([*block.ranges.parts()])])
                continue
            if not isinstance(block, Scattered):
                yield block
                continue
            start = int(block.start.min())
            stop = int((block.start + block.size).max())
            most = (_REMOTE_WASTE if self.source(block.source).remote else _WASTE) * size_of(block)
            if stop - start > min(most, _AT_ONCE):
                yield from block.parts()
                continue
            data = self.source(block.source).read(ByteRange(start, stop))
            self._check(block.source)
            yield native.join(data, block.start - start, block.size)

    def _read(self, parts: Sequence[Part]) -> Iterator[bytes]:
        """The bytes of parts that are not too large together."""
        wanted: dict[int, list[ByteRange]] = {}
        for part in parts:
            if not isinstance(part, bytes):
                wanted.setdefault(part.source, []).append(part.range)
        found = {number: self._spans(number, ranges) for number, ranges in wanted.items()}
        for part in parts:
            if isinstance(part, bytes):
                yield part
                continue
            spans = found[part.source]
            span, data = spans[bisect_right(spans, part.range.start, key=_start) - 1]
            low, high = part.range.start - span.start, part.range.stop - span.start
            yield data if high - low == len(data) else data[low:high]

    def _spans(self, number: int, ranges: list[ByteRange]) -> list[tuple[ByteRange, bytes]]:
        """What is read of a source: ranges joined where little lies between."""
        source = self.source(number)
        gap = _GAP if source.remote else _LOCAL_GAP
        spans: list[ByteRange] = []
        for one in sorted(ranges):
            last = spans[-1] if spans else one
            stop = max(last.stop, one.stop)
            near = one.start <= last.stop + gap and stop - last.start <= max(_AT_ONCE, last.size)
            if spans and near:
                spans[-1] = ByteRange(last.start, stop)
            else:
                spans.append(one)
        many = source.remote and len(spans) > 1
        data = source.read_many(spans) if many else [source.read(span) for span in spans]
        for span, read in zip(spans, data, strict=True):
            if len(read) != span.size:
                source.read(span)  # says where it ends
        self._check(number)
        return list(zip(spans, data, strict=True))

    def _check(self, number: int) -> None:
        """A source that changed since it was indexed gives no bytes, not even right ones."""
        source, known = self._open[number], self._known[number]
        size, mtime_ns = source.size, source.mtime_ns
        fd = source.fileno()
        if fd is not None:
            now = os.fstat(fd)
            size, mtime_ns = now.st_size, now.st_mtime_ns
        known.refuse_other(source.name, size=size, etag=source.etag, mtime_ns=mtime_ns)


def _start(span: tuple[ByteRange, bytes]) -> int:
    return span[0].start
