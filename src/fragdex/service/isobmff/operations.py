"""What can be done with ISOBMFF files; no HTTP."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from fragdex.errors import RecordNotFound
from fragdex.service.context import ServiceContext
from fragdex.service.isobmff.model import FileList, FileRecord, IndexKeys, NewFile
from fragdex.service.records import blobs, deletion
from fragdex.service.records.database import insert
from fragdex.service.records.identifiers import instant, md5_bytes, md5_text, new_id, rfc3339
from fragdex.service.records.tables import files, isobmff_files, isobmff_tracks
from fragdex.service.records.tenant_limits import need_within_quota
from fragdex.service.uploads.repository import Repository

FAMILY = "isobmff"


def create_file(context: ServiceContext, tenant_id: str, new: NewFile) -> tuple[FileRecord, bool]:
    """Register a file; one of this md5 that is there already, and False.

    Raises:
        QuotaExceeded: the tenant would store too much.
    """
    md5 = md5_bytes(new.md5)
    with context.database.write() as connection:
        row, is_new = register(connection, tenant_id, md5, new.filename)
        if is_new:
            need_within_quota(connection, tenant_id)
    return record_of(row), is_new


def register(
    connection: Connection,
    tenant_id: str,
    md5: bytes,
    filename: str,
    *,
    sha256: bytes | None = None,
    **values: Any,
) -> tuple[Row[Any], bool]:
    """The row of the tenant's file of these bytes, and whether it was made now, of these values.

    Args:
        sha256: of the bytes; where it is not known, the file that `file_by_md5` finds is given.
    """
    file, named = isobmff_files.c, {"tenant": tenant_id, "md5": md5}
    row = {"id": new_id(), "created_at": instant(), **values}
    row |= {"tenant_id": tenant_id, "md5": md5, "sha256": sha256, "filename": filename}
    wanted = _BY_MD5.limit(1).with_for_update()
    if sha256 is not None:
        wanted = wanted.where(file.sha256 == sha256)
    existing = connection.execute(wanted, named).first()
    if existing is not None:
        return existing, False
    if sha256 is not None:
        # One that a client has named is of the first bytes that come; not if it is the file of
        # another upload, whose bytes may be others.
        other = sa.exists().where(files.c.id == file.id, file.id != row["id"])
        unknown = (file.tenant_id == tenant_id) & (file.md5 == md5) & file.sha256.is_(None)
        connection.execute(isobmff_files.update().where(unknown, ~other).values(sha256=sha256))
    statement = insert(connection, isobmff_files).values(**row).on_conflict_do_nothing()
    inserted = connection.execute(statement.returning(file.id)).first()
    return connection.execute(wanted, named).one(), inserted is not None


def file_bytes(connection: Connection, file: Row[Any]) -> blobs.Blob | None:
    """The bytes of a file itself, where they were sent; `file` is its row."""
    own = blobs.used_by(connection, file.tenant_id, FAMILY, file.id)
    return own or blobs.of_md5(connection, file.tenant_id, file.md5, file.sha256)


def file_by_md5(context: ServiceContext, tenant_id: str, md5: bytes) -> FileRecord:
    """The file with this md5, one with an index before others, then the newest.

    Raises:
        RecordNotFound: this tenant has none.
    """
    rows = context.database.rows(_BY_MD5, tenant=tenant_id, md5=md5)
    if not rows:
        raise FILES.not_found()
    return record_of(rows[0])


_BY_MD5 = (
    sa.select(isobmff_files)
    .where(
        isobmff_files.c.tenant_id == sa.bindparam("tenant"),
        isobmff_files.c.md5 == sa.bindparam("md5"),
    )
    .order_by(isobmff_files.c.index_completed_at.is_not(None).desc(), isobmff_files.c.id.desc())
)


def delete_file(context: ServiceContext, tenant_id: str, file_id: str) -> None:
    """Delete a file, its tracks, its index and its bytes; raises as `FILES.get`."""
    with context.database.write() as connection:
        FILES.row(connection, tenant_id, file_id, lock=True)
        deletion.remove(connection, FAMILY, file_id)


def index_keys(context: ServiceContext, tenant_id: str, file_id: str) -> IndexKeys:
    """Where the index of a file is.

    Raises:
        RecordNotFound: this tenant has no such file, or it has no index yet.
    """
    rows = context.database.rows(_KEYS, tenant=tenant_id, file=file_id)
    if not rows:
        raise FILES.not_found()
    tracks = tuple((row[2], row[3]) for row in rows if row[2] is not None)
    if rows[0][0] is None and not tracks:
        raise RecordNotFound("the file has no index yet")
    return IndexKeys(rows[0][0], rows[0][1], tracks)


# One statement, made once: it is what a seek asks.
_KEYS = (
    sa.select(
        isobmff_files.c.index_key,
        isobmff_files.c.index_json_key,
        isobmff_tracks.c.track_id,
        isobmff_tracks.c.index_key,
    )
    .select_from(
        isobmff_files.outerjoin(
            isobmff_tracks,
            (isobmff_tracks.c.file_id == isobmff_files.c.id)
            & isobmff_tracks.c.index_key.is_not(None),
        )
    )
    .where(
        isobmff_files.c.id == sa.bindparam("file"),
        isobmff_files.c.tenant_id == sa.bindparam("tenant"),
    )
    .order_by(isobmff_tracks.c.track_id)
)


def record_of(row: Any) -> FileRecord:
    """The record of a row."""
    complete = row.index_completed_at is not None
    return FileRecord(
        id=row.id,
        md5=md5_text(row.md5),
        filename=row.filename,
        byte_size=row.byte_size,
        status="ready" if complete else "created",
        fragment_index_complete=complete,
        created_at=rfc3339(row.created_at),
        index_completed_at=rfc3339(row.index_completed_at),
        expires_at=rfc3339(row.expires_at),
    )


_INDEXED = isobmff_files.c.index_completed_at.is_not(None)

FILES = Repository(
    isobmff_files,
    "ISOBMFF file",
    lambda _, rows: [record_of(row) for row in rows],
    FileList,
    {"ready": _INDEXED, "created": ~_INDEXED},
)
"""The ISOBMFF files of tenants."""
