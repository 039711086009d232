"""`fragdex webhook listen`: what a service sends, as it comes, its signatures checked."""

from __future__ import annotations

import json as json_module
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Annotated, Any

import typer

from fragdex.cli import options
from fragdex.cli.output import json_line
from fragdex.webhook_signature import secret_bytes, signature_problem

LONGEST_BODY = 1 << 20
NOT_CHECKED = "not checked"


def listen(
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="PORT", help="Port; 0: any free one.")
    ] = 8900,
    host: Annotated[str, typer.Option(metavar="HOST", help="Address to listen on.")] = "127.0.0.1",
    secret: Annotated[
        str | None,
        typer.Option(
            metavar="whsec_…",
            envvar="FRAGDEX_WEBHOOK_SECRET",
            help="Check signatures; a delivery that fails is answered 401.",
            show_default=False,
        ),
    ] = None,
    count: Annotated[
        int, typer.Option(min=0, metavar="N", help="End after N deliveries; 0: never.")
    ] = 0,
    json: options.Json = False,
) -> int:
    """Show the deliveries of a service's webhooks as they arrive, and check their signatures.

    A service accepts a non-public URL only if its setting webhook_networks has the network. With
    --count, the exit code is 1 if a signature was wrong.

    Examples:
      fragdex webhook listen --secret whsec_…
      fragdex webhook listen --port 0 --count 1 --json
    """
    if secret is not None:
        try:
            secret_bytes(secret)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--secret") from error
    seen: list[bool] = []

    def on_delivery(headers: dict[str, str], body: bytes) -> bool:
        reason = NOT_CHECKED
        if secret is not None:
            reason = signature_problem(headers, body, [secret], time.time()) or ""
        shown = _delivery(headers, body, reason)
        print(json_line(shown) if json else _line(shown), end="", flush=True)
        seen.append(reason in ("", NOT_CHECKED))
        return seen[-1]

    try:
        server = HTTPServer((host, port), _handler(on_delivery))
    except OSError as error:
        raise typer.BadParameter(
            f"cannot listen on {host}, port {port}: {error.strerror}", param_hint="--port"
        ) from error
    with server:
        where, number = server.server_address[:2]
        typer.echo(f"Listening at http://{where!s}:{number}/", err=True)
        while not count or len(seen) < count:
            server.handle_request()
    return 0 if all(seen) else 1


def _handler(on_delivery: Callable[[dict[str, str], bytes], bool]) -> type[BaseHTTPRequestHandler]:
    """What answers requests: 204, or 401 where `on_delivery` does not believe a delivery."""

    class Handler(BaseHTTPRequestHandler):
        timeout = 30

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "")
            if not length.isascii() or not length.isdigit() or int(length) > LONGEST_BODY:
                self.send_error(413)
                return
            body = self.rfile.read(int(length))
            self.send_response(204 if on_delivery(dict(self.headers.items()), body) else 401)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Deliveries are printed, requests are not."""

    return Handler


def _delivery(headers: dict[str, str], body: bytes, reason: str) -> dict[str, Any]:
    named = {name.lower(): value for name, value in headers.items()}
    try:
        message = json_module.loads(body)
    except ValueError:
        message = body.decode("utf-8", "replace")
    return {
        "id": named.get("webhook-id"),
        "timestamp": named.get("webhook-timestamp"),
        "signature": reason or "valid",
        "message": message,
    }


def _line(delivery: dict[str, Any]) -> str:
    message = delivery["message"] if isinstance(delivery["message"], dict) else {}
    data = message.get("data")
    facts = data if isinstance(data, dict) else {}
    shown = " ".join(
        f"{name}={value if isinstance(value, str) else json_module.dumps(value)}"
        for name, value in facts.items()
        if value is not None
    )
    kind = message.get("type", "not an event")
    line = f"{message.get('timestamp', '-')}  {kind}  {shown}  [signature {delivery['signature']}]"
    # what anybody sends is shown: no control characters on a terminal
    return "".join(char if char.isprintable() else " " for char in line) + "\n"
