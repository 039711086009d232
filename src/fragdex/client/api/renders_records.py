"""Records of renders. Written by tools/make_client.py."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

import msgspec

from fragdex.client.api.shared_records import Problem

__all__ = [
    "BlockedRequest",
    "RenderBatch",
    "RenderCrop",
    "RenderList",
    "RenderLoudness",
    "RenderRecord",
    "RenderSlice",
]


class BlockedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request of the page that was not made."""

    reason: str
    url: str


class RenderCrop(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the page's window, in CSS pixels."""

    height: int
    width: int
    x: int | None = None
    y: int | None = None


class RenderLoudness(msgspec.Struct, frozen=True, kw_only=True):
    """How loud the sound was, and what was done about it."""

    gain: float
    """DB that it was changed by."""
    integrated: float | None
    """LUFS of the mix (ITU-R BS.1770-4); null: silent, or shorter than 400 ms."""
    true_peak: float | None
    """DBTP of the mix; null: silent."""


class RenderSlice(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a render, rendered by itself."""

    attempts: int
    """How often it was begun."""
    first_frame: int
    frames: int
    frames_done: int
    reused: bool
    """Taken from an earlier render that made the same frames."""
    seconds: Mapping[str, float]
    """What it cost: replay, capture, encode …."""


class RenderRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A page that is, or was, rendered."""

    blocked: tuple[BlockedRequest, ...]
    """Requests that were not made, and why."""
    browser: tuple[str, ...]
    """How it ran, where it was not as it should be."""
    browser_versions: tuple[str, ...]
    """Of the browsers that drew it; one, unless workers have different ones."""
    byte_size: int | None
    """Of the result."""
    completed_at: datetime | None
    console: tuple[str, ...]
    """What the page wrote and threw, the first lines of it."""
    created_at: datetime
    crop: RenderCrop | None
    """What is kept of the window; null: all."""
    data: Mapping[str, Any] | None
    """That the page was given; null where it is long."""
    data_sha256: str | None
    """Of the data, as the page read them: JSON."""
    duration_ms: int | None
    failed_at: datetime | None
    fps: float
    frame_rate: str
    """The same, exactly: 30 or 30000/1001."""
    frames: int | None
    """Null until it is known how many there are."""
    frames_done: int
    from_ms: int | None
    """Of a film: the moment that it begins with."""
    height: int | None
    id: str
    incomplete: tuple[str, ...]
    """Scripts of the page that failed, were blocked or are not there: it may not show what it
    should.
    """
    loudness: RenderLoudness | None
    """Null where none was asked for."""
    md5: str | None
    """The client's own identifier, dashed."""
    media_type: str
    """Of the result."""
    metadata: Mapping[str, str]
    next_byte: int | None
    """Of an upload that is going on."""
    output: Mapping[str, Any]
    page_fps: float
    """Calls of the page by requestAnimationFrame a second."""
    problem: Problem | None
    queued_at: datetime | None
    refused: tuple[str, ...]
    """What the page tried to use and was refused."""
    scale: float
    """Pixels of the result for each CSS pixel of a side."""
    seconds: Mapping[str, float]
    """Wait (for a worker) and whole; plan, slices and join as they passed; start, replay, capture,
    finish, encode: what all slices cost together; discarded: slices that were drawn again by one
    browser.
    """
    slices: tuple[RenderSlice, ...]
    started_at: datetime | None
    status: Literal["created", "pending", "rendering", "complete", "failed", "cancelled"]
    strategy: str
    time_ms: int | None
    """Of a still: the moment it shows."""
    to_ms: int | None
    """Of a film: the moment before which it ends."""
    width: int | None
    """CSS pixels; null until the page has said."""
    work_slice_ms: int


class RenderBatch(msgspec.Struct, frozen=True, kw_only=True):
    """Renders of one page, in the order of their rows."""

    renders: tuple[RenderRecord, ...]


class RenderList(msgspec.Struct, frozen=True, kw_only=True):
    """Renders, newest first."""

    next_cursor: str | None
    """Asks for the next page; null on the last."""
    renders: tuple[RenderRecord, ...]
