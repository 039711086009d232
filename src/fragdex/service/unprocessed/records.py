"""The rows of unprocessed files and of their processing: records, events, and which are alike."""

from __future__ import annotations

import math
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, suppress
from difflib import SequenceMatcher
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Row

from fragdex.service.context import ServiceContext
from fragdex.service.indexing.repairing import most_similar
from fragdex.service.records.identifiers import md5_text
from fragdex.service.records.tables import FileType, blob_uses, blobs, files, processes, uploads
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
from fragdex.service.web.events import END, Batch, Event

FAMILY: Final = FileType.VIDEO

_FILE = files.c
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
        fragment_index_complete=row.index_key is not None, problem=Problem.of(row.problem), **known
    )


UNPROCESSED = FileRepository(
    FAMILY, "unprocessed file", _record_of, UnprocessedFileList, _STATUSES,
    limit=lambda settings: settings.max_unprocessed_bytes,
)  # fmt: skip


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
    return ProcessRecord.of_row(row, status=status, problem=Problem.of(row.problem))


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


ALMOST: Final = 0.999
"""What `progress` says of work that is all done, but whose result cannot be had yet."""


def look(context: ServiceContext, tenant_id: str, ids: Sequence[str]) -> dict[str, Event]:
    """Where processes stand, by id."""
    row = processes.c
    columns = (row.id, row.progress, row.problem, row.completed_at, row.failed_at)
    wanted = sa.select(*columns).where(row.tenant_id == tenant_id, row.id.in_(ids))
    with context.database.read() as connection:
        return {one.id: event_of(one) for one in connection.execute(wanted)}


def event_of(row: Any) -> Event:
    """Where a job is, by the row of its record: its progress, problem and ends."""
    problem = Problem.of(row.problem)
    if problem is not None or row.failed_at is not None:
        return "error", {} if problem is None else problem.model_dump()
    if row.completed_at is not None:
        return "complete", {}
    return "progress", {"progress": row.progress}


_DIGITS: Final = 9
"""Of a progress, in events and in their ids: a client that reconnects gets nothing smaller."""


async def whole(states: AsyncIterator[Event], after: str | None = None) -> AsyncIterator[Batch]:
    """What `states` tells, to the end; whoever comes late or again sees a whole picture.

    The first event is always a `progress`. A `progress` of 1 goes out with `complete`, in one
    write, and not before: published clients stop reading there.

    Args:
        after: the id of the last event that the listener has. Ids are the progress so far: what
            is after it, or as far, is not sent.
    """
    last = -1.0
    with suppress(ValueError):
        last = float(after) if after is not None else last
    if not (math.isfinite(last) and 0 <= last <= 1):
        last = -1.0
    # closed with this one, so that nobody looks on for a client that went away
    async with aclosing(states):  # type: ignore[type-var]
        async for name, data in states:
            if name == "complete":
                yield ("progress", {"progress": 1}, "1"), (name, data, END)
            elif name == "error":
                first: Batch = () if last >= 0 else (("progress", {"progress": 0}, "0"),)
                yield (*first, (name, data, END))
            elif last < (now := round(min(data["progress"], ALMOST), _DIGITS)):
                last = now
                yield ((name, {"progress": now}, f"{now:.{_DIGITS}f}"),)


MOST_NAMES: Final = 200
"""The newest files, whose names are compared."""
MOST_FILES: Final = 8
"""Of those, the files that are opened."""


def file_alike(
    context: ServiceContext,
    tenant_id: str,
    file_id: str,
    key: str,
    filename: str,
    check: Callable[[], None],
) -> Row[str, str, str] | None:
    """The good file of a tenant that a broken one is most like: its id and name; None: none is.

    The files with the most similar names are tried, the newest first, on the first bytes of the
    broken one.

    Args:
        file_id, key, filename: of the broken file; `key` in the store.
        check: called now and then; what it raises ends the search.

    Raises: as `most_similar`.
    """
    row, use, blob = files.c, blob_uses.c, blobs.c
    its = (use.tenant_id == row.tenant_id) & (use.record_id == row.id) & (use.family == FAMILY)
    same = (blob.tenant_id == use.tenant_id) & (blob.sha256 == use.sha256)
    query = (
        sa.select(row.id, row.filename, blob.store_key)
        .select_from(files.join(blob_uses, its).join(blobs, same))
        .where(row.tenant_id == tenant_id, row.type == FAMILY, row.id != file_id)
        .where(row.index_key.is_not(None), row.failed_at.is_(None))
        .order_by(row.id.desc())
        .limit(MOST_NAMES)
    )
    rows = context.database.all(query)
    most = sorted(rows, key=lambda one: -similarity(one.filename, filename))[:MOST_FILES]
    best = most_similar(context, key, [one.store_key for one in most], check) if most else None
    return most[best] if best is not None and best < len(most) else None


def similarity(one: str, other: str) -> float:
    """How similar two file names are, 0…1, whatever their numbers are."""
    first, second = (re.sub(r"\d+", "0", name[-100:].lower()) for name in (one, other))
    return SequenceMatcher(None, first, second).ratio()
