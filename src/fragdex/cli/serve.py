"""`fragdex serve`: the service in one process."""

from __future__ import annotations

import os
import sys

from fragdex.cli import serving
from fragdex.cli.serving import (
    is_loopback,
    log_to_stderr,
    service,
    settings_of,
    share_one_arena,
)

__all__ = ["serve"]


def serve(
    host: serving.Host = None,
    port: serving.Port = None,
    data: serving.Data = None,
    config: serving.ConfigFile = None,
    database_url: serving.DatabaseUrl = None,
    store_url: serving.StoreUrl = None,
    public_url: serving.PublicUrl = None,
    job_workers: serving.JobWorkers = None,
    slice_workers: serving.SliceWorkers = None,
    log_level: serving.LogLevel = None,
) -> int:
    """Serve media over HTTP: API and worker in one process.

    The data folder and its database are made where they are missing. On a loopback address the
    first start makes a key and prints it, once; on others a key must be there before.

    Examples:
      fragdex serve
      fragdex serve --host 0.0.0.0 --port 8000 --data /srv/fragdex
    """
    settings = settings_of(
        config,
        host=host,
        port=port,
        data=data,
        database_url=database_url,
        store_url=store_url,
        public_url=public_url,
        job_workers=job_workers,
        slice_workers=slice_workers,
        log_level=log_level,
    )
    log_to_stderr(settings.log_level)
    share_one_arena()
    app_module, keys = service("app"), service("records.keys")
    house = app_module.open_house(settings)
    if not keys.has_keys(house.database):
        if not is_loopback(settings.host):
            raise service("errors").ConfigError(
                f"there is no key yet, and {settings.host} can be reached by others",
                advice="make one first: fragdex key create, with the same --data or database",
            )
        key = keys.create_key(house.database)
        print(f"A key was made; it is told once:\n{key}", flush=True)
    app = app_module.make_app(house)
    server = service("web.server").server_of(
        app, settings, lambda url: print(f"Serving {url} (interface: {url}/docs)", flush=True)
    )
    server.run()
    app_module.close_house(house)
    if app.state.stuck_jobs:
        # their threads would hold the process; their work was handed back
        sys.stdout.flush()
        os._exit(0)
    return 0
