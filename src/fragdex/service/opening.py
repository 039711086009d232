"""The database and the store that settings name, opened; for commands that need no more."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from sqlalchemy.engine import make_url

from fragdex.errors import ConfigError
from fragdex.service.config import Settings
from fragdex.service.jobs.engine import upgrade as upgrade_engine
from fragdex.service.records import migrations
from fragdex.service.records.database import Database
from fragdex.service.store.composing import ComposingStore
from fragdex.service.store.contract import Store
from fragdex.service.store.disk_files import PRIVATE, Reserve, make_private, open_new
from fragdex.service.store.opening import open_store


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
        # SQLite gives the files beside it the mode that it has
        os.close(open_new(own, os.O_RDWR, PRIVATE))
    make_private(settings.data)
    for path in settings.data.iterdir():
        if not settings.store_is_apart or path != settings.store_folder:
            make_private(path)


def _upgrade(database: Database) -> None:
    """Bring our tables and the engine's to what this version needs; harmless where they are."""
    migrations.upgrade(database)
    upgrade_engine(database)


def store_of(settings: Settings) -> Store:
    """The store that settings name; raises as `open_database`."""
    plain = open_store(
        settings.store_url,
        settings.store_options,
        direct=settings.direct_writes,
        shared=settings.store_is_apart,
    )
    return ComposingStore(plain)
