"""A copy of a file with the captions of a transcription in it: an ISOBMFF file of its own.

The copy is made of the file itself where its bytes are here and are ISOBMFF; else of the file of
the track that was heard.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

import fragdex
from fragdex import ByteRange, Source
from fragdex.errors import FormatError
from fragdex.formats.captions_track import with_captions
from fragdex.service.errors import NotReady
from fragdex.service.house import House
from fragdex.service.isobmff import operations as isobmff
from fragdex.service.isobmff.indexing import set_index, store_index
from fragdex.service.jobs.door import Job
from fragdex.service.records import blobs
from fragdex.service.records.tables import isobmff_files, transcriptions
from fragdex.service.transcriptions.cues import cues_of
from fragdex.service.transcriptions.model import TranscriptionStatus
from fragdex.service.transcriptions.places import file_bytes, place_of
from fragdex.service.transcriptions.records import transcript_of

__all__ = ["failed", "run"]

_PIECE: Final = 1 << 20
_ROW = transcriptions.c

Pieces = Sequence[bytes | ByteRange]


def run(house: House, job: Job) -> None:
    """The job that makes a copy."""
    mine = _ROW.id == job.record_id
    waiting = _ROW.copy_status == TranscriptionStatus.PENDING
    with house.database.read() as connection:
        row = connection.execute(sa.select(transcriptions).where(mine, waiting)).one_or_none()
        if row is None:
            return
        transcript = transcript_of(connection, row)
        keys = _sources(connection, row)
    cues = cues_of(transcript.words)
    for number, key in enumerate(keys):
        with house.store.source(key) as source:
            try:
                index = fragdex.index(source, exact=True)
            except FormatError:
                if number + 1 < len(keys):
                    continue
                raise
            pieces = with_captions(index, source.read, cues, language=transcript.language)
            _keep(house, job, row, source, pieces)
            return


def failed(house: House, transcription_id: str, problem: Mapping[str, Any]) -> None:
    """Write down why there is no copy."""
    waits = (_ROW.id == transcription_id) & (_ROW.copy_status == TranscriptionStatus.PENDING)
    values = {"copy_status": TranscriptionStatus.FAILED, "copy_problem": dict(problem)}
    with house.database.write() as connection:
        connection.execute(transcriptions.update().where(waits).values(**values))


def _sources(connection: Connection, row: Row[Any]) -> list[str]:
    """Store keys of what may be copied, the best first."""
    whole = file_bytes(connection, row.tenant_id, row.file_id)
    keys = [] if whole is None else [whole.store_key]
    try:
        own = place_of(connection, row.tenant_id, row.file_id, row.track_id).blob.store_key
    except NotReady:
        if not keys:
            raise
    else:
        keys += [own] if own not in keys else []
    return keys


def _keep(house: House, job: Job, row: Row[Any], source: Source, pieces: Pieces) -> None:
    md5, sha256, size = hashlib.md5(usedforsecurity=False), hashlib.sha256(), 0
    for piece in _bytes(job, source, pieces):
        md5.update(piece)
        sha256.update(piece)
        size += len(piece)
    digest = md5.digest()
    with house.database.write() as connection:
        key = blobs.expect(connection, row.tenant_id, digest)
        known = blobs.find(connection, row.tenant_id, digest) is not None
    if not known:
        house.store.write(key, _bytes(job, source, pieces))
    with house.store.source(key) as copy:
        index = fragdex.index(copy, exact=True)
    index.source = replace(index.source, md5=digest.hex())
    stored = store_index(house, row.tenant_id, index)
    mine = _ROW.id == row.id
    with house.database.write() as connection:
        still = sa.select(_ROW.id).where(mine, _ROW.copy_status == TranscriptionStatus.PENDING)
        if connection.execute(still.with_for_update()).first() is None:
            return
        of = isobmff.need_file(connection, row.tenant_id, row.file_id)
        file, _ = isobmff.register(
            connection, row.tenant_id, digest, _name(of.filename), expires_at=of.expires_at
        )
        blobs.keep(
            connection, row.tenant_id, digest, sha256.digest(), size, isobmff.FAMILY, file.id
        )  # fmt: skip
        connection.execute(
            isobmff_files.update().where(isobmff_files.c.id == file.id).values(byte_size=size)
        )
        set_index(connection, row.tenant_id, file.id, stored)
        values = {"copy_status": TranscriptionStatus.COMPLETE, "copy_file_id": file.id}
        connection.execute(transcriptions.update().where(mine).values(**values))


def _bytes(job: Job, source: Source, pieces: Pieces) -> Iterator[bytes]:
    for piece in pieces:
        if isinstance(piece, bytes):
            yield piece
            continue
        for start in range(piece.start, piece.stop, _PIECE):
            job.check()
            yield source.read(ByteRange(start, min(start + _PIECE, piece.stop)))


def _name(filename: str) -> str:
    """What the copy of a file is called.

    >>> _name("holiday.mov"), _name("holiday")
    ('holiday.captions.mp4', 'holiday.captions.mp4')
    """
    stem = PurePosixPath(filename).stem if filename.strip("/.") else filename
    return f"{stem[:1000]}.captions.mp4"
