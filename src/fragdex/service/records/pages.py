"""Lists, page by page, newest first.

A cursor names the last record of a page, not how many came before: what is added meanwhile shifts
nothing, and what is deleted leaves no hole.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from fragdex.service.errors import InvalidRequest

__all__ = ["DEFAULT_LIMIT", "MAX_LIMIT", "Page", "last_id", "page"]

DEFAULT_LIMIT = 50
MAX_LIMIT = 200

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


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
    return Page(rows, base64.urlsafe_b64encode(rows[-1].id.encode()).decode().rstrip("="))


def last_id(cursor: str) -> str:
    """The id of the last record of the page before.

    Raises:
        InvalidRequest: the cursor is none of ours.
    """
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True)
        text = raw.decode("ascii")
    except (binascii.Error, UnicodeError, ValueError):
        text = ""
    if not _ID.fullmatch(text):
        raise InvalidRequest("this is no cursor of a page", pointer="cursor")
    return text
