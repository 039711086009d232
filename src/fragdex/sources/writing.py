"""Writing a file so that a reader finds the old one or the new one, never half of one."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

from fragdex.errors import FragdexError

__all__ = ["write_file", "written_here"]

_MOST_REMEMBERED = 1 << 14
_written: dict[str, tuple[int, int, int]] = {}
"""Files that this process wrote last, and what tells them from later ones."""


def written_here(path: str | os.PathLike[str]) -> bool:
    """Whether this process has written the file that is there now.

    >>> written_here("pyproject.toml")
    False
    """
    known = _written.get(os.path.realpath(path))
    return known is not None and known == _identity(path)


def _identity(path: str | os.PathLike[str]) -> tuple[int, int, int] | None:
    try:
        now = os.stat(path)
    except OSError:
        return None
    return now.st_ino, now.st_size, now.st_mtime_ns


def write_file(
    path: str | os.PathLike[str], pieces: Iterable[bytes | bytearray | memoryview]
) -> int:
    """Write pieces to a path atomically and durably; give the number of bytes.

    A temporary file in the same directory is written, flushed to disk and renamed over the path,
    then the directory is flushed. A file that stood there keeps its mode bits; a new one gets what
    the umask allows. A symbolic link is followed: the file it names is replaced. When anything
    fails, the temporary file is removed and the old file is as it was. A device or a pipe is
    written to: a file cannot take its place.

    Raises:
        OSError: as the system gives it, such as a full disk or a missing directory; it names the
            path as it was given.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = pathlib.Path(directory, "a")
    ...     write_file(path, [b"one", b"two"]), path.read_bytes()
    (6, b'onetwo')
    """
    # Where it is no link it stays as it was given: the folders above may be closed to this user.
    target = os.path.realpath(path) if os.path.islink(path) else os.fspath(path)
    temporary: str | None = None
    try:
        if os.path.exists(target) and not os.path.isfile(target) and not os.path.isdir(target):
            with open(target, "wb") as stream:
                return sum(stream.write(piece) for piece in pieces)
        temporary = _temporary(target)
        return _replace(target, temporary, pieces)
    except OSError as error:
        # An error of a source that is read meanwhile has nothing to do with the path.
        if isinstance(error, FragdexError) or error.filename not in (None, target, temporary):
            raise
        said = f"cannot be written: {error.strerror}"
        raise OSError(error.errno, said, os.fspath(path)) from error


def _temporary(target: str) -> str:
    """The path of a file beside the target that is not there yet."""
    directory, name = os.path.split(target)
    import secrets  # and hmac and random with it, which whoever writes nothing need not import

    # A file name may have 255 bytes; the name of the target is in it for whoever finds a left-over.
    return os.path.join(directory, f".{name[:50]}.{secrets.token_hex(8)}.part")


def _replace(target: str, temporary: str, pieces: Iterable[bytes | bytearray | memoryview]) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(temporary, flags, 0o666)
    written = 0
    try:
        with open(descriptor, "wb") as file:
            for piece in pieces:
                written += file.write(piece)
            file.flush()
            if os.path.exists(target):
                os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
    _flush_directory(os.path.dirname(target) or os.curdir)
    made, place = _identity(target), os.path.realpath(target)
    if made is not None:
        _written.pop(place, None)
        _written[place] = made
        while len(_written) > _MOST_REMEMBERED:
            _written.pop(next(iter(_written), ""), None)
    return written


def _flush_directory(directory: str) -> None:
    """Make the rename durable; some systems can neither open nor flush directories."""
    try:
        descriptor = os.open(directory, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)
