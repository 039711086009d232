"""Everything DBOS: no other file of the service imports it.

DBOS keeps queue and history in the database of the service (on SQLite the same file), so that a
record and its job are one commit. It knows a single workflow of ours; what it runs is looked up
by name. Arguments and results are JSON, never pickles. Nothing is sent anywhere.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import sqlalchemy as sa
from dbos import DBOS, DBOSClient, DBOSConfig, DBOSPortableJSONSerializer, EnqueueOptions
from sqlalchemy.exc import InterfaceError, OperationalError, TimeoutError

from fragdex.errors import Unavailable
from fragdex.record import record
from fragdex.service.jobs.wakeups import (
    NET_SECONDS,
    QUEUE_NET_SECONDS,
    QueueWatch,
    WorkSignal,
    announce,
    sleep_on,
)
from fragdex.service.jobs.work import JOBS, PARENTS, SLICES, WEBHOOKS, JobOptions
from fragdex.service.logs import REQUEST_ID, explained
from fragdex.service.records.database import Database
from fragdex.traces import Traces, trace_context

APPLICATION: Final = "fragdex"
# Of the orders, not of the release: workers of a new release take up the jobs of the old one.
# A new number leaves old jobs to old workers.
VERSION: Final = "1"
WORKFLOW: Final = "fragdex_job"
# Of a payload: the request that ordered the job, for the log. No family has such a name.
_REQUEST_ID: Final = "~request_id"
# And the span that it was ordered in, which the job's own continues.
_TRACE: Final = "~trace"
# Ids in one query, far below SQLite's bound of 32766 variables.
_BATCH: Final = 500


def _owners(schema: str | None) -> sa.Select[str]:
    begun = sa.table(
        "workflow_status", sa.column("executor_id"), sa.column("status"), sa.column("name"),
        schema=schema,
    )  # fmt: skip
    return (
        sa.select(begun.c.executor_id)
        # by value, so that the engine's partial index serves
        .where(begun.c.status == sa.literal_column("'PENDING'"))
        .where(begun.c.name == WORKFLOW, begun.c.executor_id.is_not(None))
        .distinct()
    )


_OWNERS: Final = {"sqlite": _owners(None), "postgresql": _owners("dbos")}

Runner = Callable[[str, str, str, Mapping[str, Any], str | None], dict[str, Any]]

SELDOM: Final = 5
"""Polls for jobs to one for work that takes long, or waits for others."""
# How often the engine may look at what we do not use.
_UNUSED_SECONDS: Final = 0.25
# The queue of what the engine takes up again by itself, when a worker starts.
_RECOVERED: Final = "_dbos_internal_queue"
# How many jobs of a tenant may wait for their slices, for each that may work.
_PARENTS: Final = 4
# How many webhooks of a tenant a process waits for at once: a slow one holds up only its own.
_WEBHOOKS: Final = 4

# where SQLAlchemy's messages quote the statement, its parameters and a link
_SQL: Final = re.compile(r"\[SQL: |\[parameters: |\(Background on this error")
_LONGEST: Final = 300

logger = logging.getLogger("fragdex.jobs")


@record(frozen=True, slots=True)
class Order:
    """A job or slice to be enqueued.

    Attributes:
        tenant_id: whose work it is.
        parent: the job that a slice belongs to.
        delay_seconds: how long it waits before it may begin.
    """

    id: str
    name: str
    record_id: str
    payload: Mapping[str, Any]
    tenant_id: str
    queue: str = JOBS
    parent: str | None = None
    delay_seconds: float = 0.0


@record(frozen=True, slots=True)
class JobState:
    """What the engine knows of a job; `output` is there once it ended."""

    id: str
    status: str
    executor: str | None
    queue: str | None
    output: Any


def _url(database: Database) -> str:
    url = database.engine.url
    return (url.set(drivername="sqlite") if _sqlite(database) else url).render_as_string(
        hide_password=False
    )


def _sqlite(database: Database) -> bool:
    return database.engine.dialect.name == "sqlite"


def _quiet(options: JobOptions) -> None:
    """Leave the engine's log to the service's own handlers; it would add one of its own."""
    log = logging.getLogger("dbos")
    if not log.handlers:
        log.addHandler(logging.NullHandler())
    log.setLevel(options.log_level)
    if not any(isinstance(one, _InOurWords) for one in log.filters):
        log.addFilter(_InOurWords())


class _InOurWords(logging.Filter):
    """The engine's lines, as lines of the service: one each, with a reason and no traceback.

    It writes whole tracebacks and SQL of every poll in which the database does not answer.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        text = record.getMessage().partition("Traceback (most")[0]
        first = next((line.strip() for line in text.splitlines() if line.strip()), "")
        sentence = _SQL.split(first)[0].strip().rstrip(":")[:_LONGEST]
        reason = "" if error is None else explained(error)
        record.name = logger.name
        record.msg = ": ".join(filter(None, ("the job engine", sentence, reason)))
        record.args, record.exc_info, record.exc_text, record.stack_info = (), None, None, None
        return True


def upgrade(database: Database) -> None:
    """Make or bring up to date the engine's own tables. Harmless when repeated."""
    _quiet(JobOptions())
    with database.read():
        pass  # the file gets its write-ahead log before the engine sees it
    DBOS.migrate(_url(database))


def _engine(database: Database) -> sa.Engine:
    """An engine for DBOS on SQLite, which begins its transactions in another way than ours.

    The settings are those of `records/database.py`; the write-ahead log is the file's own.
    """
    engine = sa.create_engine(_url(database))

    @sa.event.listens_for(engine, "connect")
    def connected(connection: Any, _record: Any) -> None:
        connection.isolation_level = "IMMEDIATE"
        connection.execute("PRAGMA busy_timeout=30000")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA synchronous=NORMAL")

    return engine


@contextmanager
def _answering() -> Iterator[None]:
    try:
        yield
    except (InterfaceError, OperationalError, TimeoutError) as error:
        raise Unavailable("the database does not answer", retry_after=5) from error


class JobEngine:
    """The queue, from the side of those who order and of those who work."""

    def __init__(self, database: Database, options: JobOptions, traces: Traces) -> None:
        self.database = database
        self.options = options
        self._traces = traces
        _quiet(options)
        # On PostgreSQL the client shares the service's own pool.
        self._own_engine = _engine(database) if _sqlite(database) else None
        self._client = DBOSClient(
            system_database_engine=self._own_engine or database.engine,
            serializer=DBOSPortableJSONSerializer(),
            application_name=APPLICATION,
            lazy=True,
            retry_connection_errors=False,
        )
        self._launched = False
        self._executor = ""
        self._watch: QueueWatch | None = None

    def enqueue(self, connection: sa.Connection, order: Order, turn: int) -> None:
        """Put an order into its queue, in the caller's transaction. A known id stays as it is.

        Args:
            turn: of two in a queue, that of the lower one comes first; then the older one.
        """
        where: EnqueueOptions = {
            "queue_name": order.queue,
            "workflow_name": WORKFLOW,
            "workflow_id": order.id,
            "app_version": VERSION,
            "priority": turn,
        }
        if order.delay_seconds > 0:
            where["delay_seconds"] = order.delay_seconds
        if order.queue in (PARENTS, WEBHOOKS):
            where["queue_partition_key"] = order.tenant_id
        payload = dict(order.payload)
        if request_id := REQUEST_ID.get():
            payload[_REQUEST_ID] = request_id
        if trace := trace_context():
            payload[_TRACE] = trace
        self._client.enqueue_in_transaction(
            connection, where, order.name, order.record_id, payload, order.parent
        )

    def is_empty(self, queue: str) -> bool:
        """Whether nothing waits in a queue."""
        with _answering():
            waiting = self._client.list_workflows(
                status=["ENQUEUED", "DELAYED"], queue_name=queue, limit=1,
                load_input=False, load_output=False, name=WORKFLOW,
            )  # fmt: skip
        return not waiting

    def states(
        self,
        ids: Sequence[str] | None = None,
        *,
        status: Sequence[str] | None = None,
        outputs: bool = False,
        executors: Sequence[str] | None = None,
    ) -> list[JobState]:
        """What the engine knows of jobs: of these, or of all in one of these states."""
        parts: list[list[str] | None] = [None]
        if ids is not None:
            parts = [list(ids[i : i + _BATCH]) for i in range(0, len(ids), _BATCH)]
        states: list[JobState] = []
        for part in parts:
            with _answering():
                rows = self._client.list_workflows(
                    workflow_ids=part,
                    status=None if status is None else list(status),
                    executor_id=None if executors is None else list(executors),
                    load_input=False,
                    load_output=outputs,
                    name=WORKFLOW,
                )
            states += [
                JobState(r.workflow_id, r.status, r.executor_id, r.queue_name, r.output)
                for r in rows
            ]
        return states

    def owners(self, connection: sa.Connection) -> set[str]:
        """The executors that have begun work and not ended it; once a second, so by one statement.

        `states` asks the engine, which takes three times as long.
        """
        return set(connection.scalars(_OWNERS[connection.dialect.name]))

    def resume(self, id: str, queue: str | None) -> None:
        """Put a job that has not ended back into its queue, whoever runs it at this moment."""
        with _answering():
            self._client.resume_workflow(id, queue_name=queue or JOBS)
            if not _sqlite(self.database):
                with self.database.engine.begin() as connection:
                    announce(connection)

    def forget(self, before: float, limit: int) -> list[str]:
        """Delete what ended before an epoch second, at most `limit` at once; returns the ids."""
        day = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(before))
        with _answering():
            rows = self._client.list_workflows(
                status=["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"],
                completed_before=day,
                limit=limit,
                load_input=False,
                load_output=False,
                name=WORKFLOW,
            )
            ids = [row.workflow_id for row in rows]
            if ids:
                self._client.delete_workflows(ids)
        return ids

    def launch(self, executor: str, runner: Runner) -> None:
        """Begin to take work from the queues, in threads of this process.

        DBOS is one per process: a second `JobEngine` of a process cannot be launched.
        """
        self._executor = executor
        config: DBOSConfig = {
            "name": APPLICATION,
            "system_database_url": _url(self.database),
            "executor_id": executor,
            "application_version": VERSION,
            "serializer": DBOSPortableJSONSerializer(),
            "log_level": self.options.log_level,
            "enable_otlp": False,
            "use_listen_notify": not _sqlite(self.database),
            # Threads for messages between workflows, which we do not send, sleep for so long;
            # what ends the process waits for them.
            "notification_listener_polling_interval_sec": _UNUSED_SECONDS,
            "notification_coalesce_sec": _UNUSED_SECONDS,
            # and for schedules, which we do not have
            "scheduler_polling_interval_sec": 3600.0,
        }
        if self._own_engine is not None:
            config["system_database_engine"] = self._own_engine

        def workflow(
            name: str, record_id: str, payload: dict[str, Any], parent: str | None
        ) -> dict[str, Any]:
            """The one workflow; no steps, because every work is idempotent by itself."""
            assert DBOS.workflow_id is not None
            REQUEST_ID.set(payload.pop(_REQUEST_ID, ""))
            with self._traces.span(
                f"{'job' if parent is None else 'slice'} {name}",
                kind="consumer",
                # none: not that of what this thread did before
                parent=payload.pop(_TRACE, {}),
                attributes={
                    "fragdex.job": DBOS.workflow_id,
                    "fragdex.record": record_id,
                    "fragdex.request_id": REQUEST_ID.get(),
                },
            ) as span:
                ended = runner(DBOS.workflow_id, name, record_id, payload, parent)
                if span is not None and "problem" in ended:
                    span.failed(str(ended["problem"].get("error", "ServiceError")))
                return ended

        engine = DBOS(config=config)
        DBOS.workflow(name=WORKFLOW, max_recovery_attempts=None)(workflow)
        DBOS.listen_queues([JOBS, PARENTS, SLICES, WEBHOOKS])
        DBOS.launch()
        self._launched = True
        signal = WorkSignal()
        for event in engine.background_thread_stop_events:
            sleep_on(event, signal, QUEUE_NET_SECONDS)
        sleep_on(engine._background_jobs_stop_event, signal, NET_SECONDS)
        jobs, poll = self.options.job_workers, self.options.poll_seconds
        for queue, workers, of_tenant, every in (
            # A slot that is free stays so until the next poll, and many jobs take no longer.
            (JOBS, jobs, None, poll),
            # Each tenant has seats of its own: those of one are not taken by another's.
            (PARENTS, None, max(1, _PARENTS * jobs), SELDOM * poll),
            (SLICES, self.options.slice_workers, None, 2 * poll),
            (WEBHOOKS, None, _WEBHOOKS, SELDOM * poll),
        ):
            DBOS.register_queue(
                queue,
                worker_concurrency=workers,
                partition_worker_concurrency=of_tenant,
                polling_interval_sec=every,
                on_conflict="always_update",
            )
        queues = (JOBS, PARENTS, SLICES, WEBHOOKS, _RECOVERED)
        self._watch = QueueWatch(self.database, signal, queues, poll)
        self._watch.start()
        if _sqlite(self.database):
            self.database.after_write = self._watch.nudge

    def destroy(self, grace: float) -> None:
        """Take no more work; wait for runs that are ending. What has not ended stays as begun."""
        if self._launched:
            self._launched = False
            if self._watch is not None:
                self.database.after_write = lambda: None
                self._watch.stop()
            try:
                is_busy = bool(self.states(status=["PENDING"], executors=[self._executor]))
            except Unavailable:
                is_busy = True
            # DBOS looks at its runs once a second, and for the first time after one.
            DBOS.destroy(workflow_completion_timeout_sec=max(1, round(grace)) if is_busy else 0)

    def close(self) -> None:
        """Let go of the database."""
        self._client.destroy()
        if self._own_engine is not None:
            self._own_engine.dispose()
