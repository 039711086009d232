"""Sources in object stores, through obstore, and in the file systems of fsspec, by name.

The stores are S3, GCS, Azure, memory, and any that is given. Names of what is in a
store, or in a folder, are listed in their order.
"""

from __future__ import annotations

import heapq
import os
import threading
import urllib.parse
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, cast

from fragdex.byterange import ByteRange
from fragdex.errors import SourceChanged, SourceError, SourceNotFound, SourceUnavailable
from fragdex.record import record
from fragdex.sources.base import CONNECTIONS, ReadBatch, Source, changed_since

if TYPE_CHECKING:
    import obstore
    from fsspec import AbstractFileSystem
    from obstore.store import ClientConfig, ObjectStore


STORE_TIMEOUT_S = 30.0
"""The time-out that stores have by themselves; only another one must be set."""


class ObjectSource(Source):
    """An object in a store, read by ranges; made by `open_source`.

    `name` is a URL, whose last path segment names the object in a store made for the rest, or,
    with `store` (an obstore store), the object's path there. URLs are percent-decoded. Credentials
    come from the environment, as the store's own tools read them. Retries are the store's own,
    bounded by `retries`; a given store keeps its settings.

    Nothing is asked before the first read. Every later read is held to the first one's ETag and
    length: SourceChanged. SourceNotFound, SourceUnavailable and SourceError as for HTTP.
    """

    def __init__(
        self,
        name: str,
        *,
        store: ObjectStore | None = None,
        retries: int = 3,
        timeout: float = 30.0,
        connections: int = CONNECTIONS,
        max_bytes: int | None = None,
        max_requests: int | None = None,
    ) -> None:
        import obstore

        self._obstore = obstore
        scheme, separator, rest = name.partition("://")
        if store is None:
            base, _, last = rest.partition("?")[0].rpartition("/")
            if not last or not (base or scheme.lower() == "memory"):
                raise SourceError(
                    f"{name} names no object",
                    expected=f"{scheme}://bucket/object",
                    found=repr(rest),
                )
            store = store_for(f"{scheme}://{base}/", retries, timeout)
            self._key = urllib.parse.unquote(last)
        else:
            self._key = urllib.parse.unquote(rest.partition("/")[2]) if separator else name
        self._store = store
        super().__init__(
            name.partition("?")[0],
            size=None,
            remote=True,
            max_bytes=max_bytes,
            max_requests=max_requests,
        )
        # what the threads of `read_many` share
        self.connections = connections
        self._batch = ReadBatch(connections)
        self._lock = threading.RLock()

    def read_many(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Return the bytes of several ranges, several at once."""
        if len(ranges) < 2 or self.connections < 2 or self.size is None:
            return super().read_many(ranges)
        self._all_within_budget(ranges)
        return self._batch.run(ranges, self.read_up_to)

    def read_up_to(self, range: ByteRange) -> bytes:
        """Return the bytes of `range`, or as many as the object has; learns `size` and `etag`."""
        stop = range.stop if self.size is None else min(range.stop, self.size)
        if range.start >= stop:
            self._within_budget(0, 0)
            return b""
        with self._lock:
            self._within_budget(stop - range.start, 1)
            self.requests += 1
            self._under_way += stop - range.start
        data = b""
        try:
            data = self._get(range, stop)
        finally:
            with self._lock:
                self._under_way -= stop - range.start
                self.bytes_read += len(data)
        end = stop if self.size is None else min(stop, self.size)
        if len(data) < end - range.start and range.start < end:
            raise SourceUnavailable(
                f"{self.name} sent fewer bytes than it has",
                offset=range.start,
                expected=f"{end - range.start} bytes",
                found=len(data),
            )
        return data

    def _get(self, range: ByteRange, stop: int) -> bytes:
        exceptions = self._obstore.exceptions
        options: dict[str, Any] = {"range": (range.start, stop)}
        if self.etag is not None and not self.etag.startswith("W/"):
            options["if_match"] = self.etag
        try:
            answer = self._obstore.get(
                self._store, self._key, options=cast("obstore.GetOptions", options)
            )
            with self._lock:
                self._hold_to(answer.meta)
            data = bytes(answer.bytes())
        except exceptions.BaseError as error:
            if self.size is None and isinstance(error, exceptions.GenericError):
                # a range past the end looks like any failure; the length tells them apart
                self._ask_size()
                if self.size is not None and range.start >= self.size:
                    return b""
            raise self._failure(error, range.start) from error
        except OSError as error:
            raise self._failure(error, range.start) from error
        return data

    def refresh(self) -> int | None:
        """Ask for the present length and ETag; SourceChanged if the object is shorter than it was.

        That an object with a new ETag has only grown is the caller's knowledge.
        """
        before = self.size
        self.size = self.etag = None
        try:
            self._ask_size()
        finally:
            if self.size is None:
                self.size = before
        if before is not None and self.size is not None and self.size < before:
            raise changed_since(self.name, f"{before} bytes or more", f"{self.size}")
        return self.size

    def expect(self, size: int | None, etag: str | None) -> None:
        """Hold the first read to what is known already."""
        super().expect(size, etag)
        if size is not None:
            self.size, self.etag = size, etag

    def _ask_size(self) -> None:
        self._within_budget(0, 1)
        self.requests += 1
        try:
            self._hold_to(self._obstore.head(self._store, self._key))
        except (self._obstore.exceptions.BaseError, OSError) as error:
            raise self._failure(error, None) from error

    def _hold_to(self, meta: obstore.ObjectMeta) -> None:
        size, etag = meta["size"], meta["e_tag"]
        if self.size is None:
            self.size, self.etag = size, etag
        elif self.size != size:
            raise changed_since(self.name, f"{self.size} bytes", f"{size}")
        elif self.etag is not None and etag is not None and self.etag != etag:
            raise changed_since(self.name, f"ETag {self.etag}", etag)

    def _failure(self, error: Exception, offset: int | None) -> SourceError:
        if isinstance(error, self._obstore.exceptions.PreconditionError):
            return changed_since(self.name, f"ETag {self.etag}", "another one")
        return failure_of(error, self.name, offset)


def failure_of(error: Exception, name: str, offset: int | None = None) -> SourceError:
    """What an error of a store means, as one of ours."""
    from obstore import exceptions

    why = _first_line(error)
    if isinstance(error, SourceError):
        return error
    if isinstance(error, (FileNotFoundError, exceptions.NotFoundError)):
        return SourceNotFound(f"there is no object {name}", filename=name)
    if isinstance(error, (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError)):
        return SourceError(f"{name} may not be read: {why}", advice="check the credentials")
    return SourceUnavailable(f"{name} could not be read: {why}", offset=offset)


def store_for(url: str, retries: int, timeout: float) -> ObjectStore:
    """The store that a URL is in.

    Raises:
        SourceError: there is none.
    """
    from obstore.exceptions import BaseError
    from obstore.store import MemoryStore, from_url

    if url.lower().startswith("memory:"):
        return MemoryStore()  # empty: what was put into another one is reached through store=
    client: ClientConfig | None = None
    if timeout != STORE_TIMEOUT_S:
        # given at all, these options replace what the environment says of the client
        names = ("AWS_ALLOW_HTTP", "GOOGLE_ALLOW_HTTP", "AZURE_ALLOW_HTTP", "ALLOW_HTTP")
        given = {os.environ.get(name, "").lower() for name in names}
        allow_http = not given.isdisjoint({"1", "true", "yes", "on"})
        client = {"timeout": timedelta(seconds=timeout), "allow_http": allow_http}
    limit = timedelta(seconds=timeout * (retries + 1))
    try:
        return from_url(
            url,
            client_options=client,
            retry_config={"max_retries": retries, "retry_timeout": limit},
        )
    except (BaseError, ValueError) as error:
        raise SourceError(f"cannot open a store for {url}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]  # what follows are internals of the store


FILM_SUFFIXES: Final = (".mp4", ".m4v", ".mov", ".qt", ".3gp", ".3g2", ".f4v", ".cmfv")
"""How the names of ISOBMFF files with pictures end."""
SOUND_SUFFIXES: Final = (".m4a", ".mp4a", ".cmfa")
"""How those of sound alone end."""


@record(frozen=True, slots=True)
class ListedFile:
    """A file or an object; or a folder, whose name ends with a slash.

    Attributes:
        name: its path below where it was looked for, with slashes.
        modified: seconds since 1970.
    """

    name: str
    size: int
    modified: float


def list_folder(root: str, *, after: str = "", most: int = 10_000) -> Iterator[ListedFile]:
    """Files and folders below a folder, in the order of their names.

    Hidden ones, irregular files, those that lead out of the folder, and names that are no
    UTF-8 are left out; folders that cannot be read seem empty, links to folders are not followed.

    Args:
        after: a name; what does not come after it is left out, but for the folders above it.
        most: how many are given; so many of a folder are held in memory.
    """
    left = most
    waiting = [iter(_entries(root, "", after, most))]
    while waiting and left:
        name = next(waiting[-1], None)
        if name is None:
            waiting.pop()
            continue
        path = os.path.join(root, name)
        try:
            if name.endswith("/"):
                waiting.append(iter(_entries(root, name, after, most)))
            elif os.path.commonpath([os.path.realpath(path), root]) != root:
                continue
            status = os.stat(path)
        except OSError:
            continue  # it has gone meanwhile
        left -= 1
        yield ListedFile(name, status.st_size, status.st_mtime)


def _entries(root: str, folder: str, after: str, most: int) -> list[str]:
    """The first names in a folder after another name, in order."""

    def wanted(entry: os.DirEntry[str]) -> str | None:
        is_folder = entry.is_dir(follow_symlinks=False)
        name = f"{folder}{entry.name}{'/' * is_folder}"
        behind = name > after or (is_folder and after.startswith(name))
        if not behind or entry.name[:1] == "." or not (is_folder or entry.is_file()):
            return None
        # bytes that are not UTF-8 have no place in an address
        return None if any("\ud800" <= c <= "\udfff" for c in name) else name

    try:
        with os.scandir(os.path.join(root, folder)) as entries:
            return heapq.nsmallest(most, (n for n in map(wanted, entries) if n is not None))
    except OSError:
        return []


def list_objects(
    url: str,
    *,
    after: str = "",
    store: ObjectStore | None = None,
    retries: int = 3,
    timeout: float = STORE_TIMEOUT_S,
    **_: Any,
) -> Iterator[ListedFile]:
    """Objects below a URL of an object store, in the order of their names; asked page by page.

    Args:
        url: such as s3://bucket/prefix.
        after: a name below it; what does not come after it is left out.
        store: an obstore store for that URL; None: one is made.
        retries, timeout: as `open_source` takes them; its other options say nothing here.

    Raises:
        SourceError: there is no such bucket, it may not be listed, or it does not answer.
    """
    import obstore

    opened = store_for(f"{url.rstrip('/')}/", retries, timeout) if store is None else store
    try:
        for page in obstore.list(opened, offset=after or None, chunk_size=1000):
            for one in page:
                yield ListedFile(one["path"], one["size"], one["last_modified"].timestamp())
    except SourceError:
        raise
    except (obstore.exceptions.BaseError, OSError) as error:
        raise failure_of(error, url) from error


_LOCAL = ("file", "local", "memory")
_ETAGS = ("ETag", "etag", "e_tag", "mtime", "LastModified", "last_modified", "created")


class FilesystemSource(Source):
    """A file of an fsspec file system, read by ranges; made by `open_source(…, filesystem=…)`.

    Its length and what tells its versions apart (an entity tag or a date, as the file system has
    it) are requested once, at the first read. Retries are the file system's own.
    """

    def __init__(
        self,
        name: str,
        filesystem: AbstractFileSystem,
        *,
        connections: int = CONNECTIONS,
        max_bytes: int | None = None,
        max_requests: int | None = None,
    ) -> None:
        self._filesystem: Any = in_this_process(filesystem)
        self._path = self._filesystem._strip_protocol(name)
        protocols = self._filesystem.protocol
        names = (protocols,) if isinstance(protocols, str) else protocols
        super().__init__(
            name,
            size=None,
            remote=not set(names) & set(_LOCAL),
            max_bytes=max_bytes,
            max_requests=max_requests,
        )
        self.connections = connections
        self._batch = ReadBatch(connections)

    def read_up_to(self, range: ByteRange) -> bytes:
        """Return the bytes of `range`, or as many as the file has; learns `size` and `etag`."""
        if self.size is None:
            self.refresh()
        return self._read(self._spend(range))

    def read_many(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Return the bytes of several ranges, several at once."""
        if len(ranges) < 2 or not self.remote or self.size is None:
            return super().read_many(ranges)
        self._all_within_budget(ranges)
        return self._batch.run([self._spend(one) for one in ranges], self._read)

    def refresh(self) -> int | None:
        """Ask for the present length and version; SourceChanged if the file is shorter."""
        self._within_budget(0, 1)
        self.requests += 1
        self._filesystem.invalidate_cache()
        try:
            size, etag = known_of(self._filesystem.info(self._path))
        except Exception as error:
            raise self._failure(error) from error
        if self.size is not None and size is not None and size < self.size:
            raise SourceChanged(
                f"{self.name} was truncated while open", expected=f"{self.size} bytes", found=size
            )
        if size is None:
            raise SourceUnavailable(f"the file system does not say how long {self.name} is")
        self.size, self.etag = size, etag
        return size

    def expect(self, size: int | None, etag: str | None) -> None:
        """Look what there is now, and compare."""
        if self.size is None:
            self.refresh()
        super().expect(size, etag)

    def _read(self, range: ByteRange) -> bytes:
        if not range.size:
            return b""
        try:
            data = bytes(self._filesystem.cat_file(self._path, range.start, range.stop))
        except Exception as error:
            raise self._failure(error, range.start) from error
        if len(data) != range.size:
            raise SourceChanged(
                f"{self.name} is not as long as it was",
                offset=range.start,
                expected=f"{range.size} bytes",
                found=len(data),
            )
        return data

    def _failure(self, error: Exception, offset: int | None = None) -> Exception:
        if isinstance(error, FileNotFoundError):
            return SourceNotFound(f"there is no file {self.name}", filename=self.name)
        return SourceUnavailable(f"{self.name} could not be read: {error}", offset=offset)


def in_this_process(filesystem: Any) -> Any:
    """The file system, made again after a fork: its threads did not come along."""
    if getattr(filesystem, "_pid", os.getpid()) == os.getpid():
        return filesystem
    return type(filesystem)(*filesystem.storage_args, **filesystem.storage_options)


def known_of(info: dict[str, Any]) -> tuple[int | None, str | None]:
    """Length and version of a file, by what its file system says of it."""
    version = next((info[name] for name in _ETAGS if info.get(name) is not None), None)
    if isinstance(version, datetime):  # some say it as seconds in listings
        version = version.timestamp()
    size = info.get("size")
    return None if size is None else int(size), None if version is None else str(version)
