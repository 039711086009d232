"""What can be done with image files; no HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from fragdex.errors import InvalidRequest
from fragdex.service.context import ServiceContext
from fragdex.service.images.model import TYPES, ImageList, ImageRecord, NewImage, type_of
from fragdex.service.images.probe import Prober
from fragdex.service.records.identifiers import md5_bytes
from fragdex.service.records.tables import FileType
from fragdex.service.uploads.model import Arrived
from fragdex.service.uploads.repository import FileRepository, facts


def _record_of(row: Any) -> ImageRecord:
    size = {"width": row.width, "height": row.height}
    return ImageRecord(mime_type=row.mime_type, **size, **facts(row))


def _examine(context: ServiceContext, arrived: Arrived, mime_type: str) -> Mapping[str, Any]:
    with context.store.local(arrived.store_key) as path:
        size = context.part(Prober).probe(path, mime_type, context.settings.max_pixels)
    return size._asdict()


IMAGES = FileRepository(
    FileType.IMAGE, "image file", _record_of, ImageList,
    limit=lambda settings: settings.max_image_bytes, examine=_examine,
)  # fmt: skip


def create_image(
    context: ServiceContext, tenant_id: str, new: NewImage, expires_at: datetime | None = None
) -> tuple[ImageRecord, bool]:
    """A record for an image to come, and whether it is a new one.

    One of the same md5 and size is given again.

    Raises:
        InvalidRequest: a type that is not taken here, or no md5.
        TooLarge: more bytes than an image may have.
    """
    mime_type = type_of(new.filename, new.mime_type)
    if mime_type is None:
        raise InvalidRequest(
            "this type of image is not supported",
            pointer="/mime_type" if new.mime_type else "/filename",
            expected=", ".join(dict.fromkeys(TYPES.values())),
            found=new.mime_type or new.filename,
        )
    md5 = md5_bytes(new.md5) if new.md5 else None
    values = {
        "filename": new.filename,
        "mime_type": mime_type,
        "width": new.width,
        "height": new.height,
        "expires_at": expires_at,
    }
    return IMAGES.announce(context, tenant_id, new.byte_size, md5, values)
