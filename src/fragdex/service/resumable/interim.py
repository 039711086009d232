"""Interim responses 104 (Upload Resumption Supported), where they can be sent.

A client has to name the version of the draft (appendix "Draft Version Identification"), and many
proxies break on interim responses that they do not know, so that none is sent through one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from anyio.to_thread import run_sync
from starlette.requests import Request

from fragdex.errors import FragdexError
from fragdex.service.context import ServiceContext
from fragdex.service.resumable.structured_fields import INTEROP_VERSION
from fragdex.service.tus.operations import ResumableUpload
from fragdex.service.uploads.operations import state
from fragdex.serving.connection import INTERIM

__all__ = ["announce", "progress_told"]

VERSION: Final = "Upload-Draft-Interop-Version"
FORWARDED: Final = ("forwarded", "via", "x-forwarded-for", "x-forwarded-proto", "x-real-ip")
SECONDS = 5.0
"""Between two responses that tell how far an upload is."""


def announce(request: Request, fields: Mapping[str, str]) -> bool:
    """Send an interim response; False where none may be sent."""
    send = request.scope.get("extensions", {}).get(INTERIM)
    if send is None or request.headers.get(VERSION) != INTEROP_VERSION:
        return False
    if any(name in request.headers for name in FORWARDED):
        return False
    send(104, "Upload Resumption Supported", {VERSION: INTEROP_VERSION, **fields})
    return True


@asynccontextmanager
async def progress_told(
    request: Request, context: ServiceContext, tenant_id: str, upload: ResumableUpload
) -> AsyncIterator[None]:
    """Tell how far an upload is while bytes of it are taken."""

    async def tell() -> None:
        last = upload.next_byte
        while True:
            await asyncio.sleep(SECONDS)
            try:
                found = await run_sync(state, context, tenant_id, upload.family, upload.id)
            except FragdexError:
                continue
            if found.next_byte > last:
                last = found.next_byte
                if not announce(request, {"Upload-Offset": str(last)}):
                    return

    telling = asyncio.create_task(tell())
    try:
        yield
    finally:
        telling.cancel()
        await asyncio.wait([telling])
