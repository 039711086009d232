"""Operations on image files, caption files. Written by tools/make_client.py."""
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from fragdex.byterange import ByteRange
from fragdex.client.exchange import Request, operation

# fmt: off
__all__ = [
    "CaptionList", "CaptionRecord", "ImageList", "ImageRecord", "create_caption_file",
    "create_image_file", "delete_caption_file", "delete_image_file", "download_caption_file",
    "download_caption_file_vtt", "download_image_file", "find_caption_file", "find_image_file",
    "get_caption_file", "get_caption_file_upload", "get_image_file", "get_image_file_upload",
    "head_caption_file", "head_caption_file_vtt", "head_image_file", "list_caption_files",
    "list_image_files", "upload_caption_file", "upload_image_file",
]
# fmt: on


class CaptionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A caption file."""

    byte_size: int | None
    """Null while a sender has not said how many bytes there will be."""
    complete: bool
    completed_at: datetime | None
    created_at: datetime
    expires_at: datetime | None
    filename: str
    id: str
    md5: str | None
    """Dashed; null until it is announced or known."""
    mime_type: str
    next_byte: int
    """Bytes before this one are here to stay."""
    status: Literal["created", "uploading", "ready"]


class ImageRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An image file."""

    byte_size: int | None
    """Null while a sender has not said how many bytes there will be."""
    complete: bool
    completed_at: datetime | None
    created_at: datetime
    expires_at: datetime | None
    filename: str
    height: int | None
    """As width."""
    id: str
    md5: str | None
    """Dashed; null until it is announced or known."""
    mime_type: str
    next_byte: int
    """Bytes before this one are here to stay."""
    status: Literal["created", "uploading", "ready"]
    width: int | None
    """Pixels, after orientation, by the file's own header."""


class CaptionList(msgspec.Struct, frozen=True, kw_only=True):
    """Caption files, newest first."""

    caption_files: tuple[CaptionRecord, ...]
    next_cursor: str | None
    """Returns the next page; null on the last."""


class ImageList(msgspec.Struct, frozen=True, kw_only=True):
    """Image files, newest first."""

    image_files: tuple[ImageRecord, ...]
    next_cursor: str | None
    """Returns the next page; null on the last."""


@operation("GET", "/api/v1/image_files", ImageList)
def list_image_files(
    *,
    limit: int | None = None,
    cursor: str | None = None,
    status: Literal["created", "uploading", "ready"] | None = None,
) -> Request[ImageList]:
    """Image files, newest first.

    Args:
        limit: records on a page.
        cursor: `next_cursor` of the page before.
        status: only those.
    """


@operation("POST", "/api/v1/image_files", ImageRecord)
def create_image_file(
    *,
    byte_size: int,
    filename: str,
    idempotency_key: str | None = None,
    height: int | None = None,
    md5: str | None = None,
    mime_type: str | None = None,
    width: int | None = None,
) -> Request[ImageRecord]:
    """Announce an image file; its bytes follow by upload.

    Args:
        idempotency_key: The same key with the same body gives the first answer again.
        byte_size: bytes in all.
        height: as width.
        mime_type: image/jpeg, image/png, image/webp or image/svg+xml; else from the name.
        width: pixels, as the sender takes it to be, until measured; 0: not known.
    """


@operation("GET", "/api/v1/image_files/md5/{md5}", ImageRecord)
def find_image_file(md5: str) -> Request[ImageRecord]:
    """The image file whose bytes have this md5."""


@operation("GET", "/api/v1/image_files/{id}", bytes)
def download_image_file(id: str, *, range: ByteRange | None = None) -> Request[bytes]:
    """The bytes of a complete image file."""


@operation("HEAD", "/api/v1/image_files/{id}")
def head_image_file(id: str) -> Request[None]:
    """The bytes of a complete image file."""


@operation("DELETE", "/api/v1/image_files/{id}")
def delete_image_file(id: str) -> Request[None]:
    """Delete an image file and its bytes."""


@operation("GET", "/api/v1/image_files/{id}.json", ImageRecord)
def get_image_file(id: str) -> Request[ImageRecord]:
    """The record, with the size in pixels once it is known."""


@operation("GET", "/api/v1/image_files/{id}/upload", ImageRecord)
def get_image_file_upload(id: str) -> Request[ImageRecord]:
    """The record, once its bytes are complete; before that 404, with `next_byte`."""


@operation("POST", "/api/v1/image_files/{id}/upload", ImageRecord)
def upload_image_file(
    id: str, content: bytes, *, content_range: str | None = None
) -> Request[ImageRecord]:
    """Send bytes of an image file, whole or in chunks; 202 while some are missing.

    Args:
        content_range: `bytes START-END/TOTAL`, END inclusive; without it the body is whole.
        content: the bytes.
    """


@operation("GET", "/api/v1/caption_files", CaptionList)
def list_caption_files(
    *,
    limit: int | None = None,
    cursor: str | None = None,
    status: Literal["created", "uploading", "ready"] | None = None,
) -> Request[CaptionList]:
    """Caption files, newest first.

    Args: as of `list_image_files`.
    """


@operation("POST", "/api/v1/caption_files", CaptionRecord)
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


@operation("GET", "/api/v1/caption_files/md5/{md5}", CaptionRecord)
def find_caption_file(md5: str) -> Request[CaptionRecord]:
    """The caption file whose bytes have this md5."""


@operation("GET", "/api/v1/caption_files/{id}", bytes)
def download_caption_file(id: str, *, range: ByteRange | None = None) -> Request[bytes]:
    """The bytes of a complete caption file."""


@operation("HEAD", "/api/v1/caption_files/{id}")
def head_caption_file(id: str) -> Request[None]:
    """The bytes of a complete caption file."""


@operation("DELETE", "/api/v1/caption_files/{id}")
def delete_caption_file(id: str) -> Request[None]:
    """Delete a caption file and its bytes."""


@operation("GET", "/api/v1/caption_files/{id}.json", CaptionRecord)
def get_caption_file(id: str) -> Request[CaptionRecord]:
    """The record."""


@operation("GET", "/api/v1/caption_files/{id}.vtt", bytes)
def download_caption_file_vtt(id: str) -> Request[bytes]:
    """Captions of any type as WebVTT, with every cue of them, each a block of its own."""


@operation("HEAD", "/api/v1/caption_files/{id}.vtt")
def head_caption_file_vtt(id: str) -> Request[None]:
    """Captions of any type as WebVTT, with every cue of them, each a block of its own."""


@operation("GET", "/api/v1/caption_files/{id}/upload", CaptionRecord)
def get_caption_file_upload(id: str) -> Request[CaptionRecord]:
    """The record, once its bytes are complete; before that 404, with `next_byte`."""


@operation("POST", "/api/v1/caption_files/{id}/upload", CaptionRecord)
def upload_caption_file(
    id: str, content: bytes, *, content_range: str | None = None
) -> Request[CaptionRecord]:
    """Send bytes of a caption file, whole or in chunks; 202 while some are missing.

    Args: as of `upload_image_file`.
    """
