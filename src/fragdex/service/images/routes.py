"""Image files over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import Depends, Query, Request, Response

from fragdex.service.errors import NotReady, RecordNotFound
from fragdex.service.images import operations
from fragdex.service.images.model import TYPES, ImageList, ImageRecord, NewImage
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

router = api_router("image files")

Answers = dict[int | str, dict[str, Any]]

KNOWN: Answers = {200: {"model": ImageRecord, "description": "There is one of this md5 already"}}
MISSING: Answers = {202: {"model": ImageRecord, "description": "Bytes are missing"}}
NOT_FOUND = answers(RecordNotFound)
BYTES = {**answers(RecordNotFound, NotReady), **media_answers(*dict.fromkeys(TYPES.values()))}

# An SVG is a document: opened by itself it must not run, load or send anything.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; sandbox"


@router.post(
    "/image_files", status_code=201, responses=KNOWN, dependencies=[Depends(idempotency_key)]
)
def create_image_file(
    new: NewImage, response: Response, caller: Asking, house: InHouse
) -> ImageRecord:
    """Announce an image file; its bytes follow by upload."""
    record, is_new = operations.create_image(house, caller.tenant_id, new)
    if not is_new:
        response.status_code = 200
    response.headers["Location"] = f"/api/v1/image_files/{record.id}.json"
    return record


@router.get("/image_files")
def list_image_files(
    caller: Asking,
    house: InHouse,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
    status: Annotated[FileStatus | None, Query(description="only those")] = None,
) -> ImageList:
    """Image files, newest first."""
    return operations.list_images(house, caller.tenant_id, limit, cursor, status)


@router.get("/image_files/md5/{md5}", response_model=ImageRecord, responses=NOT_FOUND)
async def find_image_file(md5: Md5InPath, caller: Asking, house: InHouse) -> Response:
    """The image file whose bytes have this md5."""
    record = operations.glance_at_image(house, caller.tenant_id, md5)
    if record is None:
        record = await run_sync(operations.find_image, house, caller.tenant_id, md5)
    return Response(record.model_dump_json(), media_type="application/json")


@router.post(
    "/image_files/{id}/upload",
    status_code=201,
    responses={**answers(*REFUSALS), **MISSING},
    openapi_extra=BODY,
)
async def upload_image_file(
    id: RecordId, request: Request, response: Response, caller: Asking, house: InHouse
) -> ImageRecord:
    """Send bytes of an image file, whole or in chunks; 202 while some are missing."""
    progress = await receive_request(
        request,
        caller.tenant_id,
        operations.FAMILY,
        id,
        operations.arrival(house),
        house.settings.max_image_bytes,
    )
    response.status_code = 201 if progress.complete else 202
    return await run_sync(operations.get_image, house, caller.tenant_id, id)


@router.get("/image_files/{id}/upload", responses=NOT_FOUND)
def image_file_upload(id: RecordId, caller: Asking, house: InHouse) -> ImageRecord:
    """The record, once its bytes are complete; before that 404, with `next_byte`."""
    need_complete(state(house, caller.tenant_id, operations.FAMILY, id))
    return operations.get_image(house, caller.tenant_id, id)


@router.get("/image_files/{id}.json", responses=NOT_FOUND)
def image_file(id: RecordId, caller: Asking, house: InHouse) -> ImageRecord:
    """The record, with the size in pixels once it is known."""
    return operations.get_image(house, caller.tenant_id, id)


@router.get("/image_files/{id}", response_class=Response, responses=BYTES)
@router.head("/image_files/{id}", response_class=Response, responses=BYTES)
def image_file_bytes(id: RecordId, request: Request, caller: Asking, house: InHouse) -> Response:
    """The bytes of a complete image file."""
    found = operations.image_bytes(house, caller.tenant_id, id)
    return media(
        request,
        key=found.store_key,
        size=found.byte_size,
        md5=found.md5,
        sha256=found.sha256,
        media_type=found.mime_type,
        headers={"Content-Security-Policy": POLICY},
    )


@router.delete("/image_files/{id}", status_code=204, responses=NOT_FOUND)
def delete_image_file(id: RecordId, caller: Asking, house: InHouse) -> None:
    """Delete an image file and its bytes."""
    operations.delete_image(house, caller.tenant_id, id)
