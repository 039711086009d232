"""Unprocessed files, and the making of ISOBMFF files from them; no HTTP."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from fragdex import Index, open_index
from fragdex.errors import BytesMissing, FragdexError, Unavailable, Unprocessable
from fragdex.record import record
from fragdex.service.context import ServiceContext
from fragdex.service.indexing.isolated import IN_THREAD
from fragdex.service.isobmff.indexing import store_index, store_saved
from fragdex.service.jobs.work import problem_of
from fragdex.service.outbox import emit
from fragdex.service.records import blobs, deletion, trash
from fragdex.service.records.identifiers import instant, md5_bytes, new_id
from fragdex.service.records.tables import files, isobmff_files, processes, tenants, uploads
from fragdex.service.unprocessed.inspection import Inspection, Inspections, Inspector
from fragdex.service.unprocessed.model import NewUnprocessedFile, ProcessRecord, UnprocessedFile
from fragdex.service.unprocessed.passthrough import indexed_in_child, why_not, why_not_by_index
from fragdex.service.unprocessed.records import (
    FAMILY,
    PROCESSES,
    PROCESSING,
    UNPROCESSED,
    file_data,
    process_record,
)
from fragdex.service.unprocessed.worker import PROCESS, SCRUB, StagedTrack, made_already, publish
from fragdex.service.uploads.model import Arrival, Arrived, Target, Upload
from fragdex.transcode.playable import codec_name
from fragdex.transcode.tracks import TranscodedTrack

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
    byte_size: int | None,
    md5: bytes | None,
    *,
    mime_type: str | None = None,
    expires_at: datetime | None = None,
    process: bool = False,
) -> tuple[UnprocessedFile, bool]:
    """A record for a file to come, and whether it is a new one.

    One of the same md5 and size is given again.

    Args:
        byte_size: None: it is said later.
        process: have it processed once its last byte is in; one that is complete, at once.

    Raises:
        TooLarge: more bytes than a file may have.
        Unprocessable: no bytes are announced, and an md5 that they do not have.
        TooManyRequests: it is to be processed, and too many jobs of the tenant are in progress.
    """
    UNPROCESSED.ensure_within(context, byte_size)
    how = arrival(context)
    new = UNPROCESSED.new(context, tenant_id, byte_size, md5, how)
    with context.database.write() as connection:
        if process:
            context.jobs.ensure_room(connection, tenant_id)
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
        process_file(context, tenant_id, known.id)
    return UNPROCESSED.record(known), False


def _same(
    connection: Connection, tenant_id: str, md5: bytes, byte_size: int | None
) -> Row[Any] | None:
    """The file that answers for these bytes already; nobody announces another one meanwhile."""
    one_at_a_time = sa.select(tenants.c.id).where(tenants.c.id == tenant_id)
    # does not wait for inserts of this tenant's rows, only for the same request
    connection.execute(one_at_a_time.with_for_update(key_share=True))
    known = UNPROCESSED.known(connection, tenant_id, md5, byte_size)
    if known is not None and is_over(connection, known):
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
        cancel_all(context, connection, file_id)
        deletion.remove(connection, FAMILY, file_id)


def arrival(context: ServiceContext) -> Arrival:
    """What becomes of the bytes: they are indexed as they come, and perhaps processed at once."""
    return Arrival(
        finished=partial(_finished, context), watch=_watch, examine=partial(_examine, context)
    )


def target(context: ServiceContext, tenant_id: str, file_id: str) -> Target:
    """Where the bytes of a file go."""
    return Target(FAMILY, file_id, arrival(context), context.settings.max_unprocessed_bytes)


@record(frozen=True, slots=True)
class _Examined:
    """What was learnt of the bytes; the objects wait in the trash until the record names them."""

    refusal: str | None
    index_key: str | None
    track: StagedTrack | None


def _watch(upload: Upload) -> Inspector:
    return Inspector()


def _examine(context: ServiceContext, arrived: Arrived) -> _Examined:
    inspector = arrived.watcher or Inspector()
    refusal = inspector.refusal()
    wanted = sa.select(_FILE.process_when_complete).where(_FILE.id == arrived.record_id)
    process = bool(context.database.scalar(wanted))
    if refusal:
        return _Examined(refusal, None, None)
    if inspector.large:
        return _examined_in_child(context, arrived, process)
    index = inspector.index(arrived.md5)
    if index is None:
        return _Examined(None, None, None)
    tenant_id, key = arrived.tenant_id, arrived.store_key
    context.part(Inspections).put(key, Inspection(small=True))
    index_key = store_index(context, tenant_id, index).key
    track = None
    if process and why_processed(context, tenant_id, index, key) is None:
        track = track_of(context, tenant_id, index, key, arrived.md5, arrived.sha256)
    return _Examined(None, index_key, track)


def _examined_in_child(context: ServiceContext, arrived: Arrived, process: bool) -> _Examined:
    tenant_id, key, md5 = arrived.tenant_id, arrived.store_key, arrived.md5
    with indexed_in_child(context, tenant_id, key, md5, arrived.byte_size) as indexed:
        if indexed is None:
            return _Examined(None, None, None)
        context.part(Inspections).put(key, Inspection(small=False, reason=indexed.reason))
        index_key = store_saved(context, tenant_id, indexed.path, indexed.tracks).key
        track = None
        if process and indexed.reason is None:
            index = open_index(indexed.path)
            track = track_of(context, tenant_id, index, key, md5, arrived.sha256)
        return _Examined(None, index_key, track)


def _finished(context: ServiceContext, connection: Connection, arrived: Arrived) -> None:
    examined: _Examined = arrived.examined
    now = instant()
    values: dict[str, Any] = {
        "md5": arrived.md5,
        "sha256": arrived.sha256,
        "byte_size": arrived.byte_size,
        "completed_at": now,
    }
    if examined.refusal:
        values |= {"failed_at": now, "problem": problem_of(Unprocessable(examined.refusal))}
    if examined.index_key:
        if not trash.claim(connection, examined.index_key):
            raise Unavailable("the index of the file was not kept in time", retry_after=1)
        values["index_key"] = examined.index_key
    mine = _FILE.id == arrived.record_id
    connection.execute(files.update().where(mine).values(**values))
    data = file_data(arrived.record_id, arrived.md5)
    uploaded = {**data, "byte_size": arrived.byte_size}
    emit(context, connection, arrived.tenant_id, "file.uploaded", uploaded)
    if examined.refusal:
        failed = {**data, "problem": values["problem"]}
        emit(context, connection, arrived.tenant_id, "file.failed", failed)
    row = connection.execute(sa.select(files).where(mine)).one_or_none()
    if row is not None and row.process_when_complete and row.failed_at is None:
        start(context, connection, row, examined.track)


_RUN = processes.c


def process_file(
    context: ServiceContext, tenant_id: str, file_id: str
) -> tuple[ProcessRecord, bool]:
    """The process that makes an ISOBMFF file of a file, and whether it is a new one.

    One that runs or has ended well is given again; one that failed is followed by a new one.

    Raises:
        RecordNotFound: this tenant has no such file.
        BytesMissing: bytes of it are missing, or all that was kept of it was deleted.
        Unprocessable: it is known to be no media file.
        TooManyRequests: too many jobs of the tenant are in progress.
    """
    with context.database.read() as connection:
        row = UNPROCESSED.row(connection, tenant_id, file_id)
        ensure_media(connection, row)
        going = _going(connection, file_id)
        blob = blobs.used_by(connection, tenant_id, FAMILY, file_id)
        if going is None:
            if blob is None:
                raise BytesMissing(
                    "only the tracks of this file were kept, and they were deleted",
                    advice="send the file again",
                )
            context.jobs.ensure_room(connection, tenant_id)
    if going is not None:
        return process_record(going), False
    track = None
    if row.index_key is not None and blob is not None:
        with context.store.local(row.index_key) as path:
            index = open_index(path)
            if why_processed(context, tenant_id, index, blob.store_key) is None:
                track = track_of(
                    context, tenant_id, index, blob.store_key, bytes(row.md5), blob.sha256
                )
    with context.database.write() as connection:
        row = UNPROCESSED.row(connection, tenant_id, file_id, lock=True)
        going = _going(connection, file_id)
        process_id = start(context, connection, row, track) if going is None else going.id
        process = connection.execute(sa.select(processes).where(_RUN.id == process_id)).one()
    return process_record(process), going is None


def start(
    context: ServiceContext, connection: Connection, file: Row[Any], track: StagedTrack | None
) -> str:
    """Begin a process in the caller's transaction; returns its id.

    Args:
        file: the row of the unprocessed file, locked or made by this transaction.
        track: what `track_of` gave: the process is complete at once, a scrub track follows.
    """
    process_id = new_id()
    row = {"id": process_id, "tenant_id": file.tenant_id, "unprocessed_file_id": file.id}
    now = instant()
    connection.execute(processes.insert().values(**row, progress=0.0, created_at=now))
    if made_already(connection, file._mapping):
        publish(context, connection, process_id, [])
        return process_id
    if track is None:
        context.jobs.enqueue(connection, PROCESS, process_id, tenant_id=file.tenant_id)
        return process_id
    connection.execute(processes.update().where(_RUN.id == process_id).values(started_at=now))
    publish(context, connection, process_id, [track])
    # The file's own bytes are the track's.
    isobmff_id = connection.scalar(sa.select(_RUN.isobmff_file_id).where(_RUN.id == process_id))
    size = track.made.byte_size
    connection.execute(
        isobmff_files.update().where(isobmff_files.c.id == isobmff_id).values(byte_size=size)
    )
    assert isobmff_id is not None
    own = (track.md5, track.sha256, size)
    blobs.keep(connection, file.tenant_id, *own, "isobmff", isobmff_id, track.store_key)
    if track.made.type == "video":
        context.jobs.enqueue(connection, SCRUB, process_id, tenant_id=file.tenant_id)
    return process_id


def why_processed(
    context: ServiceContext, tenant_id: str, index: Index | None, key: str
) -> str | None:
    """Why a complete file must be processed; None where it is a track as uploaded.

    Args:
        index: of the file, without which it must be.
        key: of the file in the store.

    Raises: as `indexed_in_child`.
    """
    if index is None:
        return "it has no index"
    remote = context.store.path(key) is None
    reason = why_not_by_index(index, remote=remote)
    size = index.file.size or 0
    if reason is not None:
        return reason
    seen = context.part(Inspections).get(key)
    if seen is not None and not seen.small:
        return seen.reason
    if seen is None and size > IN_THREAD:
        md5 = bytes.fromhex(index.file.md5 or "")
        with indexed_in_child(context, tenant_id, key, md5, size) as apart:
            return "it has no index" if apart is None else apart.reason
    try:
        with context.store.source(key) as source:
            return why_not(index, source, remote=remote)
    except FragdexError as error:
        return error.message  # the job will say what is wrong


def track_of(
    context: ServiceContext, tenant_id: str, index: Index, key: str, md5: bytes, sha256: bytes
) -> StagedTrack:
    """A complete file that needs no processing as a track of itself, its index written."""
    (track,) = index.tracks
    start, end = track.start, track.stop
    seconds = 0.0 if start is None or end is None else float(end) - float(start)
    codec, info = codec_name(track.codec) or "", track.info
    known = {
        "index": 0,
        "track_id": track.id,
        "type": track.kind,
        "codec": codec,
        "duration": seconds,
        "width": info.width,
        "height": info.height,
        "sample_rate": info.sample_rate,
        "channels": info.channel_count,
        "language": info.language,
    }
    probe_info = {name: value for name, value in known.items() if value is not None}
    transcoded = TranscodedTrack(
        track.id,
        track.kind,
        codec,
        path="",
        index_path="",
        byte_size=index.file.size or 0,
        duration_ms=round(1000 * seconds),
        probe_info=probe_info | {"copied": True, "reasons": []},
    )
    return StagedTrack(transcoded, md5, sha256, key, store_index(context, tenant_id, index).key)


def delete_process(context: ServiceContext, tenant_id: str, process_id: str) -> None:
    """Delete a process, and stop it if it is running; its results stay."""
    with context.database.write() as connection:
        PROCESSES.row(connection, tenant_id, process_id)
        context.jobs.cancel(_job(process_id), connection)
        connection.execute(processes.delete().where(_RUN.id == process_id))


def is_over(connection: Connection, row: Row[Any]) -> bool:
    """Whether a file was complete, and neither its bytes nor what was made of them are here."""
    if row.completed_at is None or _going(connection, row.id) is not None:
        return False
    return blobs.used_by(connection, row.tenant_id, FAMILY, row.id) is None


def cancel_all(context: ServiceContext, connection: Connection, file_id: str) -> None:
    """End what is being made of a file."""
    running = sa.select(_RUN.id).where(_RUN.unprocessed_file_id == file_id, PROCESSING)
    for process_id in connection.scalars(running).all():
        context.jobs.cancel(_job(process_id), connection)


def ensure_media(connection: Connection, row: Row[Any]) -> None:
    """Refuse a file whose bytes are missing (BytesMissing), or no media (Unprocessable)."""
    if row.completed_at is None:
        next_byte = connection.scalar(
            sa.select(uploads.c.next_byte).where(
                uploads.c.family == FAMILY, uploads.c.record_id == row.id
            )
        )
        raise BytesMissing(
            "bytes of the file are missing",
            more={"next_byte": next_byte or 0, "byte_size": row.byte_size},
        )
    if row.problem is not None:
        raise Unprocessable(row.problem["detail"])


def _going(connection: Connection, file_id: str) -> Row[Any] | None:
    """The newest process, if it runs, or if what it made is still there."""
    newest = sa.select(processes).where(_RUN.unprocessed_file_id == file_id)
    row = connection.execute(newest.order_by(_RUN.id.desc()).limit(1)).one_or_none()
    if row is None or row.failed_at is not None:
        return None
    if row.completed_at is None:
        return row
    there = sa.select(isobmff_files.c.id).where(isobmff_files.c.id == row.isobmff_file_id)
    return row if connection.execute(there).first() is not None else None


def _job(process_id: str) -> str:
    return f"{PROCESS}-{process_id}"
