"""`fragdex tenant`: who has a part of the service, what each may use, and the end of one."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from fragdex.cli import options, service_options
from fragdex.cli.extras import extra
from fragdex.cli.key import opened_database, user_name
from fragdex.cli.output import json_line
from fragdex.cli.report import complain
from fragdex.cli.service_options import log_to_stderr, settings_of

__all__ = ["delete", "limits", "list_tenants"]

_NONE = "none"


def list_tenants(
    json: options.Json = False,
    data: service_options.Data = None,
    config: service_options.ConfigFile = None,
    database_url: service_options.DatabaseUrl = None,
) -> int:
    """List all tenants: id, name, creation, valid keys, stored bytes, bytes of rows.

    Examples:
      fragdex tenant list
    """
    with extra("service"):
        from fragdex.service.records.tenant_limits import list_tenants

    with opened_database(data, config, database_url) as database:
        found = list_tenants(database)
    if not found and not json:
        complain("there are no tenants; one is created with its first key")
    for one in found:
        print(json_line(one) if json else "\t".join(map(str, one.values())) + "\n", end="")
    return 0


def delete(
    tenant: Annotated[str, typer.Argument(metavar="NAME", help="The tenant.")],
    yes: Annotated[
        bool, typer.Option("--yes", help="Delete it; else what would go is printed.")
    ] = False,
    json: options.Json = False,
    data: service_options.Data = None,
    config: service_options.ConfigFile = None,
    database_url: service_options.DatabaseUrl = None,
) -> int:
    """Delete a tenant with its keys, files, renders, transcriptions, webhooks and jobs.

    Running services refuse its keys within seconds, and end its jobs. The bytes go from the store
    after deletion_grace_seconds. Nothing brings them back but a back-up.

    Examples:
      fragdex tenant delete acme
      fragdex tenant delete acme --yes
    """
    with extra("service"):
        from fragdex.service.logs import audit
        from fragdex.service.records import tenant_limits as own
        from fragdex.service.records.deletion import remove_tenant

    log_to_stderr(settings_of(config, data=data, database_url=database_url))
    with opened_database(data, config, database_url) as database:
        tenant_id, _ = own.read_limits(database, tenant)
        if not yes:
            with database.read() as connection:
                stored = own.stored_bytes(connection, tenant_id)
            if json:
                print(json_line({"tenant": tenant, "stored_bytes": stored}), end="")
            complain(f"{tenant} stores {stored} bytes; --yes deletes it with all that it has")
            return 1
        count = remove_tenant(database, tenant_id)
        by = f"fragdex tenant delete, user {user_name()}"
        audit("tenant.delete", tenant_id, None, tenant_id, by=by, name=tenant)
        if json:
            print(json_line({"tenant": tenant, "id": tenant_id, "records": count}), end="")
        complain(f"{tenant} and its {count} records were deleted")
    return 0


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
    data: service_options.Data = None,
    config: service_options.ConfigFile = None,
    database_url: service_options.DatabaseUrl = None,
) -> int:
    """Show the limits of a tenant and what it stores; options set limits, `none` ends one.

    A limit that is not set is the service's own. Running services follow at once.

    Examples:
      fragdex tenant limits acme
      fragdex tenant limits acme --max-stored-bytes 10GB --max-jobs 20
      fragdex tenant limits acme --retention-days none
    """
    with extra("service"):
        from fragdex.service.records import tenant_limits as own

    given = {
        "max_stored_bytes": max_stored_bytes,
        "max_render_seconds": max_render_seconds,
        "max_render_cost": max_render_cost,
        "max_jobs": max_jobs,
        "retention_days": retention_days,
    }
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
