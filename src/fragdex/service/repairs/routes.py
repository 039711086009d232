"""Repairs over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Body, Depends, Query, Response

from fragdex.errors import BytesMissing, InvalidRequest, RecordNotFound, Unprocessable
from fragdex.service.records.pages import DEFAULT_LIMIT
from fragdex.service.repairs import operations
from fragdex.service.repairs.operations import (
    REPAIRS,
    NewRepair,
    RepairList,
    RepairRecord,
    RepairStatus,
)
from fragdex.service.unprocessed.records import whole
from fragdex.service.uploads.family import NOT_FOUND, Family
from fragdex.service.web.auth import Asking, InContext
from fragdex.service.web.fields import Cursor, Limit, RecordId
from fragdex.service.web.idempotency import idempotency_key
from fragdex.service.web.problems import answers
from fragdex.service.web.routing import PREFIX, api_router

GOING: dict[int | str, dict[str, Any]] = {
    200: {"model": RepairRecord, "description": "It runs, or its file is there"}
}

router = api_router("repairs")
routes = Family(router, "/repairs", "repair")


@router.post(
    "/files/{id}/repair",
    status_code=201,
    responses={**answers(RecordNotFound, BytesMissing, InvalidRequest, Unprocessable), **GOING},
    dependencies=[Depends(idempotency_key)],
)
def repair_file(
    id: RecordId,
    response: Response,
    caller: Asking,
    context: InContext,
    new: Annotated[NewRepair | None, Body()] = None,
) -> RepairRecord:
    """Find the samples of a video whose index is lost or wrong, and make a file of them.

    The repaired file is a file of its own, processed like an upload. The same repair is answered
    while it runs and while its file is there; after a failure, a new one.
    """
    how = new or NewRepair.model_validate({})
    record, is_new = operations.repair_file(context, caller.tenant_id, id, how)
    if not is_new:
        response.status_code = 200
    response.headers["Location"] = f"{PREFIX}/repairs/{record.id}"
    return record


@router.get("/files/{id}/repairs", responses=NOT_FOUND)
def list_file_repairs(
    id: RecordId,
    caller: Asking,
    context: InContext,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
    status: Annotated[RepairStatus | None, Query(description="only those")] = None,
) -> RepairList:
    """Repairs of a file, newest first."""
    return operations.repairs_of(context, caller.tenant_id, id, limit, cursor, status)


routes.listing(RepairList, RepairStatus, REPAIRS.page)
routes.record(
    RepairRecord,
    REPAIRS.get,
    description="The record of a repair: `report` says what is proved, guessed and lost.",
)
routes.progress(operations.look, whole, "`progress {progress}`, then `complete` or `error`")
routes.deletion(
    operations.delete_repair,
    description="Delete a repair, and stop it if it is running; the repaired file stays.",
)
