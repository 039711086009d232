"""Records of webhooks. Written by tools/make_client.py."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

import msgspec

__all__ = ["Delivery", "DeliveryList", "Replayed", "SecretWebhook", "Webhook", "WebhookList"]


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


class SecretWebhook(msgspec.Struct, frozen=True, kw_only=True):
    """The same with its secret, which is shown once."""

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
    secret: str
    """`whsec_` and base64: what signatures are checked with."""
    types: tuple[str, ...]
    url: str


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


class DeliveryList(msgspec.Struct, frozen=True, kw_only=True):
    """Deliveries, newest first."""

    deliveries: tuple[Delivery, ...]
    next_cursor: str | None
    """Asks for the next page; null on the last."""


class WebhookList(msgspec.Struct, frozen=True, kw_only=True):
    """Webhooks, newest first."""

    next_cursor: str | None
    """Asks for the next page; null on the last."""
    webhooks: tuple[Webhook, ...]
