"""Health checks and seeks while others attack: how long they wait, and what the server holds."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import httpx
from measure import Amount, Amounts, Measured, Row, Setting, Want
from processes import HERE, Server, another_key
from rows_requests import register

import fragdex

RATE = 20
"""Requests a second of each kind; each is timed from when it is due, not from when it is sent."""
P99_MS = 50
RESIDENT_MB = 400
REST_S = 60
HEALTH, SEEK = "health check", "seek"


class Asker(threading.Thread):
    """Asks for one path at a steady rate; `waits` are seconds from when each was due."""

    def __init__(self, server: Server, path: str) -> None:
        super().__init__(daemon=True)
        self._server, self._path = server, path
        self._over = threading.Event()
        self.waits: list[float] = []

    def run(self) -> None:
        """Until `end`."""
        client = httpx.Client(
            base_url=self._server.url, headers=self._server.headers, trust_env=False, timeout=60
        )
        with client:
            due = time.perf_counter()
            while not self._over.is_set():
                client.get(self._path).raise_for_status()
                self.waits.append(time.perf_counter() - due)
                due += 1 / RATE
                time.sleep(max(0.0, due - time.perf_counter()))

    def end(self) -> list[float]:
        """Stop; gives the waits in milliseconds."""
        self._over.set()
        self.join()
        return [1000 * wait for wait in self.waits]


@contextmanager
def _attacked(server: Server, seconds: float) -> Iterator[dict[str, int]]:
    """Others attack meanwhile; what they tried is known at the end."""
    key = another_key(server, "harm")
    # It stands for machines elsewhere: it must not take the server's processors.
    nice = [] if (program := shutil.which("nice")) is None else [program, "-n", "10"]
    command = [sys.executable, str(HERE / "attacks.py"), server.url, key, str(seconds)]
    tried: dict[str, int] = {}
    child = subprocess.Popen([*nice, *command], stdout=subprocess.PIPE, text=True)
    try:
        yield tried
        out, _ = child.communicate(timeout=seconds + 120)
        if child.returncode:
            raise SystemExit("the attack came to a bad end")
        tried.update(json.loads(out))
    finally:
        child.kill()
        child.wait()


def _asked(server: Server, seek: str, seconds: float) -> tuple[list[float], list[float]]:
    askers = [Asker(server, "/healthz"), Asker(server, seek)]
    for asker in askers:
        asker.start()
    time.sleep(seconds)
    health, seeks = (asker.end() for asker in askers)
    return health, seeks


def under_attack(setting: Setting, server: Server, film: str) -> Measured:
    """The 99th percentile of what others wait, beside the same in peace."""
    index = fragdex.index(film)
    file_id = register(server, str(UUID(int=11)), index)
    seek = f"/api/v1/isobmff_files/{file_id}/seek?track=1&time_ms=60000"
    seconds = max(10.0, 10 * setting.seconds)
    peace = _asked(server, seek, seconds / 2)
    before = server.now_mb()
    server.forget_peak()
    with _attacked(server, seconds) as tried:
        war = _asked(server, seek, seconds)
    peak = server.peak_mb()
    time.sleep(REST_S)
    after = server.now_mb()
    amounts: Amounts = {}
    for name, quiet, loud in zip((HEALTH, SEEK), peace, war, strict=True):
        amounts[f"{name}, in peace"] = Amount("ms", f"p99 {_p99(quiet):.3g} ms", quiet)
        amounts[f"{name}, under attack"] = Amount("ms", f"p99 {_p99(loud):.3g} ms", loud)
    wants = [
        Want(f"{name}: p99", _p99(waits), P99_MS, True, "ms")
        for name, waits in zip((HEALTH, SEEK), war, strict=True)
    ]
    wants.append(Want("peak resident memory of the server", peak, RESIDENT_MB, True, "MB"))
    grown = None if before is None or after is None else after - before
    wants.append(Want("resident a minute later, beyond before", grown, 50, True, "MB"))
    facts = {"tried": tried, "resident_before_mb": before, "resident_after_mb": after}
    row = Row("attacks", "20 a second of each, others attack", wants=wants, facts=facts)
    return row, amounts


def _p99(waits: list[float]) -> float:
    return statistics.quantiles(waits, n=100)[98]
