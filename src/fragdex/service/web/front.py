"""What every request passes first: counted, its faults answered, its answer made safe to show."""

from __future__ import annotations

import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fragdex.errors import FragdexError
from fragdex.service.web.events import BrokenOff
from fragdex.service.web.metrics import Metrics
from fragdex.service.web.problems import unexpected
from fragdex.service.web.shortcuts import Shortcuts

__all__ = ["Front"]

SAFETY = (
    # a file's type is what we say it is, whatever its bytes look like
    (b"x-content-type-options", b"nosniff"),
    # URLs may carry tokens
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    # media may be shown by pages of other origins; CORS decides who reads them
    (b"cross-origin-resource-policy", b"cross-origin"),
)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Front:
    """The outermost layer of the application, below the server."""

    def __init__(self, app: ASGIApp, metrics: Metrics, shortcuts: Shortcuts) -> None:
        self._app, self._metrics, self._shortcuts = app, metrics, shortcuts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; other kinds of connection go through."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 0
        short: str | None = None

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *SAFETY]
            await send(message)

        began = time.perf_counter()
        self._metrics.running.inc()
        try:
            found = self._shortcuts.answer(scope, receive)
            if found is not None:
                short, response = found
                try:
                    await response(scope, receive, sent)
                except (FragdexError, OSError):
                    if status:
                        raise
                    short = None
            if short is None:
                await self._app(scope, receive, sent)
        except BrokenOff:
            pass  # the server closes a connection whose answer is not complete
        except Exception as error:  # a fault of ours is answered, and written down
            if status:
                raise
            await unexpected(error)(scope, receive, sent)
        finally:
            self._metrics.running.dec()
            route = short or getattr(scope.get("route"), "path_format", None) or "(none)"
            method = scope["method"] if scope["method"] in METHODS else "(other)"
            self._metrics.count(method, route, status, time.perf_counter() - began)
