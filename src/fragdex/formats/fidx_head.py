"""The head of a binary index byte by byte: the header of 64 bytes, and the JSON part after it.

Its tests cost next to nothing, whatever the size of the index; and they need no numpy, since a
question to a saved index is mostly the import of it.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress

from fragdex.errors import DamagedIndex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

ALIGNMENT = 64
"""Bytes: a cache line, and what Arrow recommends."""


def aligned(position: int) -> int:
    """The next multiple of 64 at or after a position."""
    return -(-position // ALIGNMENT) * ALIGNMENT


MAGIC = b"\x89FDX\r\n\x1a\n"
"""First a byte that is not text, last what conversions of line ends would spoil."""

VERSION = (1, 1)
"""Major and minor: a reader refuses a greater major, and passes over what a greater minor adds.

A file says the least version that has all that it has: 1.1 brought the digests of pieces."""

DIGESTS = "digests"
"""The key of the digests of pieces in the JSON part."""

HEADER = struct.Struct("<8sHHIQQQ20xI")
CHECKED = HEADER.size - 4  # the header under the checksum: all but the checksum itself
BYTE_ORDER = 0x0A0B0C0D


def build_head(plain: Any, columns_size: int) -> tuple[bytes, int]:
    """The header and the JSON part with what fills it up, and where the columns start."""
    head, start = finish_head(begin_head(plain), columns_size, least_version(plain))
    return bytes(head), start


def least_version(plain: Any) -> tuple[int, int]:
    """The version that a file with this JSON part says it has."""
    return VERSION if DIGESTS in plain else (1, 0)


def begin_head(plain: Any) -> bytearray:
    """Room for the header, and the JSON part.

    Args:
        plain: JSON values; iterators among the values of objects are written as lists, element by
            element, so that a large one never stands in memory as Python objects.
    """
    head = bytearray(HEADER.size)
    for text in _pieces(plain):
        head += text.encode("ascii")
    return head


def finish_head(
    head: bytearray, columns_size: int, version: tuple[int, int]
) -> tuple[bytearray, int]:
    """`begin_head`'s bytes with the header filled in, up to where the columns start."""
    text_size = len(head) - HEADER.size
    start = aligned(len(head))
    header = HEADER.pack(MAGIC, *version, BYTE_ORDER, start + columns_size, text_size, start, 0)
    head[:CHECKED] = header[:CHECKED]
    with memoryview(head) as view:
        checksum = zlib.crc32(view[HEADER.size :], zlib.crc32(view[:CHECKED]))
    head[CHECKED : HEADER.size] = struct.pack("<I", checksum)
    head += bytes(start - len(head))
    return head, start


_PLAIN = frozenset((str, int, float, bool, list, tuple, type(None)))
_ENCODE = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def _pieces(plain: Any) -> Iterator[str]:
    """The JSON text of a value, elements of iterators one by one."""
    if isinstance(plain, Iterator):
        before = "["
        for element in plain:
            yield before
            yield from _pieces(element)
            before = ","
        yield "]" if before == "," else "[]"
    elif _streamed(plain):
        before = "{"
        for name, value in plain.items():
            yield f"{before}{_ENCODE(name)}:"
            yield from _pieces(value)
            before = ","
        yield "}"
    else:
        yield _ENCODE(plain)


def _streamed(plain: Any) -> bool:
    """Whether an object has an iterator among its values, or in an object there."""
    if type(plain) is dict:
        for value in plain.values():
            kind = type(value)
            if kind not in _PLAIN and (isinstance(value, Iterator) or _streamed(value)):
                return True
    return False


def parse_head(view: memoryview) -> tuple[Any, int, int]:
    """The JSON part, where its text ends, and where the columns start.

    Raises:
        DamagedIndex: this is not a binary index, of a newer major version, cut off, or damaged.
    """
    if view[: len(MAGIC)] != MAGIC:
        raise DamagedIndex(
            "this is not a binary index",
            offset=0,
            expected=MAGIC,
            found=bytes(view[: len(MAGIC)]),
            advice="media are indexed by fragdex.index",
        )
    if len(view) < HEADER.size:
        raise DamagedIndex(
            "the index is cut off", expected=f"{HEADER.size} bytes of header", found=len(view)
        )
    _, major, minor, order, size, text_size, start, checksum = HEADER.unpack_from(view)
    if major > VERSION[0]:
        raise DamagedIndex(
            f"version {major}.{minor} of the binary index is too new",
            offset=8,
            expected=f"{VERSION[0]}.x",
            found=f"{major}.{minor}",
            advice="update fragdex, or build the index again",
        )
    if order != BYTE_ORDER:
        raise DamagedIndex(
            "the bytes are in another order", offset=12, expected=hex(BYTE_ORDER), found=hex(order)
        )
    if size != len(view):
        raise DamagedIndex(
            "the index is cut off or has grown",
            offset=16,
            expected=f"{size} bytes",
            found=len(view),
        )
    if start != aligned(HEADER.size + text_size) or start > size:
        raise DamagedIndex(
            "the parts of the index do not fit together",
            offset=24,
            expected=f"a JSON part before {size}",
            found=f"{text_size} bytes of it, columns at {start}",
        )
    text = view[HEADER.size : HEADER.size + text_size]
    if zlib.crc32(text, zlib.crc32(view[:CHECKED])) != checksum or major != VERSION[0]:
        raise DamagedIndex(
            "the header or the JSON part is damaged", offset=0, advice="build the index again"
        )
    try:
        plain = _decoded(str(text, "utf-8"))
    except (ValueError, RecursionError) as error:
        # Only a writer that is not ours can get here: the checksum was right.
        raise DamagedIndex(f"the JSON part cannot be read ({error})", offset=64) from error
    return plain, HEADER.size + text_size, start


def no_constant(name: str) -> NoReturn:
    """Refuse NaN and infinities, which Python's reader takes and JSON does not have."""
    raise ValueError(f"{name} is not JSON")


# Made once: making it takes as long as reading the text.
_DECODER: Any = json.JSONDecoder(parse_constant=no_constant)


def _decoded(text: str) -> Any:
    """As the decoder's own `decode`, without its two searches for white space.

    They are a twenty-fifth of opening an index. What is not a value alone goes the long way.
    """
    plain, end = None, -1
    with suppress(StopIteration):
        plain, end = _DECODER.scan_once(text, 0)
    return plain if end == len(text) else _DECODER.decode(text)
