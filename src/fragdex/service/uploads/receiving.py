"""A request's body as an asynchronous stream: joined to pieces, worked on in a few threads.

While some pieces are written and hashed the next one is gathered. A client that sends slowly holds
no thread; what is gathered in all uploads together is bounded, and so are the threads.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import cache, partial
from typing import TypeVar

from fragdex.errors import ServiceError
from fragdex.service.uploads.model import Progress
from fragdex.service.uploads.ordered_workers import FairBudget, SerialExecutor
from fragdex.service.uploads.upload_session import UploadSession

__all__ = ["drain", "receive_stream"]

THREADS = 16
ENDING_THREADS = 64
"""Uploads whose bytes are all here: they wait to be indexed in turn, and hold up no other."""

GATHERED = FairBudget(32 << 20, least=64 << 10, most=1 << 20)
"""Bytes of bodies that are gathered to pieces, in all uploads of this process together."""

WAITING = 2
"""Pieces of an upload that may wait behind the one in work."""

DRAIN_BYTES = 64 << 20
DRAIN_S = 30.0
"""What is read of a body that was refused, so that the client reads the answer: many clients send
all before they listen, and would only see a broken connection."""

T = TypeVar("T")


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, "fragdex-upload")


@cache
def _ending() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(ENDING_THREADS, "fragdex-ending")


async def receive_stream(
    opened: Callable[[], UploadSession], stream: AsyncIterator[bytes]
) -> Progress:
    """`receive`, for a body that arrives as an asynchronous stream of bytes.

    Args:
        opened: opens the session, in a thread.

    Where the stream raises (the client is gone) or the task is cancelled, what arrived is made
    durable. Raises as `receive`.
    """
    opening = _threads().submit(copy_context().run, opened)
    GATHERED.enter()
    try:
        try:
            session = await _result(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_leave_when_open)
            raise
        return await _received(session, stream)
    except ServiceError:
        await drain(stream)
        raise
    finally:
        GATHERED.leave()


async def _received(session: UploadSession, stream: AsyncIterator[bytes]) -> Progress:
    line = SerialExecutor(_threads())
    working: deque[Future[None]] = deque()
    try:
        async for piece in _joined(stream):
            working.append(line.submit(partial(session.take, piece)))
            while len(working) > WAITING:
                await _result(working.popleft())
        while working:
            await _result(working.popleft())
        line = SerialExecutor(_ending())
        return await _result(line.submit(session.end))
    except BaseException:
        # comes after the pieces that wait, also where this is cancelled again
        await _result(line.submit(session.leave))
        raise


async def _result(future: Future[T]) -> T:
    """What a thread returns. Cancelling the one who waits does not stop the thread."""
    return await asyncio.shield(asyncio.wrap_future(future))


def _leave_when_open(opening: Future[UploadSession]) -> None:
    if opening.exception() is None:
        opening.result().leave()


async def _joined(stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The stream in pieces of this upload's share or a little more; what it raises comes last."""
    gathered: list[bytes] = []
    size = 0
    failure: Exception | None = None
    try:
        async for chunk in stream:
            gathered.append(chunk)
            size += len(chunk)
            if size >= GATHERED.each:
                piece = b"".join(gathered)
                gathered.clear()
                size = 0
                yield piece
    except Exception as error:  # noqa: BLE001
        failure = error
    if size:
        yield b"".join(gathered)
    if failure is not None:
        raise failure


async def drain(stream: AsyncIterator[bytes]) -> None:
    """Read on for a while for nobody: whoever sends all first then reads the refusal."""
    size = 0
    try:
        async with asyncio.timeout(DRAIN_S):
            async for chunk in stream:
                size += len(chunk)
                if size > DRAIN_BYTES:
                    return
    except Exception:  # noqa: BLE001
        return  # whatever became of the client, the refusal is what is to be told
