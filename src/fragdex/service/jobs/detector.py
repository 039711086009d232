"""Which worker processes are dead, and whose work is put back into the queue.

The open part of the engine has no failure detector; this is ours. Every live worker writes the
time into its row of `executors`, by the database's clock, so that clocks of machines do not
matter. A worker that has begun work and whose row is older than `dead_after_seconds`, or missing,
is dead: what it had begun goes back into the queue by the engine's own conditional UPDATE, so any
number of watchers may do it at once. A worker that was only frozen goes on when it wakes; its
runs see that they were replaced (`runs.py`), and the engine refuses their outcome.

After the database was away every row is old. So nobody judges before it has itself written a
row after row for `dead_after_seconds` without a gap.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from sqlalchemy import delete, insert, select, update

from fragdex.service.errors import Unavailable
from fragdex.service.jobs.engine import Engine
from fragdex.service.jobs.work import JobOptions
from fragdex.service.logs import explained
from fragdex.service.records.database import Database
from fragdex.service.records.tables import executors

__all__ = ["Detector", "beat", "dead_owners", "leave", "take_over", "take_over_by_public_calls"]

# Row of `executors` that is a lock: who moves its time forward holds it for one lease.
_LOCK: Final = "~take-over"

logger = logging.getLogger("fragdex.jobs")


def beat(database: Database, executor: str) -> None:
    """Write that this executor is alive now."""
    with database.write(passing=True) as connection:
        now = database.now(connection)
        change = update(executors).where(executors.c.id == executor).values(seen_at=now)
        if not connection.execute(change).rowcount:
            connection.execute(insert(executors).values(id=executor, seen_at=now))


def leave(database: Database, executor: str) -> None:
    """Take back the row of an executor: what it had begun is up for taking at once."""
    with database.write() as connection:
        connection.execute(delete(executors).where(executors.c.id == executor))


def dead_owners(database: Database, engine: Engine, own: str, seconds: float) -> list[str]:
    """Executors other than `own` that have begun work and have not been seen for `seconds`.

    Rows of those that are dead and own nothing are taken away.
    """
    owners = {state.executor for state in engine.states(status=("PENDING",)) if state.executor}
    with database.read() as connection:
        oldest = database.now(connection) - timedelta(seconds=seconds)
        rows = connection.execute(select(executors.c.id, executors.c.seen_at)).all()
    alive = {row.id for row in rows if row.seen_at >= oldest} | {own}
    idle = [row.id for row in rows if row.id not in alive | owners and row.id != _LOCK]
    if idle:
        with database.write() as connection:
            gone = delete(executors).where(executors.c.id.in_(idle), executors.c.seen_at < oldest)
            connection.execute(gone)
    return sorted(owners - alive)


def take_over(database: Database, engine: Engine, dead: list[str], seconds: float) -> None:
    """Put back into the queue what dead executors had begun."""
    try:
        engine.recover(dead)
    except AttributeError:
        # The call is not public; an engine without it is served by what is.
        take_over_by_public_calls(database, engine, dead, seconds)


def take_over_by_public_calls(
    database: Database, engine: Engine, dead: list[str], seconds: float
) -> None:
    """The same with public calls only: not conditional, so one watcher at a time does it.

    `resume` also sets back the engine's own count of attempts; ours (`runs.py`) goes on, so that
    a poisonous job still ends.
    """
    if not _locked(database, seconds):
        return
    for state in engine.states(status=("PENDING",), executors=dead):
        engine.resume(state.id, state.queue)
    with database.write() as connection:
        long_ago = datetime(1970, 1, 1, tzinfo=UTC)
        connection.execute(
            update(executors).where(executors.c.id == _LOCK).values(seen_at=long_ago)
        )


def _locked(database: Database, seconds: float) -> bool:
    with database.write() as connection:
        now = database.now(connection)
        mine = (executors.c.id == _LOCK) & (executors.c.seen_at < now - timedelta(seconds=seconds))
        if connection.execute(update(executors).where(mine).values(seen_at=now)).rowcount:
            return True
        there = select(executors.c.id).where(executors.c.id == _LOCK)
        if connection.execute(there).one_or_none() is None:
            connection.execute(insert(executors).values(id=_LOCK, seen_at=now))
            return True
    return False


class Detector:
    """Beats and watches in a thread of its own, until `stop`."""

    def __init__(
        self,
        database: Database,
        engine: Engine,
        executor: str,
        options: JobOptions,
        housekeeping: Callable[[], None],
    ) -> None:
        self.database = database
        self.engine = engine
        self.executor = executor
        self.options = options
        self.housekeeping = housekeeping
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="fragdex-detector", daemon=True)

    def start(self) -> None:
        """Beat once, so that nobody takes work from a worker that is just starting; then watch."""
        beat(self.database, self.executor)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; the row stays until `leave`."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(timeout=10)

    def _watch(self) -> None:
        lease = self.options.dead_after_seconds
        first = last = time.monotonic()
        while not self._stopped.wait(self.options.heartbeat_seconds):
            try:
                beat(self.database, self.executor)
                now = time.monotonic()
                if now - last > lease:
                    first = now
                last = now
                if now - first >= lease:
                    dead = dead_owners(self.database, self.engine, self.executor, lease)
                    if dead:
                        logger.warning("workers gone: %s; their work is taken up", ", ".join(dead))
                        take_over(self.database, self.engine, dead, lease)
                self.housekeeping()
            except Unavailable as error:
                logger.warning("the failure detector waits: %s", explained(error))
            except Exception:
                # A watcher that dies would leave work to lie for ever.
                logger.exception("the failure detector goes on after an error")
