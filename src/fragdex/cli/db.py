"""`fragdex db upgrade`: the tables of the service."""

from __future__ import annotations

from fragdex.cli import serving
from fragdex.cli.report import complain
from fragdex.cli.serving import service, settings_of

__all__ = ["upgrade"]


def upgrade(
    data: serving.Data = None,
    config: serving.ConfigFile = None,
    database_url: serving.DatabaseUrl = None,
) -> int:
    """Migrate the database to this version; does nothing if it is up to date.

    `fragdex serve` and `fragdex worker` do the same when they start.

    Examples:
      fragdex db upgrade --database-url postgresql+psycopg://media@db/fragdex
    """
    service("app").open_database(settings_of(config, data=data, database_url=database_url)).close()
    complain("the database is up to date")
    return 0
