"""`fragdex origin`: a folder, bucket or URL of MP4s as HLS, DASH and clips."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["origin"]


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
    seconds: Annotated[
        str,
        typer.Option(
            "--seconds", metavar="S", help="Wanted length of segments; all: one a key frame."
        ),
    ] = "4",
    cache: Annotated[
        str | None,
        typer.Option(
            "--cache",
            metavar="DIR",
            help="Keep the indexes of films here; without it they are made anew.",
            show_default=False,
        ),
    ] = None,
    max_age: Annotated[
        int,
        typer.Option(
            "--max-age", min=0, metavar="S", help="Seconds for which caches may keep media."
        ),
    ] = 3600,
    films: Annotated[
        int, typer.Option("--films", min=1, metavar="N", help="Keep N films open in memory.")
    ] = 16,
    max_bytes: Annotated[
        int | None,
        typer.Option(
            "--max-bytes",
            min=0,
            metavar="N",
            help="Read at most N bytes of a remote film to index it.",
            show_default=False,
        ),
    ] = None,
    secret: Annotated[
        str | None,
        typer.Option(
            "--secret",
            metavar="TEXT",
            envvar="FRAGDEX_ORIGIN_SECRET",
            help="Serve signed addresses only (fragdex.origin.signing.signed).",
            show_default=False,
        ),
    ] = None,
) -> int:
    """Serve a folder, bucket or URL of MP4s as HLS, DASH and clips; nothing is stored.

    DIR/film.mp4 is at /film.mp4/hls/master.m3u8, /film.mp4/dash/manifest.mpd, /film.mp4/clip.mp4,
    /film.mp4/fragmented.mp4 and /film.mp4/faststart.mp4; the page / lists the films of a folder.

    Examples:
      fragdex origin films/
      fragdex origin s3://bucket/films --cache /var/cache/fragdex
    """
    from fragdex.errors import MissingExtra
    from fragdex.seeking.times import parse_time

    try:
        import uvicorn

        from fragdex.origin.application import Settings, make_app
        from fragdex.origin.titles import Titles
    except ImportError as error:
        raise MissingExtra(
            "fragdex origin needs more packages", advice="pip install 'fragdex[cli,origin]'"
        ) from error
    try:
        length = None if seconds == "all" else parse_time(seconds)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    titles = Titles(
        root,
        seconds=length,
        in_memory=films,
        cache=None if cache is None else Path(os.path.realpath(cache)),
        max_bytes=max_bytes,
    )
    app = make_app(titles, Settings(max_age=max_age, secret=secret))
    config = uvicorn.Config(app, host=host, port=port, log_level="warning", access_log=False)
    server = uvicorn.Server(config)
    startup = server.startup

    async def started(sockets: list[socket.socket] | None = None) -> None:
        await startup(sockets)
        for listening in [one for group in server.servers for one in group.sockets][:1]:
            where, number = listening.getsockname()[:2]
            at = f"[{where}]" if ":" in where else where
            print(f"Serving http://{at}:{number}/", flush=True)

    server.startup = started  # type: ignore[method-assign]
    server.run()
    return 0
