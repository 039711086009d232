"""Records of usage. Written by tools/make_client.py."""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = ["Usage", "UsageLimits"]


class UsageLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much the tenant may use."""

    max_jobs: int
    """Unfinished jobs."""
    max_render_cost: float | None
    """Seconds of processor time of the slices of one render; null: no limit."""
    max_render_seconds: float
    """Of work on the slices of one render."""
    max_stored_bytes: int | None
    """Null: no limit."""
    retention_days: float | None
    """After which files and finished renders are deleted; null: never."""


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What the tenant uses now."""

    jobs: int
    """Unfinished jobs."""
    limits: UsageLimits
    row_bytes: int
    """Of its records: names, metadata, data, events, answers kept for an Idempotency-Key, and 256 a
    record; the limit of stored bytes holds for them, too, if it is over 1 MiB.
    """
    scope: Literal["read", "write", "admin"]
    """Of the key that asks: what it may do."""
    stored_bytes: int
    """In the store, once per SHA-256, with the announced sizes of unfinished uploads."""
