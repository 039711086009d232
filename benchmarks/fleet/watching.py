"""What the database of a fleet tells while it works: queues by time, and who runs what."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

SAMPLE_S = 0.1
WORKFLOWS = sa.text(
    "SELECT workflow_uuid AS id, queue_name AS queue, status, executor_id AS executor "
    "FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING') AND name = 'fragdex_job'"
)
ATTEMPTS = sa.text("SELECT id, name, attempt FROM fragdex_jobs WHERE id = ANY(:ids)")
ALL_ATTEMPTS = sa.text("SELECT id, name, attempt FROM fragdex_jobs")
CONNECTIONS = sa.text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
TABLES = sa.text(
    "SELECT schemaname || '.' || relname AS name, n_live_tup AS rows, "
    "pg_total_relation_size(relid) AS bytes FROM pg_stat_user_tables ORDER BY 3 DESC, 1"
)
SLICES, JOBS = "slices", "jobs"


@dataclass
class Loss:
    """A piece of work that a killed worker had begun.

    Attributes:
        attempt: its number when the worker was killed.
        queued: seconds from the kill until it was in the queue again.
        begun: seconds from the kill until another run of it began.
        full: seconds of these in which no live worker had a free slot for it.
    """

    id: str
    queue: str
    executor: str
    killed: float
    attempt: int
    queued: float | None = None
    begun: float | None = None
    full: float = 0.0

    @property
    def pick_up(self) -> float | None:
        """Seconds from the kill until it was begun again, those without a free slot left out."""
        return None if self.begun is None else self.begun - self.full

    def as_dict(self) -> dict[str, Any]:
        """For the results."""
        seconds = {"queued": self.queued, "begun": self.begun, "full": self.full}
        rounded = {name: None if s is None else round(s, 2) for name, s in seconds.items()}
        return {"id": self.id, "queue": self.queue, **rounded}


@dataclass
class Watch:
    """Samples the queues in a thread of its own; gaps are when the database was away.

    Attributes:
        slots: by queue, how many runs of it a worker has at once.
        samples: seconds since the start, and numbers by queue and state.
    """

    url: str
    slots: dict[str, int]
    began: float = field(default_factory=time.monotonic)
    samples: list[dict[str, Any]] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    live: set[str] = field(default_factory=set)
    connections: int = 0

    def __post_init__(self) -> None:
        self._engine = sa.create_engine(self.url, poolclass=sa.pool.NullPool)
        self._connection: sa.Connection | None = None
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._last = time.monotonic()
        self._thread = threading.Thread(target=self._watch, name="watch", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stopped.set()
        self._thread.join(10)
        self._let_go()

    def at(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.began

    def running(self, executor: str) -> list[tuple[str, str, int]]:
        """Id, queue and attempt of what a worker has begun and not ended."""
        with self._engine.connect() as connection:
            rows = connection.execute(WORKFLOWS).all()
            mine = {r.id: r.queue for r in rows if r.executor == executor and r.status == "PENDING"}
            attempts = connection.execute(ATTEMPTS, {"ids": list(mine)}).all()
        return [(row.id, mine[row.id], row.attempt) for row in attempts]

    def attempts(self) -> list[Any]:
        """Id, name and attempt of every job and slice."""
        with self._engine.connect() as connection:
            return list(connection.execute(ALL_ATTEMPTS).all())

    def tables(self) -> dict[str, dict[str, int]]:
        """Rows and bytes, with indexes, of every table that has rows."""
        with self._engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT")
            connection.exec_driver_sql("ANALYZE")
            rows = connection.execute(TABLES).all()
        return {row.name: {"rows": row.rows, "bytes": row.bytes} for row in rows if row.rows}

    def lost(self, executor: str, mine: list[tuple[str, str, int]]) -> None:
        """A worker is killed now; what becomes of its work is looked at from here on."""
        now = time.monotonic()
        with self._lock:
            self.live.discard(executor)
            self.losses += [Loss(id, queue, executor, now, n) for id, queue, n in mine]

    def _watch(self) -> None:
        while not self._stopped.wait(SAMPLE_S):
            try:
                if self._connection is None:
                    self._connection = self._engine.connect()
                    self._connection.execution_options(isolation_level="AUTOCOMMIT")
                self._sample(self._connection)
            except sa.exc.SQLAlchemyError:
                self._let_go()

    def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.invalidate()
            connection.close()

    def _sample(self, connection: sa.Connection) -> None:
        with self._lock:
            open_ = [one for one in self.losses if one.begun is None]
        rows = connection.execute(WORKFLOWS).all()
        ids = [one.id for one in open_]
        attempts = connection.execute(ATTEMPTS, {"ids": ids}).all() if ids else ()
        now = time.monotonic()
        counts = Counter((row.queue, row.status) for row in rows)
        states = {f"{queue} {status}": count for (queue, status), count in sorted(counts.items())}
        self.samples.append({"at": round(now - self.began, 2), **states})
        if len(self.samples) % 20 == 0:
            self.connections = max(self.connections, connection.scalar(CONNECTIONS) or 0)
        self._follow(open_, rows, {row.id: row.attempt for row in attempts}, now)
        self._last = now

    def _follow(self, open_: list[Loss], rows: Any, attempts: dict[str, int], now: float) -> None:
        states = {row.id: row for row in rows}
        busy = Counter((r.executor, r.queue) for r in rows if r.status == "PENDING")
        with self._lock:
            live = set(self.live)
        for one in open_:
            row = states.get(one.id)
            back = row is None or row.status == "ENQUEUED" or row.executor != one.executor
            if one.queued is None and back:
                one.queued = now - one.killed
            if attempts.get(one.id, one.attempt) > one.attempt:
                one.begun = now - one.killed
            slots = self.slots.get(one.queue)
            free = slots is None or any(busy[name, one.queue] < slots for name in live)
            if one.begun is None and not free:
                one.full += now - max(self._last, one.killed)
