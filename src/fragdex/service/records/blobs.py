"""Bytes that records share: kept once per tenant and SHA-256, as long as any record uses them.

Two files may have one md5 and different bytes: such pairs are published. So bytes are found by
who uses them or by their SHA-256; the md5 is a fact that clients see and look up.

Who has bytes that are to become a blob takes three steps:

1. `key = expect(connection, tenant_id, sha256)`, committed;
2. write the object `key` (`draft.finish(key)`, `store.write(key, …)`);
3. `keep(connection, …, key)` in the transaction that makes the record.

`trash` tells why nothing is lost and nothing is left whatever happens in between.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from fragdex.errors import StoreFull, Unavailable
from fragdex.record import record
from fragdex.service.records import tables, trash
from fragdex.service.records.database import Database, insert
from fragdex.service.records.identifiers import instant, new_id
from fragdex.service.records.tables import blob_uses, derived_files
from fragdex.service.records.tables import blobs as blobs_table
from fragdex.service.records.tenant_limits import ensure_within_quota
from fragdex.service.store.composing import COMPOSED, is_composed
from fragdex.service.store.contract import Store

_PIECE = 1 << 20
_EARLIER_DRAFTS = 8
"""Nobody makes a draft of a name that is further ahead of the row than this."""

DERIVED: Final = "derived"
_CACHES = frozenset({DERIVED})
"""Families whose bytes are not requested by name, and end by themselves: a look never fails."""


@record(frozen=True, slots=True)
class Blob:
    """Bytes in the store."""

    md5: bytes
    sha256: bytes
    byte_size: int
    store_key: str


@record(frozen=True, slots=True)
class StoredBytes:
    """Where the bytes of a complete file or track are, as answers to HTTP need them.

    Attributes:
        content: the bytes themselves, where the store had no room for them.
    """

    store_key: str
    byte_size: int
    md5: bytes
    sha256: bytes
    mime_type: str
    content: bytes | None = None


@record(frozen=True, slots=True)
class ComposedOf:
    """What an object is composed of: a tenant's bytes under their key, named by its own record.

    Attributes:
        record_bytes: of the record, which is all that is stored of the object itself.
    """

    sha256: bytes
    store_key: str
    record_bytes: int


def new_key(tenant_id: str, sha256: bytes, *, composed: bool = False) -> str:
    """A store key for a tenant's bytes, which nobody had before.

    Args:
        composed: of an object that is composed of another.
    """
    digits = sha256.hex()
    folder = COMPOSED if composed else "blobs/"
    return f"{folder}{tenant_id}/{digits[:2]}/{digits}.{token_hex(8)}"


def expect(connection: Connection, tenant_id: str, sha256: bytes, *, composed: bool = False) -> str:
    """The store key to write these bytes under. To be committed before the object is written.

    Where the tenant has these bytes, it is that of their object.

    Args:
        composed: the object is going to be composed of another.
    """
    known = find(connection, tenant_id, sha256, lock=True)
    if known is not None:
        return known.store_key  # what a record uses already is not for the trash
    key = new_key(tenant_id, sha256, composed=composed)
    trash.expect(connection, key)
    return key


def write(
    database: Database, store: Store, tenant_id: str, pieces: Callable[[], Iterable[bytes]]
) -> Blob:
    """Write bytes into the store, where no record uses them yet: the first two steps at once.

    Args:
        pieces: the bytes from their beginning; read twice.
    """
    md5, sha256, size = hashlib.md5(usedforsecurity=False), hashlib.sha256(), 0
    for piece in pieces():
        md5.update(piece)
        sha256.update(piece)
        size += len(piece)
    with database.write() as connection:
        key = expect(connection, tenant_id, sha256.digest())
        known = find(connection, tenant_id, sha256.digest()) is not None
    if not known:
        store.write(key, pieces())
    return Blob(md5.digest(), sha256.digest(), size, key)


def write_file(
    database: Database,
    store: Store,
    tenant_id: str,
    path: Path,
    check: Callable[[], None] = lambda: None,
) -> Blob:
    """`write` of a file; `check` is called for each piece, and what it raises ends it."""

    def pieces() -> Iterator[bytes]:
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                check()
                yield piece

    return write(database, store, tenant_id, pieces)


def expect_again(connection: Connection, tenant_id: str, sha256: bytes, key: str) -> str | None:
    """Where bytes are that were written under `key` and perhaps never kept; None: they are gone."""
    known = find(connection, tenant_id, sha256, lock=True)
    if known is not None:
        return known.store_key
    # what it was composed of may be gone
    return key if not is_composed(key) and trash.renew(connection, key) else None


def keep(
    connection: Connection,
    tenant_id: str,
    md5: bytes,
    sha256: bytes,
    byte_size: int,
    family: str,
    record_id: str,
    store_key: str,
    *,
    composed_of: ComposedOf | None = None,
) -> None:
    """Say that a record uses these bytes. Repeating it is harmless.

    Args:
        store_key: what `expect` gave, where the object is written. Another writer of the same
            bytes may have kept them meanwhile; then this object stays in the trash.
        composed_of: what the object is composed of, which stays as long as it.

    Raises:
        Unavailable: the object was swept meanwhile, or never expected, or what it is composed of
            is gone: write it again.
        QuotaExceeded: the tenant may not store so much.
    """
    if composed_of is not None:
        # before what is composed of it, as `release` does
        source = find(connection, tenant_id, composed_of.sha256, lock=True)
        composable = source is not None and source.store_key == composed_of.store_key
    else:
        composable = not is_composed(store_key)
    if find(connection, tenant_id, sha256, lock=True) is None:
        if composable and trash.claim(connection, store_key):
            row = {
                "tenant_id": tenant_id,
                "md5": md5,
                "sha256": sha256,
                "byte_size": byte_size,
                "store_key": store_key,
                "stored_bytes": byte_size if composed_of is None else composed_of.record_bytes,
                "source_sha256": None if composed_of is None else composed_of.sha256,
                "created_at": instant(),
            }
            adding = insert(connection, tables.blobs).values(**row).on_conflict_do_nothing()
            if connection.execute(adding.returning(tables.blobs.c.sha256)).first() is None:
                trash.discard(connection, store_key)  # another writer's object serves both
        # Another request may have made the row while this one waited for the trash's lock.
        elif find(connection, tenant_id, sha256, lock=True) is None:
            raise Unavailable(
                "these bytes were deleted before the upload was complete; send them again",
                retry_after=1,
            )
    use = {"tenant_id": tenant_id, "sha256": sha256, "family": family, "record_id": record_id}
    connection.execute(insert(connection, tables.blob_uses).values(**use).on_conflict_do_nothing())
    if family not in _CACHES:
        ensure_within_quota(connection, tenant_id, rows=False)


_BLOB = sa.select(
    tables.blobs.c.md5, tables.blobs.c.sha256, tables.blobs.c.byte_size, tables.blobs.c.store_key
)


def find(
    connection: Connection, tenant_id: str, sha256: bytes, *, lock: bool = False
) -> Blob | None:
    """The tenant's bytes of this SHA-256, or None.

    Args:
        lock: hold them until the end of the transaction, so that nobody releases them meanwhile.
    """
    row = tables.blobs.c
    query = _BLOB.where(row.tenant_id == tenant_id, row.sha256 == sha256)
    match = connection.execute(query.with_for_update() if lock else query).one_or_none()
    return None if match is None else _blob(match)


def used_by(connection: Connection, tenant_id: str, family: str, record_id: str) -> Blob | None:
    """The bytes that a record uses; None where it uses none, or another tenant's is meant."""
    row, use = tables.blobs.c, tables.blob_uses.c
    query = _BLOB.join(
        tables.blob_uses, (use.tenant_id == row.tenant_id) & (use.sha256 == row.sha256)
    ).where(use.family == family, use.record_id == record_id, use.tenant_id == tenant_id)
    match = connection.execute(query.limit(1)).first()
    return None if match is None else _blob(match)


def of_md5(
    connection: Connection, tenant_id: str, md5: bytes, sha256: bytes | None = None
) -> Blob | None:
    """The tenant's bytes of this md5, for a record that a client has named by its md5 alone.

    Args:
        sha256: which of them, where it is known.

    None where there are none, and where there are several and nothing says which are meant.
    """
    row = tables.blobs.c
    query = _BLOB.where(row.tenant_id == tenant_id, row.md5 == md5)
    if sha256 is not None:
        query = query.where(row.sha256 == sha256)
    rows = connection.execute(query.limit(2)).all()
    return _blob(rows[0]) if len(rows) == 1 else None


def _blob(row: Any) -> Blob:
    return Blob(bytes(row.md5), bytes(row.sha256), row.byte_size, row.store_key)


def release(connection: Connection, family: str, *record_ids: str) -> None:
    """Say that records use no bytes any more; the last use gone, they go into the trash.

    What was derived of them goes with them. So do the bytes that they were composed of, where
    nothing else needs those.
    """
    row, use = tables.blobs.c, tables.blob_uses.c
    which = (use.family == family) & use.record_id.in_(record_ids)
    same = (row.tenant_id == use.tenant_id) & (row.sha256 == use.sha256)
    query = sa.select(use.tenant_id, use.sha256, row.source_sha256).distinct()
    query = query.select_from(tables.blob_uses.outerjoin(tables.blobs, same)).where(which)
    whole: set[tuple[str, bytes]] = set()
    composed: set[tuple[str, bytes]] = set()
    for tenant_id, sha256, source in connection.execute(query):
        (whole if source is None else composed).add((tenant_id, bytes(sha256)))
        if source is not None:
            whole.add((tenant_id, bytes(source)))
    # In one order, and what others are composed of first: no two transactions wait for each other.
    for one in sorted(whole) if composed else ():
        find(connection, *one, lock=True)
    gone = []
    for one in [*sorted(composed), *sorted(whole)]:
        blob = find(connection, *one, lock=True)
        its = (use.tenant_id == one[0]) & (use.sha256 == one[1])
        connection.execute(tables.blob_uses.delete().where(which & its))
        if blob is not None and not _is_needed(connection, *one):
            own = (row.tenant_id == one[0]) & (row.sha256 == one[1])
            connection.execute(tables.blobs.delete().where(own))
            trash.discard(connection, blob.store_key)
            gone.append(one)
    derived = tables.derived_files.c
    for tenant_id, sha256 in gone:
        of_source = (derived.tenant_id == tenant_id) & (derived.source_sha256 == sha256)
        ids = connection.scalars(sa.select(derived.id).where(of_source)).all()
        if ids:
            connection.execute(tables.derived_files.delete().where(of_source))
            release(connection, "derived", *ids)


def _is_needed(connection: Connection, tenant_id: str, sha256: bytes) -> bool:
    """Whether a record uses these bytes, or an object is composed of them."""
    row, use = tables.blobs.c, tables.blob_uses.c
    used = sa.select(use.record_id).where(use.tenant_id == tenant_id, use.sha256 == sha256)
    of_it = sa.select(row.sha256).where(row.tenant_id == tenant_id, row.source_sha256 == sha256)
    return any(connection.execute(query.limit(1)).first() for query in (used, of_it))


def sweep(database: Database, store: Store, upload_age: timedelta = timedelta(days=1)) -> int:
    """Delete objects that no record has named for a while, and drafts that nobody will finish.

    Args:
        upload_age: an upload that got no byte for so long loses its draft; it may start again.

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
            if row is None and _may_be_made(connection, name):
                continue
            if row is not None and row.completed_at is None:
                touched = max(filter(None, (row.created_at, row.written_at, row.lease_until)))
                if touched > instant() - upload_age:
                    continue
                # Of another name: what is known of the old draft's bytes must not meet new ones.
                # Who holds an old lease has lost it, and nobody looks for the old name.
                fresh = {"next_byte": 0, "draft": new_id()}
                fresh |= {"lease_holder": None, "lease_until": None}
                connection.execute(table.update().where(table.c.draft == name).values(**fresh))
        store.draft(name).discard()
        deleted += 1
    return deleted


def _may_be_made(connection: Connection, name: str) -> bool:
    """Whether somebody who takes over an upload may be making this draft, or may do so later.

    A writer who takes over copies the draft under the next name (`NAME.1`, `NAME.2` …) before the
    row names it, and drops what an earlier one left there.
    """
    table = tables.uploads.c
    base, _, number = name.partition(".")
    if not number.isdecimal():
        return False
    earlier = [base, *(f"{base}.{one}" for one in range(1, int(number)))][-_EARLIER_DRAFTS:]
    query = sa.select(table.draft).where(table.draft.in_(earlier), table.completed_at.is_(None))
    return connection.execute(query.limit(1)).first() is not None


# Files that were made of stored bytes on request, and are cached for the next time.
#
# They are found by the bytes that they were made of and by a recipe that says all else. They go
# with those bytes, or once nobody has requested them for a while.


_ROW = derived_files.c
_WHOLE = (
    sa.select(
        _ROW.id, _ROW.part, _ROW.media_type, _ROW.expires_at,
        blobs_table.c.md5, blobs_table.c.sha256, blobs_table.c.byte_size, blobs_table.c.store_key,
    )
    .select_from(derived_files)
    .join(
        blob_uses,
        (blob_uses.c.tenant_id == _ROW.tenant_id)
        & (blob_uses.c.family == sa.literal_column(f"'{DERIVED}'"))
        & (blob_uses.c.record_id == _ROW.id),
    )
    .join(
        blobs_table,
        (blobs_table.c.tenant_id == blob_uses.c.tenant_id)
        & (blobs_table.c.sha256 == blob_uses.c.sha256),
    )
)  # fmt: skip


def find_derived(
    database: Database, tenant_id: str, source_sha256: bytes, recipe: str, lasts: timedelta
) -> dict[str, StoredBytes]:
    """What was made by a recipe, by the names of its parts; nothing where it was not, or is gone.

    Args:
        lasts: so long it is cached from now on.
    """
    mine = (_ROW.tenant_id == tenant_id) & (_ROW.source_sha256 == source_sha256)
    mine &= _ROW.recipe == recipe
    rows = database.all(_WHOLE.where(mine))
    now = instant()
    # written now and then only: a read is cheaper
    if any(row.expires_at < now + lasts / 2 for row in rows):
        # a full disk fails nothing that is only read
        with suppress(StoreFull), database.write() as connection:
            connection.execute(derived_files.update().where(mine).values(expires_at=now + lasts))
    return {
        row.part: StoredBytes(
            row.store_key, row.byte_size, bytes(row.md5), bytes(row.sha256), row.media_type
        )
        for row in rows
    }


def keep_derived(
    database: Database,
    tenant_id: str,
    source_sha256: bytes,
    recipe: str,
    parts: Mapping[str, tuple[Blob, str]],
    lasts: timedelta,
) -> bool:
    """Cache files that were made; False where the bytes that they were made of are gone.

    Args:
        parts: by the names of the parts: bytes that `write` has written, and media types.
            Those that another process has cached meanwhile stay as they are.
    """
    now = instant()
    with database.write() as connection:
        if find(connection, tenant_id, source_sha256, lock=True) is None:
            return False
        for part, (blob, media_type) in sorted(parts.items()):
            record_id = new_id()
            row = {
                "id": record_id,
                "tenant_id": tenant_id,
                "source_sha256": source_sha256,
                "recipe": recipe,
                "part": part,
                "media_type": media_type,
                "created_at": now,
                "expires_at": now + lasts,
            }
            adding = insert(connection, derived_files).values(**row).on_conflict_do_nothing()
            if connection.execute(adding.returning(_ROW.id)).first() is not None:
                own = (blob.md5, blob.sha256, blob.byte_size)
                keep(connection, tenant_id, *own, DERIVED, record_id, blob.store_key)
    return True
