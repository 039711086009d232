"""What `/metrics` reports about one process, in Prometheus' text form: requests and jobs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from fragdex.record import record

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
REQUEST_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60)
JOB_SECONDS = (0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14400)


@record(slots=True)
class Attempt:
    """An attempt that began now; it is handed back, unless somebody says otherwise."""

    outcome: str = "handed back"
    began: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return time.monotonic() - self.began


class Metrics:
    """The metrics of this process.

    Requests are counted by route, never by path: paths name records, and there is no end of them.
    Jobs are counted by work, never by tenant, for the same reason.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self._requests = Counter(
            "fragdex_requests", "requests answered", ["method", "route", "status"],
            registry=self.registry,
        )  # fmt: skip
        self._request_seconds = Histogram(
            "fragdex_request_seconds", "from the head of a request to the end of its answer",
            ["method", "route"], buckets=REQUEST_SECONDS, registry=self.registry,
        )  # fmt: skip
        # looked up in one step; there are as many as routes and what they answer
        self._known: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self.requests_running = Gauge(
            "fragdex_requests_running", "requests being answered", registry=self.registry
        )
        self._jobs_running = Gauge(
            "fragdex_job_attempts_running", "jobs and slices that this process works on",
            ["work"], registry=self.registry,
        )  # fmt: skip
        self._attempt_seconds = Histogram(
            "fragdex_job_attempt_seconds",
            "attempts of jobs and slices, by outcome (done, failed, tried again …)",
            ["work", "outcome"], buckets=JOB_SECONDS, registry=self.registry,
        )  # fmt: skip
        self._wait_seconds = Histogram(
            "fragdex_job_wait_seconds", "from the order of a job or slice to its first attempt",
            ["work"], buckets=JOB_SECONDS, registry=self.registry,
        )  # fmt: skip
        self.housekeeping = Gauge(
            "fragdex_housekeeping_timestamp_seconds",
            "when this process last completed a round of housekeeping; 0: never",
            registry=self.registry,
        )

    def add(self, collector: Collector) -> None:
        """Tell what a collector finds, too, each time that metrics are requested."""
        self.registry.register(collector)

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request that was answered."""
        known = self._known.get((method, route, status))
        if known is None:
            known = (
                self._requests.labels(method, route, str(status)),
                self._request_seconds.labels(method, route),
            )
            self._known[method, route, status] = known
        known[0].inc()
        known[1].observe(seconds)

    @contextmanager
    def attempt(self, work: str) -> Iterator[Attempt]:
        """Count one attempt of a job or slice, under the outcome that it has at its end."""
        running, counted = self._jobs_running.labels(work), Attempt()
        running.inc()
        try:
            yield counted
        finally:
            running.dec()
            self._attempt_seconds.labels(work, counted.outcome).observe(counted.seconds)

    def count_wait(self, work: str, seconds: float) -> None:
        """Count how long a job or slice waited for its first attempt."""
        self._wait_seconds.labels(work).observe(seconds)

    def text(self) -> bytes:
        """All metrics, in the text exposition format."""
        return generate_latest(self.registry)
