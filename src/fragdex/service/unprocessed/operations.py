"""What can be done with unprocessed files; no HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from fragdex import open_index
from fragdex.errors import Unavailable, Unprocessable
from fragdex.service.context import ServiceContext
from fragdex.service.isobmff.indexing import store_index, store_saved
from fragdex.service.jobs.api import problem_of
from fragdex.service.outbox import emit
from fragdex.service.records import deletion, trash
from fragdex.service.records.identifiers import instant, md5_bytes
from fragdex.service.records.tables import files, tenants
from fragdex.service.unprocessed import processing
from fragdex.service.unprocessed.inspection import Inspection, Inspections, Inspector
from fragdex.service.unprocessed.model import (
    NewUnprocessedFile,
    UnprocessedFile,
)
from fragdex.service.unprocessed.passthrough import index_apart
from fragdex.service.unprocessed.records import FAMILY, UNPROCESSED, file_data
from fragdex.service.unprocessed.staging import StagedTrack
from fragdex.service.uploads.model import Arrival, Arrived, Target, Upload
from fragdex.service.uploads.repository import need_within

_FILE = files.c


def create_file(
    context: ServiceContext, tenant_id: str, new: NewUnprocessedFile
) -> tuple[UnprocessedFile, bool]:
    """A record for a file to come, and whether it is a new one; raises as `announce`."""
    return announce(context, tenant_id, new.filename, new.byte_size, md5_bytes(new.md5))


def announce(
    context: ServiceContext,
    tenant_id: str,
    filename: str,
    byte_size: int,
    md5: bytes | None,
    *,
    mime_type: str | None = None,
    expires_at: datetime | None = None,
    process: bool = False,
) -> tuple[UnprocessedFile, bool]:
    """A record for a file to come, and whether it is a new one.

    One of the same md5 and size is given again.

    Args:
        process: have it processed once its last byte is in; one that is complete, at once.

    Raises:
        TooLarge: more bytes than a file may have.
        Unprocessable: no bytes are announced, and an md5 that they do not have.
        TooManyRequests: it is to be processed, and too many jobs of the tenant are in progress.
    """
    need_within(byte_size, context.settings.max_unprocessed_bytes, "unprocessed file")
    how = arrival(context)
    new = UNPROCESSED.new(context, tenant_id, byte_size, md5, how)
    with context.database.write() as connection:
        if process:
            context.jobs.need_room(connection, tenant_id)
        known = None if md5 is None else _same(connection, tenant_id, md5, byte_size)
        if known is None:
            values = {
                "filename": filename,
                "mime_type": mime_type,
                "process_when_complete": process,
                "expires_at": expires_at,
            }
            return UNPROCESSED.add(context, connection, new, how, values), True
        if not process:
            return UNPROCESSED.record(known), False
        change = files.update().where(_FILE.id == known.id)
        # The row as it is now: its last byte may have come since it was read. (Columns as they
        # are: SQLite 3.40 gets `IS NULL` wrong here.)
        now = connection.execute(
            change.values(process_when_complete=True).returning(_FILE.completed_at, _FILE.failed_at)
        ).one()
    if now.completed_at is not None and now.failed_at is None:
        processing.process(context, tenant_id, known.id)
    return UNPROCESSED.record(known), False


def _same(connection: Connection, tenant_id: str, md5: bytes, byte_size: int) -> Row[Any] | None:
    """The file that answers for these bytes already; nobody announces another one meanwhile."""
    one_at_a_time = sa.select(tenants.c.id).where(tenants.c.id == tenant_id)
    # does not wait for those who insert rows of this tenant, only for those who ask the same
    connection.execute(one_at_a_time.with_for_update(key_share=True))
    known = UNPROCESSED.known(connection, tenant_id, md5, byte_size)
    if known is not None and processing.is_over(connection, known):
        deletion.remove(connection, FAMILY, known.id)  # to be sent again
        return None
    return known


def delete_file(context: ServiceContext, tenant_id: str, file_id: str) -> None:
    """Delete a file and its bytes, and end what is being made of it; what was made stays.

    Raises:
        RecordNotFound: this tenant has none of it.
    """
    with context.database.write() as connection:
        UNPROCESSED.row(connection, tenant_id, file_id)
        deletion.hold_upload(connection, FAMILY, file_id)
        UNPROCESSED.row(connection, tenant_id, file_id, lock=True)
        processing.cancel_all(context, connection, file_id)
        deletion.remove(connection, FAMILY, file_id)


def arrival(context: ServiceContext) -> Arrival:
    """What becomes of the bytes: they are indexed as they come, and perhaps processed at once."""
    return Arrival(
        finished=partial(_finished, context), watch=_watch, examine=partial(_examine, context)
    )


def target(context: ServiceContext, tenant_id: str, file_id: str) -> Target:
    """Where the bytes of a file go."""
    return Target(FAMILY, file_id, arrival(context), context.settings.max_unprocessed_bytes)


@dataclass(frozen=True, slots=True)
class _Found:
    """What was learnt of the bytes; the objects wait in the trash until the record names them."""

    refusal: str | None
    index_key: str | None
    track: StagedTrack | None


def _watch(upload: Upload) -> Inspector:
    return Inspector()


def _examine(context: ServiceContext, arrived: Arrived) -> _Found:
    inspector = arrived.watcher or Inspector()
    refusal = inspector.refusal()
    wanted = sa.select(_FILE.process_when_complete).where(_FILE.id == arrived.record_id)
    with context.database.read() as connection:
        process = bool(connection.scalar(wanted))
    if refusal:
        return _Found(refusal, None, None)
    if inspector.large:
        return _examined_apart(context, arrived, process)
    index = inspector.index(arrived.md5)
    if index is None:
        return _Found(None, None, None)
    tenant_id, key = arrived.tenant_id, arrived.store_key
    context.part(Inspections).put(key, Inspection(small=True))
    index_key = store_index(context, tenant_id, index).key
    track = None
    if process and processing.why_processed(context, tenant_id, index, key) is None:
        track = processing.track_of(context, tenant_id, index, key, arrived.md5, arrived.sha256)
    return _Found(None, index_key, track)


def _examined_apart(context: ServiceContext, arrived: Arrived, process: bool) -> _Found:
    tenant_id, key, md5 = arrived.tenant_id, arrived.store_key, arrived.md5
    with index_apart(context, tenant_id, key, md5, arrived.byte_size) as found:
        if found is None:
            return _Found(None, None, None)
        context.part(Inspections).put(key, Inspection(small=False, reason=found.reason))
        index_key = store_saved(context, tenant_id, found.path, found.tracks).key
        track = None
        if process and found.reason is None:
            index = open_index(found.path)
            track = processing.track_of(context, tenant_id, index, key, md5, arrived.sha256)
        return _Found(None, index_key, track)


def _finished(context: ServiceContext, connection: Connection, arrived: Arrived) -> None:
    found: _Found = arrived.found
    now = instant()
    values: dict[str, Any] = {"md5": arrived.md5, "sha256": arrived.sha256, "completed_at": now}
    if found.refusal:
        values |= {"failed_at": now, "problem": problem_of(Unprocessable(found.refusal))}
    if found.index_key:
        if not trash.claim(connection, found.index_key):
            raise Unavailable("the index of the file was not kept in time", retry_after=1)
        values["index_key"] = found.index_key
    mine = _FILE.id == arrived.record_id
    connection.execute(files.update().where(mine).values(**values))
    data = file_data(arrived.record_id, arrived.md5)
    uploaded = {**data, "byte_size": arrived.byte_size}
    emit(context, connection, arrived.tenant_id, "file.uploaded", uploaded)
    if found.refusal:
        failed = {**data, "problem": values["problem"]}
        emit(context, connection, arrived.tenant_id, "file.failed", failed)
    row = connection.execute(sa.select(files).where(mine)).one_or_none()
    if row is not None and row.process_when_complete and row.failed_at is None:
        processing.start(context, connection, row, found.track)
