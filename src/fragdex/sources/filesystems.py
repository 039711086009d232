"""Sources in the file systems of fsspec: whatever it reaches by name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from fragdex.byterange import ByteRange
from fragdex.errors import SourceChanged, SourceNotFound, SourceUnavailable
from fragdex.sources.base import ReadBatch, Source

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_LOCAL = ("file", "local", "memory")
_ETAGS = ("ETag", "etag", "e_tag", "mtime", "LastModified", "last_modified", "created")


class FilesystemSource(Source):
    """A file of an fsspec file system, read by ranges; made by `open_source(…, filesystem=…)`.

    Its length and what tells its versions apart (an entity tag or a date, as the file system has
    it) are requested once, at the first read. Retries are the file system's own.

    >>> from fsspec.implementations.memory import MemoryFileSystem
    >>> filesystem = MemoryFileSystem()
    >>> filesystem.pipe("/a.mp4", b"abcdef")
    >>> with FilesystemSource("/a.mp4", filesystem) as source:
    ...     source.read_up_to(ByteRange(4, 100)), source.size
    (b'ef', 6)
    """

    def __init__(
        self,
        name: str,
        filesystem: AbstractFileSystem,
        *,
        connections: int = 16,
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
    """The file system, made again after a fork: its threads did not come along.

    >>> from fsspec.implementations.memory import MemoryFileSystem
    >>> filesystem = MemoryFileSystem()
    >>> in_this_process(filesystem) is filesystem
    True
    """
    if getattr(filesystem, "_pid", os.getpid()) == os.getpid():
        return filesystem
    return type(filesystem)(*filesystem.storage_args, **filesystem.storage_options)


def known_of(info: dict[str, Any]) -> tuple[int | None, str | None]:
    """Length and version of a file, by what its file system says of it.

    >>> known_of({"name": "a", "size": 5, "ETag": '"1"'})
    (5, '"1"')
    """
    version = next((info[name] for name in _ETAGS if info.get(name) is not None), None)
    if isinstance(version, datetime):  # some say it as seconds in listings
        version = version.timestamp()
    size = info.get("size")
    return None if size is None else int(size), None if version is None else str(version)
