"""The store on a local disk: one folder, one file an object.

    ROOT/objects/KEY       complete and durable objects
    ROOT/drafts/NAME       drafts, as files that grow
    ROOT/temporary/…       what is being written; renamed into its place, or left by a crash

An object comes into being by a rename inside one file system, after its bytes were flushed; the
folder is flushed after. Several processes may use the same folder.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from fragdex import ByteRange, Source, open_source
from fragdex.errors import InvalidRange
from fragdex.service.store.contract import PIECE_BYTES, checked, gives_back
from fragdex.service.store.disk_direct import Buffers
from fragdex.service.store.disk_draft import DiskDraft
from fragdex.service.store.disk_files import (
    NO_FOLLOW,
    PRIVATE,
    Modes,
    disk_errors,
    file_size,
    lock,
    make_folders,
    make_private,
    need_room,
    open_new,
    place,
    remove,
    walk,
    write_all,
)

__all__ = ["DiskStore"]

REMEMBERED = 1024
"""Objects whose paths are not put together anew for each read."""

JUST_NOW_S = 60
"""Between the making of a file and its lock lies less than this."""


class DiskStore:
    """Objects and drafts as files below `root`, which is made where it is missing.

    `direct` lets large pieces of drafts go past the system's cache (`disk_direct`). `modes` say who
    may read what is made.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = DiskStore(folder)
    ...     store.write("greetings/one", [b"good ", b"day"])
    ...     b"".join(store.read("greetings/one", ByteRange(5, 8)))
    8
    b'day'
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
        return open_source(self._path(key))

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
                    need_room(descriptor, len(piece))
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
        if not gives_back(self):
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
