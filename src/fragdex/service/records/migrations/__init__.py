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
from fragdex.service.records.tables import PREFIX, metadata, rates, schema

VERSION_TABLE = f"{PREFIX}version"

COMPATIBLE_SINCE = "0023"
"""The oldest version whose processes may run on the tables of this one: that before it."""

# Of the transaction-long lock that keeps two processes from upgrading PostgreSQL at once.
_LOCK = int.from_bytes(b"fragdex", "big")


def upgrade(database: Database) -> None:
    """Bring the tables to what this version needs; harmless where they are.

    All steps are one transaction. Processes that start at the same moment take turns. Tables of a
    newer version are left as they are, if that version says that this one may use them. Where
    there are none, those that the steps would lead to are made at once.

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
        version = _stored_version(connection)
        _need_known(version)
        if version is None:
            _make_all(connection)
        else:
            _step_to(connection, "head")
        connection.execute(schema.delete())
        row = {"version": known_versions()[-1], "compatible_since": COMPATIBLE_SINCE}
        connection.execute(schema.insert().values(row))


def _make_all(connection: Connection) -> None:
    """The tables of this version as they are declared, which the steps make one after the other."""
    metadata.create_all(connection, checkfirst=False)
    if connection.dialect.name == "postgresql":
        # each request may write there, and a crash that empties it costs nothing
        connection.execute(sa.text(f"ALTER TABLE {rates.name} SET UNLOGGED"))
    versions = sa.Table(  # as Alembic makes it
        VERSION_TABLE,
        sa.MetaData(),
        sa.Column("version_num", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("version_num", name=f"{VERSION_TABLE}_pkc"),
    )
    versions.create(connection, checkfirst=False)
    connection.execute(versions.insert().values(version_num=known_versions()[-1]))


def _step_to(connection: Connection, version: str) -> None:
    from alembic import command, config  # takes 11 MB and 0.2 s

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
