"""How the tables came to be: one file per step under `versions`, applied in order.

They see the tables that begin with `fragdex_` and nothing else: the job engine keeps its own in
the same database. A step is never changed once it was released. Its file is named after the
version that it leads to: `r0001_first.py` leads to 0001.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from fragdex.service.errors import ConfigError
from fragdex.service.records.database import Database
from fragdex.service.records.tables import PREFIX

__all__ = ["VERSION_TABLE", "differences", "is_current", "newest", "upgrade"]

VERSION_TABLE = f"{PREFIX}version"

# Of the transaction-long lock that keeps two processes from upgrading PostgreSQL at once.
_LOCK = int.from_bytes(b"fragdex", "big")


def upgrade(database: Database) -> None:
    """Bring the tables to what this version needs; harmless where they are.

    All steps are one transaction. Processes that start at the same moment take turns.

    Raises:
        ConfigError: the database was upgraded by a newer version of the service.
        Unavailable: the database does not answer.
    """
    if is_current(database):
        return
    from fragdex.service.records.migrations import steps  # Alembic takes 11 MB

    with database.write(remaking=True) as connection:
        if database.dialect == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
        known, found = steps.known(), _versions(connection)
        if not known.issuperset(found):
            raise ConfigError(
                "the database was made by a newer version of fragdex",
                expected=f"one of {', '.join(sorted(known))}",
                found=", ".join(found),
                advice="upgrade fragdex",
            )
        steps.take(connection, VERSION_TABLE)


def is_current(database: Database) -> bool:
    """Whether the tables are those of this version."""
    with database.read() as connection:
        return _versions(connection) == [newest()]


def newest() -> str:
    """The version that the last step leads to, by the names of the files."""
    files = (Path(__file__).parent / "versions").glob("r*.py")
    return max(path.name.partition("_")[0] for path in files)[1:]


def differences(database: Database) -> list[Any]:
    """What sets the tables of a database apart from `tables.metadata`; nothing, if all is well."""
    from fragdex.service.records.migrations import steps

    with database.read() as connection:
        return steps.differences(connection, VERSION_TABLE)


def _versions(connection: Connection) -> list[str]:
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return []
    numbers = sa.table(VERSION_TABLE, sa.column("version_num"))
    return sorted(connection.scalars(sa.select(numbers.c.version_num)))
