"""A job parted into slices: each a job of its own, done by any worker, joined in order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, select, update

from fragdex.service.errors import Unavailable
from fragdex.service.jobs.engine import Engine, Order
from fragdex.service.jobs.work import SLICES, Job, SliceFailed
from fragdex.service.records.database import Database, insert
from fragdex.service.records.tables import jobs

__all__ = ["FanOut"]

# Slices put in the queue by one transaction: on SQLite others wait for it.
_BATCH: Final = 200
_ENDED: Final = ("SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED")


def enqueue(
    connection: Connection, database: Database, engine: Engine, orders: Sequence[Order]
) -> None:
    """Write the rows of jobs and put them into their queues; those known stay as they are."""
    now = database.now(connection)
    for order in orders:
        row = {"id": order.id, "name": order.name, "attempt": 0, "created_at": now}
        statement = insert(connection, jobs).values(row).on_conflict_do_nothing()
        # Of two that order the same at once, the second waits here, and finds it ordered.
        if connection.execute(statement).rowcount:
            engine.enqueue(connection, [order])


class FanOut:
    """Enqueues slices and waits for them in the thread of their job."""

    def __init__(
        self, database: Database, engine: Engine, poll_seconds: float, stopping: threading.Event
    ) -> None:
        self.database = database
        self.engine = engine
        self.poll_seconds = poll_seconds
        self.stopping = stopping

    def __call__(
        self,
        job: Job,
        name: str,
        payloads: Sequence[Mapping[str, Any]],
        each: Callable[[int, Any], None] | None,
        stage: str,
    ) -> list[Any]:
        """Results of the slices, in the order of `payloads`."""
        numbers = {f"{job.id}-{stage}{n}": n for n in range(len(payloads))}
        orders = [
            # the first slice of each job before the second of any: a long one keeps nobody waiting
            Order(id, name, job.record_id, payloads[n], SLICES, job.id, turn=n + 1)
            for id, n in numbers.items()
        ]
        for first in range(0, len(orders), _BATCH):
            job.check()
            self._enqueue(orders[first : first + _BATCH])
        results: dict[int, Any] = {}
        waiting = dict(numbers)
        while waiting:
            job.check()
            try:
                ended = self.engine.states(list(waiting), status=_ENDED, outputs=True)
            except Unavailable:
                # The slices go on without us; so does the job once the database is back.
                ended = []
            for state in ended:
                number = waiting.pop(state.id)
                output = state.output if isinstance(state.output, Mapping) else {}
                if "result" not in output:
                    self._cancel(list(waiting))
                    raise SliceFailed(number, output.get("problem") or _UNKNOWN)
                results[number] = output["result"]
                if each is not None:
                    each(number, results[number])
            if waiting and not ended:
                self.stopping.wait(self.poll_seconds)
        return [results[n] for n in range(len(payloads))]

    def _enqueue(self, orders: Sequence[Order]) -> None:
        with self.database.write() as connection:
            ids = [order.id for order in orders]
            known = set(connection.execute(select(jobs.c.id).where(jobs.c.id.in_(ids))).scalars())
            new = [order for order in orders if order.id not in known]
            enqueue(connection, self.database, self.engine, new)

    def _cancel(self, ids: Sequence[str]) -> None:
        for first in range(0, len(ids), _BATCH):
            part = ids[first : first + _BATCH]
            with self.database.write() as connection:
                now = self.database.now(connection)
                change = update(jobs).where(jobs.c.id.in_(part), jobs.c.cancelled_at.is_(None))
                connection.execute(change.values(cancelled_at=now))


_UNKNOWN: Final = {"error": "ServiceError", "detail": "a slice of the work was cancelled"}
