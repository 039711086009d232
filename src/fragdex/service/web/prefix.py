"""The path of `public_url`: what a proxy puts before all paths of the service.

A proxy may take it away or leave it in what it asks. Inside, paths are the service's own; what an
answer says of them (`Location`, types of problems) begins with the path that clients see.
"""

from __future__ import annotations

from contextvars import ContextVar

from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

OWN = ("/api/v1/", "/healthz", "/readyz", "/metrics", "/openapi.json", "/docs")
"""How all paths of the service begin, but `/` itself."""

_prefix: ContextVar[str] = ContextVar("prefix", default="")


def public_path(path: str) -> str:
    """A path of the service as the client of this request sees it."""
    return _prefix.get() + path


class Prefix:
    """Takes the prefix from the requests of an application, before all its other layers.

    Args:
        path: begins with a slash and ends without one: `/media`.
    """

    def __init__(self, app: ASGIApp, path: str) -> None:
        self._app, self._path = app, path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Have the application answer a request; other kinds of connection go through."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        _prefix.set(self._path)
        path = scope["path"]
        if path == self._path:
            # relative addresses of the page would lead out of the prefix
            await RedirectResponse(f"{self._path}/", 308)(scope, receive, send)
            return
        rest = path.removeprefix(self._path)
        # `/api/v1/files` is the service's own also where the prefix is `/api`
        if path.startswith(f"{self._path}/") and (rest == "/" or rest.startswith(OWN)):
            scope = {**scope, "path": rest, "raw_path": rest.encode()}
        await self._app(scope, receive, send)
