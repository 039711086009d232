"""The parts that every operation is given: settings, database, store, jobs; and how they open.

An operation is a function `name(context, tenant, …)`: it decides, writes records and returns
values. It knows no HTTP. What it raises is the caller's answer.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

from sqlalchemy.engine import make_url

from fragdex.errors import ConfigError
from fragdex.record import record
from fragdex.sandbox.folders import make_locked, sweep
from fragdex.service.config import Settings
from fragdex.service.jobs.engine import upgrade as upgrade_engine
from fragdex.service.records import migrations
from fragdex.service.records.database import Database
from fragdex.service.store import open_store
from fragdex.service.store.composing import ComposingStore
from fragdex.service.store.disk_files import PRIVATE, Reserve, make_private, open_new

if TYPE_CHECKING:
    from fragdex.service.jobs.api import Jobs
    from fragdex.service.metrics import Metrics
    from fragdex.traces import Traces


class _Closing(Protocol):
    def close(self) -> None: ...


class _NoStore:
    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # who looks at it is no request
            raise AttributeError(name)
        raise BlockingIOError("the store may take long to answer")


_NO_STORE: Any = _NoStore()
Part = TypeVar("Part", bound=_Closing)


@record(frozen=True, slots=True)
class ServiceContext:
    """What a process of the service is made of; made once by `app.open_context`."""

    settings: Settings
    database: Database
    store: ComposingStore
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

    def without_store(self) -> ServiceContext:
        """The same where the store may not be waited for: to ask it raises BlockingIOError."""
        return replace(self, store=_NO_STORE)

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


def open_database(settings: Settings, *, create: bool = True) -> Database:
    """The database, its tables brought to what this version needs.

    Args:
        create: make the data folder and the tables where they are missing.

    Raises:
        ConfigError: a setting that cannot be used; no service is there, without `create`.
        Unavailable: the database does not answer.
    """
    if not create and not _is_made(settings):
        url = make_url(settings.database_url).render_as_string(hide_password=True)
        raise ConfigError(
            f"there is no service in the database {url}",
            advice="name the data folder of one (--data), or its database (--database-url)",
        )
    try:
        settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise ConfigError(f"the data folder {settings.data}: {error.strerror}") from None
    if not os.access(settings.data, os.W_OK | os.X_OK):
        raise ConfigError(f"the data folder {settings.data} cannot be written")
    reserve = Reserve(settings.data)
    reserve.give_up()
    with suppress(FileNotFoundError):  # a file of SQLite's that another process takes away
        _close_to_others(settings)
    grace = timedelta(seconds=settings.deletion_grace_seconds)
    database = Database(settings.database_url, grace=grace)
    database.before_write = reserve.give_up
    _upgrade(database)
    return database


def _is_made(settings: Settings) -> bool:
    """Whether the database has the tables of a service, of any version."""
    url = make_url(settings.database_url)
    if url.get_backend_name() == "sqlite" and not os.path.exists(url.database or ""):
        return False
    database = Database(settings.database_url)
    try:
        return migrations.version_of(database) is not None
    finally:
        database.close()


def _close_to_others(settings: Settings) -> None:
    """Leave the data folder to our own user, whoever made it; the database gets that mode too."""
    own = Path(make_url(settings.database_url).database or "")
    if own.parent == settings.data:
        # SQLite gives the files next to it the mode that it has
        os.close(open_new(own, os.O_RDWR, PRIVATE))
    make_private(settings.data)
    for path in settings.data.iterdir():
        if not settings.store_is_apart or path != settings.store_folder:
            make_private(path)


def _upgrade(database: Database) -> None:
    """Bring our tables and the engine's to what this version needs; harmless where they are."""
    migrations.upgrade(database)
    upgrade_engine(database)


def store_of(settings: Settings) -> ComposingStore:
    """The store that settings name; raises as `open_database`."""
    plain = open_store(
        settings.store_url,
        settings.store_options,
        direct=settings.direct_writes,
        shared=settings.store_is_apart,
    )
    return ComposingStore(plain)
