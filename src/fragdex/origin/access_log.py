"""A line for each request, when it is answered."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["AccessLog"]


class AccessLog:
    """Logs the requests that an application answers.

    Args:
        app: the application.
        write: called with each line, without its end.
        json: whether lines are JSON objects; else words with spaces between.
    """

    def __init__(self, app: ASGIApp, write: Callable[[str], None], *, json: bool) -> None:
        self._app, self._write, self._json = app, write, json

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A request, as ASGI has it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status, size = time.perf_counter(), 0, 0

        async def counted(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                size += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, counted)
        finally:
            milliseconds = (time.perf_counter() - began) * 1000
            self._write(self._line(scope, status, size, milliseconds))

    def _line(self, scope: Scope, status: int, size: int, milliseconds: float) -> str:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        client = (scope.get("client") or ("-",))[0]
        # as it came, so that no byte of it can end the line
        target = (scope.get("raw_path") or b"").decode("latin-1")
        if scope["query_string"]:
            target += "?" + scope["query_string"].decode("latin-1")
        if self._json:
            return json.dumps(
                {
                    "time": now,
                    "client": client,
                    "method": scope["method"],
                    "target": target,
                    "status": status,
                    "bytes": size,
                    "milliseconds": round(milliseconds, 3),
                }
            )
        return f"{now} {client} {scope['method']} {target} {status} {size} {milliseconds:.1f} ms"
