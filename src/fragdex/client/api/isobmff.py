"""Operations on ISOBMFF files. Written by tools/make_client.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from fragdex.byterange import ByteRange
from fragdex.client.api.isobmff_records import FileList, FileWithTracks, SeekAnswer
from fragdex.client.api.shared_records import FileRecord, TrackList, TrackRecord
from fragdex.client.request import Request, segment

__all__ = [
    "create_isobmff_file",
    "create_isobmff_track",
    "delete_isobmff_file",
    "delete_isobmff_track",
    "download_isobmff_track",
    "find_isobmff_file",
    "get_isobmff_file",
    "get_isobmff_file_index",
    "get_isobmff_track_upload",
    "head_isobmff_track",
    "list_isobmff_files",
    "list_isobmff_tracks",
    "seek_isobmff_file",
    "upload_isobmff_file_index",
    "upload_isobmff_track",
]


def list_isobmff_files(
    *,
    limit: int | None = None,
    cursor: str | None = None,
    status: Literal["created", "ready"] | None = None,
) -> Request[FileList]:
    """ISOBMFF files, newest first.

    Args:
        limit: records on a page.
        cursor: `next_cursor` of the page before.
        status: only those.
    """
    return Request(
        "GET",
        "/api/v1/isobmff_files",
        query={"limit": limit, "cursor": cursor, "status": status},
        result=FileList,
    )


def create_isobmff_file(
    *, filename: str, md5: str, idempotency_key: str | None = None
) -> Request[FileRecord]:
    """Register a file by its md5; its index and its tracks follow.

    Args:
        idempotency_key: The same key with the same body gives the first answer again.
        md5: 32 hex digits, or dashed 8-4-4-4-12; either case.
    """
    return Request(
        "POST",
        "/api/v1/isobmff_files",
        body={"filename": filename, "md5": md5},
        headers={"Idempotency-Key": idempotency_key},
        result=FileRecord,
    )


def find_isobmff_file(md5: str) -> Request[FileRecord]:
    """The file of this md5."""
    return Request("GET", f"/api/v1/isobmff_files/md5/{segment(md5)}", result=FileRecord)


def get_isobmff_file(id: str) -> Request[FileWithTracks]:
    """A file and its tracks."""
    return Request("GET", f"/api/v1/isobmff_files/{segment(id)}", result=FileWithTracks)


def delete_isobmff_file(id: str) -> Request[None]:
    """Delete a file, its index, its tracks and their bytes."""
    return Request("DELETE", f"/api/v1/isobmff_files/{segment(id)}", result=None)


def get_isobmff_file_index(
    id: str,
    *,
    format: Literal["json", "fidx", "arrow", "sidx", "hls"] | None = None,
    track: int | None = None,
) -> Request[Mapping[str, Any] | bytes]:
    """The index of a file, in the form that `format` or Accept names; `track` for sidx and hls.

    An `hls` without `track` is a multivariant playlist where several tracks are files of their
    own.

    Args:
        format: instead of Accept.
        track: default: the first video track, or else the first audio track.
    """
    return Request(
        "GET",
        f"/api/v1/isobmff_files/{segment(id)}/index",
        query={"format": format, "track": track},
        result=Mapping[str, Any],
        binary=True,
    )


def upload_isobmff_file_index(id: str, content: bytes) -> Request[FileRecord]:
    """Send the index of a file; the one before it stays unless all of this one holds.

    Args:
        content: the bytes.
    """
    return Request(
        "POST",
        f"/api/v1/isobmff_files/{segment(id)}/index/upload",
        content=content,
        result=FileRecord,
    )


def seek_isobmff_file(
    id: str,
    *,
    time_ms: float,
    track: int | None = None,
    end_ms: float | None = None,
    verified: bool | None = None,
) -> Request[SeekAnswer]:
    """The bytes at which decoding starts for a moment of the presentation.

    Args:
        track: default: the first video track, or else the first audio track.
        end_ms: exclusive; asks for `ranges`.
        verified: look at the pictures, and go back to one that a decoder can start at, whatever
            the flags of the file say.
    """
    return Request(
        "GET",
        f"/api/v1/isobmff_files/{segment(id)}/seek",
        query={"time_ms": time_ms, "track": track, "end_ms": end_ms, "verified": verified},
        result=SeekAnswer,
    )


def list_isobmff_tracks(*, file_id: str) -> Request[TrackList]:
    """The tracks of a file whose bytes are announced, by their ids.

    Args:
        file_id: of which file.
    """
    return Request("GET", "/api/v1/isobmff_tracks", query={"file_id": file_id}, result=TrackList)


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
    return Request(
        "POST",
        "/api/v1/isobmff_tracks",
        body={
            "byte_size": byte_size,
            "codec_name": codec_name,
            "duration_ms": duration_ms,
            "file_id": file_id,
            "probe_info": probe_info,
            "track_id": track_id,
            "type": type,
        },
        headers={"Idempotency-Key": idempotency_key},
        result=TrackRecord,
    )


def download_isobmff_track(
    file_id: str, track_id: str, *, range: ByteRange | None = None
) -> Request[bytes]:
    """The bytes of a track, whole or by ranges.

    Args:
        range: `bytes=START-END`, END inclusive; one that cannot be read is ignored.
    """
    return Request(
        "GET",
        f"/api/v1/isobmff_tracks/{segment(file_id)}/{segment(track_id)}",
        headers={"Range": range},
        result=bytes,
    )


def head_isobmff_track(file_id: str, track_id: str) -> Request[None]:
    """The bytes of a track, whole or by ranges."""
    return Request(
        "HEAD", f"/api/v1/isobmff_tracks/{segment(file_id)}/{segment(track_id)}", result=None
    )


def delete_isobmff_track(file_id: str, track_id: str) -> Request[None]:
    """Delete a track and its bytes."""
    return Request(
        "DELETE", f"/api/v1/isobmff_tracks/{segment(file_id)}/{segment(track_id)}", result=None
    )


def get_isobmff_track_upload(file_id: str, track_id: str) -> Request[TrackRecord]:
    """A track whose bytes are all here; else 404 with `next_byte`."""
    return Request(
        "GET",
        f"/api/v1/isobmff_tracks/{segment(file_id)}/{segment(track_id)}/upload",
        result=TrackRecord,
    )


def upload_isobmff_track(
    file_id: str, track_id: str, content: bytes, *, content_range: str | None = None
) -> Request[TrackRecord]:
    """Send bytes of a track, whole or in chunks; 202 while some are missing.

    Args:
        content_range: `bytes START-END/TOTAL`, END inclusive; without it the body is whole.
        content: the bytes.
    """
    return Request(
        "POST",
        f"/api/v1/isobmff_tracks/{segment(file_id)}/{segment(track_id)}/upload",
        headers={"Content-Range": content_range},
        content=content,
        result=TrackRecord,
    )
