"""Turns between tenants: whose work is next in a queue that all of them share.

Each piece of work gets a number when it is ordered, and the queue gives out the lowest number
first. The pieces of one tenant are numbered one after the other. A tenant that had nothing in the
queue starts at the number that was begun last, not after everything that others have ordered
before: so its first piece is the next to begin, and from there on tenants take turns, however many
pieces each of them has ordered. A tenant that is alone gets every worker. (This is start-time fair
queueing: Goyal, Vin and Cheng, 1996; all pieces count the same.)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import sqlalchemy as sa
from sqlalchemy import Connection

from fragdex.service.records.database import insert
from fragdex.service.records.tables import turns

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


_POLL_SECONDS: Final = 0.25


class Seats:
    """Limits how much is done at once; a free seat goes to the tenant whose turn it is.

    Args:
        count: seats.

    >>> seats = Seats(1)
    >>> with seats.taken("a tenant", lambda: None):
    ...     seats.free
    0
    """

    def __init__(self, count: int) -> None:
        self.free = count
        self._changed = threading.Condition()
        # Numbers as in `turns.py`; the second part tells those of one number apart, by age.
        self._waiting: list[tuple[int, int]] = []
        self._next: dict[str, int] = {}
        self._begun = self._came = 0

    @contextmanager
    def taken(self, tenant_id: str, check: Callable[[], None]) -> Iterator[None]:
        """Wait for a seat, and have it while the context lasts.

        Args:
            check: asked several times a second; what it raises ends the waiting.
        """
        with self._changed:
            number = max(self._begun, self._next.get(tenant_id, 0))
            self._next[tenant_id] = number + 1
            self._came += 1
            mine = (number, self._came)
            self._waiting.append(mine)
        try:
            # `check` may wait for a database: nobody else does.
            while not self._sat_down(mine):
                check()
        finally:
            with self._changed:
                self._waiting.remove(mine)
                # the next one may have a seat as well
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self.free += 1
                self._changed.notify_all()

    def _sat_down(self, mine: tuple[int, int]) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._may(mine), _POLL_SECONDS)
            if not self._may(mine):
                return False
            self.free -= 1
            self._begun = max(self._begun, mine[0])
            # Tenants that are not ahead would be given the same number without a row.
            self._next = {one: n for one, n in self._next.items() if n > self._begun}
            return True

    def _may(self, mine: tuple[int, int]) -> bool:
        return self.free > 0 and min(self._waiting) == mine
