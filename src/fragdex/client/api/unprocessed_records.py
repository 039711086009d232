"""Records of unprocessed files. Written by tools/make_client.py."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from fragdex.client.api.shared_records import Problem

__all__ = ["ProcessList", "ProcessRecord", "UnprocessedFile", "UnprocessedFileList"]


class ProcessRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The making of an ISOBMFF file from an unprocessed one."""

    completed_at: datetime | None
    created_at: datetime
    failed_at: datetime | None
    id: str
    isobmff_file_id: str | None
    """Null until it is complete."""
    problem: Problem | None
    progress: float
    status: Literal["processing", "complete", "failed"]
    unprocessed_file_id: str


class UnprocessedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A media file as it is sent."""

    byte_size: int
    complete: bool
    completed_at: datetime | None
    created_at: datetime
    expires_at: datetime | None
    filename: str
    fragment_index_complete: bool
    """It is an ISO base media file, and its index was made while it came."""
    id: str
    md5: str | None
    """Dashed; null until it is told or known."""
    next_byte: int
    """Bytes before this one are here to stay."""
    problem: Problem | None
    status: Literal["created", "uploading", "complete", "failed"]
    """Failed: what came is no media file."""


class ProcessList(msgspec.Struct, frozen=True, kw_only=True):
    """Processes, newest first."""

    next_cursor: str | None
    """Asks for the next page; null on the last."""
    processes: tuple[ProcessRecord, ...]


class UnprocessedFileList(msgspec.Struct, frozen=True, kw_only=True):
    """Unprocessed files, newest first."""

    next_cursor: str | None
    """Asks for the next page; null on the last."""
    unprocessed_files: tuple[UnprocessedFile, ...]
