"""The body of a request becomes bytes of an upload, whatever protocol it came by.

It is joined to pieces, which are worked on in a few threads. While some are written and hashed the
next one is gathered. A client that sends slowly holds no thread; what is gathered in all uploads
together is bounded, and so are the threads.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import cache, partial
from typing import Any, TypeVar

from starlette.requests import Request

from fragdex.errors import (
    FragdexError,
    RecordNotFound,
    RequestTimedOut,
    ServiceError,
    StoreFull,
    TooLarge,
    Unprocessable,
    UploadBusy,
    UploadGap,
    UploadIncomplete,
)
from fragdex.service.uploads.hashing import FairBudget, SerialExecutor
from fragdex.service.uploads.model import Progress, Target
from fragdex.service.uploads.upload_session import Chunk, UploadSession, announced, open_session
from fragdex.service.web.auth import the_context
from fragdex.service.web.bodies import content_length, pieces

THREADS = 16
ENDING_THREADS = 64
"""Uploads whose bytes are all here: they wait to be indexed in turn, and hold up no other."""

GATHERED = FairBudget(32 << 20, least=64 << 10, most=1 << 20)
"""Bytes of bodies that are gathered to pieces, in all uploads of this process together."""

GATHERED_SECONDS = 0.5
"""So long at most, as long as more comes: a recorder sends little at a time, and is watched."""

WAITING = 2
"""Pieces of an upload that may wait after the one in work."""

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
    size, since = 0, time.monotonic()
    failure: Exception | None = None
    try:
        async for chunk in stream:
            gathered.append(chunk)
            size += len(chunk)
            if size >= GATHERED.each or time.monotonic() - since >= GATHERED_SECONDS:
                piece = b"".join(gathered)
                gathered.clear()
                size, since = 0, time.monotonic()
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
        return  # whatever became of the client, the refusal is what it has to get


REFUSALS: tuple[type[FragdexError], ...] = (
    RecordNotFound,
    UploadGap,
    UploadBusy,
    Unprocessable,
    TooLarge,
    RequestTimedOut,
    StoreFull,
)
"""What the upload of a chunk may be refused with, for `answers`."""

BODY: dict[str, Any] = {
    "parameters": [
        {
            "name": "Content-Range",
            "in": "header",
            "required": False,
            "schema": {"type": "string"},
            "description": "`bytes START-END/TOTAL`, END inclusive; without it the body is whole",
            "example": "bytes 0-4/5",
        }
    ],
    "requestBody": {
        "description": "bytes, whatever Content-Type says",
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    },
}
"""What an upload route adds to its operation in the OpenAPI document (`openapi_extra`)."""


async def receive_request(request: Request, tenant_id: str, target: Target) -> Progress:
    """Receive a request's body: the whole file, or the chunk that Content-Range names.

    A chunk is held to `max_chunk_bytes` too. Raises as `receive_body` and `web.bodies.pieces`.
    """
    field, limit = request.headers.get("content-range"), target.limit
    if field is not None:
        limit = min(limit, the_context(request).settings.max_chunk_bytes)
    body = pieces(request, limit)
    try:
        chunk = announced(field, limit)
    except ServiceError:
        await drain(body)
        raise
    return await receive_body(request, tenant_id, target, chunk, body)


async def receive_body(
    request: Request, tenant_id: str, target: Target, chunk: Chunk, body: AsyncIterator[bytes]
) -> Progress:
    """Receive the body of a request as bytes of an upload.

    Args:
        chunk: which of them.
        body: the request's, and what a protocol sees to on the way.

    Raises as `receive`.
    """
    opened = partial(
        open_session,
        the_context(request),
        tenant_id,
        target.family,
        target.record_id,
        chunk,
        most=target.limit,
        length=content_length(request),
        arrival=target.arrival,
    )
    return await receive_stream(opened, body)


def ensure_complete(progress: Progress) -> None:
    """Published clients ask before they upload: what is not complete is not found.

    Raises:
        UploadIncomplete: bytes are missing; `next_byte` says from where.
    """
    if not progress.complete:
        raise UploadIncomplete(
            "bytes of this upload are missing",
            more={"next_byte": progress.next_byte, "byte_size": progress.byte_size},
        )
