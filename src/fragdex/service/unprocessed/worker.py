"""The job `process`: an unprocessed file becomes the tracks of an ISOBMFF file.

The record of the job is the row of `processes`. Everything is made first, as files of this
machine, then as objects of the store that no record names (`records/trash.py`), and becomes
visible in one transaction: all tracks with their indexes, or nothing. A run that comes again
begins anew and finds nothing of the one before but what is in the trash; a run that comes too
late finds the process completed and publishes nothing.

The job `scrub`: a file that was published as it came gets its scrub track afterwards. Its record is
the process that was complete at once; nobody waits for the job, and nothing is told where it
fails: the file plays without.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from fragdex.errors import Unprocessable
from fragdex.service.context import ServiceContext
from fragdex.service.isobmff.operations import register
from fragdex.service.isobmff.tracks import OF_USE, OWN_BYTES
from fragdex.service.jobs.work import Job, Work
from fragdex.service.outbox import emit
from fragdex.service.records import blobs, tables
from fragdex.service.records.identifiers import instant
from fragdex.service.records.tables import (
    blob_uses,
    files,
    isobmff_files,
    isobmff_tracks,
    processes,
)
from fragdex.service.store.composing import is_composed
from fragdex.service.unprocessed.records import FAMILY, file_data
from fragdex.service.unprocessed.staging import (
    Original,
    StagedTrack,
    clear,
    keep,
    put_track,
    work_folder,
)
from fragdex.transcode.running import run as run_media
from fragdex.transcode.tracks import SCRUB_TRACK

PROCESS: Final = "process"
"""The name of the work; its record is a process."""

# How much of the whole is done when all tracks are files of this machine.
_MEDIA_PART: Final = 0.9
_PROGRESS_SECONDS: Final = 0.5


def _run(context: ServiceContext, job: Job) -> None:
    row = _begin(context, job.record_id)
    if row is None:
        return
    with context.database.read() as connection:
        blob = blobs.used_by(connection, row["tenant_id"], FAMILY, row["id"])
        if not blob:
            raise Unprocessable("the bytes of the file are not here")
    folder = work_folder(context, job)
    progress = _Progress(context, job)
    rest = 0.99 - _MEDIA_PART
    # what is composed itself may be composed of something that goes
    composing = context.settings.keep == "original" and not is_composed(blob.store_key)
    try:
        with context.store.local(blob.store_key) as path:
            tracks = run_media(
                path, folder, lambda part: progress(_MEDIA_PART * part), job.check,
                ranges=composing,
            )  # fmt: skip
            staged = keep(
                context,
                row["tenant_id"],
                tracks,
                job.check,
                lambda part: progress(_MEDIA_PART + rest * part),
                Original(blob, path) if composing else None,
            )
        with context.database.write() as connection:
            publish(context, connection, job.record_id, staged)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _failed(context: ServiceContext, job: Job, problem: Mapping[str, Any]) -> None:
    row = processes.c
    open_ = (row.id == job.record_id) & row.completed_at.is_(None) & row.failed_at.is_(None)
    values = {"failed_at": instant(), "problem": dict(problem)}
    with context.database.write() as connection:
        sent = connection.execute(
            sa.select(files.c.id, files.c.md5, row.tenant_id)
            .select_from(processes)
            .join(files, files.c.id == row.unprocessed_file_id)
            .where(open_)
            .with_for_update(of=processes)
        ).one_or_none()
        if sent is not None:
            connection.execute(processes.update().where(open_).values(**values))
            data = {**file_data(sent.id, sent.md5), "process_id": job.record_id}
            data["problem"] = dict(problem)
            emit(context, connection, sent.tenant_id, "file.failed", data)
    clear(context, job)


def _begin(context: ServiceContext, process_id: str) -> Mapping[Any, Any] | None:
    """The file to be processed; None where the process is over or deleted."""
    row = processes.c
    with context.database.write() as connection:
        process = connection.execute(
            sa.select(
                row.started_at, row.completed_at, row.failed_at,
                files.c.tenant_id, files.c.id,
            )
            .join(files, files.c.id == row.unprocessed_file_id)
            .where(row.id == process_id)
        ).one_or_none()  # fmt: skip
        if process is None or process.completed_at is not None or process.failed_at is not None:
            return None
        if process.started_at is None:
            started = processes.update().where(row.id == process_id)
            connection.execute(started.values(started_at=instant()))
    return process._mapping


class _Progress:
    """Writes how far a process is, now and then; never backwards."""

    def __init__(self, context: ServiceContext, job: Job) -> None:
        self.context = context
        self.process_id = job.record_id
        self.written = time.monotonic()

    def __call__(self, part: float) -> None:
        if time.monotonic() - self.written < _PROGRESS_SECONDS:
            return
        self.written = time.monotonic()
        row = processes.c
        behind = (row.id == self.process_id) & (row.progress < part)
        with self.context.database.write(passing=True) as connection:
            connection.execute(processes.update().where(behind).values(progress=part))


def publish(
    context: ServiceContext, connection: Connection, process_id: str, staged: list[StagedTrack]
) -> None:
    """Make the tracks visible, and the process complete; nothing where another run did."""
    row = processes.c
    process = connection.execute(
        sa.select(row.completed_at.label("published_at"), files)
        .join(files, files.c.id == row.unprocessed_file_id)
        .where(row.id == process_id)
        .with_for_update()
    ).one_or_none()
    if process is None or process.published_at is not None:
        return
    now = instant()
    file_id = isobmff_file(connection, process)
    for one in staged:
        put_track(connection, file_id, process.tenant_id, one)
    if context.settings.keep == "tracks":
        blobs.release(connection, FAMILY, process.id)
    connection.execute(
        isobmff_files.update().where(isobmff_files.c.id == file_id).values(index_completed_at=now)
    )
    connection.execute(
        processes.update()
        .where(row.id == process_id)
        .values(
            completed_at=now, failed_at=None, problem=None, progress=1.0, isobmff_file_id=file_id
        )
    )
    data = {
        **file_data(process.id, process.md5),
        "process_id": process_id,
        "isobmff_file_id": file_id,
    }
    emit(context, connection, process.tenant_id, "file.ready", data)


def isobmff_file(connection: Connection, sent: Row[Any]) -> str:
    """The id of the ISOBMFF file of an upload's bytes: the tenant's own, else one of the same id.

    Args:
        sent: the row of the unprocessed file, locked.
    """
    row, _ = register(
        connection, sent.tenant_id, sent.md5, sent.filename,
        sha256=sent.sha256, id=sent.id, expires_at=sent.expires_at,
    )  # fmt: skip
    return str(row.id)


SCRUB: Final = "scrub"
"""The name of the work; its record is a process that is complete."""


def _scrub(context: ServiceContext, job: Job) -> None:
    video = _video(context, job.record_id)
    if video is None:
        return
    folder = work_folder(context, job)
    try:
        with context.store.local(video.store_key) as path:
            tracks = run_media(path, folder, check=job.check, scrub_alone=True)
        staged = keep(context, video.tenant_id, tracks, job.check)
        with context.database.write() as connection:
            _publish_scrub_track(connection, video.file_id, video.tenant_id, staged)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _scrub_failed(context: ServiceContext, job: Job, problem: Mapping[str, Any]) -> None:
    clear(context, job)


def _video(context: ServiceContext, process_id: str) -> Any | None:
    """The video that came of a process, and where its bytes are; None: there is none to scrub."""
    track = isobmff_tracks.c
    wanted = (
        sa.select(track.file_id, track.tenant_id, tables.blobs.c.store_key)
        .join(processes, processes.c.isobmff_file_id == track.file_id)
        .join(blob_uses, OWN_BYTES)
        .join(tables.blobs, OF_USE)
        .where(processes.c.id == process_id, track.type == "video", track.track_id >= 0)
        .order_by(track.track_id)
    )
    with context.database.read() as connection:
        return connection.execute(wanted.limit(1)).first()


def _publish_scrub_track(
    connection: Connection, file_id: str, tenant_id: str, staged: list[StagedTrack]
) -> None:
    """Make the track visible, unless the file is gone or has a scrub track meanwhile."""
    file, track = isobmff_files.c, isobmff_tracks.c
    there = sa.select(file.id).where(file.id == file_id).with_for_update()
    if connection.execute(there).first() is None:
        return
    own = sa.select(track.file_id).where(track.file_id == file_id, track.track_id == SCRUB_TRACK)
    if connection.execute(own).first() is not None:
        return
    for one in staged:
        put_track(connection, file_id, tenant_id, one)


WORK: tuple[Work, ...] = (Work(PROCESS, _run, _failed), Work(SCRUB, _scrub, _scrub_failed))
"""What the family has done by workers."""
