"""Limits of a tenant's own, and what it uses of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

import sqlalchemy as sa
from pydantic import ByteSize, Field, TypeAdapter, ValidationError
from sqlalchemy.engine import Connection

from fragdex.errors import InvalidRequest, QuotaExceeded, RecordNotFound
from fragdex.record import record
from fragdex.service.records.database import Database
from fragdex.service.records.identifiers import instant, rfc3339
from fragdex.service.records.tables import blobs, keys, metadata, tenants, uploads

_Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_KINDS: Final[Mapping[str, TypeAdapter[Any]]] = {
    # as large as a column holds; a retention of a century ends at a date
    "max_stored_bytes": TypeAdapter(Annotated[ByteSize, Field(gt=0, lt=1 << 63)]),
    "max_render_seconds": TypeAdapter(_Seconds),
    "max_render_cost": TypeAdapter(_Seconds),
    "max_jobs": TypeAdapter(Annotated[int, Field(gt=0, lt=1 << 31)]),
    "retention_days": TypeAdapter(Annotated[float, Field(gt=0, le=36_500)]),
}
_RESERVED_FOR: Final = timedelta(days=1)
"""So long after its last sign of life an unfinished upload counts with its announced size."""

_LEAST_ROW_BYTES: Final = 1 << 20
"""A quota is of stored bytes: the records of even a small one may be so large."""

_COUNTED: Final = [table.c for table in metadata.sorted_tables if "row_bytes" in table.c]


@record(frozen=True, slots=True)
class TenantLimits:
    """What one tenant may use; None: no limit of its own, the settings decide.

    Attributes:
        max_stored_bytes: of its stored bytes and announced uploads together.
        max_render_seconds: of work on the slices of one render; in place of
            `max_render_work_seconds`.
        max_render_cost: seconds of processor time of the slices of one render.
        max_jobs: unfinished jobs; in place of `max_tenant_jobs`.
        retention_days: after which its files and finished renders are deleted.
    """

    max_stored_bytes: int | None = None
    max_render_seconds: float | None = None
    max_render_cost: float | None = None
    max_jobs: int | None = None
    retention_days: float | None = None


_COLUMNS: Final = [tenants.c[name] for name in TenantLimits.__dataclass_fields__]


def limits_of(connection: Connection, tenant_id: str) -> TenantLimits:
    """The limits of a tenant's own."""
    row = connection.execute(sa.select(*_COLUMNS).where(tenants.c.id == tenant_id)).one_or_none()
    return TenantLimits() if row is None else TenantLimits(*row)


def lock_tenant(connection: Connection, tenant_id: str) -> None:
    """Let transactions that count something of one tenant wait for each other, until they end.

    Rows that only name the tenant are not held up; SQLite has one writer anyway.
    """
    mine = sa.select(tenants.c.id).where(tenants.c.id == tenant_id)
    connection.execute(mine.with_for_update(key_share=True))


def parse_limits(texts: Mapping[str, str]) -> dict[str, float | None]:
    """Limits by their names, read from text: byte sizes such as `10GB`, numbers, or `none`.

    Raises:
        InvalidRequest: it is none of these, or not above zero.

    >>> parse_limits({"max_stored_bytes": "10GB", "retention_days": "none"})
    {'max_stored_bytes': 10000000000, 'retention_days': None}
    """
    return {name: _parsed(name, text) for name, text in texts.items()}


def _parsed(name: str, text: str) -> float | None:
    if text.lower() == "none":
        return None
    try:
        value: float = _KINDS[name].validate_python(text)
    except ValidationError as error:
        raise InvalidRequest(
            f"--{name.replace('_', '-')}: {error.errors()[0]['msg'].lower()}",
            expected="a number above 0, or none",
            found=repr(text),
        ) from None
    return value


def read_limits(database: Database, tenant_name: str) -> tuple[str, TenantLimits]:
    """The id and the limits of the tenant of a name.

    Raises:
        RecordNotFound: there is no such tenant.
    """
    with database.read() as connection:
        query = sa.select(tenants.c.id).where(tenants.c.name == tenant_name)
        tenant_id = connection.scalar(query)
        if tenant_id is None:
            raise RecordNotFound(
                f"there is no tenant called {tenant_name}",
                advice="a tenant is created with its first key",
            )
        return tenant_id, limits_of(connection, tenant_id)


def list_tenants(database: Database) -> list[dict[str, Any]]:
    """Id, name, creation, valid keys and bytes of each tenant, the oldest first."""
    now = instant()
    valid = keys.c.revoked_at.is_(None) & (keys.c.expires_at.is_(None) | (keys.c.expires_at > now))
    with database.read() as connection:
        rows = connection.execute(
            sa.select(tenants.c.id, tenants.c.name, tenants.c.created_at).order_by(tenants.c.id)
        ).all()
        counted = sa.select(keys.c.tenant_id, sa.func.count()).where(valid)
        counts = connection.execute(counted.group_by(keys.c.tenant_id)).all()
        of = {tenant_id: int(count) for tenant_id, count in counts}
        return [
            {
                "id": row.id,
                "tenant": row.name,
                "created_at": rfc3339(row.created_at),
                "keys": of.get(row.id, 0),
                "stored_bytes": stored_bytes(connection, row.id),
                "row_bytes": row_bytes(connection, row.id),
            }
            for row in rows
        ]


def set_limits(
    database: Database, tenant_id: str, changed: Mapping[str, float | None]
) -> TenantLimits:
    """Change limits of a tenant, by their names; what is stored stays. Returns all of its own."""
    with database.write() as connection:
        mine = tenants.update().where(tenants.c.id == tenant_id)
        connection.execute(mine.values(**changed))
        return limits_of(connection, tenant_id)


def stored_bytes(connection: Connection, tenant_id: str) -> int:
    """Bytes that count for a tenant's quota.

    Its bytes in the store, once per SHA-256 and whoever made them (of what is composed, those of
    its record), and unfinished uploads: with
    their announced size where they were announced, or got a byte, within a day, else, and where
    nobody has said it, with what is here of them. Indexes do not count.
    """
    row = uploads.c
    since = instant() - _RESERVED_FOR
    stored = sa.select(sa.func.coalesce(sa.func.sum(blobs.c.stored_bytes), 0)).where(
        blobs.c.tenant_id == tenant_id
    )
    known = sa.func.coalesce(row.byte_size, row.next_byte)
    size = sa.case((_is_reserved(since), known), else_=row.next_byte)
    coming = sa.select(sa.func.coalesce(sa.func.sum(size), 0)).where(
        row.tenant_id == tenant_id, row.completed_at.is_(None)
    )
    return int(connection.scalar(stored) or 0) + int(connection.scalar(coming) or 0)


def row_bytes(connection: Connection, tenant_id: str) -> int:
    """Bytes of a tenant's rows in the database.

    Their texts (names, metadata, data, the bodies of webhooks, answers kept for an
    Idempotency-Key, headers of tus), and 256 a row for what else it takes.
    """
    each = (
        sa.select(sa.func.coalesce(sa.func.sum(row.row_bytes), 0)).where(row.tenant_id == tenant_id)
        for row in _COUNTED
    )
    return sum(int(one) for one in connection.scalars(sa.union_all(*each)))


def _is_reserved(since: datetime) -> sa.ColumnElement[bool]:
    row = uploads.c
    return (row.created_at > since) | (row.written_at > since) | (row.lease_until > since)


_LIMIT = sa.select(tenants.c.max_stored_bytes).where(tenants.c.id == sa.bindparam("tenant"))


def ensure_within_quota(
    connection: Connection, tenant_id: str, *, rows: bool = True, coming: int = 0
) -> None:
    """Refuse what a transaction has written where its tenant stores too much with it.

    The quota holds for stored bytes, and once more for the rows of the database.

    Transactions of one tenant that come here wait for each other, so that each sees what the one
    before has written.

    Args:
        rows: look at the rows, too; not where work that is done leaves its result.
        coming: bytes that rows will have in addition to those written.

    Raises:
        QuotaExceeded: with the quota and what is used; to be rolled back.
    """
    if connection.scalar(_LIMIT, {"tenant": tenant_id}) is None:
        return
    lock_tenant(connection, tenant_id)
    most = connection.scalar(_LIMIT, {"tenant": tenant_id})
    used = stored_bytes(connection, tenant_id)
    if most is not None and used > most:
        raise QuotaExceeded(
            f"{used} bytes of this tenant would be stored, and no more than {most} may be"
            " (max_stored_bytes)",
            more={"limit": most, "stored_bytes": used},
            advice="delete what is not needed, or have the quota raised",
        )
    if most is None or not rows:
        return
    most, used = max(most, _LEAST_ROW_BYTES), row_bytes(connection, tenant_id) + coming
    if used > most:
        raise QuotaExceeded(
            f"the records of this tenant would have {used} bytes, and no more than {most} may be"
            " (max_stored_bytes)",
            expected="less metadata, data, names, and answers kept for an Idempotency-Key",
            more={"limit": most, "row_bytes": used},
            advice="delete records that are not needed, or have the quota raised",
        )
