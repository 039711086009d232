"""Records of keys. Written by tools/make_client.py."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

__all__ = ["ApiKey", "ApiKeyList", "SecretApiKey"]


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key, without its secret."""

    created_at: datetime
    expires_at: datetime | None
    id: str
    last_used_at: datetime | None
    """To about a minute; also by a URL token that it signed."""
    name: str
    previous_secret_until: str | None
    """Until then the secret before the last rotation is accepted, too."""
    revoked_at: datetime | None
    scope: Literal["read", "write", "admin"]
    status: Literal["valid", "expired", "revoked"]


class SecretApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """The same with what is sent as the bearer, which is shown once."""

    created_at: datetime
    expires_at: datetime | None
    id: str
    key: str
    """`ef_<secret>_<id>`; only a hash of the secret is stored."""
    last_used_at: datetime | None
    """To about a minute; also by a URL token that it signed."""
    name: str
    previous_secret_until: str | None
    """Until then the secret before the last rotation is accepted, too."""
    revoked_at: datetime | None
    scope: Literal["read", "write", "admin"]
    status: Literal["valid", "expired", "revoked"]


class ApiKeyList(msgspec.Struct, frozen=True, kw_only=True):
    """Keys, newest first."""

    keys: tuple[ApiKey, ...]
    next_cursor: str | None
    """Asks for the next page; null on the last."""
