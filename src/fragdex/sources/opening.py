"""From whatever a user names to a source: the one door."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import index
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeAlias, TypedDict, Unpack

from fragdex.byterange import ByteRange
from fragdex.errors import MissingExtra, SourceError, refuse_unknown
from fragdex.sources.base import CONNECTIONS, Source
from fragdex.sources.files import BytesSource, FileObjectSource, FileSource
from fragdex.sources.names_in_files import URL, ForeignName

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import httpx
    from fsspec import AbstractFileSystem
    from obstore.store import ObjectStore

    from fragdex.digest import Digest


class AsSource(Protocol):
    """What can be read like a source: a view."""

    def as_source(self) -> Source:
        """The source of its bytes."""


SourceLike: TypeAlias = (
    str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes] | Source | AsSource
)
"""What can be opened: a path, a URL, bytes, a seekable binary file, a view, or a source."""

SourcesLike: TypeAlias = SourceLike | Sequence[SourceLike | None]
"""The media of one file, or of several in their order; None: where its index says."""


class SourceOptions(TypedDict, total=False):
    """How a remote source is read; each has its default in `open_source`.

    Attributes:
        retries: how often one read is tried again.
        timeout: seconds without an answer that count as a failure.
        connections: how many requests may be under way at once.
        headers: sent with every HTTP request.
        client: an httpx.Client to use instead of an own one.
        store: an obstore store in which names are looked up.
        filesystem: an fsspec file system in which names are looked up.
    """

    retries: int
    timeout: float
    connections: int
    headers: Mapping[str, str] | None
    client: httpx.Client | None
    store: ObjectStore | None
    filesystem: AbstractFileSystem | None


class _Budget(TypedDict):
    max_bytes: int | None
    max_requests: int | None


OBJECT_STORE_SCHEMES = frozenset(
    {"s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss", "memory"}
)


def open_source(
    what: SourceLike,
    *,
    max_bytes: int | None = None,
    max_requests: int | None = None,
    retries: int = 3,
    timeout: float = 30.0,
    connections: int = CONNECTIONS,
    headers: Mapping[str, str] | None = None,
    client: httpx.Client | None = None,
    store: ObjectStore | None = None,
    filesystem: AbstractFileSystem | None = None,
) -> Source:
    """Open anything that can be read at any position.

    Args:
        what: a path (str or PathLike, also a file:// URL), bytes or anything that lends its bytes,
            an open binary file that can seek, an http://, https://, s3://, gs://, az:// or
            memory:// URL (extra `remote`), the name of an object in `store` or of a file in
            `filesystem`, a view, or a source, which is returned as it is (with the budget, if one
            is given here). A ForeignName is refused.
        max_bytes, max_requests: budget; a read that would exceed it raises BudgetExceeded.
        retries: how often a read of a remote source is retried.
        timeout: seconds without an answer that count as a failure.
        connections: how many requests may run at once (1: one after the other).
        headers: sent with every HTTP request.
        client: an httpx.Client to use instead of an own one.
        store: an obstore store.
        filesystem: an fsspec file system.

    Raises:
        SourceNotFound: there is no such file. URLs are not requested before the first read.
        SourceError: a directory, a pipe, a text file, an unknown scheme, or nothing of all this.
        MissingExtra: a package is missing; it says which to install.
        TypeError, ValueError: a budget is not an integer, or is below 0.

    >>> from fragdex.byterange import ByteRange
    >>> with open_source(b"ftyp and so on") as source:
    ...     source.size, source.read_up_to(ByteRange(0, 4)), source.remote
    (14, b'ftyp', False)
    """
    _check_budget("max_bytes", max_bytes)
    _check_budget("max_requests", max_requests)
    budget: _Budget = {"max_bytes": max_bytes, "max_requests": max_requests}
    if hasattr(what, "as_source"):
        what = what.as_source()
    if isinstance(what, Source):
        what.max_bytes = what.max_bytes if max_bytes is None else max_bytes
        what.max_requests = what.max_requests if max_requests is None else max_requests
        return what
    if isinstance(what, ForeignName):
        raise SourceError(
            f"the index names {what}, which lies outside its folder or origin",
            expected="a name below the folder of the index, or at its origin",
            advice="give the media itself; if the index is to be trusted, open_index(…,"
            " follow=True), or --follow",
        )
    if isinstance(what, (str, os.PathLike)):
        name = os.fsdecode(what)
        scheme = URL.match(name) if isinstance(what, str) and "://" in name else None
        if filesystem is not None:
            from fragdex.sources.objects import FilesystemSource

            return FilesystemSource(name, filesystem, connections=connections, **budget)
        if store is not None or (scheme and scheme[1].lower() in OBJECT_STORE_SCHEMES):
            _need("obstore", name)
            from fragdex.sources.objects import ObjectSource

            return ObjectSource(
                name,
                store=store,
                retries=retries,
                timeout=timeout,
                connections=connections,
                **budget,
            )
        if scheme is None:
            return FileSource(name, **budget)
        if scheme[1].lower() in {"http", "https"}:
            _need("httpx", name)
            from fragdex.sources.http import HTTPSource

            return HTTPSource(
                name,
                retries=retries,
                timeout=timeout,
                headers=headers,
                client=client,
                connections=connections,
                **budget,
            )
        if scheme[1].lower() == "file":
            # Slow to import, and wanted for these URLs alone.
            from urllib.parse import urlsplit
            from urllib.request import url2pathname

            return FileSource(url2pathname(urlsplit(name).path), **budget)
        raise SourceError(
            f"fragdex cannot read {scheme[1]}:// URLs",
            expected="file, http, https, " + ", ".join(sorted(OBJECT_STORE_SCHEMES)),
            found=scheme[1],
            advice="pass an open file instead",
        )
    other: Any = what  # more can be read than types can say: whatever reads, or lends its bytes
    if hasattr(other, "read") and not isinstance(other, memoryview):
        own = _own_descriptor(other)
        if own is not None:
            return FileSource(own[0], descriptor=own[1], **budget)
        return FileObjectSource(other, **budget)
    try:
        memoryview(other)
    except TypeError as error:
        raise SourceError(
            f"fragdex cannot read {type(what).__name__}",
            advice="pass a path, a URL, bytes, an open binary file or a source",
        ) from error
    return BytesSource(other, **budget)


def _check_budget(name: str, limit: Any) -> None:
    if limit is None:
        return
    try:
        number = index(limit)
    except TypeError:
        raise TypeError(f"{name} is a whole number or None, not {limit!r}") from None
    if number < 0:
        raise ValueError(f"{name} is 0 or more, not {limit!r}")


def check_options(what: str, options: Mapping[str, object], known: Collection[str]) -> None:
    """Refuse options that are neither known nor those of `open_source`.

    Raises:
        TypeError: one is not; the nearest name is suggested.
    """
    if options:
        names = SourceOptions.__annotations__.keys()
        refuse_unknown(what, options, {*known, *names, "max_bytes", "max_requests"})


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


def _need(module: str, name: str) -> None:
    try:
        __import__(module)
    except ImportError as error:
        raise MissingExtra(f"reading {name} needs the package {module}", extra="remote") from error


def md5(
    what: SourceLike,
    ranges: Iterable[ByteRange] | None = None,
    *,
    progress: Callable[[int, int | None], object] | None = None,
    max_bytes: int | None = None,
    max_requests: int | None = None,
    **options: Unpack[SourceOptions],
) -> Digest:
    """The md5 of whatever `open_source` opens, whole or of parts of it.

    Args:
        what: in any form that `open_source` takes; a source that was open already stays open.
        ranges: what to hash, one after the other; None: everything.
        progress: called after each piece with the bytes done and the bytes in all (None where a
            server does not tell).
        max_bytes, max_requests: budget of the reads; a read that would exceed it raises
            BudgetExceeded.
        options: passed on to `open_source`: retries, timeout, connections, headers, client,
            store.

    Raises:
        TruncatedInput: a range reaches past the end.
        TypeError: there is no such option.
        And what opening and reading raise.

    >>> print(md5(b"abc"))
    900150983cd24fb0d6963f7d28e17f72
    """
    check_options("fragdex.sources.md5", options, ("ranges", "progress"))
    from fragdex import digest

    source = open_source(what, max_bytes=max_bytes, max_requests=max_requests, **options)
    try:
        return digest.md5(source, ranges, progress)
    finally:
        if source is not what:
            source.close()


@contextmanager
def md5_beside(source: Source) -> Iterator[Callable[[], Digest]]:
    """Hash a source on another thread while it is read for something else.

    Gives a function that waits for the digest. A source that only one can read is hashed when that
    is called; on leaving, hashing that nobody waited for is given up.
    """
    twin = source.twin()
    if twin is None:
        yield lambda: md5(source)
        return
    from concurrent.futures import ThreadPoolExecutor
    from threading import Event

    from fragdex import digest

    left = Event()

    def go_on(done: int, total: int | None) -> None:
        if left.is_set():
            raise InterruptedError("nobody waits for the digest any more")

    with twin, ThreadPoolExecutor(1) as pool:
        hashing = pool.submit(digest.md5, twin, None, go_on)
        try:
            yield hashing.result
        finally:
            left.set()
