"""Packed sites: .tar.gz and .zip, told apart by their bytes, unpacked within limits.

What is written are plain files below one folder, whatever the archive says: no links, no devices,
no absolute paths, no `..`. Sizes are counted as bytes come out, never believed.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import re
import stat
import struct
import tarfile
import zipfile
import zlib
from collections import deque
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Final, Self

from fragdex.errors import TooLarge, Unprocessable
from fragdex.record import record

INDEX: Final = "index.html"
_PIECE: Final = 256 << 10
# Deflate packs zeros a thousand to one, the text of sites ten to one.
_RATIO: Final = 250
_RATIO_FROM: Final = 32 << 20
# What a tar may spend on the names of one member; its reader keeps that in memory.
_TAR_HEAD: Final = 1 << 20
_TAR_PIECE: Final = 20 * 512
# What one entry of a zip's directory may take, on the average; its reader keeps that in memory.
_ZIP_ENTRY: Final = 1 << 10
_LONGEST_PATH, _LONGEST_NAME = 1024, 255
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f\\]|^[A-Za-z]:")
# What is raised by whoever reads a broken archive.
_BROKEN: Final = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, gzip.BadGzipFile, struct.error, EOFError,
    ValueError, NotImplementedError,
)  # fmt: skip
_EOCD: Final = struct.Struct("<4s4H2LH")
_ZIP64_LOCATOR_SIZE: Final = 20


@record(frozen=True, slots=True)
class Bounds:
    """What an archive may hold: bytes in all, unpacked, and members."""

    unpacked_bytes: int = 1 << 30
    files: int = 20_000


@record(frozen=True, slots=True)
class Contents:
    """What an archive holds."""

    files: int
    byte_size: int


def examine(path: Path, bounds: Bounds) -> Contents:
    """Read an archive through, and write nothing.

    Raises:
        Unprocessable: no archive, a broken one, one that reaches outside, or no site.
        TooLarge: more than the bounds.
    """
    return _through(path, None, bounds)


def unpack(path: Path, folder: Path, bounds: Bounds) -> Contents:
    """Write the files of an archive below a folder; raises as `examine`."""
    return _through(path, folder, bounds)


def _through(path: Path, folder: Path | None, bounds: Bounds) -> Contents:
    names: set[str] = set()
    folders: set[str] = set()
    budget = _Budget(bounds, path.stat().st_size)
    try:
        with path.open("rb") as file:
            for name, pieces in _members(file, budget):
                above = {str(folder) for folder in PurePosixPath(name).parents}
                folders |= above
                # a name may have hundreds of them
                budget.ensure_room(len(folders))
                if name in folders or above & names:
                    raise Unprocessable(f"{name!r} is a file and a folder in the archive")
                names.add(name)
                _write(pieces, None if folder is None else folder / name)
    except _BROKEN as error:
        raise Unprocessable("the archive is broken", found=str(error) or None) from None
    except OSError as error:
        # where a broken archive sends its reader
        if error.errno != errno.EINVAL:
            raise
        raise Unprocessable("the archive is broken") from None
    if INDEX not in names:
        raise Unprocessable(f"there is no {INDEX} at the root of the archive", advice=_hint(names))
    return Contents(len(names), budget.unpacked)


def _hint(names: set[str]) -> str | None:
    below = sorted(name for name in names if name.endswith(f"/{INDEX}"))
    if not below:
        return None
    return f"pack what is in {below[0].removesuffix(f'/{INDEX}')!r}, not the folder itself"


def _write(pieces: Iterator[bytes], path: Path | None) -> None:
    if path is None:
        deque(pieces, maxlen=0)
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with path.open("wb") as out:
        out.writelines(pieces)


class _Budget:
    """Counts what comes out of an archive, and stops at the bounds."""

    def __init__(self, bounds: Bounds, packed: int) -> None:
        self._bounds = bounds
        self._members = self.unpacked = 0
        self._ratio_bytes = max(_RATIO * packed, _RATIO_FROM)

    def member(self) -> None:
        self._members += 1
        self.ensure_room(self._members)

    def ensure_room(self, members: int) -> None:
        if members > self._bounds.files:
            raise TooLarge(
                f"the archive holds more than {self._bounds.files} files",
                more={"limit": self._bounds.files},
            )

    def spend(self, size: int) -> None:
        self.unpacked += size
        if self.unpacked > self._bounds.unpacked_bytes:
            raise TooLarge(
                f"the archive holds more than {self._bounds.unpacked_bytes} bytes",
                more={"limit": self._bounds.unpacked_bytes},
            )
        if self.unpacked > self._ratio_bytes:
            raise Unprocessable(f"the archive unpacks to more than {_RATIO} times its size")

    def counted(self, file: IO[bytes]) -> Iterator[bytes]:
        while piece := file.read(_PIECE):
            self.spend(len(piece))
            yield piece


def _members(file: IO[bytes], budget: _Budget) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Names and bytes of the plain files, in order; each has to be read before the next."""
    head = file.read(512)
    file.seek(0)
    if head.startswith(b"\x1f\x8b"):
        with gzip.open(file) as plain:
            yield from _of_tar(plain, budget)
    elif head[257:262] == b"ustar":
        yield from _of_tar(file, budget)
    elif head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        yield from _of_zip(file, budget)
    else:
        raise Unprocessable("this is no .tar.gz and no .zip")


class _Metered:
    """The bytes under a tar's reader; between two members it may take names, and no more."""

    def __init__(self, file: IO[bytes] | gzip.GzipFile) -> None:
        self._file = file
        self.left = _TAR_HEAD

    def read(self, size: int) -> bytes:
        self.left -= size
        if self.left < 0:
            raise Unprocessable("a name in the archive is longer than any name")
        return self._file.read(size)


class _Member(tarfile.TarInfo):
    """A member whose head is whole: tarfile takes a broken one for the end of the archive."""

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> Self:
        """As `tarfile.TarInfo.fromtarfile`."""
        try:
            return super().fromtarfile(archive)
        # undocumented, and there since Python 3.2
        except (tarfile.InvalidHeaderError, tarfile.TruncatedHeaderError) as error:  # type: ignore[attr-defined]
            raise tarfile.ReadError(str(error)) from None


def _of_tar(
    file: IO[bytes] | gzip.GzipFile, budget: _Budget
) -> Iterator[tuple[str, Iterator[bytes]]]:
    metered = _Metered(file)
    stream = "r|"
    with tarfile.open(  # type: ignore[call-overload]
        fileobj=metered, mode=stream, bufsize=_TAR_PIECE, tarinfo=_Member
    ) as archive:
        while True:
            metered.left = _TAR_HEAD
            member = archive.next()
            if member is None:
                return
            budget.member()
            # the list of all members, which is of no use here
            archive.members = []
            if member.isdir():
                _checked(member.name, folder=True)
                continue
            if member.issym() or member.islnk():
                raise Unprocessable(f"{member.name!r} in the archive is a link")
            if not member.isreg() or member.issparse():
                raise Unprocessable(f"{member.name!r} in the archive is not a regular file")
            name = _checked(member.name)
            data = archive.extractfile(member)
            assert data is not None
            metered.left = member.size + _TAR_HEAD
            yield name, budget.counted(data)


def _of_zip(file: IO[bytes], budget: _Budget) -> Iterator[tuple[str, Iterator[bytes]]]:
    _need_small_directory(file, budget)
    with zipfile.ZipFile(file) as archive:
        for entry in archive.infolist():
            budget.member()
            kind = stat.S_IFMT(entry.external_attr >> 16)
            if kind == stat.S_IFLNK:
                raise Unprocessable(f"{entry.filename!r} in the archive is a link")
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise Unprocessable(f"{entry.filename!r} in the archive is not a regular file")
            # not is_dir(): on an empty name it fails in Python 3.11
            if entry.filename.endswith("/"):
                _checked(entry.orig_filename, folder=True)
                continue
            if entry.flag_bits & 1:
                raise Unprocessable("the archive is encrypted")
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise Unprocessable("the archive is packed in a way other than deflate")
            name = _checked(entry.orig_filename)
            with archive.open(entry) as data:
                yield name, budget.counted(data)


def _need_small_directory(file: IO[bytes], budget: _Budget) -> None:
    """Look at the size of a zip's directory before it is read into memory (APPNOTE 4.3.16)."""
    size = file.seek(0, 2)
    start = max(0, size - _EOCD.size - 0xFFFF - _ZIP64_LOCATOR_SIZE)
    file.seek(start)
    tail = file.read()
    file.seek(0)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < _EOCD.size:
        raise Unprocessable("the archive is broken: it has no directory")
    directory = _EOCD.unpack_from(tail, at)[5]
    if tail[max(0, at - _ZIP64_LOCATOR_SIZE) :].startswith(b"PK\x06\x07"):
        raise Unprocessable("the archive is a ZIP64, which sites have no need of")
    budget.ensure_room(-(-directory // _ZIP_ENTRY))
    file.seek(max(0, start + at - directory))
    budget.ensure_room(file.read(directory).count(b"PK\x01\x02"))
    file.seek(0)


def _checked(name: str, *, folder: bool = False) -> str:
    """The path of a member below the root, without `.`.

    Raises:
        Unprocessable: it leads elsewhere, or is not a name.
    """
    with contextlib.suppress(UnicodeEncodeError):
        name.encode()
        parts = [part for part in name.split("/") if part not in ("", ".")]
        if name.startswith("/") or ".." in parts or _CONTROL.search(name):
            raise Unprocessable(f"{name!r} in the archive leads outside of it")
        short = len(name.encode()) <= _LONGEST_PATH
        if short and all(len(part.encode()) <= _LONGEST_NAME for part in parts):
            if parts and not (name.endswith("/") and not folder):
                return "/".join(parts)
            if folder:
                return ""
    raise Unprocessable(f"{name[:80]!r} in the archive is not a file name")
