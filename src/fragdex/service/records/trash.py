"""Objects of the store that no record names, until they are deleted.

A store and a database have no common transaction. So an object is in the trash whenever no
committed record names it: before it is written (`expect`), until a record names it (`claim`, in
that record's transaction), and again from the moment the last record lets it go (`discard`).
Whatever dies between two steps leaves an object in the trash, which the sweep deletes when it is
due, and never a record whose bytes are gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from fragdex.service.records import tables
from fragdex.service.records.database import Database, insert
from fragdex.service.records.identifiers import instant
from fragdex.service.store.contract import Store

__all__ = ["GRACE", "claim", "discard", "empty", "expect"]

GRACE = timedelta(hours=1)
"""How long an object stays that no record names: longer than any answer reads from it."""


def expect(connection: Connection, *keys: str) -> None:
    """Say that objects are going to be written under these keys, within the grace.

    To be committed before the first byte is written, also where an object may be there already.
    """
    discard(connection, *keys)


def claim(connection: Connection, *keys: str) -> bool:
    """Take objects out of the trash: the record that is being written names them.

    Returns whether all of them were there: False says that the sweep took one meanwhile (the
    grace was over), or that it was never expected.
    """
    wanted = set(keys)
    done = connection.execute(
        tables.trash.delete().where(tables.trash.c.store_key.in_(sorted(wanted)))
    )
    return done.rowcount == len(wanted)


def discard(connection: Connection, *keys: str | None) -> None:
    """Let objects go that the record being changed or deleted was the last to name."""
    due = instant() + GRACE
    for key in sorted({key for key in keys if key}):  # in one order: no two wait for each other
        statement = insert(connection, tables.trash).values(store_key=key, delete_after=due)
        connection.execute(
            statement.on_conflict_do_update(
                index_elements=["store_key"], set_={"delete_after": due}
            )
        )


def empty(database: Database, store: Store, keys_in_use: sa.Select[tuple[str]]) -> int:
    """Delete the objects that are due; returns how many.

    Each is deleted under the lock of its row, so that `expect` of the same key waits, and whoever
    waited writes it anew. Several processes may do this at once.

    Args:
        keys_in_use: keys that records name: an object among them stays, whatever the trash says.
    """
    table = tables.trash
    with database.read() as connection:
        due: Iterable[str] = connection.scalars(
            sa.select(table.c.store_key).where(table.c.delete_after <= instant())
        ).all()
    deleted = 0
    for key in due:
        with database.write() as connection:
            still = connection.scalar(
                sa.select(table.c.store_key)
                .where(table.c.store_key == key, table.c.delete_after <= instant())
                .with_for_update(skip_locked=True)
            )
            if still is None:
                continue
            named = keys_in_use.subquery()
            query = sa.select(named.c[0]).where(named.c[0] == key).limit(1)
            if connection.scalar(query) is None:
                store.delete(key)
                deleted += 1
            connection.execute(table.delete().where(table.c.store_key == key))
    return deleted
