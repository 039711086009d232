"""Records of files. Written by tools/make_client.py."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from fragdex.client.api.shared_records import Problem

__all__ = ["AnyFile", "AnyFileList", "Deleted", "FileTrack"]


class Deleted(msgspec.Struct, frozen=True, kw_only=True):
    """What was deleted."""

    id: str
    success: bool | None = None


class FileTrack(msgspec.Struct, frozen=True, kw_only=True):
    """A track of a video."""

    byte_size: int | None
    """Null for a track that is only in the index."""
    codec_name: str | None
    duration_ms: int | None
    track_id: int
    """-1: the scrub track."""
    type: str


class AnyFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of any type."""

    byte_size: int | None
    """Null for a video known by its tracks or index alone."""
    completed_at: datetime | None
    """Since when it is ready."""
    created_at: datetime
    expires_at: datetime | None
    filename: str
    height: int | None
    id: str
    md5: str | None
    """Dashed; null until it is announced or known."""
    mime_type: str | None
    next_byte: int
    """Bytes before this one are here to stay."""
    problem: Problem | None
    """Why it failed."""
    status: Literal["created", "uploading", "processing", "ready", "failed"]
    tracks: tuple[FileTrack, ...]
    """Of a video that was processed, or sent in tracks."""
    type: Literal["video", "image", "caption"]
    width: int | None
    """Pixels, once they are known."""


class AnyFileList(msgspec.Struct, frozen=True, kw_only=True):
    """Files of all types, newest first."""

    files: tuple[AnyFile, ...]
    next_cursor: str | None
    """Asks for the next page; null on the last."""
