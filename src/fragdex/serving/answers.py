"""Views and their segments as answers of Starlette: 200, 206, 304, 412, 416, in bounded memory.

Segments whose boxes are made and whose bytes are in the system's memory wait for nothing: such a
request costs one read into a buffer, and one copy of the samples out of it. It is answered where it
arrives, without a change of thread; all others take the general way (decision 0037).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from starlette.datastructures import Headers
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from fragdex.byterange import ByteRange
from fragdex.errors import FragdexError
from fragdex.fragments.table import Int64
from fragdex.indexing import native
from fragdex.muxing.view import Scattered, SourceRange, View, check_same
from fragdex.responses import respond
from fragdex.seeking.origin import FileInfo
from fragdex.serving.connection import SEND_FILE, is_resident
from fragdex.sources import Source

_AT_ONCE: Final = 4 << 20
"""Bytes of an answer that are read at once; larger ones go out piece by piece."""

Opened = Callable[[], AbstractContextManager[list[Any]]]
"""Opens the sources of a view."""


def answer(
    view: View, request_headers: Headers, method: str, opened: Opened, fields: Mapping[str, str]
) -> Response:
    """The answer to GET or HEAD of a view; reads, so that it is called in a thread.

    Args:
        view: what is served.
        request_headers: the request's headers.
        method: GET or HEAD.
        opened: opens the sources of the view.
        fields: headers of every answer.

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
    return StreamingResponse(response.chunks, response.status, headers)


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

    >>> decides([(b"host", b"localhost")]), decides([(b"range", b"bytes=0-1")])
    (False, True)
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
        lead: the bytes made for it, which come first.
        located: where all other bytes are.
        fields: of its answer.

    Attributes:
        name: of the file that it is read from.
        size: bytes that it holds in memory.
        headers: of its answer, as ASGI has them.
    """

    __slots__ = ("_file", "_lead", "_sizes", "_span", "_starts", "headers", "name", "size")

    def __init__(
        self, view: View, lead: bytes, located: Located, fields: Mapping[str, str]
    ) -> None:
        self.name, self._file, (_, starts, sizes) = located
        self._span = ByteRange(int(starts.min()), int((starts + sizes).max()))
        # made bytes stand in the same buffer, in front of what is read
        self._lead = lead
        moved = starts - self._span.start + len(lead)
        self._starts: Int64 = np.concatenate([[0], moved]).astype(np.int64)
        self._sizes: Int64 = np.concatenate([[len(lead)], sizes]).astype(np.int64)
        self.size = len(lead) + self._starts.nbytes + self._sizes.nbytes + 1024
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
        blocks = list(view.blocks())
        if len(blocks) != 2:
            return None
        lead, places = blocks
        if isinstance(places, SourceRange):
            start, size = places.range.start, places.range.size
            places = Scattered(0, np.array([start], np.int64), np.array([size], np.int64))
        if not isinstance(lead, bytes) or not isinstance(places, Scattered):
            return None
        file = view.sources[0]
        located = Located(file.name, file, places) if locate is None else locate(places)
        if located is None:
            return None
        segment = cls(view, lead, located, fields)
        wanted = view.size - len(lead)
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
        is_stretch = len(self._sizes) == 2  # the made bytes, and one range
        if is_stretch and SEND_FILE in extensions and file is not None:
            with suppress(FragdexError):
                check_same(self._file, source)
                if is_resident(file, span.start, span.size):
                    return SegmentResponse(self, self._lead, source, span)
        data = self.read(source, buffer)
        return None if data is None else SegmentResponse(self, data, source)

    def read(self, source: Source, buffer: memoryview) -> bytes | None:
        """Its bytes, if they are in memory, and of the file that was indexed.

        Args:
            source: the file.
            buffer: to read into, of twice `LARGEST`.
        """
        lead, span = len(self._lead), self._span
        try:
            if not source.read_resident(span, buffer[lead : lead + span.size]):
                return None
            check_same(self._file, source)
        except FragdexError:
            return None  # the general way says what it is, in its words
        buffer[:lead] = self._lead
        return native.join(buffer, self._starts, self._sizes)


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
