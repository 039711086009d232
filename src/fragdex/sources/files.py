"""Files and bytes: regular files, what the caller holds, and writing so that nobody reads a half.

Regular files are read at any position, mapped on request, and watched for growth and loss.
"""

from __future__ import annotations

import contextlib
import errno
import io
import mmap
import os
import stat
import struct
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import IO, Any

from fragdex.byterange import ByteRange
from fragdex.errors import (
    FragdexError,
    SourceChanged,
    SourceError,
    SourceNotFound,
    SourceUnavailable,
)
from fragdex.sources.base import PIECE_SIZE, Source, steps

_FEED = "feed its bytes to fragdex.Indexer as they arrive"

_KINDS = (
    (stat.S_ISDIR, "a directory", "name a file in it"),
    (stat.S_ISFIFO, "a pipe, which cannot be read at any position", _FEED),
    (stat.S_ISSOCK, "a socket, which cannot be read at any position", _FEED),
    (stat.S_ISCHR, "a character device, which cannot be read at any position", _FEED),
    (stat.S_ISBLK, "a block device", "copy the file out of it"),
)


def give_back(view: memoryview) -> None:
    """Let the system take back the pages of a mapped file; they come again when they are read."""
    if isinstance(view.obj, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        view.obj.madvise(mmap.MADV_DONTNEED)


_AT_FDCWD = -100
_STATX_BTIME = 0x800
_STATX = struct.Struct("<I76xqI164x")
"""Of statx(2): its mask, and seconds and nanoseconds of the birth, in 256 bytes."""


def born_ns(path: str | os.PathLike[str]) -> int | None:
    """When a file was made, in nanoseconds since 1970; None: the file system does not keep it."""
    with suppress(OSError, AttributeError):
        if sys.platform != "linux":
            return int(os.stat(path).st_birthtime * 10**9)  # type: ignore[attr-defined]
        import ctypes  # seldom needed; Python has os.statx from 3.15 on

        buffer = ctypes.create_string_buffer(_STATX.size)
        statx = ctypes.CDLL(None).statx
        if statx(_AT_FDCWD, os.fsencode(path), 0, _STATX_BTIME, buffer) == 0:
            mask, seconds, nanoseconds = _STATX.unpack(buffer.raw)
            if mask & _STATX_BTIME:
                return int(seconds) * 10**9 + int(nanoseconds)
    return None


class FileSource(Source):
    """A regular file, read at any position and mapped on request.

    `read` uses pread and is safe whatever happens to the file; `view` maps it. Raises
    SourceNotFound where nothing stands at the path, SourceError for what is not a regular file
    (directories, pipes, devices) and for what may not be read.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        descriptor: int | None = None,
        max_bytes: int | None = None,
        max_requests: int | None = None,
    ) -> None:
        self._path = os.fspath(path)
        self._fd = _open(self._path) if descriptor is None else descriptor
        # Its copies have one position, which may be that of a file somebody else reads.
        self._has_own_position = descriptor is None
        self._map: mmap.mmap | None = None
        self._passed = 0
        try:
            status = os.fstat(self._fd)
            _regular(status, self._path)
        except BaseException:
            os.close(self._fd)
            raise
        self._identity = (status.st_dev, status.st_ino)
        super().__init__(
            self._path, size=status.st_size, max_bytes=max_bytes, max_requests=max_requests
        )
        self.mtime_ns = status.st_mtime_ns

    def read_up_to(self, range: ByteRange) -> bytes:
        """Return the bytes of `range`, cut at the size first seen.

        Raises SourceChanged if the file is shorter than that by now.
        """
        cut = self._spend(range)
        start, size = cut.start, cut.stop - cut.start
        data = _pread(self._fd, size, start) if size else b""
        while len(data) < size:
            # short where the file was cut off, and for reads of 2 GiB and more
            more = _pread(self._fd, size - len(data), start + len(data))
            if not more:
                raise self._shrunk(start + len(data))
            data += more
        return data

    def read_resident(self, range: ByteRange, buffer: memoryview) -> bool:
        """Fill a buffer with the bytes of `range`, if the system has them in memory (Linux)."""
        self._within_budget(range.size, 1)
        if _NO_WAIT is None:
            return False
        try:
            count = os.preadv(self._fd, [buffer], range.start, _NO_WAIT)
        except OSError:  # they are not there, or this file system cannot tell
            return False
        if count != range.size:
            return False
        self._spend(range)
        return True

    def view(self) -> memoryview | None:
        """Map the file and return it; None where it cannot be mapped.

        Raises SourceChanged if the file is shorter than when it was opened or refreshed.
        """
        self._within_budget(0, 0)
        assert self.size is not None
        if self.size == 0:
            return memoryview(b"")  # nothing can be mapped of an empty file
        if self._map is None:
            # This looks by itself whether the file is long enough.
            with suppress(OSError, ValueError):
                self._map = mmap.mmap(self._fd, self.size, access=mmap.ACCESS_READ)
                return memoryview(self._map)
        size_now = os.fstat(self._fd).st_size
        if size_now < self.size:
            raise self._shrunk(size_now)
        if self._map is None:
            return None  # some file systems cannot map; `read` works on them
        return memoryview(self._map)

    def passed(self, stop: int) -> None:
        """Let the system take back the pages of the mapping before `stop`."""
        until = stop - stop % mmap.PAGESIZE
        if self._map is not None and until > self._passed and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED, self._passed, until - self._passed)
            self._passed = until

    def pieces(
        self, range: ByteRange | None = None, size: int = PIECE_SIZE
    ) -> Iterator[bytes | memoryview]:
        """Yield the bytes of `range` through one buffer that is used again and again."""
        self._within_budget(0, 0)
        assert self.size is not None
        whole = ByteRange(0, self.size) if range is None else range
        if whole.stop > self.size:
            raise self._ends_before(whole, self.size)
        buffer = memoryview(bytearray(min(size, whole.size)))
        for start in steps(whole, size):
            cut = self._spend(ByteRange(start, min(start + size, whole.stop)))
            filled = 0
            while filled < cut.size:
                part = buffer[filled : cut.size]
                count = _pread_into(self._fd, part, cut.start + filled)
                if not count:
                    raise self._shrunk(cut.start + filled)
                filled += count
            piece = buffer[:filled].toreadonly()
            yield piece
            try:
                piece.release()  # whoever kept it gets an error instead of other bytes
            except BufferError:
                buffer = memoryview(bytearray(len(buffer)))  # someone holds this one: theirs now

    def refresh(self) -> int:
        """Look again how long the file is; SourceChanged if it shrank or was replaced."""
        self._within_budget(0, 0)
        status = os.fstat(self._fd)
        assert self.size is not None
        if status.st_size < self.size:
            raise self._shrunk(status.st_size)
        try:
            now = os.stat(self._path)
        except OSError:
            now = status  # deleted or moved: the open file lives on
        if (now.st_dev, now.st_ino) != self._identity:
            raise SourceChanged(
                f"there is another file at {self.name} now", advice="open and index it again"
            )
        self.mtime_ns = status.st_mtime_ns
        if status.st_size > self.size:
            self.size = status.st_size
            self._map = None  # the old mapping lives as long as its views
        return self.size

    @property
    def identity(self) -> tuple[int, int] | None:
        """Device and inode of the open file."""
        return self._identity

    def fileno(self) -> int | None:
        """Return the descriptor of the open file."""
        self._within_budget(0, 0)
        return self._fd

    def twin(self) -> Source | None:
        """Open the same file a second time; None where a budget counts what is read."""
        self._within_budget(0, 0)
        if self.max_bytes is not None or self.max_requests is not None:
            return None
        twin = FileSource(self._path, descriptor=os.dup(self._fd))
        twin.size, twin._has_own_position = self.size, self._has_own_position
        return twin

    def next_data(self, at: int) -> int:
        """Return where the file has bytes again: by SEEK_DATA (lseek(2)), where there is that."""
        self._within_budget(0, 0)
        if not self._has_own_position or not hasattr(os, "SEEK_DATA"):
            return at
        try:
            return os.lseek(self._fd, at, os.SEEK_DATA)
        except OSError as error:
            # ENXIO: none up to the end, which is before `at` only where the file was cut meanwhile
            return max(at, os.fstat(self._fd).st_size) if error.errno == errno.ENXIO else at

    def close(self) -> None:
        """Close the file; views already handed out stay valid."""
        if not self.closed:
            super().close()
            self._map = None  # unmapped when its last view goes
            os.close(self._fd)

    def __del__(self) -> None:
        if not getattr(self, "closed", True):
            self.close()

    def _shrunk(self, size: int) -> SourceChanged:
        return SourceChanged(
            f"{self.name} was truncated while open",
            expected=f"{self.size} bytes",
            found=f"{size}",
            advice="index it again when it is complete",
        )


def _open(path: str) -> int:
    try:
        # looked at before opening: opening a pipe waits for its other end, a device may do things
        _regular(os.stat(path), path)
        return os.open(
            path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
        )
    except (FileNotFoundError, NotADirectoryError) as error:
        raise SourceNotFound(f"there is no file {path}", filename=path) from error
    except PermissionError as error:
        raise SourceError(f"{path} may not be read", advice="check its permissions") from error
    except ValueError as error:  # a zero byte in the name
        raise SourceNotFound(f"{path!r} is not a file name", filename=path) from error
    except SourceError:
        raise
    except OSError as error:
        if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
            raise SourceNotFound(
                f"{path[:80]}… is not a file name: {error.strerror}", filename=path
            ) from error
        raise SourceUnavailable(f"{path} cannot be opened: {error.strerror}") from error


def _regular(status: os.stat_result, path: str) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    for is_kind, word, advice in _KINDS:
        if is_kind(status.st_mode):
            raise SourceError(f"{path} is {word}", advice=advice)


_NO_WAIT: int | None = getattr(os, "RWF_NOWAIT", None)

if hasattr(os, "pread"):
    _pread = os.pread
else:  # Windows
    _seeking = threading.Lock()

    def _pread(fd: int, size: int, offset: int) -> bytes:
        # Duplicates of a descriptor share one position, with one another and with who opened it.
        with _seeking:
            before = os.lseek(fd, 0, os.SEEK_CUR)
            try:
                os.lseek(fd, offset, os.SEEK_SET)
                return os.read(fd, size)
            finally:
                os.lseek(fd, before, os.SEEK_SET)


if hasattr(os, "preadv"):

    def _pread_into(fd: int, buffer: memoryview, offset: int) -> int:
        return os.preadv(fd, [buffer], offset)

else:  # Windows, and macOS before 11

    def _pread_into(fd: int, buffer: memoryview, offset: int) -> int:
        data = _pread(fd, len(buffer), offset)
        buffer[: len(data)] = data
        return len(data)


class BytesSource(Source):
    """Bytes in memory, not copied: bytes, bytearray, memoryview, mmap, a numpy array.

    What can be written to must not change meanwhile; a bytearray cannot be resized while open.
    """

    def __init__(
        self,
        data: Any,
        *,
        name: str = "<bytes>",
        max_bytes: int | None = None,
        max_requests: int | None = None,
    ) -> None:
        try:
            self._view = memoryview(data).toreadonly().cast("B")
        except TypeError as error:
            raise SourceError(
                "these bytes are not contiguous", advice="pass bytes(data)"
            ) from error
        super().__init__(
            name, size=self._view.nbytes, max_bytes=max_bytes, max_requests=max_requests
        )

    def read_up_to(self, range: ByteRange) -> bytes:
        """Return a copy of the bytes of `range`, cut at the end."""
        cut = self._spend(range)
        return bytes(self._view[cut.start : cut.stop])

    def view(self) -> memoryview | None:
        """Return the bytes themselves, read-only."""
        self._within_budget(0, 0)
        return self._view[:]

    def pieces(
        self, range: ByteRange | None = None, size: int = PIECE_SIZE
    ) -> Iterator[bytes | memoryview]:
        """Yield slices of the bytes, nothing copied."""
        self._within_budget(0, 0)
        end = self._view.nbytes
        whole = ByteRange(0, end) if range is None else range
        if whole.stop > end:
            raise self._ends_before(whole, end)
        for start in steps(whole, size):
            cut = self._spend(ByteRange(start, min(start + size, whole.stop)))
            yield self._view[cut.start : cut.stop]

    def close(self) -> None:
        """Let go of the bytes; views already handed out stay valid."""
        super().close()
        self._view.release()


class FileObjectSource(Source):
    """An open binary file with `read` and `seek`: BytesIO, a member of an archive, fsspec files.

    Its first byte is byte 0, wherever it stands now. It is left open, and at close where it stood.
    Raises SourceError for text files and for what cannot seek.
    """

    def __init__(
        self, file: IO[bytes], *, max_bytes: int | None = None, max_requests: int | None = None
    ) -> None:
        name = getattr(file, "name", None)
        name = name if isinstance(name, str) else f"<{type(file).__name__}>"
        if isinstance(file, io.TextIOBase):
            raise SourceError(f"{name} is open as text", advice="open it with mode 'rb'")
        try:
            self._stood_at = file.tell()
            file.seek(0, io.SEEK_END)
            size = file.tell()  # some file-likes return nothing from seek
        except (OSError, ValueError, AttributeError) as error:
            raise SourceError(
                f"{name} cannot be read at any position",
                found=error,
                expected="a seekable file",
                advice="feed its bytes to fragdex.Indexer as they arrive",
            ) from error
        self._file = file
        super().__init__(name, size=size, max_bytes=max_bytes, max_requests=max_requests)

    def read_up_to(self, range: ByteRange) -> bytes:
        """Return the bytes of `range`, cut at the size first seen."""
        cut = self._spend(range)
        parts: list[bytes] = []
        left = cut.size
        try:
            if left:
                self._file.seek(cut.start)
            while left:
                part = self._file.read(left)
                if not part:
                    break
                if len(part) > left or not isinstance(part, (bytes, bytearray, memoryview)):
                    raise SourceError(
                        f"{self.name} answers read wrongly",
                        expected=f"at most {left} bytes",
                        found=f"{len(part)} of {type(part).__name__}",
                    )
                parts.append(part)
                left -= len(part)
        except SourceError:
            raise
        except (OSError, ValueError) as error:
            raise SourceUnavailable(
                f"reading {self.name} failed: {error}", offset=cut.start
            ) from error
        if left:
            raise SourceChanged(
                f"{self.name} was truncated while open",
                expected=f"{self.size} bytes",
                found=f"{cut.stop - left}",
            )
        return parts[0] if len(parts) == 1 and type(parts[0]) is bytes else b"".join(parts)

    def refresh(self) -> int:
        """Look again how long the file is; SourceChanged if it shrank."""
        self._within_budget(0, 0)
        self._file.seek(0, io.SEEK_END)
        size = self._file.tell()
        assert self.size is not None
        if size < self.size:
            raise SourceChanged(
                f"{self.name} was truncated while open", expected=f"{self.size} bytes", found=size
            )
        self.size = size
        return size

    def close(self) -> None:
        """Put the file back where it stood; it stays open."""
        if not self.closed:
            super().close()
            with contextlib.suppress(OSError, ValueError):  # its owner closed it already
                self._file.seek(self._stood_at)


_MOST_REMEMBERED = 1 << 14
_written: dict[str, tuple[int, int, int]] = {}
"""Files that this process wrote last, and what tells them from later ones."""


def written_here(path: str | os.PathLike[str]) -> bool:
    """Whether this process has written the file that is there now."""
    known = _written.get(os.path.realpath(path)) if _written else None
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
    """
    # Where it is not a link it stays as it was given: the folders above may be closed to this user.
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
        reason = f"cannot be written: {error.strerror}"
        raise OSError(error.errno, reason, os.fspath(path)) from error


def _temporary(target: str) -> str:
    """An unused path next to the target."""
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
    # The rename is made durable; some systems can neither open nor flush directories.
    with suppress(OSError):
        descriptor = os.open(os.path.dirname(target) or os.curdir, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    identity, place = _identity(target), os.path.realpath(target)
    if identity is not None:
        _written.pop(place, None)
        _written[place] = identity
        while len(_written) > _MOST_REMEMBERED:
            _written.pop(next(iter(_written), ""), None)
    return written
