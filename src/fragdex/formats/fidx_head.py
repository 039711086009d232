"""The first 64 bytes of a binary index and the JSON part behind them: made, and tested at opening.

All tests here cost next to nothing, whatever the size of the index.
"""

from __future__ import annotations

import json
import struct
import zlib
from contextlib import suppress
from typing import Any, NoReturn

from fragdex.errors import DamagedIndex
from fragdex.formats.fidx_columns import aligned

__all__ = ["HEADER_SIZE", "MAGIC", "VERSION", "build_head", "parse_head"]

MAGIC = b"\x89FDX\r\n\x1a\n"
"""First a byte that is no text, last what conversions of line ends would spoil."""

VERSION = (1, 0)
"""Major and minor: a reader refuses a greater major, and passes over what a greater minor adds."""

HEADER = struct.Struct("<8sHHIQQQ20xI")
HEADER_SIZE = HEADER.size
CHECKED = HEADER.size - 4  # the header under the checksum: all but the checksum itself
BYTE_ORDER = 0x0A0B0C0D


def build_head(plain: Any, columns_size: int) -> tuple[bytes, int]:
    """The header and the JSON part with what fills it up, and where the columns start.

    >>> head, start = build_head({}, 128)
    >>> len(head) == start == 128
    True
    """
    text = json.dumps(plain, separators=(",", ":"), allow_nan=False).encode("ascii")
    start = aligned(HEADER.size + len(text))
    header = HEADER.pack(MAGIC, *VERSION, BYTE_ORDER, start + columns_size, len(text), start, 0)
    checksum = zlib.crc32(text, zlib.crc32(header[:CHECKED]))
    head = header[:CHECKED] + struct.pack("<I", checksum) + text
    return head.ljust(start, b"\0"), start


def parse_head(view: memoryview) -> tuple[Any, int, int]:
    """The JSON part, where its text ends, and where the columns start.

    Raises:
        DamagedIndex: this is no binary index, of a newer major version, cut off, or damaged.

    >>> parse_head(memoryview(build_head({"a": 1}, 0)[0]))
    ({'a': 1}, 71, 128)
    """
    if view[: len(MAGIC)] != MAGIC:
        raise DamagedIndex(
            "this is no binary index", offset=0, expected=MAGIC, found=bytes(view[: len(MAGIC)])
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


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


# Made once: making it takes as long as reading the text.
_DECODER: Any = json.JSONDecoder(parse_constant=_no_constant)


def _decoded(text: str) -> Any:
    """As the decoder's own `decode`, without its two searches for white space.

    They are a twenty-fifth of opening an index. What is not a value alone goes the long way.
    """
    plain, end = None, -1
    with suppress(StopIteration):
        plain, end = _DECODER.scan_once(text, 0)
    return plain if end == len(text) else _DECODER.decode(text)
