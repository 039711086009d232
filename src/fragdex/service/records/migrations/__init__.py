"""How the tables came to be: one file per step under `versions`, applied in order by Alembic.

They see the tables that begin with `fragdex_` and nothing else: the job engine keeps its own in
the same database. A step is never changed once it was released. Its file is named after the
version that it leads to: `r0021_first.py` leads to 0021.

A step only adds: tables, indexes, and columns that may be null or that the database fills itself.
So processes of the version before continue, and start again, with those of the new one, while one
machine after the other is upgraded. What is no longer needed goes in the release after.
"""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from fragdex.errors import ConfigError
from fragdex.service.records.database import Database
from fragdex.service.records.tables import PREFIX, schema

VERSION_TABLE = f"{PREFIX}version"

COMPATIBLE_SINCE = "0021"
"""The oldest version whose processes may run on the tables of this one: that before it."""

# Of the transaction-long lock that keeps two processes from upgrading PostgreSQL at once.
_LOCK = int.from_bytes(b"fragdex", "big")


def upgrade(database: Database) -> None:
    """Bring the tables to what this version needs; harmless where they are.

    All steps are one transaction. Processes that start at the same moment take turns. Tables of a
    newer version are left as they are, if that version says that this one may use them.

    Raises:
        ConfigError: the database is of a newer version of the service, or of one before the first
            release.
        Unavailable: the database does not answer.
    """
    if version_of(database) == known_versions()[-1]:
        return
    with database.read() as connection:
        if _is_newer_and_compatible(connection):
            return
    with database.write(remaking=True) as connection:
        if database.dialect == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
        _need_known(_stored_version(connection))
        _step_to(connection, "head")
        connection.execute(schema.delete())
        row = {"version": known_versions()[-1], "compatible_since": COMPATIBLE_SINCE}
        connection.execute(schema.insert().values(row))


def _step_to(connection: Connection, version: str) -> None:
    from alembic import command, config  # takes 11 MB

    alembic = config.Config(attributes={"connection": connection})
    alembic.set_main_option("script_location", str(Path(__file__).parent))
    command.upgrade(alembic, version)


def version_of(database: Database) -> str | None:
    """The version that the tables are of; None: there are none."""
    with database.read() as connection:
        return _stored_version(connection)


def known_versions() -> list[str]:
    """Those that steps lead to, oldest first, by the names of the files."""
    files = (Path(__file__).parent / "versions").glob("r*.py")
    return sorted(path.name.partition("_")[0][1:] for path in files)


def _need_known(version: str | None) -> None:
    known = known_versions()
    if version is None or version in known:
        return
    older = version < known[0]
    raise ConfigError(
        f"the database was made by {'an unreleased' if older else 'a newer'} version of fragdex",
        expected=f"one of {', '.join(known)}",
        found=version,
        advice="start with a new database, or keep using the version that made this one"
        if older
        else "upgrade fragdex",
    )


def _is_newer_and_compatible(connection: Connection) -> bool:
    version, known = _stored_version(connection), known_versions()
    if version is None or version <= known[-1] or not sa.inspect(connection).has_table(schema.name):
        return False
    since = connection.scalar(
        sa.select(schema.c.compatible_since).where(schema.c.version == version)
    )
    return since is not None and since <= known[-1]


def _stored_version(connection: Connection) -> str | None:
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return None
    number = sa.table(VERSION_TABLE, sa.column("version_num"))
    return connection.scalar(sa.select(number.c.version_num))
