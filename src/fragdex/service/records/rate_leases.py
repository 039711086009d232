"""The rate limit of a key over all processes: one row a key, from which processes take in advance.

The row has the instant at which the key's bucket is full again (generic cell rate algorithm: ITU-T
I.371, annex A). A bucket that is full needs no row. PostgreSQL alone: SQLite has one machine.
"""

from __future__ import annotations

import sqlalchemy as sa

from fragdex.service.records.database import Database, insert
from fragdex.service.records.tables import rates

__all__ = ["forget_full", "take"]

_NOW = sa.cast(sa.extract("epoch", sa.func.clock_timestamp()), sa.Float)


def take(
    database: Database, key_id: str, wanted: int, per_second: float, burst: int
) -> tuple[int, float]:
    """Take requests of a key out of its bucket.

    Args:
        wanted: at least 1.
        per_second: how fast the bucket fills.
        burst: what it holds.

    Returns how many were there, at most `wanted`; and in how many seconds the next one is, where
    none was.

    Raises:
        Unavailable: the database does not answer.
    """
    mine = rates.c.key_id == key_id
    looked = sa.select(rates.c.full_at, _NOW).where(mine).with_for_update()
    with database.write(passing=True) as connection:
        found = connection.execute(looked).one_or_none()
        if found is None:
            new = insert(connection, rates).values(key_id=key_id, full_at=0.0)
            connection.execute(new.on_conflict_do_nothing(index_elements=["key_id"]))
            found = connection.execute(looked).one()
        full_at, now = found
        missing = max(0.0, full_at - now) * per_second
        given = min(wanted, int(burst - missing))
        if given < 1:
            return 0, (1 - burst + missing) / per_second
        full = max(full_at, now) + given / per_second
        connection.execute(rates.update().where(mine).values(full_at=full))
    return given, 0.0


def forget_full(database: Database) -> None:
    """Delete the rows of buckets that are full."""
    if database.dialect == "postgresql":
        with database.write(passing=True) as connection:
            connection.execute(rates.delete().where(rates.c.full_at < _NOW - 1))
