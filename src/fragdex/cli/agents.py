"""`fragdex mcp`: videos for agents, over the Model Context Protocol."""

from __future__ import annotations

import logging
import secrets
import sys
from contextlib import ExitStack
from typing import Annotated, Any, Final

import typer

from fragdex.cli import options
from fragdex.cli.output import json_line
from fragdex.errors import InvalidRequest, MissingExtra

LOOPBACK: Final = "127.0.0.1"


def mcp(
    folders: Annotated[
        list[str] | None, typer.Argument(metavar="DIR", help="Folders whose videos are read.")
    ] = None,
    urls: Annotated[
        list[str] | None,
        typer.Option(
            "--url",
            metavar="PREFIX",
            help="Read videos at URLs (http, https, s3, gs, az) below it, too; may be repeated.",
        ),
    ] = None,
    service: Annotated[
        str | None,
        typer.Option(
            "--service",
            metavar="URL",
            help="Read the videos of a service, too; its key is in FRAGDEX_KEY.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Write there: clips, packages, repaired videos and rendered pages, never over"
            " anything; otherwise nothing is written.",
        ),
    ] = None,
    http: Annotated[
        bool,
        typer.Option("--http", help="Serve HTTP on 127.0.0.1, at a secret path, and not stdio."),
    ] = False,
    port: Annotated[
        int,
        typer.Option(
            "--port",
            min=0,
            max=65535,
            metavar="N",
            help="Listen on this port, with --http; 0: any free one.",
        ),
    ] = 0,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            metavar="TEXT",
            envvar="FRAGDEX_MCP_TOKEN",
            help="The secret part of the path of --http.",
            show_default="a new one each time",
        ),
    ] = None,
    max_seconds: Annotated[
        float,
        typer.Option(
            "--max-seconds", min=1, metavar="S", help="Stop what takes longer: an answer."
        ),
    ] = 300,
    max_bytes: options.MaxBytes = 4 << 30,
    max_requests: options.MaxRequests = 20_000,
    json: options.Json = False,
) -> int:
    """Let agents look at and listen to videos: a server of the Model Context Protocol.

    Only what is named here is read, and only -o is written to, whatever a video, a page, a link or
    a server says. With --http, the address is printed; a client needs all of it. Needs
    pip install 'fragdex[agents]'.

    Examples:
      fragdex mcp films/
      fragdex mcp films/ -o made/ --url https://media.example.org/public/
      FRAGDEX_KEY=… fragdex mcp --service https://media.example.org --http --port 8765
    """
    if not (folders or urls or service):
        raise typer.BadParameter("name a folder, --url or --service: else there is nothing to read")
    if token is not None and not (len(token) >= 16 and token.isascii() and token.isalnum()):
        raise typer.BadParameter("--token is 16 letters and digits at least")
    try:
        from fragdex.agents.allowed import Allowed
        from fragdex.agents.server import server_of
        from fragdex.agents.work import Worker
    except ImportError as error:
        raise MissingExtra(f"fragdex mcp needs the package {error.name}", extra="agents") from error
    # stdout is the client's
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(message)s"
    )
    with ExitStack() as stack:
        client = None
        if service is not None:
            from fragdex.cli.remote import client_of

            client = stack.enter_context(client_of(service, None))
        try:
            allowed = Allowed(
                folders or (), urls or (), client, output,
                max_bytes=max_bytes, max_requests=max_requests,
            )  # fmt: skip
        except InvalidRequest as error:
            raise typer.BadParameter(str(error)) from error
        worker = Worker(allowed, max_seconds)
        stack.callback(worker.close)
        server = server_of(worker)
        if http:
            _serve(server, port, token or secrets.token_hex(16), json)
        else:
            server.run()
    return 0


def _serve(server: Any, port: int, token: str, json: bool) -> None:
    """Serve HTTP on loopback: names of other hosts and pages of other origins are refused."""
    import uvicorn
    from mcp.server.transport_security import TransportSecuritySettings

    from fragdex.cli.serve import listening

    with listening(LOOPBACK, port) as socket:
        own = f"{LOOPBACK}:{socket.getsockname()[1]}"
        hosts = [own, own.replace(LOOPBACK, "localhost")]
        application = server.streamable_http_app(
            streamable_http_path=f"/{token}/mcp",
            transport_security=TransportSecuritySettings(
                allowed_hosts=hosts, allowed_origins=[f"http://{one}" for one in hosts]
            ),
        )
        url = f"http://{own}/{token}/mcp"
        print(json_line({"url": url}) if json else f"Serving {url}\n", end="", flush=True)
        config = uvicorn.Config(application, log_level="warning", access_log=False, ws="none",
                                timeout_graceful_shutdown=2)  # fmt: skip
        uvicorn.Server(config).run([socket])
        sys.stdout.flush()
