"""Operations on unprocessed files. Written by tools/make_client.py."""

from __future__ import annotations

from typing import Literal

from fragdex.client.api.shared_records import Event
from fragdex.client.api.unprocessed_records import (
    ProcessList,
    ProcessRecord,
    UnprocessedFile,
    UnprocessedFileList,
)
from fragdex.client.request import Request, segment

__all__ = [
    "create_unprocessed_file",
    "delete_process",
    "delete_unprocessed_file",
    "find_unprocessed_file",
    "get_process",
    "get_process_progress",
    "get_unprocessed_file",
    "get_unprocessed_file_upload",
    "list_processes",
    "list_unprocessed_files",
    "process_unprocessed_file",
    "process_unprocessed_file_to_isobmff",
    "upload_unprocessed_file",
]


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
    return Request(
        "GET",
        "/api/v1/process_isobmff",
        query={"limit": limit, "cursor": cursor, "status": status},
        result=ProcessList,
    )


def get_process(id: str) -> Request[ProcessRecord]:
    """The record of a process; `problem` says why it failed."""
    return Request("GET", f"/api/v1/process_isobmff/{segment(id)}", result=ProcessRecord)


def delete_process(id: str) -> Request[None]:
    """Forget a process, and end it if it runs; what it made stays."""
    return Request("DELETE", f"/api/v1/process_isobmff/{segment(id)}", result=None)


def get_process_progress(id: str, *, last_event_id: str | None = None) -> Request[Event]:
    """How far a process is, as events.

    Args:
        last_event_id: The `id` of the last event received; the stream continues after it.
    """
    return Request(
        "GET",
        f"/api/v1/process_isobmff/{segment(id)}/progress",
        headers={"Last-Event-ID": last_event_id},
        result=Event,
    )


def list_unprocessed_files(
    *,
    limit: int | None = None,
    cursor: str | None = None,
    status: Literal["created", "uploading", "complete", "failed"] | None = None,
) -> Request[UnprocessedFileList]:
    """Unprocessed files, newest first.

    Args:
        limit: records on a page.
        cursor: `next_cursor` of the page before.
        status: only those.
    """
    return Request(
        "GET",
        "/api/v1/unprocessed_files",
        query={"limit": limit, "cursor": cursor, "status": status},
        result=UnprocessedFileList,
    )


def create_unprocessed_file(
    *, byte_size: int, filename: str, md5: str, idempotency_key: str | None = None
) -> Request[UnprocessedFile]:
    """Announce a media file of any kind; its bytes follow by upload.

    Args:
        idempotency_key: The same key with the same body gives the first answer again.
        byte_size: bytes in all.
        md5: 32 hex digits, or dashed 8-4-4-4-12; either case.
    """
    return Request(
        "POST",
        "/api/v1/unprocessed_files",
        body={"byte_size": byte_size, "filename": filename, "md5": md5},
        headers={"Idempotency-Key": idempotency_key},
        result=UnprocessedFile,
    )


def find_unprocessed_file(md5: str) -> Request[UnprocessedFile]:
    """The unprocessed file whose bytes have this md5."""
    return Request("GET", f"/api/v1/unprocessed_files/md5/{segment(md5)}", result=UnprocessedFile)


def get_unprocessed_file(id: str) -> Request[UnprocessedFile]:
    """The record."""
    return Request("GET", f"/api/v1/unprocessed_files/{segment(id)}", result=UnprocessedFile)


def delete_unprocessed_file(id: str) -> Request[None]:
    """Delete a file and its bytes, and end its processing; the ISOBMFF file made of it stays."""
    return Request("DELETE", f"/api/v1/unprocessed_files/{segment(id)}", result=None)


def process_unprocessed_file_to_isobmff(
    id: str, *, idempotency_key: str | None = None
) -> Request[ProcessRecord]:
    """Have an ISOBMFF file made of it.

    A fragmented file of one track is one: it is done at once. The same process is answered while
    it runs and once it has ended well; after a failure, a new one.

    Args:
        idempotency_key: The same key with the same body gives the first answer again.
    """
    return Request(
        "POST",
        f"/api/v1/unprocessed_files/{segment(id)}/isobmff",
        headers={"Idempotency-Key": idempotency_key},
        result=ProcessRecord,
    )


def process_unprocessed_file(
    id: str, *, idempotency_key: str | None = None
) -> Request[ProcessRecord]:
    """Have an ISOBMFF file made of it.

    A fragmented file of one track is one: it is done at once. The same process is answered while
    it runs and once it has ended well; after a failure, a new one.

    Args:
        idempotency_key: The same key with the same body gives the first answer again.
    """
    return Request(
        "POST",
        f"/api/v1/unprocessed_files/{segment(id)}/process",
        headers={"Idempotency-Key": idempotency_key},
        result=ProcessRecord,
    )


def get_unprocessed_file_upload(id: str) -> Request[UnprocessedFile]:
    """The record, once its bytes are complete; before that 404, with `next_byte`."""
    return Request("GET", f"/api/v1/unprocessed_files/{segment(id)}/upload", result=UnprocessedFile)


def upload_unprocessed_file(
    id: str, content: bytes, *, content_range: str | None = None
) -> Request[UnprocessedFile]:
    """Send bytes of a file, whole or in chunks; 202 while some are missing.

    Args:
        content_range: `bytes START-END/TOTAL`, END inclusive; without it the body is whole.
        content: the bytes.
    """
    return Request(
        "POST",
        f"/api/v1/unprocessed_files/{segment(id)}/upload",
        headers={"Content-Range": content_range},
        content=content,
        result=UnprocessedFile,
    )
