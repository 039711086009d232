"""Records of image files. Written by tools/make_client.py."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

__all__ = ["ImageList", "ImageRecord"]


class ImageRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An image file."""

    byte_size: int
    complete: bool
    completed_at: datetime | None
    created_at: datetime
    expires_at: datetime | None
    filename: str
    height: int | None
    """As width."""
    id: str
    md5: str | None
    """Dashed; null until it is announced or known."""
    mime_type: str
    next_byte: int
    """Bytes before this one are here to stay."""
    status: Literal["created", "uploading", "ready"]
    width: int | None
    """Pixels, after orientation, by the file's own header."""


class ImageList(msgspec.Struct, frozen=True, kw_only=True):
    """Image files, newest first."""

    image_files: tuple[ImageRecord, ...]
    next_cursor: str | None
    """Asks for the next page; null on the last."""
