"""Operations on streaming. Written by tools/make_client.py."""
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from typing import Literal

import msgspec

from fragdex.byterange import ByteRange
from fragdex.client.api.records import Loudness, Waveform
from fragdex.client.exchange import Request, operation

# fmt: off
__all__ = [
    "Endpoints", "RemoteAudio", "RemoteManifest", "RemoteVideo", "get_file_clip",
    "get_file_dash_clock", "get_file_dash_manifest", "get_file_dash_segment",
    "get_file_faststart", "get_file_fragmented", "get_file_hls_playlist", "get_file_hls_segment",
    "get_file_loudness", "get_file_peaks", "get_file_storyboard", "get_file_storyboard_sheet",
    "get_file_thumbnail", "get_isobmff_file_clip", "get_isobmff_file_dash_manifest",
    "get_isobmff_file_dash_segment", "get_isobmff_file_faststart", "get_isobmff_file_fragmented",
    "get_isobmff_file_hls_playlist", "get_isobmff_file_hls_segment", "get_isobmff_file_loudness",
    "get_isobmff_file_peaks", "get_isobmff_file_storyboard", "get_isobmff_file_storyboard_sheet",
    "get_isobmff_file_thumbnail", "get_remote_manifest", "get_remote_segment",
]
# fmt: on


class Endpoints(msgspec.Struct, frozen=True, kw_only=True):
    """URLs, with `{rendition}`, `{segmentId}` (from 1), `{src}` and `{trackId}` to be filled in.

    `{src}` is in the fragment, which is not sent: the query names the media already, encoded.
    """

    init_segment: str = msgspec.field(name="initSegment")
    media_segment: str = msgspec.field(name="mediaSegment")


class RemoteAudio(msgspec.Struct, frozen=True, kw_only=True):
    """An audio track."""

    channels: int | None
    id: str
    """`scrub`: the key frames of the first video alone."""
    language: str | None
    mime_type: str = msgspec.field(name="mimeType")
    """With codecs."""
    sample_rate: int | None = msgspec.field(name="sampleRate")
    segment_duration_ms: float = msgspec.field(name="segmentDurationMs")
    """Of the longest segment."""
    segment_durations_ms: tuple[float, ...] = msgspec.field(name="segmentDurationsMs")
    start_time_offset_ms: float | None = msgspec.field(name="startTimeOffsetMs", default=None)
    """When its first segment begins, where that is later than 10 ms."""


class RemoteVideo(msgspec.Struct, frozen=True, kw_only=True):
    """A video track."""

    height: int | None
    id: str
    """`scrub`: the key frames of the first video alone."""
    mime_type: str = msgspec.field(name="mimeType")
    """With codecs."""
    segment_duration_ms: float = msgspec.field(name="segmentDurationMs")
    """Of the longest segment."""
    segment_durations_ms: tuple[float, ...] = msgspec.field(name="segmentDurationsMs")
    start_time_offset_ms: float | None = msgspec.field(name="startTimeOffsetMs", default=None)
    """When its first segment begins, where that is later than 10 ms."""
    width: int | None


class RemoteManifest(msgspec.Struct, frozen=True, kw_only=True):
    """Media beyond the service, as they are packaged."""

    audio_renditions: tuple[RemoteAudio, ...] = msgspec.field(name="audioRenditions")
    duration_ms: float = msgspec.field(name="durationMs")
    endpoints: Endpoints
    source_url: str = msgspec.field(name="sourceUrl")
    video_renditions: tuple[RemoteVideo, ...] = msgspec.field(name="videoRenditions")


@operation("GET", "/api/v1/files/{id}/clip.mp4", bytes)
def get_file_clip(
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


@operation("GET", "/api/v1/files/{id}/dash/manifest.mpd", bytes)
def get_file_dash_manifest(id: str, *, range: ByteRange | None = None) -> Request[bytes]:
    """The DASH manifest."""


@operation("GET", "/api/v1/files/{id}/dash/time.txt", bytes)
def get_file_dash_clock(id: str, *, range: ByteRange | None = None) -> Request[bytes]:
    """The time of day, by which players of a video that arrives count."""


@operation("GET", "/api/v1/files/{id}/dash/{rendition}/{part}", bytes)
def get_file_dash_segment(
    id: str, rendition: str, part: str, *, range: ByteRange | None = None
) -> Request[bytes]:
    """An initialization or media segment of DASH."""


@operation("GET", "/api/v1/files/{id}/faststart.mp4", bytes)
def get_file_faststart(id: str, *, range: ByteRange | None = None) -> Request[bytes]:
    """The file as a progressive MP4 with its moov first, also if it was uploaded in fragments."""


@operation("GET", "/api/v1/files/{id}/fragmented.mp4", bytes)
def get_file_fragmented(id: str, *, range: ByteRange | None = None) -> Request[bytes]:
    """All tracks in one fragmented MP4, with a sidx."""


@operation(
    "GET",
    "/api/v1/files/{id}/hls/{playlist}",
    bytes,
    written={"_hls_msn": "_HLS_msn", "_hls_part": "_HLS_part", "_hls_skip": "_HLS_skip"},
)
def get_file_hls_playlist(
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


@operation("GET", "/api/v1/files/{id}/hls/{rendition}/{part}", bytes)
def get_file_hls_segment(
    id: str, rendition: str, part: str, *, range: ByteRange | None = None
) -> Request[bytes]:
    """An initialization or media segment of HLS."""


@operation("GET", "/api/v1/files/{id}/loudness", Loudness)
def get_file_loudness(id: str) -> Request[Loudness]:
    """The loudness of the first audio track (EBU R 128)."""


@operation("GET", "/api/v1/files/{id}/peaks.{form}", Waveform, binary=True)
def get_file_peaks(
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


@operation("GET", "/api/v1/files/{id}/storyboard.vtt", bytes)
def get_file_storyboard(
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


@operation("GET", "/api/v1/files/{id}/storyboard/{sheet}", bytes)
def get_file_storyboard_sheet(
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

    Args: as of `get_file_storyboard`.
    """


@operation("GET", "/api/v1/files/{id}/thumbnail.{form}", bytes)
def get_file_thumbnail(
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


@operation("GET", "/api/v1/isobmff_files/{id}/clip.mp4", bytes)
def get_isobmff_file_clip(
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

    Args: as of `get_file_clip`.
    """


@operation("GET", "/api/v1/isobmff_files/{id}/dash/manifest.mpd", bytes)
def get_isobmff_file_dash_manifest(id: str, *, range: ByteRange | None = None) -> Request[bytes]:
    """The DASH manifest."""


@operation("GET", "/api/v1/isobmff_files/{id}/dash/{rendition}/{part}", bytes)
def get_isobmff_file_dash_segment(
    id: str, rendition: str, part: str, *, range: ByteRange | None = None
) -> Request[bytes]:
    """An initialization or media segment of DASH."""


@operation("GET", "/api/v1/isobmff_files/{id}/faststart.mp4", bytes)
def get_isobmff_file_faststart(id: str, *, range: ByteRange | None = None) -> Request[bytes]:
    """The file as a progressive MP4 with its moov first, also if it was uploaded in fragments."""


@operation("GET", "/api/v1/isobmff_files/{id}/fragmented.mp4", bytes)
def get_isobmff_file_fragmented(id: str, *, range: ByteRange | None = None) -> Request[bytes]:
    """All tracks in one fragmented MP4, with a sidx."""


@operation(
    "GET",
    "/api/v1/isobmff_files/{id}/hls/{playlist}",
    bytes,
    written={"_hls_msn": "_HLS_msn", "_hls_part": "_HLS_part", "_hls_skip": "_HLS_skip"},
)
def get_isobmff_file_hls_playlist(
    id: str,
    playlist: str,
    *,
    _hls_msn: int | None = None,
    _hls_part: int | None = None,
    _hls_skip: Literal["YES", "v2"] | None = None,
    range: ByteRange | None = None,
) -> Request[bytes]:
    """HLS: `master.m3u8` and the playlists that it refers to.

    Args: as of `get_file_hls_playlist`.
    """


@operation("GET", "/api/v1/isobmff_files/{id}/hls/{rendition}/{part}", bytes)
def get_isobmff_file_hls_segment(
    id: str, rendition: str, part: str, *, range: ByteRange | None = None
) -> Request[bytes]:
    """An initialization or media segment of HLS."""


@operation("GET", "/api/v1/isobmff_files/{id}/loudness", Loudness)
def get_isobmff_file_loudness(id: str) -> Request[Loudness]:
    """The loudness of the first audio track (EBU R 128)."""


@operation("GET", "/api/v1/isobmff_files/{id}/peaks.{form}", Waveform, binary=True)
def get_isobmff_file_peaks(
    id: str,
    form: str,
    *,
    samples_per_pixel: int | None = None,
    bits: int | None = None,
    range: ByteRange | None = None,
) -> Request[Waveform | bytes]:
    """The waveform of the sound, in audiowaveform's forms.

    Args: as of `get_file_peaks`.
    """


@operation("GET", "/api/v1/isobmff_files/{id}/storyboard.vtt", bytes)
def get_isobmff_file_storyboard(
    id: str,
    *,
    every_ms: float | None = None,
    w: int | None = None,
    columns: int | None = None,
    rows: int | None = None,
    range: ByteRange | None = None,
) -> Request[bytes]:
    """Small pictures of the whole video, as WebVTT that refers to parts of sheets.

    Args: as of `get_file_storyboard`.
    """


@operation("GET", "/api/v1/isobmff_files/{id}/storyboard/{sheet}", bytes)
def get_isobmff_file_storyboard_sheet(
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

    Args: as of `get_file_storyboard`.
    """


@operation("GET", "/api/v1/isobmff_files/{id}/thumbnail.{form}", bytes)
def get_isobmff_file_thumbnail(
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


@operation("GET", "/api/v1/transcode/manifest.json", RemoteManifest)
def get_remote_manifest(*, url: str) -> Request[RemoteManifest]:
    """Media at a URL as renditions with segments, packaged without encoding.

    Args:
        url: of an MP4: https, on a host that the operator allows (`render_hosts`).
    """


@operation("GET", "/api/v1/transcode/{rendition}/{part}", bytes, written={"track_id": "trackId"})
def get_remote_segment(
    rendition: str,
    part: str,
    *,
    url: str,
    track_id: str | None = None,
    range: ByteRange | None = None,
) -> Request[bytes]:
    """A segment of media at a URL.

    Args:
        url: of an MP4: https, on a host that the operator allows (`render_hosts`).
        track_id: tolerated, without effect: `rendition` says which track.
    """
