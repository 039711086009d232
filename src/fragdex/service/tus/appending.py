"""The next bytes of a resumable upload, from the body of a request."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import IO, Final

from anyio.to_thread import run_sync
from fastapi import Request

from fragdex.errors import ChecksumMismatch, Unprocessable
from fragdex.service.context import ServiceContext
from fragdex.service.tus import operations
from fragdex.service.tus.operations import ResumableUpload
from fragdex.service.tus.protocol import Checksum
from fragdex.service.uploads.receiving import receive_stream
from fragdex.service.uploads.upload_session import open_session
from fragdex.service.web.bodies import pieces

IN_MEMORY: Final = 1 << 20


async def append(
    request: Request,
    context: ServiceContext,
    tenant_id: str,
    upload: ResumableUpload,
    offset: int,
    checksum: Checksum | None,
    watched: Callable[[AsyncIterator[bytes]], AsyncIterator[bytes]] | None = None,
) -> ResumableUpload:
    """The upload after the body of a request was taken, whose first byte is at `offset`.

    A body of no announced length may end before the upload does. With a checksum, all bytes are
    taken or none.

    Args:
        watched: the body goes through it; what it raises ends the request, and keeps the bytes.

    Raises:
        ChecksumMismatch: the bytes have another one.
        Unprocessable: more bytes than the upload has.
        and as `uploads.receive`.
    """
    sent = request.headers.get("content-length", "")
    length = int(sent) if sent.isdecimal() else None
    if length == 0 or offset == upload.byte_size:
        return upload
    stop = upload.byte_size if length is None else offset + length
    opened = partial(
        open_session,
        context,
        tenant_id,
        upload.family,
        upload.id,
        f"bytes {offset}-{stop - 1}/{upload.byte_size}",
        limit=upload.limit,
        length=length,
        arrival=upload.arrival,
    )
    limit = min(upload.limit, context.settings.max_chunk_bytes) if checksum else upload.limit
    body = pieces(request, limit)
    if watched is not None:
        body = watched(body)
    with tempfile.SpooledTemporaryFile(IN_MEMORY) as held:
        if checksum is not None:
            await _checked(body, checksum, held)
            body = _again(held)
        try:
            await receive_stream(opened, body)
        except Unprocessable:
            after = await run_sync(operations.find, context, tenant_id, upload.id)
            if length is not None or after.next_byte <= offset:
                raise
            return after  # a body of no announced length ended where it ended
    return await run_sync(operations.find, context, tenant_id, upload.id)


async def _checked(body: AsyncIterator[bytes], checksum: Checksum, held: IO[bytes]) -> None:
    """Hold the bytes of a request until all of them are right: of a wrong one nothing is taken.

    Raises:
        ChecksumMismatch: they are not.
    """
    digest = hashlib.new(checksum.algorithm, usedforsecurity=False)
    async for piece in body:
        digest.update(piece)
        await run_sync(held.write, piece)
    if digest.digest() != checksum.digest:
        raise ChecksumMismatch("the bytes have another checksum; nothing of them was taken")
    held.seek(0)


async def _again(held: IO[bytes]) -> AsyncIterator[bytes]:
    while piece := await run_sync(held.read, 1 << 20):
        yield piece
