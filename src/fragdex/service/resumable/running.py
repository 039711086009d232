"""One request at a time for each upload: a later one ends the one before it.

A client that lost its connection comes again while its first request still looks alive here (the
draft's chapter "Concurrency"). Requests that other processes serve are kept out by the lease of
the upload.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Final

from starlette.requests import Request

from fragdex.errors import UploadBusy

__all__ = ["RunningUpload", "RunningUploads", "running_of"]

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
