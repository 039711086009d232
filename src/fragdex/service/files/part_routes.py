"""Files whose bytes clients put into the object store, part by part, by signed URLs."""

from __future__ import annotations

from fragdex.errors import (
    Conflict,
    QuotaExceeded,
    RecordNotFound,
    StoreFull,
    Unprocessable,
    UploadBusy,
    UploadGap,
)
from fragdex.service.files import operations
from fragdex.service.files.model import AnyFile, UploadPart, UploadParts
from fragdex.service.records.identifiers import rfc3339
from fragdex.service.uploads import presigned
from fragdex.service.web.auth import Asking, InContext
from fragdex.service.web.fields import RecordId
from fragdex.service.web.problems import answers
from fragdex.service.web.routing import api_router

__all__ = ["router"]

router = api_router("files")


@router.post("/files/{id}/parts", responses=answers(RecordNotFound, Conflict, QuotaExceeded))
def create_file_parts(id: RecordId, caller: Asking, context: InContext) -> UploadParts:
    """URLs of the object store to which the missing parts of a file can be put.

    409 with `offered: false` where the service takes the bytes itself.
    """
    target = operations.upload_of(context, caller.tenant_id, id)
    found = presigned.plan(context, caller.tenant_id, target.family, id)
    return UploadParts(
        parts=[
            UploadPart(start=one.start, byte_size=one.byte_size, url=one.url) for one in found.parts
        ],
        missing=found.missing,
        expires_at=rfc3339(found.expires_at) or "",
    )


@router.post(
    "/files/{id}/parts/complete",
    status_code=201,
    responses=answers(
        RecordNotFound, Conflict, UploadGap, UploadBusy, Unprocessable, QuotaExceeded, StoreFull
    ),
)
def complete_file_parts(id: RecordId, caller: Asking, context: InContext) -> AnyFile:
    """Make the parts of a file its bytes, once all were put; they are read, and checked so."""
    target = operations.upload_of(context, caller.tenant_id, id)
    presigned.assemble(context, caller.tenant_id, target.family, id, target.arrival)
    return operations.file_by_id(context, caller.tenant_id, id)
