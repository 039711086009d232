"""Who asks: organisations, their keys, and what was answered to requests that may come again."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    String,
    Text,
)

from fragdex.service.records.tables.columns import at, of_tenant, own_id, row_bytes, table

__all__ = ["keys", "rates", "replays", "schema", "secrets", "tenants"]

tenants = table(
    "tenants",
    own_id(),
    Column("name", Text, nullable=False, unique=True),
    # its own limits; null: those of the settings
    Column("max_stored_bytes", BigInteger),
    Column("max_render_seconds", Float),
    Column("max_render_cost", Float),
    Column("max_jobs", Integer),
    Column("retention_days", Float),
    at("created_at", needed=True),
)

keys = table(
    "keys",
    own_id(),
    of_tenant(),
    # HMAC-SHA-256 of the secret, keyed by secrets["api-keys"]
    Column("secret_hash", LargeBinary(32), nullable=False),
    # what it is for
    Column("name", Text, nullable=False, default=""),
    # `read`, `write` or `admin`; each includes those before it
    Column("scope", String(10), nullable=False, default="write"),
    at("created_at", needed=True),
    at("expires_at"),
    at("revoked_at"),
    # to a minute
    at("last_used_at"),
    # the secret before the last rotation, and how long it is still accepted
    Column("previous_hash", LargeBinary(32)),
    at("previous_until"),
)

rates = table(
    "rates",
    Column("key_id", String(36), primary_key=True),
    # seconds since 1970, by the database's clock
    Column("full_at", Float, nullable=False),
)
"""How far each key has used its rate; on PostgreSQL without a log (UNLOGGED)."""

secrets = table(
    "secrets",
    Column("name", String(40), primary_key=True),
    Column("value", LargeBinary, nullable=False),
)

schema = table(
    "schema",
    Column("version", String(10), primary_key=True),
    Column("compatible_since", String(10), nullable=False),
)
"""One row: the version of the tables, and the oldest whose processes may run on them."""

replays = table(
    "replays",
    of_tenant(primary_key=True),
    Column("key", String(255), primary_key=True),
    # sha256 of method, path and body
    Column("request_hash", LargeBinary(32), nullable=False),
    Column("status", Integer),  # null while the first request runs
    Column("headers", JSON),
    Column("body", LargeBinary),
    at("created_at", needed=True),
    # while the first request runs, its process moves this forward
    at("alive_until"),
    row_bytes("headers", "body"),
)
Index(None, replays.c.tenant_id, replays.c.row_bytes)
Index(None, replays.c.created_at)
