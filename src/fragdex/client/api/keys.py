"""Operations on keys. Written by tools/make_client.py."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from fragdex.client.api.keys_records import ApiKey, ApiKeyList, SecretApiKey
from fragdex.client.request import Request, segment

__all__ = ["create_key", "delete_key", "get_key", "list_keys", "rotate_key"]


def list_keys(*, limit: int | None = None, cursor: str | None = None) -> Request[ApiKeyList]:
    """Keys of the tenant, newest first, those that expired or were revoked too.

    Args:
        limit: records on a page.
        cursor: `next_cursor` of the page before.
    """
    return Request(
        "GET", "/api/v1/keys", query={"limit": limit, "cursor": cursor}, result=ApiKeyList
    )


def create_key(
    *,
    idempotency_key: str | None = None,
    expires_at: datetime | None = None,
    name: str | None = None,
    scope: Literal["read", "write", "admin"] | None = None,
) -> Request[SecretApiKey]:
    """Create a key of the tenant.

    The response has the key, which is shown this once. With an `Idempotency-Key`, the same
    request of the same bearer gets it again.

    Args:
        idempotency_key: The same key with the same body gives the first answer again.
        expires_at: null: it does not expire.
        scope: each includes those before it; it never changes.
    """
    return Request(
        "POST",
        "/api/v1/keys",
        body={"expires_at": expires_at, "name": name, "scope": scope},
        headers={"Idempotency-Key": idempotency_key},
        result=SecretApiKey,
    )


def get_key(id: str) -> Request[ApiKey]:
    """A key of the tenant."""
    return Request("GET", f"/api/v1/keys/{segment(id)}", result=ApiKey)


def delete_key(id: str) -> Request[None]:
    """Revoke a key: it, and the URL tokens that it signed, open nothing from a few seconds on.

    Its record stays for a while (`key_history_days`). The last valid key with the scope `admin`
    is not revoked (409).
    """
    return Request("DELETE", f"/api/v1/keys/{segment(id)}", result=None)


def rotate_key(id: str, *, previous_seconds: int | None = None) -> Request[SecretApiKey]:
    """Replace the secret, shown this once; the one before is accepted for a day, or as said.

    Args:
        previous_seconds: how long the secret before is still accepted.
    """
    return Request(
        "POST",
        f"/api/v1/keys/{segment(id)}/rotate",
        body={"previous_seconds": previous_seconds},
        result=SecretApiKey,
    )
