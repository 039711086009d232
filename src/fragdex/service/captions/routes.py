"""Caption files over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import Depends, Query, Request, Response

from fragdex.service.captions import operations
from fragdex.service.captions.model import CaptionList, CaptionRecord, CaptionType, NewCaption
from fragdex.service.errors import NotReady, RecordNotFound
from fragdex.service.uploads.operations import state
from fragdex.service.uploads.requests import BODY, REFUSALS, need_complete, receive_request
from fragdex.service.uploads.shelf import FileStatus
from fragdex.service.web.auth import Asking, InHouse
from fragdex.service.web.fields import DEFAULT_LIMIT, Cursor, Limit, Md5InPath, RecordId
from fragdex.service.web.idempotency import idempotency_key
from fragdex.service.web.problems import answers
from fragdex.service.web.ranges import media, media_answers
from fragdex.service.web.routing import api_router

__all__ = ["router"]

router = api_router("caption files")

Answers = dict[int | str, dict[str, Any]]

KNOWN: Answers = {200: {"model": CaptionRecord, "description": "There is one of this md5 already"}}
MISSING: Answers = {202: {"model": CaptionRecord, "description": "Bytes are missing"}}
NOT_FOUND = answers(RecordNotFound)
BYTES = {**answers(RecordNotFound, NotReady), **media_answers(*CaptionType)}


@router.post(
    "/caption_files", status_code=201, responses=KNOWN, dependencies=[Depends(idempotency_key)]
)
def create_caption_file(
    new: NewCaption, response: Response, caller: Asking, house: InHouse
) -> CaptionRecord:
    """Announce a caption file; its bytes follow by upload."""
    record, is_new = operations.create_caption(house, caller.tenant_id, new, new.md5)
    if not is_new:
        response.status_code = 200
    response.headers["Location"] = f"/api/v1/caption_files/{record.id}.json"
    return record


@router.get("/caption_files")
def list_caption_files(
    caller: Asking,
    house: InHouse,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
    status: Annotated[FileStatus | None, Query(description="only those")] = None,
) -> CaptionList:
    """Caption files, newest first."""
    return operations.list_captions(house, caller.tenant_id, limit, cursor, status)


@router.get("/caption_files/md5/{md5}", response_model=CaptionRecord, responses=NOT_FOUND)
async def find_caption_file(md5: Md5InPath, caller: Asking, house: InHouse) -> Response:
    """The caption file whose bytes have this md5."""
    record = operations.glance_at_caption(house, caller.tenant_id, md5)
    if record is None:
        record = await run_sync(operations.find_caption, house, caller.tenant_id, md5)
    return Response(record.model_dump_json(), media_type="application/json")


@router.post(
    "/caption_files/{id}/upload",
    status_code=201,
    responses={**answers(*REFUSALS), **MISSING},
    openapi_extra=BODY,
)
async def upload_caption_file(
    id: RecordId, request: Request, response: Response, caller: Asking, house: InHouse
) -> CaptionRecord:
    """Send bytes of a caption file, whole or in chunks; 202 while some are missing."""
    progress = await receive_request(
        request,
        caller.tenant_id,
        operations.FAMILY,
        id,
        operations.arrival(house),
        house.settings.max_caption_bytes,
    )
    response.status_code = 201 if progress.complete else 202
    return await run_sync(operations.get_caption, house, caller.tenant_id, id)


@router.get("/caption_files/{id}/upload", responses=NOT_FOUND)
def caption_file_upload(id: RecordId, caller: Asking, house: InHouse) -> CaptionRecord:
    """The record, once its bytes are complete; before that 404, with `next_byte`."""
    need_complete(state(house, caller.tenant_id, operations.FAMILY, id))
    return operations.get_caption(house, caller.tenant_id, id)


@router.get("/caption_files/{id}.json", responses=NOT_FOUND)
def caption_file(id: RecordId, caller: Asking, house: InHouse) -> CaptionRecord:
    """The record."""
    return operations.get_caption(house, caller.tenant_id, id)


@router.get("/caption_files/{id}", response_class=Response, responses=BYTES)
@router.head("/caption_files/{id}", response_class=Response, responses=BYTES)
def caption_file_bytes(id: RecordId, request: Request, caller: Asking, house: InHouse) -> Response:
    """The bytes of a complete caption file."""
    found = operations.caption_bytes(house, caller.tenant_id, id)
    return media(
        request,
        key=found.store_key,
        size=found.byte_size,
        md5=found.md5,
        sha256=found.sha256,
        media_type=_with_charset(found.mime_type),
    )


@router.delete("/caption_files/{id}", status_code=204, responses=NOT_FOUND)
def delete_caption_file(id: RecordId, caller: Asking, house: InHouse) -> None:
    """Delete a caption file and its bytes."""
    operations.delete_caption(house, caller.tenant_id, id)


def _with_charset(mime_type: str) -> str:
    """JSON is UTF-8 by itself (RFC 8259, 8.1); of the others it has to be said."""
    return mime_type if mime_type == CaptionType.JSON else f"{mime_type}; charset=utf-8"
