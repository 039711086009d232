"""Turns between tenants: whose work is next in a queue that all of them share.

Each piece of work gets a number when it is ordered, and the queue gives out the lowest number
first. The pieces of one tenant are numbered one after the other. A tenant that had nothing in the
queue starts at the number that was begun last, not behind everything that others have ordered
before: so its first piece is the next to begin, and from there on tenants take turns, however many
pieces each of them has ordered. A tenant that is alone gets every worker. (This is start-time fair
queueing: Goyal, Vin and Cheng, 1996; all pieces count the same.)
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from sqlalchemy import Connection

from fragdex.service.records.database import insert
from fragdex.service.records.tables import turns

__all__ = ["begun", "forget", "take"]

# The engine's numbers end at 2**31 - 1. Behind this one all work is equal: the oldest is next.
LAST: Final = 2**31 - 2
# The row of what was begun last belongs to no tenant.
_BEGUN: Final = ""
_TURN = turns.c


def take(connection: Connection, queue: str, tenant_id: str, count: int = 1) -> int:
    """The first of `count` consecutive numbers for a tenant's work in a queue.

    Others that order for the same tenant wait until the caller's transaction ends.
    """
    mine = (_TURN.queue == queue) & (_TURN.tenant_id == _BEGUN)
    at = connection.scalar(sa.select(_TURN.next).where(mine)) or 1
    new = insert(connection, turns).values(queue=queue, tenant_id=tenant_id, next=at + count)
    ahead = sa.case((_TURN.next > at, _TURN.next), else_=at)
    statement = new.on_conflict_do_update(
        index_elements=[_TURN.queue, _TURN.tenant_id], set_={"next": ahead + count}
    ).returning(_TURN.next)
    after: int = connection.execute(statement).scalar_one()
    return min(after - count, LAST)


def begun(connection: Connection, queue: str, turn: int) -> None:
    """Write down that a piece of work has begun; who comes new to the queue starts here."""
    new = insert(connection, turns).values(queue=queue, tenant_id=_BEGUN, next=turn)
    statement = new.on_conflict_do_update(
        index_elements=[_TURN.queue, _TURN.tenant_id],
        set_={"next": turn},
        where=_TURN.next < turn,
    )
    connection.execute(statement)


def forget(connection: Connection, queue: str, *, empty: bool) -> None:
    """Remove what says nothing any more: rows of tenants that are not ahead of the queue.

    Args:
        empty: whether nothing waits in the queue; its numbers may then start again.
    """
    of_queue = _TURN.queue == queue
    at = connection.scalar(sa.select(_TURN.next).where(of_queue, _TURN.tenant_id == _BEGUN)) or 1
    if empty and at > LAST // 2:
        connection.execute(turns.delete().where(of_queue))
        return
    behind = turns.delete().where(of_queue, _TURN.tenant_id != _BEGUN, _TURN.next <= at)
    connection.execute(behind)
