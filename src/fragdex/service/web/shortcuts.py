"""Hot requests answered before the framework: what is at hand, for a key that is known.

A shortcut stands beside a route that answers the same, never in place of it. It gives None wherever
it would have to wait, to refuse, or to read anything unusual; then the route answers. So it refuses
nothing and documents nothing, and a test holds its answers equal to those of its route.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope

from fragdex.errors import FragdexError
from fragdex.service.house import House
from fragdex.service.web.auth import Doorman

__all__ = ["Answer", "Shortcut", "Shortcuts"]

Answer = Callable[[House, str, Request, tuple[str, ...]], Response | None]
"""Answers a request of a tenant; given are the house, the tenant and what the pattern found."""

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
    """The shortcuts of an application."""

    def __init__(self, house: House, doorman: Doorman, shortcuts: Sequence[Shortcut]) -> None:
        self._house, self._doorman = house, doorman
        self._by_collection: dict[str, list[Shortcut]] = {}
        # rates are counted, and refused, on the long way
        if not house.settings.rate_limit:
            for shortcut in shortcuts:
                self._by_collection.setdefault(shortcut.collection, []).append(shortcut)

    def answer(self, scope: Scope, receive: Receive) -> tuple[str, Response] | None:
        """The route and its answer; None: ask the route itself."""
        if scope["method"] != "GET":
            return None
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
            try:
                response = shortcut.answer(
                    self._house, tenant, Request(scope, receive), found.groups()
                )
            except FragdexError:
                return None
            return None if response is None else (shortcut.route, response)
        return None

    def _tenant(self, scope: Scope) -> str | None:
        for name, value in scope["headers"]:
            if name == b"authorization":
                kind, _, bearer = value.decode("latin-1").partition(" ")
                return self._doorman.remembered(bearer) if kind == "Bearer" else None
        return None
