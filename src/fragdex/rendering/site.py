"""The files of a page, read by the paths that the page requests, and what it may request beyond.

A `Site` remembers nothing: who reads notes what was read, which is what the pixels depend on. What
the site does not answer is put to an `Outside`, which answers it or says why not. Ranges are asked
for as HTTP does, by a `Range` header, so that media are read piece by piece.
"""

from __future__ import annotations

import hashlib
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Final, Protocol

from fragdex.record import record

ORIGIN: Final = "http://site.localhost"
"""Where a page believes to be: a secure context, as on the machine of its author (W3C Secure
Contexts, 3.1), by a name that never leaves the machine (RFC 6761 6.3). Of https, pages could not
ask for what an operator serves by http (W3C Mixed Content)."""

INDEX: Final = "index.html"
DATA: Final = ".fragdex/data.json"
"""Where the data of a page are; names that begin with a dot belong to no page."""

# Fixed here: what a system thinks of suffixes must not decide what a page looks like.
_TYPES: Final = {
    "aac": "audio/aac",
    "apng": "image/apng",
    "avif": "image/avif",
    "bmp": "image/bmp",
    "css": "text/css; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "flac": "audio/flac",
    "gif": "image/gif",
    "htm": "text/html; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "ico": "image/x-icon",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "m4a": "audio/mp4",
    "m4v": "video/mp4",
    "mjs": "text/javascript; charset=utf-8",
    "mov": "video/quicktime",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
    "oga": "audio/ogg",
    "ogg": "audio/ogg",
    "ogv": "video/ogg",
    "opus": "audio/ogg",
    "otf": "font/otf",
    "pdf": "application/pdf",
    "png": "image/png",
    "srt": "text/plain; charset=utf-8",
    "svg": "image/svg+xml",
    "ttf": "font/ttf",
    "txt": "text/plain; charset=utf-8",
    "vtt": "text/vtt; charset=utf-8",
    "wasm": "application/wasm",
    "wav": "audio/wav",
    "webm": "video/webm",
    "webmanifest": "application/manifest+json",
    "webp": "image/webp",
    "woff": "font/woff",
    "woff2": "font/woff2",
    "xml": "application/xml",
}
_UNKNOWN: Final = "application/octet-stream"


def media_type_of(path: str) -> str:
    """The media type that a file is served with, by its suffix."""
    return _TYPES.get(PurePosixPath(path).suffix[1:].lower(), _UNKNOWN)


@record(frozen=True, slots=True)
class Asset:
    """One file of a site: its bytes, their media type and their SHA-256."""

    data: bytes
    media_type: str
    sha256: str


@record(frozen=True, slots=True)
class OpenAsset:
    """One file of a site, open and seekable, and its media type."""

    file: BinaryIO
    media_type: str


class Site(ABC):
    """The files of a page."""

    @abstractmethod
    def open(self, path: str) -> OpenAsset | None:
        """A file, None where there is none.

        Args:
            path: relative, decoded, with `/`; never leaves the site. "" is index.html, and a
                folder is its index.html.
        """

    def read(self, path: str) -> Asset | None:
        """The same file whole."""
        asset = self.open(path)
        if asset is None:
            return None
        with asset.file as file:
            data = file.read()
        return Asset(data, asset.media_type, hashlib.sha256(data).hexdigest())


class Page(Site):
    """A site of one page and nothing else."""

    def __init__(self, html: str) -> None:
        self._data = html.encode("utf-8", "replace")

    def open(self, path: str) -> OpenAsset | None:
        """As `Site.open`."""
        if path not in ("", INDEX):
            return None
        return OpenAsset(io.BytesIO(self._data), media_type_of(INDEX))


class WithData(Site):
    """A site whose page is given data: a JSON file at a place of its own.

    So it is known what was drawn with them, as with every other file.
    """

    def __init__(self, site: Site, data: Any) -> None:
        self.site = site
        self._data = encoded(data)

    def open(self, path: str) -> OpenAsset | None:
        """As `Site.open`."""
        if path != DATA:
            return self.site.open(path)
        return OpenAsset(io.BytesIO(self._data), media_type_of(DATA))


class Folder(Site):
    """The files below a folder; links that lead out of it are not there."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path).resolve()

    def open(self, path: str) -> OpenAsset | None:
        """As `Site.open`."""
        file = self._find(path)
        if file is None:
            return None
        name = path if PurePosixPath(path).suffix else file.name
        try:
            return OpenAsset(file.open("rb"), media_type_of(name))
        except OSError:
            return None

    def _find(self, path: str) -> Path | None:
        if "\0" in path or "\\" in path:
            return None
        try:
            place = (self.path / PurePosixPath(path.lstrip("/"))).resolve()
            if place.is_dir():
                place = (place / INDEX).resolve()
            if place.is_relative_to(self.path) and place.is_file():
                return place
        except (OSError, ValueError, RuntimeError):
            # a name too long, a circle of links
            return None
        return None


_LONG: Final = 2000  # bytes


def encoded(data: Any) -> bytes:
    """Data as a page reads them."""
    return json.dumps(data, allow_nan=False).encode()


def recorded(data: Mapping[str, Any] | None) -> tuple[Mapping[str, Any] | None, str | None]:
    """Data, None where they are long or there are none, and the SHA-256 of what the page reads."""
    if data is None:
        return None, None
    text = encoded(data)
    return data if len(text) <= _LONG else None, hashlib.sha256(text).hexdigest()


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


@record(frozen=True, slots=True)
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
            url: absolute; paths `/api/v1/…` of the site itself are requested with its own origin.
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
