"""Which good file of a tenant a broken one is like: probably of the same camera."""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import SequenceMatcher
from typing import Final

import sqlalchemy as sa
from sqlalchemy.engine import Row

from fragdex.service.context import ServiceContext
from fragdex.service.indexing.repairing import most_alike
from fragdex.service.records.tables import blob_uses, blobs, files
from fragdex.service.unprocessed.records import FAMILY

MOST_NAMES: Final = 200
"""The newest files, whose names are compared."""
MOST_FILES: Final = 8
"""Of those, the files that are opened."""


def file_alike(
    context: ServiceContext,
    tenant_id: str,
    file_id: str,
    key: str,
    filename: str,
    check: Callable[[], None],
) -> Row[str, str, str] | None:
    """The good file of a tenant that a broken one is most like: its id and name; None: none is.

    The files with the most similar names are tried, the newest first, on the first bytes of the
    broken one.

    Args:
        file_id, key, filename: of the broken file; `key` in the store.
        check: called now and then; what it raises ends the search.

    Raises: as `most_alike`.
    """
    row, use, blob = files.c, blob_uses.c, blobs.c
    its = (use.tenant_id == row.tenant_id) & (use.record_id == row.id) & (use.family == FAMILY)
    same = (blob.tenant_id == use.tenant_id) & (blob.sha256 == use.sha256)
    query = (
        sa.select(row.id, row.filename, blob.store_key)
        .select_from(files.join(blob_uses, its).join(blobs, same))
        .where(row.tenant_id == tenant_id, row.type == FAMILY, row.id != file_id)
        .where(row.index_key.is_not(None), row.failed_at.is_(None))
        .order_by(row.id.desc())
        .limit(MOST_NAMES)
    )
    with context.database.read() as connection:
        rows = connection.execute(query).all()
    most = sorted(rows, key=lambda one: -similarity(one.filename, filename))[:MOST_FILES]
    best = most_alike(context, key, [one.store_key for one in most], check) if most else None
    return most[best] if best is not None and best < len(most) else None


def similarity(one: str, other: str) -> float:
    """How similar two file names are, 0…1, whatever their numbers are.

    >>> similarity("GX010012.MP4", "GX010345.MP4"), similarity("GX010012.MP4", "talk.mov") < 0.5
    (1.0, True)
    """
    first, second = (re.sub(r"\d+", "0", name[-100:].lower()) for name in (one, other))
    return SequenceMatcher(None, first, second).ratio()
