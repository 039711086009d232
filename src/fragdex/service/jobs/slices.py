"""A job parted into slices: each a job of its own, done by any worker, joined in order.

A job has no more slices in the queue than keep all workers busy. So the slices of a tenant's jobs
take turns as well: the next job of a tenant waits for a few slices of the one before, not for all.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from sqlalchemy import Connection, func, select, update

from fragdex.errors import Unavailable
from fragdex.service.jobs import turns
from fragdex.service.jobs.engine import SELDOM, Engine, Order
from fragdex.service.jobs.work import SLICES, Job, JobOptions, SliceFailed
from fragdex.service.records.database import Database, insert
from fragdex.service.records.tables import executors, jobs

# Rows asked for or changed by one statement.
_BATCH: Final = 200
# Slices of a job in the queue for each that may run: one runs, one is there when it ends. The rest
# follow, so that a long job does not take all numbers before its tenant's next job comes.
_AHEAD: Final = 2
_ENDED: Final = ("SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED")


def enqueue(
    connection: Connection, database: Database, engine: Engine, orders: Sequence[Order]
) -> None:
    """Write the rows of jobs of one tenant and queue, and put them there; those known stay."""
    if not orders:
        return
    queue, tenant_id = orders[0].queue, orders[0].tenant_id
    # Where each tenant has seats of its own, it is the order in which its work came: the engine's
    # clock tells no two of one second apart on SQLite.
    turn = turns.take(connection, queue, tenant_id, len(orders))
    now = database.now(connection)
    for n, order in enumerate(orders):
        row = {
            "id": order.id,
            "name": order.name,
            "attempt": 0,
            "created_at": now + timedelta(seconds=order.delay_seconds),
            "tenant_id": None if order.parent else tenant_id,
            "turn": turn + n,
        }
        statement = insert(connection, jobs).values(row).on_conflict_do_nothing()
        # Of two that order the same at once, the second waits here, and finds it ordered.
        if connection.execute(statement).rowcount:
            engine.enqueue(connection, order, turn + n)


class FanOut:
    """Enqueues slices and waits for them in the thread of their job."""

    def __init__(
        self, database: Database, engine: Engine, options: JobOptions, stopping: threading.Event
    ) -> None:
        self.database = database
        self.engine = engine
        self.poll_seconds = SELDOM * options.poll_seconds
        self.slice_workers = options.slice_workers
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
        tenant_id, known = self._known(job, list(numbers))
        orders = deque(
            Order(id, name, job.record_id, payloads[n], tenant_id, SLICES, job.id)
            for id, n in numbers.items()
            if id not in known
        )
        results: dict[int, Any] = {}
        waiting = {id: numbers[id] for id in known}
        while len(results) < len(payloads):
            job.check()
            try:
                self._enqueue(orders, waiting, numbers)
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

    def _known(self, job: Job, ids: list[str]) -> tuple[str, set[str]]:
        """Whose job it is, and which of its slices an earlier run has put into the queue."""
        known: set[str] = set()
        with self.database.read() as connection:
            of_job = select(jobs.c.tenant_id).where(jobs.c.id == job.id)
            # A job that was forgotten names nobody: it takes turns as if it were a tenant.
            tenant_id = connection.scalar(of_job) or job.record_id
            for first in range(0, len(ids), _BATCH):
                part = select(jobs.c.id).where(jobs.c.id.in_(ids[first : first + _BATCH]))
                known.update(connection.scalars(part))
        return tenant_id, known

    def _enqueue(
        self, orders: deque[Order], waiting: dict[str, int], numbers: Mapping[str, int]
    ) -> None:
        """Put as many slices into the queue as keep all workers busy."""
        if not orders:
            return
        with self.database.read() as connection:
            workers = connection.scalar(select(func.count()).select_from(executors)) or 1
        room = _AHEAD * workers * max(1, self.slice_workers) - len(waiting)
        if room <= 0:
            return
        new = [orders[n] for n in range(min(room, len(orders), _BATCH))]
        with self.database.write() as connection:
            enqueue(connection, self.database, self.engine, new)
        for order in new:
            orders.popleft()
            waiting[order.id] = numbers[order.id]

    def _cancel(self, ids: Sequence[str]) -> None:
        for first in range(0, len(ids), _BATCH):
            part = ids[first : first + _BATCH]
            with self.database.write() as connection:
                now = self.database.now(connection)
                change = update(jobs).where(jobs.c.id.in_(part), jobs.c.cancelled_at.is_(None))
                connection.execute(change.values(cancelled_at=now))


_UNKNOWN: Final = {"error": "ServiceError", "detail": "a slice of the work was cancelled"}
