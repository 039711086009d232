"""Operations on usage. Written by tools/make_client.py."""

from __future__ import annotations

from fragdex.client.api.usage_records import Usage
from fragdex.client.request import Request

__all__ = ["get_usage"]


def get_usage() -> Request[Usage]:
    """What the tenant of the key stores and has in progress, and how much it may."""
    return Request("GET", "/api/v1/usage", result=Usage)
