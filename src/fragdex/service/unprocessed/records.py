"""The rows of unprocessed files and of their processing, read for their owner."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Row

from fragdex.service.records.identifiers import md5_text, rfc3339
from fragdex.service.records.tables import processes, unprocessed_files, uploads
from fragdex.service.unprocessed.model import (
    Problem,
    ProcessList,
    ProcessRecord,
    ProcessStatus,
    UnprocessedFile,
    UnprocessedFileList,
    UnprocessedStatus,
)
from fragdex.service.uploads.repository import FileRepository, Repository, facts

__all__ = ["FAMILY", "PROCESSES", "PROCESSING", "UNPROCESSED", "file_data", "process_record"]

FAMILY: Final = "unprocessed"

_FILE = unprocessed_files.c
_COMPLETE = _FILE.completed_at.is_not(None)
_BEGUN = sa.func.coalesce(uploads.c.next_byte, 0) > 0
_STATUSES = {
    UnprocessedStatus.CREATED: ~_COMPLETE & ~_BEGUN,
    UnprocessedStatus.UPLOADING: ~_COMPLETE & _BEGUN,
    UnprocessedStatus.COMPLETE: _COMPLETE & _FILE.failed_at.is_(None),
    UnprocessedStatus.FAILED: _FILE.failed_at.is_not(None),
}


def _record_of(row: Any) -> UnprocessedFile:
    known = facts(row)
    if row.failed_at is not None:
        known["status"] = UnprocessedStatus.FAILED
    elif row.completed_at is not None:
        known["status"] = UnprocessedStatus.COMPLETE
    return UnprocessedFile(
        fragment_index_complete=row.index_key is not None,
        problem=Problem.of(row.problem),
        **known,
    )


UNPROCESSED = FileRepository(
    FAMILY, unprocessed_files, "unprocessed file", _record_of, UnprocessedFileList, _STATUSES
)


_MADE, _GAVE_UP = processes.c.completed_at.is_not(None), processes.c.failed_at.is_not(None)
PROCESSING: Final = ~_MADE & ~_GAVE_UP
"""Work on it is wanted."""


def file_data(file_id: str, md5: bytes) -> dict[str, Any]:
    """What events say of a file."""
    return {"id": file_id, "type": "video", "md5": md5_text(md5)}


def process_record(row: Row[Any]) -> ProcessRecord:
    """The record of a row."""
    if row.failed_at is not None:
        status = ProcessStatus.FAILED
    else:
        status = ProcessStatus.PROCESSING if row.completed_at is None else ProcessStatus.COMPLETE
    return ProcessRecord(
        id=row.id,
        unprocessed_file_id=row.unprocessed_file_id,
        isobmff_file_id=row.isobmff_file_id,
        status=status,
        progress=row.progress,
        problem=Problem.of(row.problem),
        created_at=rfc3339(row.created_at),
        completed_at=rfc3339(row.completed_at),
        failed_at=rfc3339(row.failed_at),
    )


PROCESSES = Repository(
    processes,
    "process",
    lambda _, rows: [process_record(row) for row in rows],
    ProcessList,
    {
        ProcessStatus.COMPLETE: _MADE,
        ProcessStatus.FAILED: _GAVE_UP,
        ProcessStatus.PROCESSING: PROCESSING,
    },
)
