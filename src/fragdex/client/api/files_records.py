"""Records of files. Written by tools/make_client.py."""

from __future__ import annotations

from datetime import datetime

import msgspec

from fragdex.client.api.shared_records import AnyFile

__all__ = ["AnyFileList", "Deleted", "UploadPart", "UploadParts"]


class Deleted(msgspec.Struct, frozen=True, kw_only=True):
    """What was deleted."""

    id: str
    success: bool | None = None


class UploadPart(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of a file that are missing, and where they are put."""

    byte_size: int
    start: int
    """The first byte."""
    url: str
    """PUT the bytes here, without any key."""


class UploadParts(msgspec.Struct, frozen=True, kw_only=True):
    """The first parts of a file that are missing, at most 100."""

    expires_at: datetime
    """Of the URLs."""
    missing: int
    """All parts that are missing."""
    parts: tuple[UploadPart, ...]


class AnyFileList(msgspec.Struct, frozen=True, kw_only=True):
    """Files of all types, newest first."""

    files: tuple[AnyFile, ...]
    next_cursor: str | None
    """Asks for the next page; null on the last."""
