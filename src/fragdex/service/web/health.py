"""`/healthz`: the process answers. `/readyz`: so do database and store. `/metrics`: metrics.

What `/metrics` reports about the whole installation (its queue, workers, bytes and disks) is the
same from every process. A look at the database is shared by all requests within seconds, so that
many scrapes cost no more than one.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeAlias, TypeVar

import sqlalchemy as sa
from fastapi import APIRouter, Request, Response
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from pydantic import ConfigDict, Field
from starlette.responses import JSONResponse

from fragdex.errors import FragdexError, StoreFull
from fragdex.service.context import ServiceContext
from fragdex.service.logs import explained
from fragdex.service.metrics import CONTENT_TYPE
from fragdex.service.records.database import Database
from fragdex.service.records.tables import blobs, executors, jobs
from fragdex.service.store.disk_files import disks_nearly_full
from fragdex.service.web.auth import the_context
from fragdex.service.web.fields import ApiModel
from fragdex.service.web.routing import HeadRoute, operation_id

if TYPE_CHECKING:
    from fragdex.service.config import Settings


log = logging.getLogger("fragdex.service")
router = APIRouter(tags=["health"], route_class=HeadRoute, generate_unique_id_function=operation_id)


class Health(ApiModel):
    """That the process answers."""

    status: Literal["ok"]


class Readiness(ApiModel):
    """Whether requests can be answered, and what answers: `ok`, or why not."""

    model_config = ConfigDict(extra="allow")

    status: str = Field(description="`ok`, `full` or `unavailable`")
    database: str
    store: str = Field(description="`ok`, `full` (its objects are read and deleted), or why not")
    draining: str
    browser: str = Field(description="its version, `not found`, or `not used here`")
    engine: str = Field(
        description="the speech engine and its version, what it lacks, or `not used here`; the "
        "service is available either way"
    )
    disk: str = Field(description="`ok` or `nearly full`; the service is available either way")


@router.get(
    "/healthz",
    name="get_health",
    response_class=Response,
    responses={200: {"description": "The process answers", "model": Health}},
)
async def healthz() -> Response:
    """200 while the process runs; checks nothing else."""
    return JSONResponse({"status": "ok"})


@router.get(
    "/readyz",
    name="get_readiness",
    response_class=Response,
    responses={
        200: {"description": "Requests can be answered", "model": Readiness},
        503: {
            "description": "Database or store does not answer in time, the service is ending, or "
            "`ready_needs_browser` is set and no browser was found",
            "model": Readiness,
        },
    },
)
async def readyz(request: Request) -> Response:
    """200 if requests can be answered: database and store answer, and the process is not draining.

    It also names the browser, the speech engine and how full the disks are. A store without room
    is no reason to send no requests: its objects can be read and deleted.
    """
    context, state = the_context(request), request.app.state
    ask_database, ask_store, ask_rest = _looks_of(context, state)
    database, store, rest = await asyncio.gather(
        ask_database.outcome(), ask_store.outcome(), ask_rest.outcome()
    )
    ending = state.ending or state.draining.is_set()
    checks = {
        "database": database or AWAY,
        "store": store or AWAY,
        "draining": "yes" if ending else "no",
        **(rest or dict.fromkeys(("browser", "engine", "disk"), AWAY)),
    }
    full = FULL in (database, store)
    ready = {database, store} <= {"ok", FULL} and not ending
    # without a browser all but renders is answered
    if context.settings.ready_needs_browser and state.has_no_browser(checks["browser"]):
        ready = False
    status = ("full" if full else "ok") if ready else "unavailable"
    return JSONResponse({"status": status, **checks}, 200 if ready else 503)


@router.get(
    "/metrics",
    name="get_metrics",
    response_class=Response,
    responses={
        200: {
            "description": "Metrics for Prometheus",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        }
    },
)
def metrics(request: Request) -> Response:
    """Metrics of this process and of the installation, in Prometheus' text format."""
    return Response(the_context(request).metrics.text(), media_type=CONTENT_TYPE)


def _ask_database(context: ServiceContext) -> None:
    with context.database.read() as connection:
        connection.execute(sa.text("SELECT 1"))


AWAY: Final = "does not answer"
FULL: Final = "full"
PATIENCE_SECONDS: Final = 5.0
"""For how long a probe waits for the database, the store, and what else it tells."""
_STORE_HOLDS: Final = (15.0, 2.0)
"""For how many seconds an answer of an object store counts, ok or not: each one is paid for."""


_Looks: TypeAlias = "tuple[Look[str], Look[str], Look[dict[str, str]]]"


def _looks_of(context: ServiceContext, state: Any) -> _Looks:
    """The looks of an application: one serves all probes, whoever sends how many."""
    with _MAKING:
        if not hasattr(state, "looks"):

            def store_holds(answer: str) -> float:
                is_here = context.store.path("checks/any") is not None
                return 0.0 if is_here else _STORE_HOLDS[answer != "ok"]

            def rest() -> dict[str, str]:
                return {
                    "browser": state.browser(),
                    "engine": state.engine(),
                    # what is here can be read and deleted, which makes room
                    "disk": "nearly full" if disks_nearly_full(context.settings) else "ok",
                }

            state.looks = (
                Look(lambda: _checked(lambda: _ask_database(context)), PATIENCE_SECONDS),
                Look(lambda: _checked(context.store.check), PATIENCE_SECONDS, store_holds),
                Look(rest, PATIENCE_SECONDS),
            )
        looks: _Looks = state.looks
        return looks


_MAKING: Final = threading.Lock()


def _checked(ask: Callable[[], object]) -> str:
    try:
        ask()
    except StoreFull as error:
        log.warning("no bytes are taken: %s", explained(error))
        return FULL
    except (FragdexError, OSError, sa.exc.SQLAlchemyError) as error:
        log.warning("not ready: %s", explained(error))
        return AWAY
    return "ok"


LOOK_SECONDS: Final = 10.0
"""How long a look at jobs and workers holds."""
BYTES_SECONDS: Final = 300.0
"""The same for stored bytes: their sum reads an index of all objects."""


_WAITING_SLICES: Final = (
    sa.select(jobs.c.name, sa.func.count())
    # as the index has it, word by word
    .where(jobs.c.tenant_id.is_(None), sa.text("attempt = 0"), jobs.c.cancelled_at.is_(None))
    .group_by(jobs.c.name)
)


class StateMetrics(Collector):
    """Gauges of the state in the database, and of this machine's disks."""

    def __init__(self, settings: Settings, database: Database) -> None:
        self._settings, self._database = settings, database
        self._looks: dict[str, tuple[float, list[Metric]]] = {}
        self._looking = threading.Lock()

    def describe(self) -> Iterable[Metric]:
        """Nothing, so that registering asks no database."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """The gauges; `fragdex_database_up` alone where the database does not answer."""
        up = GaugeMetricFamily("fragdex_database_up", "1: the database answers; 0: it does not")
        try:
            with self._looking:
                samples = [
                    *self._fresh("jobs", LOOK_SECONDS, self._jobs),
                    *self._fresh("bytes", BYTES_SECONDS, self._bytes),
                ]
        except (FragdexError, sa.exc.SQLAlchemyError):
            samples = []
            up.add_metric([], 0)
        else:
            up.add_metric([], 1)
        yield up
        yield from samples
        yield self._connections()
        yield from self._disks()

    def _fresh(
        self, name: str, seconds: float, look: Callable[[], Iterable[Metric]]
    ) -> list[Metric]:
        at, samples = self._looks.get(name, (0.0, []))
        if not samples or time.monotonic() - at >= seconds:
            samples = list(look())
            self._looks[name] = time.monotonic(), samples
        return samples

    def _jobs(self) -> Iterator[Metric]:
        counts = GaugeMetricFamily(
            "fragdex_jobs", "jobs that are not over, by state: waiting or running",
            labels=["work", "state"],
        )  # fmt: skip
        ages = GaugeMetricFamily(
            "fragdex_oldest_waiting_job_seconds", "age of the oldest job that has not begun",
            labels=["work"],
        )  # fmt: skip
        slices = GaugeMetricFamily(
            "fragdex_waiting_slices", "slices of jobs in the queue that have not begun",
            labels=["work"],
        )  # fmt: skip
        workers = GaugeMetricFamily("fragdex_workers", "processes that work on jobs and are alive")
        begun = jobs.c.attempt > 0
        # slices are without a tenant; those that run are counted by the processes that run them
        going = (
            sa.select(jobs.c.name, begun, sa.func.count(), sa.func.min(jobs.c.created_at))
            .where(jobs.c.tenant_id.is_not(None), jobs.c.ended_at.is_(None))
            .where(jobs.c.cancelled_at.is_(None))
            .group_by(jobs.c.name, begun)
        )
        with self._database.read() as connection:
            now = self._database.now(connection)
            for work, running, count, oldest in connection.execute(going):
                counts.add_metric([work, "running" if running else "waiting"], count)
                if not running:
                    ages.add_metric([work], max(0.0, (now - oldest).total_seconds()))
            for work, count in connection.execute(_WAITING_SLICES):
                slices.add_metric([work], count)
            since = now - timedelta(seconds=self._settings.lease_seconds)
            # a name with ~ is a lock, not a worker
            alive = sa.select(sa.func.count()).where(
                executors.c.seen_at >= since, executors.c.id.not_like("~%")
            )
            workers.add_metric([], connection.scalar(alive) or 0)
        yield from (counts, ages, slices, workers)

    def _bytes(self) -> Iterator[Metric]:
        sizes = GaugeMetricFamily("fragdex_stored_bytes", "bytes of all objects in the store")
        # the index of tenants and sizes answers it
        whole = sa.select(sa.func.coalesce(sa.func.sum(blobs.c.stored_bytes), 0))
        with self._database.read() as connection:
            sizes.add_metric([], float(connection.scalar(whole) or 0))
        yield sizes

    def _connections(self) -> Metric:
        used = GaugeMetricFamily(
            "fragdex_database_connections", "connections of this process that are in use"
        )
        pool = self._database.engine.pool
        if isinstance(pool, sa.pool.QueuePool):
            used.add_metric([], pool.checkedout())
        return used

    def _disks(self) -> Iterator[Metric]:
        free = GaugeMetricFamily("fragdex_disk_free_bytes", "left for us", labels=["disk"])
        whole = GaugeMetricFamily("fragdex_disk_bytes", "size of the disk", labels=["disk"])
        folders = {"data": self._settings.data, "store": self._settings.store_folder}
        for name, folder in folders.items():
            if folder is None or not hasattr(os, "statvfs") or not folder.exists():
                continue
            disk = os.statvfs(folder)
            free.add_metric([name], disk.f_bavail * disk.f_frsize)
            whole.add_metric([name], disk.f_blocks * disk.f_frsize)
        yield from (free, whole)


T = TypeVar("T")


class Look(Generic[T]):
    """What a question answers, asked once at a time for everyone.

    A caller takes no thread of the service's: were the answer to hang, those would all be gone.

    Args:
        ask: the question; it may take any time, and what it raises is raised to all who asked.
        patience: seconds from its beginning after which nobody waits for the answer.
        holds: for how many seconds an answer is given again.
    """

    def __init__(
        self, ask: Callable[[], T], patience: float, holds: Callable[[T], float] = lambda _: 0.0
    ) -> None:
        self._ask, self._patience, self._holds = ask, patience, holds
        self._lock = threading.Lock()
        self._asked: Future[T] | None = None
        self._began = self._ends = 0.0

    async def outcome(self) -> T | None:
        """The answer, a fresh one if need be; None: there is none in time."""
        with self._lock:
            over = self._asked is None or (self._asked.done() and time.monotonic() >= self._ends)
            if over:
                self._asked, self._began = Future(), time.monotonic()
                threading.Thread(target=self._run, args=(self._asked,), daemon=True).start()
            asked, left = self._asked, self._began + self._patience - time.monotonic()
        assert asked is not None
        if not asked.done():
            if left <= 0:
                return None
            # not cancelled with the one who waits: others wait for the same
            await asyncio.wait([asyncio.wrap_future(asked)], timeout=left)
        return asked.result() if asked.done() else None

    def _run(self, asked: Future[T]) -> None:
        try:
            answer = self._ask()
            with self._lock:
                self._ends = time.monotonic() + self._holds(answer)
        except BaseException as error:  # noqa: BLE001 — whoever asked gets it
            asked.set_exception(error)
        else:
            asked.set_result(answer)
