"""The commands that serve: `fragdex serve`, `worker` and `config` of the service, and `origin`."""

from __future__ import annotations

import errno
import logging
import os
import signal
import socket
import sys
import tempfile
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

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
from fragdex.cli.output import json_line
from fragdex.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp

    from fragdex.origin.application import OriginSettings


@has_settings(*WORKER, "host", "port", "public_url")
def serve(settings: Any, json: options.Json = False) -> int:
    """Serve media over HTTP: API and worker in one process.

    The data folder and the database are created if they are missing. On a loopback address the
    first start creates a key, which is printed once; for other addresses, create one first
    (fragdex key create). Settings also come from the environment and a file; fragdex config shows
    all of them.

    Examples:
      fragdex serve
      fragdex serve --host 0.0.0.0 --port 8000 --data /srv/fragdex
    """
    log_to_stderr(settings)
    share_one_arena()
    raise_file_limit()
    with options.extra("service"):
        from fragdex.sandbox.child import log_missing_walls
        from fragdex.service import app as service_app
        from fragdex.service.records import keys
        from fragdex.service.web.server import server_of
    ensure_free(settings.host, settings.port)
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


def ensure_free(host: str, port: int) -> None:
    """Find out whether a port is free before a database is opened and work begins.

    Raises:
        BadParameter: it is in use, or not to be had by this user.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((host, port))
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                return  # whoever listens says what it is
            reason = f"port {port} is unavailable: {error.strerror}"
            raise typer.BadParameter(reason) from None


def _print_urls(url: str, *, json: bool) -> None:
    """The first line that a start-up prints, once the port is open."""
    places = {"url": url, "console": f"{url}/", "docs": f"{url}/docs"}
    line = f"Serving {url} (console: {places['console']}, docs: {places['docs']})\n"
    print(json_line(places) if json else line, end="", flush=True)


log = logging.getLogger("fragdex.service")


def until_signal() -> Callable[[], None]:
    """Take SIGTERM and SIGINT from now on; what is returned waits until one has come."""
    # The interpreter writes the number of a signal there in whatever line it comes. A wait for a
    # lock may begin after a signal has come and before its handler was called: nobody ends it.
    come, coming = socket.socketpair()
    coming.setblocking(False)
    signal.set_wakeup_fd(coming.detach(), warn_on_full_buffer=False)
    numbers = (signal.SIGTERM, signal.SIGINT)
    for number in numbers:
        signal.signal(number, lambda *_: None)

    def wait() -> None:
        while come.recv(1)[0] not in numbers:
            pass

    return wait


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
    with options.extra("service"):
        from fragdex.sandbox.child import log_missing_walls
        from fragdex.service import app
    signalled = until_signal()
    if settings.worker_port:
        ensure_free(settings.worker_host, settings.worker_port)
    context = app.open_context(settings)
    log_missing_walls()
    if json:
        workers = {"job_workers": settings.job_workers, "slice_workers": settings.slice_workers}
        print(json_line(workers), end="", flush=True)
    if settings.worker_port:
        stuck = _serve_health(app.make_worker_app(context), settings)
    else:
        stuck = app.work_until(context, signalled)
    app.close_context(context)
    if stuck:
        os._exit(0)
    return 0


def _serve_health(application: Any, settings: Any) -> list[str]:
    """Work until the first signal, and answer meanwhile; returns the jobs that did not end."""
    with options.extra("service"):
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


GRACE: Final = 10
"""Seconds that running answers get when the server is asked to stop."""
BACKLOG: Final = 2048
"""Connections that wait to be accepted."""
CONNECTIONS: Final = 2000
"""Requests at once; more get 503, and connections beyond twice as many are closed."""
HEAD_BYTES: Final = 32 << 10
"""Of the head of a request."""


def origin(
    root: Annotated[
        str, typer.Argument(metavar="DIR", help="A folder, or a URL (s3, gs, az, https).")
    ],
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Listen on this address.")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            "--port", min=0, max=65535, metavar="N", help="Listen on this port; 0: any free one."
        ),
    ] = 8080,
    segment_duration: Annotated[
        str,
        typer.Option(
            "--segment-duration",
            metavar="S",
            help="Approximate length of a segment; all: one per key frame.",
        ),
    ] = "4",
    cache: Annotated[
        str | None,
        typer.Option(
            "--cache",
            metavar="DIR",
            help="Keep the indexes here; otherwise they are made at each start.",
        ),
    ] = None,
    beside: Annotated[
        bool, typer.Option("--beside", help="Keep the indexes next to local files (film.mp4.fidx).")
    ] = False,
    max_age: Annotated[
        int,
        typer.Option(
            "--max-age", min=0, metavar="S", help="Seconds for which caches may keep media."
        ),
    ] = 3600,
    films: Annotated[
        int, typer.Option("--films", min=1, metavar="N", help="Keep N files open in memory.")
    ] = 16,
    max_bytes: Annotated[
        int | None,
        typer.Option(
            "--max-bytes",
            min=0,
            metavar="N",
            help="Read at most N bytes of an input; of remote ones, to index them.",
        ),
    ] = None,
    trust: Annotated[
        float,
        typer.Option(
            "--trust",
            min=0,
            metavar="S",
            help="Check after S seconds whether a remote file is still the same.",
        ),
    ] = 60,
    growing: Annotated[
        float,
        typer.Option(
            "--growing",
            min=0,
            metavar="S",
            help="Fragmented local files grow until S seconds after the last write; 0: never.",
        ),
    ] = 10,
    workers: Annotated[
        int, typer.Option("--workers", min=1, metavar="N", help="Serve in N processes.")
    ] = 1,
    log: Annotated[
        str,
        typer.Option(
            "--log", metavar="FORM", help="A line for each request on stderr: text, json or none."
        ),
    ] = "text",
    secret: Annotated[
        str | None,
        typer.Option(
            "--secret",
            metavar="TEXT",
            envvar="FRAGDEX_ORIGIN_SECRET",
            help="Check signatures with it: serve nothing else (fragdex.origin.addresses.signed).",
        ),
    ] = None,
    json: options.Json = False,
) -> int:
    """Serve a folder, bucket or URL of MP4s as HLS, DASH and clips; nothing is stored.

    DIR/film.mp4 is at /film.mp4/hls/master.m3u8, /film.mp4/dash/manifest.mpd, /film.mp4/clip.mp4,
    /film.mp4/fragmented.mp4 and /film.mp4/faststart.mp4; pictures and sound at thumbnail.jpg,
    storyboard.vtt, peaks.json and loudness.json. The page / lists the videos.

    Examples:
      fragdex origin films/
      fragdex origin s3://bucket/videos --cache /var/cache/fragdex
    """
    from fragdex.errors import MissingExtra
    from fragdex.seeking.time_texts import parse_time

    try:
        import uvicorn
        from uvicorn.supervisors import Multiprocess

        from fragdex.origin.application import OriginSettings
        from fragdex.origin.titles import IndexFiles, Titles
        from fragdex.serving.connection import BoundedConnection, ConnectionLimits
    except ImportError as error:
        raise MissingExtra("fragdex origin needs more packages", extra="service") from error
    try:
        length = None if segment_duration == "all" else parse_time(segment_duration)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    if log not in ("text", "json", "none"):
        raise typer.BadParameter(f"--log: text, json or none, not {log!r}")
    indexes = IndexFiles(None if cache is None else Path(os.path.realpath(cache)), beside=beside)
    make = partial(
        _app, root, length, indexes=indexes, in_memory=films, max_bytes=max_bytes, trust=trust,
        growing=growing,
        settings=OriginSettings(max_age=max_age, secret=secret, log_json=log == "json"),
        log=log != "none",
    )  # fmt: skip
    Titles(root)  # a folder that is not there is said before anything is started
    limits = ConnectionLimits(
        head_bytes=HEAD_BYTES, head_seconds=10, answer_seconds=30, connections=2 * CONNECTIONS
    )
    # processes agree there on the numbers of titles of several files
    alone = workers == 1 or cache is not None
    notes = nullcontext() if alone else tempfile.TemporaryDirectory(prefix="fragdex-")
    with listening(host, port) as accepting, notes as shared:
        make = partial(make, notes=None if shared is None else Path(shared))
        server = uvicorn.Config(
            make, http=BoundedConnection.within(limits), ws="none", limit_concurrency=CONNECTIONS,
            factory=True, workers=workers, log_level="warning", access_log=False,
            server_header=False, proxy_headers=False, timeout_graceful_shutdown=GRACE,
        )  # fmt: skip
        where, number = accepting.getsockname()[:2]
        url = f"http://{f'[{where}]' if ':' in where else where}:{number}/"
        print(json_line({"url": url}) if json else f"Serving {url}\n", end="", flush=True)
        if workers > 1:
            Multiprocess(server, [accepting]).run()
        else:
            uvicorn.Server(server).run([accepting])
    return 0


def _app(
    root: str, seconds: Any, *, settings: OriginSettings, log: bool, **options: Any
) -> ASGIApp:
    """The application, made in the process that serves it."""
    from fragdex.origin.application import Origin
    from fragdex.origin.titles import Titles

    if log:
        settings = replace(settings, log=partial(print, file=sys.stderr))
    return Origin(Titles(root, segment_duration=seconds, **options), settings)


def listening(host: str, port: int) -> socket.socket:
    """A socket that accepts connections.

    Raises:
        typer.BadParameter: the port is taken, or the address is not of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise typer.BadParameter(
            f"cannot listen on {host}, port {port}: {error.strerror}", param_hint="--port"
        ) from error
