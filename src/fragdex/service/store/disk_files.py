"""What the disk store does with files: write through, rename durably, tell failures apart."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fragdex.errors import FragdexError, SourceNotFound
from fragdex.service.errors import StoreFull, Unavailable

__all__ = [
    "NO_FOLLOW",
    "disk_errors",
    "file_size",
    "flush_folder",
    "make_folders",
    "place",
    "remove",
    "walk",
    "write_all",
]

NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)

# EFBIG is what a limit on the size of files gives.
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

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


def file_size(found: os.stat_result) -> int:
    """The size of a plain file; anything else is no object: FileNotFoundError."""
    if not stat.S_ISREG(found.st_mode):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    return found.st_size


def write_all(descriptor: int, data: bytes | memoryview, at: int) -> None:
    """Write all of `data` at byte `at`: one call may write less."""
    view = memoryview(data).cast("B")
    while view:
        written = os.pwrite(descriptor, view, at)
        view, at = view[written:], at + written


def flush_folder(folder: Path) -> None:
    """Make what was renamed into or out of a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folders(folder: Path, root: Path | None = None) -> None:
    """Make a folder and those above it, each durable in the one that holds it.

    `root` is never made: FileNotFoundError where it is missing. A disk that is not mounted must
    not be taken for an empty one.
    """
    if folder.is_dir():
        return
    if folder == root:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(root))
    make_folders(folder.parent, root)
    with suppress(FileExistsError):
        folder.mkdir()
    flush_folder(folder.parent)


def place(source: Path, target: Path, root: Path) -> None:
    """Rename a flushed file to its place below `root`, durable at return."""
    while True:
        make_folders(target.parent, root)
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
            found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in scanned]
    except (FileNotFoundError, NotADirectoryError):
        return
    # A folder sorts with its slash: `a-b` stands before `a/b`, and `a/b` before `a0`.
    for name in sorted(f"{name}/" if is_folder else name for name, is_folder in found):
        whole = above + name
        if name.endswith("/"):
            if whole.startswith(prefix) or prefix.startswith(whole):
                yield from _below(folder / name, whole, prefix)
        elif whole.startswith(prefix):
            yield whole
