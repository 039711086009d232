"""Resumable uploads: records of files, and parts that one is put together of; no HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa
from pydantic import ValidationError
from sqlalchemy.engine import Connection

from fragdex import ByteRange
from fragdex.errors import BytesMissing, InvalidRequest, RecordNotFound
from fragdex.record import record
from fragdex.service.captions import type_of as captions_of
from fragdex.service.context import ServiceContext
from fragdex.service.files import operations as files
from fragdex.service.files.operations import NewAnyFile
from fragdex.service.images.operations import type_of as image_of
from fragdex.service.records import deletion
from fragdex.service.records.blobs import StoredBytes
from fragdex.service.records.identifiers import instant
from fragdex.service.records.tables import FileType, tus_uploads, uploads
from fragdex.service.records.tenant_limits import ensure_within_quota
from fragdex.service.uploads.model import Target
from fragdex.service.uploads.operations import receive, state
from fragdex.service.uploads.repository import FileRepository, facts
from fragdex.service.web.fields import Listed
from fragdex.service.web.problems import sentence_of

FAMILY: Final = "tus"
PART: Final = "application/octet-stream"
_FAMILIES: Final = (FAMILY, *FileType)


class _Parts(Listed):
    parts: list[dict[str, Any]]


PARTS: FileRepository[dict[str, Any], _Parts] = FileRepository(
    FAMILY, "upload", facts, _Parts, table=tus_uploads,
    limit=lambda settings: settings.max_unprocessed_bytes,
)  # fmt: skip


@record(frozen=True, slots=True)
class Checksum:
    """What the bytes of a request must hash to, by a function of hashlib."""

    algorithm: str
    digest: bytes


@record(frozen=True, slots=True)
class ResumableUpload:
    """An upload that continues where it ended, by whatever protocol.

    Attributes:
        byte_size: of all; None while its sender has not said it.
        next_byte: of those that are durable.
        metadata, concat: as they were sent, or None.
        expires_at: when it is deleted, if it is unfinished then; None: not by this protocol.
        marked: whether its sender said that it is complete; also where nothing is remembered of it.
    """

    target: Target
    byte_size: int | None
    next_byte: int
    metadata: str | None
    concat: str | None
    expires_at: datetime | None
    marked: bool

    @property
    def id(self) -> str:
        """Of the file that it becomes, or of a part."""
        return self.target.record_id

    @property
    def limit(self) -> int:
        """The byte that it cannot pass: its end, or what a file may have."""
        return self.target.limit if self.byte_size is None else self.byte_size

    @property
    def is_here(self) -> bool:
        """Whether all of its bytes are."""
        return self.next_byte == self.byte_size


def begin(
    context: ServiceContext,
    tenant_id: str,
    byte_size: int | None,
    known: Mapping[str, str],
    *,
    metadata: str | None,
    concat: str | None = None,
) -> str:
    """The id of a file to come, or of the one that is here, where the md5 is known.

    Args:
        byte_size: None: it is said later.
        known: metadata: `filename` (or `name`), `filetype` (or `type`), `md5`.

    Raises: as `files.create_file`.
    """
    filename = (known.get("filename") or known.get("name") or "upload").strip() or "upload"
    mime_type = known.get("filetype") or known.get("type") or None
    if image_of(filename, mime_type):
        kind = FileType.IMAGE
    elif captions_of(filename, mime_type):
        kind = FileType.CAPTION
    else:
        kind, mime_type = FileType.VIDEO, None
    try:
        new = NewAnyFile(
            filename=filename,
            type=kind,
            byte_size=byte_size,
            md5=known.get("md5") or None,
            mime_type=mime_type,
            expires_at=None,
        )
    except ValidationError as error:
        (first, *_) = error.errors()
        named = ".".join(map(str, first["loc"]))
        raise InvalidRequest(
            f"Upload-Metadata does not describe a file: {named}: {sentence_of(first)}",
            header="Upload-Metadata",
        ) from error
    with context.database.write() as connection:
        # the sent bytes are stored next to the file, which is made in a transaction of its own
        ensure_within_quota(connection, tenant_id, coming=len((metadata or "") + (concat or "")))
    record, is_new = files.create_file(context, tenant_id, new)
    values = {"id": record.id, "tenant_id": tenant_id, "filename": filename, "mime_type": PART}
    with context.database.write() as connection:
        before = tus_uploads.delete().where(tus_uploads.c.id == record.id)
        is_made = connection.scalar(before.returning(tus_uploads.c.made_file)) or is_new
        connection.execute(
            tus_uploads.insert().values(
                **values,
                byte_size=byte_size,
                metadata=metadata,
                concat=concat,
                made_file=is_made,
                created_at=instant(),
                expires_at=_expiry(context),
            )
        )
    return record.id


def begin_part(
    context: ServiceContext, tenant_id: str, byte_size: int | None, *, metadata: str | None
) -> str:
    """The id of a part to come, which expires if it is not put together with others.

    Raises:
        TooLarge: more bytes than a file may have.
    """
    values = {
        "filename": "part",
        "mime_type": PART,
        "metadata": metadata,
        "concat": "partial",
        "expires_at": _expiry(context),
    }
    record, _ = PARTS.announce(context, tenant_id, byte_size, None, values)
    return str(record["id"])


def concatenate(
    context: ServiceContext,
    tenant_id: str,
    part_ids: Sequence[str],
    known: Mapping[str, str],
    *,
    metadata: str | None,
    concat: str,
) -> str:
    """The id of the file that parts make, in their order; the parts are deleted.

    Raises:
        RecordNotFound: this tenant has no such part.
        BytesMissing: bytes of a part are missing.
        and as `begin`, and as an upload that ends.
    """
    parts = [_complete_part(context, tenant_id, one) for one in part_ids]
    size = sum(part.byte_size for part in parts)
    created = begin(context, tenant_id, size, known, metadata=metadata, concat=concat)
    upload = find(context, tenant_id, created)

    def pieces() -> Iterator[bytes]:
        for part in parts:
            yield from context.store.read(part.store_key, ByteRange(0, part.byte_size))

    if upload.next_byte < size:
        receive(
            context,
            tenant_id,
            upload.target.family,
            created,
            None,
            pieces(),
            limit=upload.target.limit,
            length=size,
            arrival=upload.target.arrival,
        )
    for one in dict.fromkeys(part_ids):
        PARTS.delete(context, tenant_id, one)
    return created


def find(context: ServiceContext, tenant_id: str, upload_id: str) -> ResumableUpload:
    """An upload of this protocol, or of a file that was announced otherwise.

    Raises:
        RecordNotFound: this tenant has none of it.
    """
    query = sa.select(tus_uploads).where(
        tus_uploads.c.id == upload_id, tus_uploads.c.tenant_id == tenant_id
    )
    row = context.database.first(query)
    if row is not None and row.concat == "partial":
        target = PARTS.target(context, tenant_id, upload_id)
    else:
        target = files.target_of(context, tenant_id, upload_id)
    progress = state(context, tenant_id, target.family, upload_id)
    return ResumableUpload(
        target,
        progress.byte_size,
        progress.next_byte,
        None if row is None else row.metadata,
        None if row is None else row.concat,
        None if row is None or progress.complete else row.expires_at,
        progress.complete and (row is None or row.completed_at is not None),
    )


def mark_complete(context: ServiceContext, tenant_id: str, upload_id: str) -> None:
    """Remember that the sender of an upload said that it is complete."""
    mine = (tus_uploads.c.id == upload_id) & (tus_uploads.c.tenant_id == tenant_id)
    context.database.change(tus_uploads.update().where(mine).values(completed_at=instant()))


def end(context: ServiceContext, tenant_id: str, upload_id: str) -> None:
    """Delete an upload, or the file that it became; raises as `find`."""
    upload = find(context, tenant_id, upload_id)
    if upload.target.family == FAMILY:
        PARTS.delete(context, tenant_id, upload_id)
        return
    files.delete_file(context, tenant_id, upload_id)
    with context.database.write() as connection:
        deletion.remove(connection, FAMILY, upload_id)


def expire(context: ServiceContext, limit: int = 1000) -> int:
    """Delete what nobody finished in time: parts, and uploads with the files that they made.

    One that still gets bytes is given more time. A file that was announced otherwise stays, and so
    does a complete one. Returns how many uploads were deleted, of at most `limit`.
    """
    row = tus_uploads.c
    query = sa.select(row.id).where(row.expires_at <= instant()).limit(limit)
    due = context.database.scalars(query)
    deleted = 0
    for upload_id in due:
        with context.database.write() as connection:
            deleted += _expire(context, connection, upload_id)
    return deleted


def _expire(context: ServiceContext, connection: Connection, upload_id: str) -> bool:
    """Whether an upload that was due is deleted."""
    own = tus_uploads.c.id == upload_id
    sent = uploads.c.family.in_(_FAMILIES) & (uploads.c.record_id == upload_id)
    # in the order of an upload that ends
    query = sa.select(uploads).where(sent, uploads.c.completed_at.is_(None)).with_for_update()
    unfinished = connection.execute(query).first()
    row = connection.execute(sa.select(tus_uploads).where(own).with_for_update()).first()
    if row is None:
        return False
    if unfinished is not None:
        times = (unfinished.created_at, unfinished.written_at, unfinished.lease_until)
        until = max(filter(None, times)) + _lifetime(context)
        if until > instant():
            connection.execute(tus_uploads.update().where(own).values(expires_at=until))
            return False
        if row.made_file:
            deletion.remove(connection, unfinished.family, upload_id)
    return deletion.remove(connection, FAMILY, upload_id)


def _complete_part(context: ServiceContext, tenant_id: str, part_id: str) -> StoredBytes:
    with context.database.read() as connection:
        row = PARTS.row(connection, tenant_id, part_id)
    if row.concat != "partial":
        raise RecordNotFound("there is no such part")
    if row.completed_at is None:
        raise BytesMissing("bytes of a part are missing", more={"part": part_id})
    return PARTS.stored(context, tenant_id, part_id)


def _expiry(context: ServiceContext) -> datetime:
    return instant() + _lifetime(context)


def _lifetime(context: ServiceContext) -> timedelta:
    return timedelta(hours=context.settings.upload_hours)
