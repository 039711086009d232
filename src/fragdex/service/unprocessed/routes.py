"""Unprocessed files and their processing over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import Depends, Query, Request, Response

from fragdex.service.errors import Conflict, RecordNotFound, Unprocessable
from fragdex.service.unprocessed import operations, processing
from fragdex.service.unprocessed.model import (
    NewUnprocessedFile,
    ProcessList,
    ProcessRecord,
    ProcessStatus,
    UnprocessedFile,
    UnprocessedFileList,
    UnprocessedStatus,
)
from fragdex.service.unprocessed.progress import event_of, whole
from fragdex.service.uploads.operations import state
from fragdex.service.uploads.requests import BODY, REFUSALS, need_complete, receive_request
from fragdex.service.web.auth import Asking, InHouse
from fragdex.service.web.events import event_answers, stream
from fragdex.service.web.fields import DEFAULT_LIMIT, Cursor, Limit, Md5InPath, RecordId
from fragdex.service.web.idempotency import idempotency_key
from fragdex.service.web.problems import answers
from fragdex.service.web.routing import PREFIX, api_router

__all__ = ["router"]

router = api_router("unprocessed files")

Answers = dict[int | str, dict[str, Any]]

KNOWN: Answers = {
    200: {"model": UnprocessedFile, "description": "There is one of this md5 already"}
}
MISSING: Answers = {202: {"model": UnprocessedFile, "description": "Bytes are missing"}}
GOING: Answers = {200: {"model": ProcessRecord, "description": "It runs, or has ended well"}}
NOT_FOUND = answers(RecordNotFound)
CREATES = [Depends(idempotency_key)]


@router.post(
    "/unprocessed_files",
    status_code=201,
    responses={**answers(Unprocessable), **KNOWN},
    dependencies=CREATES,
)
def create_unprocessed_file(
    new: NewUnprocessedFile, response: Response, caller: Asking, house: InHouse
) -> UnprocessedFile:
    """Announce a media file of any kind; its bytes follow by upload."""
    record, is_new = operations.create_file(house, caller.tenant_id, new)
    if not is_new:
        response.status_code = 200
    response.headers["Location"] = f"{PREFIX}/unprocessed_files/{record.id}"
    return record


@router.get("/unprocessed_files")
def list_unprocessed_files(
    caller: Asking,
    house: InHouse,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
    status: Annotated[UnprocessedStatus | None, Query(description="only those")] = None,
) -> UnprocessedFileList:
    """Unprocessed files, newest first."""
    return operations.list_files(house, caller.tenant_id, limit, cursor, status)


@router.get("/unprocessed_files/md5/{md5}", response_model=UnprocessedFile, responses=NOT_FOUND)
async def find_unprocessed_file(md5: Md5InPath, caller: Asking, house: InHouse) -> Response:
    """The unprocessed file whose bytes have this md5."""
    record = operations.glance_by_md5(house, caller.tenant_id, md5)
    if record is None:
        record = await run_sync(operations.file_by_md5, house, caller.tenant_id, md5)
    return Response(record.model_dump_json(), media_type="application/json")


@router.get("/unprocessed_files/{id}", responses=NOT_FOUND)
def unprocessed_file(id: RecordId, caller: Asking, house: InHouse) -> UnprocessedFile:
    """The record."""
    return operations.file_by_id(house, caller.tenant_id, id)


@router.post(
    "/unprocessed_files/{id}/upload",
    status_code=201,
    responses={**answers(*REFUSALS), **MISSING},
    openapi_extra=BODY,
)
async def upload_unprocessed_file(
    id: RecordId, request: Request, response: Response, caller: Asking, house: InHouse
) -> UnprocessedFile:
    """Send bytes of a file, whole or in chunks; 202 while some are missing."""
    progress = await receive_request(
        request,
        caller.tenant_id,
        operations.FAMILY,
        id,
        operations.arrival(house),
        house.settings.max_unprocessed_bytes,
    )
    response.status_code = 201 if progress.complete else 202
    return await run_sync(operations.file_by_id, house, caller.tenant_id, id)


@router.get("/unprocessed_files/{id}/upload", responses=NOT_FOUND)
def unprocessed_file_upload(id: RecordId, caller: Asking, house: InHouse) -> UnprocessedFile:
    """The record, once its bytes are complete; before that 404, with `next_byte`."""
    need_complete(state(house, caller.tenant_id, operations.FAMILY, id))
    return operations.file_by_id(house, caller.tenant_id, id)


@router.post(
    "/unprocessed_files/{id}/process",
    status_code=201,
    responses={**answers(RecordNotFound, Conflict, Unprocessable), **GOING},
    dependencies=CREATES,
)
@router.post(
    "/unprocessed_files/{id}/isobmff",
    name="process_unprocessed_file_to_isobmff",
    status_code=201,
    responses={**answers(RecordNotFound, Conflict, Unprocessable), **GOING},
    dependencies=CREATES,
)
def process_unprocessed_file(
    id: RecordId, response: Response, caller: Asking, house: InHouse
) -> ProcessRecord:
    """Have an ISOBMFF file made of it. A fragmented file of one track is one: it is done at once.

    The same process is answered while it runs and once it has ended well; after a failure, a new
    one.
    """
    record, is_new = processing.process(house, caller.tenant_id, id)
    if not is_new:
        response.status_code = 200
    response.headers["Location"] = f"{PREFIX}/process_isobmff/{record.id}"
    return record


@router.delete("/unprocessed_files/{id}", status_code=204, responses=NOT_FOUND)
def delete_unprocessed_file(id: RecordId, caller: Asking, house: InHouse) -> None:
    """Delete a file and its bytes, and end its processing; the ISOBMFF file made of it stays."""
    operations.delete_file(house, caller.tenant_id, id)


@router.get("/process_isobmff")
def list_processes(
    caller: Asking,
    house: InHouse,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
    status: Annotated[ProcessStatus | None, Query(description="only those")] = None,
) -> ProcessList:
    """Processes, newest first."""
    return processing.list_processes(house, caller.tenant_id, limit, cursor, status)


@router.get("/process_isobmff/{id}", responses=NOT_FOUND)
def process_isobmff(id: RecordId, caller: Asking, house: InHouse) -> ProcessRecord:
    """The record of a process; `problem` says why it failed."""
    return processing.process_by_id(house, caller.tenant_id, id)


@router.get(
    "/process_isobmff/{id}/progress",
    response_class=Response,
    responses={**NOT_FOUND, **event_answers("`progress {progress}`, then `complete` or `error`")},
)
def process_isobmff_progress(id: RecordId, caller: Asking, house: InHouse) -> Response:
    """How far a process is, as events."""
    processing.process_by_id(house, caller.tenant_id, id)
    return stream(whole(lambda: event_of(processing.process_by_id(house, caller.tenant_id, id))))


@router.delete("/process_isobmff/{id}", status_code=204, responses=NOT_FOUND)
def delete_process(id: RecordId, caller: Asking, house: InHouse) -> None:
    """Forget a process, and end it if it runs; what it made stays."""
    processing.delete_process(house, caller.tenant_id, id)
