"""`fragdex serve`, `worker` and `config`: the service's processes, and their settings."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from functools import partial
from typing import Any

from fragdex.cli import options
from fragdex.cli.admin import (
    WORKER,
    audit_key,
    has_settings,
    is_loopback,
    log_to_stderr,
    raise_file_limit,
    share_one_arena,
)
from fragdex.cli.options import extra
from fragdex.cli.output import json_line
from fragdex.errors import ConfigError


@has_settings(*WORKER, "host", "port", "public_url")
def serve(settings: Any, json: options.Json = False) -> int:
    """Serve media over HTTP: API and worker in one process.

    The data folder and the database are created if they are missing. On a loopback address the
    first start creates a key, which is printed once; for other addresses, create one first
    (fragdex key create).

    Examples:
      fragdex serve
      fragdex serve --host 0.0.0.0 --port 8000 --data /srv/fragdex
    """
    log_to_stderr(settings)
    share_one_arena()
    raise_file_limit()
    with extra("service"):
        from fragdex.sandbox.child import log_missing_walls
        from fragdex.service import app as service_app
        from fragdex.service.records import keys
        from fragdex.service.web.server import server_of
    context = service_app.open_context(settings)
    log_missing_walls()
    if not keys.has_keys(context.database):
        if not is_loopback(settings.host):
            raise ConfigError(
                f"there is no key yet, and {settings.host} is reachable by others",
                advice="create one first: fragdex key create, with the same --data or database",
            )
        key = keys.create_key(context.database, scope=keys.ADMIN)
        audit_key(context.database, "create", key, "serve", scope=keys.ADMIN)
        if json:
            print(json_line({"key": key}), end="", flush=True)
        else:
            print(f"A key was created; it is printed once:\n{key}", flush=True)
    app = service_app.make_app(context)
    server = server_of(app, settings, partial(_print_urls, json=json))
    server.run()
    service_app.close_context(context)
    if app.state.stuck_jobs:
        # their threads would hold the process; their work was handed back
        sys.stdout.flush()
        os._exit(0)
    return 0


def _print_urls(url: str, *, json: bool) -> None:
    """The first line that a start-up prints, once the port is open."""
    places = {"url": url, "console": f"{url}/", "docs": f"{url}/docs"}
    line = f"Serving {url} (console: {places['console']}, docs: {places['docs']})\n"
    print(json_line(places) if json else line, end="", flush=True)


log = logging.getLogger("fragdex.service")


@has_settings(*WORKER)
def worker(settings: Any, json: options.Json = False) -> int:
    """Run jobs of `fragdex serve` in another process; with PostgreSQL also on another machine.

    On SIGTERM, unfinished jobs go back to the queue. With the setting worker_port it answers
    /healthz, /readyz and /metrics there.

    Examples:
      fragdex worker --data /srv/fragdex
      fragdex worker --database-url postgresql+psycopg://media@db/fragdex --store-url s3://media
    """
    if not settings.job_workers:
        raise ConfigError(f"job_workers ({settings.origins['job_workers']}) is 0: nothing to do")
    log_to_stderr(settings)
    share_one_arena()
    with extra("service"):
        from fragdex.sandbox.child import log_missing_walls
        from fragdex.service import app
    ending = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ending.set())
    context = app.open_context(settings)
    log_missing_walls()
    if json:
        workers = {"job_workers": settings.job_workers, "slice_workers": settings.slice_workers}
        print(json_line(workers), end="", flush=True)
    if settings.worker_port:
        stuck = _listening(app.make_worker_app(context), settings)
    else:
        stuck = app.work_until(context, ending)
    app.close_context(context)
    if stuck:
        os._exit(0)
    return 0


def _listening(application: Any, settings: Any) -> list[str]:
    """Work until the first signal, and answer meanwhile; returns the jobs that did not end."""
    with extra("service"):
        from fragdex.service.web.server import server_of

    server = server_of(
        application,
        settings,
        lambda url: log.info("answering at %s", url),
        address=(settings.worker_host, settings.worker_port),
    )
    server.run()
    stuck: list[str] = application.state.stuck_jobs
    return stuck


@has_settings("data", "config")
def config(settings: Any, json: options.Json = False) -> int:
    """Show every setting of the service, its value, and where the value comes from.

    A flag wins over the environment (FRAGDEX_PORT), the environment over the file (--config or
    FRAGDEX_CONFIG), the file over the default. Secrets are masked.

    Examples:
      fragdex config
      FRAGDEX_PORT=9000 fragdex config --json
    """
    shown, origins = settings.shown(), settings.origins
    if json:
        fields = {name: {"value": shown[name], "origin": origins[name]} for name in shown}
        print(json_line(fields), end="")
    else:
        width = max(map(len, shown))
        for name, value in shown.items():
            print(f"{name:{width}}  {value or '-'}  ({origins[name]})")
    return 0
