"""Image files: what they are to a caller, and what can be done with them; no HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from fragdex.errors import InvalidRequest
from fragdex.service.context import ServiceContext
from fragdex.service.images.probe import Prober
from fragdex.service.records.identifiers import md5_bytes
from fragdex.service.records.tables import FileType
from fragdex.service.uploads.model import Arrived
from fragdex.service.uploads.repository import FileRepository, FileStatus, facts
from fragdex.service.web.fields import (
    JSON_NUMBER,
    ApiModel,
    ByteSize,
    FileName,
    Listed,
    Md5Text,
    RequestBody,
    SentByteSize,
    media_type_of,
)

TYPES = {
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".png": "image/png",
    ".webp": "image/webp",
    ".svg": "image/svg+xml",
}
"""The kinds of image there are, by the end of a name."""

ALIASES = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/svg": "image/svg+xml"}

Pixels = Annotated[
    int,
    Field(ge=0, le=2**31 - 1),
    JSON_NUMBER,
    # published clients announce 0 × 0 where they have not measured
    AfterValidator(lambda pixels: pixels or None),
]


ImageType = Annotated[
    str, Field(max_length=100), media_type_of("a type of images", *TYPES.values(), *ALIASES)
]


class NewImage(RequestBody):
    """An image file to come."""

    filename: FileName
    byte_size: ByteSize
    md5: Md5Text | None = None
    mime_type: ImageType | None = Field(
        None,
        description="image/jpeg, image/png, image/webp or image/svg+xml; else from the name",
        examples=["image/png"],
    )
    width: Pixels | None = Field(
        None, description="pixels, as the sender takes it to be, until measured; 0: not known"
    )
    height: Pixels | None = Field(None, description="as width")


class ImageRecord(ApiModel):
    """An image file."""

    id: str
    filename: str
    mime_type: str
    byte_size: SentByteSize
    next_byte: int = Field(description="bytes before this one are here to stay")
    complete: bool
    status: FileStatus
    md5: str | None = Field(description="dashed; null until it is announced or known")
    width: int | None = Field(description="pixels, after orientation, by the file's own header")
    height: int | None = Field(description="as width")
    created_at: str
    completed_at: str | None
    expires_at: str | None


class ImageList(Listed):
    """Image files, newest first."""

    image_files: list[ImageRecord]


def type_of(filename: str, declared: str | None) -> str | None:
    """The media type that is declared, or that the name tells; None where it is none of ours."""
    if declared:
        named = declared.partition(";")[0].strip().lower()
        named = ALIASES.get(named, named)
        return named if named in TYPES.values() else None
    dot = filename.rfind(".")
    return TYPES.get(filename[dot:].lower()) if dot >= 0 else None


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
