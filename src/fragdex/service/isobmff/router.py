"""The one router that the three modules of routes put theirs on."""

from __future__ import annotations

from fragdex.service.web.routing import api_router

__all__ = ["router"]

router = api_router("ISOBMFF files")
