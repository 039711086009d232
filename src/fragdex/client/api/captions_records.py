"""Records of caption files. Written by tools/make_client.py."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

__all__ = ["CaptionList", "CaptionRecord"]


class CaptionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A caption file."""

    byte_size: int
    complete: bool
    completed_at: datetime | None
    created_at: datetime
    expires_at: datetime | None
    filename: str
    id: str
    md5: str | None
    """Dashed; null until it is announced or known."""
    mime_type: str
    next_byte: int
    """Bytes before this one are here to stay."""
    status: Literal["created", "uploading", "ready"]


class CaptionList(msgspec.Struct, frozen=True, kw_only=True):
    """Caption files, newest first."""

    caption_files: tuple[CaptionRecord, ...]
    next_cursor: str | None
    """Asks for the next page; null on the last."""
