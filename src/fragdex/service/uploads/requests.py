"""The upload routes that every family has alike: bytes of a request in, how far they are out."""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.requests import Request

from fragdex.errors import (
    FragdexError,
    RecordNotFound,
    RequestTimedOut,
    StoreFull,
    TooLarge,
    Unprocessable,
    UploadBusy,
    UploadGap,
)
from fragdex.service.uploads.model import Arrival, Progress
from fragdex.service.uploads.receiving import receive_stream
from fragdex.service.uploads.upload_session import open_session
from fragdex.service.web.auth import the_context
from fragdex.service.web.bodies import pieces

__all__ = ["BODY", "REFUSALS", "need_complete", "receive_request"]

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


async def receive_request(
    request: Request,
    tenant_id: str,
    family: str,
    record_id: str,
    arrival: Arrival,
    limit: int,
) -> Progress:
    """Receive a request's body as bytes of an upload.

    Args:
        limit: bytes of a whole body; one with Content-Range is held to `max_chunk_bytes` too.

    Raises what `receive` and `web.bodies.pieces` raise.
    """
    context = the_context(request)
    chunk = request.headers.get("content-range")
    if chunk is not None:
        limit = min(limit, context.settings.max_chunk_bytes)
    length = request.headers.get("content-length", "")
    opened = partial(
        open_session,
        context,
        tenant_id,
        family,
        record_id,
        chunk,
        limit=limit,
        length=int(length) if length.isdecimal() else None,
        arrival=arrival,
    )
    return await receive_stream(opened, pieces(request, limit))


def need_complete(progress: Progress) -> None:
    """Published clients ask before they upload: what is not complete is not found.

    Raises:
        RecordNotFound: bytes are missing; `next_byte` says from where.
    """
    if not progress.complete:
        raise RecordNotFound(
            "bytes of this upload are missing",
            more={"next_byte": progress.next_byte, "byte_size": progress.byte_size},
        )
