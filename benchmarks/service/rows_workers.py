"""Small files that workers index: several workers against one, and their memory meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import processes
import psutil
import sqlalchemy as sa
from measure import Amount, Measured, Row, Setting, Want, alternate
from processes import HERE, Server

from fragdex.client import Client

sys.path.append(str(HERE.parent / "fleet"))

from members import Postgres
from orders import salted

__all__ = ["small_files"]

FIXTURE = HERE.parents[1] / "fixtures" / "faststart.mp4"
MOST_WORKERS = 3
OF_CEILING = 0.8
STEADY = 1.1
BEGINS_S = 8
SPIN = "import time; t=time.perf_counter()\nfor i in range(60): sum(range(300_000))"
SPINS = 60
LEFT = sa.text("SELECT count(*) FROM fragdex_processes WHERE completed_at IS NULL")
SPAN = sa.text(
    "SELECT extract(epoch FROM max(completed_at) - min(started_at)) FROM fragdex_processes "
    "WHERE created_at >= to_timestamp(:since)"
)
TABLES = sa.text(
    "SELECT relname AS name, n_live_tup AS rows, pg_total_relation_size(relid) AS bytes "
    "FROM pg_stat_user_tables WHERE n_live_tup > 0 ORDER BY 3 DESC, 1"
)
FILES = sa.text("SELECT count(*) FROM fragdex_processes")
FAILED = sa.text("SELECT count(*) FROM fragdex_processes WHERE failed_at IS NOT NULL")


def _spinning(count: int) -> float:
    """Pieces of pure work a second, of so many processes at once."""
    began = time.perf_counter()
    every = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(count)]
    for one in every:
        one.wait()
    return count * SPINS / (time.perf_counter() - began)


@contextmanager
def _workers(
    count: int, folder: Path, settings: dict[str, str], ended: Callable[[float], None]
) -> Iterator[list[int]]:
    """So many workers, with one job at a time each; their process ids.

    Args:
        ended: told the processor time of each and of all that it started, when it has ended.
    """
    started = []
    try:
        for number in range(count):
            own = {"FRAGDEX_DATA": str(folder / f"worker-{number}"), "FRAGDEX_JOB_WORKERS": "1"}
            started.append(
                subprocess.Popen(
                    [sys.executable, "-m", "fragdex", "worker"],
                    env={**settings, **own, "FRAGDEX_LOG_LEVEL": "warning"},
                    start_new_session=True,
                )
            )
        yield [one.pid for one in started]
    finally:
        for one in started:
            one.send_signal(signal.SIGTERM)
        for one in started:
            _, one.returncode, usage = os.wait4(one.pid, 0)
            ended(usage.ru_utime + usage.ru_stime)


class Small:
    """A service over PostgreSQL, whose jobs wait for workers."""

    def __init__(self, server: Server, url: str, folder: Path, count: int) -> None:
        self.server, self.folder, self.count = server, folder, count
        self.data = FIXTURE.read_bytes()
        self.engine = sa.create_engine(url, poolclass=sa.pool.NullPool)
        store = (server.folder / "store").as_uri()
        self.settings = {
            **{k: v for k, v in os.environ.items() if not k.startswith("FRAGDEX_")},
            "FRAGDEX_DATABASE_URL": url,
            "FRAGDEX_STORE_URL": store,
        }
        self.memory: dict[int, list[float]] = {}
        self.processor: dict[int, list[float]] = {}
        self.begins = 0.0

    def _ordered(self) -> None:
        with (
            tempfile.TemporaryDirectory() as name,
            Client(self.server.url, self.server.key, trust_env=False) as client,
        ):
            paths = [Path(name) / f"{n}.mp4" for n in range(self.count)]
            for path in paths:
                path.write_bytes(salted(self.data, f"{time.time_ns()} {path.name}"))
            with ThreadPoolExecutor(4) as threads:
                list(threads.map(client.push, paths))

    def begin(self) -> None:
        """Measure what a worker takes until it works, and to end: that is not the files' cost."""
        used: list[float] = []
        with _workers(1, self.folder, self.settings, used.append):
            time.sleep(BEGINS_S)
        self.begins = used[0]

    def run(self, workers: int) -> float:
        """Files a second, from the first that is begun to the last that is indexed."""
        since = time.time()
        self._ordered()
        with self.engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT")
            seen: list[float] = []
            used: list[float] = []
            with _workers(workers, self.folder, self.settings, used.append) as pids:
                while connection.scalar(LEFT):
                    time.sleep(0.1)
                    seen.append(sum(psutil.Process(pid).memory_info().rss for pid in pids) / 1e6)
            if connection.scalar(FAILED):
                raise SystemExit("a small file could not be indexed")
            seconds = float(connection.scalar(SPAN, {"since": since}))
        self.memory.setdefault(workers, []).append(_growth(seen))
        spent = sum(used) - workers * self.begins
        self.processor.setdefault(workers, []).append(spent / self.count)
        return self.count / seconds

    def tables(self) -> dict[str, dict[str, float]]:
        """Rows and bytes of each table, with its indexes, for each file that was indexed."""
        with self.engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT")
            connection.exec_driver_sql("VACUUM ANALYZE")
            files = connection.scalar(FILES) or 1
            rows = connection.execute(TABLES).all()
        return {
            row.name: {"rows": round(row.rows / files, 3), "bytes": round(row.bytes / files)}
            for row in rows
        }


def _growth(seen: list[float]) -> float:
    """Memory in the last tenth of a run, by that after its first fifth, when all is imported."""
    part = max(1, len(seen) // 10)
    early, late = seen[2 * part : 3 * part] or seen, seen[-part:]
    return (sum(late) / len(late)) / (sum(early) / len(early))


def small_files(setting: Setting, folder: Path) -> Measured:
    """One worker and several; the ceiling is what pure work gains from as many processes."""
    workers = min(MOST_WORKERS, len(os.sched_getaffinity(0)))
    with ExitStack() as ends:
        # of a user of its own, who has to reach it
        own = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="fragdex-workers-")))
        own.chmod(0o755)
        database = Postgres(own / "postgres")
        ends.callback(database.end)
        database.start()
        server = ends.enter_context(
            processes.service(folder, database_url=database.url, max_tenant_jobs="1000000")
        )
        small = Small(server, database.url, folder, setting.small_files)
        small.begin()
        one, several = "1 worker", f"{workers} workers"
        note = f"{setting.small_files} files of {FIXTURE.stat().st_size // 1000} kB, one at a time"
        amounts = alternate(
            setting,
            {
                one: (Amount("/s", note), lambda _: small.run(1)),
                several: (Amount("/s", f"{note} each"), lambda _: small.run(workers)),
                "pure work, 1": (Amount("/s"), lambda _: _spinning(1)),
                f"pure work, {workers}": (Amount("/s"), lambda _: _spinning(workers)),
            },
        )
        tables = small.tables()
    runs = [amounts[name].runs for name in amounts]
    shares = sorted(
        (many / single) / (spun_many / spun)
        for single, many, spun, spun_many in zip(*runs, strict=True)
    )
    ceilings = sorted(many / spun for spun, many in zip(runs[2], runs[3], strict=True))
    middle = len(shares) // 2
    grown = max(max(every) for every in small.memory.values())
    for name, spent in small.processor.items():
        amounts[f"processor, {name}"] = Amount("s", "a file, with its child process", spent)
    wants = [
        Want(f"{several}: ≥ {OF_CEILING:g} of the ceiling of {ceilings[middle]:.2f} ×",
             shares[middle], OF_CEILING, at_most=False, unit="of it"),
        Want(f"memory at the end ≤ {STEADY:g} × that after a fifth", grown, STEADY, True),
    ]  # fmt: skip
    row = Row("small-files", f"{setting.small_files} small files for workers", wants=wants)
    row.facts["tables, a file"] = tables
    return row, amounts
