"""What the commands of the service share: the settings as flags, and the service itself.

A flag that is not given is None: then the environment, the file or the default decides.
"""

from __future__ import annotations

import ctypes
import ipaddress
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fragdex.cli import options
from fragdex.cli.extras import extra

if TYPE_CHECKING:
    from fragdex.service.config import Settings


def _flag(kind: Any, metavar: str, text: str, *names: str) -> tuple[Any, None]:
    option = typer.Option(*names, metavar=metavar, help=text, show_default=False)
    return Annotated[kind | None, option], None


_FLAGS: dict[str, tuple[Any, None]] = {
    "host": _flag(str, "ADDRESS", "Address to listen on."),
    "port": _flag(int, "N", "Port to listen on; 0: any free one."),
    "data": _flag(Path, "DIR", "Folder for the database and the stored bytes."),
    "config": _flag(Path, "FILE", "Settings in TOML.", "--config"),
    "database_url": _flag(str, "URL", "SQLite in the data folder, or PostgreSQL."),
    "store_url": _flag(str, "URL", "Where bytes are stored: file:///…, s3://bucket/prefix …."),
    "public_url": _flag(str, "URL", "Scheme and host under which clients see the service."),
    "job_workers": _flag(int, "N", "Jobs at once in this process; 0: none."),
    "slice_workers": _flag(int, "N", "Slices of jobs at once in this process."),
    "log_level": _flag(str, "LEVEL", "critical, error, warning, info or debug."),
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
    with extra("service"):
        from fragdex.service.config import load_settings

    return load_settings(config, **flags)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def log_to_stderr(settings: Settings) -> None:
    """One line an event: text for people and journals, JSON for collectors."""
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
