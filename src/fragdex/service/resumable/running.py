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

from fragdex.service.errors import UploadBusy

__all__ = ["Running", "alone", "supersede"]

PATIENCE: Final = 30.0
"""Seconds that a request may take to make durable what it has."""

_running: dict[str, Running] = {}


class Running:
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


async def supersede(upload_id: str) -> None:
    """End the request that sends bytes of an upload; what it brought is durable then.

    Raises:
        UploadBusy: it does not end.
    """
    while (found := _running.get(upload_id)) is not None:
        found.end()
        try:
            async with asyncio.timeout(PATIENCE):
                await found.over.wait()
        except TimeoutError:
            raise UploadBusy("another request is writing these bytes", retry_after=1) from None


@contextmanager
def alone(upload_id: str) -> Iterator[Running]:
    """Be the request that sends bytes of an upload, right after `supersede`.

    Raises:
        UploadBusy: another one was faster.
    """
    if upload_id in _running:
        raise UploadBusy("another request is writing these bytes", retry_after=1)
    running = _running[upload_id] = Running()
    try:
        yield running
    finally:
        del _running[upload_id]
        running.over.set()
