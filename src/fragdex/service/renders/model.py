"""What answers about renders say."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from pydantic import Field

from fragdex.rendering.films import CONTAINERS
from fragdex.service.renders.outputs import RenderOutput
from fragdex.service.renders.request import RenderCrop, RenderData, RenderMetadata
from fragdex.service.unprocessed.model import Problem
from fragdex.service.web.fields import (
    ApiModel,
    Listed,
    Seconds,
)

TYPES: Final = {
    "mp4": "video/mp4",
    "jpeg": "image/jpeg",
    "png": "image/png",
    "webp": "image/webp",
    **CONTAINERS,
}
"""The media type of each container."""


def suffix_of(container: str) -> str:
    """What the name of its files ends in.

    >>> suffix_of("animated-webp")
    'webp'
    """
    return container.rpartition("-")[2]


class RenderStatus(StrEnum):
    """How far a render is."""

    CREATED = "created"
    PENDING = "pending"
    RENDERING = "rendering"
    COMPLETE = "complete"
    FAILED = "failed"
    CANCELLED = "cancelled"


class RenderSlice(ApiModel):
    """A part of a render, rendered by itself."""

    first_frame: int
    frames: int
    frames_done: int
    reused: bool = Field(description="taken from an earlier render that made the same frames")
    attempts: int = Field(description="how often it was begun")
    seconds: Seconds = Field(description="what it cost: replay, capture, encode …")


class BlockedRequest(ApiModel):
    """A request of the page that was not made."""

    url: str
    reason: str


class RenderLoudness(ApiModel):
    """How loud the sound was, and what was done about it."""

    integrated: float | None = Field(
        description="LUFS of the mix (ITU-R BS.1770-4); null: silent, or shorter than 400 ms"
    )
    true_peak: float | None = Field(description="dBTP of the mix; null: silent")
    gain: float = Field(description="dB that it was changed by")


class RenderRecord(ApiModel):
    """A page that is, or was, rendered."""

    id: str
    md5: str | None = Field(description="the client's own identifier, dashed")
    metadata: RenderMetadata
    status: RenderStatus
    strategy: str
    output: RenderOutput
    width: int | None = Field(description="CSS pixels; null until the page has said")
    height: int | None
    scale: float = Field(description="pixels of the result for each CSS pixel of a side")
    crop: RenderCrop | None = Field(description="what is kept of the window; null: all")
    fps: float
    frame_rate: str = Field(description="the same, exactly: 30 or 30000/1001")
    page_fps: float = Field(description="calls of the page by requestAnimationFrame a second")
    duration_ms: int | None
    from_ms: int | None = Field(description="of a film: the moment that it begins with")
    to_ms: int | None = Field(description="of a film: the moment before which it ends")
    time_ms: int | None = Field(description="of a still: the moment it shows")
    work_slice_ms: int
    frames: int | None = Field(description="null until it is known how many there are")
    frames_done: int
    slices: list[RenderSlice]
    seconds: Seconds = Field(
        description="wait (for a worker) and whole; plan, slices and join as they passed; start, "
        "replay, capture, finish, encode: what all slices cost together; discarded: slices that "
        "were drawn again by one browser"
    )
    media_type: str = Field(description="of the result")
    byte_size: int | None = Field(description="of the result")
    next_byte: int | None = Field(description="of an upload that is going on")
    problem: Problem | None
    data: RenderData | None = Field(description="that the page was given; null where it is long")
    data_sha256: str | None = Field(description="of the data, as the page read them: JSON")
    incomplete: list[str] = Field(
        description="scripts of the page that failed, were blocked or are not there: it may not "
        "show what it should"
    )
    console: list[str] = Field(description="what the page wrote and threw, the first lines of it")
    blocked: list[BlockedRequest] = Field(description="requests that were not made, and why")
    refused: list[str] = Field(description="what the page tried to use and was refused")
    loudness: RenderLoudness | None = Field(description="null where none was asked for")
    browser: list[str] = Field(description="how it ran, where it was not as it should be")
    browser_versions: list[str] = Field(
        description="of the browsers that drew it; one, unless workers have different ones"
    )
    created_at: str
    queued_at: str | None
    started_at: str | None
    completed_at: str | None
    failed_at: str | None


class RenderBatch(ApiModel):
    """Renders of one page, in the order of their rows."""

    renders: list[RenderRecord]


class RenderList(Listed):
    """Renders, newest first."""

    renders: list[RenderRecord]
