"""What a job is: a function with limits, and what each run of it is given."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from fragdex.errors import (
    ConfigError,
    EngineUnavailable,
    FragdexError,
    NeverReady,
    NotReady,
    ServiceError,
    Unavailable,
)
from fragdex.record import record

JOBS = "jobs"
"""The queue of jobs: each runs on one worker."""
PARENTS = "parents-of-tenants"
"""The queue of jobs that mostly wait for their slices: many of each tenant run at once."""
SLICES = "slices"
"""The queue of slices: they wait for nobody, so jobs that wait for them cannot lock them out."""
WEBHOOKS = "webhooks-of-tenants"
"""The queue of what waits for other people's servers: a few of each tenant run at once."""

# How long a run trusts its last look at whether it is still wanted.
_LOOK_SECONDS = 1.0


class Stop(BaseException):
    """A run ends without a result: cancelled, handed back, or another run has taken its place.

    No Exception, so that no job function takes it for an error of its own.
    """


class SliceFailed(ServiceError):
    """A slice used up its attempts; `problem` is why."""

    def __init__(self, number: int, problem: Mapping[str, Any]) -> None:
        super().__init__(str(problem.get("detail", f"slice {number} failed")))
        self.number = number
        self.problem = dict(problem)


@record(frozen=True, slots=True)
class JobOptions:
    """How a process takes part in the work.

    Attributes:
        data: directory of the lock files that tell processes of one machine apart (SQLite).
        job_workers, slice_workers: runs at once in each worker process. They stand in the
            database: the worker that started last decides for all.
        poll_seconds: how often each worker polls for jobs while some wait; half as often for
            slices, a fifth as often for jobs that wait for slices and for deliveries.
        heartbeat_seconds, dead_after_seconds: the failure detector's two clocks.
        grace_seconds: how long a stopping process waits for its runs to notice.
        backoff_seconds: pause before the second attempt; doubled for each further one.
        patience_seconds: how long a run waits for a database or store that does not answer.
        tenant_jobs: jobs of one tenant that are not over; more are refused.
        history_days: after that many days a job that ended is forgotten.
        log_level: of the engine's own log.
    """

    data: Path | None = None
    job_workers: int = 2
    slice_workers: int = 2
    poll_seconds: float = 0.1
    heartbeat_seconds: float = 1.0
    dead_after_seconds: float = 6.0
    grace_seconds: float = 10.0
    backoff_seconds: float = 1.0
    patience_seconds: float = 600.0
    tenant_jobs: int = 500
    history_days: float = 30.0
    log_level: str = "WARNING"


@record(slots=True)
class Job:
    """One run of a job.

    Attributes:
        id: the job's id; the same in every run of it.
        record_id: the record the work is for.
        payload: JSON that was given with the order.
        attempt: 1 for the first run; a run that was handed back does not count.
        parent: the id of the job that a slice belongs to.
    """

    id: str
    name: str
    record_id: str
    payload: Mapping[str, Any]
    attempt: int
    _wanted: Callable[[Job], bool]
    _fan_out: Callable[..., list[Any]]
    parent: str | None = None
    _told: bool = field(default=False, init=False)
    _looked: float = field(default=-1e9, init=False)

    def cancelled(self) -> bool:
        """Whether to end as soon as possible; cheap enough to check for every packet.

        True once the job was cancelled, the process is stopping (another one takes it up
        again), or another process has taken it over. What the run returns then is not looked at.
        """
        if not self._told and time.monotonic() - self._looked >= _LOOK_SECONDS:
            self._looked = time.monotonic()
            self._told = not self._wanted(self)
        return self._told

    def check(self) -> None:
        """End the run here if it is not wanted any more.

        Raises:
            Stop: leave it alone, clean up in `finally`.
        """
        if self.cancelled():
            raise Stop

    def slices(
        self,
        name: str,
        payloads: Sequence[Mapping[str, Any]],
        each: Callable[[int, Any], None] | None = None,
        *,
        stage: str = "s",
    ) -> list[Any]:
        """Have each payload done by the work `name` on any worker; results in order.

        A run that comes again finds the slices that are done: they are `<job>-s<N>`, and a job
        with two fan-outs gives them different stages. `each(number, result)` is called in this
        thread as slices end, in any order, and again for all of them in a run that comes again.

        Raises:
            SliceFailed: one used up its attempts; the others are cancelled.
        """
        return self._fan_out(self, name, payloads, each, stage)


def _no_failure(context: Any, job: Job, problem: Mapping[str, Any]) -> None:
    """Slices have no record of their own: SliceFailed reports to their job."""


@record(frozen=True, slots=True)
class Work:
    """A function that workers run, registered by a family.

    Attributes:
        name: what orders call it: a few lower-case letters.
        run: `run(context, job)`; its result is JSON, kept for slices. It must be idempotent: a
            killed process, a frozen one or a lost connection makes it run again, and for a
            moment two may run at once.
        failed: `failed(context, job, problem)`, called once the attempts are used up or the error
            is one that no repetition repairs. Idempotent too.
        queue: JOBS, PARENTS, SLICES or WEBHOOKS.
        attempts: runs before it is given up, those included that took their process with them.
    """

    name: str
    run: Callable[[Any, Job], Any]
    failed: Callable[[Any, Job, Mapping[str, Any]], None] = _no_failure
    queue: str = JOBS
    attempts: int = 4


def retryable(error: Exception) -> bool:
    """Whether the same work may succeed at another time."""
    if isinstance(error, EngineUnavailable | ConfigError | SliceFailed):
        return False
    if isinstance(error, FragdexError):
        # What the service and the library say about bytes stays true; StoreFull may pass.
        return isinstance(error, Unavailable | OSError)
    return True


def not_ready(what: str, status: str) -> NotReady:
    """The refusal of a result that is not there: it is being made, or will never be."""
    kind = NeverReady if status in ("failed", "cancelled") else NotReady
    return kind(f"the {what} is {status}", more={"state": status})


def problem_of(error: Exception) -> dict[str, Any]:
    """What a record keeps of an error: the class, and a sentence for its owner.

    Only errors raised on purpose speak for themselves: others may name paths or queries.
    """
    if isinstance(error, SliceFailed):
        return error.problem
    if isinstance(error, FragdexError):
        return {"error": type(error).__name__, "detail": str(error)}
    return {"error": "ServiceError", "detail": "the work failed for a reason of the service"}
