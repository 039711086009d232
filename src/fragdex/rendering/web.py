"""A page at a URL, and what stands beside it."""

from __future__ import annotations

import http.client
import io
from collections.abc import Mapping
from functools import lru_cache
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urljoin, urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from fragdex.rendering.outside import Answer, Blocked
from fragdex.rendering.site import DATA, ORIGIN, OpenAsset, Site, media_type_of

MAX_BYTES: Final = 256 << 20
SECONDS: Final = 30
_PASSED_ON: Final = ("range", "accept", "if-none-match")


class Web(Site):
    """A page at a URL and what stands at the same origin; both a `Site` and an `Outside`.

    Paths are looked for beside the page, then from the root of its origin. Nothing beyond the
    origin is asked for, redirects included.

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
        found = self._found(path)
        return None if found is None else OpenAsset(io.BytesIO(found[0]), found[1])

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
        told = answer.headers.get("content-type", "")
        by_name = media_type_of(unquote(urlsplit(url).path))
        return answer.body, told or by_name

    def _get(self, url: str, headers: Mapping[str, str]) -> Answer:
        passed = {name: text for name, text in headers.items() if name.lower() in _PASSED_ON}
        if self._key:
            passed["Authorization"] = f"Bearer {self._key}"
        try:
            with self._opener.open(Request(url, headers=passed), timeout=SECONDS) as response:
                body = response.read(MAX_BYTES + 1)
                status, told = response.status, response.headers
        except HTTPError as error:
            with error:
                return Answer(error.code)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Blocked(f"it could not be read: {error}") from None
        if len(body) > MAX_BYTES:
            raise Blocked(f"it has more than {MAX_BYTES} bytes")
        return Answer(status, {name.lower(): text for name, text in told.items()}, body)


class _SameOrigin(HTTPRedirectHandler):
    def __init__(self, origin: str) -> None:
        self._origin = origin

    def redirect_request(self, request, file, code, message, headers, url):  # type: ignore[no-untyped-def]
        """Follow a redirect that stays; refuse one that leads elsewhere."""
        if not url.startswith(self._origin + "/"):
            raise URLError(f"it redirects to {url}")
        return super().redirect_request(request, file, code, message, headers, url)
