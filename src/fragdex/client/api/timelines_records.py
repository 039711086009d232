"""Records of timelines. Written by tools/make_client.py."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

__all__ = ["TimelineList", "TimelineRecord"]


class TimelineRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A timeline."""

    created_at: datetime
    expires_at: datetime | None
    files: tuple[str, ...]
    """Ids of ISOBMFF files, in their order."""
    gaps: Literal["keep", "close"]
    id: str
    missing: tuple[str, ...]
    """Those of them that were deleted; until they are taken out, nothing is played."""
    name: str


class TimelineList(msgspec.Struct, frozen=True, kw_only=True):
    """Timelines, newest first."""

    next_cursor: str | None
    """Asks for the next page; null on the last."""
    timelines: tuple[TimelineRecord, ...]
