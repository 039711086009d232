"""`fragdex worker`: one more process that works on jobs."""

from __future__ import annotations

import logging
import os
import signal
import threading
from typing import Any

from fragdex.cli import options, service_options
from fragdex.cli.extras import extra
from fragdex.cli.output import json_line
from fragdex.cli.service_options import log_to_stderr, settings_of, share_one_arena
from fragdex.errors import ConfigError

__all__ = ["worker"]

log = logging.getLogger("fragdex.service")


def worker(
    data: service_options.Data = None,
    config: service_options.ConfigFile = None,
    database_url: service_options.DatabaseUrl = None,
    store_url: service_options.StoreUrl = None,
    job_workers: service_options.JobWorkers = None,
    slice_workers: service_options.SliceWorkers = None,
    log_level: service_options.LogLevel = None,
    json: options.Json = False,
) -> int:
    """Run jobs beside `fragdex serve`: on the same machine, or with PostgreSQL on any.

    On SIGTERM, unfinished jobs go back to the queue. With the setting worker_port it answers
    /healthz, /readyz and /metrics there.

    Examples:
      fragdex worker --data /srv/fragdex
      fragdex worker --database-url postgresql+psycopg://media@db/fragdex --store-url s3://media
    """
    settings = settings_of(
        config,
        data=data,
        database_url=database_url,
        store_url=store_url,
        job_workers=job_workers,
        slice_workers=slice_workers,
        log_level=log_level,
    )
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
