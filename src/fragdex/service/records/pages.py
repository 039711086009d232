"""Lists, page by page, newest first.

A cursor names the last record of a page, not how many came before: what is added meanwhile shifts
nothing, and what is deleted leaves no hole.
"""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from fragdex.service.errors import InvalidRequest

__all__ = ["CURSOR", "DEFAULT_LIMIT", "MAX_LIMIT", "Page", "last_id", "page"]

DEFAULT_LIMIT = 50
MAX_LIMIT = 200

CURSOR = "[A-Za-z0-9_-]{21}[AQgw]"
"""What a cursor looks like: the 16 bytes of an id in base64url, whose last 4 bits are none."""

_CURSOR = re.compile(CURSOR)


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows of a list.

    Attributes:
        rows: at most `limit`, newest first.
        next_cursor: what asks for the page after this one; None on the last.
    """

    rows: Sequence[Row[Any]]
    next_cursor: str | None


def page(
    connection: Connection,
    select: sa.Select[Any],
    table: sa.FromClause,
    limit: int = DEFAULT_LIMIT,
    cursor: str | None = None,
) -> Page:
    """One page of what `select` finds, newest first.

    Args:
        select: rows of `table`, its column `id` among them, in no order of their own.
        limit: 1 to 200.
        cursor: `next_cursor` of the page before; None: the first page.

    Raises:
        InvalidRequest: limit is out of its bounds, or the cursor is none of ours.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidRequest(
            "limit is out of bounds", pointer="limit", expected=f"1 to {MAX_LIMIT}", found=limit
        )
    if cursor is not None:
        select = select.where(table.c.id < last_id(cursor))
    rows = connection.execute(select.order_by(table.c.id.desc()).limit(limit + 1)).all()
    if len(rows) <= limit:
        return Page(rows, None)
    rows = rows[:limit]
    last = uuid.UUID(rows[-1].id)
    return Page(rows, base64.urlsafe_b64encode(last.bytes).decode().rstrip("="))


def last_id(cursor: str) -> str:
    """The id of the last record of the page before.

    Raises:
        InvalidRequest: the cursor is none of ours.
    """
    if not _CURSOR.fullmatch(cursor):
        raise InvalidRequest("this is not a cursor of a page", pointer="cursor")
    return str(uuid.UUID(bytes=base64.urlsafe_b64decode(cursor + "==")))
