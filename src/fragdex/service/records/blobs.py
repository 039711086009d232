"""Bytes that records share: kept once per tenant and md5, as long as any record uses them.

Who has bytes that are to become a blob takes three steps:

1. `key = expect(connection, tenant_id, md5)`, committed;
2. write the object `key` (`draft.finish(key)`, `store.write(key, …)`);
3. `keep(connection, …)` in the transaction that makes the record.

`trash` tells why nothing is lost and nothing is left whatever happens in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from fragdex.service.errors import Unavailable
from fragdex.service.records import tables, trash
from fragdex.service.records.database import Database, insert
from fragdex.service.records.identifiers import instant, new_id
from fragdex.service.store.contract import Store

__all__ = ["Blob", "blob_key", "expect", "find", "keep", "release", "release_all", "sweep"]


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes in the store."""

    md5: bytes
    sha256: bytes
    byte_size: int
    store_key: str


def blob_key(tenant_id: str, md5: bytes) -> str:
    """The store key of a tenant's bytes.

    >>> blob_key("t1", bytes(16))
    'blobs/t1/00/00000000000000000000000000000000'
    """
    digits = md5.hex()
    return f"blobs/{tenant_id}/{digits[:2]}/{digits}"


def expect(connection: Connection, tenant_id: str, md5: bytes) -> str:
    """The store key to write these bytes under. To be committed before the object is written."""
    key = blob_key(tenant_id, md5)
    # What a record uses already is not for the trash.
    if find(connection, tenant_id, md5, lock=True) is None:
        trash.expect(connection, key)
    return key


def keep(
    connection: Connection,
    tenant_id: str,
    md5: bytes,
    sha256: bytes,
    byte_size: int,
    family: str,
    record_id: str,
) -> None:
    """Say that a record uses these bytes, whose object is written. Repeating it is harmless.

    Raises:
        Unavailable: the object was swept meanwhile, or never expected: write it again.
    """
    key = blob_key(tenant_id, md5)
    if find(connection, tenant_id, md5, lock=True) is None:
        if trash.claim(connection, key):
            row = {
                "tenant_id": tenant_id,
                "md5": md5,
                "sha256": sha256,
                "byte_size": byte_size,
                "store_key": key,
                "created_at": instant(),
            }
            connection.execute(tables.blobs.insert().values(**row))
        # Another request may have made the row while this one waited for the trash's lock.
        elif find(connection, tenant_id, md5, lock=True) is None:
            raise Unavailable("these bytes were not kept in time; send them again", retry_after=1)
    use = {"tenant_id": tenant_id, "md5": md5, "family": family, "record_id": record_id}
    connection.execute(insert(connection, tables.blob_uses).values(**use).on_conflict_do_nothing())


def find(connection: Connection, tenant_id: str, md5: bytes, *, lock: bool = False) -> Blob | None:
    """The tenant's bytes of this md5, or None.

    Args:
        lock: hold them until the end of the transaction, so that nobody releases them meanwhile.
    """
    table = tables.blobs
    query = sa.select(table.c.md5, table.c.sha256, table.c.byte_size, table.c.store_key).where(
        table.c.tenant_id == tenant_id, table.c.md5 == md5
    )
    row = connection.execute(query.with_for_update() if lock else query).one_or_none()
    return None if row is None else Blob(bytes(row[0]), bytes(row[1]), row[2], row[3])


def release(connection: Connection, family: str, record_id: str) -> None:
    """Say that a record uses no bytes any more; the last use gone, they go into the trash."""
    use = tables.blob_uses.c
    _release(connection, (use.family == family) & (use.record_id == record_id))


def release_all(connection: Connection, family: str, record_id: str) -> None:
    """`release` for a record and all that is named below it (`ID/…`)."""
    use = tables.blob_uses.c
    below = use.record_id.startswith(f"{record_id}/", autoescape=True)
    _release(connection, (use.family == family) & ((use.record_id == record_id) | below))


def _release(connection: Connection, which: sa.ColumnElement[bool]) -> None:
    use = tables.blob_uses.c
    query = sa.select(use.tenant_id, use.md5).where(which).distinct()
    # in one order: no two transactions wait for each other
    for tenant_id, md5 in sorted(map(tuple, connection.execute(query))):
        blob = find(connection, tenant_id, md5, lock=True)
        same = (use.tenant_id == tenant_id) & (use.md5 == md5)
        connection.execute(tables.blob_uses.delete().where(which & same))
        left = connection.execute(sa.select(use.record_id).where(same).limit(1)).first()
        if blob is not None and left is None:
            row = tables.blobs.c
            gone = (row.tenant_id == tenant_id) & (row.md5 == md5)
            connection.execute(tables.blobs.delete().where(gone))
            trash.discard(connection, blob.store_key)


def sweep(database: Database, store: Store, upload_age: timedelta = timedelta(days=1)) -> int:
    """Delete objects that no record has named for a while, and drafts that nobody will finish.

    Args:
        upload_age: an upload that got nothing for so long loses its draft; it may begin anew.

    Returns how many objects and drafts were deleted. Several processes may sweep at once.
    """
    deleted = trash.empty(database, store, sa.select(tables.blobs.c.store_key))
    # A draft is younger than the row that names it: seen first, its row must be there.
    names = list(store.drafts())
    table = tables.uploads
    for name in names:
        with database.write() as connection:
            row = connection.execute(
                sa.select(table).where(table.c.draft == name).with_for_update()
            ).first()
            if row is None and _taken_over(database, connection, name):
                continue
            wanted = row is not None and row.completed_at is None
            if row is not None and wanted:
                touched = max(row.lease_until or row.created_at, row.created_at)
                if touched > instant() - upload_age:
                    continue
            # Under the row's lock nobody takes the lease; who holds an old one has lost it.
            store.draft(name).discard()
            deleted += 1
            if wanted:
                # Of another name: what is known of the old draft's bytes must not meet new ones.
                fresh = {"next_byte": 0, "draft": new_id()}
                fresh |= {"lease_holder": None, "lease_until": None}
                connection.execute(table.update().where(table.c.draft == name).values(**fresh))
    return deleted


def _taken_over(database: Database, connection: Connection, name: str) -> bool:
    """Whether somebody who holds the upload may be copying this draft, or to it.

    A writer who takes over copies the draft under the next name (`NAME.1`, `NAME.2` …) before the
    row names it. The row stays locked: who would take the lease now finds what is left.
    """
    table, base = tables.uploads.c, name.partition(".")[0]
    kin = (table.draft == base) | table.draft.startswith(f"{base}.", autoescape=True)
    until = connection.scalar(sa.select(table.lease_until).where(kin).with_for_update())
    return until is not None and until > database.now(connection)
