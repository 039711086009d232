"""`fragdex origin`: a folder, bucket or URL of MP4s as HLS, DASH and clips."""

from __future__ import annotations

import os
import socket
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from fragdex.cli import options
from fragdex.cli.output import json_line

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from fragdex.origin.application import OriginSettings

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
        str,
        typer.Argument(
            metavar="DIR", help="A folder, or a URL (s3, gs, az, https).", show_default=False
        ),
    ],
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Listen on this address.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, metavar="N", help="0: any free one.")
    ] = 8080,
    segment_duration: Annotated[
        str,
        typer.Option(
            "--segment-duration",
            metavar="S",
            help="Approximate length of segments; all: one per key frame.",
        ),
    ] = "4",
    cache: Annotated[
        str | None,
        typer.Option(
            "--cache",
            metavar="DIR",
            help="Keep the indexes here; otherwise they are made at each start.",
            show_default=False,
        ),
    ] = None,
    beside: Annotated[
        bool,
        typer.Option("--beside", help="Keep the indexes next to local files (film.mp4.fidx)."),
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
            help="Read at most N bytes of a remote file to index it.",
            show_default=False,
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
            help="Serve signed addresses only (fragdex.origin.addresses.signed).",
            show_default=False,
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
    config = uvicorn.Config(
        make, http=BoundedConnection.within(limits), ws="none", limit_concurrency=CONNECTIONS,
        factory=True, workers=workers, log_level="warning", access_log=False,
        server_header=False, proxy_headers=False, timeout_graceful_shutdown=GRACE,
    )  # fmt: skip
    with _listening(host, port) as listening:
        where, number = listening.getsockname()[:2]
        url = f"http://{f'[{where}]' if ':' in where else where}:{number}/"
        print(json_line({"url": url}) if json else f"Serving {url}\n", end="", flush=True)
        if workers > 1:
            Multiprocess(config, [listening]).run()
        else:
            uvicorn.Server(config).run([listening])
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


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise typer.BadParameter(
            f"cannot listen on {host}, port {port}: {error.strerror}", param_hint="--port"
        ) from error
