"""Operations on renders. Written by tools/make_client.py."""
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

import msgspec

from fragdex.byterange import ByteRange
from fragdex.client.api.records import Event, Problem
from fragdex.client.exchange import Request, operation

# fmt: off
__all__ = [
    "BlockedRequest", "RenderBatch", "RenderCrop", "RenderList", "RenderLoudness", "RenderRecord",
    "RenderSlice", "cancel_render", "create_render", "create_render_batch", "delete_render",
    "download_render", "find_render", "get_render", "get_render_progress", "get_render_upload",
    "head_render", "list_renders", "upload_render",
]
# fmt: on


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
    """The part of the window that is drawn; null: all."""
    data: Mapping[str, Any] | None
    """That the page was given; null where it is long."""
    data_sha256: str | None
    """Of the data, as the page read them: JSON."""
    duration_ms: int | None
    """Of the whole video; null until it is known, and for pictures."""
    failed_at: datetime | None
    fps: float
    """Frames a second."""
    frame_rate: str
    """Fps, exactly: 30 or 30000/1001."""
    frames: int | None
    """Null until it is known how many there are."""
    frames_done: int
    from_ms: int | None
    """Of a video: the time at which it begins."""
    height: int | None
    """As width."""
    id: str
    incomplete: tuple[str, ...]
    """Scripts of the page that failed, were blocked or are not there: it may not show what it
    should.
    """
    loudness: RenderLoudness | None
    """Null if none was requested."""
    md5: str | None
    """The client's own identifier, dashed."""
    media_type: str
    """Of the result."""
    metadata: Mapping[str, str]
    next_byte: int | None
    """Of a running upload."""
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
    """Of a video: the time at which it ends, exclusive."""
    width: int | None
    """CSS pixels; null until the page has reported it."""
    work_slice_ms: int


class RenderBatch(msgspec.Struct, frozen=True, kw_only=True):
    """Renders of one page, in the order of their rows."""

    renders: tuple[RenderRecord, ...]


class RenderList(msgspec.Struct, frozen=True, kw_only=True):
    """Renders, newest first."""

    next_cursor: str | None
    """Returns the next page; null on the last."""
    renders: tuple[RenderRecord, ...]


@operation("GET", "/api/v1/renders", RenderList)
def list_renders(
    *,
    limit: int | None = None,
    cursor: str | None = None,
    status: Literal["created", "pending", "rendering", "complete", "failed", "cancelled"]
    | None = None,
) -> Request[RenderList]:
    """Renders, newest first.

    Args:
        limit: records on a page.
        cursor: `next_cursor` of the page before.
        status: only those.
    """


@operation("POST", "/api/v1/renders", RenderRecord)
def create_render(
    *,
    idempotency_key: str | None = None,
    backend: Literal["cpu", "gpu"] | None = None,
    crop: RenderCrop | None = None,
    data: Mapping[str, Any] | None = None,
    duration_ms: int | None = None,
    fps: float | str | None = None,
    from_ms: int | None = None,
    height: int | None = None,
    html: str | None = None,
    md5: str | None = None,
    metadata: Mapping[str, str] | None = None,
    output: Mapping[str, Any] | None = None,
    page_fps: float | str | None = None,
    scale: float | None = None,
    strategy: Literal["v1"] | None = None,
    time_ms: int | None = None,
    to_ms: int | None = None,
    width: int | None = None,
    work_slice_ms: int | None = None,
) -> Request[RenderRecord]:
    """Render a page: `html`, or a site that is uploaded next.

    Always a new render, also where there is one of the same md5.

    Args:
        idempotency_key: The same key with the same body gives the first answer again.
        backend: tolerated, without effect.
        crop: the part of the window that is drawn; default: all of it.
        data: given to the page, as `window.fragdex.data`.
        duration_ms: of a video; default: window.fragdex.duration, or the longest animation or
            media of the page that ends.
        fps: 1 to 120 frames a second; 29.97 means 30000/1001, which may be written out;
            default: 30.
        from_ms: of a video: begin with the frame at this time; default: 0.
        height: as width; default: the page's root element, or 720.
        html: the page; without it, a site has to be uploaded.
        md5: the client's own identifier, to find the render by.
        metadata: the client's own words, given back.
        page_fps: how often a second requestAnimationFrame calls the page, 1 to 120: a whole
            multiple of fps, for pages that count frames; default: fps.
        scale: pixels for each CSS pixel of a side, the page's devicePixelRatio; default: 1.
        time_ms: of a still: when; default: 0.
        to_ms: of a video: end before the frame at this time; default: the end; without
            duration_ms the video ends here.
        width: in CSS pixels; times scale, it is even for mp4; default: the page's root element,
            or 1280.
        work_slice_ms: the page is rendered in slices of so long; default 4000.
    """


@operation("POST", "/api/v1/renders/batch", RenderBatch)
def create_render_batch(
    *,
    html: str,
    rows: tuple[Mapping[str, Any], ...],
    idempotency_key: str | None = None,
    backend: Literal["cpu", "gpu"] | None = None,
    crop: RenderCrop | None = None,
    duration_ms: int | None = None,
    fps: float | str | None = None,
    from_ms: int | None = None,
    height: int | None = None,
    md5: str | None = None,
    metadata: Mapping[str, str] | None = None,
    output: Mapping[str, Any] | None = None,
    page_fps: float | str | None = None,
    scale: float | None = None,
    strategy: Literal["v1"] | None = None,
    time_ms: int | None = None,
    to_ms: int | None = None,
    width: int | None = None,
    work_slice_ms: int | None = None,
) -> Request[RenderBatch]:
    """Render a page once for each row, with the row as `window.fragdex.data`.

    All of the renders are made, or none.

    Args:
        idempotency_key: The same key with the same body gives the first answer again.
        backend: tolerated, without effect.
        crop: the part of the window that is drawn; default: all of it.
        duration_ms: of a video; default: window.fragdex.duration, or the longest animation or
            media of the page that ends.
        fps: 1 to 120 frames a second; 29.97 means 30000/1001, which may be written out;
            default: 30.
        from_ms: of a video: begin with the frame at this time; default: 0.
        height: as width; default: the page's root element, or 720.
        html: the page.
        md5: the client's own identifier, to find the render by.
        metadata: the client's own words, given back.
        page_fps: how often a second requestAnimationFrame calls the page, 1 to 120: a whole
            multiple of fps, for pages that count frames; default: fps.
        rows: the data of each render.
        scale: pixels for each CSS pixel of a side, the page's devicePixelRatio; default: 1.
        time_ms: of a still: when; default: 0.
        to_ms: of a video: end before the frame at this time; default: the end; without
            duration_ms the video ends here.
        width: in CSS pixels; times scale, it is even for mp4; default: the page's root element,
            or 1280.
        work_slice_ms: the page is rendered in slices of so long; default 4000.
    """


@operation("GET", "/api/v1/renders/md5/{md5}", RenderRecord)
def find_render(md5: str) -> Request[RenderRecord]:
    """The newest render with this identifier."""


@operation("GET", "/api/v1/renders/{id}", RenderRecord)
def get_render(id: str) -> Request[RenderRecord]:
    """The record of a render."""


@operation("DELETE", "/api/v1/renders/{id}")
def delete_render(id: str) -> Request[None]:
    """Delete a render, its page, its result and its slices; stop it if it is running."""


@operation("GET", "/api/v1/renders/{id}.{suffix}", bytes)
def download_render(
    id: str,
    suffix: Literal[
        "flac",
        "gif",
        "jpeg",
        "m4a",
        "mkv",
        "mov",
        "mp3",
        "mp4",
        "ogg",
        "png",
        "wav",
        "webm",
        "webp",
        "zip",
    ],
    *,
    range: ByteRange | None = None,
) -> Request[bytes]:
    """The result of a render that makes a .`suffix`.

    Args:
        suffix: `mp4`: the result, with its own media type.
    """


@operation("HEAD", "/api/v1/renders/{id}.{suffix}")
def head_render(
    id: str,
    suffix: Literal[
        "flac",
        "gif",
        "jpeg",
        "m4a",
        "mkv",
        "mov",
        "mp3",
        "mp4",
        "ogg",
        "png",
        "wav",
        "webm",
        "webp",
        "zip",
    ],
) -> Request[None]:
    """The result of a render that makes a .`suffix`.

    Args:
        suffix: `mp4`: the result, with its own media type.
    """


@operation("POST", "/api/v1/renders/{id}/cancel", RenderRecord)
def cancel_render(id: str) -> Request[RenderRecord]:
    """Cancel a render; its browsers stop within seconds. 409 if it is complete or failed."""


@operation("GET", "/api/v1/renders/{id}/progress", Event)
def get_render_progress(id: str, *, last_event_id: str | None = None) -> Request[Event]:
    """The progress of a render as events; without `Last-Event-ID` from the beginning.

    Args:
        last_event_id: The `id` of the last event received; the stream continues after it.
    """


@operation("GET", "/api/v1/renders/{id}/upload", RenderRecord)
def get_render_upload(id: str) -> Request[RenderRecord]:
    """The record, once its bytes are complete; before that 404, with `next_byte`."""


@operation("POST", "/api/v1/renders/{id}/upload", RenderRecord)
def upload_render(
    id: str, content: bytes, *, content_range: str | None = None
) -> Request[RenderRecord]:
    """Send a site, packed as .tar.gz or .zip with index.html at its root, whole or in chunks.

    202 while bytes are missing; with the last one the render is queued.

    Args:
        content_range: `bytes START-END/TOTAL`, END inclusive; without it the body is whole.
        content: the bytes.
    """
