"""`fragdex key`, `tenant` and `db`; the settings of a service as flags, for all its commands."""

from __future__ import annotations

import ctypes
import getpass
import ipaddress
import logging
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fragdex.cli import options
from fragdex.cli.output import complain, json_line

if TYPE_CHECKING:
    from fragdex.service.config import Settings


# What the commands of the service share: the settings as flags, and the service itself.
#
# A flag that is not given is None: then the environment, the file or the default decides. The
# defaults in help are those of the settings (tests/cli/test_frame.py); config.py is not imported.


def _flag(kind: Any, metavar: str, text: str, *names: str, default: str = "") -> tuple[Any, None]:
    option = typer.Option(*names, metavar=metavar, help=text, show_default=default or False)
    return Annotated[kind | None, option], None


_FLAGS: dict[str, tuple[Any, None]] = {
    "host": _flag(str, "ADDRESS", "Listen on this address.", default="127.0.0.1"),
    "port": _flag(int, "N", "Listen on this port; 0: any free one.", default="8000"),
    "data": _flag(
        Path, "DIR", "Folder for the database and the stored bytes.", default="fragdex-data"
    ),
    "config": _flag(Path, "FILE", "Settings in TOML.", "--config"),
    "database_url": _flag(str, "URL", "SQLite, or PostgreSQL.", default="in the data folder"),
    "store_url": _flag(
        str,
        "URL",
        "Where bytes are stored: file:///…, s3://bucket/prefix ….",
        default="in the data folder",
    ),
    "public_url": _flag(str, "URL", "Scheme and host under which clients see the service."),
    "job_workers": _flag(int, "N", "Jobs at once in this process; 0: none.", default="2"),
    "slice_workers": _flag(int, "N", "Slices of jobs at once in this process.", default="2"),
    "log_level": _flag(str, "LEVEL", "critical, error, warning, info or debug.", default="info"),
}
DATABASE = ("data", "config", "database_url")
"""The flags of settings that say where a service's database is."""
WORKER = (*DATABASE, "store_url", "job_workers", "slice_workers", "log_level")
"""Those of processes that run jobs."""


def has_settings(*names: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Give a command these flags; its parameter `settings` are the settings in force with them."""
    kinds = {name: kind for name, kind in _FLAGS.items() if name in names}
    return options.with_options("settings", kinds, lambda flags: settings_of(**flags))


def settings_of(config: Path | None = None, **flags: Any) -> Settings:
    """The settings in force.

    Raises:
        ConfigError: one cannot be used.
    """
    with options.extra("service"):
        from fragdex.service.config import load_settings

    return load_settings(config, **flags)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def log_to_stderr(settings: Settings) -> None:
    """One line an event: text for people and journals, JSON for collectors."""
    with options.extra("service"):
        from fragdex.service import logs

    logging.basicConfig(level=settings.log_level.upper())
    formatter = logs.JsonFormatter if settings.log_format == "json" else logs.SafeFormatter
    for handler in logging.getLogger().handlers:
        handler.setFormatter(formatter(_LINE))
        handler.addFilter(logs.OncePerMinute())
    # what they say of every step is no news to an operator
    for name in ("alembic", "httpx"):
        logging.getLogger(name).setLevel(logging.WARNING)
    # who changed what may be done is kept, whatever else is left out
    logging.getLogger("fragdex.audit").setLevel(logging.INFO)


def raise_file_limit() -> None:
    """Let this process open as many files and connections as the system allows it to.

    The soft limit of most systems is 1,024: fewer than the connections that `max_connections`
    allows.
    """
    with suppress(ImportError, OSError, ValueError):  # another system, or it says no
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def share_one_arena() -> None:
    """Have all threads take memory from one place, before there are any.

    The C library of most Linux systems gives many threads a heap of their own, and each keeps what
    it once needed: some 50 MB with 200 uploads at once. MALLOC_ARENA_MAX has the last word.
    """
    if "MALLOC_ARENA_MAX" not in os.environ:
        with suppress(OSError, AttributeError, TypeError):  # another C library, another system
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


_LINE = "%(asctime)s %(levelname)s %(name)s: %(message)s"
# <malloc.h> of the GNU C library
_M_ARENA_MAX = -8


# the part of a key that is its id
_KEY = re.compile(r"(?:ef_[^_]+_)?(.+)")


KeyId = Annotated[str, typer.Argument(metavar="ID", help="The key's id, or the key itself.")]
Tenant = Annotated[str, typer.Argument(metavar="NAME", help="The tenant.")]


@contextmanager
def opened_database(settings: Any, *, create: bool = False) -> Iterator[Any]:
    """The database of a service, until the block ends; made where it is missing, with `create`."""
    with options.extra("service"):
        from fragdex.service.context import open_database

    database = open_database(settings, create=create)
    try:
        yield database
    finally:
        database.close()


@has_settings(*DATABASE)
def create_key(
    tenant: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="The tenant that the key is for; created if it does not exist."
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
            metavar="DAYS", min=0, max=36_500, help="Days until it expires; never by default."
        ),
    ] = None,
    json: options.Json = False,
    *,
    settings: Any,
) -> int:
    """Create a key. It is printed once; the last line is the key alone.

    Examples:
      fragdex key create
      KEY=$(fragdex key create --tenant acme --data /srv/fragdex | tail -1)
      fragdex key create --scope read --expires-days 30
    """
    with options.extra("service"):
        from fragdex.service.records.identifiers import instant
        from fragdex.service.records.keys import create_key

    log_to_stderr(settings)
    with opened_database(settings, create=True) as database:
        now = instant()
        ends = None if expires_days is None else now + timedelta(days=expires_days)
        key = create_key(database, tenant, name, scope=scope, expires_at=ends)
        audit_key(database, "create", key, scope=scope)
        _print_key(key, json)
    return 0


@has_settings(*DATABASE)
def list_keys(json: options.Json = False, *, settings: Any) -> int:
    """List all keys without their secrets: id, tenant, creation, state, last use, scope, name.

    Examples:
      fragdex key list
    """
    with options.extra("service"):
        from fragdex.service.records.identifiers import rfc3339
        from fragdex.service.records.keys import list_keys

    with opened_database(settings) as database:
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


@has_settings(*DATABASE)
def revoke_key(
    key: KeyId,
    json: options.Json = False,
    *,
    settings: Any,
) -> int:
    """Revoke a key. Running services refuse it within seconds.

    Examples:
      fragdex key revoke 0192f0c1-7e1e-7000-8000-3c5d0a9b2f11
    """
    with options.extra("service"):
        from fragdex.service.records.keys import revoke_key

    log_to_stderr(settings)
    with opened_database(settings) as database:
        revoke_key(database, _id_of(key))
        audit_key(database, "revoke", key)
        if json:
            print(json_line({"id": _id_of(key), "status": "revoked"}), end="")
    return 0


@has_settings(*DATABASE)
def rotate_key(
    key: KeyId,
    previous_hours: Annotated[
        float,
        typer.Option(metavar="HOURS", min=0, max=8760, help="How long the old secret stays valid."),
    ] = 24.0,
    json: options.Json = False,
    *,
    settings: Any,
) -> int:
    """Give a key a new secret, printed once; id, tenant, scope and URL tokens stay valid.

    Examples:
      fragdex key rotate 0192f0c1-7e1e-7000-8000-3c5d0a9b2f11
      fragdex key rotate 0192f0c1-7e1e-7000-8000-3c5d0a9b2f11 --previous-hours 0
    """
    with options.extra("service"):
        from fragdex.service.records.keys import rotate_key

    log_to_stderr(settings)
    with opened_database(settings) as database:
        previous = timedelta(hours=previous_hours)
        rotated = rotate_key(database, _id_of(key), previous)
        audit_key(database, "rotate", key)
        _print_key(rotated, json)
    return 0


def _print_key(key: str, json: bool) -> None:
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
    with options.extra("service"):
        from fragdex.service.logs import audit
        from fragdex.service.records.keys import tenant_of

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
    match = _KEY.fullmatch(key)
    return match[1] if match else key


_NONE = "none"


@has_settings(*DATABASE)
def list_tenants(json: options.Json = False, *, settings: Any) -> int:
    """List all tenants: id, name, creation, valid keys, stored bytes, bytes of rows.

    Examples:
      fragdex tenant list
    """
    with options.extra("service"):
        from fragdex.service.records.tenant_limits import list_tenants

    with opened_database(settings) as database:
        tenants = list_tenants(database)
    if not tenants and not json:
        complain("there are no tenants; one is created with its first key")
    for one in tenants:
        print(json_line(one) if json else "\t".join(map(str, one.values())) + "\n", end="")
    return 0


@has_settings(*DATABASE)
def delete_tenant(
    tenant: Tenant,
    yes: Annotated[
        bool, typer.Option("--yes", help="Delete it; otherwise only print what would be deleted.")
    ] = False,
    json: options.Json = False,
    *,
    settings: Any,
) -> int:
    """Delete a tenant with its keys, files, renders, transcriptions, webhooks and jobs.

    Running services refuse its keys within seconds, and stop its jobs. The bytes are deleted after
    deletion_grace_seconds. Only a back-up can restore them.

    Examples:
      fragdex tenant delete acme
      fragdex tenant delete acme --yes
    """
    with options.extra("service"):
        from fragdex.service.logs import audit
        from fragdex.service.records import tenant_limits as own
        from fragdex.service.records.deletion import remove_tenant

    log_to_stderr(settings)
    with opened_database(settings) as database:
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
    return typer.Option(f"--{name}", metavar=metavar, help=text)


@has_settings(*DATABASE)
def tenant_limits(
    tenant: Tenant,
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
    *,
    settings: Any,
) -> int:
    """Show the limits of a tenant and what it stores; options set limits, `none` ends one.

    Without a limit of its own, a tenant has the service's. Running services apply changes at once.

    Examples:
      fragdex tenant limits acme
      fragdex tenant limits acme --max-stored-bytes 10GB --max-jobs 20
      fragdex tenant limits acme --retention-days none
    """
    with options.extra("service"):
        from fragdex.service.records import tenant_limits as own

    given = {
        "max_stored_bytes": max_stored_bytes,
        "max_render_seconds": max_render_seconds,
        "max_render_cost": max_render_cost,
        "max_jobs": max_jobs,
        "retention_days": retention_days,
    }
    checked = own.parse_limits({name: text for name, text in given.items() if text is not None})
    with opened_database(settings) as database:
        tenant_id, limits = own.read_limits(database, tenant)
        if checked:
            limits = own.set_limits(database, tenant_id, checked)
        with database.read() as connection:
            shown = {"tenant": tenant, "stored_bytes": own.stored_bytes(connection, tenant_id)}
    shown |= asdict(limits)
    if json:
        print(json_line(shown), end="")
        return 0
    for name, value in shown.items():
        print(name, _NONE if value is None else value, sep="\t")
    return 0


@has_settings(*DATABASE)
def upgrade_database(json: options.Json = False, *, settings: Any) -> int:
    """Migrate the database to this version; does nothing if it is up to date.

    `fragdex serve` and `fragdex worker` do the same when they start.

    Examples:
      fragdex db upgrade --database-url postgresql+psycopg://media@db/fragdex
    """
    with options.extra("service"):
        from fragdex.service.context import open_database
        from fragdex.service.records.migrations import known_versions

    open_database(settings).close()
    version = known_versions()[-1]
    if json:
        print(json_line({"version": version}), end="")
    complain("the database is up to date")
    return 0


@has_settings(*DATABASE, "store_url")
def check_store(
    contents: Annotated[
        bool, typer.Option("--contents", help="Read every byte and compare its SHA-256 as well.")
    ] = False,
    json: options.Json = False,
    *,
    settings: Any,
) -> int:
    """Compare the store with the database: every object must exist, with its size.

    Prints missing and changed objects, and a summary. The exit code is 1 if there are any. The
    service may run meanwhile.

    Examples:
      fragdex db check --data /srv/restored
      fragdex db check --contents --data /srv/fragdex
    """
    with options.extra("service"):
        from fragdex.service.context import store_of
        from fragdex.service.records.store_check import check_store

    with opened_database(settings) as database:
        result = check_store(database, store_of(settings), contents=contents)
    if json:
        print(json_line(asdict(result)), end="")
    else:
        for fault in result.faults:
            print(fault.key, fault.table, fault.reason, sep="\t")
        begin = f"; {result.begin_anew} unfinished uploads start again" if result.begin_anew else ""
        complain(
            f"{result.objects} objects, {result.bytes} bytes of files: "
            f"{len(result.faults) or 'none'} missing or changed{begin}"
        )
    return 1 if result.faults else 0
