"""Views and their segments as answers of Starlette: 200, 206, 304, 412, 416, in bounded memory.

Segments whose boxes are made and whose bytes are in the system's memory wait for nothing: such a
request costs one read into a buffer, and one copy of the samples out of it. It is answered where it
arrives, without a change of thread; all others take the general way (decision 0037).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from starlette.concurrency import iterate_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from fragdex.byterange import ByteRange
from fragdex.errors import FragdexError
from fragdex.indexing import native
from fragdex.muxing.view import (
    Block,
    Derived,
    Interleaved,
    Scattered,
    SourceRange,
    View,
    check_same,
)
from fragdex.responses import respond
from fragdex.seeking.origin import FileInfo
from fragdex.serving.connection import SEND_FILE, is_resident
from fragdex.sources import Source

_AT_ONCE: Final = 4 << 20
"""Bytes of an answer that are read at once; larger ones go out piece by piece."""

Opened = Callable[[], AbstractContextManager[list[Any]]]
"""Opens the sources of a view."""
Iterated = Callable[[Iterator[bytes]], AsyncIterator[bytes]]
"""Reads pieces in threads."""


def answer(
    view: View,
    request_headers: Headers,
    method: str,
    opened: Opened,
    fields: Mapping[str, str],
    iterated: Iterated = iterate_in_threadpool,
) -> Response:
    """The answer to GET or HEAD of a view; reads, so that it is called in a thread.

    Args:
        view: what is served.
        request_headers: the request's headers.
        method: GET or HEAD.
        opened: opens the sources of the view.
        fields: headers of every answer.
        iterated: how the pieces of a large answer are read in threads.

    Raises:
        SourceError: before the first byte is sent, so that the answer can say so.
    """
    response = respond(
        method,
        request_headers,
        size=view.size,
        etag=view.etag,
        media_type=view.media_type,
        chunks=partial(_chunks, view, opened),
        more={**fields, **view.fields},
    )
    headers = response.headers
    if method == "HEAD" or int(headers.get("Content-Length", 0)) <= _AT_ONCE:
        return Response(b"".join(response.chunks), response.status, headers)
    return StreamingResponse(iterated(response.chunks), response.status, headers)


def _chunks(view: View, opened: Opened, part: ByteRange) -> Generator[bytes, None, None]:
    with opened() as given:
        yield from view.chunks(part, source=given)


# Segments that wait for nothing: their boxes are made, their bytes are in the system's memory.
#
# Such a request costs one read into a buffer, and one copy of the samples out of it. It is answered
# where it arrives, without a change of thread; all others take the general way (decision 0037).


LARGEST: Final = 2 << 20
"""Bytes that are read where requests arrive: half a millisecond at most."""
PREPARED: Final = 16 << 20
"""Bytes of prepared segments that a process keeps, without their media."""
_WASTE: Final = 4
"""How many times the wanted bytes are read to have them at one go."""
_DECIDES: Final = frozenset((b"range", b"if-none-match", b"if-range", b"if-match"))


def decides(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a field of a request decides what its answer is.

    Args:
        headers: as ASGI has them.
    """
    return any(name in _DECIDES for name, _ in headers)


class Located(NamedTuple):
    """Where the bytes of a segment are.

    Attributes:
        name: of the file, for who opens it.
        file: what was indexed.
        places: ranges of it.
    """

    name: str
    file: FileInfo
    places: Scattered


class PreparedSegment:
    """A segment of a local file, ready to be answered at once.

    Args:
        view: what it is.
        name: of the file, for who opens it.
        file: what was indexed.
        places: where its bytes are, and those that are made.
        fields: of its answer.

    Attributes:
        name: of the file that it is read from.
        size: bytes that it holds in memory.
        headers: of its answer, as ASGI has them.
    """

    __slots__ = ("_file", "_is_stretch", "_places", "_span", "headers", "name", "size")

    def __init__(
        self, view: View, name: str, file: FileInfo, places: Interleaved, fields: Mapping[str, str]
    ) -> None:
        self.name, self._file = name, file
        start, size = places.start, places.size
        inside = start >= 0
        first = int(start[inside].min())
        self._span = ByteRange(first, int((start + size)[inside].max()))
        self._places = places._replace(start=np.where(inside, start - first, start))
        # the made bytes, and one range after them
        self._is_stretch = inside.tolist() == [False, True]
        self.size = len(places.made) + start.nbytes + size.nbytes + 1024
        every = {
            **fields,
            **view.fields,
            "ETag": view.etag,
            "Accept-Ranges": "bytes",
            "Content-Type": view.media_type,
            "Content-Length": str(view.size),
        }
        self.headers = [(k.lower().encode(), text.encode("latin-1")) for k, text in every.items()]

    @classmethod
    def of(
        cls,
        view: View,
        fields: Mapping[str, str],
        locate: Callable[[Scattered], Located | None] | None = None,
    ) -> PreparedSegment | None:
        """Prepare a segment; None: it is too large, or its samples are too far apart.

        Args:
            view: the segment.
            fields: of every answer, besides those that the view gives.
            locate: where ranges of the view's source are, or None; without it, they are in a file
                where the view says.
        """
        if view.size > LARGEST or len(view.sources) != 1:
            return None
        places = _interleaved(view.blocks())
        if places is None or not (inside := places.start >= 0).any():
            return None
        file = view.sources[0]
        ranges = Scattered(0, places.start[inside], places.size[inside])
        located = Located(file.name, file, ranges) if locate is None else locate(ranges)
        if located is None:
            return None
        places = _moved(places, located.places)
        segment = cls(view, located.name, located.file, places, fields)
        wanted = int(ranges.size.sum())
        return segment if segment._span.size <= min(_WASTE * wanted, LARGEST) else None

    def response(
        self, source: Source, buffer: memoryview, extensions: Mapping[str, object]
    ) -> SegmentResponse | None:
        """The answer with it, by the kernel if that can send it; None: not all is in memory.

        Args:
            source: a file that never changes; the answer closes it.
            buffer: as of `read`.
            extensions: of ASGI, that the server has.
        """
        file, span = source.fileno(), self._span
        if self._is_stretch and SEND_FILE in extensions and file is not None:
            with suppress(FragdexError):
                check_same(self._file, source)
                if is_resident(file, span.start, span.size):
                    return SegmentResponse(self, self._places.made, source, span)
        data = self.read(source, buffer)
        return None if data is None else SegmentResponse(self, data, source)

    def read(self, source: Source, buffer: memoryview) -> bytes | None:
        """Its bytes, if they are in memory, and of the file that was indexed.

        Args:
            source: the file.
            buffer: to read into, of twice `LARGEST`.
        """
        span, places = self._span, self._places
        try:
            if not source.read_resident(span, buffer[: span.size]):
                return None
            check_same(self._file, source)
        except FragdexError:
            return None  # the general way says what it is, in its words
        return native.join(buffer, places.start, places.size, places.made)


def _interleaved(blocks: Iterable[Block]) -> Interleaved | None:
    """Blocks of one source as one; None: some are made of what is read."""
    made, starts, sizes = b"", [], []
    for block in blocks:
        if isinstance(block, Derived):
            return None
        if isinstance(block, bytes):
            block = Interleaved(0, block, np.array([-1]), np.array([len(block)]))
        elif isinstance(block, SourceRange):
            block = Scattered(0, np.array([block.range.start]), np.array([block.range.size]))
        start = block.start
        if isinstance(block, Interleaved):
            start = np.where(start < 0, start - len(made), start)
            made += block.made
        starts.append(start)
        sizes.append(block.size)
    return Interleaved(0, made, np.concatenate(starts), np.concatenate(sizes)) if starts else None


def _moved(places: Interleaved, ranges: Scattered) -> Interleaved:
    """The same bytes, those of the source from other ranges, which are divided otherwise.

    Args:
        ranges: as many bytes as those of the source, in their order.
    """
    inside = places.start >= 0
    if np.array_equal(places.size[inside], ranges.size):
        start = places.start.copy()
        start[inside] = ranges.start
        return places._replace(start=start)
    source = np.where(inside, places.size, 0)
    before = np.cumsum(source) - source  # bytes of the source in front of each piece
    ends = np.cumsum(ranges.size)
    starts, sizes = [], []
    pieces = zip(places.start.tolist(), places.size.tolist(), before.tolist(), strict=True)
    for start, size, at in pieces:
        if start < 0:
            starts.append(start)
            sizes.append(size)
            continue
        while size:
            row = int(np.searchsorted(ends, at, side="right"))
            length = min(size, int(ends[row]) - at)
            starts.append(int(ranges.start[row] + ranges.size[row]) - (int(ends[row]) - at))
            sizes.append(length)
            at, size = at + length, size - length
    return places._replace(start=np.array(starts, np.int64), size=np.array(sizes, np.int64))


class SegmentResponse(Response):
    """The answer with a segment: its bytes, and perhaps a range of a file after them.

    Args:
        segment: whose headers it has.
        data: made or read bytes.
        source: the file; closed at the end.
        rest: bytes of it that follow.
    """

    def __init__(
        self, segment: PreparedSegment, data: bytes, source: Source, rest: ByteRange | None = None
    ) -> None:
        self.status_code, self.raw_headers, self.body = 200, segment.headers, data
        self._source, self._rest = source, rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        with self._source:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            more = self._rest is not None
            await send({"type": "http.response.body", "body": self.body, "more_body": more})
            if self._rest is not None:
                rest, file = self._rest, self._source.fileno()
                await send(
                    {"type": SEND_FILE, "file": file, "offset": rest.start, "count": rest.size}
                )
