"""Worker processes that are killed, frozen and asked to stop; a log of what they did."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import program

from fragdex.service.jobs.engine import upgrade as upgrade_jobs
from fragdex.service.records.database import Database
from fragdex.service.records.migrations import upgrade

# Nothing here takes longer than a few seconds on a quiet machine; this bounds a busy one.
PATIENCE = 300


@dataclass
class Line:
    pid: int
    event: str
    job: str
    attempt: int
    detail: str


class Yard:
    """A database, a log, and worker processes over them."""

    def __init__(self, url, folder):
        self.url = url
        self.folder = folder
        self.path = folder / "log"
        self.database = Database(url)
        upgrade(self.database)
        upgrade_jobs(self.database)
        self.jobs = program.open_jobs(self.database, folder, self.path)
        self.processes = {}
        self.options = {}  # of every worker
        self.errors = (folder / "stderr").open("a")
        # two on one machine's file, three on a server
        self.count = 2 if self.database.dialect == "sqlite" else 3

    def start(self, count=None, **options):
        """Start worker processes and wait until they work; returns their pids."""
        options = self.options | options
        new = [
            subprocess.Popen(
                [sys.executable, program.__file__, self.url, str(self.folder), str(self.path),
                 json.dumps(options)],
                stdout=subprocess.PIPE,
                stderr=self.errors,
                text=True,
            )
            for _ in range(count or self.count)
        ]  # fmt: skip
        for process in new:
            self.processes[process.pid] = process
            assert process.stdout.readline(), (self.folder / "stderr").read_text()
        return [process.pid for process in new]

    def order(self, name, record_id, tenant_id="t", **payload):
        with self.database.write() as connection:
            return self.jobs.enqueue(connection, name, record_id, payload, tenant_id=tenant_id)

    def lines(self, event=None, job=None):
        if not self.path.exists():
            return []
        lines = []
        for text in self.path.read_text().splitlines():
            _, pid, what, which, attempt, *detail = text.split(" ", 5)
            line = Line(int(pid), what, which, int(attempt), detail[0] if detail else "")
            if event in (None, line.event) and job in (None, line.job):
                lines.append(line)
        return lines

    def until(self, true, what="what was waited for"):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            outcome = true()
            if outcome:
                return outcome
            time.sleep(0.05)
        log = self.path.read_text() if self.path.exists() else "no log"
        pytest.fail(f"{what} did not happen\n{log}\n{(self.folder / 'stderr').read_text()}")
        return None

    def begun(self, job, times=1):
        """The pid of the worker that began the job for the n-th time."""
        return self.until(
            lambda: len(lines := self.lines("begin", job)) >= times and lines[times - 1].pid,
            f"begin {job} {times}",
        )

    def ended(self, job):
        return self.until(
            lambda: (s := self.jobs.status(job)) in ("done", "failed", "cancelled") and s,
            f"the end of {job}",
        )

    def kill(self, pid):
        os.kill(pid, signal.SIGKILL)
        self._reap(pid)

    def _reap(self, pid):
        process = self.processes.pop(pid)
        process.kill()
        process.wait()
        process.stdout.close()

    def close(self):
        for pid in list(self.processes):
            self._reap(pid)
        self.errors.close()
        self.jobs.close()
        self.database.close()


@pytest.fixture
def deaths(yard):
    """Workers that are silent for some seconds are taken for dead."""
    yard.options["dead_after_seconds"] = 4


@pytest.fixture
def yard(database_url, tmp_path):
    new_yard = Yard(database_url, tmp_path)
    try:
        yield new_yard
    finally:
        new_yard.close()
