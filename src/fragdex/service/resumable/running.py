"""One request at a time for each upload, and interim responses while it runs.

A client that lost its connection comes again while its first request still looks alive here (the
draft's chapter "Concurrency"): a later request ends the one before it. Requests that other
processes serve are kept out by the lease of the upload.

A client has to name the version of the draft (appendix "Draft Version Identification") to be sent
interim responses 104 (Upload Resumption Supported). Many proxies break on interim responses that
they do not know, so that none is sent through one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from anyio.to_thread import run_sync
from starlette.requests import Request

from fragdex.errors import FragdexError, UploadBusy
from fragdex.service.context import ServiceContext
from fragdex.service.resumable.structured_fields import INTEROP_VERSION
from fragdex.service.tus.operations import ResumableUpload
from fragdex.service.uploads.operations import state
from fragdex.serving.connection import INTERIM

PATIENCE: Final = 30.0
"""Seconds that a request may take to make durable what it has."""


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
        raise UploadBusy("a later request of this upload took the place of this one")


class RunningUploads:
    """Those of one process, by the ids of their uploads."""

    def __init__(self) -> None:
        self._running: dict[str, RunningUpload] = {}

    async def supersede(self, upload_id: str) -> None:
        """End the request that sends bytes of an upload; what it brought is durable then.

        Raises:
            UploadBusy: it does not end.
        """
        while (found := self._running.get(upload_id)) is not None:
            found.end()
            try:
                async with asyncio.timeout(PATIENCE):
                    await found.over.wait()
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
    found: RunningUploads = request.app.state.running_uploads
    return found


VERSION: Final = "Upload-Draft-Interop-Version"
FORWARDED: Final = ("forwarded", "via", "x-forwarded-for", "x-forwarded-proto", "x-real-ip")
SECONDS = 5.0
"""Between two responses that tell how far an upload is."""


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
async def progress_told(
    request: Request, context: ServiceContext, tenant_id: str, upload: ResumableUpload
) -> AsyncIterator[None]:
    """Tell how far an upload is while bytes of it are taken."""

    async def tell() -> None:
        last = upload.next_byte
        while True:
            await asyncio.sleep(SECONDS)
            try:
                found = await run_sync(state, context, tenant_id, upload.family, upload.id)
            except FragdexError:
                continue
            if found.next_byte > last:
                last = found.next_byte
                if not announce(request, {"Upload-Offset": str(last)}):
                    return

    telling = asyncio.create_task(tell())
    try:
        yield
    finally:
        telling.cancel()
        await asyncio.wait([telling])
