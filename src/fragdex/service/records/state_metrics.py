"""What `/metrics` reports about the whole installation: its queue, workers, bytes and disks.

Every process tells the same. A look at the database is shared by all requests within seconds, so
that many scrapes cost no more than one.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from fragdex.errors import FragdexError
from fragdex.service.records.database import Database
from fragdex.service.records.tables import blobs, executors, jobs

if TYPE_CHECKING:
    from fragdex.service.config import Settings

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
