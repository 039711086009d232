"""What can be done with caption files; no HTTP."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

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
from fragdex.service.records.identifiers import instant, md5_bytes
from fragdex.service.records.tables import caption_files
from fragdex.service.uploads import Arrival, Arrived
from fragdex.service.uploads.shelf import FileStatus, Shelf, StoredBytes, facts, need_within

__all__ = ["CAPTIONS", "FAMILY", "arrival", "caption_bytes", "create_caption", "list_captions"]


def _told(row: Any) -> CaptionRecord:
    return CaptionRecord(mime_type=row.mime_type, **facts(row))


FAMILY = "captions"
CAPTIONS = Shelf(FAMILY, caption_files, "caption file", _told)


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
    values = {
        "filename": new.filename,
        "mime_type": mime_type.value,
        "expires_at": expires_at,
    }
    return CAPTIONS.announce(house, tenant_id, new.byte_size, md5, arrival(house), values)


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
    found, next_cursor = CAPTIONS.page(house, tenant_id, limit, cursor, status)
    return CaptionList(caption_files=found, next_cursor=next_cursor)


def caption_bytes(house: House, tenant_id: str, caption_id: str) -> StoredBytes:
    """Where the bytes of captions are; their type tells how they are written.

    JSON is UTF-8 by itself (RFC 8259, 8.1); of the others it has to be said.

    Raises:
        RecordNotFound: this tenant has none of it.
        NotReady: they are not all here yet.
    """
    found = CAPTIONS.stored(house, tenant_id, caption_id)
    if found.mime_type == CaptionType.JSON:
        return found
    return replace(found, mime_type=f"{found.mime_type}; charset=utf-8")


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
        raise CAPTIONS.not_found()
    # bounded by max_caption_bytes, which was announced and is held to
    pieces = house.store.read(arrived.store_key, ByteRange(0, arrived.byte_size))
    PARSERS[CaptionType(mime_type)](b"".join(pieces))


def _finished(connection: Connection, arrived: Arrived) -> None:
    mine = caption_files.c.id == arrived.record_id
    connection.execute(
        caption_files.update().where(mine).values(md5=arrived.md5, completed_at=instant())
    )
