"""ISOBMFF files over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import Depends, Query, Response

from fragdex.service.errors import RecordNotFound
from fragdex.service.isobmff import (
    index_routes,  # noqa: F401 (puts its routes on the router)
    operations,
    track_routes,  # noqa: F401
    whole,
)
from fragdex.service.isobmff.model import (
    FileList,
    FileRecord,
    FileStatus,
    FileWithTracks,
    NewFile,
)
from fragdex.service.isobmff.router import router
from fragdex.service.web.auth import Asking, InHouse
from fragdex.service.web.fields import DEFAULT_LIMIT, Cursor, Limit, Md5InPath, RecordId
from fragdex.service.web.idempotency import idempotency_key
from fragdex.service.web.problems import answers

__all__ = ["router"]

KNOWN: dict[int | str, dict[str, Any]] = {
    200: {"model": FileRecord, "description": "There is one of this md5 already"}
}
NOT_FOUND = answers(RecordNotFound)


@router.post(
    "/isobmff_files", status_code=201, responses=KNOWN, dependencies=[Depends(idempotency_key)]
)
def create_isobmff_file(
    new: NewFile, response: Response, caller: Asking, house: InHouse
) -> FileRecord:
    """Register a file by its md5; its index and its tracks follow."""
    record, is_new = operations.create_file(house, caller.tenant_id, new)
    if not is_new:
        response.status_code = 200
    response.headers["Location"] = f"/api/v1/isobmff_files/{record.id}"
    return record


@router.get("/isobmff_files")
def list_isobmff_files(
    caller: Asking,
    house: InHouse,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
    status: Annotated[FileStatus | None, Query(description="only those")] = None,
) -> FileList:
    """ISOBMFF files, newest first."""
    return operations.list_files(house, caller.tenant_id, limit, cursor, status)


@router.get("/isobmff_files/md5/{md5}", response_model=FileRecord, responses=NOT_FOUND)
async def find_isobmff_file(md5: Md5InPath, caller: Asking, house: InHouse) -> Response:
    """The file of this md5."""
    record = operations.glance_by_md5(house, caller.tenant_id, md5)
    if record is None:
        record = await run_sync(operations.file_by_md5, house, caller.tenant_id, md5)
    return Response(record.model_dump_json(), media_type="application/json")


@router.get("/isobmff_files/{id}", response_model=FileWithTracks, responses=NOT_FOUND)
async def get_isobmff_file(id: RecordId, caller: Asking, house: InHouse) -> Response:
    """A file and its tracks."""
    record = whole.glance(house, caller.tenant_id, id)
    if record is None:
        record = await run_sync(whole.file_with_tracks, house, caller.tenant_id, id)
    return Response(record.model_dump_json(), media_type="application/json")


@router.delete("/isobmff_files/{id}", status_code=204, responses=NOT_FOUND)
def delete_isobmff_file(id: RecordId, caller: Asking, house: InHouse) -> None:
    """Delete a file, its index, its tracks and their bytes."""
    operations.delete_file(house, caller.tenant_id, id)
