"""Request bodies: limited and timed while they come in, and handed to a thread.

But for `need_content_type`, nothing here looks at Content-Type: published clients send JSON's on
every request.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, TypeVar

from starlette.requests import Request

from fragdex.errors import RequestTimedOut, TooLarge, UnsupportedMediaType
from fragdex.service.web.threads import run_at_store

T = TypeVar("T")

PIECE = 1 << 20
"""Bytes that are gathered before a thread is woken for them; the server reads 64 KiB at a time."""

SLOWEST = 1 << 10
"""Bytes a second that a body has to come in with on average, apart from the pause it may make."""

AHEAD = 2
"""Pieces that may wait for the thread: with the one in work, 4 MiB a request at most."""

_END = object()


def content_length(request: Request) -> int | None:
    """The Content-Length of a request, or None: the body tells where it ends."""
    sent = request.headers.get("content-length", "")
    return int(sent) if sent.isdecimal() else None


def need_content_type(request: Request, expected: str) -> None:
    """Refuse a body of another media type.

    Raises:
        UnsupportedMediaType: parameters of the type do not count.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != expected:
        raise UnsupportedMediaType(
            f"Content-Type must be {expected}", expected=expected, found=media_type
        )


async def pieces(request: Request, limit: int) -> AsyncIterator[bytes]:
    """The body as it comes in, no more than `limit` bytes.

    Raises:
        TooLarge: at once where Content-Length says so, else when the bytes pass the limit.
        RequestTimedOut: nothing came for `body_timeout_seconds`, or too little for longer.
        ClientDisconnect: the client is gone.
    """
    if (content_length(request) or 0) > limit:
        raise _too_large(limit)
    pause = request.app.state.context.settings.body_timeout_seconds
    size = 0
    waited = 0.0
    stream = request.stream()
    while True:
        began = time.monotonic()
        try:
            async with asyncio.timeout(pause):
                piece = await anext(stream, None)
        except TimeoutError:
            raise RequestTimedOut(f"no byte of the body came for {pause:g} s") from None
        if piece is None:
            return
        size += len(piece)
        if size > limit:
            raise _too_large(limit)
        # what the service itself takes its time for is not the sender's
        waited += time.monotonic() - began
        if waited > pause + size / SLOWEST:
            raise RequestTimedOut(
                f"{size} bytes of the body came in {waited:.0f} s",
                expected=f"{SLOWEST} bytes a second",
            )
        if piece:
            yield piece


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"the body is over the limit of {limit} bytes", more={"limit": limit})


async def body(request: Request, limit: int) -> bytes:
    """The whole body, no more than `limit` bytes; raises what `pieces` raises."""
    return b"".join([piece async for piece in pieces(request, limit)])


async def in_thread(request: Request, limit: int, work: Callable[[Iterator[bytes]], T]) -> T:
    """Run `work(pieces)` in a thread while the body comes in; `pieces` yields 1 MiB at a time.

    What `pieces` raises here (TooLarge, RequestTimedOut, ClientDisconnect), it raises in the
    thread, at the place where the bytes end: what came before is the caller's to keep. Where `work`
    returns early the rest of the body is not read.
    """
    waiting: queue.Queue[Any] = queue.Queue()
    room = asyncio.Semaphore(AHEAD)
    loop = asyncio.get_running_loop()
    over = threading.Event()

    def taken() -> Iterator[bytes]:
        while True:
            item = waiting.get()
            if item is _END:
                return
            if isinstance(item, BaseException):
                raise item
            loop.call_soon_threadsafe(room.release)
            yield item

    def run() -> T:
        try:
            return work(taken())
        finally:
            over.set()
            loop.call_soon_threadsafe(room.release)

    async def feed() -> None:
        gathered = bytearray()
        try:
            async for piece in pieces(request, limit):
                gathered += piece
                if len(gathered) >= PIECE:
                    waiting.put(bytes(gathered))
                    gathered.clear()
                    await room.acquire()
                    if over.is_set():
                        return
        except BaseException as error:
            if gathered:
                waiting.put(bytes(gathered))
            waiting.put(error if isinstance(error, Exception) else _END)
            if not isinstance(error, Exception):
                raise
            return
        if gathered:
            waiting.put(bytes(gathered))
        waiting.put(_END)

    feeding = asyncio.create_task(feed())
    try:
        # abandoned threads would keep writing during the next request
        return await run_at_store(run)
    finally:
        if not feeding.done():
            feeding.cancel()
        await asyncio.wait([feeding])
