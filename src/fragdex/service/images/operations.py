"""What can be done with image files; no HTTP."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from fragdex.service.errors import InvalidRequest
from fragdex.service.house import House
from fragdex.service.images.model import TYPES, ImageList, ImageRecord, NewImage, type_of
from fragdex.service.images.probe import Size, probe
from fragdex.service.records.identifiers import instant, md5_bytes, md5_text, new_id, rfc3339
from fragdex.service.records.tables import image_files
from fragdex.service.uploads import Arrival, Arrived, begin
from fragdex.service.uploads.shelf import FileStatus, Shelf, StoredBytes, need_within

__all__ = [
    "FAMILY",
    "arrival",
    "create_image",
    "delete_image",
    "find_image",
    "get_image",
    "glance_at_image",
    "image_bytes",
    "list_images",
]

FAMILY = "images"
_SHELF = Shelf(FAMILY, image_files, "image file")


def create_image(
    house: House, tenant_id: str, new: NewImage, expires_at: datetime | None = None
) -> tuple[ImageRecord, bool]:
    """A record for an image to come, and whether it is a new one.

    One of the same md5 that is complete, or waits for as many bytes, is given again.

    Raises:
        InvalidRequest: a type that is not taken here, or no md5.
        TooLarge: more bytes than an image may have.
    """
    mime_type = type_of(new.filename, new.mime_type)
    if mime_type is None:
        raise InvalidRequest(
            "this is no type of image that is taken here",
            pointer="/mime_type" if new.mime_type else "/filename",
            expected=", ".join(dict.fromkeys(TYPES.values())),
            found=new.mime_type or new.filename,
        )
    need_within(new.byte_size, house.settings.max_image_bytes, "image file")
    md5 = md5_bytes(new.md5) if new.md5 else None
    with house.database.write() as connection:
        if md5 is not None:
            known = _SHELF.known(connection, tenant_id, md5, new.byte_size)
            if known is not None:
                return _told(known), False
        image_id = new_id()
        row = {
            "id": image_id,
            "tenant_id": tenant_id,
            "filename": new.filename,
            "mime_type": mime_type,
            "byte_size": new.byte_size,
            "md5": md5,
            "width": new.width,
            "height": new.height,
            "created_at": instant(),
            "expires_at": expires_at,
        }
        connection.execute(image_files.insert().values(**row))
        how = arrival(house)
        begin(house, connection, tenant_id, FAMILY, image_id, new.byte_size, md5, how)
        return _told(_SHELF.row(connection, tenant_id, image_id)), True


def get_image(house: House, tenant_id: str, image_id: str) -> ImageRecord:
    """A record by its id.

    Raises:
        RecordNotFound: this tenant has none of it.
    """
    return _told(_SHELF.get(house, tenant_id, image_id))


def find_image(house: House, tenant_id: str, md5: bytes) -> ImageRecord:
    """A record by the md5 of its bytes; a complete one before others, then the newest.

    Raises:
        RecordNotFound: this tenant has none of it.
    """
    return _told(_SHELF.find(house, tenant_id, md5))


def glance_at_image(house: House, tenant_id: str, md5: bytes) -> ImageRecord | None:
    """`find_image` without waiting; None: ask it."""
    row = _SHELF.glance(house, tenant_id, md5)
    return None if row is None else _told(row)


def list_images(
    house: House,
    tenant_id: str,
    limit: int,
    cursor: str | None = None,
    status: FileStatus | None = None,
) -> ImageList:
    """One page of a tenant's image files, newest first.

    Raises:
        InvalidRequest: a limit out of bounds, or no cursor of ours.
    """
    found = _SHELF.page(house, tenant_id, limit, cursor, status)
    return ImageList(image_files=[_told(row) for row in found.rows], next_cursor=found.next_cursor)


def delete_image(house: House, tenant_id: str, image_id: str) -> None:
    """Delete a record; its bytes go with the last record that needs them.

    Raises:
        RecordNotFound: this tenant has none of it.
    """
    _SHELF.delete(house, tenant_id, image_id)


def image_bytes(house: House, tenant_id: str, image_id: str) -> StoredBytes:
    """Where the bytes of an image are.

    Raises:
        RecordNotFound: this tenant has none of it.
        NotReady: they are not all here yet.
    """
    return _SHELF.stored(house, tenant_id, image_id)


def arrival(house: House) -> Arrival:
    """What becomes of an image's bytes: they are measured, and the record is complete."""
    return Arrival(finished=_finished, examine=partial(_examine, house))


def _examine(house: House, arrived: Arrived) -> Size | None:
    if not arrived.byte_size:
        return None  # no bytes have no size, whatever they were said to be
    declared = sa.select(image_files.c.mime_type).where(image_files.c.id == arrived.record_id)
    with house.database.read() as connection:
        mime_type = connection.scalar(declared)
    if mime_type is None:
        raise _SHELF.not_found()
    with house.store.local(arrived.store_key) as path:
        return probe(path, mime_type, house.settings.max_pixels)


def _finished(connection: Connection, arrived: Arrived) -> None:
    values: dict[str, Any] = {"md5": arrived.md5, "completed_at": instant()}
    if arrived.found is not None:
        values |= {"width": arrived.found.width, "height": arrived.found.height}
    mine = image_files.c.id == arrived.record_id
    connection.execute(image_files.update().where(mine).values(**values))


def _told(row: Row[Any]) -> ImageRecord:
    return ImageRecord(
        id=row.id,
        filename=row.filename,
        mime_type=row.mime_type,
        byte_size=row.byte_size,
        next_byte=_SHELF.next_byte(row),
        complete=row.completed_at is not None,
        status=_SHELF.status(row),
        md5=None if row.md5 is None else md5_text(row.md5),
        width=row.width,
        height=row.height,
        created_at=rfc3339(row.created_at) or "",
        completed_at=rfc3339(row.completed_at),
        expires_at=rfc3339(row.expires_at),
    )
