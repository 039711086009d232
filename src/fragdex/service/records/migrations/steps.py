"""The steps themselves, through Alembic: imported only where there is one to take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import Connection

from fragdex.service.records.tables import PREFIX, metadata

__all__ = ["differences", "known", "take"]


def known() -> frozenset[str]:
    """The versions that steps lead to."""
    return frozenset(step.revision for step in _script().walk_revisions())


def take(connection: Connection, version_table: str) -> None:
    """Take all steps that were not taken, in the caller's transaction."""
    script = _script()

    def steps(revision: Any, context: MigrationContext) -> Any:
        return script._upgrade_revs("head", revision)

    with EnvironmentContext(Config(), script, fn=steps, destination_rev="head") as environment:
        environment.configure(
            connection=connection,
            target_metadata=metadata,
            version_table=version_table,
            render_as_batch=connection.dialect.name == "sqlite",
        )
        with environment.begin_transaction():
            environment.run_migrations()


def differences(connection: Connection, version_table: str) -> list[Any]:
    """What sets the tables apart from `tables.metadata`."""
    from alembic.autogenerate import compare_metadata  # slow to import, for tests alone

    def ours(name: str | None, kind: str, parents: Any) -> bool:
        return kind != "table" or ((name or "").startswith(PREFIX) and name != version_table)

    context = MigrationContext.configure(
        connection,
        opts={
            "compare_type": True,
            "compare_server_default": True,
            "include_name": ours,
            "version_table": version_table,
        },
    )
    return list(compare_metadata(context, metadata))


def _script() -> ScriptDirectory:
    return ScriptDirectory(str(Path(__file__).parent))
