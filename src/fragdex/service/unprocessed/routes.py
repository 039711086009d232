"""Unprocessed files and their processing over HTTP."""

from __future__ import annotations

from typing import Any

from fastapi import Depends, Response

from fragdex.errors import BytesMissing, RecordNotFound, Unprocessable
from fragdex.service.unprocessed import operations
from fragdex.service.unprocessed.model import (
    NewUnprocessedFile,
    ProcessList,
    ProcessRecord,
    ProcessStatus,
    UnprocessedFile,
    UnprocessedFileList,
    UnprocessedStatus,
)
from fragdex.service.unprocessed.records import PROCESSES, UNPROCESSED, look, whole
from fragdex.service.uploads.family import Family
from fragdex.service.web.auth import Asking, InContext
from fragdex.service.web.fields import RecordId
from fragdex.service.web.idempotency import idempotency_key
from fragdex.service.web.problems import answers
from fragdex.service.web.routing import PREFIX, api_router
from fragdex.service.web.threads import asks_store

GOING: dict[int | str, dict[str, Any]] = {
    200: {"model": ProcessRecord, "description": "It runs, or has ended well"}
}
CREATES = [Depends(idempotency_key)]

router = api_router("unprocessed files")
routes = Family(router, "/unprocessed_files", "unprocessed file")

routes.creation(
    NewUnprocessedFile,
    UnprocessedFile,
    operations.create_file,
    Unprocessable,
    description="Announce a media file of any kind; its bytes follow by upload.",
)
routes.listing(UnprocessedFileList, UnprocessedStatus, UNPROCESSED.page)
routes.by_md5(UnprocessedFile, UNPROCESSED.find)
routes.record(UnprocessedFile, UNPROCESSED.get)
routes.upload(
    UnprocessedFile,
    UNPROCESSED.get,
    operations.target,
    description="Send bytes of a file, whole or in chunks; 202 while some are missing.",
)


@router.post(
    "/unprocessed_files/{id}/process",
    status_code=201,
    responses={**answers(RecordNotFound, BytesMissing, Unprocessable), **GOING},
    dependencies=CREATES,
)
@router.post(
    "/unprocessed_files/{id}/isobmff",
    name="process_unprocessed_file_to_isobmff",
    status_code=201,
    responses={**answers(RecordNotFound, BytesMissing, Unprocessable), **GOING},
    dependencies=CREATES,
)
@asks_store
def process_unprocessed_file(
    id: RecordId, response: Response, caller: Asking, context: InContext
) -> ProcessRecord:
    """Turn it into an ISOBMFF file. A fragmented file with one track is complete at once.

    The same process is answered while it runs and once it has ended well; after a failure, a new
    one.
    """
    record, is_new = operations.process_file(context, caller.tenant_id, id)
    if not is_new:
        response.status_code = 200
    response.headers["Location"] = f"{PREFIX}/process_isobmff/{record.id}"
    return record


routes.deletion(
    operations.delete_file,
    description="Delete a file and its bytes, and stop its processing; its ISOBMFF file stays.",
)


runs = Family(router, "/process_isobmff", "process", plural="processes")
runs.listing(ProcessList, ProcessStatus, PROCESSES.page)
runs.record(
    ProcessRecord,
    PROCESSES.get,
    description="The record of a process; `problem` says why it failed.",
)
runs.progress(look, whole, "`progress {progress}`, then `complete` or `error`")
runs.deletion(
    operations.delete_process,
    description="Delete a process, and stop it if it is running; its results stay.",
)
