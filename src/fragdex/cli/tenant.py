"""`fragdex tenant limits`: what each tenant of the service may use."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from fragdex.cli import options, serving
from fragdex.cli.key import opened_database
from fragdex.cli.output import json_line
from fragdex.cli.serving import service

__all__ = ["limits"]

_NONE = "none"


def _option(name: str, metavar: str, text: str) -> Any:
    return typer.Option(f"--{name}", metavar=metavar, help=text, show_default=False)


def limits(
    tenant: Annotated[str, typer.Argument(metavar="NAME", help="The tenant.")],
    max_stored_bytes: Annotated[
        str | None, _option("max-stored-bytes", "BYTES", "Quota of stored bytes, such as 10GB.")
    ] = None,
    max_render_seconds: Annotated[
        str | None, _option("max-render-seconds", "S", "Work on the slices of one render.")
    ] = None,
    max_render_cost: Annotated[
        str | None, _option("max-render-cost", "S", "Processor time of one render.")
    ] = None,
    max_jobs: Annotated[str | None, _option("max-jobs", "N", "Unfinished jobs.")] = None,
    retention_days: Annotated[
        str | None,
        _option("retention-days", "DAYS", "Delete files and finished renders after so long."),
    ] = None,
    json: options.Json = False,
    data: serving.Data = None,
    config: serving.ConfigFile = None,
    database_url: serving.DatabaseUrl = None,
) -> int:
    """Show the limits of a tenant and what it stores; options set limits, `none` ends one.

    A limit that is not set is the service's own. Running services follow at once.

    Examples:
      fragdex tenant limits acme
      fragdex tenant limits acme --max-stored-bytes 10GB --max-jobs 20
      fragdex tenant limits acme --retention-days none
    """
    given = {
        "max_stored_bytes": max_stored_bytes,
        "max_render_seconds": max_render_seconds,
        "max_render_cost": max_render_cost,
        "max_jobs": max_jobs,
        "retention_days": retention_days,
    }
    own = service("records.tenant_limits")
    checked = own.parse_limits({name: text for name, text in given.items() if text is not None})
    with opened_database(data, config, database_url) as database:
        tenant_id, found = own.read_limits(database, tenant)
        if checked:
            found = own.set_limits(database, tenant_id, checked)
        with database.read() as connection:
            shown = {"tenant": tenant, "stored_bytes": own.stored_bytes(connection, tenant_id)}
    shown |= asdict(found)
    if json:
        print(json_line(shown), end="")
        return 0
    for name, value in shown.items():
        print(name, _NONE if value is None else value, sep="\t")
    return 0
