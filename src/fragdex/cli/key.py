"""`fragdex key create|list|rotate|revoke`: the keys of the service."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from fragdex.cli import options, service_options
from fragdex.cli.extras import extra
from fragdex.cli.output import json_line
from fragdex.cli.report import complain
from fragdex.cli.service_options import log_to_stderr, settings_of

__all__ = ["audit_key", "create", "list_keys", "opened_database", "revoke", "rotate", "user_name"]

# the part of a key that is its id
_KEY = re.compile(r"(?:ef_[^_]+_)?(.+)")


@contextmanager
def opened_database(
    data: Path | None, config: Path | None, url: str | None, *, create: bool = False
) -> Iterator[Any]:
    """The database of a service, until the block ends; made where it is missing, with `create`."""
    with extra("service"):
        from fragdex.service.opening import open_database

    settings = settings_of(config, data=data, database_url=url)
    database = open_database(settings, create=create)
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
    name: Annotated[str, typer.Option(metavar="TEXT", help="What the key is for.")] = "",
    scope: Annotated[
        str,
        typer.Option(
            metavar="SCOPE",
            help="What it may do: read, write, or admin (the tenant's keys); each includes those "
            "before it.",
        ),
    ] = "write",
    expires_days: Annotated[
        float | None,
        typer.Option(
            metavar="DAYS",
            min=0,
            max=36_500,
            show_default=False,
            help="Days after which it ends; never if not given.",
        ),
    ] = None,
    json: options.Json = False,
    data: service_options.Data = None,
    config: service_options.ConfigFile = None,
    database_url: service_options.DatabaseUrl = None,
) -> int:
    """Create a key. It is printed once; the last line is the key alone.

    Examples:
      fragdex key create
      KEY=$(fragdex key create --tenant acme --data /srv/fragdex | tail -1)
      fragdex key create --scope read --expires-days 30
    """
    with extra("service"):
        from fragdex.service.records.identifiers import instant
        from fragdex.service.records.keys import create_key

    log_to_stderr(settings_of(config, data=data, database_url=database_url))
    with opened_database(data, config, database_url, create=True) as database:
        now = instant()
        ends = None if expires_days is None else now + timedelta(days=expires_days)
        made = create_key(database, tenant, name, scope=scope, expires_at=ends)
        audit_key(database, "create", made, scope=scope)
        _show(made, json)
    return 0


def list_keys(
    json: options.Json = False,
    data: service_options.Data = None,
    config: service_options.ConfigFile = None,
    database_url: service_options.DatabaseUrl = None,
) -> int:
    """List all keys without their secrets: id, tenant, creation, state, last use, scope, name.

    Examples:
      fragdex key list
    """
    with extra("service"):
        from fragdex.service.records.identifiers import rfc3339
        from fragdex.service.records.key_lists import list_keys

    with opened_database(data, config, database_url) as database:
        keys = list(list_keys(database))
        if not keys and not json:
            complain("there are no keys; make one with fragdex key create")
        for key in keys:
            shown = {
                "id": key.id,
                "tenant": key.tenant_name,
                "created_at": rfc3339(key.created_at),
                "status": key.status,
                "expires_at": rfc3339(key.expires_at),
                "revoked_at": rfc3339(key.revoked_at),
                "previous_secret_until": rfc3339(key.previous_until),
                "last_used_at": rfc3339(key.last_used_at),
                "scope": key.scope,
                "name": key.name,
            }
            if json:
                print(json_line(shown), end="")
                continue
            until = key.status == "valid" and key.expires_at is not None
            ended = shown["revoked_at"] or shown["expires_at"] or ""
            state = f"{'valid until' if until else key.status} {ended}".rstrip()
            used = shown["last_used_at"] or "never used"
            line = (key.id, key.tenant_name, shown["created_at"], state, used, key.scope, key.name)
            print(*line, sep="\t")
    return 0


def revoke(
    key: Annotated[str, typer.Argument(metavar="ID", help="The key's id, or the key itself.")],
    json: options.Json = False,
    data: service_options.Data = None,
    config: service_options.ConfigFile = None,
    database_url: service_options.DatabaseUrl = None,
) -> int:
    """Revoke a key. Running services refuse it within seconds.

    Examples:
      fragdex key revoke 0192f0c1-7e1e-7000-8000-3c5d0a9b2f11
    """
    with extra("service"):
        from fragdex.service.records.keys import revoke_key

    log_to_stderr(settings_of(config, data=data, database_url=database_url))
    with opened_database(data, config, database_url) as database:
        revoke_key(database, _id_of(key))
        audit_key(database, "revoke", key)
        if json:
            print(json_line({"id": _id_of(key), "status": "revoked"}), end="")
    return 0


def rotate(
    key: Annotated[str, typer.Argument(metavar="ID", help="The key's id, or the key itself.")],
    previous_hours: Annotated[
        float,
        typer.Option(
            metavar="HOURS", min=0, max=8760, help="How long the secret before is accepted, too."
        ),
    ] = 24.0,
    json: options.Json = False,
    data: service_options.Data = None,
    config: service_options.ConfigFile = None,
    database_url: service_options.DatabaseUrl = None,
) -> int:
    """Give a key a new secret, printed once; id, tenant, scope and URL tokens stay valid.

    Examples:
      fragdex key rotate 0192f0c1-7e1e-7000-8000-3c5d0a9b2f11
      fragdex key rotate 0192f0c1-7e1e-7000-8000-3c5d0a9b2f11 --previous-hours 0
    """
    with extra("service"):
        from fragdex.service.records.keys import rotate_key

    log_to_stderr(settings_of(config, data=data, database_url=database_url))
    with opened_database(data, config, database_url) as database:
        previous = timedelta(hours=previous_hours)
        rotated = rotate_key(database, _id_of(key), previous)
        audit_key(database, "rotate", key)
        _show(rotated, json)
    return 0


def _show(key: str, json: bool) -> None:
    """Print a key, this once."""
    print(json_line({"id": _id_of(key), "key": key}) if json else f"{key}\n", end="")


def audit_key(
    database: Any, action: str, key: str, command: str | None = None, **more: str
) -> None:
    """Log who did something to a key, as if it was done over HTTP.

    Args:
        key: its id, or the key itself.
        command: that did it; None: the one of the action.
    """
    with extra("service"):
        from fragdex.service.logs import audit
        from fragdex.service.records.key_lists import tenant_of

    key_id = _id_of(key)
    tenant_id = tenant_of(database, key_id)
    by = f"fragdex {command or f'key {action}'}, user {user_name()}"
    audit(f"key.{action}", tenant_id, None, key_id, by=by, **more)


def user_name() -> str:
    """Who runs this command."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        return str(os.getuid())


def _id_of(key: str) -> str:
    found = _KEY.fullmatch(key)
    return found[1] if found else key
