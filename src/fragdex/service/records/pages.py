"""Lists, page by page, newest first.

A cursor names the last record of a page, not how many came before: what is added meanwhile shifts
nothing, and what is deleted leaves no hole.
"""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from fragdex.errors import InvalidRequest
from fragdex.record import record

DEFAULT_LIMIT = 50
MAX_LIMIT = 200

PAGE_BYTES = 4 << 20
"""What the rows of a page may have together, as `row_bytes` counts; one row may have more."""

CURSOR = "[A-Za-z0-9_-]{21}[AQgw]"
"""What a cursor looks like: the 16 bytes of an id in base64url, whose last 4 bits are unused."""

_CURSOR = re.compile(CURSOR)


@record(frozen=True, slots=True)
class RowPage:
    """Some rows of a list.

    Attributes:
        rows: at most `limit`, newest first; fewer where they are large.
        next_cursor: the cursor of the page after this one; None on the last.
    """

    rows: Sequence[Row[Any]]
    next_cursor: str | None


def page(
    connection: Connection,
    select: sa.Select[Any],
    table: sa.FromClause,
    limit: int = DEFAULT_LIMIT,
    cursor: str | None = None,
    weight: sa.ColumnElement[int] | None = None,
) -> RowPage:
    """One page of what `select` finds, newest first, of at most PAGE_BYTES.

    Args:
        select: rows of `table`, its column `id` among them, in no order of their own.
        limit: 1 to 200.
        cursor: `next_cursor` of the page before; None: the first page.
        weight: bytes that a row counts with; None: its `row_bytes`, where the table has any.

    Raises:
        InvalidRequest: limit is out of its bounds, or the cursor is none of ours.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidRequest(
            "limit is out of bounds", pointer="limit", expected=f"1 to {MAX_LIMIT}", found=limit
        )
    if cursor is not None:
        select = select.where(table.c.id < last_id(cursor))
    select = select.order_by(table.c.id.desc())
    if weight is None:
        weight = table.c.get("row_bytes")
    if weight is None:
        rows = connection.execute(select.limit(limit + 1)).all()
        return RowPage(rows[:limit], _cursor(rows[limit - 1].id) if len(rows) > limit else None)
    # what is too large for the page is not read
    sizes = select.with_only_columns(table.c.id, weight).limit(limit + 1)
    sizes_found = connection.execute(sizes).all()
    ids = [row.id for row in sizes_found[: _shown(limit, [size for _, size in sizes_found])]]
    rows = connection.execute(select.where(table.c.id.in_(ids))).all() if ids else []
    return RowPage(rows, _cursor(ids[-1]) if len(ids) < len(sizes_found) else None)


def _shown(limit: int, sizes: Sequence[int]) -> int:
    """How many rows of these sizes a page has: one at least."""
    whole = accumulate(sizes[:limit])
    return sum(number == 0 or so_far <= PAGE_BYTES for number, so_far in enumerate(whole))


def _cursor(id: str) -> str:
    return base64.urlsafe_b64encode(uuid.UUID(id).bytes).decode().rstrip("=")


def last_id(cursor: str) -> str:
    """The id of the last record of the page before.

    Raises:
        InvalidRequest: the cursor is none of ours.
    """
    if not _CURSOR.fullmatch(cursor):
        raise InvalidRequest("this is not a cursor of a page", pointer="cursor")
    return str(uuid.UUID(bytes=base64.urlsafe_b64decode(cursor + "==")))
