"""What can be done with webhooks; no HTTP."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from fragdex.errors import InvalidRequest, Obstructed, RecordNotFound
from fragdex.service import outbox
from fragdex.service.context import ServiceContext
from fragdex.service.records import keys
from fragdex.service.records.identifiers import instant, new_id, rfc3339
from fragdex.service.records.pages import page
from fragdex.service.records.tables import webhook_deliveries, webhooks
from fragdex.service.records.tenant_limits import ensure_within_quota, lock_tenant
from fragdex.service.uploads.repository import Repository
from fragdex.service.webhooks.model import (
    Delivery,
    DeliveryList,
    DeliveryStatus,
    NewWebhook,
    Replayed,
    SecretWebhook,
    Webhook,
    WebhookChange,
    WebhookList,
)
from fragdex.service.webhooks.worker import secret_of, validate_url
from fragdex.webhook_signature import secret_text

MOST_WEBHOOKS: Final = 20
"""Of one tenant: each event is written down for each of them."""
_REPLAYED_AT_ONCE: Final = 200
_FORGOTTEN_AT_ONCE: Final = 1000

_HOOK, _ROW = webhooks.c, webhook_deliveries.c


def create_webhook(context: ServiceContext, tenant_id: str, new: NewWebhook) -> SecretWebhook:
    """A webhook with its secret.

    Raises:
        InvalidRequest: no delivery may be sent to this URL.
        Obstructed: the tenant has as many as it may.
    """
    _need_url(context, new.url)
    installation = keys.secret(context.database, "webhooks")
    row = {
        "id": new_id(),
        "tenant_id": tenant_id,
        "url": new.url,
        "description": new.description,
        "types": new.types,
        "secret_number": 1,
        "created_at": instant(),
    }
    with context.database.write() as connection:
        lock_tenant(connection, tenant_id)
        count = sa.select(_HOOK.id).where(_HOOK.tenant_id == tenant_id).limit(MOST_WEBHOOKS)
        if len(connection.scalars(count).all()) >= MOST_WEBHOOKS:
            raise Obstructed(
                f"a tenant has {MOST_WEBHOOKS} webhooks at most",
                more={"limit": MOST_WEBHOOKS}, advice="delete one that is not needed",
            )  # fmt: skip
        connection.execute(webhooks.insert().values(**row))
        created = WEBHOOKS.row(connection, tenant_id, str(row["id"]))
    return _with_secret(installation, created)


def update_webhook(
    context: ServiceContext, tenant_id: str, webhook_id: str, change: WebhookChange
) -> Webhook:
    """Change a webhook; enabling it again forgets why it was disabled.

    Raises:
        RecordNotFound: this tenant has none of this id.
        InvalidRequest: no delivery may be sent to this URL.
    """
    if change.url is not None:
        _need_url(context, change.url)
    values = change.model_dump(exclude_none=True, exclude={"enabled"})
    with context.database.write() as connection:
        row = WEBHOOKS.row(connection, tenant_id, webhook_id, lock=True)
        if change.enabled:
            values |= {"disabled_at": None, "disabled_because": None}
        elif change.enabled is False and row.disabled_at is None:
            values |= {"disabled_at": instant(), "disabled_because": "a request disabled it"}
        if values:
            connection.execute(webhooks.update().where(_HOOK.id == webhook_id).values(**values))
        return WEBHOOKS.read(connection, tenant_id, webhook_id)


def delete_webhook(context: ServiceContext, tenant_id: str, webhook_id: str) -> None:
    """Delete a webhook and its deliveries; nothing more is sent.

    Raises:
        RecordNotFound: this tenant has none of this id.
    """
    with context.database.write() as connection:
        WEBHOOKS.row(connection, tenant_id, webhook_id)
        # in the order in which attempts lock them
        mine = webhook_deliveries.delete().where(_ROW.webhook_id == webhook_id)
        connection.execute(mine)
        connection.execute(webhooks.delete().where(_HOOK.id == webhook_id))


def rotate_secret(
    context: ServiceContext, tenant_id: str, webhook_id: str, previous_seconds: int
) -> SecretWebhook:
    """A webhook with a new secret; for a while, the old one signs as well.

    Raises:
        RecordNotFound: this tenant has none of this id.
    """
    installation = keys.secret(context.database, "webhooks")
    with context.database.write() as connection:
        row = WEBHOOKS.row(connection, tenant_id, webhook_id, lock=True)
        values = {
            "secret_number": row.secret_number + 1,
            "previous_secret_until": instant() + timedelta(seconds=previous_seconds),
        }
        connection.execute(webhooks.update().where(_HOOK.id == webhook_id).values(**values))
        row = WEBHOOKS.row(connection, tenant_id, webhook_id)
    return _with_secret(installation, row)


def ping_webhook(context: ServiceContext, tenant_id: str, webhook_id: str) -> Delivery:
    """Send a test event, whatever types the webhook wants.

    Raises:
        RecordNotFound: this tenant has none of this id.
        Obstructed: it is disabled.
    """
    with context.database.write() as connection:
        row = _need_enabled(WEBHOOKS.row(connection, tenant_id, webhook_id, lock=True))
        data = {"webhook_id": webhook_id}
        delivery_id = outbox.add_delivery(context, connection, tenant_id, row, outbox.PING, data)
        ensure_within_quota(connection, tenant_id)
        return _delivery(_delivery_row(connection, tenant_id, webhook_id, delivery_id))


def list_deliveries(
    context: ServiceContext,
    tenant_id: str,
    webhook_id: str,
    limit: int,
    cursor: str | None,
    status: DeliveryStatus | None,
) -> DeliveryList:
    """Deliveries of a webhook, newest first.

    Raises:
        RecordNotFound: this tenant has no such webhook.
        InvalidRequest: as `page`.
    """
    wanted = sa.select(webhook_deliveries).where(_ROW.webhook_id == webhook_id)
    if status is not None:
        wanted = wanted.where(_ROW.status == status)
    with context.database.read() as connection:
        WEBHOOKS.row(connection, tenant_id, webhook_id)
        listed = page(connection, wanted, webhook_deliveries, limit, cursor)
    return DeliveryList(
        deliveries=[_delivery(row) for row in listed.rows], next_cursor=listed.next_cursor
    )


def get_delivery(
    context: ServiceContext, tenant_id: str, webhook_id: str, delivery_id: str
) -> Delivery:
    """A delivery; raises RecordNotFound."""
    with context.database.read() as connection:
        return _delivery(_delivery_row(connection, tenant_id, webhook_id, delivery_id))


def replay_delivery(
    context: ServiceContext, tenant_id: str, webhook_id: str, delivery_id: str
) -> Delivery:
    """Send a delivery again now, with the same `webhook-id`.

    Raises:
        RecordNotFound: this tenant has none of this id.
        Obstructed: the webhook is disabled.
    """
    with context.database.write() as connection:
        row = _delivery_row(connection, tenant_id, webhook_id, delivery_id, lock=True)
        _need_enabled(WEBHOOKS.row(connection, tenant_id, webhook_id))
        _replay(context, connection, [row])
        return _delivery(_delivery_row(connection, tenant_id, webhook_id, delivery_id))


def replay_failed(
    context: ServiceContext, tenant_id: str, webhook_id: str, since: datetime | None
) -> Replayed:
    """Send deliveries that failed once more, the oldest first, up to 200.

    Raises:
        RecordNotFound: this tenant has no such webhook.
        Obstructed: it is disabled.
    """
    query = (
        sa.select(webhook_deliveries)
        .where(_ROW.webhook_id == webhook_id, _ROW.status == DeliveryStatus.FAILED)
        .order_by(_ROW.id)
        .limit(_REPLAYED_AT_ONCE + 1)
        .with_for_update()
    )
    if since is not None:
        query = query.where(_ROW.created_at >= since)
    with context.database.write() as connection:
        _need_enabled(WEBHOOKS.row(connection, tenant_id, webhook_id))
        rows = connection.execute(query).all()
        _replay(context, connection, rows[:_REPLAYED_AT_ONCE])
    return Replayed(count=len(rows[:_REPLAYED_AT_ONCE]), more=len(rows) > _REPLAYED_AT_ONCE)


def forget_deliveries(context: ServiceContext) -> int:
    """Delete deliveries older than jobs are remembered, up to 1000; returns how many."""
    before = instant() - timedelta(days=context.settings.job_history_days)
    old = sa.select(_ROW.id).where(_ROW.created_at < before).limit(_FORGOTTEN_AT_ONCE)
    ids = context.database.scalars(old)
    if ids:
        context.database.change(webhook_deliveries.delete().where(_ROW.id.in_(ids)))
    return len(ids)


def _replay(context: ServiceContext, connection: Connection, rows: Sequence[Row[Any]]) -> None:
    again = {
        "status": DeliveryStatus.PENDING, "attempts": 0, "ordered_at": instant(),
        "next_attempt_at": None, "problem": None, "failed_at": None, "delivered_at": None,
        "response_status": None, "response_body": None,
    }  # fmt: skip
    for row in rows:
        mine = webhook_deliveries.update().where(_ROW.id == row.id)
        connection.execute(mine.values(**again))
        outbox.order(context, connection, row.tenant_id, row.id, row.orders + 1)


def _need_url(context: ServiceContext, url: str) -> None:
    try:
        validate_url(url, context.settings.webhook_networks)
    except ValueError as error:
        raise InvalidRequest(str(error), pointer="/url") from None


def _need_enabled(row: Row[Any]) -> Row[Any]:
    if row.disabled_at is not None:
        raise Obstructed(
            f"{outbox.DISABLED}: {row.disabled_because}", advice='enable it: {"enabled": true}'
        )
    return row


def _delivery_row(
    connection: Connection, tenant_id: str, webhook_id: str, delivery_id: str, *, lock: bool = False
) -> Row[Any]:
    query = sa.select(webhook_deliveries).where(
        _ROW.id == delivery_id, _ROW.webhook_id == webhook_id, _ROW.tenant_id == tenant_id
    )
    row = connection.execute(query.with_for_update() if lock else query).one_or_none()
    if row is None:
        raise RecordNotFound("there is no such delivery")
    return row


def _facts(row: Row[Any]) -> dict[str, Any]:
    """What its columns do not say as it is answered."""
    previous = row.previous_secret_until
    return {
        "enabled": row.disabled_at is None,
        "previous_secret_until": rfc3339(previous) if previous and previous > instant() else None,
    }


def _with_secret(installation: bytes, row: Row[Any]) -> SecretWebhook:
    secret = secret_of(installation, row.id, row.secret_number)
    return SecretWebhook.of_row(row, secret=secret_text(secret), **_facts(row))


def _delivery(row: Row[Any]) -> Delivery:
    return Delivery.of_row(row, message=json.loads(row.body))


WEBHOOKS: Final = Repository(
    webhooks,
    "webhook",
    lambda _, rows: [Webhook.of_row(row, **_facts(row)) for row in rows],
    WebhookList,
    {},
)
"""The webhooks of tenants."""
