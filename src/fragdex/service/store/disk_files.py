"""What the disk store does with files: write through, rename durably, tell failures apart.

Bytes that come in are copied once for the system's cache and may push out what others read. Large
pieces skip it where the file system lets them (Linux: O_DIRECT), which takes the work off a core
and leaves little for the flush. Whatever else there is to write goes through the cache: what is
short or does not lie on blocks, and everything where the file system refuses.
"""

from __future__ import annotations

import errno
import mmap
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fragdex.errors import FragdexError, SourceNotFound, StoreFull, Unavailable
from fragdex.record import record

if TYPE_CHECKING:
    from fragdex.service.config import Settings


try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]


NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)

# EFBIG is what a limit on the size of files gives.
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

_KEPT_FREE, _KEPT_PART = 32 << 20, 32
"""At most so many bytes of a disk are kept free, and at most one part in so many."""

RETRY_FULL_S, RETRY_S = 60.0, 5.0


@contextmanager
def disk_errors(key: str | None = None, root: Path | None = None) -> Iterator[None]:
    """Turn what the system says into errors of the service.

    A file that is missing is SourceNotFound where `key` is given and `root` is there; where the
    root itself is gone (a disk that is not mounted), the store does not answer.
    """
    try:
        yield
    except FragdexError:
        raise
    except OSError as error:
        missing = isinstance(error, (FileNotFoundError, NotADirectoryError, IsADirectoryError))
        if key is not None and root is not None and missing and root.is_dir():
            raise SourceNotFound(f"the store holds no {key}") from error
        if error.errno in _FULL:
            raise StoreFull(
                "there is no room left where bytes are kept", retry_after=RETRY_FULL_S
            ) from error
        why = os.strerror(error.errno) if error.errno else str(error)
        raise Unavailable(f"the disk does not answer: {why}", retry_after=RETRY_S) from error


def file_size(status: os.stat_result) -> int:
    """The size of a plain file; anything else is not an object: FileNotFoundError."""
    if not stat.S_ISREG(status.st_mode):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    return status.st_size


def write_all(descriptor: int, data: bytes | memoryview, at: int) -> None:
    """Write all of `data` at byte `at`: one call may write less."""
    view = memoryview(data).cast("B")
    while view:
        written = os.pwrite(descriptor, view, at)
        view, at = view[written:], at + written


def lock(descriptor: int) -> None:
    """Lock an open file until it is closed, by the end of the process at the latest.

    Raises:
        BlockingIOError: another process has locked it.
    """
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def flush_folder(folder: Path) -> None:
    """Make what was renamed into or out of a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@record(frozen=True, slots=True)
class Modes:
    """Who may read new files, whatever the process's umask is."""

    file: int
    folder: int


PRIVATE = Modes(0o600, 0o700)
"""The service's own user alone."""

SHARED = Modes(0o640, 0o750)
"""Its group too: a server that sends the bytes by itself."""


def open_new(path: Path, flags: int, modes: Modes) -> int:
    """Open a file for writing that may be made by this."""
    descriptor = os.open(path, flags | os.O_CREAT | NO_FOLLOW, modes.file)
    try:
        os.fchmod(descriptor, modes.file)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def make_folders(folder: Path, root: Path | None = None, modes: Modes = PRIVATE) -> None:
    """Make a folder and those above it, each durable in the one that holds it.

    `root` is never made: FileNotFoundError where it is missing. A disk that is not mounted must
    not be taken for an empty one.
    """
    if folder.is_dir():
        return
    if folder == root:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(root))
    make_folders(folder.parent, root, modes)
    with suppress(FileExistsError):
        folder.mkdir(modes.folder)
        # a folder that passes its group on keeps doing so
        os.chmod(folder, modes.folder | (folder.stat().st_mode & stat.S_ISGID))
    flush_folder(folder.parent)


def disk_reserve(disk: os.statvfs_result) -> int:
    """Bytes of a disk that are left to what makes room: records of deletions, and their log."""
    return min(_KEPT_FREE, disk.f_blocks * disk.f_frsize // _KEPT_PART)


def ensure_room(descriptor: int, size: int) -> None:
    """Refuse bytes that would take the last of a disk: OSError, as where there is none."""
    disk = os.fstatvfs(descriptor)
    if disk.f_blocks and disk.f_bavail * disk.f_frsize < size + disk_reserve(disk):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def make_private(path: Path) -> None:
    """Close a file or folder of ours to all but our own user; another user's stays as it is."""
    status = path.stat(follow_symlinks=False)
    mode = PRIVATE.folder if stat.S_ISDIR(status.st_mode) else PRIVATE.file
    plain = stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)
    if plain and status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) != mode:
        os.chmod(path, mode)


def place(source: Path, target: Path, root: Path, modes: Modes = PRIVATE) -> None:
    """Rename a flushed file to its place below `root`, durable at return."""
    while True:
        make_folders(target.parent, root, modes)
        try:
            os.replace(source, target)
            break
        except FileNotFoundError:
            # the folder was empty and somebody's `remove` took it; without the source, it is over
            if not source.exists():
                raise
    flush_folder(target.parent)
    if source.parent != target.parent:
        with suppress(FileNotFoundError):
            flush_folder(source.parent)


def remove(path: Path, root: Path) -> None:
    """Delete a file, where there is one, and the folders below `root` that are empty then."""
    with suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(path)
        flush_folder(path.parent)
    folder = path.parent
    while folder != root:
        try:
            folder.rmdir()
        except FileNotFoundError:
            pass
        except OSError:
            break  # not empty
        folder = folder.parent


def walk(root: Path, prefix: str) -> Iterator[str]:
    """Relative names of all files below `root` that begin with `prefix`, sorted as texts."""
    # Only one branch of the tree can hold the prefix down to its last slash.
    start = prefix.rpartition("/")[0]
    yield from _below(root / start if start else root, f"{start}/" if start else "", prefix)


def _below(folder: Path, above: str, prefix: str) -> Iterator[str]:
    try:
        with os.scandir(folder) as scanned:
            entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in scanned]
    except (FileNotFoundError, NotADirectoryError):
        return
    # A folder sorts with its slash: `a-b` stands before `a/b`, and `a/b` before `a0`.
    for name in sorted(f"{name}/" if is_folder else name for name, is_folder in entries):
        whole = above + name
        if name.endswith("/"):
            if whole.startswith(prefix) or prefix.startswith(whole):
                yield from _below(folder / name, whole, prefix)
        elif whole.startswith(prefix):
            yield whole


BLOCK = max(4096, mmap.PAGESIZE)
"""Where direct writes begin and end, in the file and in memory: no disk needs more."""

LEAST = 256 << 10
"""A piece shorter than this goes through the cache, which joins it with others."""

BUFFER = 1 << 20
BUFFERS = 4
"""Writers at once; others use the cache meanwhile."""

_DIRECT = getattr(os, "O_DIRECT", 0)


class Buffers:
    """Memory that lies on a block, which that of `bytes` does not; made once, for all drafts."""

    def __init__(self, count: int = BUFFERS) -> None:
        self._left = count
        self._spare: list[mmap.mmap] = []
        self._lock = threading.Lock()

    def take(self) -> mmap.mmap | None:
        """One that nobody uses, of BUFFER bytes; None where all are in use."""
        with self._lock:
            if self._spare:
                return self._spare.pop()
            if not self._left:
                return None
            self._left -= 1
        return mmap.mmap(-1, BUFFER)

    def give_back(self, buffer: mmap.mmap) -> None:
        """Others may use it now."""
        self._spare.append(buffer)


class DirectFile:
    """A file that is open for large writes in addition to its other descriptor.

    Not to be used by two threads at once. Without buffers, all goes through the cache.
    """

    def __init__(self, path: Path, buffers: Buffers | None) -> None:
        self._path, self._buffers = path, buffers if _DIRECT else None
        self._descriptor: int | None = None

    def write(self, cached: int, data: bytes | memoryview, at: int) -> None:
        """Write all of `data` at byte `at`; `cached` is the same file, open for writing.

        Raises: what writing raises; how much was written then is open.
        """
        view = memoryview(data).cast("B")
        head = -at % BLOCK
        blocks = (len(view) - head) // BLOCK * BLOCK
        done = 0
        if blocks >= LEAST and self._buffers is not None:
            write_all(cached, view[:head], at)
            done = head + self._write_blocks(
                self._buffers, cached, view[head : head + blocks], at + head
            )
        write_all(cached, view[done:], at + done)

    def close(self) -> None:
        """Close what is open. Repeating it is harmless."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _write_blocks(self, buffers: Buffers, cached: int, view: memoryview, at: int) -> int:
        """Write as much as goes, at least nothing; returns how much."""
        buffer = buffers.take()
        if buffer is None:
            return 0
        done = 0
        try:
            if self._descriptor is None:
                self._descriptor = os.open(self._path, os.O_WRONLY | NO_FOLLOW | _DIRECT)
                if not os.path.sameopenfile(self._descriptor, cached):
                    self._buffers = None  # the name is another file's by now
                    return 0
            while done < len(view):
                part = view[done : done + BUFFER]
                buffer[: len(part)] = part
                with memoryview(buffer)[: len(part)] as aligned:
                    written = os.pwrite(self._descriptor, aligned, at + done)
                done += written
                if written < len(part):
                    break  # the disk is full, or will say through the cache what it is
        except OSError as error:
            # Without its name, it is a file that nobody but us has open any more.
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOENT):
                raise
            self._buffers = None
        finally:
            buffers.give_back(buffer)
        return done


_NEARLY = 20
"""A disk is nearly full where less than one part in so many is left, and less than a gibibyte."""


def nearly_full(folder: Path) -> str | None:
    """How much is left on the disk of a folder, where that is little; None where there is room."""
    disk = os.statvfs(folder)
    free, whole = disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize
    if free >= min(1 << 30, whole // _NEARLY):
        return None
    return f"{free >> 20} MiB of {whole >> 20} MiB are left on the disk of {folder}"


def disks_nearly_full(settings: Settings) -> list[str]:
    """The free space on the disks of the service, where that is little."""
    folders = [settings.data, *([settings.store_folder] if settings.store_folder else [])]
    warnings = {os.stat(folder).st_dev: nearly_full(folder) for folder in folders}
    return [one for one in warnings.values() if one]


class Reserve:
    """A file that takes the room that records will need on a full disk."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._path = folder, folder / "reserve"
        self._lock = threading.Lock()

    def give_up(self) -> None:
        """Free the room where the disk is full to less than half of it; else nothing."""
        with suppress(OSError):
            disk = os.statvfs(self._folder)
            if disk.f_bavail * disk.f_frsize < disk_reserve(disk) // 2:
                self._path.unlink()

    def renew(self) -> None:
        """Take the room again where there is plenty."""
        with suppress(OSError), self._lock:
            disk = os.statvfs(self._folder)
            size = disk_reserve(disk)
            if self._path.exists() or disk.f_bavail * disk.f_frsize < 4 * size:
                return
            opened = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                os.posix_fallocate(opened, 0, max(size, 1))
            except OSError:
                self._path.unlink()
                raise
            finally:
                os.close(opened)
