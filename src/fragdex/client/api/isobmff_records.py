"""Records of ISOBMFF files. Written by tools/make_client.py."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from fragdex.client.api.shared_records import FileRecord, Place, TrackRecord

__all__ = ["FileList", "FileWithTracks", "SeekAnswer"]


class FileList(msgspec.Struct, frozen=True, kw_only=True):
    """ISOBMFF files, newest first."""

    isobmff_files: tuple[FileRecord, ...]
    next_cursor: str | None
    """Asks for the next page; null on the last."""


class FileWithTracks(msgspec.Struct, frozen=True, kw_only=True):
    """A registered file and its tracks."""

    byte_size: int | None
    """Of the file itself; null where only tracks or an index are known."""
    created_at: datetime
    expires_at: datetime | None
    filename: str
    fragment_index_complete: bool
    id: str
    index_completed_at: datetime | None
    md5: str
    """Dashed."""
    status: Literal["created", "ready"]
    """Ready: it has an index."""
    tracks: tuple[TrackRecord, ...]


class SeekAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Where decoding starts for a moment: the last sync sample at or before it."""

    cts: int
    """Presentation time of the sync sample, edit list applied, in ticks."""
    dts: int | None
    """Its decode time on the same timeline; null: unknown."""
    duration: int | None
    """Ticks of the fragment; null: unknown."""
    fragment: int
    """Row of the track's fragment table, from 0."""
    init: Place
    """The initialization segment, to be fetched once."""
    offset: int
    ranges: tuple[Place, ...] | None = None
    """With end_ms: merged ranges that hold all from here until before it."""
    size: int
    time_ms: float
    """Presentation time of the sync sample."""
    timescale: int
    """Ticks a second."""
    track: int
