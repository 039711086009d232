"""The job `process`: an unprocessed file becomes the tracks of an ISOBMFF file.

The record of the job is the row of `processes`. Everything is made first, as files of this
machine, then as objects of the store that no record names (`records/trash.py`), and becomes
visible in one transaction: all tracks with their indexes, or nothing. A run that comes again
begins anew and finds nothing of the one before but what is in the trash; a run that comes too
late finds the process completed and publishes nothing.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from fragdex.service.errors import Unavailable, Unprocessable
from fragdex.service.house import House
from fragdex.service.jobs.door import Job, Work
from fragdex.service.media.made import Made
from fragdex.service.media.running import run as run_media
from fragdex.service.records import blobs, trash
from fragdex.service.records.database import insert
from fragdex.service.records.identifiers import instant, new_id
from fragdex.service.records.tables import (
    isobmff_files,
    isobmff_tracks,
    processes,
    unprocessed_files,
)

__all__ = ["PROCESS", "WORK", "Kept", "publish"]

PROCESS: Final = "process"
"""The name of the work; its record is a process."""

# How much of the whole is done when all tracks are files of this machine.
_MEDIA_PART: Final = 0.9
_PROGRESS_SECONDS: Final = 0.5
_PIECE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Kept:
    """A track whose bytes and index are objects of the store."""

    made: Made
    md5: bytes
    sha256: bytes
    index_key: str


def _run(house: House, job: Job) -> None:
    found = _begin(house, job.record_id)
    if found is None:
        return
    with house.database.read() as connection:
        blob = blobs.find(connection, found["tenant_id"], found["md5"])
    if not blob:
        raise Unprocessable("the bytes of the file are not here")
    folder = _folder(house, job)
    progress = _Progress(house, job)
    try:
        with house.store.local(blob.store_key) as path:
            made = run_media(path, folder, lambda part: progress(_MEDIA_PART * part), job.check)
        kept = _keep(house, found["tenant_id"], made, job.check, progress)
        with house.database.write() as connection:
            publish(connection, job.record_id, kept)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _failed(house: House, job: Job, problem: Mapping[str, Any]) -> None:
    row = processes.c
    open_ = (row.id == job.record_id) & row.completed_at.is_(None) & row.failed_at.is_(None)
    with house.database.write() as connection:
        connection.execute(
            processes.update().where(open_).values(failed_at=instant(), problem=dict(problem))
        )
    _clear(house, job)


def _begin(house: House, process_id: str) -> Mapping[Any, Any] | None:
    """The file to be processed; None where the process is over or deleted."""
    row = processes.c
    with house.database.write() as connection:
        found = connection.execute(
            sa.select(
                row.started_at, row.completed_at, row.failed_at,
                unprocessed_files.c.tenant_id, unprocessed_files.c.md5,
            )
            .join(unprocessed_files, unprocessed_files.c.id == row.unprocessed_file_id)
            .where(row.id == process_id)
        ).one_or_none()  # fmt: skip
        if found is None or found.completed_at is not None or found.failed_at is not None:
            return None
        if found.started_at is None:
            started = processes.update().where(row.id == process_id)
            connection.execute(started.values(started_at=instant()))
    return found._mapping


def _folder(house: House, job: Job) -> Path:
    """An empty folder of this run; those that killed runs of the job left are removed."""
    work = house.settings.data / "work"
    work.mkdir(parents=True, exist_ok=True, mode=0o700)
    _clear(house, job)
    folder = work / f"{job.record_id}.{job.attempt}"
    folder.mkdir(exist_ok=True, mode=0o700)
    return folder


def _clear(house: House, job: Job) -> None:
    for left in (house.settings.data / "work").glob(f"{job.record_id}.*"):
        if int(left.suffix[1:]) <= job.attempt:
            shutil.rmtree(left, ignore_errors=True)


class _Progress:
    """Writes how far a process is, now and then; never backwards."""

    def __init__(self, house: House, job: Job) -> None:
        self.house = house
        self.process_id = job.record_id
        self.written = time.monotonic()

    def __call__(self, part: float) -> None:
        if time.monotonic() - self.written < _PROGRESS_SECONDS:
            return
        self.written = time.monotonic()
        row = processes.c
        behind = (row.id == self.process_id) & (row.progress < part)
        with self.house.database.write() as connection:
            connection.execute(processes.update().where(behind).values(progress=part))


def _keep(
    house: House,
    tenant_id: str,
    made: list[Made],
    check: Callable[[], None],
    progress: _Progress,
) -> list[Kept]:
    """Write tracks and indexes into the store."""
    whole, done = sum(one.byte_size for one in made) or 1, 0

    def pieces(path: str) -> Iterator[bytes]:
        nonlocal done
        with open(path, "rb") as file:
            while piece := file.read(_PIECE):
                check()
                yield piece
                done += len(piece)
                progress(_MEDIA_PART + (0.99 - _MEDIA_PART) * min(1.0, done / (2 * whole)))

    kept = []
    for one in made:
        md5, sha256 = hashlib.md5(usedforsecurity=False), hashlib.sha256()
        for piece in pieces(one.path):
            md5.update(piece)
            sha256.update(piece)
        index_key = f"indexes/{tenant_id}/{new_id()}.fidx"
        with house.database.write() as connection:
            key = blobs.expect(connection, tenant_id, md5.digest())
            trash.expect(connection, index_key)
            known = blobs.find(connection, tenant_id, md5.digest()) is not None
        if not known:
            house.store.write(key, pieces(one.path))
        house.store.write(index_key, pieces(one.index_path))
        kept.append(Kept(one, md5.digest(), sha256.digest(), index_key))
    return kept


def publish(connection: Connection, process_id: str, kept: list[Kept]) -> None:
    """Make the tracks visible, and the process complete; nothing where another run did."""
    row = processes.c
    found = connection.execute(
        sa.select(row.completed_at, row.failed_at, unprocessed_files)
        .join(unprocessed_files, unprocessed_files.c.id == row.unprocessed_file_id)
        .where(row.id == process_id)
        .with_for_update()
    ).one_or_none()
    if found is None or found._mapping[row.completed_at] is not None:
        return
    now = instant()
    file_id = _isobmff_file(connection, found._mapping)
    for one in kept:
        _track(connection, file_id, found._mapping[unprocessed_files.c.tenant_id], one)
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


def _isobmff_file(connection: Connection, unprocessed: Mapping[Any, Any]) -> str:
    """The id of the ISOBMFF file of these bytes: the tenant's own, else one of the same id."""
    source, target = unprocessed_files.c, isobmff_files.c
    values = {
        name: unprocessed[source[name]]
        for name in ("id", "tenant_id", "filename", "md5", "expires_at")
    }
    connection.execute(
        insert(connection, isobmff_files)
        .values(created_at=instant(), **values)
        .on_conflict_do_nothing()
    )
    same = (target.tenant_id == values["tenant_id"]) & (target.md5 == values["md5"])
    file_id: str = connection.scalars(sa.select(target.id).where(same).with_for_update()).one()
    return file_id


def _track(connection: Connection, file_id: str, tenant_id: str, kept: Kept) -> None:
    """Write a track; what stood there before under its id is let go."""
    made, row = kept.made, isobmff_tracks.c
    record_id = f"{file_id}/{made.track_id}"
    here = (row.file_id == file_id) & (row.track_id == made.track_id)
    old = connection.scalar(sa.select(row.index_key).where(here))
    trash.discard(connection, old)
    blobs.release(connection, "tracks", record_id)
    blobs.keep(
        connection, tenant_id, kept.md5, kept.sha256, made.byte_size, "tracks", record_id
    )  # fmt: skip
    if not trash.claim(connection, kept.index_key):
        raise Unavailable("the index of a track was not kept in time", retry_after=1)
    now = instant()
    values = {
        "tenant_id": tenant_id,
        "type": made.type,
        "probe_info": made.probe_info,
        "duration_ms": made.duration_ms,
        "codec_name": made.codec,
        "byte_size": made.byte_size,
        "md5": kept.md5,
        "index_key": kept.index_key,
        "completed_at": now,
    }
    statement = insert(connection, isobmff_tracks).values(
        file_id=file_id, track_id=made.track_id, created_at=now, **values
    )
    connection.execute(
        statement.on_conflict_do_update(index_elements=["file_id", "track_id"], set_=values)
    )


WORK: tuple[Work, ...] = (Work(PROCESS, _run, _failed),)
"""What the family has done by workers."""
