"""What the rest of the service sees of jobs: order, cancel, ask, work."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import Connection, delete, func, select, update

from fragdex.errors import ConfigError, TooManyRequests, Unavailable
from fragdex.service.config import Settings
from fragdex.service.jobs.engine import JobEngine, Order, upgrade
from fragdex.service.jobs.runs import FanOut, JobRuns, Seats, enqueue, forget_turns
from fragdex.service.jobs.work import JOBS, PARENTS, SLICES, WEBHOOKS, JobOptions, Work
from fragdex.service.jobs.workers import Detector, Executor, leave
from fragdex.service.logs import explained
from fragdex.service.metrics import Metrics
from fragdex.service.records.database import Database
from fragdex.service.records.tables import jobs
from fragdex.service.records.tenant_limits import limits_of
from fragdex.traces import Traces

_HOUR: Final = 3600.0
# Ended jobs forgotten by one heartbeat: a bound for how long others wait on SQLite.
_FORGOTTEN_AT_ONCE: Final = 200
# When a tenant with as many jobs as it may have can come again.
_ROOM_SECONDS: Final = 10.0

logger = logging.getLogger("fragdex.jobs")


def options_of(settings: Settings) -> JobOptions:
    """The options of jobs that settings mean."""
    return JobOptions(
        data=settings.data,
        job_workers=settings.job_workers,
        slice_workers=settings.slice_workers,
        tenant_jobs=settings.max_tenant_jobs,
        poll_seconds=settings.poll_seconds,
        heartbeat_seconds=settings.heartbeat_seconds,
        dead_after_seconds=settings.lease_seconds,
        history_days=settings.job_history_days,
        # The engine's "info" is a banner and a line for each queue.
        log_level="DEBUG" if settings.log_level == "debug" else "WARNING",
    )


class Jobs:
    """The door to the engine: of a process that orders, and of one that works.

    Ordering and asking need `upgrade(database)` to have run once, by any process. Working is one
    per process, because the engine is.
    """

    def __init__(
        self, database: Database, options: JobOptions, traces: Traces | None = None
    ) -> None:
        self.database = database
        self.options = options
        self.metrics = Metrics()
        self.traces = traces or Traces()
        # Many jobs wait for their slices at once; so many of them do something themselves.
        self.seats = Seats(max(1, options.job_workers))
        self._works: dict[str, Work] = {}
        self._engine = JobEngine(database, options, self.traces)
        self._stopping = threading.Event()
        self._executor: Executor | None = None
        self._detector: Detector | None = None
        self._runs: JobRuns | None = None
        self._housekept = time.monotonic()

    def register(self, *works: Work) -> None:
        """Tell what orders mean.

        Raises:
            ConfigError: another work of this name is known.
        """
        for work in works:
            if self._works.setdefault(work.name, work) is not work:
                raise ConfigError(f"two works are called {work.name}")

    def enqueue(
        self,
        connection: Connection,
        name: str,
        record_id: str,
        payload: Mapping[str, Any] | None = None,
        *,
        tenant_id: str,
        again: int = 0,
        delay_seconds: float = 0.0,
    ) -> str:
        """Order work for a record in the caller's transaction; returns the job's id.

        The same order twice is one job; `again` makes another one for the same record. Nobody is
        refused here: whoever takes a request for work asks `ensure_room` first.

        Args:
            delay_seconds: the job begins no sooner than that.

        Raises:
            ConfigError: no such work.
        """
        work = self._works.get(name)
        if work is None:
            raise ConfigError(f"no work is called {name}")
        job_id = f"{name}-{record_id}" + (f"-{again}" if again else "")
        order = Order(
            job_id, name, record_id, dict(payload or {}), tenant_id, work.queue,
            delay_seconds=delay_seconds,
        )  # fmt: skip
        enqueue(connection, self.database, self._engine, [order])
        return job_id

    def ensure_room(self, connection: Connection, tenant_id: str, wanted: int = 1) -> None:
        """Refuse a request for work where its tenant has as many jobs in progress as it may.

        Deliveries to webhooks do not count: a receiver that is away for a day stops no work.

        Args:
            wanted: how many jobs are requested.

        Raises:
            TooManyRequests: with the limit; `retry_after` says when to come again.
        """
        limit = limits_of(connection, tenant_id).max_jobs or self.options.tenant_jobs
        count = self.unfinished(connection, tenant_id)
        if count + wanted > limit:
            more = f", {wanted} more were requested" if wanted > 1 else ""
            raise TooManyRequests(
                f"{count} jobs of this tenant are not over{more}, and no more than {limit} may be",
                more={"limit": limit}, retry_after=_ROOM_SECONDS,
                advice="wait until some have ended, or cancel some",
            )  # fmt: skip

    def unfinished(self, connection: Connection, tenant_id: str) -> int:
        """How many jobs of a tenant are in progress, waiting or running, without deliveries."""
        deliveries = [work.name for work in self._works.values() if work.queue == WEBHOOKS]
        going = (
            select(func.count())
            .where(jobs.c.tenant_id == tenant_id, jobs.c.ended_at.is_(None))
            .where(jobs.c.cancelled_at.is_(None), jobs.c.name.not_in(deliveries))
        )
        return connection.scalar(going) or 0

    def cancel(self, job_id: str, connection: Connection | None = None) -> bool:
        """Say that a job is not wanted any more, its slices included.

        Running work stops within a second or two, and nothing new begins. In the caller's
        transaction where one is given. False where the job is unknown or was cancelled before.
        """
        if connection is None:
            with self.database.write() as own:
                return self.cancel(job_id, own)
        now = self.database.now(connection)
        change = update(jobs).where(jobs.c.id == job_id, jobs.c.cancelled_at.is_(None))
        return bool(connection.execute(change.values(cancelled_at=now)).rowcount)

    def status(self, job_id: str) -> str | None:
        """`queued`, `running`, `done`, `failed`, `cancelled`; None for an unknown job."""
        row = self.database.first(select(jobs).where(jobs.c.id == job_id))
        states = self._engine.states([job_id], outputs=True)
        if row is None or not states:
            return None
        state = states[0]
        if state.status == "SUCCESS" and isinstance(state.output, Mapping):
            ends = {"result": "done", "problem": "failed", "cancelled": "cancelled"}
            return next((end for key, end in ends.items() if key in state.output), "failed")
        if row.cancelled_at is not None:
            return "cancelled"
        if state.status in ("ENQUEUED", "DELAYED"):
            return "queued"
        return "running" if state.status == "PENDING" else "failed"

    def start_worker(self, context: Any) -> str:
        """Take work from the queues in threads of this process; returns the executor's id.

        Raises:
            ConfigError: this process works already.
        """
        if self._executor is not None:
            raise ConfigError("this process works already")
        upgrade(self.database)
        local = self.database.engine.dialect.name == "sqlite" and self.options.data is not None
        locks = self.options.data / "executors" if local and self.options.data else None
        self._executor = Executor(locks)
        self._stopping.clear()
        fan_out = FanOut(self.database, self._engine, self.options, self._stopping)
        runs = self._runs = JobRuns(
            self.database, self.options, self._works, fan_out, self._stopping, self.metrics
        )  # fmt: skip
        self._detector = Detector(
            self.database, self._engine, self._executor.id, self.options, self._housekeep
        )
        self._detector.start()
        self._engine.launch(self._executor.id, lambda *order: runs.run(context, *order))
        logger.info("working as %s", self._executor.id)
        return self._executor.id

    def stop(self) -> list[str]:
        """Take no more work, end what runs and hand it back; returns what would not end.

        A job that looks at `cancelled()` ends within the grace; others hold up the end of the
        process, unless it leaves by `os._exit`. All of them are run again, by another worker at
        once or by the next one to start.
        """
        if self._executor is None:
            return []
        self._stopping.set()
        self._engine.destroy(self.options.grace_seconds)
        if self._detector is not None:
            self._detector.stop()
        stuck = sorted(self._runs.going) if self._runs is not None else []
        try:
            for state in self._engine.states(status=("PENDING",), executors=[self._executor.id]):
                self._engine.resume(state.id, state.queue)
            leave(self.database, self._executor.id)
        except Unavailable as error:
            # The failure detector of another process sees it in a few seconds.
            logger.warning("work could not be handed back: %s", explained(error))
        self._executor.close()
        self._executor = self._detector = self._runs = None
        return stuck

    def close(self) -> None:
        """Stop working, and let go of the database."""
        self.stop()
        self._engine.close()

    def purge(self, days: float | None = None) -> int:
        """Forget up to 200 jobs that ended more than `days` ago (default: the setting)."""
        days = self.options.history_days if days is None else days
        ids = self._engine.forget(time.time() - days * 24 * _HOUR, _FORGOTTEN_AT_ONCE)
        if ids:
            self.database.change(delete(jobs).where(jobs.c.id.in_(ids)))
        return len(ids)

    def _housekeep(self) -> None:
        """Called with every heartbeat: purge once an hour, and on while there is much."""
        if time.monotonic() - self._housekept < _HOUR or self.purge() >= _FORGOTTEN_AT_ONCE:
            return
        self._housekept = time.monotonic()
        for queue in (JOBS, PARENTS, SLICES, WEBHOOKS):
            empty = self._engine.is_empty(queue)
            with self.database.write() as connection:
                forget_turns(connection, queue, empty=empty)
