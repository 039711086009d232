"""What the media work made, on its way from files of this machine to rows that name it.

Tracks and their indexes become objects of the store that no record names (`records/trash.py`), and
then, in the transaction of whoever made them, rows of `isobmff_tracks`.

A track that was copied from the upload is composed of it, and not stored a second time. The process
that copied it says where the upload has its bytes. Nothing is taken at its word: each range is
compared here, byte by byte, so a composed object gives what the track's file has.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from fragdex.errors import Unavailable
from fragdex.fragments.table import Int64
from fragdex.service.context import ServiceContext
from fragdex.service.jobs.work import Job
from fragdex.service.records import blobs, trash
from fragdex.service.records.blobs import Blob
from fragdex.service.records.database import insert
from fragdex.service.records.identifiers import instant, new_id
from fragdex.service.records.tables import isobmff_tracks
from fragdex.service.store.composing import MOST_RECORD_BYTES, Composition
from fragdex.transcode.tracks import COPIED_RANGE, TranscodedTrack

_PIECE: Final = 1 << 20
_WORTH: Final = 2
"""A track has at least this many times the bytes of its record, or is stored."""
_LINE: Final = 1 << 10
"""Bytes of a record beside its columns and the made bytes, at most."""


@dataclass(frozen=True, slots=True)
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

    Returns: None where the upload has too little of it, or other bytes than were told.
    """
    ranges = _told(Path(transcoded.ranges_path), transcoded.byte_size, original.blob.byte_size)
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


def _told(path: Path, size: int, whole: int) -> Int64 | None:
    """The ranges that were told of a track of some bytes, if they can be: in order and inside."""
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
    """Whether two files go on with the same bytes, so many of them."""
    while size > 0:
        check()
        wanted = min(size, _PIECE)
        piece = track.read(wanted)
        if len(piece) != wanted or whole.read(wanted) != piece:
            return False
        size -= wanted
    return True


@dataclass(frozen=True, slots=True)
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
