"""Pages and hosts on the web: where a page stands that somebody names, and whom it may ask.

`Web` is a page at a URL and the files next to it; `AllowedHosts` are the https hosts that an
operator lets pages read from, as they were looked at.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urljoin, urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from fragdex.errors import InvalidRequest
from fragdex.outgoing import (
    Address,
    AddressRefused,
    PinnedHTTPS,
    Resolve,
    checked_address,
    cut_after,
    is_public,
)
from fragdex.rendering.site import (
    DATA,
    NOTHING,
    ORIGIN,
    Answer,
    Blocked,
    Folder,
    OpenAsset,
    Outside,
    Site,
    media_type_of,
)

MAX_REDIRECTS: Final = 5
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_PIECE: Final = 64 << 10

# Of what a page's request says, what its answer may depend on. No cookies, no credentials.
_ASKED_OF_HOSTS: Final = ("accept", "accept-language", "if-none-match", "range", "user-agent")
# Of an answer, what the browser may see.
_PASSED_BACK: Final = (
    "accept-ranges", "access-control-allow-origin", "cache-control", "content-range",
    "content-type", "etag", "last-modified", "timing-allow-origin",
)  # fmt: skip


class AllowedHosts:
    """The https hosts that an operator names, and nothing else.

    The address is looked at after it is resolved, all of them, and the connection is made to the
    one that was looked at: a name that points elsewhere a moment later changes nothing. Redirects
    are requested like requests of the page. Nothing of the caller's environment (proxies, netrc)
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
            name: value for name, value in headers.items() if name.lower() in _ASKED_OF_HOSTS
        } | {"Accept-Encoding": "identity"}
        for _ in range(MAX_REDIRECTS + 1):
            answer, location = self._once(url, passed_on, deadline)
            if location is None:
                return answer
            url = urljoin(url, location)
        raise Blocked(f"more than {MAX_REDIRECTS} redirects")

    def check(self, url: str) -> None:
        """Raise Blocked where a URL may not be requested; nobody is asked."""
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
        """Host, port and request target of a URL that may be requested."""
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
        fields = {name: value for name, value in wanted.items() if value is not None}
        return Answer(response.status, fields, bytes(body)), None


def _host_and_port(text: str) -> tuple[str, int]:
    name, _, port = text.strip().lower().removeprefix("https://").rstrip("/").partition(":")
    return name.rstrip("."), int(port or 443)


def _is_meant(host: str, name: str) -> bool:
    if name.startswith("*."):
        return host.endswith(name[1:]) and len(host) > len(name) - 1
    return host == name


MAX_BYTES: Final = 256 << 20
SECONDS: Final = 30
_PASSED_ON: Final = ("range", "accept", "if-none-match")


class Web(Site):
    """A page at a URL and what stands at the same origin; both a `Site` and an `Outside`.

    Paths are looked for next to the page, then from the root of its origin. Nothing beyond the
    origin is requested, redirects included.

    Args:
        url: of the page.
        key: bearer token for its origin.
    """

    def __init__(self, url: str, key: str | None = None) -> None:
        parts = urlsplit(url)
        self.url = url
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self._key = key
        self._opener: OpenerDirector = build_opener(_SameOrigin(self.origin))
        self._found = lru_cache(maxsize=64)(self._find)

    def open(self, path: str) -> OpenAsset | None:
        """As `Site.open`."""
        if path == DATA:
            return None  # nothing of the origin's
        answer = self._found(path)
        return None if answer is None else OpenAsset(io.BytesIO(answer[0]), answer[1])

    def _find(self, path: str) -> tuple[bytes, str] | None:
        if not path:
            return self._asset(self.url)
        name = quote(path, safe="/")
        return self._asset(urljoin(self.url, f"./{name}")) or self._asset(f"{self.origin}/{name}")

    def fetch(self, url: str, headers: Mapping[str, str]) -> Answer:
        """As `Outside.fetch`; paths of the site itself are those of the origin."""
        for own in (ORIGIN, self.origin):
            if url == own or url.startswith(own + "/"):
                return self._get(self.origin + url[len(own) :], headers)
        raise Blocked("it is not at the origin of the page")

    def _asset(self, url: str) -> tuple[bytes, str] | None:
        try:
            answer = self._get(url, {})
        except Blocked:
            return None
        if answer.status != http.HTTPStatus.OK:
            return None
        media_type = answer.headers.get("content-type", "")
        by_name = media_type_of(unquote(urlsplit(url).path))
        return answer.body, media_type or by_name

    def _get(self, url: str, headers: Mapping[str, str]) -> Answer:
        passed = {name: text for name, text in headers.items() if name.lower() in _PASSED_ON}
        if self._key:
            passed["Authorization"] = f"Bearer {self._key}"
        try:
            with self._opener.open(Request(url, headers=passed), timeout=SECONDS) as response:
                body = response.read(MAX_BYTES + 1)
                status, answer_headers = response.status, response.headers
        except HTTPError as error:
            with error:
                return Answer(error.code)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Blocked(f"it could not be read: {error}") from None
        if len(body) > MAX_BYTES:
            raise Blocked(f"it has more than {MAX_BYTES} bytes")
        return Answer(status, {name.lower(): text for name, text in answer_headers.items()}, body)


class _SameOrigin(HTTPRedirectHandler):
    def __init__(self, origin: str) -> None:
        self._origin = origin

    def redirect_request(self, request, file, code, message, headers, url):  # type: ignore[no-untyped-def]
        """Follow a redirect that stays; refuse one that leads elsewhere."""
        if not url.startswith(self._origin + "/"):
            raise URLError(f"it redirects to {url}")
        return super().redirect_request(request, file, code, message, headers, url)


class Beside(Folder):
    """The folder that a page stands in, the page in the place of its index.html.

    Names that begin with a dot are not there: the folder may be somebody's home.
    """

    def __init__(self, folder: Path | str, index: str) -> None:
        super().__init__(folder)
        self.index = index

    def open(self, path: str) -> OpenAsset | None:
        """As `Site.open`."""
        path = path or self.index
        hidden = any(part.startswith(".") for part in PurePosixPath(path).parts)
        return None if hidden else super().open(path)


def site_at(place: str, key: str | None = None) -> tuple[Site, Outside]:
    """The site that somebody names, and what its page may ask for beyond it.

    Args:
        place: an HTML file, a folder with an index.html, an http(s) URL.
        key: for the origin of a URL.

    Raises:
        InvalidRequest: there is no page at that place.
    """
    if place.startswith(("http://", "https://")):
        web = Web(place, key)
        if web.read("") is None:
            raise InvalidRequest(
                "there is no page at that URL", found=place,
                expected="an answer 200 with HTML",
                advice="if the service needs a key: --key or FRAGDEX_KEY",
            )  # fmt: skip
        return web, web
    path = Path(place)
    site: Folder = Folder(path) if path.is_dir() else Beside(path.parent, path.name)
    asset = site.read("")
    if asset is None:
        raise InvalidRequest(
            "there is no page to render", expected="an HTML file, or a folder with an index.html",
            found=place,
        )  # fmt: skip
    return site, NOTHING
