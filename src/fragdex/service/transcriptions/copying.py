"""A copy of a file with the captions of a transcription in it: an ISOBMFF file of its own.

The copy is made of the file itself where its bytes are here and are ISOBMFF; else of the file of
the track that was heard.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from fragdex import ByteRange, Source
from fragdex.errors import FormatError, NotReady
from fragdex.sandbox.folders import OwnFolder
from fragdex.service.context import ServiceContext
from fragdex.service.indexing.apart import run_apart
from fragdex.service.indexing.exact import exact_index
from fragdex.service.isobmff import operations as isobmff
from fragdex.service.isobmff.indexing import set_index, store_index
from fragdex.service.jobs.api import Job
from fragdex.service.records import blobs
from fragdex.service.records.identifiers import instant
from fragdex.service.records.tables import isobmff_files, transcriptions
from fragdex.service.transcriptions.copying_child import MADE, PLACES, Pieces, pieces_of_copy
from fragdex.service.transcriptions.cues import cues_of
from fragdex.service.transcriptions.model import TranscriptionStatus
from fragdex.service.transcriptions.records import transcript_of
from fragdex.service.transcriptions.track_source import blob_of_track, file_bytes

__all__ = ["failed", "run"]

_PIECE: Final = 1 << 20
_ROW = transcriptions.c


def run(context: ServiceContext, job: Job) -> None:
    """The job that makes a copy."""
    mine = _ROW.id == job.record_id
    waiting = _ROW.copy_status == TranscriptionStatus.PENDING
    with context.database.read() as connection:
        row = connection.execute(sa.select(transcriptions).where(mine, waiting)).one_or_none()
        if row is None:
            return
        transcript = transcript_of(connection, row)
        sources = _sources(connection, row)
    cues = cues_of(transcript.words)
    with OwnFolder() as folder:
        made = Pieces(folder / PLACES, folder / MADE)
        for number, blob in enumerate(sources):
            try:
                run_apart(
                    context, row.tenant_id, blob.store_key, blob.byte_size, pieces_of_copy,
                    {PLACES: made.places, MADE: made.made}, check=job.check,
                    cues=cues, language=transcript.language,
                )  # fmt: skip
            except FormatError:
                if number + 1 < len(sources):
                    continue
                raise
            with context.store.source(blob.store_key) as source:
                _publish(context, job, row, source, made)
            return


def failed(context: ServiceContext, job: Job, problem: Mapping[str, Any]) -> None:
    """Write down why there is no copy."""
    waits = (_ROW.id == job.record_id) & (_ROW.copy_status == TranscriptionStatus.PENDING)
    values = {"copy_status": TranscriptionStatus.FAILED, "copy_problem": dict(problem)}
    with context.database.write() as connection:
        connection.execute(transcriptions.update().where(waits).values(**values))


def _sources(connection: Connection, row: Row[Any]) -> list[blobs.Blob]:
    """What may be copied, the best first."""
    whole = file_bytes(connection, row.tenant_id, row.file_id)
    found = [] if whole is None else [whole]
    try:
        own, _ = blob_of_track(connection, row.tenant_id, row.file_id, row.track_id)
    except NotReady:
        if not found:
            raise
    else:
        found += [own] if own not in found else []
    return found


def _publish(
    context: ServiceContext, job: Job, row: Row[Any], source: Source, pieces: Pieces
) -> None:
    written = blobs.write(
        context.database, context.store, row.tenant_id, lambda: _bytes(job, source, pieces)
    )
    digest, own, size, key = written.md5, written.sha256, written.byte_size, written.store_key
    index = exact_index(context, row.tenant_id, key, size, check=job.check)
    index.source = replace(index.source, md5=digest.hex())
    stored = store_index(context, row.tenant_id, index)
    mine = _ROW.id == row.id
    with context.database.write() as connection:
        still = sa.select(_ROW.id).where(mine, _ROW.copy_status == TranscriptionStatus.PENDING)
        if connection.execute(still.with_for_update()).first() is None:
            return
        of = isobmff.FILES.row(connection, row.tenant_id, row.file_id)
        file, _ = isobmff.register(
            connection,
            row.tenant_id,
            digest,
            _name(of.filename),
            sha256=own,
            # one that is over stays for another upload of the same bytes
            expires_at=of.expires_at if of.expires_at and of.expires_at > instant() else None,
        )
        blobs.keep(connection, row.tenant_id, digest, own, size, isobmff.FAMILY, file.id, key)
        connection.execute(
            isobmff_files.update().where(isobmff_files.c.id == file.id).values(byte_size=size)
        )
        set_index(context, connection, row.tenant_id, file.id, stored)
        values = {"copy_status": TranscriptionStatus.COMPLETE, "copy_file_id": file.id}
        connection.execute(transcriptions.update().where(mine).values(**values))


def _bytes(job: Job, source: Source, pieces: Pieces) -> Iterator[bytes]:
    with pieces.made.open("rb") as made:
        for start, stop in pieces:
            for at in range(start, stop, _PIECE):
                job.check()
                end = min(at + _PIECE, stop)
                yield source.read(ByteRange(at, end)) if start >= 0 else made.read(end - at)


def _name(filename: str) -> str:
    """What the copy of a file is called.

    >>> _name("holiday.mov"), _name("holiday")
    ('holiday.captions.mp4', 'holiday.captions.mp4')
    """
    stem = PurePosixPath(filename).stem if filename.strip("/.") else filename
    return f"{stem[:1000]}.captions.mp4"
