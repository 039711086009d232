"""Records of files. Written by tools/make_client.py."""

from __future__ import annotations

import msgspec

from fragdex.client.api.shared_records import AnyFile

__all__ = ["AnyFileList", "Deleted"]


class Deleted(msgspec.Struct, frozen=True, kw_only=True):
    """What was deleted."""

    id: str
    success: bool | None = None


class AnyFileList(msgspec.Struct, frozen=True, kw_only=True):
    """Files of all types, newest first."""

    files: tuple[AnyFile, ...]
    next_cursor: str | None
    """Asks for the next page; null on the last."""
