"""Hot requests answered before the framework: what is at hand, for a key that is known.

A shortcut stands beside a route that answers the same, never in place of it. It gives None wherever
it would have to wait, to refuse, or to read anything unusual; then the route answers. So it refuses
nothing and documents nothing, and a test holds its answers equal to those of its route.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from fragdex.errors import FragdexError
from fragdex.service.context import ServiceContext
from fragdex.service.web import cors
from fragdex.service.web.auth import Authenticator
from fragdex.service.web.front import SAFETY
from fragdex.service.web.metrics import Metrics

__all__ = ["Answer", "Shortcut", "Shortcuts"]

log = logging.getLogger("fragdex.service")

Answer = Callable[[ServiceContext, str, Request, tuple[str, ...]], Response | None]
"""Answers a request of a tenant; given are the context, the tenant and what the pattern found."""

COLLECTION = 3
"""Which part of `/api/v1/COLLECTION/…` tells most paths apart."""


@dataclass(frozen=True, slots=True)
class Shortcut:
    """A GET whose path is `pattern` as a whole; `route` is the path of its route, for metrics."""

    collection: str
    pattern: re.Pattern[str]
    route: str
    answer: Answer


class Shortcuts:
    """The shortcuts of an application, asked before it is."""

    def __init__(
        self,
        context: ServiceContext,
        authenticator: Authenticator,
        metrics: Metrics,
        shortcuts: Sequence[Shortcut],
    ) -> None:
        self._context, self._authenticator, self._metrics = context, authenticator, metrics
        self._for_pages = cors.for_pages(context.settings)
        self._by_collection: dict[str, list[Shortcut]] = {}
        # rates are counted, and refused, on the long way
        if not context.settings.rate_limit:
            for shortcut in shortcuts:
                self._by_collection.setdefault(shortcut.collection, []).append(shortcut)

    async def answered(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Answer a request; False, and nothing was sent, where its route has to."""
        if scope["type"] != "http" or scope["method"] != "GET":
            return False
        began = time.perf_counter()
        started = False
        found = None

        async def sent(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        self._metrics.running.inc()
        try:
            found = self.answer(scope, receive)
            if found is None:
                return False
            response = found[1]
            response.raw_headers += SAFETY
            response.raw_headers += self._for_pages(_field(scope, b"origin"))
            await response(scope, receive, sent)
        except Exception as error:
            if started:
                raise
            if not isinstance(error, (FragdexError, OSError)):
                log.error("a shortcut failed, its route answers", exc_info=error)
            return False
        finally:
            self._metrics.running.dec()
            if started and found is not None:
                passed = time.perf_counter() - began
                self._metrics.count("GET", found[0], found[1].status_code, passed)
        return True

    def answer(self, scope: Scope, receive: Receive) -> tuple[str, Response] | None:
        """The route and its answer; None: ask the route itself."""
        parts = scope["path"].split("/", COLLECTION + 1)
        if len(parts) <= COLLECTION + 1:
            return None
        for shortcut in self._by_collection.get(parts[COLLECTION], ()):
            found = shortcut.pattern.fullmatch(scope["path"])
            if found is None:
                continue
            tenant = self._tenant(scope)
            if tenant is None:
                return None
            request = Request(scope, receive)
            response = shortcut.answer(self._context, tenant, request, found.groups())
            return None if response is None else (shortcut.route, response)
        return None

    def _tenant(self, scope: Scope) -> str | None:
        value = _field(scope, b"authorization")
        if value is None:
            return None
        kind, _, bearer = value.decode("latin-1").partition(" ")
        return self._authenticator.remembered(bearer) if kind == "Bearer" else None


def _field(scope: Scope, name: bytes) -> bytes | None:
    """The first field of that name in the head of a request."""
    for known, value in scope["headers"]:
        if known == name:
            return value  # type: ignore[no-any-return]
    return None
