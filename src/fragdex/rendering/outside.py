"""What a page may ask for beyond its own site: nothing, unless somebody says so.

Chromium itself has no network. Each request of a page that its site does not answer is put to an
`Outside`, which answers it or says why not. Ranges are asked for as HTTP asks for them, by a
`Range` header, so that media are read piece by piece.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from fragdex.rendering.site import ORIGIN

READABLE: Final = {
    "access-control-allow-origin": ORIGIN,
    "access-control-allow-credentials": "true",
    "access-control-expose-headers": "Content-Range, Accept-Ranges, ETag",
}
"""Headers of an answer that scripts of the page may read though another origin gave it."""


class Blocked(Exception):
    """A request that is not made; `reason` stands in the render's record.

    Args:
        lasts: whether the same request is blocked every time, whoever makes it and whenever.
    """

    def __init__(self, reason: str, *, lasts: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.lasts = lasts


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request: names of headers in lower case, the body whole."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class Outside(Protocol):
    """Answers what a site does not."""

    def fetch(self, url: str, headers: Mapping[str, str]) -> Answer:
        """Answer a GET; blocks, and may be called from several threads.

        Args:
            url: absolute; paths `/api/v1/…` of the site itself are asked for with its own origin.
            headers: of the request; `Range` where a part is wanted.

        Raises:
            Blocked: it is not made, and why.
        """


class _Nothing:
    def fetch(self, url: str, headers: Mapping[str, str]) -> Answer:
        raise Blocked("no network for pages")


NOTHING: Final[Outside] = _Nothing()
"""Blocks all."""


class FirstOf:
    """The first of several that does not block; the last one's reason where all do."""

    def __init__(self, *parts: Outside) -> None:
        self._parts = parts

    def fetch(self, url: str, headers: Mapping[str, str]) -> Answer:
        """As the first part that answers; raises Blocked as the last one."""
        blocked = Blocked("no network for pages")
        for part in self._parts:
            try:
                return part.fetch(url, headers)
            except Blocked as error:
                blocked = error
        raise blocked
