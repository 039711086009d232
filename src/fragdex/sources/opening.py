"""From whatever a user names to a source: the one door."""

from __future__ import annotations

import io
import os
import re
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING, Any, TypedDict

from fragdex.errors import MissingExtra, SourceError
from fragdex.sources.base import Source
from fragdex.sources.files import FileSource
from fragdex.sources.given import BytesSource, FileObjectSource

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["open_source"]

_URL = re.compile(r"([a-z][a-z0-9+.-]+)://", re.ASCII | re.IGNORECASE)


class _Budget(TypedDict):
    max_bytes: int | None
    max_requests: int | None


OBJECT_STORE_SCHEMES = frozenset(
    {"s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss", "memory"}
)


def open_source(
    what: Any,
    *,
    max_bytes: int | None = None,
    max_requests: int | None = None,
    retries: int = 3,
    timeout: float = 30.0,
    headers: Mapping[str, str] | None = None,
    client: Any = None,
    store: Any = None,
) -> Source:
    """Open anything that can be read at any position.

    `what` is a path (str or PathLike, also a file:// URL), bytes or anything that lends its bytes,
    an open binary file that can seek, an http:// or https:// URL (extra `http`), an s3://, gs://,
    az:// or memory:// URL (extra `object-store`), the name of an object in `store` (an obstore
    store), or a source, which is returned as it is (with the budget, if one is given here).

    `max_bytes` and `max_requests` are the budget: BudgetExceeded is raised before the read that
    would pass it. For remote sources: `retries` is how often one read is tried again, `timeout`
    the seconds without an answer that count as a failure, `headers` are sent with every request,
    `client` is an httpx.Client to use instead of one of our own.

    Raises SourceNotFound, SourceError (directories, pipes, text files, unknown schemes), or
    MissingExtra, which says what to install. URLs are not asked before the first read.

    >>> from fragdex.byterange import ByteRange
    >>> with open_source(b"ftyp and so on") as source:
    ...     source.size, source.read_up_to(ByteRange(0, 4)), source.remote
    (14, b'ftyp', False)
    """
    budget: _Budget = {"max_bytes": max_bytes, "max_requests": max_requests}
    if isinstance(what, Source):
        what.max_bytes = what.max_bytes if max_bytes is None else max_bytes
        what.max_requests = what.max_requests if max_requests is None else max_requests
        return what
    if isinstance(what, (str, os.PathLike)):
        name = os.fsdecode(what)
        scheme = _URL.match(name) if isinstance(what, str) and "://" in name else None
        if store is not None or (scheme and scheme[1].lower() in OBJECT_STORE_SCHEMES):
            _need("obstore", "object-store", name)
            from fragdex.sources.objects import ObjectSource

            return ObjectSource(name, store=store, retries=retries, timeout=timeout, **budget)
        if scheme is None:
            return FileSource(name, **budget)
        if scheme[1].lower() in {"http", "https"}:
            _need("httpx", "http", name)
            from fragdex.sources.http import HTTPSource

            return HTTPSource(
                name, retries=retries, timeout=timeout, headers=headers, client=client, **budget
            )
        if scheme[1].lower() == "file":
            parts = urllib.parse.urlsplit(name)
            return FileSource(urllib.request.url2pathname(parts.path), **budget)
        raise SourceError(
            f"fragdex cannot read {scheme[1]}:// URLs",
            expected="file, http, https, " + ", ".join(sorted(OBJECT_STORE_SCHEMES)),
            found=scheme[1],
            advice="pass an open file instead",
        )
    if hasattr(what, "read") and not isinstance(what, memoryview):
        own = _own_descriptor(what)
        if own is not None:
            return FileSource(own[0], descriptor=own[1], **budget)
        return FileObjectSource(what, **budget)
    try:
        memoryview(what)
    except TypeError as error:
        raise SourceError(
            f"fragdex cannot read {type(what).__name__}",
            advice="pass a path, a URL, bytes, an open binary file or a source",
        ) from error
    return BytesSource(what, **budget)


def _own_descriptor(file: Any) -> tuple[str, int] | None:
    """Return path and a descriptor of our own for a plain open file, so that it can be mapped."""
    raw = getattr(file, "raw", file) if isinstance(file, io.BufferedReader) else file
    # the exact types: a decompressing file has a descriptor too, of other bytes
    if type(raw) is not io.FileIO or not isinstance(raw.name, str) or not raw.readable():
        return None
    try:
        if not file.seekable():
            return None
        return raw.name, os.dup(raw.fileno())
    except (OSError, ValueError):
        return None


def _need(module: str, extra: str, name: str) -> None:
    try:
        __import__(module)
    except ImportError as error:
        raise MissingExtra(
            f"reading {name} needs the package {module}",
            advice=f"pip install 'fragdex[{extra}]'",
        ) from error
