"""Requests of the page: its own files, its data, what lies outside, and what it may not have.

Chromium has no network; every request stops here and is answered.

A page declares what data it takes by a JSON Schema in a script of the type
`application/schema+json`. Nothing is drawn before the data agree with it.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from fragdex.errors import PageFailed
from fragdex.rendering.browser.animated import (
    ANIMATED,
    is_raster_animated,
    note_picture,
    note_sheet,
    picture_of,
    pictures_in,
)
from fragdex.rendering.browser.model import ENDPOINT, Limits, Notes
from fragdex.rendering.browser.pipe import Pipe
from fragdex.rendering.site import ORIGIN, READABLE, Asset, Blocked, Outside, Site

if TYPE_CHECKING:
    from fragdex.rendering.page_media.player import Player

_TYPE: Final = "application/schema+json"
_WORDS: Final = 300

# The page may set `fragdex` to an object of its own; the data stay in it.
_NONE: Final = "globalThis.fragdex = {};"
_GIVE: Final = """(() => {
  const data = JSON.parse(%s);
  let own = { data };
  // where pages look that render themselves
  globalThis.EF_RENDER_DATA = data;
  Object.defineProperty(globalThis, "fragdex", {
    configurable: true, enumerable: true,
    get: () => own,
    set: (value) => {
      own = value;
      if (value !== null && typeof value === "object" && !("data" in value)) {
        try { value.data = data; } catch {}
      }
    },
  });
})();"""


def data_script(data: bytes | None) -> str:
    """The script that gives a page `fragdex`, and its data as `fragdex.data` and `EF_RENDER_DATA`.

    Args:
        data: JSON; None: it was given none.
    """
    if data is None:
        return _NONE
    return _GIVE % json.dumps(data.decode())


def check_data(page: bytes, data: bytes) -> None:
    """Compare data with the schema that a page declares, if it declares one.

    Args:
        page: its HTML; data: JSON.

    Raises:
        PageFailed: they do not agree, or the schema is invalid.
    """
    reader = _Schema()
    reader.feed(page.decode("utf-8", "replace"))
    if reader.text is None:
        return
    import jsonschema
    from jsonschema.validators import validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    try:
        schema = json.loads(reader.text)
        kind = validator_for(schema, default=jsonschema.Draft202012Validator)
        kind.check_schema(schema)
        # an empty registry: what a schema refers to elsewhere is not fetched
        wrong = jsonschema.exceptions.best_match(
            kind(schema, registry=Registry()).iter_errors(json.loads(data))
        )
    except (ValueError, RecursionError, jsonschema.SchemaError, Unresolvable) as error:
        why = str(error).partition("\n")[0][:_WORDS]
        raise PageFailed(f"the page's schema cannot be used: {why}") from None
    if wrong is not None:
        where = "".join(f"/{part}" for part in wrong.absolute_path) or "/"
        raise PageFailed(
            f"the data do not agree with the page's schema: {where}: {wrong.message[:_WORDS]}",
            pointer=f"/data{where if where != '/' else ''}",
        )


class _Schema(HTMLParser):
    """Finds the first schema in a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.text: str | None = None
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A script of its type begins."""
        self._inside = tag == "script" and self.text is None and ("type", _TYPE) in attrs
        if self._inside:
            self.text = ""

    def handle_endtag(self, tag: str) -> None:
        """The script ends."""
        self._inside = False

    def handle_data(self, data: str) -> None:
        """Its text."""
        if self._inside and self.text is not None:
            self.text += data


ISOLATED: Final = """Object.defineProperty(globalThis, "crossOriginIsolated", {
  value: true, configurable: true, enumerable: true,
});"""
"""The script of pages and workers that may share memory."""


def shares_memory(page: bytes) -> bool:
    """Whether a page requests what only pages have that are cross-origin isolated."""
    reader = _Isolated()
    reader.feed(page.decode("utf-8", "replace"))
    return reader.is_so


class _Isolated(HTMLParser):
    """Finds whether a page requests shared memory."""

    is_so = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A meta element."""
        self.is_so |= tag == "meta" and ("name", "fragdex:cross-origin-isolated") in attrs


API: Final = "/api/v1/"
_MD5: Final = f"{ORIGIN}{API}files/md5?src="
_OWN: Final = urlsplit(ORIGIN).netloc
_FREE: Final = ("data:", "blob:", "about:")
_ICON: Final = "/favicon.ico"
_ERROR: Final = 400
_METHODS: Final = ("GET", "HEAD")
# Of an answer from outside, what describes bytes that are not sent that way here.
_DROPPED: Final = ("content-length", "content-encoding", "transfer-encoding", "connection")


class RequestInterceptor:
    """Answers the requests of a page and of its workers.

    Args:
        pipe: to the browser.
        site: the page's own files.
        outside: everything else over http and https.
    """

    def __init__(
        self, pipe: Pipe, site: Site, outside: Outside, notes: Notes, limits: Limits
    ) -> None:
        self._pipe, self._site, self._outside = pipe, site, outside
        self._notes, self._limits = notes, limits
        self.reads: dict[str, str | None] = {}
        self.main_frame: str | None = None
        self.media: Player | None = None
        self._documents = 0
        pipe.on("Fetch.requestPaused", self._paused)
        pipe.on("Network.requestWillBeSent", self._on_request)

    def watch(self, session: str) -> None:
        """Stop every request of a page or worker at this door."""
        self._pipe.post("Fetch.enable", session, patterns=[{"urlPattern": "*"}])

    def _paused(self, params: dict[str, Any], session: str | None) -> None:
        request = params["request"]
        url, method = request["url"], request["method"]
        number = params["requestId"]
        if url.startswith(_FREE):
            self._pipe.post("Fetch.continueRequest", session, requestId=number)
            return
        if self.media is not None and url.startswith(ENDPOINT):
            self._of_media(self.media, params, session)
            return
        if self.media is not None and params.get("resourceType") == "Media":
            # its element is played by us
            self._fail(session, number)
            return
        if params.get("resourceType") == "Document" and params.get("frameId") == self.main_frame:
            self._documents += 1
            if self._documents > 1:
                # No content: the page stays where it is, without an error page in its stead.
                self._notes.say("refused", f"navigation to {url}")
                self._fulfil(session, number, 204, {}, b"")
                return
        is_script = _is_script(url, params.get("resourceType"))
        try:
            status, headers, body = self._answer(url, method, request.get("headers", {}))
            if is_script and status >= _ERROR:
                self._notes.say("incomplete", f"a script is not there: {url} (status {status})")
        except Blocked as blocked:
            self._notes.block(url, blocked.reason)
            if is_script:
                self._notes.say("incomplete", f"a script was blocked: {url}: {blocked.reason}")
            self._fail(session, number)
            return
        self._look(body, url, params.get("resourceType"))
        self._fulfil(session, number, status, headers, b"" if method == "HEAD" else body)

    def _look(self, body: bytes, url: str, kind: str | None) -> None:
        if kind == "Image":
            note_picture(self._notes, body, url, url)
        elif any(map(is_raster_animated, (body, *pictures_in(body)))):
            # a script may show it later
            self._notes.say("keeps", ANIMATED)
        if (kind == "Stylesheet" and urlsplit(url).netloc != _OWN) or b"shadowrootmode" in body:
            note_sheet(self._notes, body)

    def _on_request(self, params: dict[str, Any], _: str | None) -> None:
        """Look at pictures for which nobody is asked: of data: URLs, wherever they were written."""
        url = params["request"]["url"]
        if params.get("type") == "Image" and url.startswith("data:"):
            where = params.get("initiator", {}).get("url") or params.get("documentURL", "")
            note_picture(self._notes, picture_of(url), url, where)

    def _answer(
        self, url: str, method: str, headers: Mapping[str, str]
    ) -> tuple[int, Mapping[str, str], bytes]:
        try:
            parts = urlsplit(url)
        except ValueError:
            raise Blocked("the URL cannot be read") from None
        if parts.scheme not in ("http", "https"):
            raise Blocked(f"{parts.scheme}: is not served to pages")
        if method == "OPTIONS":
            return 204, _allowed(headers), b""
        if method not in _METHODS:
            raise Blocked(f"{method}: pages may only read")
        if parts.netloc == _OWN and not parts.path.startswith(API):
            if parts.path == _ICON and self._site.read(_ICON[1:]) is None:
                # requested by the browser, not by the page
                return 204, {}, b""
            return self._file(unquote(parts.path).lstrip("/"))
        if url.startswith(_MD5):
            return self._md5(unquote(url.removeprefix(_MD5)).lstrip("/"))
        began = time.monotonic()
        try:
            answer = self._outside.fetch(url.partition("#")[0], headers)
        finally:
            self._pipe.excuse(time.monotonic() - began)
        fields = {name: text for name, text in answer.headers.items() if name not in _DROPPED}
        return answer.status, fields, answer.body

    def _file(self, path: str) -> tuple[int, Mapping[str, str], bytes]:
        asset = self.read(path)
        if asset is None:
            return 404, {"content-type": "text/plain"}, b"no such file in this site"
        if len(asset.data) > self._limits.asset_bytes:
            raise Blocked(f"larger than {self._limits.asset_bytes} bytes")
        return 200, {"content-type": asset.media_type}, asset.data

    def _md5(self, path: str) -> tuple[int, Mapping[str, str], bytes]:
        """By what a file of the site may be found among those of the service."""
        asset = self.read(path)
        if asset is None:
            return 404, {"content-type": "text/plain"}, b"no such file in this site"
        md5 = uuid.UUID(bytes=hashlib.md5(asset.data, usedforsecurity=False).digest())
        return 200, {"content-type": "application/json"}, json.dumps({"md5": str(md5)}).encode()

    def read(self, path: str) -> Asset | None:
        """A file of the site, noted among those that were read."""
        asset = self._site.read(path)
        self.reads[path] = None if asset is None else asset.sha256
        return asset

    def _of_media(self, media: Player, params: dict[str, Any], session: str | None) -> None:
        request = params["request"]
        body = request.get("postData", "").encode("utf-8", "surrogatepass")
        began = time.monotonic()
        answer = media.answer(request["url"], body)
        self._pipe.excuse(time.monotonic() - began)
        headers = {"content-type": answer.media_type, **answer.headers}
        self._fulfil(session, params["requestId"], answer.status, headers, answer.body)

    def _fail(self, session: str | None, number: str) -> None:
        self._pipe.post(
            "Fetch.failRequest", session, requestId=number, errorReason="BlockedByClient"
        )

    def _fulfil(
        self, session: str | None, number: str, status: int, headers: Mapping[str, str], body: bytes
    ) -> None:
        self._pipe.post(
            "Fetch.fulfillRequest",
            session,
            requestId=number,
            responseCode=status,
            responseHeaders=[{"name": name, "value": value} for name, value in headers.items()],
            body=body,
        )


def _allowed(headers: Mapping[str, str]) -> dict[str, str]:
    """The answer to the question whether a request with such headers may be made."""
    fields = {name.lower(): text for name, text in headers.items()}
    wanted = fields.get("access-control-request-headers", "")
    return {
        **READABLE,
        "access-control-allow-methods": ", ".join(_METHODS),
        "access-control-allow-headers": wanted,
    }


def _is_script(url: str, kind: str | None) -> bool:
    """Of a worker's own script the browser says only that it is something else."""
    return kind == "Script" or (kind == "Other" and url.partition("?")[0].endswith((".js", ".mjs")))
