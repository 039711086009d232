"""Operations on timelines. Written by tools/make_client.py."""
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from fragdex.byterange import ByteRange
from fragdex.client.api.records import Loudness, Waveform
from fragdex.client.exchange import Request, operation

# fmt: off
__all__ = [
    "TimelineList", "TimelineRecord", "create_timeline", "delete_timeline", "get_timeline",
    "get_timeline_clip", "get_timeline_dash_manifest", "get_timeline_dash_segment",
    "get_timeline_fragmented", "get_timeline_hls_playlist", "get_timeline_hls_segment",
    "get_timeline_loudness", "get_timeline_peaks", "get_timeline_storyboard",
    "get_timeline_storyboard_sheet", "get_timeline_thumbnail", "list_timelines",
]
# fmt: on


class TimelineRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Several files one after the other, streamed as one."""

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
    """Returns the next page; null on the last."""
    timelines: tuple[TimelineRecord, ...]


@operation("GET", "/api/v1/timelines", TimelineList)
def list_timelines(*, limit: int | None = None, cursor: str | None = None) -> Request[TimelineList]:
    """Timelines, newest first.

    Args:
        limit: records on a page.
        cursor: `next_cursor` of the page before.
    """


@operation("POST", "/api/v1/timelines", TimelineRecord)
def create_timeline(
    *,
    files: tuple[str, ...],
    idempotency_key: str | None = None,
    expires_at: datetime | None = None,
    gaps: Literal["keep", "close"] | None = None,
    name: str | None = None,
) -> Request[TimelineRecord]:
    """Join files into one timeline. Nothing is copied, and the files are unchanged.

    Args:
        idempotency_key: The same key with the same body gives the first answer again.
        expires_at: when the timeline, not its files, ends.
        files: ids of videos, in their order.
        gaps: `close`: each file begins where the one before ends; `keep`: at its own
            presentation times, less that of the first.
    """


@operation("GET", "/api/v1/timelines/{id}", TimelineRecord)
def get_timeline(id: str) -> Request[TimelineRecord]:
    """The record."""


@operation("DELETE", "/api/v1/timelines/{id}")
def delete_timeline(id: str) -> Request[None]:
    """Delete a timeline; its files stay."""


@operation("GET", "/api/v1/timelines/{id}/clip.mp4", bytes)
def get_timeline_clip(
    id: str,
    *,
    start_ms: float | None = None,
    end_ms: float | None = None,
    tracks: str | None = None,
    exact: bool | None = None,
    range: ByteRange | None = None,
) -> Request[bytes]:
    """An MP4 of the span from `start_ms` to `end_ms`; if `exact` is false, fragments from the sync
    sample at or before it on.

    Args:
        end_ms: exclusive.
        tracks: track ids as `fragmented.mp4` has them, with commas between; without: all.
        exact: true: at exactly the requested time; false: at a sync sample near it, which costs
            less.
    """


@operation("GET", "/api/v1/timelines/{id}/dash/manifest.mpd", bytes)
def get_timeline_dash_manifest(id: str, *, range: ByteRange | None = None) -> Request[bytes]:
    """The DASH manifest."""


@operation("GET", "/api/v1/timelines/{id}/dash/{rendition}/{part}", bytes)
def get_timeline_dash_segment(
    id: str, rendition: str, part: str, *, range: ByteRange | None = None
) -> Request[bytes]:
    """An initialization or media segment of DASH."""


@operation("GET", "/api/v1/timelines/{id}/fragmented.mp4", bytes)
def get_timeline_fragmented(id: str, *, range: ByteRange | None = None) -> Request[bytes]:
    """All tracks in one fragmented MP4, with a sidx."""


@operation(
    "GET",
    "/api/v1/timelines/{id}/hls/{playlist}",
    bytes,
    written={"_hls_msn": "_HLS_msn", "_hls_part": "_HLS_part", "_hls_skip": "_HLS_skip"},
)
def get_timeline_hls_playlist(
    id: str,
    playlist: str,
    *,
    _hls_msn: int | None = None,
    _hls_part: int | None = None,
    _hls_skip: Literal["YES", "v2"] | None = None,
    range: ByteRange | None = None,
) -> Request[bytes]:
    """HLS: `master.m3u8` and the playlists that it refers to.

    Args:
        _hls_msn: number that the playlist waits for.
        _hls_part: part of that segment, from 0.
        _hls_skip: without segments that the player has.
    """


@operation("GET", "/api/v1/timelines/{id}/hls/{rendition}/{part}", bytes)
def get_timeline_hls_segment(
    id: str, rendition: str, part: str, *, range: ByteRange | None = None
) -> Request[bytes]:
    """An initialization or media segment of HLS."""


@operation("GET", "/api/v1/timelines/{id}/loudness", Loudness)
def get_timeline_loudness(id: str) -> Request[Loudness]:
    """The loudness of the first audio track (EBU R 128)."""


@operation("GET", "/api/v1/timelines/{id}/peaks.{form}", Waveform, binary=True)
def get_timeline_peaks(
    id: str,
    form: str,
    *,
    samples_per_pixel: int | None = None,
    bits: int | None = None,
    range: ByteRange | None = None,
) -> Request[Waveform | bytes]:
    """The waveform of the sound, in audiowaveform's forms.

    Args:
        samples_per_pixel: samples of a pixel.
        bits: 8 or 16.
    """


@operation("GET", "/api/v1/timelines/{id}/storyboard.vtt", bytes)
def get_timeline_storyboard(
    id: str,
    *,
    every_ms: float | None = None,
    w: int | None = None,
    columns: int | None = None,
    rows: int | None = None,
    range: ByteRange | None = None,
) -> Request[bytes]:
    """Small pictures of the whole video, as WebVTT that refers to parts of sheets.

    Args:
        every_ms: from picture to picture.
        w: pixels of a picture, across.
        columns: pictures on a sheet.
        rows: pictures on a sheet.
    """


@operation("GET", "/api/v1/timelines/{id}/storyboard/{sheet}", bytes)
def get_timeline_storyboard_sheet(
    id: str,
    sheet: str,
    *,
    every_ms: float | None = None,
    w: int | None = None,
    columns: int | None = None,
    rows: int | None = None,
    range: ByteRange | None = None,
) -> Request[bytes]:
    """A sheet of the storyboard.

    Args: as of `get_timeline_storyboard`.
    """


@operation("GET", "/api/v1/timelines/{id}/thumbnail.{form}", bytes)
def get_timeline_thumbnail(
    id: str,
    form: str,
    *,
    time_ms: float | None = None,
    w: int | None = None,
    h: int | None = None,
    exact: bool | None = None,
    range: ByteRange | None = None,
) -> Request[bytes]:
    """The key frame nearest to `time_ms`; with `exact`, the picture at that time.

    Args:
        exact: true: at exactly the requested time; false: at a sync sample near it, which costs
            less.
    """
