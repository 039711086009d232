"""The job `scrub`: a file that was published as it came gets its scrub track afterwards.

The record of the job is the process that was complete at once; nobody waits for the job, and
nothing is told where it fails: the file plays without.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from fragdex.service.context import ServiceContext
from fragdex.service.isobmff.tracks import OF_USE, OWN_BYTES
from fragdex.service.jobs.api import Job, Work
from fragdex.service.records.tables import (
    blob_uses,
    blobs,
    isobmff_files,
    isobmff_tracks,
    processes,
)
from fragdex.service.unprocessed.staging import StagedTrack, clear, keep, put_track, work_folder
from fragdex.transcode.running import run as run_media
from fragdex.transcode.tracks import SCRUB_TRACK

__all__ = ["SCRUB", "WORK"]

SCRUB: Final = "scrub"
"""The name of the work; its record is a process that is complete."""


def _run(context: ServiceContext, job: Job) -> None:
    found = _video(context, job.record_id)
    if found is None:
        return
    folder = work_folder(context, job)
    try:
        with context.store.local(found.store_key) as path:
            made = run_media(path, folder, check=job.check, scrub_alone=True)
        kept = keep(context, found.tenant_id, made, job.check)
        with context.database.write() as connection:
            _publish(connection, found.file_id, found.tenant_id, kept)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _failed(context: ServiceContext, job: Job, problem: Mapping[str, Any]) -> None:
    clear(context, job)


def _video(context: ServiceContext, process_id: str) -> Any | None:
    """The video that came of a process, and where its bytes are; None: there is none to scrub."""
    track = isobmff_tracks.c
    wanted = (
        sa.select(track.file_id, track.tenant_id, blobs.c.store_key)
        .join(processes, processes.c.isobmff_file_id == track.file_id)
        .join(blob_uses, OWN_BYTES)
        .join(blobs, OF_USE)
        .where(processes.c.id == process_id, track.type == "video", track.track_id >= 0)
        .order_by(track.track_id)
    )
    with context.database.read() as connection:
        return connection.execute(wanted.limit(1)).first()


def _publish(connection: Connection, file_id: str, tenant_id: str, kept: list[StagedTrack]) -> None:
    """Make the track visible, unless the file is gone or has a scrub track meanwhile."""
    file, track = isobmff_files.c, isobmff_tracks.c
    there = sa.select(file.id).where(file.id == file_id).with_for_update()
    if connection.execute(there).first() is None:
        return
    own = sa.select(track.file_id).where(track.file_id == file_id, track.track_id == SCRUB_TRACK)
    if connection.execute(own).first() is not None:
        return
    for one in kept:
        put_track(connection, file_id, tenant_id, one)


WORK: Final = Work(SCRUB, _run, _failed)
