"""Stored bytes over HTTP: 200, 206, 304, 416 (RFC 9110, sections 13 to 15), in bounded memory.

Who answers is `MediaResponse`; it reads in threads, one hop a piece: local files by position, other
stores by their own pieces. With `x_accel_prefix` set, a local file is named to nginx instead, which
then answers ranges itself. Which form the caller takes, and whether it has it already, is decided
here for other answers, too.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from fragdex.byterange import ByteRange, content_range, parse_range
from fragdex.errors import NotAcceptable
from fragdex.responses import has_already, may_be_partial
from fragdex.service.records.blobs import StoredBytes
from fragdex.service.store.composing import ComposedFile, ComposingStore
from fragdex.service.web.auth import the_context
from fragdex.service.web.problems import HTTP, problem
from fragdex.service.web.threads import run_at_store
from fragdex.serving.connection import SEND_FILE, is_resident

MAX_PARTS = 16
"""Ranges answered in one multipart answer; a request for more gets the whole (200)."""

PIECE = 512 << 10
"""Bytes read and sent at a time: what one answer holds in memory."""

_FEW, _LARGE = 4, 16 << 10
"""So many ranges of a file are sent by the kernel one by one, and more if they are so large."""

CACHE_CONTROL = "private, max-age=3600"
"""Bytes under an id never change; a private cache may keep what a tenant may see."""


def media_of(
    request: Request, stored: StoredBytes, headers: Mapping[str, str] | None = None
) -> Response:
    """The answer to GET or HEAD of stored bytes.

    Args:
        request: its method, Range, If-Range and If-None-Match decide.
        stored: the bytes; their md5 is the strong entity tag, their sha256 the Repr-Digest
            (RFC 9530).
        headers: more for every answer with or about the bytes.
    """
    context, size = the_context(request), stored.byte_size
    etag = etag_of(stored.md5)
    fields = {
        "ETag": etag,
        "Accept-Ranges": "bytes",
        "Cache-Control": CACHE_CONTROL,
        "Repr-Digest": f"sha-256=:{base64.b64encode(stored.sha256).decode()}:",
        **(headers or {}),
    }
    headers_sent = request.headers
    if has_already(headers_sent, etag):
        return Response(status_code=304, headers=fields)
    fields["Content-Type"] = stored.mime_type
    store: ComposingStore | _InMemory = context.store
    if stored.content is not None:
        store = _InMemory(stored.content)
    path = store.path(stored.store_key)
    prefix, folder = context.settings.x_accel_prefix, context.settings.store_folder
    # nginx keeps few fields of an answer: what has some of its own is sent from here
    if prefix and folder is not None and path is not None and size and not headers:
        named = _named(prefix, folder, path)
        if named is not None:
            del fields["Accept-Ranges"]  # nginx would say it twice
            return Response(headers={**fields, "X-Accel-Redirect": named})
    wanted = headers_sent.get("range")
    if request.method != "GET" or not may_be_partial(headers_sent, etag):
        wanted = None
    answer = parse_range(wanted, size, max_ranges=MAX_PARTS)
    if answer.status == 416:
        row = HTTP[416]
        return problem(row, f"there are {size} bytes", headers=answer.headers, more={"size": size})
    ranges = answer.ranges if answer.status == 206 else ()
    return MediaResponse(store, stored.store_key, path, size, ranges, fields)


def media_answers(*types: str) -> dict[int | str, dict[str, Any]]:
    """What `media_of` may answer, for the `responses` of a route; `types` are the media types."""
    binary = {"schema": {"type": "string", "format": "binary"}}
    content = dict.fromkeys(types, binary)
    parts = {"multipart/byteranges": binary}
    refused = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {
        200: {"description": "All bytes", "content": content},
        206: {"description": "The bytes of the Range", "content": {**content, **parts}},
        304: {"description": "The caller has them already"},
        416: {"description": HTTP[416].title, "content": refused},
    }


def _named(prefix: str, folder: Path, path: Path) -> str | None:
    """A file of the store's folder, by the internal location of nginx that is over it."""
    if not path.is_relative_to(folder):
        return None
    return f"{prefix.rstrip('/')}/{quote(path.relative_to(folder).as_posix())}"


class _InMemory:
    """Bytes that the store had no room for, read as those of a store."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def path(self, key: str) -> None:
        """They are not a file."""

    def size(self, key: str) -> int:
        """How many there are."""
        return len(self._content)

    def read(self, key: str, part: ByteRange) -> Iterator[bytes]:
        """Some of them, a piece at a time."""
        for at in range(part.start, part.stop, PIECE):
            yield self._content[at : min(at + PIECE, part.stop)]


class MediaResponse(Response):
    """Bytes of an object, whole or in ranges; several as multipart/byteranges."""

    def __init__(
        self,
        store: ComposingStore | _InMemory,
        key: str,
        path: Path | None,
        size: int,
        ranges: tuple[ByteRange, ...],
        headers: Mapping[str, str],
    ) -> None:
        self._store, self._key, self._path = store, key, path
        whole = (ByteRange(0, size),)
        self._ranges = ranges or whole
        fields = dict(headers)
        self._heads: list[bytes] = []
        self._tail = b""
        length = sum(one.size for one in self._ranges)
        if len(ranges) == 1:
            fields["Content-Range"] = content_range(ranges[0], size)
        elif ranges:
            boundary = secrets.token_hex(12)
            kind = fields["Content-Type"]
            self._heads = [
                (
                    f"\r\n--{boundary}\r\nContent-Type: {kind}\r\n"
                    f"Content-Range: {content_range(one, size)}\r\n\r\n"
                ).encode("latin-1")
                for one in ranges
            ]
            self._tail = f"\r\n--{boundary}--\r\n".encode("latin-1")
            fields["Content-Type"] = f"multipart/byteranges; boundary={boundary}"
            length += sum(map(len, self._heads)) + len(self._tail)
        fields["Content-Length"] = str(length)
        self._single = len(self._ranges) == 1 and not self._heads and length <= PIECE
        super().__init__(status_code=206 if ranges else 200, headers=fields)
        # Response gives an answer without content a length of 0
        self.headers["content-length"] = str(length)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer: the head goes out once the first bytes are at hand, so that errors have one."""
        start = {
            "type": "http.response.start",
            "status": self.status_code,
            "headers": self.raw_headers,
        }
        if scope["method"] == "HEAD":
            await send(start)
            await send({"type": "http.response.body", "body": b""})
            return
        gone = asyncio.create_task(disconnected(receive)) if not self._single else None
        try:
            if SEND_FILE in (scope.get("extensions") or {}) and await self._sent_as_file(
                send, start, gone
            ):
                return
            await self._send_pieces(send, start, gone)
        finally:
            if gone is not None:
                gone.cancel()
                with suppress(asyncio.CancelledError):
                    await gone

    async def _send_pieces(
        self, send: Send, start: Message, gone: asyncio.Task[None] | None
    ) -> None:
        """Send what threads read."""
        if gone is None:
            data = await run_at_store(self._read_at_once)
            await send(start)
            await send({"type": "http.response.body", "body": data})
            return
        pieces = self._pieces()
        try:
            piece = await run_at_store(next, pieces, None)
            await send(start)
            while piece is not None and not gone.done():
                await send({"type": "http.response.body", "body": piece, "more_body": True})
                piece = await run_at_store(next, pieces, None)
            if not gone.done():
                await send({"type": "http.response.body", "body": b""})
        finally:
            # cancelled or not, what is open is closed
            await asyncio.shield(run_at_store(pieces.close))  # type: ignore[attr-defined]

    async def _sent_as_file(
        self, send: Send, start: Message, gone: asyncio.Task[None] | None
    ) -> bool:
        """Have the kernel send what is in memory; a thread reads what has to be waited for."""
        composed = None
        if self._path is None and isinstance(self._store, ComposingStore):
            composed = self._store.file_of(self._key)
        try:
            file = FileIO(self._path or (composed.path if composed else ""))
        except OSError:
            return False  # a thread says what it is
        with file:
            number, left, began = file.fileno(), int(self.headers["content-length"]), False
            if composed is not None and os.fstat(number).st_size != composed.size:
                return False  # as above
            for piece in self._parts():
                parts = _resident(number, piece, composed)
                if parts is None:
                    if gone is None:
                        return False  # one visit of a thread does all
                    assert isinstance(piece, ByteRange)
                    parts = [await run_at_store(self._read, number, piece)]
                if not began:
                    await send(start)
                    began = True
                for part in parts:
                    if gone is not None and gone.done():
                        return True
                    message: Message
                    if isinstance(part, bytes):
                        left -= len(part)
                        message = {"type": "http.response.body", "body": part}
                    else:
                        left -= part.size
                        message = {
                            "type": SEND_FILE, "file": number, "offset": part.start,
                            "count": part.size,
                        }  # fmt: skip
                    await send({**message, "more_body": left > 0})
            return began

    def _read(self, number: int, part: ByteRange) -> bytes:
        """A range of the object, in a thread."""
        if self._path is None:
            return b"".join(self._store.read(self._key, part))
        return _read(number, part.start, part.size)

    def _read_at_once(self) -> bytes:
        """A small answer in one visit of a thread."""
        if self._path is None:
            return b"".join(self._store.read(self._key, self._ranges[0]))
        with self._opened(self._path) as file:
            return _read(file.fileno(), self._ranges[0].start, self._ranges[0].size)

    def _pieces(self) -> Iterator[bytes]:
        if self._path is None:
            for part in self._parts(piece=None):
                if isinstance(part, bytes):
                    yield part
                else:
                    yield from self._store.read(self._key, part)
            return
        with self._opened(self._path) as file:
            for part in self._parts():
                if isinstance(part, bytes):
                    yield part
                else:
                    yield _read(file.fileno(), part.start, part.size)

    def _parts(self, piece: int | None = PIECE) -> Iterator[bytes | ByteRange]:
        """What the body consists of: made bytes, and ranges of the object, of a piece at most."""
        for place, one in enumerate(self._ranges):
            yield from self._heads[place : place + 1]
            for at in range(one.start, one.stop, piece or max(1, one.size)):
                yield ByteRange(at, min(at + piece, one.stop) if piece else one.stop)
        if self._tail:
            yield self._tail

    def _opened(self, path: Path) -> FileIO:
        try:
            return FileIO(path)
        except FileNotFoundError:
            self._store.size(self._key)  # tells SourceNotFound
            raise


def _resident(
    number: int, piece: bytes | ByteRange, composed: ComposedFile | None
) -> Sequence[bytes | ByteRange] | None:
    """Bytes, and ranges of an open file that are in memory; None: they are not, or too many.

    Args:
        piece: made bytes, or a range of an object.
        composed: None: the object is the file.
    """
    if isinstance(piece, bytes):
        return [piece]
    parts: Sequence[bytes | ByteRange] | None = [piece]
    if composed is not None:
        parts = composed.parts(piece, _FEW + piece.size // _LARGE)
    for part in parts or ():
        if isinstance(part, ByteRange) and not is_resident(number, part.start, part.size):
            return None
    return parts


def _read(descriptor: int, start: int, size: int) -> bytes:
    data = os.pread(descriptor, size, start)
    while len(data) < size:
        more = os.pread(descriptor, size - len(data), start + len(data))
        if not more:
            raise OSError("a stored object is shorter than its record says")
        data += more
    return data


async def disconnected(receive: Receive) -> None:
    """Returns once the client is gone; a server that continues reading for nobody wastes both."""
    while (await receive())["type"] != "http.disconnect":
        pass


def etag_of(md5: bytes, form: str = "") -> str:
    """The strong entity tag of stored bytes, or of one form of what is negotiated.

    >>> etag_of(bytes(16), "hls")
    '"00000000-0000-0000-0000-000000000000-hls"'
    """
    digits = md5.hex()
    dashed = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    return f'"{dashed}-{form}"' if form else f'"{dashed}"'


def made_text(request: Request, content: bytes, media_type: str) -> Response:
    """The answer to GET or HEAD of text that is made when it is needed: 200, or 304."""
    etag = etag_of(hashlib.md5(content, usedforsecurity=False).digest())
    headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
    if has_already(request.headers, etag):
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=media_type, headers=headers)


def made_text_answers(answer: Mapping[str, Any]) -> dict[int | str, dict[str, Any]]:
    """What the document says of `made_text`: `answer` is what 200 holds."""
    return {
        200: {"description": "The captions", **answer},
        304: {"description": "They are those that the caller has"},
    }


def text_of(media_type: str) -> dict[str, Any]:
    """What 200 of `made_text_answers` holds: text of this type."""
    return {"content": {media_type: {"schema": {"type": "string"}}}}


def chosen(accept: str | None, forms: Sequence[str]) -> str:
    """The media type of `forms` that `accept` prefers; the first of equals, and by default.

    Raises:
        NotAcceptable: `accept` rules all of them out.

    >>> chosen("text/html;q=0.5, application/*", ["text/html", "application/json"])
    'application/json'
    """
    if not accept or not accept.strip():
        return forms[0]
    weights: dict[str, float] = {}
    for part in accept.split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        weight = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    weight = min(1.0, max(0.0, float(parameter[2:])))
                except ValueError:
                    weight = 0.0
        if name:
            weights[name] = weight

    def weight_of(form: str) -> float:
        # the most specific range decides, also where it weighs less
        for name in (form, f"{form.partition('/')[0]}/*", "*/*"):
            if name in weights:
                return weights[name]
        return 0.0

    best = max(forms, key=weight_of)
    if weight_of(best) <= 0:
        raise NotAcceptable(f"supported: {', '.join(forms)}", more={"forms": [*forms]})
    return best
