"""Records that several families use. Written by tools/make_client.py."""
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

import msgspec

# fmt: off
__all__ = [
    "Event", "EventData", "FileRecord", "IndexSegment", "IndexTrack", "Loudness", "Place",
    "Problem", "ProblemError", "TrackList", "TrackRecord", "Waveform",
]
# fmt: on


class EventData(msgspec.Struct, frozen=True, kw_only=True):
    """`size` and `count` of counted work, `progress` of all other; the problem with `error`; nothing
    with `complete` and `heartbeat`.
    """

    action: (
        Literal["retry", "resend", "change", "prepare", "authorize", "stop", "report"] | None
    ) = None
    count: int | None = None
    """How many were finished since."""
    detail: str | None = None
    progress: float | None = None
    size: int | None = None
    """How many there are in all."""
    status: int | None = None
    title: str | None = None
    type: str | None = None


class FileRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A registered file."""

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


class IndexSegment(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that are decoded by themselves; `cts` and `dts` are those of the first sample in
    presentation and in decode order, `duration` reaches to the next `cts`.
    """

    cts: int
    dts: int
    duration: int
    offset: int
    size: int


class Loudness(msgspec.Struct, frozen=True, kw_only=True):
    """How loud a sound is."""

    integrated: float | None
    """LUFS; null of silence, and of less than 400 ms."""
    range: float | None
    """LU; null where `integrated` is."""
    true_peak: float | None
    """DBTP; null of silence."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of the track's file, or of the file itself where its tracks are not apart."""

    offset: int
    size: int


class ProblemError(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that a request breaks, and where."""

    detail: str
    header: str | None = None
    """The field of the request."""
    parameter: str | None = None
    """Of the path or the query."""
    pointer: str | None = None
    """RFC 6901, as a URI fragment."""


class TrackRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A track of a file."""

    byte_size: int | None
    """Null for a track that only the index has."""
    codec_name: str | None
    complete: bool
    completed_at: datetime | None
    created_at: datetime | None
    duration_ms: int | None
    file_id: str
    md5: str | None
    """Of the track's own bytes, dashed; null until all are here."""
    next_byte: int
    """Bytes before this one are here to stay."""
    probe_info: Mapping[str, Any] | None
    track_id: int
    type: str


class Waveform(msgspec.Struct, frozen=True, kw_only=True):
    """The least and the greatest sample of each pixel, as audiowaveform writes them."""

    bits: int
    channels: int
    data: tuple[int, ...]
    """Minimum and maximum of each pixel in turn."""
    length: int
    """Pixels."""
    sample_rate: int
    samples_per_pixel: int
    version: int


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One event of a stream."""

    data: EventData
    event: Literal["complete", "completion", "error", "heartbeat", "progress", "size"]
    id: str
    """Send it as `Last-Event-ID` to continue from here."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """RFC 9457, with members of its own for some types (`limit`, `next_byte` …)."""

    action: Literal["retry", "resend", "change", "prepare", "authorize", "stop", "report"]
    detail: str
    errors: tuple[ProblemError, ...] | None = None
    limit: float | None = None
    """That the request is over."""
    next_byte: int | None = None
    """Of an upload: where to continue."""
    status: int
    title: str
    type: str


class TrackList(msgspec.Struct, frozen=True, kw_only=True):
    """The tracks of a file, by their ids."""

    isobmff_tracks: tuple[TrackRecord, ...]


class IndexTrack(msgspec.Struct, frozen=True, kw_only=True):
    """Times are ticks of `timescale` on the presentation's time line, bytes are those of the track's
    own file; what else was sent is given back.
    """

    channel_count: int | None = None
    codec: str | None = None
    """RFC 6381."""
    duration: int | None = None
    height: int | None = None
    init_segment: Place = msgspec.field(name="initSegment")
    sample_count: int | None = None
    sample_rate: int | None = None
    sample_size: int | None = None
    segments: tuple[IndexSegment, ...]
    start_time_offset_ms: float | None = msgspec.field(name="startTimeOffsetMs", default=None)
    """The first presentation time, where it is over 10 ms."""
    timescale: int
    """Ticks a second."""
    track: int | None = None
    type: Literal["video", "audio"]
    width: int | None = None
