"""Records of one table that belong to tenants: found by their ids, and listed newest first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from fragdex.errors import RecordNotFound
from fragdex.service.context import ServiceContext
from fragdex.service.records.pages import page
from fragdex.service.web.fields import Listed

__all__ = ["Repository"]

Record = TypeVar("Record")
Page = TypeVar("Page", bound=Listed)


class Repository(Generic[Record, Page]):
    """The records of one family. Another tenant's are never found.

    Args:
        table: its rows, with `id` and `tenant_id`.
        noun: what one is called in errors.
        records: rows as the records that callers see, in their order.
        listed: a page of records, in its one member beside `next_cursor`.
        statuses: which rows a list of one status shows; None: those whose `status` it is.
        rows: what is read of the table, and of others with it; None: all of its columns.
        weight: bytes that a row counts with in a page of a list, as for `pages.page`.
    """

    def __init__(
        self,
        table: sa.Table,
        noun: str,
        records: Callable[[Connection, Sequence[Any]], list[Record]],
        listed: type[Page],
        statuses: Mapping[Any, sa.ColumnElement[bool]] | None = None,
        rows: sa.Select[Any] | None = None,
        weight: sa.ColumnElement[int] | None = None,
    ) -> None:
        self.table, self._noun, self._records, self._listed = table, noun, records, listed
        self._statuses, self._weight = statuses, weight
        self._rows = sa.select(table) if rows is None else rows
        mine = table.c.tenant_id == sa.bindparam("tenant"), table.c.id == sa.bindparam("id")
        self._by_id = self._rows.where(*mine)

    def row(
        self, connection: Connection, tenant_id: str, record_id: str, *, lock: bool = False
    ) -> Row[Any]:
        """The row of an id.

        Args:
            lock: hold it until the end of the transaction, so that nobody deletes or changes it.

        Raises:
            RecordNotFound: this tenant has none of it.
        """
        query = self._by_id.with_for_update(of=self.table) if lock else self._by_id
        found = connection.execute(query, {"tenant": tenant_id, "id": record_id}).one_or_none()
        if found is None:
            raise self.not_found()
        return found

    def read(self, connection: Connection, tenant_id: str, record_id: str) -> Record:
        """The record of an id, as this transaction sees it; raises as `row`."""
        return self._records(connection, [self.row(connection, tenant_id, record_id)])[0]

    def get(self, context: ServiceContext, tenant_id: str, record_id: str) -> Record:
        """The record of an id; raises as `row`."""
        with context.database.read() as connection:
            return self.read(connection, tenant_id, record_id)

    def page(
        self,
        context: ServiceContext,
        tenant_id: str,
        limit: int,
        cursor: str | None,
        status: Any,
    ) -> Page:
        """One page of records, newest first.

        Args:
            status: those alone; None: all.

        Raises:
            InvalidRequest: a limit out of bounds, or no cursor of ours.
        """
        wanted = self._rows.where(self.table.c.tenant_id == tenant_id)
        if status is not None:
            own = (
                self.table.c.status == status if self._statuses is None else self._statuses[status]
            )
            wanted = wanted.where(own)
        with context.database.read() as connection:
            found = page(connection, wanted, self.table, limit, cursor, self._weight)
            records = self._records(connection, found.rows)
        (member,) = self._listed.model_fields.keys() - {"next_cursor"}
        return self._listed.model_validate({member: records, "next_cursor": found.next_cursor})

    def not_found(self) -> RecordNotFound:
        """What is raised where there is no such record."""
        return RecordNotFound(f"there is no such {self._noun}")
