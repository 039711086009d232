"""Operations on unprocessed files, ISOBMFF files, repairs. Written by tools/make_client.py."""
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

import msgspec

from fragdex.byterange import ByteRange
from fragdex.client.api.records import Event, FileRecord, Place, Problem, TrackList, TrackRecord
from fragdex.client.exchange import Request, operation

# fmt: off
__all__ = [
    "FileList", "FileWithTracks", "ProcessList", "ProcessRecord", "RepairList", "RepairRecord",
    "RepairReport", "RepairSpan", "RepairedTrack", "SeekAnswer", "UnprocessedFile",
    "UnprocessedFileList", "create_isobmff_file", "create_isobmff_track",
    "create_unprocessed_file", "delete_isobmff_file", "delete_isobmff_track", "delete_process",
    "delete_repair", "delete_unprocessed_file", "download_isobmff_track", "find_isobmff_file",
    "find_unprocessed_file", "get_isobmff_file", "get_isobmff_file_index",
    "get_isobmff_track_upload", "get_process", "get_process_progress", "get_repair",
    "get_repair_progress", "get_unprocessed_file", "get_unprocessed_file_upload",
    "head_isobmff_track", "list_file_repairs", "list_isobmff_files", "list_isobmff_tracks",
    "list_processes", "list_repairs", "list_unprocessed_files", "process_unprocessed_file",
    "process_unprocessed_file_to_isobmff", "repair_file", "seek_isobmff_file",
    "upload_isobmff_file_index", "upload_isobmff_track", "upload_unprocessed_file",
]
# fmt: on


class RepairSpan(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of the broken file, and what became of them."""

    start: int
    state: Literal["proved", "guessed", "lost", "structure"]
    stop: int
    """Exclusive."""
    what: str


class RepairedTrack(msgspec.Struct, frozen=True, kw_only=True):
    """A track of the repaired file."""

    codec: str | None
    duration_ms: int
    proved: int
    """How many of them by their own syntax; the others are guessed."""
    samples: int
    """How many were found."""
    track_id: int
    type: str | None


class FileList(msgspec.Struct, frozen=True, kw_only=True):
    """ISOBMFF files, newest first."""

    isobmff_files: tuple[FileRecord, ...]
    next_cursor: str | None
    """Returns the next page; null on the last."""


class FileWithTracks(msgspec.Struct, frozen=True, kw_only=True):
    """A registered file and its tracks."""

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
    tracks: tuple[TrackRecord, ...]


class SeekAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Where decoding starts for a moment: the last sync sample at or before it."""

    cts: int
    """Presentation time of the sync sample, edit list applied, in ticks."""
    dts: int | None
    """Its decode time on the same timeline; null: unknown."""
    duration: int | None
    """Ticks of the fragment; null: unknown."""
    fragment: int
    """Row of the track's fragment table, from 0."""
    init: Place
    """The initialization segment, to be fetched once."""
    offset: int
    ranges: tuple[Place, ...] | None = None
    """With end_ms: merged ranges that hold all from here until before it."""
    size: int
    time_ms: float
    """Presentation time of the sync sample."""
    timescale: int
    """Ticks a second."""
    track: int


class ProcessRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The making of an ISOBMFF file from an unprocessed one."""

    completed_at: datetime | None
    created_at: datetime
    failed_at: datetime | None
    id: str
    isobmff_file_id: str | None
    """Null until it is complete."""
    problem: Problem | None
    progress: float
    status: Literal["processing", "complete", "failed"]
    unprocessed_file_id: str


class RepairReport(msgspec.Struct, frozen=True, kw_only=True):
    """What is proved, guessed and lost."""

    byte_size: int
    """Of the repaired file."""
    findings: tuple[str, ...]
    """Guesses and losses, as sentences."""
    lost_bytes: int
    """Of the broken file, in no sample and no box."""
    spans: tuple[RepairSpan, ...]
    """All bytes of the broken file; at most 500."""
    tracks: tuple[RepairedTrack, ...]


class UnprocessedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A media file as it is sent."""

    byte_size: int | None
    """Null while a sender has not said how many bytes there will be."""
    complete: bool
    completed_at: datetime | None
    created_at: datetime
    expires_at: datetime | None
    filename: str
    fragment_index_complete: bool
    """It is an ISO base media file, and its index was made while it came."""
    id: str
    md5: str | None
    """Dashed; null until it is known."""
    next_byte: int
    """Bytes before this one are here to stay."""
    problem: Problem | None
    status: Literal["created", "uploading", "complete", "failed"]
    """Failed: what came is not media file."""


class ProcessList(msgspec.Struct, frozen=True, kw_only=True):
    """Processes, newest first."""

    next_cursor: str | None
    """Returns the next page; null on the last."""
    processes: tuple[ProcessRecord, ...]


class UnprocessedFileList(msgspec.Struct, frozen=True, kw_only=True):
    """Unprocessed files, newest first."""

    next_cursor: str | None
    """Returns the next page; null on the last."""
    unprocessed_files: tuple[UnprocessedFile, ...]


class RepairRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The repair of a file."""

    completed_at: datetime | None
    created_at: datetime
    failed_at: datetime | None
    file_id: str
    """The broken file, which stays as it is."""
    id: str
    like_file_id: str | None
    """The good file; null: none is used."""
    problem: Problem | None
    progress: float
    repaired_file_id: str | None
    """The repaired file, which is processed like an upload; null until it is there."""
    report: RepairReport | None
    """Null until it is complete."""
    status: Literal["repairing", "complete", "failed"]


class RepairList(msgspec.Struct, frozen=True, kw_only=True):
    """Repairs, newest first."""

    next_cursor: str | None
    """Returns the next page; null on the last."""
    repairs: tuple[RepairRecord, ...]


@operation("GET", "/api/v1/process_isobmff", ProcessList)
def list_processes(
    *,
    limit: int | None = None,
    cursor: str | None = None,
    status: Literal["processing", "complete", "failed"] | None = None,
) -> Request[ProcessList]:
    """Processes, newest first.

    Args:
        limit: records on a page.
        cursor: `next_cursor` of the page before.
        status: only those.
    """


@operation("GET", "/api/v1/process_isobmff/{id}", ProcessRecord)
def get_process(id: str) -> Request[ProcessRecord]:
    """The record of a process; `problem` says why it failed."""


@operation("DELETE", "/api/v1/process_isobmff/{id}")
def delete_process(id: str) -> Request[None]:
    """Delete a process, and stop it if it is running; its results stay."""


@operation("GET", "/api/v1/process_isobmff/{id}/progress", Event)
def get_process_progress(id: str, *, last_event_id: str | None = None) -> Request[Event]:
    """How far a process is, as events.

    Args:
        last_event_id: The `id` of the last event received; the stream continues after it.
    """


@operation("GET", "/api/v1/unprocessed_files", UnprocessedFileList)
def list_unprocessed_files(
    *,
    limit: int | None = None,
    cursor: str | None = None,
    status: Literal["created", "uploading", "complete", "failed"] | None = None,
) -> Request[UnprocessedFileList]:
    """Unprocessed files, newest first.

    Args: as of `list_processes`.
    """


@operation("POST", "/api/v1/unprocessed_files", UnprocessedFile)
def create_unprocessed_file(
    *,
    byte_size: int,
    filename: str,
    md5: str,
    idempotency_key: str | None = None,
    processes: tuple[str, ...] | None = None,
) -> Request[UnprocessedFile]:
    """Announce a media file of any kind; its bytes follow by upload.

    Args:
        idempotency_key: The same key with the same body gives the first answer again.
        byte_size: bytes in all.
        md5: 32 hex digits, or dashed 8-4-4-4-12; either case.
        processes: tolerated, without effect.
    """


@operation("GET", "/api/v1/unprocessed_files/md5/{md5}", UnprocessedFile)
def find_unprocessed_file(md5: str) -> Request[UnprocessedFile]:
    """The unprocessed file whose bytes have this md5."""


@operation("GET", "/api/v1/unprocessed_files/{id}", UnprocessedFile)
def get_unprocessed_file(id: str) -> Request[UnprocessedFile]:
    """The record."""


@operation("DELETE", "/api/v1/unprocessed_files/{id}")
def delete_unprocessed_file(id: str) -> Request[None]:
    """Delete a file and its bytes, and stop its processing; its ISOBMFF file stays."""


@operation("POST", "/api/v1/unprocessed_files/{id}/isobmff", ProcessRecord)
def process_unprocessed_file_to_isobmff(
    id: str, *, idempotency_key: str | None = None
) -> Request[ProcessRecord]:
    """Turn it into an ISOBMFF file.

    A fragmented file with one track is complete at once. The same process is answered while it
    runs and once it has ended well; after a failure, a new one.

    Args:
        idempotency_key: The same key with the same body gives the first answer again.
    """


@operation("POST", "/api/v1/unprocessed_files/{id}/process", ProcessRecord)
def process_unprocessed_file(
    id: str, *, idempotency_key: str | None = None
) -> Request[ProcessRecord]:
    """Turn it into an ISOBMFF file.

    A fragmented file with one track is complete at once. The same process is answered while it
    runs and once it has ended well; after a failure, a new one.

    Args:
        idempotency_key: The same key with the same body gives the first answer again.
    """


@operation("GET", "/api/v1/unprocessed_files/{id}/upload", UnprocessedFile)
def get_unprocessed_file_upload(id: str) -> Request[UnprocessedFile]:
    """The record, once its bytes are complete; before that 404, with `next_byte`."""


@operation("POST", "/api/v1/unprocessed_files/{id}/upload", UnprocessedFile)
def upload_unprocessed_file(
    id: str, content: bytes, *, content_range: str | None = None
) -> Request[UnprocessedFile]:
    """Send bytes of a file, whole or in chunks; 202 while some are missing.

    Args:
        content_range: `bytes START-END/TOTAL`, END inclusive; without it the body is whole.
        content: the bytes.
    """


@operation("GET", "/api/v1/isobmff_files", FileList)
def list_isobmff_files(
    *,
    limit: int | None = None,
    cursor: str | None = None,
    status: Literal["created", "ready"] | None = None,
) -> Request[FileList]:
    """ISOBMFF files, newest first.

    Args: as of `list_processes`.
    """


@operation("POST", "/api/v1/isobmff_files", FileRecord)
def create_isobmff_file(
    *, filename: str, md5: str, idempotency_key: str | None = None
) -> Request[FileRecord]:
    """Register a file by its md5; its index and its tracks follow.

    Args:
        idempotency_key: The same key with the same body gives the first answer again.
        md5: 32 hex digits, or dashed 8-4-4-4-12; either case.
    """


@operation("GET", "/api/v1/isobmff_files/md5/{md5}", FileRecord)
def find_isobmff_file(md5: str) -> Request[FileRecord]:
    """The file with this md5."""


@operation("GET", "/api/v1/isobmff_files/{id}", FileWithTracks)
def get_isobmff_file(id: str) -> Request[FileWithTracks]:
    """A file and its tracks."""


@operation("DELETE", "/api/v1/isobmff_files/{id}")
def delete_isobmff_file(id: str) -> Request[None]:
    """Delete a file, its index, its tracks and their bytes."""


@operation("GET", "/api/v1/isobmff_files/{id}/index", Mapping[str, Any], binary=True)
def get_isobmff_file_index(
    id: str,
    *,
    format: Literal["json", "fidx", "arrow", "sidx", "hls"] | None = None,
    track: int | None = None,
) -> Request[Mapping[str, Any] | bytes]:
    """The index of a file, in the format of `format` or Accept; `track` for sidx and hls.

    An `hls` without `track` is a multivariant playlist where several tracks are files of their
    own.

    Args:
        format: instead of Accept.
        track: default: the first video track, or else the first audio track.
    """


@operation("POST", "/api/v1/isobmff_files/{id}/index/upload", FileRecord)
def upload_isobmff_file_index(id: str, content: bytes) -> Request[FileRecord]:
    """Send the index of a file; it replaces the old one only if it is valid.

    Args:
        content: the bytes.
    """


@operation("GET", "/api/v1/isobmff_files/{id}/seek", SeekAnswer)
def seek_isobmff_file(
    id: str,
    *,
    time_ms: float,
    track: int | None = None,
    end_ms: float | None = None,
    verified: bool | None = None,
) -> Request[SeekAnswer]:
    """The bytes at which decoding starts for a presentation time.

    Args:
        track: default: the first video track, or else the first audio track.
        end_ms: exclusive; adds `ranges`.
        verified: look at the pictures, and go back to one that a decoder can start at, whatever
            the flags of the file say.
    """


@operation("GET", "/api/v1/isobmff_tracks", TrackList)
def list_isobmff_tracks(*, file_id: str) -> Request[TrackList]:
    """The tracks of a file whose bytes are announced, by their ids.

    Args:
        file_id: of which file.
    """


@operation("POST", "/api/v1/isobmff_tracks", TrackRecord)
def create_isobmff_track(
    *,
    byte_size: int,
    file_id: str,
    track_id: int | str,
    type: Literal["video", "audio", "text", "metadata", "other"],
    idempotency_key: str | None = None,
    codec_name: str | None = None,
    duration_ms: float | None = None,
    probe_info: Mapping[str, Any] | None = None,
) -> Request[TrackRecord]:
    """Announce the bytes of a track; they follow by upload.

    Args:
        idempotency_key: The same key with the same body gives the first answer again.
        byte_size: bytes in all.
        probe_info: what the sender knows of the track; given back as it is.
        track_id: track_ID, as number or text; -1: the scrub track.
    """


@operation("GET", "/api/v1/isobmff_tracks/{file_id}/{track_id}", bytes)
def download_isobmff_track(
    file_id: str, track_id: str, *, range: ByteRange | None = None
) -> Request[bytes]:
    """The bytes of a track, complete or by ranges."""


@operation("HEAD", "/api/v1/isobmff_tracks/{file_id}/{track_id}")
def head_isobmff_track(file_id: str, track_id: str) -> Request[None]:
    """The bytes of a track, complete or by ranges."""


@operation("DELETE", "/api/v1/isobmff_tracks/{file_id}/{track_id}")
def delete_isobmff_track(file_id: str, track_id: str) -> Request[None]:
    """Delete a track and its bytes."""


@operation("GET", "/api/v1/isobmff_tracks/{file_id}/{track_id}/upload", TrackRecord)
def get_isobmff_track_upload(file_id: str, track_id: str) -> Request[TrackRecord]:
    """The track, if all its bytes have arrived; otherwise 404 with `next_byte`."""


@operation("POST", "/api/v1/isobmff_tracks/{file_id}/{track_id}/upload", TrackRecord)
def upload_isobmff_track(
    file_id: str, track_id: str, content: bytes, *, content_range: str | None = None
) -> Request[TrackRecord]:
    """Send bytes of a track, whole or in chunks; 202 while some are missing.

    Args: as of `upload_unprocessed_file`.
    """


@operation("POST", "/api/v1/files/{id}/repair", RepairRecord)
def repair_file(
    id: str,
    *,
    idempotency_key: str | None = None,
    like_file_id: str | None = None,
    rate: str | None = None,
) -> Request[RepairRecord]:
    """Find the samples of a video whose index is lost or wrong, and make a file of them.

    The repaired file is a file of its own, processed like an upload. The same repair is answered
    while it runs and while its file is there; after a failure, a new one.

    Args:
        idempotency_key: The same key with the same body gives the first answer again.
        like_file_id: a good file from the same camera with the same settings; default: the
            tenant's file that the broken one is most like, if there is one.
        rate: pictures a second, where neither a good file nor the stream says it.
    """


@operation("GET", "/api/v1/files/{id}/repairs", RepairList)
def list_file_repairs(
    id: str,
    *,
    limit: int | None = None,
    cursor: str | None = None,
    status: Literal["repairing", "complete", "failed"] | None = None,
) -> Request[RepairList]:
    """Repairs of a file, newest first.

    Args: as of `list_processes`.
    """


@operation("GET", "/api/v1/repairs", RepairList)
def list_repairs(
    *,
    limit: int | None = None,
    cursor: str | None = None,
    status: Literal["repairing", "complete", "failed"] | None = None,
) -> Request[RepairList]:
    """Repairs, newest first.

    Args: as of `list_processes`.
    """


@operation("GET", "/api/v1/repairs/{id}", RepairRecord)
def get_repair(id: str) -> Request[RepairRecord]:
    """The record of a repair: `report` says what is proved, guessed and lost."""


@operation("DELETE", "/api/v1/repairs/{id}")
def delete_repair(id: str) -> Request[None]:
    """Delete a repair, and stop it if it is running; the repaired file stays."""


@operation("GET", "/api/v1/repairs/{id}/progress", Event)
def get_repair_progress(id: str, *, last_event_id: str | None = None) -> Request[Event]:
    """How far a repair is, as events.

    Args:
        last_event_id: The `id` of the last event received; the stream continues after it.
    """
