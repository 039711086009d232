"""Records of one table that belong to tenants: found by their ids, and listed newest first.

`FileRepository` is of the files of one type. All of them stand in the table `files`; a table of
another family has `filename`, `mime_type`, `byte_size`, `md5`, `created_at`, `completed_at` and
`expires_at`, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Generic, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from fragdex.errors import BytesMissing, RecordNotFound, TooLarge
from fragdex.record import record
from fragdex.service.config import Settings
from fragdex.service.context import ServiceContext
from fragdex.service.outbox import emit
from fragdex.service.records import deletion
from fragdex.service.records.blobs import StoredBytes
from fragdex.service.records.identifiers import instant, md5_text, new_id, rfc3339
from fragdex.service.records.pages import page
from fragdex.service.records.tables import blob_uses, blobs, files, uploads
from fragdex.service.uploads.model import Arrival, Arrived, Target
from fragdex.service.uploads.operations import begin, no_bytes
from fragdex.service.web.fields import Listed

Record = TypeVar("Record")
Page = TypeVar("Page", bound=Listed)


class Repository(Generic[Record, Page]):
    """The records of one family. Another tenant's are never found.

    Args:
        table: its rows, with `id` and `tenant_id`.
        noun: what one is called in errors.
        records: rows as the records that callers see, in their order.
        listed: a page of records, in its one member next to `next_cursor`.
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
        row = connection.execute(query, {"tenant": tenant_id, "id": record_id}).one_or_none()
        if row is None:
            raise self.not_found()
        return row

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
        only: sa.ColumnElement[bool] | None = None,
    ) -> Page:
        """One page of records, newest first.

        Args:
            status: those alone; None: all.
            only: what else is true of their rows.

        Raises:
            InvalidRequest: a limit out of bounds, or no cursor of ours.
        """
        wanted = self._rows.where(self.table.c.tenant_id == tenant_id)
        if status is not None:
            own = (
                self.table.c.status == status if self._statuses is None else self._statuses[status]
            )
            wanted = wanted.where(own)
        if only is not None:
            wanted = wanted.where(only)
        with context.database.read() as connection:
            listed = page(connection, wanted, self.table, limit, cursor, self._weight)
            records = self._records(connection, listed.rows)
        (member,) = self._listed.model_fields.keys() - {"next_cursor"}
        return self._listed.model_validate({member: records, "next_cursor": listed.next_cursor})

    def not_found(self) -> RecordNotFound:
        """What is raised where there is no such record."""
        return RecordNotFound(f"there is no such {self._noun}")


class FileStatus(StrEnum):
    """How far a file is."""

    CREATED = "created"
    UPLOADING = "uploading"
    READY = "ready"


@record(frozen=True, slots=True)
class AnnouncedFile:
    """A file to come; `empty` is all there is of one that has no bytes."""

    record_id: str
    tenant_id: str
    byte_size: int | None
    md5: bytes | None
    empty: Arrived | None


Examine = Callable[[ServiceContext, Arrived, str], Mapping[str, Any]]


def _nothing(context: ServiceContext, arrived: Arrived, mime_type: str) -> Mapping[str, Any]:
    """Bytes that are taken as they are."""
    return {}


class FileRepository(Repository[Record, Page]):
    """The records of the files of one type.

    Args:
        family: their type, and their word in `uploads` and `blob_uses`.
        table: where they stand; all there is in another one than `files` is of the family.
        to_record: a row (of the table, with `next_byte`) as the record that callers see.
        statuses: which rows a list of one status shows; None: the three of `FileStatus`.
        limit: bytes that one of them may have.
        examine: looks at the bytes of one, by the type that was announced; returns values of more
            columns. Not asked where there are no bytes: those are complete at once, as for every
            family.
    """

    def __init__(
        self,
        family: str,
        noun: str,
        to_record: Callable[[Any], Record],
        listed: type[Page],
        statuses: Mapping[Any, sa.ColumnElement[bool]] | None = None,
        *,
        limit: Callable[[Settings], int],
        examine: Examine = _nothing,
        table: sa.Table = files,
    ) -> None:
        begun = sa.func.coalesce(uploads.c.next_byte, 0) > 0
        complete = table.c.completed_at.is_not(None)
        self._complete = complete
        # a client that looks an md5 up resumes where most bytes are
        arrived = sa.func.coalesce(uploads.c.next_byte, sa.literal_column("0"))
        order = (complete.desc(), arrived.desc(), table.c.id.desc())
        statuses = statuses or {
            FileStatus.READY: complete,
            FileStatus.UPLOADING: ~complete & begun,
            FileStatus.CREATED: ~complete & ~begun,
        }
        self.family, self.record = family, to_record
        self._limit, self._examine = limit, examine
        self._typed = table is files
        # no parameters but those with names: it is part of a fast read
        of_family = uploads.c.family == sa.literal_column(f"'{family}'")
        own = of_family & (uploads.c.record_id == table.c.id)
        told = uploads.c.byte_size.label("told_size")
        rows = sa.select(table, uploads.c.next_byte, told).select_from(
            table.outerjoin(uploads, own)
        )
        if self._typed:
            rows = rows.where(table.c.type == sa.literal_column(f"'{family}'"))
        super().__init__(
            table, noun, lambda _, given: [to_record(row) for row in given], listed, statuses,
            rows,
        )  # fmt: skip
        # nor a limit, which has one of its own; there are few of an md5
        of_tenant = self._rows.where(table.c.tenant_id == sa.bindparam("tenant"))
        self._by_md5 = of_tenant.where(table.c.md5 == sa.bindparam("md5")).order_by(*order)

    def announce(
        self,
        context: ServiceContext,
        tenant_id: str,
        byte_size: int | None,
        md5: bytes | None,
        values: Mapping[str, Any],
    ) -> tuple[Record, bool]:
        """A record for a file to come, and whether it is a new one; `values` are its other columns.

        One of the same md5 and size is given again; where no size is announced, of the same md5.
        Raises as `ensure_within` and `begin`.
        """
        self.ensure_within(context, byte_size)
        arrival = self.arrival(context)
        new = self.new(context, tenant_id, byte_size, md5, arrival)
        with context.database.write() as connection:
            known = None if md5 is None else self.known(connection, tenant_id, md5, byte_size)
            if known is not None:
                return self.record(known), False
            return self.add(context, connection, new, arrival, values), True

    def new(
        self,
        context: ServiceContext,
        tenant_id: str,
        byte_size: int | None,
        md5: bytes | None,
        arrival: Arrival,
    ) -> AnnouncedFile:
        """What `add` needs of a file to come; raises as `uploads.no_bytes`."""
        record_id = new_id()
        empty = no_bytes(context, tenant_id, self.family, record_id, byte_size, md5, arrival)
        return AnnouncedFile(record_id, tenant_id, byte_size, md5, empty)

    def add(
        self,
        context: ServiceContext,
        connection: Connection,
        new: AnnouncedFile,
        arrival: Arrival,
        values: Mapping[str, Any],
    ) -> Record:
        """A new record, and the upload of its bytes begun, in the caller's transaction."""
        own = {"tenant_id": new.tenant_id, "byte_size": new.byte_size, "md5": new.md5}
        row = {"id": new.record_id, **own, "created_at": instant(), **values}
        if self._typed:
            row["type"] = self.family
        connection.execute(self.table.insert().values(row))
        begin(
            context, connection, new.tenant_id, self.family, new.record_id, new.byte_size, new.md5,
            arrival, new.empty,
        )  # fmt: skip
        return self.read(connection, new.tenant_id, new.record_id)

    def get(self, context: ServiceContext, tenant_id: str, record_id: str) -> Record:
        """The record of an id; raises as `row`."""
        rows = context.database.rows(self._by_id, tenant=tenant_id, id=record_id)
        if not rows:
            raise self.not_found()
        return self.record(rows[0])

    def find(self, context: ServiceContext, tenant_id: str, md5: bytes) -> Record:
        """The record of an md5; a complete one before others, then the one with most bytes.

        Raises:
            RecordNotFound: this tenant has none of it.
        """
        rows = context.database.rows(self._by_md5, tenant=tenant_id, md5=md5)
        if not rows:
            raise self.not_found()
        return self.record(rows[0])

    def known(
        self, connection: Connection, tenant_id: str, md5: bytes, byte_size: int | None
    ) -> Row[Any] | None:
        """A row to give again where one of this md5 and size is requested; a complete one first."""
        same = self._by_md5.limit(1)
        if byte_size is not None:
            same = same.where(self.table.c.byte_size == byte_size)
        return connection.execute(same, {"tenant": tenant_id, "md5": md5}).first()

    def delete(self, context: ServiceContext, tenant_id: str, record_id: str) -> None:
        """Delete a record; its bytes go with the last record that needs them.

        Raises:
            RecordNotFound: this tenant has none of it.
        """
        with context.database.write() as connection:
            self.row(connection, tenant_id, record_id)
            deletion.remove(connection, self.family, record_id)

    def target(self, context: ServiceContext, tenant_id: str, record_id: str) -> Target:
        """Where the bytes of a file go."""
        limit = self._limit(context.settings)
        return Target(self.family, record_id, self.arrival(context), limit)

    def arrival(self, context: ServiceContext) -> Arrival:
        """What becomes of the bytes of a file: they are examined, and the record is complete."""
        row = self.table.c

        def look(arrived: Arrived) -> Mapping[str, Any] | None:
            if not arrived.byte_size:
                return None
            declared = sa.select(row.mime_type).where(row.id == arrived.record_id)
            mime_type = context.database.scalar(declared)
            if mime_type is None:
                raise self.not_found()
            return self._examine(context, arrived, mime_type)

        def finished(connection: Connection, arrived: Arrived) -> None:
            values = {
                "md5": arrived.md5,
                "byte_size": arrived.byte_size,
                "completed_at": instant(),
                **(arrived.examined or {}),
            }
            mine = self.table.update().where(row.id == arrived.record_id)
            connection.execute(mine.values(**values))
            if not self._typed:
                return
            data = {
                "id": arrived.record_id,
                "type": self.family,
                "md5": md5_text(arrived.md5),
                "byte_size": arrived.byte_size,
            }
            emit(context, connection, arrived.tenant_id, "file.uploaded", data)
            emit(context, connection, arrived.tenant_id, "file.ready", data)

        return Arrival(finished=finished, examine=look)

    def ensure_within(self, context: ServiceContext, byte_size: int | None) -> None:
        """Refuse a file that is announced as larger than one may be.

        Raises:
            TooLarge: with the limit.
        """
        limit = self._limit(context.settings)
        if byte_size is not None and byte_size > limit:
            raise TooLarge(
                f"the {self._noun} is over the limit of {limit} bytes",
                pointer="/byte_size",
                more={"limit": limit},
            )

    def stored(self, context: ServiceContext, tenant_id: str, record_id: str) -> StoredBytes:
        """Where the bytes of a record are.

        Raises:
            RecordNotFound: this tenant has none of it.
            BytesMissing: they are not all here yet.
        """
        table = self.table
        use = blob_uses.c
        own = (use.tenant_id == table.c.tenant_id) & (use.record_id == table.c.id)
        used = (blobs.c.tenant_id == use.tenant_id) & (blobs.c.sha256 == use.sha256)
        columns = (blobs.c.store_key, blobs.c.byte_size, blobs.c.md5, blobs.c.sha256)
        mine = (table.c.id == record_id) & (table.c.tenant_id == tenant_id) & self._complete
        if self._typed:
            mine &= table.c.type == self.family
        wanted = sa.select(*columns, table.c.mime_type).select_from(
            table.join(blob_uses, own & (use.family == self.family)).join(blobs, used)
        )
        with context.database.read() as connection:
            row = connection.execute(wanted.where(mine)).first()
            if row is None:
                status = _status(self.row(connection, tenant_id, record_id))
                raise BytesMissing(
                    f"bytes of this {self._noun} are missing", more={"state": status}
                )
        return StoredBytes(*row)


def facts(row: Any) -> dict[str, Any]:
    """What every record says about its file, out of a row with `next_byte`."""
    return {
        "id": row.id,
        "filename": row.filename,
        "byte_size": row.told_size if row.byte_size is None else row.byte_size,
        "next_byte": _next_byte(row),
        "complete": row.completed_at is not None,
        "status": _status(row),
        "md5": None if row.md5 is None else md5_text(row.md5),
        "created_at": rfc3339(row.created_at),
        "completed_at": rfc3339(row.completed_at),
        "expires_at": rfc3339(row.expires_at),
    }


def _next_byte(row: Any) -> int:
    next_byte: int = row.byte_size if row.completed_at is not None else row.next_byte or 0
    return next_byte


def _status(row: Any) -> FileStatus:
    if row.completed_at is not None:
        return FileStatus.READY
    return FileStatus.UPLOADING if row.next_byte else FileStatus.CREATED
