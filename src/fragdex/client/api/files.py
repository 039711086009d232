"""Operations on files, resumable uploads. Written by tools/make_client.py."""
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

import msgspec

from fragdex.byterange import ByteRange
from fragdex.client.api.records import Event, FileRecord, Problem, TrackList, TrackRecord
from fragdex.client.exchange import Request, operation

# fmt: off
__all__ = [
    "AnyFile", "AnyFileList", "Deleted", "FileTrack", "UploadPart", "UploadParts",
    "append_upload", "cancel_upload", "complete_file_parts", "create_file", "create_file_parts",
    "create_file_track", "create_upload", "delete_file", "delete_file_track",
    "download_file_track", "find_file", "get_file", "get_file_index", "get_file_progress",
    "get_file_track_upload", "get_file_upload", "head_file", "head_file_track", "head_upload",
    "list_file_tracks", "list_files", "post_file_deletion", "update_file", "upload_file",
    "upload_file_index", "upload_file_track",
]
# fmt: on


class Deleted(msgspec.Struct, frozen=True, kw_only=True):
    """What was deleted."""

    id: str
    success: bool | None = None


class FileTrack(msgspec.Struct, frozen=True, kw_only=True):
    """A track of a video."""

    byte_size: int | None
    """Null for a track that is only in the index."""
    codec_name: str | None
    duration_ms: int | None
    track_id: int
    """-1: the scrub track."""
    type: str


class UploadPart(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of a file that are missing, and where they are put."""

    byte_size: int
    start: int
    """The first byte."""
    url: str
    """PUT the bytes here, without any key."""


class UploadParts(msgspec.Struct, frozen=True, kw_only=True):
    """The first parts of a file that are missing, at most 100."""

    expires_at: datetime
    """Of the URLs."""
    missing: int
    """All parts that are missing."""
    parts: tuple[UploadPart, ...]


class AnyFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of any type."""

    byte_size: int | None
    """Null for a video known by its tracks or index alone, and while a sender has not said how many
    bytes there will be.
    """
    completed_at: datetime | None
    """Since when it is ready."""
    created_at: datetime
    expires_at: datetime | None
    filename: str
    height: int | None
    id: str
    isobmff_file_id: str | None
    """Of a video that was processed or sent in tracks: what it is in `/isobmff_files`, its own id,
    or that of an earlier file of the same bytes.
    """
    md5: str | None
    """Dashed; null until it is announced or known."""
    mime_type: str | None
    next_byte: int
    """Bytes before this one are here to stay."""
    problem: Problem | None
    """Why it failed."""
    status: Literal["created", "uploading", "processing", "ready", "failed"]
    tracks: tuple[FileTrack, ...]
    """Of a video that was processed, or sent in tracks."""
    type: Literal["video", "image", "caption"]
    width: int | None
    """Pixels, once they are known."""


class AnyFileList(msgspec.Struct, frozen=True, kw_only=True):
    """Files of all types, newest first."""

    files: tuple[AnyFile, ...]
    next_cursor: str | None
    """Returns the next page; null on the last."""


@operation("GET", "/api/v1/files", AnyFileList)
def list_files(
    *,
    limit: int | None = None,
    cursor: str | None = None,
    type: Literal["video", "image", "caption"] | None = None,
    status: Literal["created", "uploading", "processing", "ready", "failed"] | None = None,
) -> Request[AnyFileList]:
    """Files of all types, newest first.

    Args:
        limit: records on a page.
        cursor: `next_cursor` of the page before.
        type: only those.
        status: only those.
    """


@operation("POST", "/api/v1/files", AnyFile)
def create_file(
    *,
    byte_size: int | None,
    filename: str,
    type: Literal["video", "image", "caption"],
    idempotency_key: str | None = None,
    expires_at: datetime | None = None,
    md5: str | None = None,
    mime_type: str | None = None,
) -> Request[AnyFile]:
    """Announce a file; its bytes follow by upload. A video is then processed.

    Args:
        idempotency_key: The same key with the same body gives the first answer again.
        byte_size: bytes in all; null: nobody knows yet, the total of a Content-Range says it.
        expires_at: when the file and all that was made of it are deleted.
        mime_type: of images and captions, else from the name.
    """


@operation("GET", "/api/v1/files/md5/{md5}", AnyFile)
def find_file(md5: str) -> Request[AnyFile]:
    """The file whose bytes have this md5."""


@operation("GET", "/api/v1/files/{id}", AnyFile)
def get_file(id: str, *, range: ByteRange | None = None) -> Request[AnyFile]:
    """The record; of an image its bytes, unless Accept or Content-Type names JSON."""


@operation("HEAD", "/api/v1/files/{id}")
def head_file(id: str) -> Request[None]:
    """The record; of an image its bytes, unless Accept or Content-Type names JSON."""


@operation("PATCH", "/api/v1/files/{id}", AnyFile)
def update_file(id: str, *, filename: str) -> Request[AnyFile]:
    """Rename a file; its bytes and everything derived from it stay."""


@operation("DELETE", "/api/v1/files/{id}")
def delete_file(id: str) -> Request[None]:
    """Delete a file, its bytes and everything derived from it."""


@operation("POST", "/api/v1/files/{id}/delete", Deleted)
def post_file_deletion(id: str) -> Request[Deleted]:
    """Delete a file like DELETE, for clients that can send only GET and POST."""


@operation("GET", "/api/v1/files/{id}/index", Mapping[str, Any], binary=True)
def get_file_index(
    id: str,
    *,
    format: Literal["json", "fidx", "arrow", "sidx", "hls"] | None = None,
    track: int | None = None,
) -> Request[Mapping[str, Any] | bytes]:
    """The index of a video, in the format of `format` or Accept; `track` for sidx and hls.

    An `hls` without `track` is a multivariant playlist where several tracks are files of their
    own.

    Args:
        format: instead of Accept.
        track: default: the first video track, or else the first audio track.
    """


@operation("POST", "/api/v1/files/{id}/index/upload", FileRecord)
def upload_file_index(id: str, content: bytes) -> Request[FileRecord]:
    """Send the index of a video; it replaces the old one only if it is valid.

    Args:
        content: the bytes.
    """


@operation("POST", "/api/v1/files/{id}/parts", UploadParts)
def create_file_parts(id: str) -> Request[UploadParts]:
    """URLs of the object store for the missing parts of a file.

    409 with `offered: false` where the service takes the bytes itself.
    """


@operation("POST", "/api/v1/files/{id}/parts/complete", AnyFile)
def complete_file_parts(id: str) -> Request[AnyFile]:
    """Assemble a file from its parts when all are stored; they are read and checked."""


@operation("GET", "/api/v1/files/{id}/progress", Event)
def get_file_progress(id: str, *, last_event_id: str | None = None) -> Request[Event]:
    """The progress of a file as events; for a video, the progress of its processing.

    Args:
        last_event_id: The `id` of the last event received; the stream continues after it.
    """


@operation("GET", "/api/v1/files/{id}/tracks", TrackList)
def list_file_tracks(id: str) -> Request[TrackList]:
    """The tracks of a video whose bytes are announced, by their ids."""


@operation("POST", "/api/v1/files/{id}/tracks", TrackRecord)
def create_file_track(
    id: str,
    *,
    byte_size: int,
    track_id: int | str,
    type: Literal["video", "audio", "text", "metadata", "other"],
    idempotency_key: str | None = None,
    codec_name: str | None = None,
    duration_ms: float | None = None,
    file_id: str | None = None,
    probe_info: Mapping[str, Any] | None = None,
) -> Request[TrackRecord]:
    """Announce a track of a video that is a separate file; its bytes follow by upload.

    Args:
        idempotency_key: The same key with the same body gives the first answer again.
        byte_size: bytes in all.
        file_id: tolerated, without effect: the path says it.
        probe_info: what the sender knows of the track; given back as it is.
        track_id: track_ID, as number or text; -1: the scrub track.
    """


@operation("GET", "/api/v1/files/{id}/tracks/{track_id}", bytes)
def download_file_track(
    id: str, track_id: str, *, range: ByteRange | None = None
) -> Request[bytes]:
    """The bytes of a track, complete or by ranges."""


@operation("HEAD", "/api/v1/files/{id}/tracks/{track_id}")
def head_file_track(id: str, track_id: str) -> Request[None]:
    """The bytes of a track, complete or by ranges."""


@operation("DELETE", "/api/v1/files/{id}/tracks/{track_id}")
def delete_file_track(id: str, track_id: str) -> Request[None]:
    """Delete a track and its bytes."""


@operation("GET", "/api/v1/files/{id}/tracks/{track_id}/upload", TrackRecord)
def get_file_track_upload(id: str, track_id: str) -> Request[TrackRecord]:
    """The track, if all its bytes have arrived; otherwise 404 with `next_byte`."""


@operation("POST", "/api/v1/files/{id}/tracks/{track_id}/upload", TrackRecord)
def upload_file_track(
    id: str, track_id: str, content: bytes, *, content_range: str | None = None
) -> Request[TrackRecord]:
    """Send bytes of a track, whole or in chunks; 202 while some are missing.

    Args:
        content_range: `bytes START-END/TOTAL`, END inclusive; without it the body is whole.
        content: the bytes.
    """


@operation("GET", "/api/v1/files/{id}/upload", AnyFile)
def get_file_upload(id: str) -> Request[AnyFile]:
    """The record, once its bytes are complete; before that 404, with `next_byte`."""


@operation("POST", "/api/v1/files/{id}/upload", AnyFile)
def upload_file(id: str, content: bytes, *, content_range: str | None = None) -> Request[AnyFile]:
    """Send bytes of a file, whole or in chunks; 202 while some are missing.

    Args: as of `upload_file_track`.
    """


@operation("POST", "/api/v1/uploads", AnyFile)
def create_upload(
    content: bytes, *, upload_complete: str, upload_length: str | None = None
) -> Request[AnyFile]:
    """Begin a resumable upload (draft-ietf-httpbis-resumable-upload), with all or some bytes.

    The name of the file is that of `Content-Disposition`, its type `Content-Type`; a `Repr-
    Digest` of md5 finds a file that is here already.

    Args:
        upload_complete: `?1`: the upload ends with this body; `?0`: more follow.
        upload_length: bytes of the whole, where they are known; `?1` and Content-Length say it
            too.
        content: the bytes.
    """


@operation("HEAD", "/api/v1/uploads/{id}")
def head_upload(id: str) -> Request[None]:
    """The state of a resumable upload, in the header fields."""


@operation(
    "PATCH", "/api/v1/uploads/{id}", AnyFile | None, content_type="application/partial-upload"
)
def append_upload(
    id: str,
    content: bytes,
    *,
    upload_offset: str,
    upload_complete: str,
    upload_length: str | None = None,
) -> Request[AnyFile | None]:
    """Append the next bytes to a resumable upload.

    Args:
        upload_offset: of the first byte of this body.
        upload_complete: `?1`: the upload ends with this body; `?0`: more follow.
        upload_length: bytes of the whole, where they are known; `?1` and Content-Length say it
            too.
        content: the bytes.
    """


@operation("DELETE", "/api/v1/uploads/{id}")
def cancel_upload(id: str) -> Request[None]:
    """Cancel a resumable upload and delete its bytes, or the file that it has become."""
