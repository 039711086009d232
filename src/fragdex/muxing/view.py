"""A view: parts in order, each made bytes or a range of a source; nothing is stored.

A view consists of blocks. How many bytes each has is known in advance; a block is made when a
range touches it, and forgotten. The bytes of its parts are read by few large reads, and are
never those of two versions.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from copy import copy
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt

from fragdex.byterange import ByteRange
from fragdex.fragments.table import Int64
from fragdex.indexing import native
from fragdex.record import record
from fragdex.responses import Fields, Response, respond
from fragdex.seeking.origin import FileInfo
from fragdex.sources import Source, SourceLike, SourcesLike, open_source
from fragdex.sources.files import write_file

if TYPE_CHECKING:
    from typing import Self

__all__ = [
    "Block",
    "Derived",
    "Interleaved",
    "Part",
    "Scattered",
    "SourceRange",
    "Sources",
    "View",
    "Writer",
    "check_same",
    "one_for_each",
    "size_of",
    "sizes_of",
]


class SourceRange(NamedTuple):
    """Bytes of a source that stand in a view as they are.

    Attributes:
        source: number of the source, from 0, in `View.sources`.
    """

    source: int
    range: ByteRange


Part = bytes | SourceRange
"""Made bytes, or bytes of a source."""


class Scattered(NamedTuple):
    """Many ranges of a source, one after the other in a view: samples among those of others.

    Attributes:
        start, size: int64 columns: where each range begins, and its bytes.
    """

    source: int
    start: Int64
    size: Int64

    @classmethod
    def joined(cls, source: int, start: Int64, size: Int64) -> Scattered:
        """Ranges without empty ones, and those that touch as one."""
        filled = size > 0
        start, size = start[filled], size[filled]
        if len(start) > 1:
            heads = np.append(0, np.flatnonzero(start[1:] != start[:-1] + size[:-1]) + 1)
            start, size = start[heads], np.add.reduceat(size, heads)
        return cls(source, start, size)

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
        size: bytes from there on; the result is at least `low + size` long.
    """

    ranges: Scattered
    make: Callable[[Sequence[bytes]], bytes]
    low: int
    size: int

    def made(self, data: Sequence[bytes]) -> bytes:
        """The bytes, from those of each range."""
        return self.make(data)[self.low : self.low + self.size]


class Interleaved(NamedTuple):
    """Made bytes and ranges of a source by turns: fragments one after the other.

    Attributes:
        start, size: int64 columns: where each piece begins, and its bytes. A start below 0 is a
            place in `made`, from the first byte on: -1, -2, …
    """

    source: int
    made: bytes
    start: Int64
    size: Int64

    def parts(self) -> Iterator[Part]:
        """The pieces one by one."""
        for start, size in zip(self.start.tolist(), self.size.tolist(), strict=True):
            if start < 0:
                yield self.made[~start : ~start + size]
            else:
                yield SourceRange(self.source, ByteRange(start, start + size))


Block = Part | Scattered | Derived | Interleaved
"""What views are made of; `View.parts` gives the ranges of a block one by one."""


def size_of(part: Block) -> int:
    """Bytes of a part."""
    if isinstance(part, bytes):
        return len(part)
    if isinstance(part, Derived):
        return part.size
    return part.range.size if isinstance(part, SourceRange) else int(part.size.sum())


def sizes_of(parts: Iterable[Block]) -> int:
    """Bytes of parts."""
    return sum(map(size_of, parts))


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


def one_for_each(given: SourcesLike | None, files: int) -> list[SourceLike | None]:
    """The media of each of several files.

    Raises:
        ValueError: several are given, and not one for each file.
    """
    if not isinstance(given, (list, tuple)):
        return [cast("SourceLike | None", given)] * files
    if len(given) != files:
        raise ValueError(f"{len(given)} sources are given for {files} files")
    return list(given)


class Writer(Protocol):
    """What a view is written into: an open binary file is one."""

    def write(self, data: bytes, /) -> object:
        """Take the next bytes."""


class Sources:
    """The files of a view, opened when they are first read and checked at each read.

    Args:
        given: the media in any form that `open_source` takes, a sequence of them with one for each
            file, or None: they are opened by their names. What was open before stays open.
    """

    def __init__(self, known: Sequence[FileInfo], given: SourcesLike | None = None) -> None:
        self._known = known
        self._given = one_for_each(given, len(known))
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
            media = known.media(given)
            # A timeline may have more files than a process may have open.
            if len(self._mine) >= _MOST_OPEN:
                self._open.pop(self._mine.pop(0)).close()
            opened = open_source(media)
            self._open[number] = opened
            if opened is not given:
                self._mine.append(number)
            self._check(number)
        return self._open[number]

    def bytes_of(self, parts: Iterable[Block]) -> Iterator[bytes]:
        """The bytes of parts, piece by piece in their order.

        Neighbouring ranges of a source are read together where little lies between.

        Raises:
            SourceChanged: a source changed since it was indexed.
            TruncatedInput: it ends too early.
        """
        waiting: list[Part] = []
        gathered = 0
        for part in self._gathered(parts):
            if not waiting and isinstance(part, bytes):
                yield part
                continue
            size = size_of(part)
            if waiting and (gathered + size > _AT_ONCE or len(waiting) >= _TOGETHER):
                yield from self._read(waiting)
                waiting, gathered = [], 0
            while not isinstance(part, bytes) and part.range.size > _AT_ONCE:
                head = ByteRange.of(part.range.start, _AT_ONCE)
                yield from self._read([part._replace(range=head)])
                part = part._replace(range=ByteRange(head.stop, part.range.stop))
            waiting.append(part)
            gathered += size_of(part)
        yield from self._read(waiting)

    def _gathered(self, blocks: Iterable[Block]) -> Iterator[Part]:
        """Scattered ranges: read at one go where what lies between is not much more, or each."""
        for block in blocks:
            if isinstance(block, Derived):
                yield block.made([*self._read([*block.ranges.parts()])])
                continue
            if isinstance(block, (bytes, SourceRange)):
                yield block
                continue
            low, high, wanted = native.span(block.start, block.size)
            made = block.made if isinstance(block, Interleaved) else b""
            source = self.source(block.source)
            if high - low <= min((_REMOTE_WASTE if source.remote else _WASTE) * wanted, _AT_ONCE):
                data = source.read(ByteRange(low, high))
                self._check(block.source)
                yield native.join(data, block.start, block.size, made, low)
                continue
            joined = self._joined(block) if isinstance(block, Interleaved) else None
            if joined is None:
                yield from block.parts()
            else:
                yield joined

    def _joined(self, block: Interleaved) -> bytes | None:
        """The bytes of many pieces, by few reads; None: too much for one go."""
        inside = block.start >= 0
        places, size = block.start[inside], block.size[inside]
        gap = _GAP if self.source(block.source).remote else _LOCAL_GAP
        start = places
        order = start.argsort(kind="stable")
        start, stop = start[order], np.maximum.accumulate((start + size)[order])
        heads = (start[1:] > stop[:-1] + gap).nonzero()[0] + 1
        begins, ends = start[[0, *heads]], stop[[*(heads - 1), -1]]
        if int((ends - begins).sum()) > _AT_ONCE or len(begins) > _TOGETHER:
            return None
        ranges = zip(begins.tolist(), ends.tolist(), strict=True)
        spans = self._spans(block.source, [ByteRange(*one) for one in ranges])
        before = np.array([0, *accumulate(span.size for span, _ in spans)], np.int64)
        begins = np.array([span.start for span, _ in spans], np.int64)
        start = block.start.copy()
        start[inside] = places + (before[:-1] - begins)[begins.searchsorted(places, "right") - 1]
        return native.join(b"".join(data for _, data in spans), start, block.size, block.made)

    def _read(self, parts: Sequence[Part]) -> Iterator[bytes]:
        """The bytes of parts that are not too large together."""
        wanted: dict[int, list[ByteRange]] = {}
        for part in parts:
            if not isinstance(part, bytes):
                wanted.setdefault(part.source, []).append(part.range)
        by_source = {number: self._spans(number, ranges) for number, ranges in wanted.items()}
        for part in parts:
            if isinstance(part, bytes):
                yield part
                continue
            spans = by_source[part.source]
            span, data = spans[
                bisect_right(spans, part.range.start, key=lambda one: one[0].start) - 1
            ]
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
        check_same(self._known[number], self._open[number])


def check_same(known: FileInfo, source: Source) -> None:
    """Hold an open source to what was indexed; a local file as it is now.

    Raises:
        SourceChanged: it is another one.
    """
    size, mtime_ns = source.size, source.mtime_ns
    fd = source.fileno()
    if fd is not None:
        now = os.fstat(fd)
        size, mtime_ns = now.st_size, now.st_mtime_ns
    known.refuse_other(
        source.name, size=size, etag=source.etag, mtime_ns=mtime_ns, identity=source.identity
    )


def _identified(block: Block) -> bytes:
    """What tells a block from others of the same files: its bytes, or where they are."""
    if isinstance(block, bytes):
        return block
    if isinstance(block, Derived):
        return _identified(block.ranges)
    if isinstance(block, (Scattered, Interleaved)):
        return b"".join(map(_identified, block.parts()))
    return f"{block.source} {block.range.start} {block.range.stop};".encode()


_RECIPES: Final = json.JSONEncoder(sort_keys=True)
_FORMAT: Final = 4
"""Grows with each change of the bytes that a recipe gives, so that no cache mixes two."""


@record(frozen=True, slots=True, eq=False)
class View:
    """A file that is described and never stored.

    Attributes:
        media_type: of all of it, with codecs (RFC 6381).
        sources: the files whose bytes it holds, as their indexes know them.
        size: bytes.
        etag: a strong entity tag (RFC 9110, 8.8.3), in quotes: equal for equal sources and recipe.
        findings: which tracks of the sources are not in it and why, as sentences.
        media: where the bytes of the sources come from if none are given to a method; None: from
            where the indexes say.

    >>> view = View("text/plain", (), "example", [3, 2], lambda block: [b"abc", b"de"][block:][:1])
    >>> view.size, view.read(ByteRange(2, 4))
    (5, b'cd')
    """

    media_type: str
    sources: tuple[FileInfo, ...]
    recipe: str
    starts: Int64
    make: Callable[[int], Sequence[Block]]
    findings: tuple[str, ...]
    media: SourcesLike | None

    def __init__(
        self,
        media_type: str,
        sources: Iterable[FileInfo],
        recipe: object,
        sizes: npt.ArrayLike,
        make: Callable[[int], Sequence[Block]],
        findings: Iterable[str] = (),
        media: SourcesLike | None = None,
    ) -> None:
        """Describe a view.

        Args:
            media_type, sources: as the attributes.
            recipe: what decides the bytes besides the sources, of values that JSON knows.
            sizes: bytes of each block.
            make: gives the parts of a block, by its number from 0.
            findings, media: as the attributes.
        """
        lengths = np.asarray(sizes, np.int64)
        starts = np.zeros(len(lengths) + 1, np.int64)
        lengths.cumsum(out=starts[1:])
        for name, value in (
            ("media_type", media_type),
            ("sources", tuple(sources)),
            ("recipe", _RECIPES.encode(recipe)),
            ("starts", starts),
            ("make", make),
            ("findings", tuple(findings)),
            ("media", media),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def of(
        cls,
        media_type: str,
        sources: Iterable[FileInfo],
        recipe: object,
        blocks: Iterable[Block],
        findings: Iterable[str] = (),
    ) -> View:
        """A view of blocks that are known already.

        Args: as those of a view; scattered ranges are divided, so that a range of the view looks
            at no more than it needs.

        >>> View.of("text/plain", (), "example", [b"abc", b"de"]).size
        5
        """
        known: list[Block] = []
        for block in blocks:
            known += _divided(block) if isinstance(block, Scattered) else [block]
        sizes = np.fromiter(map(size_of, known), np.int64, len(known))
        return cls(media_type, sources, recipe, sizes, lambda n: known[n : n + 1], findings)

    @property
    def size(self) -> int:
        """Bytes, known before any of them is made."""
        return int(self.starts[-1])

    @property
    def etag(self) -> str:
        """A strong entity tag, of the sources' validators and the recipe.

        Size and time of a file that is still written change with what comes: there it is of the
        parts themselves, and of which file they are in.
        """
        known: list[Any] = [
            [s.size, s.md5] if s.md5 else [s.size, s.etag, s.mtime_ns] for s in self.sources
        ]
        description = hashlib.md5(usedforsecurity=False)
        if any(s.size is None and s.etag is None for s in self.sources):
            known = [[s.grows_as, s.revision] for s in self.sources]
            for block in self.blocks():
                description.update(_identified(block))
        description.update(json.dumps([_FORMAT, known, self.recipe]).encode())
        return f'"{description.hexdigest()}"'

    def parts(self, range: ByteRange | None = None) -> Iterator[Part | Derived]:
        """The parts of a range of bytes, cut at its ends; of the whole view without one.

        Only blocks that the range touches are made. Bytes after the end are left out.

        >>> view = View("text/plain", (), "", [3, 2], lambda block: [b"abc", b"de"][block:][:1])
        >>> list(view.parts(ByteRange(1, 99)))
        [b'bc', b'de']
        """
        for block in self.blocks(range):
            if isinstance(block, (Scattered, Interleaved)):
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

    def read(self, range: ByteRange | None = None, *, source: SourcesLike | None = None) -> bytes:
        """The bytes of a range, or of the whole view.

        Args:
            range: bytes of the view; bytes after its end are left out.
            source: the media, in any form that `fragdex.open_source` takes, or one for each of
                `sources`; None: `media`, or the files that the indexes were made from.

        Raises:
            SourceChanged: a source is not the one that was indexed, or changes meanwhile.
            SourceError: it cannot be read.
        """
        return b"".join(self.chunks(range, source=source))

    def chunks(
        self, range: ByteRange | None = None, *, source: SourcesLike | None = None
    ) -> Generator[bytes, None, None]:
        """The bytes of a range, or of the whole view, piece by piece, in bounded memory.

        Args: as of `read`; the source stays open until the last piece is taken, or `close()`.

        Raises: as `read`.

        >>> view = View("text/plain", (), "", [3, 2], lambda block: [b"abc", b"de"][block:][:1])
        >>> list(view.chunks(ByteRange(1, 5)))
        [b'bc', b'de']
        """
        with self._opened(source) as sources:
            yield from sources.bytes_of(self.blocks(range))

    def _opened(self, source: SourcesLike | None) -> Sources:
        return Sources(self.sources, self.media if source is None else source)

    def with_media(self, media: SourcesLike | None) -> View:
        """This view, with its bytes from there wherever a method is given no `source`.

        Args:
            media: as `source` of `read`.
        """
        view = copy(self)
        object.__setattr__(view, "media", media)
        return view

    def respond(
        self, method: str, headers: Fields, *, source: SourcesLike | None = None
    ) -> Response:
        """What a web server answers to a request for this view, in any framework.

        Args:
            method: of the request; GET and HEAD are answered, others by 405.
            headers: of the request: a mapping, or pairs; Range, If-Range, If-None-Match and
                If-Match decide (RFC 9110, sections 13 and 14).
            source: as in `read`.

        Returns: `status`, `headers` and `chunks`, which gives the body piece by piece.

        Raises: as `read`, before anything is sent.

        >>> view = View("text/plain", (), "", [5], lambda block: [b"abcde"])
        >>> response = view.respond("GET", {"Range": "bytes=3-"})
        >>> response.status, response.headers["Content-Length"], list(response.chunks)
        (206, '2', [b'de'])
        """
        return respond(
            method,
            headers,
            size=self.size,
            etag=self.etag,
            media_type=self.media_type,
            chunks=partial(self.chunks, source=source),
            more=self.fields,
        )

    @property
    def fields(self) -> dict[str, str]:
        """Header fields of every answer with it: `X-Findings`, where there are any."""
        return {"X-Findings": _in_a_header(self.findings)} if self.findings else {}

    def save(self, path: str | os.PathLike[str], *, source: SourcesLike | None = None) -> None:
        """Write the whole view to a file: atomically, never half of one.

        Args:
            path: of the file; what stood there is as it was when anything fails.
            source: as in `read`.

        Raises: as `read`; OSError: it cannot be written.
        """
        write_file(path, self.chunks(source=source))

    def write_to(self, file: Writer, *, source: SourcesLike | None = None) -> int:
        """Write the whole view into an open binary file; returns how many bytes that were.

        Args:
            file: with a method `write`.
            source: as in `read`.

        Raises: as `read`.
        """
        for piece in self.chunks(source=source):
            file.write(piece)
        return self.size

    def open(self, *, source: SourcesLike | None = None) -> io.BufferedReader:
        """The view as a binary file that can seek, for libraries that want one.

        Args:
            source: as in `read`; open until the file is closed.

        >>> view = View("text/plain", (), "", [5], lambda block: [b"abcde"])
        >>> with view.open() as file:
        ...     file.seek(-2, 2), file.read()
        (3, b'de')
        """
        return io.BufferedReader(_File(self, self._opened(source)), 1 << 16)

    def as_source(self, *, source: SourcesLike | None = None) -> Source:
        """The view as a source, so that it can be indexed and packaged as a file can be.

        `fragdex.index(view)` and whatever else takes media call it; call it yourself where the
        media have to be given.

        Args:
            source: as in `read`; open until the source is closed.

        >>> view = View("text/plain", (), "example", [5], lambda block: [b"abcde"])
        >>> view.as_source().read(ByteRange(1, 3)), view.as_source().etag == view.etag
        (b'bc', True)
        """
        return _ViewSource(self, self._opened(source))

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"<View: {self.media_type}, {self.size:,} bytes>"


_MOST_RANGES: Final = 1024
"""Ranges that are one block."""


def _divided(ranges: Scattered) -> Iterator[Scattered]:
    for low in range(0, len(ranges.start), _MOST_RANGES):
        part = slice(low, low + _MOST_RANGES)
        yield Scattered(ranges.source, ranges.start[part], ranges.size[part])


_MOST_TOLD: Final = 1000
"""Characters of a header of findings; proxies refuse answers with some thousand in all headers."""


def _in_a_header(sentences: Sequence[str]) -> str:
    """What a header can hold of sentences, of which a file may have thousands, with its words."""
    shown, room = [], _MOST_TOLD
    for sentence in sentences:
        room -= len(sentence) + 2
        if room < 0:
            break
        shown.append("".join(letter if " " <= letter <= "~" else "?" for letter in sentence))
    more = len(sentences) - len(shown)
    return "; ".join([*shown, f"and {more} more"] if more else shown)


def _cut(part: Block, low: int, high: int) -> Block:
    if isinstance(part, bytes):
        return part[low:high]
    if isinstance(part, (Scattered, Interleaved)):
        start, size = _cut_ranges(part.start, part.size, low, high)
        return part._replace(start=start, size=size)
    if isinstance(part, Derived):
        return part._replace(low=part.low + low, size=high - low)
    return SourceRange(part.source, ByteRange(part.range.start + low, part.range.start + high))


def _cut_ranges(start: Int64, size: Int64, low: int, high: int) -> tuple[Int64, Int64]:
    ends = np.cumsum(size)
    first = int(np.searchsorted(ends, low, side="right"))
    last = int(np.searchsorted(ends, high, side="left"))
    into = low - (int(ends[first]) - int(size[first]))
    start, size = start[first : last + 1].copy(), size[first : last + 1].copy()
    size[-1] -= int(ends[last]) - high
    start[0] += into if start[0] >= 0 else -into
    size[0] -= into
    return start, size


class _ViewSource(Source):
    """Reads of a view; its files are opened when they are needed."""

    def __init__(self, view: View, sources: Sources) -> None:
        super().__init__("<view>", size=view.size, etag=view.etag)
        self._view, self._sources = view, sources

    def read_up_to(self, range: ByteRange) -> bytes:
        """Return the bytes of `range`, cut at the end."""
        return b"".join(self._sources.bytes_of(self._view.blocks(self._spend(range))))

    def close(self) -> None:
        """Close its files."""
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
        wanted = ByteRange(self._at, self._at + len(target))
        for piece in self._sources.bytes_of(self._view.blocks(wanted)):
            target[at : at + len(piece)] = piece
            at += len(piece)
        self._at += at
        return at

    def close(self) -> None:
        if not self.closed:
            self._sources.__exit__(None, None, None)
        super().close()
