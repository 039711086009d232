"""What `/metrics` tells, in Prometheus' text form; each process for itself."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

__all__ = ["Metrics"]

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60)


class Metrics:
    """Requests by route, never by path: paths name records, and there is no end of them."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self._requests = Counter(
            "fragdex_requests", "requests answered", ["method", "route", "status"],
            registry=self.registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "fragdex_request_seconds", "from the head of a request to the end of its answer",
            ["method", "route"], buckets=SECONDS, registry=self.registry,
        )  # fmt: skip
        # looked up in one step; there are as many as routes and what they answer
        self._known: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self.running = Gauge(
            "fragdex_requests_running", "requests being answered", registry=self.registry
        )

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request that was answered."""
        known = self._known.get((method, route, status))
        if known is None:
            known = (
                self._requests.labels(method, route, str(status)),
                self._seconds.labels(method, route),
            )
            self._known[method, route, status] = known
        known[0].inc()
        known[1].observe(seconds)

    def text(self) -> bytes:
        """All numbers, in the text exposition format."""
        return generate_latest(self.registry)
