"""Which pages may call the service from a browser (WHATWG Fetch, 3.2)."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from fragdex.service.config import Settings

__all__ = ["ALLOWED", "EXPOSED", "install"]

ALLOWED = (
    "Accept",
    "Authorization",
    "Cache-Control",
    "Content-Digest",
    "Content-Disposition",
    "Content-Range",
    "Content-Type",
    "Idempotency-Key",
    "If-None-Match",
    "If-Range",
    "Last-Event-ID",
    "Range",
    # of resumable uploads, tus among them
    "Repr-Digest",
    "Tus-Resumable",
    "Upload-Checksum",
    "Upload-Complete",
    "Upload-Concat",
    "Upload-Defer-Length",
    "Upload-Draft-Interop-Version",
    "Upload-Length",
    "Upload-Metadata",
    "Upload-Offset",
    "X-HTTP-Method-Override",
    "X-Request-ID",
)
EXPOSED = (
    "Accept-Patch",
    "Accept-Ranges",
    "Content-Length",
    "Content-Range",
    "ETag",
    "Idempotency-Replayed",
    "Location",
    "Repr-Digest",
    "Retry-After",
    "Tus-Checksum-Algorithm",
    "Tus-Extension",
    "Tus-Max-Size",
    "Tus-Resumable",
    "Tus-Version",
    "Upload-Complete",
    "Upload-Concat",
    "Upload-Expires",
    "Upload-Length",
    "Upload-Limit",
    "Upload-Metadata",
    "Upload-Offset",
    "X-Findings",
    "X-Request-ID",
)
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
DAY = 86_400


def install(app: FastAPI, settings: Settings) -> None:
    """Answer preflight requests, and let answers be read by pages of the set origins.

    Never with credentials: a key is sent by the page that holds it, not by the browser itself.
    """
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.cors_origins),
            allow_methods=METHODS,
            allow_headers=ALLOWED,
            expose_headers=EXPOSED,
            max_age=DAY,
        )
