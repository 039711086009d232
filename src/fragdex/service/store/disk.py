"""The store on a local disk: one folder, one file an object.

    ROOT/objects/KEY       complete and durable objects
    ROOT/drafts/NAME       drafts, as files that grow
    ROOT/temporary/…       what is being written; renamed into its place, or left by a crash

An object comes into being by a rename inside one file system, after its bytes were flushed; the
folder is flushed after. Several processes may use the same folder.

What a process wrote to a draft stays in the system's memory when the process is killed; after a
power cut the file is as long as what reached the disk. So the length of the file is the record of
the existing bytes, and `size` flushes before it tells it.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from fragdex import ByteRange, Source
from fragdex.errors import InvalidRange, SourceNotFound
from fragdex.service.store.contract import DRAFT_PIECE_BYTES, PIECE_BYTES, checked, round_trips
from fragdex.service.store.disk_files import (
    NO_FOLLOW,
    PRIVATE,
    Buffers,
    DirectFile,
    Modes,
    disk_errors,
    ensure_room,
    file_size,
    flush_folder,
    lock,
    make_folders,
    make_private,
    open_new,
    place,
    remove,
    walk,
    write_all,
)
from fragdex.sources.files import FileSource

REMEMBERED = 1024
"""Objects whose paths are not put together again for each read."""

JUST_NOW_S = 60
"""Between the making of a file and its lock lies less than this."""


class DiskStore:
    """Objects and drafts as files below `root`, which is made where it is missing.

    `direct` lets large pieces of drafts go past the system's cache (`disk_direct`). `modes` say who
    may read new files.
    """

    def __init__(
        self, root: str | os.PathLike[str], *, direct: bool = True, modes: Modes = PRIVATE
    ) -> None:
        self.root = Path(os.path.abspath(root))
        self._buffers = Buffers() if direct else None
        self._modes = modes
        self._objects = self.root / "objects"
        self._drafts = self.root / "drafts"
        self._temporary = self.root / "temporary"
        self._path = lru_cache(REMEMBERED)(lambda key: self._objects / checked(key))
        with disk_errors():
            for folder in (self._objects, self._drafts, self._temporary):
                make_folders(folder, modes=modes)
                if modes is PRIVATE:
                    make_private(folder)
            if modes is PRIVATE:
                make_private(self.root)

        self.sweep_temporary()

    def __repr__(self) -> str:
        return f"<DiskStore {str(self.root)!r}>"

    def size(self, key: str) -> int:
        """Bytes of the object."""
        with disk_errors(key, self._objects):
            return file_size(os.lstat(self._path(key)))

    def read(self, key: str, wanted: ByteRange) -> Iterator[bytes]:
        """The bytes of a range of an object, in pieces of at most 256 KiB."""
        path = self._path(key)
        return self._pieces(path, key, wanted)

    def _pieces(self, path: Path, key: str, wanted: ByteRange) -> Iterator[bytes]:
        with disk_errors(key, self._objects):
            descriptor = os.open(path, os.O_RDONLY | NO_FOLLOW)
        try:
            with disk_errors(key, self._objects):
                size = file_size(os.fstat(descriptor))
            if wanted.stop > size:
                raise InvalidRange("the range ends after the object", expected=size, found=wanted)
            at = wanted.start
            while at < wanted.stop:
                with disk_errors():
                    piece = os.pread(descriptor, min(PIECE_BYTES, wanted.stop - at), at)
                if not piece:  # objects never shrink; a disk that lost bytes must not go in circles
                    raise InvalidRange("the object ended early", expected=wanted, found=at)
                at += len(piece)
                yield piece
        finally:
            os.close(descriptor)

    def source(self, key: str) -> Source:
        """The object as the library reads it, mapped."""
        return FileSource(self._path(key))

    def write(self, key: str, pieces: Iterable[bytes]) -> int:
        """Write an object atomically, durable at return; returns its size."""
        target = self._path(key)
        temporary = self._temporary / secrets.token_hex(16)
        with disk_errors():
            descriptor = open_new(temporary, os.O_WRONLY | os.O_EXCL, self._modes)
        size = 0
        try:
            lock(descriptor)  # held until the file has its place: nobody takes it for left behind
            for piece in pieces:
                with disk_errors():
                    ensure_room(descriptor, len(piece))
                    write_all(descriptor, piece, size)
                size += len(piece)
            with disk_errors():
                os.fsync(descriptor)
                place(temporary, target, self._objects, self._modes)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        finally:
            os.close(descriptor)
        return size

    def delete(self, key: str) -> None:
        """Delete the object, and folders that are empty then."""
        path = self._path(key)
        with disk_errors():
            remove(path, self._objects)

    def keys(self, prefix: str = "") -> Iterator[str]:
        """Keys of all objects that begin with `prefix`, sorted."""
        with disk_errors():
            yield from walk(self._objects, prefix)

    def draft(self, name: str) -> DiskDraft:
        """The draft of that name; nothing is written yet."""
        return DiskDraft(self._drafts, checked(name), self._objects, self._buffers, self._modes)

    def direct(self) -> None:
        """None: what lies on a disk is written by the service."""

    def drafts(self) -> Iterator[str]:
        """Names of all drafts that hold bytes, sorted."""
        with disk_errors():
            for name in walk(self._drafts, ""):
                try:
                    size = (self._drafts / name).stat().st_size
                except FileNotFoundError:
                    continue  # finished meanwhile
                if size:
                    yield name

    @contextmanager
    def local(self, key: str) -> Iterator[Path]:
        """The object's own file."""
        path = self._path(key)
        with disk_errors(key, self._objects):
            file_size(os.lstat(path))
        yield path

    def path(self, key: str) -> Path | None:
        """Where the object lies, whether it is there or not."""
        return self._path(key)

    def check(self) -> None:
        """Write, read and delete a small object."""
        if not round_trips(self):
            with disk_errors():
                raise OSError("the disk gave back other bytes than were written")

    def sweep_temporary(self) -> int:
        """Remove what killed processes were writing; returns how many files.

        A file that is being written is locked by its writer, and one that was made just now may
        not be locked yet.
        """
        removed, limit = 0, time.time() - JUST_NOW_S
        with disk_errors():
            for name in os.listdir(self._temporary):
                path = self._temporary / name
                with suppress(FileNotFoundError, BlockingIOError):
                    if path.stat(follow_symlinks=False).st_mtime > limit:
                        continue
                    descriptor = os.open(path, os.O_RDWR | NO_FOLLOW)
                    try:
                        lock(descriptor)
                        os.unlink(path)
                        removed += 1
                    finally:
                        os.close(descriptor)
        return removed


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
                # The system reports lost pages once and calls them clean after: what was written
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
                raise ValueError(f"a draft of {end} bytes cannot continue at byte {start}")
            if start < end:
                os.ftruncate(descriptor, start)
                self._flushed = None if self._flushed is None else min(self._flushed, start)
            ensure_room(descriptor, len(data))
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
        size = self.size()
        with disk_errors():
            if target.is_file():
                self.discard()
                return
            if not size:
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
                status = os.stat(self._path, follow_symlinks=False)
                if (status.st_dev, status.st_ino) == self._identity:
                    return self._descriptor, status.st_size
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
        status = os.fstat(descriptor)
        self._descriptor, self._flushed = descriptor, flushed
        self._identity = (status.st_dev, status.st_ino)
        return descriptor, status.st_size

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
