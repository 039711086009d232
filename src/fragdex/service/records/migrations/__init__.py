"""How the tables came to be: one file per step under `versions`, applied in order.

They see the tables that begin with `fragdex_` and nothing else: the job engine keeps its own in
the same database. A step is never changed once it was released.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import Connection

from fragdex.service.errors import ConfigError
from fragdex.service.records.database import Database
from fragdex.service.records.tables import PREFIX, metadata

__all__ = ["VERSION_TABLE", "differences", "is_current", "upgrade"]

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
    config = Config()
    script = _script()
    with database.write() as connection:
        if database.dialect == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
        _check_known(script, _version(connection))

        def steps(revision: Any, context: MigrationContext) -> Any:
            return script._upgrade_revs("head", revision)

        with EnvironmentContext(config, script, fn=steps, destination_rev="head") as environment:
            environment.configure(
                connection=connection,
                target_metadata=metadata,
                version_table=VERSION_TABLE,
                render_as_batch=database.dialect == "sqlite",
            )
            with environment.begin_transaction():
                environment.run_migrations()


def is_current(database: Database) -> bool:
    """Whether the tables are those of this version."""
    with database.read() as connection:
        return _version(connection) == _script().get_current_head()


def differences(database: Database) -> list[Any]:
    """What sets the tables of a database apart from `tables.metadata`; nothing, if all is well."""
    from alembic.autogenerate import compare_metadata  # slow to import, for tests alone

    def ours(name: str | None, kind: str, parents: Any) -> bool:
        return kind != "table" or ((name or "").startswith(PREFIX) and name != VERSION_TABLE)

    with database.read() as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "compare_type": True,
                "compare_server_default": True,
                "include_name": ours,
                "version_table": VERSION_TABLE,
            },
        )
        return list(compare_metadata(context, metadata))


def _script() -> ScriptDirectory:
    return ScriptDirectory(str(Path(__file__).parent))


def _version(connection: Connection) -> str | None:
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    return context.get_current_revision()


def _check_known(script: ScriptDirectory, version: str | None) -> None:
    known = {step.revision for step in script.walk_revisions()}
    if version is not None and version not in known:
        raise ConfigError(
            "the database was made by a newer version of fragdex",
            expected=f"one of {', '.join(sorted(known))}",
            found=version,
            advice="upgrade fragdex",
        )
