"""The job `process`: an unprocessed file becomes the tracks of an ISOBMFF file.

The record of the job is the row of `processes`. Everything is made first, as files of this
machine, then as objects of the store that no record names (`records/trash.py`), and becomes
visible in one transaction: all tracks with their indexes, or nothing. A run that comes again
starts again and finds nothing of the one before but what is in the trash; a run that comes too
late finds the process completed and publishes nothing.

The job `scrub`: a file that was published as uploaded gets its scrub track afterwards. Its record
is the process that was complete at once; nobody waits for the job, and nothing is reported where it
fails: the file plays without.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from fragdex.errors import Unavailable, Unprocessable
from fragdex.fragments.table import Int64
from fragdex.record import record
from fragdex.service.context import ServiceContext
from fragdex.service.isobmff.operations import register
from fragdex.service.isobmff.tracks import OF_USE, OWN_BYTES
from fragdex.service.jobs.work import Job, Work
from fragdex.service.outbox import emit
from fragdex.service.records import blobs, tables, trash
from fragdex.service.records.blobs import Blob
from fragdex.service.records.database import insert
from fragdex.service.records.identifiers import instant, new_id
from fragdex.service.records.tables import (
    blob_uses,
    files,
    isobmff_files,
    isobmff_tracks,
    processes,
)
from fragdex.service.store.composing import MOST_RECORD_BYTES, Composition, is_composed
from fragdex.service.unprocessed.records import FAMILY, file_alike, file_data
from fragdex.transcode.running import run as run_media
from fragdex.transcode.tracks import COPIED_RANGE, REPAIRABLE, SCRUB_TRACK, TranscodedTrack

# What the media work made, on its way from files of this machine to rows that name it.
#
# Tracks and their indexes become objects of the store that no record names (`records/trash.py`),
# and then, in the transaction of whoever made them, rows of `isobmff_tracks`.
#
# A track that was copied from the upload is composed of it, and not stored a second time. The
# process that copied it says where the upload has its bytes. Nothing is taken at its word: each
# range is compared here, byte by byte, so a composed object gives what the track's file has.


_PIECE: Final = 1 << 20
_WORTH: Final = 2
"""A track has at least this many times the bytes of its record, or is stored."""
_LINE: Final = 1 << 10
"""Bytes of a record in addition to its columns and the made bytes, at most."""


@record(frozen=True, slots=True)
class Original:
    """An upload: its bytes in the store, and a file of this machine that has them."""

    blob: Blob
    path: Path


def record_of_track(
    transcoded: TranscodedTrack, original: Original, check: Callable[[], None]
) -> bytes | None:
    """The record of a track as an object that is composed of an upload.

    Args:
        check: called for each piece; what it raises ends the work.

    Returns: None where the upload has too little of it, or other bytes than announced.
    """
    ranges = _claimed_ranges(
        Path(transcoded.ranges_path), transcoded.byte_size, original.blob.byte_size
    )
    if ranges is None:
        return None
    starts, sizes = ranges[:, 0], ranges[:, 2]
    gaps = np.diff(starts + sizes, prepend=0) - sizes
    begins = gaps > 0
    begins[0] = True
    tail = transcoded.byte_size - int(starts[-1] + sizes[-1])
    made_sizes = np.append(gaps[begins], [tail])
    firsts = np.append(np.flatnonzero(begins), [len(ranges), len(ranges)])
    columns = 16 * (len(made_sizes) + len(ranges))
    if columns + int(made_sizes.sum()) + _LINE > MOST_RECORD_BYTES:
        return None
    pieces = []
    with open(transcoded.path, "rb") as track, original.path.open("rb") as whole:
        for (_, place, size), gap in zip(ranges.tolist(), gaps.tolist(), strict=True):
            pieces.append(track.read(gap))
            whole.seek(place)
            if not _same(track, whole, size, check):
                return None
        pieces.append(track.read(tail))
    record = Composition(
        original.blob.store_key,
        original.blob.byte_size,
        b"".join(pieces),
        made_sizes,
        np.diff(firsts),
        ranges[:, 1],
        sizes,
    ).built()
    return record if _WORTH * len(record) <= transcoded.byte_size else None


def _claimed_ranges(path: Path, size: int, whole: int) -> Int64 | None:
    """The announced ranges of a track of some bytes, if possible: in order and inside."""
    most = MOST_RECORD_BYTES // 16
    rows = np.fromfile(path, COPIED_RANGE.base, 3 * most + 1).astype(np.int64)
    if not 0 < len(rows) <= 3 * most or len(rows) % 3:
        return None
    ranges = rows.reshape(-1, 3)
    starts, places, sizes = ranges.T
    inside = (sizes > 0) & (starts >= 0) & (places >= 0) & (sizes <= size)
    inside &= (starts <= size - sizes) & (places <= whole - sizes)
    if not inside.all() or (starts[1:] < starts[:-1] + sizes[:-1]).any():
        return None
    return ranges


def _same(track: BinaryIO, whole: BinaryIO, size: int, check: Callable[[], None]) -> bool:
    """Whether two files continue with the same bytes, so many of them."""
    while size > 0:
        check()
        wanted = min(size, _PIECE)
        piece = track.read(wanted)
        if len(piece) != wanted or whole.read(wanted) != piece:
            return False
        size -= wanted
    return True


@record(frozen=True, slots=True)
class StagedTrack:
    """A track whose bytes and index are objects of the store.

    Attributes:
        composed_of: what its object is composed of; None where all its bytes are in it.
    """

    made: TranscodedTrack
    md5: bytes
    sha256: bytes
    store_key: str
    index_key: str
    composed_of: blobs.ComposedOf | None = None


def work_folder(context: ServiceContext, job: Job) -> Path:
    """An empty folder of this run; those that killed runs of the job left are removed."""
    clear(context, job)
    return context.work_folder(f"{job.record_id}.{job.attempt}")


def clear(context: ServiceContext, job: Job) -> None:
    """Remove what runs of the job up to this one left in the work folder."""
    for left in context.work_left(job.record_id):
        if int(left.suffix[1:]) <= job.attempt:
            shutil.rmtree(left, ignore_errors=True)


def keep(
    context: ServiceContext,
    tenant_id: str,
    tracks: list[TranscodedTrack],
    check: Callable[[], None],
    progress: Callable[[float], None] = lambda _: None,
    original: Original | None = None,
) -> list[StagedTrack]:
    """Write tracks and indexes into the store.

    Args:
        original: what they are composed of, where it has their bytes; None: all are stored.
        check: called for each piece; what it raises ends the work.
        progress: called with 0…1.
    """
    whole, done = sum(one.byte_size for one in tracks) or 1, 0

    def pieces(path: str) -> Iterator[bytes]:
        nonlocal done
        with open(path, "rb") as file:
            while piece := file.read(_PIECE):
                check()
                yield piece
                done += len(piece)
                progress(min(1.0, done / (2 * whole)))

    staged = []
    for one in tracks:
        md5, sha256 = hashlib.md5(usedforsecurity=False), hashlib.sha256()
        for piece in pieces(one.path):
            md5.update(piece)
            sha256.update(piece)
        record = None
        if original is not None and one.ranges_path:
            record = record_of_track(one, original, check)
        index_key = f"indexes/{tenant_id}/{new_id()}.fidx"
        with context.database.write() as connection:
            key = blobs.expect(connection, tenant_id, sha256.digest(), composed=record is not None)
            trash.expect(connection, index_key)
            known = blobs.find(connection, tenant_id, sha256.digest()) is not None
        of = None
        if not known and record is not None and original is not None:
            context.store.write(key, [record])
            of = blobs.ComposedOf(original.blob.sha256, original.blob.store_key, len(record))
        elif not known:
            context.store.write(key, pieces(one.path))
        context.store.write(index_key, pieces(one.index_path))
        staged.append(StagedTrack(one, md5.digest(), sha256.digest(), key, index_key, of))
    return staged


def put_track(connection: Connection, file_id: str, tenant_id: str, staged: StagedTrack) -> None:
    """Write a track; what stood there before under its id is let go."""
    track, row = staged.made, isobmff_tracks.c
    record_id = f"{file_id}/{track.track_id}"
    here = (row.file_id == file_id) & (row.track_id == track.track_id)
    old = connection.scalar(sa.select(row.index_key).where(here))
    trash.discard(connection, old)
    before = blobs.used_by(connection, tenant_id, "tracks", record_id)
    if before is not None and before.sha256 != staged.sha256:
        blobs.release(connection, "tracks", record_id)
    own = (staged.md5, staged.sha256, track.byte_size)
    blobs.keep(
        connection, tenant_id, *own, "tracks", record_id, staged.store_key,
        composed_of=staged.composed_of,
    )  # fmt: skip
    if not trash.claim(connection, staged.index_key):
        raise Unavailable("the index of a track was not kept in time", retry_after=1)
    now = instant()
    values = {
        "tenant_id": tenant_id,
        "type": track.type,
        "probe_info": track.probe_info,
        "duration_ms": track.duration_ms,
        "codec_name": track.codec,
        "byte_size": track.byte_size,
        "md5": staged.md5,
        "index_key": staged.index_key,
        "completed_at": now,
    }
    statement = insert(connection, isobmff_tracks).values(
        file_id=file_id, track_id=track.track_id, created_at=now, **values
    )
    connection.execute(
        statement.on_conflict_do_update(index_elements=["file_id", "track_id"], set_=values)
    )


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
            raise Unprocessable("the bytes of this file have not been uploaded")
        equal = made_already(connection, row)
    if equal:
        with context.database.write() as connection:
            publish(context, connection, job.record_id, [])
        return
    folder = work_folder(context, job)
    progress = _Progress(context, job)
    rest = 0.99 - _MEDIA_PART
    # what is composed itself may be composed of something that goes
    composing = context.settings.keep == "original" and not is_composed(blob.store_key)
    try:
        with context.store.local(blob.store_key) as path:
            try:
                tracks = run_media(
                    path, folder, lambda part: progress(_MEDIA_PART * part), job.check,
                    ranges=composing,
                )  # fmt: skip
            except Unprocessable as error:
                if REPAIRABLE in error.more:
                    raise _to_be_repaired(context, job, row, blob, error) from error
                raise
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


def _to_be_repaired(
    context: ServiceContext, job: Job, row: Mapping[Any, Any], blob: Blob, error: Unprocessable
) -> Unprocessable:
    """Why a file without its index failed, and the good file that it can be repaired with."""
    try:
        like = file_alike(
            context, row["tenant_id"], row["id"], blob.store_key, row["filename"], job.check
        )
    except Unprocessable:
        like = None
    if like is None:
        return error
    return Unprocessable(
        f"{error.message}; the file {like.filename} ({like.id}) is like it: "
        f"POST /files/{row['id']}/repair"
    )


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
                files.c.tenant_id, files.c.id, files.c.filename, files.c.md5, files.c.sha256,
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
    """Make the tracks visible, and the process complete; nothing where another run did.

    Args:
        staged: none where the same bytes are `made_already`.
    """
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
    if staged:
        made = isobmff_files.update().where(isobmff_files.c.id == file_id)
        connection.execute(made.values(index_completed_at=now))
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


def made_already(connection: Connection, sent: Mapping[Any, Any]) -> bool:
    """Whether the tenant's earlier upload of the same bytes was processed, and its tracks are here.

    Args:
        sent: the row of the unprocessed file.
    """
    made, file, run, track = isobmff_files.c, files.c, processes.c, isobmff_tracks.c
    query = (
        sa.select(made.id)
        .join(
            files,
            (file.tenant_id == made.tenant_id)
            & (file.md5 == made.md5)
            & (file.sha256 == made.sha256),
        )
        .join(processes, (run.unprocessed_file_id == file.id) & (run.isobmff_file_id == made.id))
        .where(made.tenant_id == sent["tenant_id"], made.md5 == sent["md5"])
        .where(made.sha256 == sent["sha256"], made.index_completed_at.is_not(None))
        .where(run.completed_at.is_not(None), sa.exists().where(track.file_id == made.id))
    )
    return connection.execute(query.limit(1)).first() is not None


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
    return context.database.first(wanted.limit(1))


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
