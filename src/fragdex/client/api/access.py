"""Operations on keys, url-token, usage, health. Written by tools/make_client.py."""
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

import msgspec

from fragdex.client.exchange import Request, operation

# fmt: off
__all__ = [
    "ApiKey", "ApiKeyList", "Health", "SecretApiKey", "UrlToken", "Usage", "UsageLimits",
    "create_key", "create_url_token", "delete_key", "get_health", "get_key", "get_metrics",
    "get_readiness", "get_usage", "list_keys", "rotate_key",
]
# fmt: on


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


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """That the process answers."""

    status: Literal["ok"]


class UrlToken(msgspec.Struct, frozen=True, kw_only=True):
    """A bearer that opens GET and HEAD of the URL, and of what lies below it."""

    token: str


class UsageLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much the tenant may use."""

    max_jobs: int
    """Unfinished jobs."""
    max_render_cost: float | None
    """Seconds of processor time of the slices of one render; null: no limit."""
    max_render_seconds: float
    """Of work on the slices of one render."""
    max_stored_bytes: int | None
    """Null: no limit."""
    retention_days: float | None
    """After which files and finished renders are deleted; null: never."""


class SecretApiKey(ApiKey, frozen=True, kw_only=True):
    """The same with what is sent as the bearer, which is shown once."""

    key: str
    """`ef_<secret>_<id>`; only a hash of the secret is stored."""


class ApiKeyList(msgspec.Struct, frozen=True, kw_only=True):
    """Keys, newest first."""

    keys: tuple[ApiKey, ...]
    next_cursor: str | None
    """Returns the next page; null on the last."""


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What the tenant uses now."""

    jobs: int
    """Unfinished jobs."""
    limits: UsageLimits
    row_bytes: int
    """Of its records: names, metadata, data, events, answers kept for an Idempotency-Key, and 256 a
    record; the limit of stored bytes holds for them, too, if it is over 1 MiB.
    """
    scope: Literal["read", "write", "admin"]
    """Of the key that asks: what it may do."""
    stored_bytes: int
    """In the store, once per SHA-256, with the announced sizes of unfinished uploads."""


@operation("GET", "/api/v1/keys", ApiKeyList)
def list_keys(*, limit: int | None = None, cursor: str | None = None) -> Request[ApiKeyList]:
    """Keys of the tenant, newest first, including expired and revoked ones.

    Args:
        limit: records on a page.
        cursor: `next_cursor` of the page before.
    """


@operation("POST", "/api/v1/keys", SecretApiKey)
def create_key(
    *,
    idempotency_key: str | None = None,
    expires_at: datetime | None = None,
    name: str | None = None,
    scope: Literal["read", "write", "admin"] | None = None,
) -> Request[SecretApiKey]:
    """Create a key of the tenant.

    The response has the key, shown only once. With an `Idempotency-Key`, the same request of the
    same bearer gets it again.

    Args:
        idempotency_key: The same key with the same body gives the first answer again.
        expires_at: null: it does not expire.
        scope: each includes those before it; it never changes.
    """


@operation("GET", "/api/v1/keys/{id}", ApiKey)
def get_key(id: str) -> Request[ApiKey]:
    """A key of the tenant."""


@operation("DELETE", "/api/v1/keys/{id}")
def delete_key(id: str) -> Request[None]:
    """Revoke a key: within seconds, it and its URL tokens are refused.

    Its record stays for a while (`key_history_days`). The last valid key with the scope `admin`
    is not revoked (409).
    """


@operation("POST", "/api/v1/keys/{id}/rotate", SecretApiKey)
def rotate_key(id: str, *, previous_seconds: int | None = None) -> Request[SecretApiKey]:
    """Replace the secret, shown only once; the old one stays valid for a day, or as requested.

    Args:
        previous_seconds: how long the secret before is still accepted.
    """


@operation("POST", "/api/v1/url-token", UrlToken)
def create_url_token(
    *, url: str, params: Mapping[str, str] | None = None, seconds: int | None = None
) -> Request[UrlToken]:
    """Sign a token that opens GET and HEAD of a URL's path, and of what lies below it, for a while.

    It is sent as `Authorization: Bearer TOKEN`, or as `?token=TOKEN` where no header can be sent.

    Args:
        params: parameters that the query of each request must have, once each, with these
            values; other parameters are allowed.
        seconds: how long it opens the URL, at most `max_url_token_seconds`; default:
            `url_token_seconds`. A token ends with the key that signed it.
        url: absolute, or a path of this service; its query counts as `params`.
    """


@operation("GET", "/api/v1/usage", Usage)
def get_usage() -> Request[Usage]:
    """Usage of the key's tenant: stored bytes and running work, with the limits."""


@operation("GET", "/healthz", Health)
def get_health() -> Request[Health]:
    """200 while the process runs; checks nothing else."""


@operation("GET", "/metrics", bytes)
def get_metrics() -> Request[bytes]:
    """Metrics of this process and of the installation, in Prometheus' text format."""


@operation("GET", "/readyz", Mapping[str, Any])
def get_readiness() -> Request[Mapping[str, Any]]:
    """200 if requests can be answered: database and store answer, and the process is not draining.

    It also names the browser, the speech engine and how full the disks are. A store without room
    is no reason to send no requests: its objects can be read and deleted.
    """
