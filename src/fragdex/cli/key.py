"""`fragdex key create|list|revoke`: the keys of the service."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from fragdex.cli import options, serving
from fragdex.cli.output import json_line
from fragdex.cli.serving import service, settings_of

__all__ = ["create", "list_keys", "opened_database", "revoke"]

# the part of a key that is its id
_KEY = re.compile(r"(?:ef_[^_]+_)?(.+)")


@contextmanager
def opened_database(data: Path | None, config: Path | None, url: str | None) -> Iterator[Any]:
    """The database of a service, until the block ends."""
    database = service("app").open_database(settings_of(config, data=data, database_url=url))
    try:
        yield database
    finally:
        database.close()


def create(
    tenant: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="The tenant that the key is for; created if there is none."
        ),
    ] = "default",
    note: Annotated[str, typer.Option(metavar="TEXT", help="What the key is for.")] = "",
    data: serving.Data = None,
    config: serving.ConfigFile = None,
    database_url: serving.DatabaseUrl = None,
) -> int:
    """Create a key. It is printed once; the last line is the key alone.

    Examples:
      fragdex key create
      KEY=$(fragdex key create --tenant acme --data /srv/fragdex | tail -1)
    """
    with opened_database(data, config, database_url) as database:
        print(service("records.keys").create_key(database, tenant, note))
    return 0


def list_keys(
    json: options.Json = False,
    data: serving.Data = None,
    config: serving.ConfigFile = None,
    database_url: serving.DatabaseUrl = None,
) -> int:
    """List all keys without their secrets: id, tenant, creation, revocation, note.

    Examples:
      fragdex key list
    """
    rfc3339 = service("records.identifiers").rfc3339
    with opened_database(data, config, database_url) as database:
        for key in service("records.keys").list_keys(database):
            shown = {
                "id": key.id,
                "tenant": key.tenant_name,
                "created_at": rfc3339(key.created_at),
                "revoked_at": rfc3339(key.revoked_at),
                "note": key.note,
            }
            if json:
                print(json_line(shown), end="")
            else:
                ended = f"revoked {shown['revoked_at']}" if shown["revoked_at"] else "valid"
                print(key.id, key.tenant_name, shown["created_at"], ended, key.note, sep="\t")
    return 0


def revoke(
    key: Annotated[str, typer.Argument(metavar="ID", help="The key's id, or the key itself.")],
    data: serving.Data = None,
    config: serving.ConfigFile = None,
    database_url: serving.DatabaseUrl = None,
) -> int:
    """Revoke a key. Running services refuse it within seconds.

    Examples:
      fragdex key revoke 0192f0c1-7e1e-7000-8000-3c5d0a9b2f11
    """
    with opened_database(data, config, database_url) as database:
        found = _KEY.fullmatch(key)
        service("records.keys").revoke_key(database, found[1] if found else key)
    return 0
