"""Files that were made of stored bytes when they were asked for, and are cached for the next time.

They are found by the bytes that they were made of and by a recipe that says all else. They go with
those bytes, or once nobody has asked for them for a while.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

import sqlalchemy as sa

from fragdex.service.records import blobs
from fragdex.service.records.blobs import Blob, StoredBytes
from fragdex.service.records.database import Database, insert
from fragdex.service.records.identifiers import instant, new_id
from fragdex.service.records.tables import blob_uses, derived_files
from fragdex.service.records.tables import blobs as blobs_table

FAMILY: Final = "derived"
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
        & (blob_uses.c.family == sa.literal_column(f"'{FAMILY}'"))
        & (blob_uses.c.record_id == _ROW.id),
    )
    .join(
        blobs_table,
        (blobs_table.c.tenant_id == blob_uses.c.tenant_id)
        & (blobs_table.c.sha256 == blob_uses.c.sha256),
    )
)  # fmt: skip


def find(
    database: Database, tenant_id: str, source_sha256: bytes, recipe: str, lasts: timedelta
) -> dict[str, StoredBytes]:
    """What was made by a recipe, by the names of its parts; nothing where it was not, or is gone.

    Args:
        lasts: so long it is cached from now on.
    """
    mine = (_ROW.tenant_id == tenant_id) & (_ROW.source_sha256 == source_sha256)
    mine &= _ROW.recipe == recipe
    with database.read() as connection:
        rows = connection.execute(_WHOLE.where(mine)).all()
    now = instant()
    # written now and then only: a read is cheaper
    if any(row.expires_at < now + lasts / 2 for row in rows):
        with database.write() as connection:
            connection.execute(derived_files.update().where(mine).values(expires_at=now + lasts))
    return {
        row.part: StoredBytes(
            row.store_key, row.byte_size, bytes(row.md5), bytes(row.sha256), row.media_type
        )
        for row in rows
    }


def keep(
    database: Database,
    tenant_id: str,
    source_sha256: bytes,
    recipe: str,
    parts: Mapping[str, tuple[Blob, str]],
    lasts: timedelta,
) -> bool:
    """Cache files that were made; False where the bytes that they were made of are gone.

    Args:
        parts: by the names of the parts: bytes that `blobs.write` has written, and media types.
            Those that another process has cached meanwhile stay as they are.
    """
    now = instant()
    with database.write() as connection:
        if blobs.find(connection, tenant_id, source_sha256, lock=True) is None:
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
                blobs.keep(connection, tenant_id, *own, FAMILY, record_id, blob.store_key)
    return True
