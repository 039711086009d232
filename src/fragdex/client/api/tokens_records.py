"""Records of url-token. Written by tools/make_client.py."""

from __future__ import annotations

import msgspec

__all__ = ["UrlToken"]


class UrlToken(msgspec.Struct, frozen=True, kw_only=True):
    """A bearer that opens GET and HEAD of the URL, and of what lies below it."""

    token: str
