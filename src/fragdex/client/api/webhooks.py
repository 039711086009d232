"""Operations on webhooks. Written by tools/make_client.py."""
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

import msgspec

from fragdex.client.exchange import Request, operation

# fmt: off
__all__ = [
    "Delivery", "DeliveryList", "Replayed", "SecretWebhook", "Webhook", "WebhookList",
    "create_webhook", "delete_webhook", "get_webhook", "get_webhook_delivery",
    "list_webhook_deliveries", "list_webhooks", "ping_webhook", "replay_failed_deliveries",
    "replay_webhook_delivery", "rotate_webhook_secret", "update_webhook",
]
# fmt: on


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """An event on its way to a webhook, and what came of the last attempt."""

    attempts: int
    """Since it was created, or replayed last."""
    created_at: datetime
    delivered_at: datetime | None
    failed_at: datetime | None
    id: str
    """`webhook-id` of every attempt."""
    message: Mapping[str, Any]
    """The body as it is sent."""
    next_attempt_at: datetime | None
    problem: str | None
    response_body: str | None
    """Its beginning, as printable ASCII."""
    response_status: int | None
    status: Literal["pending", "delivered", "failed"]
    type: str
    webhook_id: str


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """How many deliveries were ordered once more."""

    count: int
    more: bool
    """There were more than one request replays; ask again."""


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    """A URL that events are sent to."""

    accepted_at: datetime | None
    """When a delivery was last accepted."""
    created_at: datetime
    description: str
    disabled_at: datetime | None
    disabled_because: str | None
    enabled: bool
    id: str
    previous_secret_until: str | None
    """Until then deliveries are signed with the secret before the last rotation, too."""
    types: tuple[str, ...]
    url: str


class SecretWebhook(Webhook, frozen=True, kw_only=True):
    """The same with its secret, which is shown once."""

    secret: str
    """`whsec_` and base64: what signatures are checked with."""


class DeliveryList(msgspec.Struct, frozen=True, kw_only=True):
    """Deliveries, newest first."""

    deliveries: tuple[Delivery, ...]
    next_cursor: str | None
    """Returns the next page; null on the last."""


class WebhookList(msgspec.Struct, frozen=True, kw_only=True):
    """Webhooks, newest first."""

    next_cursor: str | None
    """Returns the next page; null on the last."""
    webhooks: tuple[Webhook, ...]


@operation("GET", "/api/v1/webhooks", WebhookList)
def list_webhooks(*, limit: int | None = None, cursor: str | None = None) -> Request[WebhookList]:
    """Webhooks, newest first.

    Args:
        limit: records on a page.
        cursor: `next_cursor` of the page before.
    """


@operation("POST", "/api/v1/webhooks", SecretWebhook)
def create_webhook(
    *,
    url: str,
    idempotency_key: str | None = None,
    description: str | None = None,
    types: tuple[str, ...] | None = None,
) -> Request[SecretWebhook]:
    """Create a webhook: events are sent to a URL.

    The response has the secret, shown only once.

    Args:
        idempotency_key: The same key with the same body gives the first answer again.
        types: types of events: `render.completed`, `file.*`, `*` for all.
        url: `https`, at a public address.
    """


@operation("GET", "/api/v1/webhooks/{id}", Webhook)
def get_webhook(id: str) -> Request[Webhook]:
    """The record."""


@operation("PATCH", "/api/v1/webhooks/{id}", Webhook)
def update_webhook(
    id: str,
    *,
    description: str | None = None,
    enabled: bool | None = None,
    types: tuple[str, ...] | None = None,
    url: str | None = None,
) -> Request[Webhook]:
    """Change a webhook, or enable it again after failures disabled it.

    Args:
        enabled: false: nothing is sent; true: also after it was disabled by failures.
    """


@operation("DELETE", "/api/v1/webhooks/{id}")
def delete_webhook(id: str) -> Request[None]:
    """Delete a webhook and its deliveries; nothing more is sent."""


@operation("GET", "/api/v1/webhooks/{id}/deliveries", DeliveryList)
def list_webhook_deliveries(
    id: str,
    *,
    limit: int | None = None,
    cursor: str | None = None,
    status: Literal["pending", "delivered", "failed"] | None = None,
) -> Request[DeliveryList]:
    """Deliveries of a webhook, newest first, with their results.

    Args:
        limit: records on a page.
        cursor: `next_cursor` of the page before.
        status: only those.
    """


@operation("GET", "/api/v1/webhooks/{id}/deliveries/{delivery_id}", Delivery)
def get_webhook_delivery(id: str, delivery_id: str) -> Request[Delivery]:
    """A delivery."""


@operation("POST", "/api/v1/webhooks/{id}/deliveries/{delivery_id}/replay", Delivery)
def replay_webhook_delivery(id: str, delivery_id: str) -> Request[Delivery]:
    """Send a delivery again now, with the same `webhook-id`."""


@operation("POST", "/api/v1/webhooks/{id}/ping", Delivery)
def ping_webhook(id: str) -> Request[Delivery]:
    """Send a test event, `webhook.ping`, whatever the types of the webhook."""


@operation("POST", "/api/v1/webhooks/{id}/replay", Replayed)
def replay_failed_deliveries(id: str, *, since: datetime | None = None) -> Request[Replayed]:
    """Send failed deliveries again, oldest first, up to 200 per request.

    Args:
        since: created then or later; null: all that failed.
    """


@operation("POST", "/api/v1/webhooks/{id}/rotate", SecretWebhook)
def rotate_webhook_secret(
    id: str, *, previous_seconds: int | None = None
) -> Request[SecretWebhook]:
    """Replace the secret; deliveries are signed with both for a day, or as requested.

    Args:
        previous_seconds: how long the secret before is still signed with.
    """
