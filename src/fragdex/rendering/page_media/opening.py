"""A URL of the page becomes bytes that are read by ranges."""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import BinaryIO, Final
from urllib.parse import unquote, unquote_to_bytes, urlsplit

from fragdex.byterange import ByteRange
from fragdex.errors import SourceError
from fragdex.rendering.site import NOTHING, ORIGIN, Blocked, Outside, Site
from fragdex.sources import Source, open_source

OpenMedia = Callable[[str], Source]
"""URL → its bytes.

Raises FragdexError where they cannot be read, `Blocked` where they may not."""

_OWN_FILES: Final = "/api/v1/"
_CONTENT_RANGE: Final = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")
_PIECE: Final = 8 << 20


class OutsideSource(Source):
    """A file beyond the site, read by ranges."""

    def __init__(self, outside: Outside, url: str) -> None:
        super().__init__(url, size=None, remote=True)
        self._outside, self._url = outside, url
        self._whole: bytes | None = None

    def read_up_to(self, range: ByteRange) -> bytes:
        """As of every source; Blocked where it may not be requested."""
        cut = self._spend(range)
        if self._whole is not None:
            return self._whole[cut.start : cut.stop]
        parts = []
        for start in _steps(cut):
            part = self._fetch(ByteRange(start, min(start + _PIECE, cut.stop)))
            parts.append(part)
            if self._whole is not None:
                return self._whole[cut.start : cut.stop]
            if not part:
                break
        return b"".join(parts)

    def _fetch(self, part: ByteRange) -> bytes:
        if not part.size:
            return b""
        wanted = f"bytes={part.start}-{part.stop - 1}"
        answer = self._outside.fetch(self._url, {"Range": wanted})
        if answer.status == 416:
            return b""
        if answer.status == 200:
            self._whole, self.size = answer.body, len(answer.body)
            return answer.body[part.start : part.stop]
        match = _CONTENT_RANGE.fullmatch(answer.headers.get("content-range", ""))
        if answer.status != 206 or match is None or int(match[1]) != part.start:
            raise SourceError(f"{self._url} cannot be read (status {answer.status})")
        if match[3] != "*":
            self.size = int(match[3])
        self.etag = answer.headers.get("etag", self.etag)
        return answer.body[: part.size]


class PartSource(Source):
    """A part of a local file.

    Args:
        opening: opens it.
        offset, size: the part.
    """

    def __init__(self, opening: Callable[[], BinaryIO], offset: int, size: int) -> None:
        with opening() as opened:
            super().__init__(opened.name, size=size)
            self._file, self._offset = open_source(opened), offset

    def read_up_to(self, range: ByteRange) -> bytes:
        """As of every source."""
        cut = self._spend(range)
        return self._file.read_up_to(cut.shift(self._offset))

    def close(self) -> None:
        """Close the file."""
        super().close()
        self._file.close()


def _steps(whole: ByteRange) -> range:
    return range(whole.start, whole.stop, _PIECE)


class Opener:
    """Opens what a page plays: its own files, data: URLs, files handed over, what lies outside.

    Attributes:
        reads: paths of the site that were requested, each with the SHA-256 of what was there;
            None where nothing was.
        given: bytes that the page handed over, by the names that were made for them.

    Args:
        site: the page's own files.
        outside: for everything else, files of this service among it.
        kept: where else bytes stand that strips name: name → what opens their file, first byte,
            size.
    """

    def __init__(
        self,
        site: Site,
        outside: Outside = NOTHING,
        samples: Mapping[str, tuple[Callable[[], BinaryIO], int, int]] = MappingProxyType({}),
    ) -> None:
        self._site, self._outside, self._kept = site, outside, samples
        self.reads: dict[str, str | None] = {}
        self.given: dict[str, bytes] = {}

    def __call__(self, url: str) -> Source:
        """The bytes of a URL.

        Raises:
            SourceError: they are not there.
            Blocked: they may not be requested.
        """
        if url in self.given:
            return open_source(self.given[url])
        if url in self._kept:
            return PartSource(*self._kept[url])
        scheme = url.partition(":")[0].lower()
        if scheme == "data":
            return open_source(data_of(url))
        if scheme not in ("http", "https"):
            raise Blocked(f"media are not read from {scheme}:")
        parts = urlsplit(url)
        if f"{parts.scheme}://{parts.netloc}" == ORIGIN and not parts.path.startswith(_OWN_FILES):
            return self._own(unquote(parts.path.lstrip("/")))
        return OutsideSource(self._outside, url)

    def _own(self, path: str) -> Source:
        asset = self._site.open(path)
        if asset is None:
            self.reads[path] = None
            raise SourceError("the site has no such file", found=path)
        with asset.file as file:
            whole = hashlib.sha256()
            if path not in self.reads:
                for piece in iter(lambda: file.read(_PIECE), b""):
                    whole.update(piece)
                self.reads[path] = whole.hexdigest()
                file.seek(0)
            # A file of a disk is read where it is; another one is in memory already.
            return open_source(file if isinstance(file, io.BufferedReader) else file.read())


def data_of(url: str) -> bytes:
    """The bytes of a data: URL (RFC 2397)."""
    head, comma, body = url.partition(",")
    if not comma:
        raise SourceError("a data: URL without a comma")
    if not head.lower().rstrip().endswith(";base64"):
        return unquote_to_bytes(body)
    plain = re.sub(rb"[\s=]", b"", unquote_to_bytes(body))
    try:
        return base64.b64decode(plain + b"=" * (-len(plain) % 4), validate=True)
    except binascii.Error as error:
        raise SourceError("a data: URL whose base64 cannot be read") from error
