"""Records of streaming. Written by tools/make_client.py."""

from __future__ import annotations

import msgspec

__all__ = ["Endpoints", "RemoteAudio", "RemoteManifest", "RemoteVideo"]


class Endpoints(msgspec.Struct, frozen=True, kw_only=True):
    """URLs, with `{rendition}`, `{segmentId}` (from 1), `{src}` and `{trackId}` to be filled in.

    `{src}` is in the fragment, which nobody is sent: the query names the media already, encoded.
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
