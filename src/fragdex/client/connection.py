"""What both clients share: the address, and requests and responses in httpx's terms."""

from __future__ import annotations

import dataclasses
import os
from typing import Any, Final, TypeVar

import httpx

from fragdex.client import api, procedures
from fragdex.client.downloads import Download, download_to
from fragdex.client.exchange import Procedure, Response, Retries
from fragdex.client.request import Request
from fragdex.client.uploads import CHUNK, Progress

__all__ = ["Connection", "asked", "download", "head_of", "with_cursor"]

T = TypeVar("T")

_TIMEOUT: Final = httpx.Timeout(30, read=120)
"""An upload is answered when its bytes are durable; events have a heartbeat every 15 s."""


class Connection:
    """Where the service is, and how it is asked; the same for both clients."""

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        retries: Retries | None = None,
        **options: Any,
    ) -> None:
        """Describe a service.

        Args:
            url: of the service, with a path before `/api/v1` where it has one; None: the
                environment's `FRAGDEX_URL`, else http://127.0.0.1:8000.
            key: of a tenant; None: the environment's `FRAGDEX_KEY`. A URL token does for reading.
            retries: how often, and when, something is tried again.
            options: for the client of httpx: `verify`, `proxy`, `timeout`, `transport` …
        """
        base = url or os.environ.get("FRAGDEX_URL") or "http://127.0.0.1:8000"
        secret = key or os.environ.get("FRAGDEX_KEY")
        self.retries = retries or Retries()
        self.options: dict[str, Any] = {
            "base_url": base.rstrip("/"),
            "timeout": _TIMEOUT,
            "headers": {"Authorization": f"Bearer {secret}"} if secret else {},
            **options,
        }

    @property
    def options_elsewhere(self) -> dict[str, Any]:
        """What a client of httpx is given that asks other servers: nothing of ours goes there."""
        own = ("base_url", "headers", "auth", "cookies", "params")
        return {name: value for name, value in self.options.items() if name not in own}

    def pushing(self, path: str | os.PathLike[str], **options: Any) -> Procedure[api.AnyFile]:
        """The procedure of `push`, with its defaults."""
        known = {
            "filename": None,
            "type": None,
            "expires_at": None,
            "hash_first": True,
            "chunk": CHUNK,
            "progress": None,
        }
        return procedures.push(path, **{**known, **options}, retries=self.retries)


def asked(request: Request[Any], more: Any = None) -> dict[str, Any]:
    """A request as the arguments of httpx; `more` are headers."""
    return {
        "method": request.method,
        "url": request.path,
        "params": request.parameters(),
        "headers": {**request.fields(), **(more or {})},
        "content": request.payload(),
    }


def head_of(answer: httpx.Response, content: bytes) -> Response:
    """A response of httpx in our terms, with the content that was read of it."""
    return Response(answer.status_code, answer.headers, content)


def with_cursor(request: Request[T], cursor: str) -> Request[T]:
    """The request of the next page of a list."""
    return dataclasses.replace(request, query={**request.query, "cursor": cursor})


def download(
    request: Request[Any], to: Any, progress: Progress | None, retries: Retries
) -> Procedure[int]:
    """The procedure of `download`, to a path or an open file."""
    if hasattr(to, "write"):
        return Download(request, to, progress).run(retries)
    return download_to(request, to, progress, retries)
