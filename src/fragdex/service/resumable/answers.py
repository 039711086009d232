"""What is alike in all answers by the draft: its fields, and how the document tells them."""

from __future__ import annotations

from datetime import UTC
from typing import Any, Final

from fastapi import Request
from starlette.responses import Response as Answer

from fragdex.errors import (
    ChecksumMismatch,
    Forbidden,
    FragdexError,
    QuotaExceeded,
    RecordNotFound,
    TooLarge,
    TooManyRequests,
    Unauthenticated,
    Unprocessable,
    UnsupportedMediaType,
    UploadBusy,
    UploadCompleted,
    UploadGap,
    UploadLengthMismatch,
    UploadOffsetMismatch,
)
from fragdex.service.context import ServiceContext
from fragdex.service.files.model import AnyFile
from fragdex.service.records.identifiers import instant
from fragdex.service.resumable.structured_fields import CONTENT_TYPE, item, limits
from fragdex.service.tus.operations import ResumableUpload
from fragdex.service.uploads.receiving import drain
from fragdex.service.web.problems import problem_of
from fragdex.service.web.routing import ApiRoute, Handler

__all__ = [
    "COMPLETE",
    "LENGTH",
    "OFFSET",
    "OK",
    "REFUSALS",
    "STATE",
    "UploadRoute",
    "body_of",
    "limits_of",
    "state_of",
]

STATE: Final = "fragdex.upload_state"
"""Where a request keeps fields that its refusal says too."""
UNREAD: Final = (Unauthenticated, Forbidden, TooManyRequests, UploadBusy)
"""Refusals of requests that are not read to their end."""
PATTERNS: Final = {"boolean": r"^\?[01]$", "integer": "^[0-9]{1,15}$"}


class UploadRoute(ApiRoute):
    """A route whose refusals say what the draft wants of them."""

    def get_route_handler(self) -> Handler:
        """The handler of a request."""
        handler = super().get_route_handler()

        async def spoken(request: Request) -> Answer:
            try:
                return await handler(request)
            except FragdexError as error:
                if not isinstance(error, UNREAD):
                    await drain(request.stream())
                response = problem_of(error)
                context: ServiceContext = request.app.state.context
                if isinstance(error, UploadOffsetMismatch):
                    response.headers["Upload-Offset"] = str(error.more["expected-offset"])
                elif isinstance(error, TooLarge):
                    most = None if isinstance(error, QuotaExceeded) else error.more.get("limit")
                    response.headers["Upload-Limit"] = limits_of(context, most)
                elif isinstance(error, UnsupportedMediaType):
                    response.headers["Accept-Patch"] = CONTENT_TYPE
                elif isinstance(error, UploadBusy):
                    response.headers["Connection"] = "close"
                response.headers.update(request.scope.get(STATE, {}))
                return response

        return spoken


def _field(name: str, type_: str, description: str, *, required: bool = False) -> dict[str, Any]:
    schema = {
        "type": "string",
        "pattern": PATTERNS[type_],
    }
    found = {"name": name, "in": "header", "required": required, "description": description}
    return {**found, "schema": schema, "example": "?1" if type_ == "boolean" else "0"}


def body_of(media_type: str) -> dict[str, Any]:
    """What the document tells of a body of bytes."""
    schema = {"type": "string", "format": "binary"}
    return {"required": True, "content": {media_type: {"schema": schema}}}


COMPLETE: Final = _field(
    "Upload-Complete", "boolean", "`?1`: the upload ends with this body; `?0`: more follow",
    required=True,
)  # fmt: skip
LENGTH: Final = _field(
    "Upload-Length", "integer", "bytes of the whole; `?1` and Content-Length say it too"
)
OFFSET: Final = _field("Upload-Offset", "integer", "of the first byte of this body", required=True)
OK: Final[dict[int | str, dict[str, Any]]] = {
    201: {"model": AnyFile, "description": "The file. `Upload-Complete: ?1`: its bytes are "
          "complete, else `Location` is the URL of the upload"},
}  # fmt: skip
REFUSALS: Final = (
    RecordNotFound, UploadOffsetMismatch, UploadBusy, UploadGap, UploadCompleted,
    UploadLengthMismatch, Unprocessable, ChecksumMismatch, TooLarge,
)  # fmt: skip


def state_of(context: ServiceContext, upload: ResumableUpload) -> dict[str, str]:
    """The fields that say how far an upload is."""
    return {
        "Upload-Complete": item(upload.marked),
        "Upload-Offset": item(upload.next_byte),
        "Upload-Limit": limits_of(context, upload=upload),
    }


def limits_of(
    context: ServiceContext,
    most: int | None = None,
    *,
    upload: ResumableUpload | None = None,
) -> str:
    """`Upload-Limit`; a smallest size, though it is 0, says that the length has to be known."""
    age = None
    if upload is not None:
        most = upload.limit
        if upload.expires_at is not None:
            left = upload.expires_at.astimezone(UTC) - instant()
            age = max(0, int(left.total_seconds()))
    return limits(max_size=most or context.settings.max_unprocessed_bytes, min_size=0, max_age=age)
