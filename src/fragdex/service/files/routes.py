"""Files of any type over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import Query, Request, Response

from fragdex.errors import NotReady, RecordNotFound, Unprocessable
from fragdex.service.files import operations, part_routes, track_routes
from fragdex.service.files.model import (
    AnyFile,
    AnyFileList,
    AnyFileStatus,
    Deleted,
    FileType,
    NewAnyFile,
    NewName,
)
from fragdex.service.images.model import TYPES
from fragdex.service.images.operations import IMAGES
from fragdex.service.images.routes import POLICY
from fragdex.service.unprocessed.progress import whole
from fragdex.service.uploads.family import Family
from fragdex.service.uploads.operations import state
from fragdex.service.uploads.requests import BODY, REFUSALS, need_complete, receive_request
from fragdex.service.web.auth import Asking, InContext
from fragdex.service.web.events import LastEventId, event_answers, progress_of
from fragdex.service.web.fields import DEFAULT_LIMIT, Cursor, Limit, RecordId
from fragdex.service.web.problems import answers
from fragdex.service.web.ranges import media_answers, media_of
from fragdex.service.web.routing import api_router

__all__ = ["router"]

router = api_router("files")
routes = Family(router, "/files", "file")

Answers = dict[int | str, dict[str, Any]]

MISSING: Answers = {202: {"model": AnyFile, "description": "Bytes are missing"}}
NOT_FOUND = answers(RecordNotFound)
# What decides between the bytes of an image and its record.
VARY = "Accept, Content-Type"


def _record_or_bytes() -> Answers:
    found: Answers = {
        **answers(RecordNotFound, NotReady),
        **media_answers(*dict.fromkeys(TYPES.values())),
    }
    record = {"schema": {"$ref": "#/components/schemas/AnyFile"}}
    content = {"application/json": record, **found[200]["content"]}
    found[200] = {"description": "The record, or the bytes of an image", "content": content}
    return found


routes.creation(
    NewAnyFile,
    AnyFile,
    operations.create_file,
    Unprocessable,
    said="Announce a file; its bytes follow by upload. A video is processed once its last is in.",
)


@router.get("/files")
def list_files(
    caller: Asking,
    context: InContext,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
    type: Annotated[FileType | None, Query(description="only those")] = None,
    status: Annotated[AnyFileStatus | None, Query(description="only those")] = None,
) -> AnyFileList:
    """Files of all types, newest first."""
    return operations.list_files(context, caller.tenant_id, limit, cursor, type, status)


routes.by_md5(AnyFile, operations.file_by_md5)


@router.post(
    "/files/{id}/upload",
    status_code=201,
    responses={**answers(*REFUSALS), **MISSING},
    openapi_extra=BODY,
)
async def upload_file(
    id: RecordId, request: Request, response: Response, caller: Asking, context: InContext
) -> AnyFile:
    """Send bytes of a file, whole or in chunks; 202 while some are missing."""
    tenant_id = caller.tenant_id
    upload = await run_sync(operations.upload_of, context, tenant_id, id)
    progress = await receive_request(
        request, tenant_id, upload.family, id, upload.arrival, upload.limit
    )
    response.status_code = 201 if progress.complete else 202
    return await run_sync(operations.file_by_id, context, tenant_id, id)


@router.get("/files/{id}/upload", responses=NOT_FOUND)
def get_file_upload(id: RecordId, caller: Asking, context: InContext) -> AnyFile:
    """The record, once its bytes are complete; before that 404, with `next_byte`."""
    upload = operations.upload_of(context, caller.tenant_id, id)
    need_complete(state(context, caller.tenant_id, upload.family, id))
    return operations.file_by_id(context, caller.tenant_id, id)


@router.get(
    "/files/{id}/progress",
    response_class=Response,
    responses={**NOT_FOUND, **event_answers("`progress {progress}`, then `complete` or `error`")},
)
def get_file_progress(
    id: RecordId, request: Request, caller: Asking, context: InContext, after: LastEventId = None
) -> Response:
    """How far a file is, as events: of a video, how far it is processed."""
    return progress_of(request, context, caller.tenant_id, id, after, operations.look, whole)


routes.deletion(operations.delete_file, said="Delete a file, its bytes and what was made of it.")


@router.patch("/files/{id}", responses=NOT_FOUND)
def update_file(id: RecordId, new: NewName, caller: Asking, context: InContext) -> AnyFile:
    """Give a file another name; its bytes, and what was made of it, stay."""
    return operations.rename_file(context, caller.tenant_id, id, new.filename)


@router.post("/files/{id}/delete", responses=NOT_FOUND)
def post_file_deletion(id: RecordId, caller: Asking, context: InContext) -> Deleted:
    """Delete a file as DELETE does, for clients that send GET and POST alone."""
    operations.delete_file(context, caller.tenant_id, id)
    return Deleted(id=id)


@router.get("/files/{id}", response_class=Response, responses=_record_or_bytes())
@router.head("/files/{id}", response_class=Response, responses=_record_or_bytes())
def get_file(id: RecordId, request: Request, caller: Asking, context: InContext) -> Response:
    """The record; of an image its bytes, unless Accept or Content-Type names JSON."""
    record = operations.file_by_id(context, caller.tenant_id, id)
    if record.type is not FileType.IMAGE or _names_json(request):
        return Response(
            record.model_dump_json(), media_type="application/json", headers={"Vary": VARY}
        )
    found = IMAGES.stored(context, caller.tenant_id, id)
    return media_of(request, found, {"Content-Security-Policy": POLICY, "Vary": VARY})


def _names_json(request: Request) -> bool:
    """Programs name it; an element of a page that shows an image does not."""
    asked = request.headers
    return any("json" in asked.get(name, "").lower() for name in ("accept", "content-type"))


# the application takes routes as they are, not routers within routers
router.routes.extend([*part_routes.router.routes, *track_routes.router.routes])
