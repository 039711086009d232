"""Writing a file so that a reader finds the old one or the new one, never half of one."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable

__all__ = ["write_file"]


def write_file(
    path: str | os.PathLike[str], pieces: Iterable[bytes | bytearray | memoryview]
) -> int:
    """Write pieces to a path atomically and durably; give the number of bytes.

    A temporary file in the same directory is written, flushed to disk and renamed over the path,
    then the directory is flushed. A file that stood there keeps its mode bits; a new one gets what
    the umask allows. A symbolic link is followed: the file it names is replaced. When anything
    fails, the temporary file is removed and the old file is as it was.

    Raises:
        OSError: as the system gives it, such as a full disk or a missing directory.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = pathlib.Path(directory, "a")
    ...     write_file(path, [b"one", b"two"]), path.read_bytes()
    (6, b'onetwo')
    """
    target = os.path.realpath(path)
    directory, name = os.path.split(target)
    # A file name may have 255 bytes; the name of the target is in it for whoever finds a left-over.
    temporary = os.path.join(directory, f".{name[:50]}.{secrets.token_hex(8)}.part")
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
    _flush_directory(directory)
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
