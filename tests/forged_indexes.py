"""Binary indexes that someone forged: another value in one place, and right checksums."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

from fragdex.formats.fidx_head import build_head, parse_head

NUMBERS: Final = (
    *(0, 1, -1, 2**31, 2**32, 2**53, 2**61, 2**62 - 1, 2**62),
    *(-(2**62), 2**63 - 1, -(2**63) + 1, -(2**63)),
)
"""Numbers of 64 bits at the edges of what sums, floats and columns hold."""

VALUES: Final[tuple[Any, ...]] = (
    *NUMBERS,
    2**64,
    2**70,
    0.5,
    1e300,
    True,
    None,
    "",
    "\ud800",
    '"\n',
    [],
    {},
)
"""Values of JSON that have no business in most places."""

_WIDTHS: Final = {"<i8": 8, "<u4": 4, "|b1": 1, "|V32": 32}


def checksummed(plain: Any, columns: bytes) -> bytes:
    """A binary index of this JSON part and these columns, with every checksum right.

    >>> from fragdex.formats import fidx
    >>> from fragdex.testing import movie
    >>> import fragdex
    >>> data = fragdex.index(movie(fragments=2)).export("fidx")
    >>> plain, _, start = parse_head(memoryview(data))
    >>> checksummed(plain, data[start:]) == data
    True
    """
    plain = deepcopy(plain)
    for entry, rows in _entries(plain):
        try:
            _, dtype, offset, _ = entry
            entry[3] = zlib.crc32(columns[offset : offset + _WIDTHS[dtype] * rows])
        except (ValueError, TypeError, LookupError):
            continue  # the place itself is forged
    return build_head(plain, len(columns))[0] + columns


def forged_values(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Each value of the JSON part of an index replaced by each of `VALUES`: where and what, bytes.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> len(dict(forged_values(fragdex.index(movie()).export("fidx")))) > 1000
    True
    """
    plain, _, start = parse_head(memoryview(data))
    text = json.dumps(plain)
    for path in _leaves(plain):
        for value in VALUES:
            changed = json.loads(text)
            node = changed
            for key in path[:-1]:
                node = node[key]
            node[path[-1]] = value
            yield f"{'/'.join(map(str, path))}={value!a}", checksummed(changed, data[start:])


def forged_columns(data: bytes) -> Iterator[tuple[str, bytes]]:
    """One row of each column, or all of them, replaced by each of `NUMBERS`: where and what, bytes.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> len(dict(forged_columns(fragdex.index(movie()).export("fidx")))) > 500
    True
    """
    plain, _, start = parse_head(memoryview(data))
    columns = data[start:]
    for entry, rows in _entries(plain):
        name, dtype, offset, _ = entry
        width = _WIDTHS[dtype]
        for chosen in (*([row] for row in range(min(rows, 2))), range(rows)):
            for number in NUMBERS:
                changed = bytearray(columns)
                for row in chosen:
                    place = offset + width * row
                    changed[place : place + width] = (number % 2 ** (8 * width)).to_bytes(
                        width, "little"
                    )
                which = "every row" if len(chosen) == rows else f"row {chosen[0]}"
                yield f"{name} of {which}={number}", checksummed(plain, bytes(changed))


def _entries(plain: Any) -> Iterator[tuple[list[Any], int]]:
    """The entry of every column, and the rows of its table."""
    if isinstance(plain, dict):
        if isinstance(plain.get("columns"), list):
            for entry in plain["columns"]:
                if isinstance(entry, list):
                    yield entry, plain.get("rows", 0)
        for value in plain.values():
            yield from _entries(value)
    elif isinstance(plain, list):
        for value in plain:
            yield from _entries(value)


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to the values that are no objects and no lists."""
    inner: Any = value.items() if isinstance(value, dict) else enumerate(value)
    for key, below in inner:
        if isinstance(below, dict | list):
            yield from _leaves(below, (*path, key))
        else:
            yield (*path, key)
