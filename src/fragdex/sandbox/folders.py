"""Folders that belong to a process as long as it lives; those of killed ones are swept by others.

The lock on a folder ends with the process that holds it, however that ends: a folder without one
belongs to nobody, in whichever container its owner was.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from fragdex.errors import Unprocessable

try:
    import fcntl
except ImportError:  # pragma: no cover - no such system runs children with walls
    fcntl = None  # type: ignore[assignment]

_PIECE: Final = 1 << 20
_NOT_A_FILE: Final = "the result is not a file"
_PREFIX: Final = "fragdex-child-"
# Until it is locked, nobody may take it for one that was left behind.
_UNLOCKED: Final = "fragdex-new-"
# It is locked at once; one that is older was left behind between the two.
_UNLOCKED_SECONDS: Final = 600.0


class OwnFolder:
    """An empty folder in the system's temporary one, which is there while this object is.

    What killed processes left there is swept first. `with` gives its path.
    """

    def __init__(self) -> None:
        sweep_temporary()
        temporary = Path(tempfile.gettempdir())
        self.path, self._lock = _made(temporary, lambda name: name.replace(_UNLOCKED, _PREFIX, 1))

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove it and all that is in it; nothing happens where that is done."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def take_file(original: Path, path: Path) -> None:
    """Move a file out of the folder of a child, which may have put anything there instead.

    A file that is there already is replaced.

    Raises:
        Unprocessable: it is not a plain file of the child's own.
    """
    try:
        os.rename(original, path)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy(original, path)
    # Out of its folder, the child cannot put another one in its place.
    status = os.lstat(path)
    if not _is_plain(status):
        path.unlink()
        raise Unprocessable(_NOT_A_FILE)
    if status.st_uid != os.geteuid():
        os.chown(path, os.geteuid(), os.getegid())


def _is_plain(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1


def _copy(original: Path, path: Path) -> None:
    """The same from one file system to another; nothing of it is seen before it is whole."""
    try:
        opened = os.open(original, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise Unprocessable(_NOT_A_FILE) from error
    copy = path.with_name(f".{path.name}.part")
    with open(opened, "rb") as source:
        if not _is_plain(os.fstat(opened)):
            raise Unprocessable(_NOT_A_FILE)
        try:
            with copy.open("wb") as target:
                shutil.copyfileobj(source, target, _PIECE)
            os.replace(copy, path)
        except BaseException:
            copy.unlink(missing_ok=True)
            raise
    original.unlink(missing_ok=True)


def sweep_temporary() -> None:
    """Remove what killed processes have left in the system's temporary folder."""
    sweep(Path(tempfile.gettempdir()), f"{_PREFIX}*")


def make_locked(folder: Path) -> int | None:
    """Make an empty folder that nobody sweeps while this process keeps the lock open.

    Returns: the lock, a descriptor to be closed when the folder is gone; None where there are none.

    Raises:
        OSError: the folder is there and not empty, or cannot be made.
    """
    return _made(folder.parent, lambda _: folder.name)[1]


def sweep(parent: Path, pattern: str = "*") -> None:
    """Remove the folders there, of names like the pattern, that no process holds any more."""
    if fcntl is None:  # pragma: no cover - nobody can tell whose they are
        return
    with suppress(OSError):
        stale = time.time() - _UNLOCKED_SECONDS
        for folder in parent.iterdir():
            with suppress(OSError):
                if folder.name.startswith(_UNLOCKED):
                    if folder.lstat().st_mtime < stale:
                        shutil.rmtree(folder, ignore_errors=True)
                elif folder.match(pattern):
                    lock = _locked(folder)
                    try:
                        shutil.rmtree(folder, ignore_errors=True)
                    finally:
                        if lock is not None:
                            os.close(lock)


def _made(parent: Path, named: Callable[[str], str]) -> tuple[Path, int | None]:
    new = Path(tempfile.mkdtemp(prefix=_UNLOCKED, dir=parent))
    lock = None
    try:
        # where a file system has no locks, `_locked` raises for whoever sweeps, too
        with suppress(OSError):
            lock = _locked(new)
        return new.rename(new.with_name(named(new.name))), lock
    except OSError:
        shutil.rmtree(new, ignore_errors=True)
        if lock is not None:
            os.close(lock)
        raise


def _locked(folder: Path) -> int | None:
    """Raises BlockingIOError where somebody else has locked it."""
    if fcntl is None:  # pragma: no cover
        return None
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
