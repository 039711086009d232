"""The next bytes of a resumable upload, from the body of a request: one request at a time.

A client that lost its connection comes again while its first request still looks alive here (the
draft's chapter "Concurrency"): a later request ends the one before it. Requests that other
processes serve are kept out by the lease of the upload.

A client has to name the version of the draft (appendix "Draft Version Identification") to be sent
interim responses 104 (Upload Resumption Supported). Many proxies break on interim responses that
they do not know, so that none is sent through one.
"""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import IO, Final

from anyio.to_thread import run_sync
from fastapi import Request

from fragdex.errors import ChecksumMismatch, FragdexError, Superseded, UploadBusy
from fragdex.service.context import ServiceContext
from fragdex.service.resumable import operations
from fragdex.service.resumable.operations import Checksum, ResumableUpload
from fragdex.service.uploads.operations import state
from fragdex.service.uploads.receiving import receive_body
from fragdex.service.uploads.upload_session import Chunk
from fragdex.service.web.bodies import content_length, pieces
from fragdex.serving.connection import INTERIM

PATIENCE: Final = 30.0
"""Seconds that a request may take to make durable what it has."""
INTEROP_VERSION: Final = "8"
"""What drafts that can speak with each other call themselves."""
VERSION: Final = "Upload-Draft-Interop-Version"
FORWARDED: Final = ("forwarded", "via", "x-forwarded-for", "x-forwarded-proto", "x-real-ip")
SECONDS = 5.0
"""Between two responses that tell how far an upload is."""
IN_MEMORY: Final = 1 << 20
"""Bytes of a body that are held in memory until its checksum is right; more go into a file."""


class RunningUpload:
    """A request that sends bytes of an upload.

    Attributes:
        over: set once what it brought is durable.
    """

    def __init__(self) -> None:
        self.over = asyncio.Event()
        self._ended = False
        self._waiting: asyncio.Timeout | None = None

    def end(self) -> None:
        """Take no more bytes."""
        self._ended = True
        if self._waiting is not None and not self._waiting.expired():
            self._waiting.reschedule(asyncio.get_running_loop().time())

    async def until_ended(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The body as it comes.

        Raises:
            UploadBusy: a later request came; the bytes before it are to be kept.
        """
        while not self._ended:
            try:
                async with asyncio.timeout(None) as self._waiting:
                    piece = await anext(body, None)
            except TimeoutError:
                break
            finally:
                self._waiting = None
            if piece is None:
                return
            yield piece
        raise Superseded("a later request of this upload took the place of this one")


class RunningUploads:
    """Those of one process, by the ids of their uploads."""

    def __init__(self) -> None:
        self._running: dict[str, RunningUpload] = {}

    async def supersede(self, upload_id: str) -> None:
        """End the request that sends bytes of an upload; what it brought is durable then.

        Raises:
            UploadBusy: it does not end.
        """
        while (running := self._running.get(upload_id)) is not None:
            running.end()
            try:
                async with asyncio.timeout(PATIENCE):
                    await running.over.wait()
            except TimeoutError:
                raise UploadBusy("another request is writing these bytes", retry_after=1) from None

    @contextmanager
    def alone(self, upload_id: str) -> Iterator[RunningUpload]:
        """Be the request that sends bytes of an upload, right after `supersede`.

        Raises:
            UploadBusy: another one was faster.
        """
        if upload_id in self._running:
            raise UploadBusy("another request is writing these bytes", retry_after=1)
        running = self._running[upload_id] = RunningUpload()
        try:
            yield running
        finally:
            del self._running[upload_id]
            running.over.set()


def running_of(request: Request) -> RunningUploads:
    """Those of the process that serves a request."""
    uploads: RunningUploads = request.app.state.running_uploads
    return uploads


def announce(request: Request, fields: Mapping[str, str]) -> bool:
    """Send an interim response; False where none may be sent."""
    send = request.scope.get("extensions", {}).get(INTERIM)
    if send is None or request.headers.get(VERSION) != INTEROP_VERSION:
        return False
    if any(name in request.headers for name in FORWARDED):
        return False
    send(104, "Upload Resumption Supported", {VERSION: INTEROP_VERSION, **fields})
    return True


@asynccontextmanager
async def reporting_progress(
    request: Request, context: ServiceContext, tenant_id: str, upload: ResumableUpload
) -> AsyncIterator[None]:
    """Tell how far an upload is while bytes of it are taken."""

    async def tell() -> None:
        last = upload.next_byte
        while True:
            await asyncio.sleep(SECONDS)
            try:
                progress = await run_sync(
                    state, context, tenant_id, upload.target.family, upload.id
                )
            except FragdexError:
                continue
            if progress.next_byte > last:
                last = progress.next_byte
                if not announce(request, {"Upload-Offset": str(last)}):
                    return

    telling = asyncio.create_task(tell())
    try:
        yield
    finally:
        telling.cancel()
        await asyncio.wait([telling])


async def append(
    request: Request,
    context: ServiceContext,
    tenant_id: str,
    upload: ResumableUpload,
    offset: int,
    checksum: Checksum | None,
    *,
    total: int | None = None,
    is_last: bool = False,
    watched: Callable[[AsyncIterator[bytes]], AsyncIterator[bytes]] | None = None,
) -> ResumableUpload:
    """The upload after the body of a request was taken, whose first byte is at `offset`.

    A body of no announced length may end before the upload does. With a checksum, all bytes are
    taken or none.

    Args:
        total: how long the upload is, where the request says it.
        is_last: an upload of no announced length ends with the body.
        watched: the body goes through it; what it raises ends the request, and keeps the bytes.

    Raises:
        ChecksumMismatch: the bytes have another one.
        Unprocessable: more bytes than the upload has.
        and as `uploads.receive`.
    """
    length, target = content_length(request), upload.target
    if upload.is_here or (length == 0 and total is None and not is_last):
        return upload
    is_last = is_last and upload.byte_size is None
    chunk = Chunk(offset, None if length is None else offset + length, total, is_last=is_last)
    limit = target.limit if upload.byte_size is not None else target.limit - offset
    if checksum:
        limit = min(limit, context.settings.max_chunk_bytes)
    body = pieces(request, limit)
    if watched is not None:
        body = watched(body)
    with tempfile.SpooledTemporaryFile(IN_MEMORY) as buffer:
        if checksum is not None:
            await _checked(body, checksum, buffer)
            body = _again(buffer)
        await receive_body(request, tenant_id, target, chunk, body)
    return await run_sync(operations.find, context, tenant_id, upload.id)


async def _checked(body: AsyncIterator[bytes], checksum: Checksum, buffer: IO[bytes]) -> None:
    """Hold the bytes of a request until all of them are right: of a wrong one nothing is taken.

    Raises:
        ChecksumMismatch: they are not.
    """
    digest = hashlib.new(checksum.algorithm, usedforsecurity=False)
    async for piece in body:
        digest.update(piece)
        await run_sync(buffer.write, piece)
    if digest.digest() != checksum.digest:
        raise ChecksumMismatch("the bytes have another checksum; nothing of them was taken")
    buffer.seek(0)


async def _again(buffer: IO[bytes]) -> AsyncIterator[bytes]:
    while piece := await run_sync(buffer.read, 1 << 20):
        yield piece
