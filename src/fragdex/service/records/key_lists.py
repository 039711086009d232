"""Keys as lists show them: all but their secrets."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Row

from fragdex.errors import RecordNotFound
from fragdex.service.records import tables
from fragdex.service.records.database import Database
from fragdex.service.records.identifiers import instant
from fragdex.service.records.pages import page

__all__ = ["ListedKey", "list_keys", "page_of_keys", "read_key", "tenant_of"]


@dataclass(frozen=True, slots=True)
class ListedKey:
    """A key without its secret.

    Attributes:
        last_used_at: to about a minute; by itself or by a URL token that it signed.
        previous_until: how long the secret before the last rotation is accepted.
    """

    id: str
    tenant_name: str
    name: str
    scope: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    previous_until: datetime | None
    last_used_at: datetime | None

    @property
    def status(self) -> str:
        """`valid`, `expired` or `revoked`."""
        if self.revoked_at is not None:
            return "revoked"
        over = self.expires_at is not None and self.expires_at <= instant()
        return "expired" if over else "valid"


_KEY, _TENANT = tables.keys.c, tables.tenants.c
_COLUMNS: list[sa.ColumnElement[Any]] = [
    _KEY.id, _TENANT.name.label("tenant_name"), _KEY.name, _KEY.scope, _KEY.created_at,
    _KEY.expires_at, _KEY.revoked_at, _KEY.previous_until, _KEY.last_used_at,
]  # fmt: skip
_ROWS: sa.Select[Any] = sa.select(*_COLUMNS).join_from(
    tables.keys, tables.tenants, _TENANT.id == _KEY.tenant_id
)


def list_keys(database: Database) -> list[ListedKey]:
    """All keys of all tenants, revoked ones too, oldest first."""
    with database.read() as connection:
        return [_listed(row) for row in connection.execute(_ROWS.order_by(_KEY.id))]


def page_of_keys(
    database: Database, tenant_id: str, limit: int, cursor: str | None
) -> tuple[list[ListedKey], str | None]:
    """Keys of a tenant, revoked ones too, newest first, and the cursor of the next page.

    Raises:
        InvalidRequest: as `page`.
    """
    mine = _ROWS.where(_KEY.tenant_id == tenant_id)
    with database.read() as connection:
        found = page(connection, mine, tables.keys, limit, cursor)
    return [_listed(row) for row in found.rows], found.next_cursor


def read_key(database: Database, tenant_id: str, key_id: str) -> ListedKey:
    """A key of a tenant.

    Raises:
        RecordNotFound: it has none of this id.
    """
    mine = _ROWS.where(_KEY.tenant_id == tenant_id, _KEY.id == key_id)
    with database.read() as connection:
        found = connection.execute(mine).one_or_none()
    if found is None:
        raise RecordNotFound("there is no such key")
    return _listed(found)


def tenant_of(database: Database, key_id: str) -> str:
    """The id of the tenant of a key.

    Raises:
        RecordNotFound: there is no such key.
    """
    with database.read() as connection:
        found = connection.scalar(sa.select(_KEY.tenant_id).where(_KEY.id == key_id))
    if found is None:
        raise RecordNotFound("there is no such key")
    return str(found)


def _listed(row: Row[Any]) -> ListedKey:
    return ListedKey(**row._mapping)
