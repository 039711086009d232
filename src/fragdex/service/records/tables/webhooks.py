"""Who wants to hear of changes by HTTP, and what was sent, or is to be."""

from __future__ import annotations

from sqlalchemy import JSON, Column, Index, Integer, String, Text

from fragdex.service.records.tables.columns import at, of, of_tenant, own_id, row_bytes, table

__all__ = ["webhook_deliveries", "webhooks"]

webhooks = table(
    "webhooks",
    own_id(),
    of_tenant(),
    Column("url", Text, nullable=False),
    Column("description", Text, nullable=False),
    # patterns of `outbox.EVENT_TYPES`
    Column("types", JSON, nullable=False),
    # counts rotations; the secret itself is derived from it and stands nowhere
    Column("secret_number", Integer, nullable=False),
    # until then deliveries are signed with the secret before, too
    at("previous_secret_until"),
    # when a delivery was last accepted
    at("accepted_at"),
    at("disabled_at"),
    Column("disabled_because", Text),
    at("created_at", needed=True),
)
Index(None, webhooks.c.tenant_id, webhooks.c.id)

webhook_deliveries = table(
    "webhook_deliveries",
    # also the webhook-id header: a receiver knows by it what it has had already
    own_id(),
    of_tenant(),
    of("webhooks", "webhook_id"),
    Column("type", String(40), nullable=False),
    # as it is sent, byte for byte
    Column("body", Text, nullable=False),
    Column("status", String(10), nullable=False),
    # since it was ordered last
    Column("attempts", Integer, nullable=False),
    # attempts ordered in all: the number of the one that may run
    Column("orders", Integer, nullable=False),
    at("ordered_at", needed=True),
    at("next_attempt_at"),
    # of the last attempt
    Column("response_status", Integer),
    Column("response_body", Text),
    Column("problem", Text),
    at("created_at", needed=True),
    at("delivered_at"),
    at("failed_at"),
    row_bytes("body", "response_body", "problem"),
)
Index(None, webhook_deliveries.c.webhook_id, webhook_deliveries.c.id)
Index(None, webhook_deliveries.c.tenant_id, webhook_deliveries.c.row_bytes)
Index(None, webhook_deliveries.c.created_at)
