"""md5 (RFC 1321), fed piece by piece, in its hexadecimal and its dashed form.

md5 here names content, it protects nothing: every use says so to OpenSSL
(`usedforsecurity=False`), which is what lets it run where FIPS rules forbid md5 for security.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from fragdex.byterange import ByteRange
from fragdex.errors import InvalidDigest, TruncatedInput

if TYPE_CHECKING:
    from typing import TypeAlias

    from fragdex.sources import Source

    # collections.abc.Buffer is younger than Python 3.11
    Buffer: TypeAlias = bytes | bytearray | memoryview

__all__ = ["Digest", "Md5", "md5", "parse_digest"]

DIGEST_SIZE = 16
"""Bytes of an md5 (RFC 1321, 3.5)."""

_PIECE_SIZE = 1 << 24  # how often progress is reported

# 32 digits, or the 8-4-4-4-12 form in which UUIDs are written (RFC 9562, 4)
_HEX = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class Digest(str):
    """An md5: its 32 lower-case hex digits as a text, and `bytes(digest)` its 16 bytes.

    Made from those bytes, or from hex digits as `parse_digest` reads them; raises InvalidDigest for
    anything else.

    >>> digest = md5(b"")
    >>> digest == "d41d8cd98f00b204e9800998ecf8427e", len(bytes(digest)), digest.dashed
    (True, 16, 'd41d8cd9-8f00-b204-e980-0998ecf8427e')
    >>> digest == Digest("D41D8CD9-8F00-B204-E980-0998ECF8427E")
    True
    """

    __slots__ = ()

    def __new__(cls, value: bytes | str) -> Digest:
        """Make a digest of its 16 bytes, or of hex digits."""
        if isinstance(value, str):
            return parse_digest(value) if type(value) is str else super().__new__(cls, value)
        if len(value) != DIGEST_SIZE:
            raise InvalidDigest(
                "this is not an md5", expected=f"{DIGEST_SIZE} bytes", found=len(value)
            )
        return super().__new__(cls, value.hex())

    @property
    def value(self) -> bytes:
        """The 16 bytes."""
        return bytes.fromhex(self)

    @property
    def hex(self) -> str:
        """The 32 lower-case hex digits, as md5sum prints them.

        >>> md5(b"").hex
        'd41d8cd98f00b204e9800998ecf8427e'
        """
        return str(self)

    @property
    def dashed(self) -> str:
        """The same digits in groups of 8-4-4-4-12.

        >>> md5(b"").dashed
        'd41d8cd9-8f00-b204-e980-0998ecf8427e'
        """
        digits = str(self)
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

    def __bytes__(self) -> bytes:
        return self.value

    def __str__(self) -> str:
        return self[:]

    def __repr__(self) -> str:
        return f"Digest({self[:]!r})"


def parse_digest(text: str) -> Digest:
    """Read an md5 written as 32 hex digits or dashed 8-4-4-4-12, in either case.

    Raises InvalidDigest for anything else, surrounding white space included.

    >>> parse_digest("D41D8CD98F00B204E9800998ECF8427E").dashed
    'd41d8cd9-8f00-b204-e980-0998ecf8427e'
    """
    if not _HEX.fullmatch(text):
        raise InvalidDigest(
            "this is not an md5",
            expected="32 hex digits, or dashed 8-4-4-4-12",
            found=repr(text[:80]),
        )
    return Digest(bytes.fromhex(text.replace("-", "")))


class Md5:
    """A running md5: `update` takes the content in pieces of any size.

    `size` is the number of bytes taken so far. The digest is available at any time.

    >>> running = Md5()
    >>> running.update(b"ab")
    >>> running.update(b"c")
    >>> running.hexdigest(), running.size
    ('900150983cd24fb0d6963f7d28e17f72', 3)
    """

    __slots__ = ("_hash", "size")

    def __init__(self, data: Buffer = b"") -> None:
        import hashlib  # OpenSSL takes longer to load than all the rest

        self._hash = hashlib.md5(data, usedforsecurity=False)
        self.size = memoryview(data).nbytes

    def update(self, data: Buffer) -> None:
        """Take the next bytes; other threads run meanwhile if they are many.

        >>> Md5().update(memoryview(b"abc"))
        """
        self._hash.update(data)
        self.size += data.nbytes if isinstance(data, memoryview) else len(data)

    def digest(self) -> Digest:
        """Return the md5 of all bytes so far.

        >>> Md5(b"abc").digest()
        Digest('900150983cd24fb0d6963f7d28e17f72')
        """
        return Digest(self._hash.digest())

    def hexdigest(self) -> str:
        """Return the md5 of all bytes so far as 32 hex digits.

        >>> Md5(b"abc").hexdigest()
        '900150983cd24fb0d6963f7d28e17f72'
        """
        return self._hash.hexdigest()

    def dashed(self) -> str:
        """Return the md5 of all bytes so far, dashed 8-4-4-4-12.

        >>> Md5(b"abc").dashed()
        '90015098-3cd2-4fb0-d696-3f7d28e17f72'
        """
        return self.digest().dashed

    def copy(self) -> Md5:
        """Return a second running md5, independent from here.

        >>> start = Md5(b"a")
        >>> other = start.copy()
        >>> other.update(b"bc")
        >>> start.hexdigest() == other.hexdigest()
        False
        """
        other = Md5.__new__(Md5)
        other._hash = self._hash.copy()
        other.size = self.size
        return other


class _InMemory:
    """Bytes in memory, in pieces as a source gives them."""

    def __init__(self, data: Buffer) -> None:
        self._view = memoryview(data).cast("B")
        self.size: int | None = len(self._view)

    def pieces(self, range: ByteRange | None = None, /) -> Iterator[memoryview]:
        left = self._view
        if range is not None:
            left = left[range.start : range.stop]
            if len(left) < range.size:
                raise TruncatedInput(
                    "the bytes end too early", expected=f"the bytes {range}", found=f"{self.size}"
                )
        while left:
            yield left[:_PIECE_SIZE]
            left = left[_PIECE_SIZE:]


def md5(
    source: Source | Buffer,
    ranges: Iterable[ByteRange] | None = None,
    progress: Callable[[int, int | None], object] | None = None,
) -> Digest:
    """Return the md5 of a source or of bytes, whole or of `ranges` one after the other.

    `ranges` are taken in the order given, as if joined; `progress` is called after each piece with
    the bytes done and the bytes in all (None while nobody knows). What a path or a URL names is
    hashed by `fragdex.sources.md5`, which opens it. Raises what the source raises; TruncatedInput
    for ranges past its end.

    >>> print(md5(b"abcabc", [ByteRange(0, 3)]))
    900150983cd24fb0d6963f7d28e17f72
    """
    opened = _InMemory(source) if isinstance(source, (bytes, bytearray, memoryview)) else source
    parts = None if ranges is None else list(ranges)
    total = opened.size if parts is None else sum(one.size for one in parts)
    running = Md5()
    for one in (None,) if parts is None else parts:
        for piece in opened.pieces(one):
            running.update(piece)
            if progress is not None:
                progress(running.size, total)
    return running.digest()
