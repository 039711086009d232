"""Objects of the store that no record names, until they are deleted.

A store and a database have no common transaction. So an object is in the trash whenever no
committed record names it: before it is written (`expect`), until a record names it (`claim`, in
that record's transaction), and again from the moment the last record lets it go (`discard`).
Whatever dies between two steps leaves an object in the trash, which the sweep deletes when it is
due, and never a record whose bytes are gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from fragdex.service.records import tables
from fragdex.service.records.database import Database, deletion_grace, insert
from fragdex.service.records.identifiers import instant
from fragdex.service.store.contract import Store

GRACE = timedelta(hours=1)
"""How long an object waits for the record that is going to name it."""

AGAIN = timedelta(days=1)
"""When an object is deleted once more, in case that somebody has written it late."""

AT_ONCE = 100
"""Objects that are deleted between two transactions."""


def expect(connection: Connection, *keys: str) -> None:
    """Say that objects are going to be written under these keys, within the grace.

    To be committed before the first byte is written. Keys are written once: a sweeper who slept
    may yet delete an object that was let go.
    """
    _put(connection, keys, GRACE, let_go_at=None)


def renew(connection: Connection, key: str) -> bool:
    """Let an object wait for its record for another while; False: it is gone, or going."""
    row = tables.trash.c
    waiting = (row.store_key == key) & row.deleting_at.is_(None)
    due = tables.trash.update().where(waiting).values(delete_after=instant() + GRACE)
    return connection.execute(due).rowcount == 1


def claim(connection: Connection, *keys: str) -> bool:
    """Take objects out of the trash: the record that is being written names them.

    Returns whether all of them were there: False says that the sweep took one meanwhile (the
    grace was over), or that it was never expected.
    """
    wanted, row = set(keys), tables.trash.c
    waiting = row.store_key.in_(sorted(wanted)) & row.deleting_at.is_(None)
    return connection.execute(tables.trash.delete().where(waiting)).rowcount == len(wanted)


def discard(connection: Connection, *keys: str | None) -> None:
    """Let objects go that the record being changed or deleted was the last to name.

    They stay for the grace of the database: longer than any answer reads from them.
    """
    _put(connection, keys, deletion_grace(connection), let_go_at=instant())


def _put(
    connection: Connection, keys: Iterable[str | None], grace: timedelta, let_go_at: datetime | None
) -> None:
    values = {"delete_after": instant() + grace, "let_go_at": let_go_at}
    for key in sorted({key for key in keys if key}):  # in one order: no two wait for each other
        statement = insert(connection, tables.trash).values(store_key=key, **values)
        connection.execute(
            statement.on_conflict_do_update(index_elements=["store_key"], set_=values)
        )


def hurry(database: Database) -> None:
    """Let what records have let go be due now: its room is needed more than the grace."""
    row, now = tables.trash.c, instant()
    waits = row.let_go_at.is_not(None) & row.deleting_at.is_(None) & (row.delete_after > now)
    database.change(tables.trash.update().where(waits).values(delete_after=now))


def empty(database: Database, store: Store, keys_in_use: sa.Select[tuple[str]]) -> int:
    """Delete the objects that are due; returns how many.

    An object is marked in one transaction, deleted with none open, and deleted once more a day
    later: a store may take its time, and nobody waits for it. A marked object is claimed by nobody,
    and no key is written for two records, so whoever died in between is followed by the next who
    does this, and a writer who was later than the grace leaves nothing. Several processes may do it
    at once.

    Args:
        keys_in_use: keys that records name: an object among them stays, whatever the trash says.
    """
    row, deleted = tables.trash.c, 0
    while True:
        with database.write() as connection:
            due = sa.select(row.store_key).where(row.delete_after <= instant())
            keys = connection.scalars(due.limit(AT_ONCE).with_for_update(skip_locked=True)).all()
            named = keys_in_use.subquery()
            used = set(connection.scalars(sa.select(named.c[0]).where(named.c[0].in_(keys))))
            connection.execute(tables.trash.delete().where(row.store_key.in_(sorted(used))))
            going = row.store_key.in_(sorted(set(keys) - used))
            mark = tables.trash.update().where(going & row.deleting_at.is_(None))
            connection.execute(mark.values(deleting_at=instant()))
        for key in sorted(set(keys) - used):
            store.delete(key)
        with database.write() as connection:
            now = instant()
            over = tables.trash.delete().where(going, row.deleting_at <= now - AGAIN)
            connection.execute(over)
            once = tables.trash.update().where(going, row.delete_after <= now)
            deleted += connection.execute(once.values(delete_after=now + AGAIN)).rowcount
        if len(keys) < AT_ONCE:
            return deleted
