"""The https hosts that an operator lets pages read from, as they were looked at."""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final
from urllib.parse import urljoin, urlsplit

from fragdex.outgoing import (
    Address,
    AddressRefused,
    PinnedHTTPS,
    Resolve,
    checked_address,
    cut_after,
    is_public,
)
from fragdex.rendering.outside import Answer, Blocked

MAX_REDIRECTS: Final = 5
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_PIECE: Final = 64 << 10

# Of what a page's request says, what its answer may depend on. No cookies, no credentials.
_PASSED_ON: Final = ("accept", "accept-language", "if-none-match", "range", "user-agent")
# Of an answer, what the browser may see.
_PASSED_BACK: Final = (
    "accept-ranges", "access-control-allow-origin", "cache-control", "content-range",
    "content-type", "etag", "last-modified", "timing-allow-origin",
)  # fmt: skip


class AllowedHosts:
    """The https hosts that an operator names, and nothing else.

    The address is looked at after it is resolved, all of them, and the connection is made to the
    one that was looked at: a name that points elsewhere a moment later changes nothing. Redirects
    are asked for like requests of the page. Nothing of the caller's environment (proxies, netrc)
    is used.

    Args:
        hosts: `fonts.example.org`, `*.example.org` (names below it), with `:PORT` where it is
            not 443.
        max_bytes: the largest body.
        seconds: for one request, redirects included.
        reachable: which addresses a name may have.
        resolve: as `socket.getaddrinfo`.
        tls: whom to trust; the system's authorities where it is None.
    """

    def __init__(
        self,
        hosts: Iterable[str],
        *,
        max_bytes: int = 64 << 20,
        seconds: float = 20.0,
        reachable: Callable[[Address], bool] = is_public,
        resolve: Resolve = socket.getaddrinfo,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._hosts = tuple(_host_and_port(host) for host in hosts)
        self._max_bytes, self._seconds = max_bytes, seconds
        self._reachable, self._resolve = reachable, resolve
        self._tls = tls

    def fetch(self, url: str, headers: Mapping[str, str]) -> Answer:
        """As `Outside.fetch`."""
        deadline = time.monotonic() + self._seconds
        passed_on = {
            name: value for name, value in headers.items() if name.lower() in _PASSED_ON
        } | {"Accept-Encoding": "identity"}
        for _ in range(MAX_REDIRECTS + 1):
            answer, location = self._once(url, passed_on, deadline)
            if location is None:
                return answer
            url = urljoin(url, location)
        raise Blocked(f"more than {MAX_REDIRECTS} redirects")

    def check(self, url: str) -> None:
        """Raise Blocked where a URL may not be asked for; nobody is asked."""
        self._allowed(url)

    def _once(
        self, url: str, headers: Mapping[str, str], deadline: float
    ) -> tuple[Answer, str | None]:
        host, port, target = self._allowed(url)
        try:
            address = checked_address(host, port, self._reachable, self._resolve)
        except AddressRefused as error:
            raise Blocked(str(error)) from None
        left = deadline - time.monotonic()
        if left <= 0:
            raise Blocked(f"{host} took more than {self._seconds:g} s")
        connection = PinnedHTTPS(host, port, address, left, self._tls)
        try:
            with cut_after(connection, left):
                connection.request("GET", target, headers=dict(headers))
                answer, location = self._read(host, connection.getresponse())
            if time.monotonic() >= deadline:
                raise OSError("cut in the middle of the body")
            return answer, location
        except (OSError, http.client.HTTPException, ValueError) as error:
            if time.monotonic() >= deadline:
                raise Blocked(f"{host} took more than {self._seconds:g} s") from None
            raise Blocked(f"{host} could not be reached: {type(error).__name__}") from None

    def _allowed(self, url: str) -> tuple[str, int, str]:
        """Host, port and request target of a URL that may be asked for."""
        try:
            parts = urlsplit(url)
            host, port = (parts.hostname or "").rstrip("."), parts.port or 443
        except ValueError:
            raise Blocked("the URL cannot be read", lasts=True) from None
        if parts.scheme != "https":
            raise Blocked("only https is allowed", lasts=True)
        if parts.username is not None or parts.password is not None:
            raise Blocked("URLs with credentials are not requested", lasts=True)
        if not any(_is_meant(host, name) and port == its for name, its in self._hosts):
            raise Blocked("the host is not on the operator's list")
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        if any(ord(char) <= 32 or ord(char) > 126 for char in host + target):
            raise Blocked("the URL is not encoded", lasts=True)
        return host, port, target

    def _read(self, host: str, response: http.client.HTTPResponse) -> tuple[Answer, str | None]:
        location = response.getheader("Location")
        if response.status in _REDIRECTS and location is not None:
            return Answer(response.status), location
        body = bytearray()
        while piece := response.read(_PIECE):
            body += piece
            if len(body) > self._max_bytes:
                raise Blocked(f"{host} sends more than {self._max_bytes} bytes")
        if response.length:
            raise OSError("the body ends too early")
        wanted = {name: response.getheader(name) for name in _PASSED_BACK}
        kept = {name: value for name, value in wanted.items() if value is not None}
        return Answer(response.status, kept, bytes(body)), None


def _host_and_port(text: str) -> tuple[str, int]:
    name, _, port = text.strip().lower().removeprefix("https://").rstrip("/").partition(":")
    return name.rstrip("."), int(port or 443)


def _is_meant(host: str, name: str) -> bool:
    if name.startswith("*."):
        return host.endswith(name[1:]) and len(host) > len(name) - 1
    return host == name
