"""A draft on the local disk: a file that grows, flushed at `sync`, renamed at `finish`.

What a process wrote stays in the system's memory when the process is killed; after a power cut the
file is as long as what reached the disk. So the length of the file is the record of what is there,
and `size` flushes before it tells it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from fragdex.errors import SourceNotFound
from fragdex.service.store.contract import DRAFT_PIECE_BYTES, checked
from fragdex.service.store.disk_direct import Buffers, DirectFile
from fragdex.service.store.disk_files import (
    NO_FOLLOW,
    PRIVATE,
    Modes,
    disk_errors,
    flush_folder,
    make_folders,
    need_room,
    open_new,
    place,
    remove,
)

__all__ = ["DiskDraft"]

_flush = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync


class DiskDraft:
    """The draft `name` in the folder `drafts`, to become an object in the folder `objects`."""

    def __init__(
        self,
        drafts: Path,
        name: str,
        objects: Path,
        buffers: Buffers | None = None,
        modes: Modes = PRIVATE,
    ) -> None:
        self._drafts = drafts
        self._path = drafts / name
        self._objects = objects
        self._modes = modes
        self._descriptor: int | None = None
        self._buffers = buffers
        self._direct = DirectFile(self._path, buffers)
        self._identity = (0, 0)
        # bytes that are durable, as far as it is known here; None: nothing is
        self._flushed: int | None = None

    def __repr__(self) -> str:
        return f"<DiskDraft {self._path.name!r}>"

    def __del__(self) -> None:
        with suppress(OSError, AttributeError):
            self.close()

    def size(self) -> int:
        """Bytes that are durable."""
        with disk_errors():
            opened = self._opened()
            if opened is None:
                return 0
            descriptor, end = opened
            if self._flushed == end:
                return end
            try:
                _flush(descriptor)
            except OSError:
                # The system tells of lost pages once and calls them clean after: what was written
                # since the last flush is in doubt for ever, and must not be counted by the next.
                if self._flushed is not None:
                    os.ftruncate(descriptor, self._flushed)
                raise
            self._flushed = os.fstat(descriptor).st_size
            return self._flushed

    def holds(self, size: int) -> bool:
        """Whether the first `size` bytes, which were flushed before, are here."""
        with disk_errors():
            opened = self._opened()
            if opened is None:
                return size == 0
            _, end = opened
            if end < size:
                return False
            self._flushed = max(size, self._flushed or 0)
            return True

    def append(self, start: int, data: bytes | memoryview) -> None:
        """Put `data` at byte `start`; what stood there and after is gone."""
        with disk_errors():
            opened = self._opened(make=start == 0)
            descriptor, end = opened or (-1, 0)
            if opened is None or not 0 <= start <= end:
                raise ValueError(f"a draft of {end} bytes cannot go on at byte {start}")
            if start < end:
                os.ftruncate(descriptor, start)
                self._flushed = None if self._flushed is None else min(self._flushed, start)
            need_room(descriptor, len(data))
            try:
                self._direct.write(descriptor, data, start)
            except OSError:
                os.ftruncate(descriptor, start)  # half a piece helps nobody, and takes room
                raise

    def sync(self) -> int:
        """Flush; returns the size."""
        return self.size()

    def read(self, start: int = 0) -> Iterator[memoryview]:
        """The bytes from `start` on; the buffer of a piece is used again for the next."""
        size = self.size()
        if start >= size:
            return
        with disk_errors():
            descriptor = os.open(self._path, os.O_RDONLY | NO_FOLLOW)
        try:
            buffer = memoryview(bytearray(min(size - start, DRAFT_PIECE_BYTES)))
            at = start
            while at < size:
                with disk_errors():
                    count = os.preadv(descriptor, [buffer[: size - at]], at)
                if not count:
                    return
                at += count
                yield buffer[:count]
        finally:
            os.close(descriptor)

    def fork(self, name: str, size: int) -> DiskDraft:
        """A copy of the first `size` bytes under another name."""
        other = DiskDraft(self._drafts, checked(name), self._objects, self._buffers, self._modes)
        if self.size() < size:
            raise ValueError(f"the draft holds fewer than {size} bytes")
        other.discard()
        at = 0
        try:
            for piece in self.read():
                other.append(at, piece[: size - at])
                at = min(size, at + len(piece))
                if at == size:
                    break
            other.sync()
        except BaseException:
            other.discard()
            raise
        return other

    def finish(self, key: str) -> None:
        """Rename the flushed file to its object."""
        target = self._objects / checked(key)
        held = self.size()
        with disk_errors():
            if target.is_file():
                self.discard()
                return
            if not held:
                raise SourceNotFound(f"the draft of {key} holds nothing")
            self.close()
            place(self._path, target, self._objects, self._modes)
            self._clean()

    def discard(self) -> None:
        """Delete the file."""
        self.close()
        with disk_errors():
            remove(self._path, self._drafts)

    def close(self) -> None:
        """Close the file."""
        descriptor, self._descriptor, self._flushed = self._descriptor, None, None
        self._direct.close()
        if descriptor is not None:
            os.close(descriptor)

    def _clean(self) -> None:
        if self._path.parent != self._drafts:
            remove(self._path, self._drafts)

    def _opened(self, *, make: bool = False) -> tuple[int, int] | None:
        """The open file and its size; None where there is none and none is to be made."""
        if self._descriptor is not None:
            # Through another Draft of this name, the file may have become an object meanwhile.
            with suppress(FileNotFoundError):
                found = os.stat(self._path, follow_symlinks=False)
                if (found.st_dev, found.st_ino) == self._identity:
                    return self._descriptor, found.st_size
            self.close()
        flushed: int | None = None
        try:
            descriptor = os.open(self._path, os.O_RDWR | NO_FOLLOW)
        except FileNotFoundError:
            if not make:
                if not self._drafts.is_dir():
                    raise
                return None
            descriptor, flushed = self._made(), 0
        found = os.fstat(descriptor)
        self._descriptor, self._flushed = descriptor, flushed
        self._identity = (found.st_dev, found.st_ino)
        return descriptor, found.st_size

    def _made(self) -> int:
        """A new empty file, durable in its folder."""
        while True:
            make_folders(self._path.parent, self._drafts, self._modes)
            try:
                descriptor = open_new(self._path, os.O_RDWR, self._modes)
            except FileNotFoundError:
                if not self._drafts.is_dir():
                    raise
                continue  # the folder was empty and somebody's `remove` took it
            flush_folder(self._path.parent)
            return descriptor
