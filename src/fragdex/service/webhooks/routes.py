"""Webhooks over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query, Response

from fragdex.errors import InvalidRequest, Obstructed, RecordNotFound
from fragdex.service.records.pages import DEFAULT_LIMIT
from fragdex.service.uploads.family import Family
from fragdex.service.web.auth import Asking, InContext
from fragdex.service.web.fields import Cursor, Limit, RecordId
from fragdex.service.web.idempotency import idempotency_key
from fragdex.service.web.problems import answers
from fragdex.service.web.routing import PREFIX, api_router
from fragdex.service.webhooks import operations
from fragdex.service.webhooks.model import (
    Delivery,
    DeliveryList,
    DeliveryStatus,
    NewWebhook,
    Replayed,
    Rotation,
    SecretWebhook,
    WantedReplay,
    Webhook,
    WebhookChange,
    WebhookList,
)

router = api_router("webhooks")
routes = Family(router, "/webhooks", "webhook")

NOT_FOUND = answers(RecordNotFound)
NOT_NOW = answers(RecordNotFound, Obstructed)


@router.post(
    "/webhooks",
    status_code=201,
    responses=answers(InvalidRequest, Obstructed),
    dependencies=[Depends(idempotency_key)],
)
def create_webhook(
    new: NewWebhook, response: Response, caller: Asking, context: InContext
) -> SecretWebhook:
    """Create a webhook: events are sent to a URL. The response has the secret, shown only once."""
    webhook = operations.create_webhook(context, caller.tenant_id, new)
    response.headers["Location"] = f"{PREFIX}/webhooks/{webhook.id}"
    return webhook


@router.get("/webhooks")
def list_webhooks(
    caller: Asking, context: InContext, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> WebhookList:
    """Webhooks, newest first."""
    return operations.WEBHOOKS.page(context, caller.tenant_id, limit, cursor, None)


routes.record(Webhook, operations.WEBHOOKS.get)


@router.patch("/webhooks/{id}", responses=NOT_FOUND)
def update_webhook(
    id: RecordId, change: WebhookChange, caller: Asking, context: InContext
) -> Webhook:
    """Change a webhook, or enable it again after failures disabled it."""
    return operations.update_webhook(context, caller.tenant_id, id, change)


routes.deletion(
    operations.delete_webhook,
    description="Delete a webhook and its deliveries; nothing more is sent.",
)


@router.post("/webhooks/{id}/rotate", responses=NOT_FOUND)
def rotate_webhook_secret(
    id: RecordId, rotation: Rotation, caller: Asking, context: InContext
) -> SecretWebhook:
    """Replace the secret; deliveries are signed with both for a day, or as requested."""
    return operations.rotate_secret(context, caller.tenant_id, id, rotation.previous_seconds)


@router.post("/webhooks/{id}/ping", status_code=202, responses=NOT_NOW)
def ping_webhook(id: RecordId, caller: Asking, context: InContext) -> Delivery:
    """Send a test event, `webhook.ping`, whatever the types of the webhook."""
    return operations.ping_webhook(context, caller.tenant_id, id)


@router.post("/webhooks/{id}/replay", status_code=202, responses=NOT_NOW)
def replay_failed_deliveries(
    id: RecordId, wanted: WantedReplay, caller: Asking, context: InContext
) -> Replayed:
    """Send failed deliveries again, oldest first, up to 200 per request."""
    return operations.replay_failed(context, caller.tenant_id, id, wanted.since)


@router.get("/webhooks/{id}/deliveries", responses=NOT_FOUND)
def list_webhook_deliveries(
    id: RecordId,
    caller: Asking,
    context: InContext,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
    status: Annotated[DeliveryStatus | None, Query(description="only those")] = None,
) -> DeliveryList:
    """Deliveries of a webhook, newest first, with their results."""
    return operations.list_deliveries(context, caller.tenant_id, id, limit, cursor, status)


@router.get("/webhooks/{id}/deliveries/{delivery_id}", responses=NOT_FOUND)
def get_webhook_delivery(
    id: RecordId, delivery_id: RecordId, caller: Asking, context: InContext
) -> Delivery:
    """A delivery."""
    return operations.get_delivery(context, caller.tenant_id, id, delivery_id)


@router.post("/webhooks/{id}/deliveries/{delivery_id}/replay", status_code=202, responses=NOT_NOW)
def replay_webhook_delivery(
    id: RecordId, delivery_id: RecordId, caller: Asking, context: InContext
) -> Delivery:
    """Send a delivery again now, with the same `webhook-id`."""
    return operations.replay_delivery(context, caller.tenant_id, id, delivery_id)
