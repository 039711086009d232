"""Which pages may call the service from a browser (WHATWG Fetch, 3.2)."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from fragdex.service.config import Settings

__all__ = ["ALLOWED", "EXPOSED", "for_pages", "install"]

ALLOWED = (
    "Accept",
    "Authorization",
    "Cache-Control",
    "Content-Range",
    "Content-Type",
    "Idempotency-Key",
    "If-None-Match",
    "If-Range",
    "Last-Event-ID",
    "Range",
)
EXPOSED = (
    "Accept-Ranges",
    "Content-Length",
    "Content-Range",
    "ETag",
    "Idempotency-Replayed",
    "Location",
    "Repr-Digest",
    "Retry-After",
)
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
DAY = 86_400

Fields = tuple[tuple[bytes, bytes], ...]


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


def for_pages(settings: Settings) -> Callable[[bytes | None], Fields]:
    """What `install` adds to an answer, by the Origin of its request: for what is answered before.

    >>> for_pages(Settings(cors_origins=("https://a.example",)))(None)
    ((b'vary', b'Origin'),)
    """
    origins = settings.cors_origins
    varies: Fields = ((b"vary", b"Origin"),) if origins else ()
    exposed: Fields = ((b"access-control-expose-headers", ", ".join(EXPOSED).encode()),)
    every: Fields = ((b"access-control-allow-origin", b"*"), *exposed, *varies)

    def added(origin: bytes | None) -> Fields:
        if origin is None or not origins:
            return varies
        if "*" in origins:
            return every
        if origin.decode("latin-1") in origins:
            return ((b"access-control-allow-origin", origin), *exposed, *varies)
        return (*exposed, *varies)

    return added
