"""Which process this is, which worker processes are dead, and whose work is taken over.

The open part of the engine has no failure detector; this is ours. Every live worker writes the
time into its row of `executors`, by the database's clock, so that clocks of machines do not
matter. A worker that has begun work and whose row is older than `dead_after_seconds`, or missing,
is dead: one watcher at a time puts what it had begun back into the queue. A worker that was only
frozen continues when it wakes; its runs see that they were replaced (`runs.py`), and the engine
refuses their outcome.

After the database was away every row is old. So nobody judges before it has itself written a
row after row for `dead_after_seconds` without a gap.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import socket
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, delete, select, update

from fragdex.errors import Unavailable
from fragdex.service.jobs.engine import JobEngine
from fragdex.service.jobs.work import JobOptions
from fragdex.service.logs import explained
from fragdex.service.records.database import Database, insert
from fragdex.service.records.tables import executors

MOST_PROCESSES = 256
"""Worker processes of one data directory; a bound for the search of a free slot."""

# Row of `executors` that is a lock: who moves its time forward holds it for one lease.
_LOCK: Final = "~take-over"

logger = logging.getLogger("fragdex.jobs")


class Executor:
    """This process's id while the object is open; no other live process has it.

    Two live processes with one id would both run its work, so the id is guarded. On one machine
    (SQLite) it is host and slot, the slot held by a file lock: a process that takes the place of a
    killed one has its id and continues with its work at once. On several machines it is random.
    """

    def __init__(self, locks: Path | None) -> None:
        host = re.sub(r"[^a-z0-9-]", "-", socket.gethostname().lower())[:40]
        self._lock: int | None = None
        self.id = f"{host}-{secrets.token_hex(6)}"
        if locks is not None and os.name == "posix":
            self.id = f"{host}-{self._slot(locks)}"

    def _slot(self, locks: Path) -> int:
        import fcntl

        locks.mkdir(parents=True, exist_ok=True)
        for slot in range(MOST_PROCESSES):
            # The lock belongs to the open file: it ends with the process, however that ends.
            opened = os.open(locks / f"{slot}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(opened)
                continue
            self._lock = opened
            return slot
        return MOST_PROCESSES + secrets.randbits(40)

    def close(self) -> None:
        """Give the id away. Harmless when repeated."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def beat(database: Database, executor: str) -> None:
    """Write that this executor is alive now."""
    with database.write(passing=True) as connection:
        now = database.now(connection)
        row = insert(connection, executors).values(id=executor, seen_at=now)
        connection.execute(
            row.on_conflict_do_update(index_elements=[executors.c.id], set_={"seen_at": now})
        )


def leave(database: Database, executor: str) -> None:
    """Take back the row of an executor: what it had begun is up for taking at once."""
    database.change(delete(executors).where(executors.c.id == executor))


def dead_owners(database: Database, engine: JobEngine, own: str, seconds: float) -> list[str]:
    """Executors other than `own` that have begun work and have not been seen for `seconds`.

    Rows of those that are dead and own nothing are taken away.
    """
    with database.read() as connection:
        owners = engine.owners(connection)
        oldest = database.now(connection) - timedelta(seconds=seconds)
        rows = connection.execute(select(executors.c.id, executors.c.seen_at)).all()
    alive = {row.id for row in rows if row.seen_at >= oldest} | {own}
    idle = [row.id for row in rows if row.id not in alive | owners | {_LOCK}]
    if idle:
        with database.write() as connection:
            gone = delete(executors).where(executors.c.id.in_(idle), executors.c.seen_at < oldest)
            connection.execute(gone)
    return sorted(owners - alive)


def take_over(database: Database, engine: JobEngine, own: str, seconds: float) -> list[str]:
    """Put back into the queue what dead executors had begun; returns those executors.

    The engine puts a job back without condition, also one that another worker runs by now: so one
    watcher at a time does it, and looks at each job once more before. `resume` also sets back the
    engine's own count of attempts; ours (`runs.py`) continues, so that a poisonous job still ends.
    """
    if not dead_owners(database, engine, own, seconds):
        return []
    with database.write() as connection:
        locked_at = _lock(database, connection, seconds)
    if locked_at is None:
        return []
    # Those that another watcher has served, or that are back, are not among them any more.
    dead = dead_owners(database, engine, own, seconds)
    for state in engine.states(status=("PENDING",), executors=dead) if dead else ():
        with database.write(passing=True) as connection:
            locked_at = _lock(database, connection, seconds, locked_at)
        if locked_at is None:
            return dead  # it took so long that another watcher took over
        if engine.states([state.id], status=("PENDING",), executors=dead):
            engine.resume(state.id, state.queue)
    with database.write() as connection:
        own_lock = (executors.c.id == _LOCK) & (executors.c.seen_at == locked_at)
        connection.execute(delete(executors).where(own_lock))
    return dead


def _lock(
    database: Database, connection: Connection, seconds: float, held_since: datetime | None = None
) -> datetime | None:
    """Take the lock, or keep the one that was `held` since; None where another watcher has it."""
    now = database.now(connection)
    if held_since is not None:
        own = (executors.c.id == _LOCK) & (executors.c.seen_at == held_since)
        change = update(executors).where(own).values(seen_at=now)
        return now if connection.execute(change).rowcount else None
    row = insert(connection, executors).values(id=_LOCK, seen_at=now)
    statement = row.on_conflict_do_update(
        index_elements=[executors.c.id],
        set_={"seen_at": now},
        where=executors.c.seen_at < now - timedelta(seconds=seconds),
    ).returning(executors.c.id)
    return None if connection.execute(statement).first() is None else now


class Detector:
    """Beats and watches in a thread of its own, until `stop`."""

    def __init__(
        self,
        database: Database,
        engine: JobEngine,
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
                    dead = take_over(self.database, self.engine, self.executor, lease)
                    if dead:
                        logger.warning("workers gone: %s; their work is taken up", ", ".join(dead))
                self.housekeeping()
            except Unavailable as error:
                logger.warning("the failure detector waits: %s", explained(error))
            except Exception:
                # A watcher that dies would leave work to lie for ever.
                logger.exception("the failure detector continues after an error")
