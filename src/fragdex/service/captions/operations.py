"""What can be done with caption files; no HTTP."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from fragdex import ByteRange
from fragdex.service.captions.model import (
    PARSERS,
    CaptionFacts,
    CaptionList,
    CaptionRecord,
    CaptionType,
    type_of,
)
from fragdex.service.errors import InvalidRequest
from fragdex.service.house import House
from fragdex.service.records.identifiers import instant, md5_bytes, md5_text, new_id, rfc3339
from fragdex.service.records.tables import caption_files
from fragdex.service.uploads import Arrival, Arrived, begin
from fragdex.service.uploads.shelf import FileStatus, Shelf, StoredBytes, need_within

__all__ = [
    "FAMILY",
    "arrival",
    "caption_bytes",
    "create_caption",
    "delete_caption",
    "find_caption",
    "get_caption",
    "glance_at_caption",
    "list_captions",
]

FAMILY = "captions"
_SHELF = Shelf(FAMILY, caption_files, "caption file")


def create_caption(
    house: House,
    tenant_id: str,
    new: CaptionFacts,
    told_md5: str | None,
    expires_at: datetime | None = None,
) -> tuple[CaptionRecord, bool]:
    """A record for captions to come, and whether it is a new one.

    One of the same md5 that is complete, or waits for as many bytes, is given again.

    Raises:
        InvalidRequest: a type that is not taken here, or no md5.
        TooLarge: more bytes than captions may have.
    """
    mime_type = type_of(new.filename, new.mime_type)
    if mime_type is None:
        raise InvalidRequest(
            "this is no type of captions that is taken here",
            pointer="/mime_type" if new.mime_type else "/filename",
            expected=", ".join(CaptionType),
            found=new.mime_type or new.filename,
        )
    need_within(new.byte_size, house.settings.max_caption_bytes, "caption file")
    md5 = None if told_md5 is None else md5_bytes(told_md5)
    with house.database.write() as connection:
        if md5 is not None:
            known = _SHELF.known(connection, tenant_id, md5, new.byte_size)
            if known is not None:
                return _told(known), False
        caption_id = new_id()
        row = {
            "id": caption_id,
            "tenant_id": tenant_id,
            "filename": new.filename,
            "mime_type": mime_type.value,
            "byte_size": new.byte_size,
            "md5": md5,
            "created_at": instant(),
            "expires_at": expires_at,
        }
        connection.execute(caption_files.insert().values(**row))
        how = arrival(house)
        begin(house, connection, tenant_id, FAMILY, caption_id, new.byte_size, md5, how)
        return _told(_SHELF.row(connection, tenant_id, caption_id)), True


def get_caption(house: House, tenant_id: str, caption_id: str) -> CaptionRecord:
    """A record by its id.

    Raises:
        RecordNotFound: this tenant has none of it.
    """
    return _told(_SHELF.get(house, tenant_id, caption_id))


def find_caption(house: House, tenant_id: str, md5: bytes) -> CaptionRecord:
    """A record by the md5 of its bytes; a complete one before others, then the newest.

    Raises:
        RecordNotFound: this tenant has none of it.
    """
    return _told(_SHELF.find(house, tenant_id, md5))


def glance_at_caption(house: House, tenant_id: str, md5: bytes) -> CaptionRecord | None:
    """`find_caption` without waiting; None: ask it."""
    row = _SHELF.glance(house, tenant_id, md5)
    return None if row is None else _told(row)


def list_captions(
    house: House,
    tenant_id: str,
    limit: int,
    cursor: str | None = None,
    status: FileStatus | None = None,
) -> CaptionList:
    """One page of a tenant's caption files, newest first.

    Raises:
        InvalidRequest: a limit out of bounds, or no cursor of ours.
    """
    found = _SHELF.page(house, tenant_id, limit, cursor, status)
    told = [_told(row) for row in found.rows]
    return CaptionList(caption_files=told, next_cursor=found.next_cursor)


def delete_caption(house: House, tenant_id: str, caption_id: str) -> None:
    """Delete a record; its bytes go with the last record that needs them.

    Raises:
        RecordNotFound: this tenant has none of it.
    """
    _SHELF.delete(house, tenant_id, caption_id)


def caption_bytes(house: House, tenant_id: str, caption_id: str) -> StoredBytes:
    """Where the bytes of captions are.

    Raises:
        RecordNotFound: this tenant has none of it.
        NotReady: they are not all here yet.
    """
    return _SHELF.stored(house, tenant_id, caption_id)


def arrival(house: House) -> Arrival:
    """What becomes of the bytes of captions: they are parsed, and the record is complete."""
    return Arrival(finished=_finished, examine=partial(_examine, house))


def _examine(house: House, arrived: Arrived) -> None:
    if not arrived.byte_size:
        return  # no bytes are complete at once, as for every family
    declared = sa.select(caption_files.c.mime_type).where(caption_files.c.id == arrived.record_id)
    with house.database.read() as connection:
        mime_type = connection.scalar(declared)
    if mime_type is None:
        raise _SHELF.not_found()
    # bounded by max_caption_bytes, which was announced and is held to
    pieces = house.store.read(arrived.store_key, ByteRange(0, arrived.byte_size))
    PARSERS[CaptionType(mime_type)](b"".join(pieces))


def _finished(connection: Connection, arrived: Arrived) -> None:
    mine = caption_files.c.id == arrived.record_id
    connection.execute(
        caption_files.update().where(mine).values(md5=arrived.md5, completed_at=instant())
    )


def _told(row: Row[Any]) -> CaptionRecord:
    return CaptionRecord(
        id=row.id,
        filename=row.filename,
        mime_type=row.mime_type,
        byte_size=row.byte_size,
        next_byte=_SHELF.next_byte(row),
        complete=row.completed_at is not None,
        status=_SHELF.status(row),
        md5=None if row.md5 is None else md5_text(row.md5),
        created_at=rfc3339(row.created_at) or "",
        completed_at=rfc3339(row.completed_at),
        expires_at=rfc3339(row.expires_at),
    )
