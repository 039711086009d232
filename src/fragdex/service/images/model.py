"""What an image file is to a caller."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from fragdex.service.uploads.repository import FileStatus
from fragdex.service.web.fields import (
    JSON_NUMBER,
    ApiModel,
    ByteSize,
    FileName,
    Listed,
    Md5Text,
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


class NewImage(ApiModel):
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
    byte_size: int
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
    """The media type that is declared, or that the name tells; None where it is none of ours.

    >>> type_of("a.JPG", None), type_of("a", "image/png; q=1"), type_of("a.bmp", None)
    ('image/jpeg', 'image/png', None)
    """
    if declared:
        named = declared.partition(";")[0].strip().lower()
        named = ALIASES.get(named, named)
        return named if named in TYPES.values() else None
    dot = filename.rfind(".")
    return TYPES.get(filename[dot:].lower()) if dot >= 0 else None
