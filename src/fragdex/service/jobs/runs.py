"""One run of a job: counted before it begins, tried again, given up, given back; slices, turns."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, TypeVar

import sqlalchemy as sa
from sqlalchemy import Connection, func, select, update

from fragdex.errors import (
    ConfigError,
    FragdexError,
    MissingExtra,
    ServiceError,
    SourceUnavailable,
    Unavailable,
)
from fragdex.service.jobs.engine import SELDOM, JobEngine, Order
from fragdex.service.jobs.wakeups import announce
from fragdex.service.jobs.work import (
    SLICES,
    Job,
    JobOptions,
    SliceFailed,
    Stop,
    Work,
    problem_of,
    retryable,
)
from fragdex.service.logs import explained
from fragdex.service.metrics import Metrics
from fragdex.service.records.database import Database, insert
from fragdex.service.records.tables import executors, jobs, turns

# Turns between tenants: whose work is next in a queue that all of them share.
#
# Each piece of work gets a number when it is ordered, and the queue gives out the lowest number
# first. The pieces of one tenant are numbered one after the other. A tenant that had nothing in the
# queue starts at the number that was begun last, not after everything that others have ordered
# before: so its first piece is the next to begin, and from there on tenants take turns, however
# many pieces each of them has ordered. A tenant that is alone gets every worker. (This is start-
# time fair queueing: Goyal, Vin and Cheng, 1996; all pieces count the same.)


# The engine's numbers end at 2**31 - 1. After this one all work is equal: the oldest is next.
LAST: Final = 2**31 - 2
# The row of what was begun last belongs to no tenant.
_BEGUN: Final = ""
_TURN = turns.c


def take_turns(connection: Connection, queue: str, tenant_id: str, count: int = 1) -> int:
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


def turn_begun(connection: Connection, queue: str, turn: int) -> None:
    """Write down that a piece of work has begun; who comes new to the queue starts here."""
    new = insert(connection, turns).values(queue=queue, tenant_id=_BEGUN, next=turn)
    statement = new.on_conflict_do_update(
        index_elements=[_TURN.queue, _TURN.tenant_id], set_={"next": turn}, where=_TURN.next < turn
    )
    connection.execute(statement)


def forget_turns(connection: Connection, queue: str, *, empty: bool) -> None:
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
    """

    def __init__(self, count: int) -> None:
        self.free = count
        self._changed = threading.Condition()
        # Numbers as of turns; the second part tells those of one number apart, by age.
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


logger = logging.getLogger("fragdex.jobs")


def log_failure(job: Job, error: Exception, *, final: bool, is_slice: bool) -> None:
    """Write one line for an attempt that failed.

    A fault of ours is one ERROR with its traceback, once its attempts are used up. What a user's
    file or page is guilty of is one line at INFO: that of the job, not those of its slices. What
    the operator can repair, or passes by itself, is a line at WARNING.

    Args:
        final: there are no more attempts.
        is_slice: the job that waits for this one says it again.
    """
    what, more = _named(job), {"fields": _fields(job)}
    if not final:
        reason = explained(error) or type(error).__name__
        logger.warning("%s is tried again: %s", what, reason, extra=more)
    elif is_fault(error):
        logger.error("%s failed", what, exc_info=error, extra=more)
    elif isinstance(error, Unavailable | OSError | ConfigError | MissingExtra):
        logger.warning("%s failed: %s", what, explained(error), extra=more)
    else:
        level = logging.DEBUG if is_slice else logging.INFO
        logger.log(level, "%s failed: %s", what, explained(error), extra=more)


def log_done(job: Job, seconds: float) -> None:
    """Write one line for a job that is done; slices are logged only at DEBUG."""
    level = logging.INFO if job.parent is None else logging.DEBUG
    fields = {**_fields(job), "seconds": round(seconds, 3)}
    logger.log(level, "%s is done after %.1f s", _named(job), seconds, extra={"fields": fields})


def _named(job: Job) -> str:
    return f"{job.name} of {job.record_id} (job {job.id}, attempt {job.attempt})"


def _fields(job: Job) -> dict[str, Any]:
    """What a line of JSON says of a job."""
    return {
        "work": job.name,
        "record": job.record_id,
        "job": job.id,
        "parent": job.parent,
        "attempt": job.attempt,
    }


def is_fault(error: Exception) -> bool:
    """Whether an error is a fault of the service itself: nobody has raised it on purpose."""
    if isinstance(error, SliceFailed):
        return False  # the slice has said it
    return not isinstance(error, FragdexError) or type(error) in (FragdexError, ServiceError)


# No pause is longer, so that a stopping process is not held up and an outage ends soon.
_LONGEST_PAUSE: Final = 30.0
# Tries of `failed` itself, before the job is left with its problem in the job's row alone.
_FAREWELLS: Final = 5

T = TypeVar("T")


class JobRuns:
    """Runs jobs in this process; `stopping` ends them all."""

    def __init__(
        self,
        database: Database,
        options: JobOptions,
        works: Mapping[str, Work],
        fan_out: Any,
        stopping: threading.Event,
        metrics: Metrics,
    ) -> None:
        self.database = database
        self.options = options
        self.works = works
        self.fan_out = fan_out
        self.stopping = stopping
        self.metrics = metrics
        self.going: set[str] = set()

    def run(
        self,
        context: Any,
        job_id: str,
        name: str,
        record_id: str,
        payload: Mapping[str, Any],
        parent: str | None,
    ) -> dict[str, Any]:
        """Run a job to its end; returns `{"result"}`, `{"problem"}` or `{"cancelled"}`.

        Raises:
            Stop: it was handed back or replaced: the engine must keep it as begun.
        """
        work = self.works.get(name)
        if work is None:
            logger.error("no work is called %s (job %s)", name, job_id)
            return {"problem": {"error": "ServiceError", "detail": f"no work is called {name}"}}
        if self.stopping.is_set():
            raise Stop  # it was taken at the last moment
        self.going.add(job_id)
        try:
            job = Job(job_id, name, record_id, payload, 0, self._wanted, self.fan_out, parent)
            ended = self._attempts(context, work, job)
            if parent is None:
                self._patiently(lambda: self._end(job_id))
            return ended
        finally:
            self.going.discard(job_id)

    def _end(self, job_id: str) -> None:
        """The job is over; it does not count as its tenant's work in progress any more."""
        with self.database.write() as connection:
            over = update(jobs).where(jobs.c.id == job_id, jobs.c.ended_at.is_(None))
            connection.execute(over.values(ended_at=self.database.now(connection)))

    def _attempts(self, context: Any, work: Work, first: Job) -> dict[str, Any]:
        while True:
            number, problem = self._patiently(lambda: self._begin(first, work))
            if number is None:
                return {"cancelled": True}
            job = replace(first, attempt=number)
            if problem is not None:
                return self._give_up(context, work, job, problem)
            with self.metrics.attempt(work.name) as counted:
                ended = self._attempt(context, work, job)
                if job.cancelled():
                    unwanted = self._end_unwanted(job)
                    counted.outcome = "cancelled"
                    return unwanted
                if not isinstance(ended, Exception):
                    counted.outcome = "done"
                    log_done(job, counted.seconds)
                    return {"result": ended}
                final = number >= work.attempts or not retryable(ended)
                counted.outcome = "failed" if final else "tried again"
            problem = problem_of(ended)
            log_failure(job, ended, final=final, is_slice=job.parent is not None)
            if final:
                return self._give_up(context, work, job, problem)
            self._note(job, problem)
            self._pause(self.options.backoff_seconds * 2 ** (number - 1))

    def _attempt(self, context: Any, work: Work, job: Job) -> Any:
        """What the work returned, or the exception it raised; waits for an absent database."""
        deadline = time.monotonic() + self.options.patience_seconds
        pause = self.options.backoff_seconds
        while True:
            try:
                return work.run(context, job)
            except Stop:
                job._told = True
                return None
            except (Unavailable, SourceUnavailable) as error:
                # the second: a child process asked the store for bytes
                if time.monotonic() > deadline or job.cancelled() or not retryable(error):
                    return error
                logger.warning("jobs wait: %s", explained(error))  # the same line for all
                self._pause(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            except Exception as error:  # noqa: BLE001  whatever it is, it is this job's alone
                return error

    def _begin(self, job: Job, work: Work) -> tuple[int | None, dict[str, Any] | None]:
        """The number of the attempt that begins, None where it is cancelled; why it must not."""
        job_id, parent = job.id, job.parent
        with self.database.write() as connection:
            known = connection.execute(select(jobs).where(jobs.c.id == job_id)).one_or_none()
            if known is None:
                # Forgotten, and yet in the queue: a database put together from two back-ups.
                now = self.database.now(connection)
                row = {"id": job_id, "name": work.name, "attempt": 0, "created_at": now}
                connection.execute(jobs.insert().values(row))
            elif known.cancelled_at is not None:
                return None, None
            elif known.attempt == 0 and known.problem is None:
                waited = self.database.now(connection) - known.created_at
                self.metrics.count_wait(work.name, max(0.0, waited.total_seconds()))
            if parent is not None:
                over = select(jobs.c.cancelled_at).where(jobs.c.id == parent)
                at = connection.execute(over).scalar_one_or_none()
                if at is not None:
                    # it waits no longer
                    mine = update(jobs).where(jobs.c.id == job_id)
                    connection.execute(mine.values(cancelled_at=at))
                    return None, None
            begun = 0 if known is None else known.attempt
            problem = None if known is None else known.problem
            if begun >= work.attempts:
                died = {
                    "error": "ServiceError",
                    "detail": f"the work was begun {begun} times and its worker never lived to "
                    "see the end of it",
                }
                # Counted on, so that this run is the one that is wanted.
                change = update(jobs).where(jobs.c.id == job_id).values(attempt=begun + 1)
                connection.execute(change)
                return begun + 1, problem or died
            change = update(jobs).where(jobs.c.id == job_id)
            connection.execute(change.values(attempt=begun + 1, problem=None))
            if known is not None and known.turn is not None:
                # the last thing: other runs that begin wait for this row
                turn_begun(connection, work.queue, known.turn)
            return begun + 1, None

    def _wanted(self, job: Job) -> bool:
        if self.stopping.is_set():
            return False
        ids = _with_parent(job)
        try:
            states = self.database.all(
                select(jobs.c.id, jobs.c.attempt, jobs.c.cancelled_at).where(jobs.c.id.in_(ids))
            )
        except Unavailable:
            return True
        rows = {row.id: row for row in states}
        return (
            job.id in rows
            and rows[job.id].attempt == job.attempt
            and all(row.cancelled_at is None for row in rows.values())
        )

    def _end_unwanted(self, job: Job) -> dict[str, Any]:
        """Tell the three reasons apart: cancelled, handed back, replaced."""
        ids = _with_parent(job)

        def look() -> bool:
            with self.database.write() as connection:
                rows = connection.execute(select(jobs).where(jobs.c.id.in_(ids))).all()
                if any(row.cancelled_at is not None for row in rows):
                    return True
                if self.stopping.is_set():
                    mine = (jobs.c.id == job.id) & (jobs.c.attempt == job.attempt)
                    back = update(jobs).where(mine)
                    connection.execute(back.values(attempt=job.attempt - 1))
                return False

        if self._patiently(look):
            return {"cancelled": True}
        raise Stop

    def _note(self, job: Job, problem: Mapping[str, Any]) -> None:
        mine = (jobs.c.id == job.id) & (jobs.c.attempt == job.attempt)

        def note() -> None:
            self.database.change(update(jobs).where(mine).values(problem=dict(problem)))

        self._patiently(note)

    def _give_up(
        self, context: Any, work: Work, job: Job, problem: Mapping[str, Any]
    ) -> dict[str, Any]:
        self._note(job, problem)
        for farewell in range(_FAREWELLS):
            try:
                self._patiently(lambda: work.failed(context, job, problem))
                break
            except Exception:
                logger.exception("job %s: its failure could not be recorded", job.id)
                self._pause(self.options.backoff_seconds * 2**farewell)
        return {"problem": dict(problem)}

    def _patiently(self, ask: Callable[[], T]) -> T:
        """Ask the database until it answers or the process stops."""
        pause = self.options.backoff_seconds
        while True:
            try:
                return ask()
            except Unavailable as error:
                logger.warning("jobs wait for the database: %s", explained(error))
                if self.stopping.is_set():
                    raise Stop from error
                self._pause(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _pause(self, seconds: float) -> None:
        self.stopping.wait(min(seconds, _LONGEST_PAUSE))


def _with_parent(job: Job) -> list[str]:
    """The jobs that end a run of this one where they are cancelled."""
    return [job.id] if job.parent is None else [job.id, job.parent]


# A job parted into slices: each a job of its own, done by any worker, joined in order.
#
# A job has no more slices in the queue than keep all workers busy. So the slices of a tenant's jobs
# take turns as well: the next job of a tenant waits for a few slices of the one before, not for
# all.


# Rows read or changed by one statement.
_BATCH: Final = 200
# Slices of a job in the queue for each that may run: one runs, one is there when it ends. The rest
# follow, so that a long job does not take all numbers before its tenant's next job comes.
_AHEAD: Final = 2
_ENDED: Final = ("SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED")


def enqueue(
    connection: Connection, database: Database, engine: JobEngine, orders: Sequence[Order]
) -> None:
    """Write the rows of jobs of one tenant and queue, and put them there; those known stay."""
    if not orders:
        return
    queue, tenant_id = orders[0].queue, orders[0].tenant_id
    # Where each tenant has seats of its own, it is the order in which its work came: the engine's
    # clock tells no two of one second apart on SQLite.
    turn = take_turns(connection, queue, tenant_id, len(orders))
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
    announce(connection)


class FanOut:
    """Enqueues slices and waits for them in the thread of their job."""

    def __init__(
        self, database: Database, engine: JobEngine, options: JobOptions, stopping: threading.Event
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
                # The slices continue without us; so does the job once the database is back.
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
        workers = self.database.scalar(select(func.count()).select_from(executors)) or 1
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
