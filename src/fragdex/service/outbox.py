"""Events for webhooks, written in the transaction of the change that they report.

So an event is there if, and only if, its change is: whoever dies, whenever. Each webhook that wants
an event gets a delivery of its own, and a job that sends it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from fragdex.service.context import ServiceContext
from fragdex.service.records.identifiers import instant, new_id, rfc3339
from fragdex.service.records.tables import webhook_deliveries, webhooks

DELIVER: Final = "webhook"
"""The name of the work that sends a delivery."""

PING: Final = "webhook.ping"
EVENT_TYPES: Final = {
    "file.uploaded": "the last byte of an image, caption file, video or audio file has come",
    "file.ready": "a file can be used: a video has its tracks and its index",
    "file.failed": "a file is invalid, or its processing failed; `problem` says why",
    "render.completed": "the result of a render can be downloaded",
    "render.failed": "a render failed; `problem` says why",
    "render.cancelled": "a render was cancelled",
    "transcription.completed": "the words of a track can be read",
    "transcription.failed": "a transcription failed or was cancelled; `problem` says why",
    PING: "a test event was requested",
}
"""Every type of event, and when it is sent."""

DISABLED: Final = "the webhook is disabled"


def wants(patterns: Iterable[str], kind: str) -> bool:
    """Whether patterns such as `render.*` name a type of event; a ping is wanted by all."""
    return kind == PING or any(fnmatchcase(kind, pattern) for pattern in patterns)


def emit(
    context: ServiceContext,
    connection: Connection,
    tenant_id: str,
    kind: str,
    data: Mapping[str, Any],
) -> None:
    """Have a tenant's webhooks told of a change, in the transaction of that change.

    A webhook that is disabled gets a failed delivery, which can be replayed.

    Args:
        kind: of `EVENT_TYPES`.
        data: JSON: the id of what changed, its state, and why it failed.
    """
    assert kind in EVENT_TYPES, kind
    columns = (webhooks.c.id, webhooks.c.types, webhooks.c.disabled_at)
    # Nobody deletes one of them until its delivery is written.
    query = sa.select(*columns).where(webhooks.c.tenant_id == tenant_id)
    for row in connection.execute(query.with_for_update(read=True, key_share=True)).all():
        if wants(row.types, kind):
            add_delivery(context, connection, tenant_id, row, kind, data)


def add_delivery(
    context: ServiceContext,
    connection: Connection,
    tenant_id: str,
    webhook: Any,
    kind: str,
    data: Mapping[str, Any],
) -> str:
    """Write a delivery, and order that it is sent; returns its id.

    Args:
        webhook: a row with `id` and `disabled_at`.
    """
    now = instant()
    # `topic` is what receivers that are older than the standard read.
    message = {"type": kind, "topic": kind, "timestamp": rfc3339(now), "data": dict(data)}
    disabled = webhook.disabled_at is not None
    row = {
        "id": new_id(),
        "tenant_id": tenant_id,
        "webhook_id": webhook.id,
        "type": kind,
        "body": json.dumps(message, separators=(",", ":")),
        "status": "failed" if disabled else "pending",
        "attempts": 0,
        "orders": 0,
        "ordered_at": now,
        "problem": DISABLED if disabled else None,
        "created_at": now,
        "failed_at": now if disabled else None,
    }
    connection.execute(webhook_deliveries.insert().values(**row))
    if not disabled:
        order(context, connection, tenant_id, str(row["id"]), 1)
    return str(row["id"])


def order(
    context: ServiceContext,
    connection: Connection,
    tenant_id: str,
    delivery_id: str,
    number: int,
    delay_seconds: float = 0.0,
) -> None:
    """Have the attempt of a number made; those of lower numbers do nothing from now on."""
    mine = webhook_deliveries.update().where(webhook_deliveries.c.id == delivery_id)
    connection.execute(mine.values(orders=number))
    context.jobs.enqueue(
        connection, DELIVER, delivery_id, {"number": number},
        tenant_id=tenant_id, again=number, delay_seconds=delay_seconds,
    )  # fmt: skip
