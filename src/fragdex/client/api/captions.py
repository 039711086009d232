"""Operations on caption files. Written by tools/make_client.py."""

from __future__ import annotations

from typing import Literal

from fragdex.byterange import ByteRange
from fragdex.client.api.captions_records import CaptionList, CaptionRecord
from fragdex.client.request import Request, segment

__all__ = [
    "create_caption_file",
    "delete_caption_file",
    "download_caption_file",
    "find_caption_file",
    "get_caption_file",
    "get_caption_file_upload",
    "head_caption_file",
    "list_caption_files",
    "upload_caption_file",
]


def list_caption_files(
    *,
    limit: int | None = None,
    cursor: str | None = None,
    status: Literal["created", "uploading", "ready"] | None = None,
) -> Request[CaptionList]:
    """Caption files, newest first.

    Args:
        limit: records on a page.
        cursor: `next_cursor` of the page before.
        status: only those.
    """
    return Request(
        "GET",
        "/api/v1/caption_files",
        query={"limit": limit, "cursor": cursor, "status": status},
        result=CaptionList,
    )


def create_caption_file(
    *,
    byte_size: int,
    filename: str,
    md5: str,
    idempotency_key: str | None = None,
    mime_type: str | None = None,
) -> Request[CaptionRecord]:
    """Announce a caption file; its bytes follow by upload.

    Args:
        idempotency_key: The same key with the same body gives the first answer again.
        byte_size: bytes in all.
        md5: 32 hex digits, or dashed 8-4-4-4-12; either case.
        mime_type: text/vtt, application/x-subrip or application/json; else from the name.
    """
    return Request(
        "POST",
        "/api/v1/caption_files",
        body={"byte_size": byte_size, "filename": filename, "md5": md5, "mime_type": mime_type},
        headers={"Idempotency-Key": idempotency_key},
        result=CaptionRecord,
    )


def find_caption_file(md5: str) -> Request[CaptionRecord]:
    """The caption file whose bytes have this md5."""
    return Request("GET", f"/api/v1/caption_files/md5/{segment(md5)}", result=CaptionRecord)


def download_caption_file(id: str, *, range: ByteRange | None = None) -> Request[bytes]:
    """The bytes of a complete caption file.

    Args:
        range: `bytes=START-END`, END inclusive; one that cannot be read is ignored.
    """
    return Request(
        "GET", f"/api/v1/caption_files/{segment(id)}", headers={"Range": range}, result=bytes
    )


def head_caption_file(id: str) -> Request[None]:
    """The bytes of a complete caption file."""
    return Request("HEAD", f"/api/v1/caption_files/{segment(id)}", result=None)


def delete_caption_file(id: str) -> Request[None]:
    """Delete a caption file and its bytes."""
    return Request("DELETE", f"/api/v1/caption_files/{segment(id)}", result=None)


def get_caption_file(id: str) -> Request[CaptionRecord]:
    """The record."""
    return Request("GET", f"/api/v1/caption_files/{segment(id)}.json", result=CaptionRecord)


def get_caption_file_upload(id: str) -> Request[CaptionRecord]:
    """The record, once its bytes are complete; before that 404, with `next_byte`."""
    return Request("GET", f"/api/v1/caption_files/{segment(id)}/upload", result=CaptionRecord)


def upload_caption_file(
    id: str, content: bytes, *, content_range: str | None = None
) -> Request[CaptionRecord]:
    """Send bytes of a caption file, whole or in chunks; 202 while some are missing.

    Args:
        content_range: `bytes START-END/TOTAL`, END inclusive; without it the body is whole.
        content: the bytes.
    """
    return Request(
        "POST",
        f"/api/v1/caption_files/{segment(id)}/upload",
        headers={"Content-Range": content_range},
        content=content,
        result=CaptionRecord,
    )
