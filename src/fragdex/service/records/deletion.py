"""Deleting records with all that hangs on them, by one table of who holds what."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from fragdex.record import record
from fragdex.service.records import blobs, tables, trash
from fragdex.service.records.database import Database
from fragdex.service.records.identifiers import first_id, instant


@record(frozen=True, slots=True)
class Holder:
    """What hangs on a record of a family, in addition to rows that the database deletes with it.

    Attributes:
        table: where its records stand.
        type: of its records, where the table has others too.
        columns: those that name objects of the store which are this record's alone.
        below: families whose records are named `ID/…` and go with this one.
        parts: what a record uses under names of their own, `ID/PART`.
    """

    table: sa.Table
    columns: tuple[str, ...] = ()
    type: str | None = None
    below: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()

    @property
    def own(self) -> sa.ColumnElement[bool]:
        """Which rows of the table are its records."""
        return sa.true() if self.type is None else self.table.c.type == self.type

    def names(self, record_id: str) -> list[str]:
        """What a record is called in `blob_uses` and `uploads`."""
        return [record_id, *(f"{record_id}/{part}" for part in self.parts)]


FAMILIES = {
    **{one.value: Holder(tables.files, ("index_key",), one) for one in tables.FileType},
    "isobmff": Holder(tables.isobmff_files, ("index_key", "index_json_key"), below=("tracks",)),
    "tracks": Holder(tables.isobmff_tracks, ("index_key",)),
    "tus": Holder(tables.tus_uploads),
    "renders": Holder(tables.renders, ("index_key",), parts=("page", "result")),
    "render_slices": Holder(tables.render_slices),
    "transcriptions": Holder(tables.transcriptions),
    "derived": Holder(tables.derived_files),
    "timelines": Holder(tables.timelines),
}
"""The words that `blob_uses` and `uploads` call families by; a track is named `ID/TRACK`."""


_BY_THEIR_FAMILY = frozenset({"tus"})
"""Those that are past their `expires_at` take a file with them, or are not over yet."""

_MADE, _SENT = tables.isobmff_files.c, tables.files.c
_NEEDED = sa.exists().where(
    _SENT.tenant_id == _MADE.tenant_id,
    _SENT.md5 == _MADE.md5,
    _SENT.sha256 == _MADE.sha256,
    _SENT.id != _MADE.id,
)
"""Whether an ISOBMFF file is what another upload of the same bytes became, too."""

_FILES = (*tables.FileType, "isobmff", "renders")
"""What a tenant's retention is about."""


def remove(connection: Connection, family: str, record_id: str) -> bool:
    """Delete a record, its uploads, its use of bytes and its objects; False where there is none."""
    holder = FAMILIES[family]
    hold_upload(connection, family, *holder.names(record_id))
    # before its bytes, as whoever makes something of it does
    query = (
        sa.select(holder.table).where(holder.own, _is(holder.table, record_id)).with_for_update()
    )
    row = connection.execute(query).first()
    if row is None:
        return False
    trash.discard(connection, *(row._mapping[column] for column in holder.columns))
    for name in holder.below:
        below = FAMILIES[name].table.c
        columns = [below[column] for column in FAMILIES[name].columns]
        query = sa.select(below.track_id, *columns).where(below.file_id == record_id)
        rows = [tuple(row) for row in connection.execute(query)]
        trash.discard(connection, *(key for _, *keys in rows for key in keys))
        _let_go(connection, name, *(f"{record_id}/{track_id}" for track_id, *_ in rows))
    _let_go(connection, family, *holder.names(record_id))
    connection.execute(holder.table.delete().where(_is(holder.table, record_id)))
    return True


def remove_made(connection: Connection, file_id: str) -> None:
    """Delete what an upload became, as `remove` does; not while another upload became the same.

    Then it is over in this moment for requests by its id, and goes after the other one.
    """
    mine = _MADE.id == file_id
    over = tables.isobmff_files.update().where(mine, _NEEDED).values(expires_at=instant())
    if not connection.execute(over).rowcount:
        remove(connection, "isobmff", file_id)


def _let_go(connection: Connection, family: str, *names: str) -> None:
    # an upload that ends holds its row, then its bytes, then its record
    forget_upload(connection, family, *names)
    blobs.release(connection, family, *names)


def hold_upload(connection: Connection, family: str, *record_ids: str) -> None:
    """Hold uploads until the end of the transaction, before their records are held.

    An upload that ends holds them in this order: in another one, the two wait for each other.
    """
    upload = tables.uploads.c
    which = (upload.family == family) & upload.record_id.in_(record_ids)
    query = sa.select(upload.record_id).where(which).order_by(upload.record_id)
    connection.execute(query.with_for_update())


def forget_upload(connection: Connection, family: str, *record_ids: str) -> None:
    """Delete the uploads of records; the sweep drops their drafts."""
    upload = tables.uploads.c
    which = (upload.family == family) & upload.record_id.in_(record_ids)
    connection.execute(tables.uploads.delete().where(which))


def expired(database: Database, limit: int = 1000) -> int:
    """Delete records that are past their `expires_at`; returns how many, at most `limit`."""
    deleted = 0
    for name, family in FAMILIES.items():
        if "expires_at" not in family.table.c or name in _BY_THEIR_FAMILY:
            continue
        due = family.table.c.expires_at <= instant()
        query = (
            sa.select(family.table.c.id).where(family.own, due, *_free(name)).limit(limit - deleted)
        )
        ids = database.scalars(query)
        for record_id in ids:
            with database.write() as connection:
                deleted += remove(connection, name, record_id)
    return deleted


def outlived(database: Database, limit: int = 1000) -> int:
    """Delete files and finished renders that are older than their tenants keep any.

    Returns how many were deleted, at most `limit`.
    """
    tenant, deleted = tables.tenants.c, 0
    ends = sa.select(tenant.id, tenant.retention_days).where(tenant.retention_days.is_not(None))
    tenants = database.all(ends)
    for tenant_id, days in tenants:
        before = instant() - timedelta(days=days)
        for name in _FILES:
            family = FAMILIES[name]
            row = family.table.c
            # ids begin with the time: their index finds the oldest
            old = (row.tenant_id == tenant_id) & (row.id < first_id(before))
            old &= family.own & (row.created_at <= before)
            if name == "renders":
                old &= row.completed_at.is_not(None) | row.failed_at.is_not(None)
            query = (
                sa.select(row.id).where(old, *_free(name)).order_by(row.id).limit(limit - deleted)
            )
            due = database.scalars(query)
            for record_id in due:
                with database.write() as connection:
                    deleted += remove(connection, name, record_id)
    return deleted


def _free(family: str) -> tuple[sa.ColumnElement[bool], ...]:
    """What has to hold of a record whose time is over, so that it can go."""
    return (~_NEEDED,) if family == "isobmff" else ()


def remove_tenant(database: Database, tenant_id: str) -> int:
    """Delete a tenant with all that it has; returns how many records it had.

    Its keys end first, and its jobs are cancelled. What the records were the last to name goes from
    the store after the grace, as with every deletion. Whoever is ended half-way may do it again.
    """
    key, job, ended = tables.keys.c, tables.jobs.c, instant()
    with database.write() as connection:
        living = (key.tenant_id == tenant_id) & key.revoked_at.is_(None)
        connection.execute(tables.keys.update().where(living).values(revoked_at=ended))
        going = (job.tenant_id == tenant_id) & job.ended_at.is_(None) & job.cancelled_at.is_(None)
        connection.execute(tables.jobs.update().where(going).values(cancelled_at=ended))
    deleted = 0
    while True:
        deleted += _remove_records(database, tenant_id)
        with database.write() as connection:
            # nobody adds a record to it from here on
            mine = sa.select(tables.tenants.c.id).where(tables.tenants.c.id == tenant_id)
            connection.execute(mine.with_for_update())
            if any(_some_of(connection, family, tenant_id, 1) for family in FAMILIES):
                continue
            blob = tables.blobs.c
            own = sa.select(blob.store_key).where(blob.tenant_id == tenant_id)
            trash.discard(connection, *connection.scalars(own).all())
            connection.execute(tables.tenants.delete().where(tables.tenants.c.id == tenant_id))
            return deleted


def _remove_records(database: Database, tenant_id: str) -> int:
    deleted = 0
    for family in FAMILIES:
        while True:
            with database.read() as connection:
                due = _some_of(connection, family, tenant_id, 500)
            for record_id in due:
                with database.write() as connection:
                    deleted += remove(connection, family, record_id)
            if not due:
                break
    return deleted


def _some_of(connection: Connection, family: str, tenant_id: str, limit: int) -> Sequence[str]:
    """Ids of records; tracks go with their files."""
    row = FAMILIES[family].table.c
    if "id" not in row:
        return ()
    query = sa.select(row.id).where(row.tenant_id == tenant_id, FAMILIES[family].own).limit(limit)
    return connection.scalars(query).all()


def _is(table: sa.Table, record_id: str) -> sa.ColumnElement[bool]:
    if "id" in table.c:
        return table.c.id == record_id
    file_id, _, track_id = record_id.partition("/")
    return (table.c.file_id == file_id) & (table.c.track_id == int(track_id))
