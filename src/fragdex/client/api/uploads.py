"""Operations on resumable uploads. Written by tools/make_client.py."""

from __future__ import annotations

from fragdex.client.api.shared_records import AnyFile
from fragdex.client.request import Request, segment

__all__ = ["append_upload", "cancel_upload", "create_upload", "head_upload"]


def create_upload(
    content: bytes, *, upload_complete: str, upload_length: str | None = None
) -> Request[AnyFile]:
    """Begin a resumable upload (draft-ietf-httpbis-resumable-upload), with all or some bytes.

    The name of the file is that of `Content-Disposition`, its type `Content-Type`; a `Repr-
    Digest` of md5 finds a file that is here already.

    Args:
        upload_complete: `?1`: the upload ends with this body; `?0`: more follow.
        upload_length: bytes of the whole; `?1` and Content-Length say it too.
        content: the bytes.
    """
    return Request(
        "POST",
        "/api/v1/uploads",
        headers={"Upload-Complete": upload_complete, "Upload-Length": upload_length},
        content=content,
        result=AnyFile,
    )


def head_upload(id: str) -> Request[None]:
    """How far a resumable upload is: its fields say it."""
    return Request("HEAD", f"/api/v1/uploads/{segment(id)}", result=None)


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
        upload_length: bytes of the whole; `?1` and Content-Length say it too.
        content: the bytes.
    """
    return Request(
        "PATCH",
        f"/api/v1/uploads/{segment(id)}",
        headers={
            "Upload-Offset": upload_offset,
            "Upload-Complete": upload_complete,
            "Upload-Length": upload_length,
            "Content-Type": "application/partial-upload",
        },
        content=content,
        result=AnyFile | None,
    )


def cancel_upload(id: str) -> Request[None]:
    """Cancel a resumable upload: what arrived of it is deleted, or the file that it became."""
    return Request("DELETE", f"/api/v1/uploads/{segment(id)}", result=None)
