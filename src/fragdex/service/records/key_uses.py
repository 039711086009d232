"""When keys were last used: kept in memory, and written once a minute, not with each request."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from fragdex.service.records import tables
from fragdex.service.records.database import Database
from fragdex.service.records.identifiers import instant

__all__ = ["KeyUses"]

_ROW = tables.keys.c
_AT = sa.bindparam("used_at", type_=tables.Instant())
_WRITE = (
    tables.keys.update()
    # another process may have seen it later
    .where(_ROW.id == sa.bindparam("used"), _ROW.last_used_at.is_(None) | (_ROW.last_used_at < _AT))
    .values(last_used_at=_AT)
)


class KeyUses:
    """The keys that this process has seen since it last wrote them down."""

    def __init__(self) -> None:
        self._seen: dict[str, datetime] = {}

    def note(self, key_id: str) -> None:
        """A key was used now, or a URL token that it signed."""
        self._seen[key_id] = instant()

    def write(self, database: Database) -> None:
        """Write down what was seen. A crash costs what was not written.

        Raises:
            Unavailable: the database does not answer; the next time writes the same.
            StoreFull: no room is left.
        """
        seen, self._seen = self._seen, {}
        if not seen:
            return
        # in one order, as other processes do, so that none waits for one that waits for it
        rows = [{"used": key_id, "used_at": seen[key_id]} for key_id in sorted(seen)]
        try:
            with database.write(passing=True) as connection:
                connection.execute(_WRITE, rows)
        except Exception:
            self._seen = {**seen, **self._seen}
            raise

    def close(self) -> None:
        """Forget them."""
        self._seen.clear()
