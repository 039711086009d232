"""The parts that every operation is given: settings, database, store, jobs.

An operation is a function `name(context, tenant, …)`: it decides, writes records and returns
values. It knows no HTTP. What it raises is the caller's answer.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from fragdex.sandbox.folders import make_locked, sweep

if TYPE_CHECKING:
    from fragdex.service.config import Settings
    from fragdex.service.jobs.api import Jobs
    from fragdex.service.metrics import Metrics
    from fragdex.service.records.database import Database
    from fragdex.service.store.contract import Store
    from fragdex.traces import Traces


class _Closing(Protocol):
    def close(self) -> None: ...


Part = TypeVar("Part", bound=_Closing)


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """What a process of the service is made of; made once by `app.open_context`."""

    settings: Settings
    database: Database
    store: Store
    jobs: Jobs
    _parts: dict[type[Any], Any] = field(default_factory=dict)
    # of folders of work that this process has made; names may be used again, by other threads
    _locks: dict[Path, int | None] = field(default_factory=dict)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    @property
    def metrics(self) -> Metrics:
        """The metrics of this process."""
        return self.jobs.metrics

    @property
    def traces(self) -> Traces:
        """What makes the spans of this process."""
        return self.jobs.traces

    def part(self, kind: type[Part]) -> Part:
        """What a family has of its own in this process: one of a kind, made on first use."""
        existing: Part | None = self._parts.get(kind)
        if existing is None:
            # Of two that ask at once, both get the one that came first.
            existing = self._parts.setdefault(kind, kind())
        return existing

    def nonblocking(self) -> ServiceContext:
        """The same for the event loop: an operation raises BlockingIOError where it would wait."""
        return replace(self, database=self.database.nonblocking())

    def close_parts(self) -> None:
        """Close what families have of their own."""
        while self._parts:
            self._parts.popitem()[1].close()
        with self._guard:
            for folder in list(self._locks):
                self._let_go(folder)

    def work_folder(self, name: str) -> Path:
        """An empty folder of this machine for one piece of work; what was in it is removed.

        Args:
            name: the id of the record, a dot, and which work it is.
        """
        work = self.settings.data / "work"
        work.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.sweep_work()
        folder = work / name
        shutil.rmtree(folder, ignore_errors=True)
        with self._guard:
            self._let_go(folder)
            self._locks[folder] = make_locked(folder)
        return folder

    def sweep_work(self) -> None:
        """Remove the folders of work whose processes are gone."""
        with self._guard:
            for folder in [folder for folder in self._locks if not folder.exists()]:
                self._let_go(folder)
        sweep(self.settings.data / "work")

    def _let_go(self, folder: Path) -> None:
        lock = self._locks.pop(folder, None)
        if lock is not None:
            os.close(lock)

    def work_left(self, record_id: str) -> Iterator[Path]:
        """The folders of this machine that work on a record has made and not removed."""
        yield from (self.settings.data / "work").glob(f"{record_id}.*")
