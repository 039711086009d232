"""`fragdex db upgrade|check`: the tables of the service, and the store that they name."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from fragdex.cli import options, service_options
from fragdex.cli.extras import extra
from fragdex.cli.output import json_line
from fragdex.cli.report import complain
from fragdex.cli.service_options import settings_of

__all__ = ["check", "upgrade"]


def upgrade(
    json: options.Json = False,
    data: service_options.Data = None,
    config: service_options.ConfigFile = None,
    database_url: service_options.DatabaseUrl = None,
) -> int:
    """Migrate the database to this version; does nothing if it is up to date.

    `fragdex serve` and `fragdex worker` do the same when they start.

    Examples:
      fragdex db upgrade --database-url postgresql+psycopg://media@db/fragdex
    """
    with extra("service"):
        from fragdex.service.opening import open_database
        from fragdex.service.records.migrations import known_versions

    settings = settings_of(config, data=data, database_url=database_url)
    open_database(settings).close()
    version = known_versions()[-1]
    if json:
        print(json_line({"version": version}), end="")
    complain("the database is up to date")
    return 0


def check(
    contents: Annotated[
        bool,
        typer.Option("--contents", help="Read every byte and compare its SHA-256 as well."),
    ] = False,
    json: options.Json = False,
    data: service_options.Data = None,
    config: service_options.ConfigFile = None,
    database_url: service_options.DatabaseUrl = None,
    store_url: service_options.StoreUrl = None,
) -> int:
    """Compare the store with the database: that every object is there, in its size.

    Prints what is missing or other than it was stored, and a sum. The exit code is 1 if anything
    is. The service may run meanwhile.

    Examples:
      fragdex db check --data /srv/restored
      fragdex db check --contents --data /srv/fragdex
    """
    with extra("service"):
        from fragdex.service import opening
        from fragdex.service.records.store_check import check_store

    settings = settings_of(config, data=data, database_url=database_url, store_url=store_url)
    database = opening.open_database(settings, create=False)
    try:
        store = opening.store_of(settings)
        found = check_store(database, store, contents=contents)
    finally:
        database.close()
    if json:
        print(json_line(asdict(found)), end="")
    else:
        for fault in found.faults:
            print(fault.key, fault.table, fault.reason, sep="\t")
        begin = f"; {found.begin_anew} unfinished uploads begin anew" if found.begin_anew else ""
        complain(
            f"{found.objects} objects, {found.bytes} bytes of files: "
            f"{len(found.faults) or 'none'} missing or changed{begin}"
        )
    return 1 if found.faults else 0
