"""Hopping over box headers: the only sequential part of reading a file.

Two loops, compiled in `_hop.c` where a compiler was at hand at installation, in Python elsewhere;
a property test holds them equal. They know box headers (ISO/IEC 14496-12, 4.2.2) and nothing else.

In Python the inside of movie fragments is not walked one by one: fragments that one muxer wrote
look alike, so one of each size is walked and the headers of all others of that size are compared
with it by numpy.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from struct import Struct
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

compiled: Any = None
"""The compiled loops, or None."""
if not os.environ.get("FRAGDEX_PURE_PYTHON"):
    with contextlib.suppress(ImportError):
        compiled = importlib.import_module("fragdex._hop")

__all__ = [
    "DONE",
    "FULL",
    "MALFORMED",
    "PARTIAL",
    "ROW",
    "TO_END",
    "Rows",
    "code",
    "is_whole",
    "join",
    "walk",
    "walk_file",
]

ROW = np.dtype(
    [
        ("offset", "i8"),
        ("size", "i8"),
        ("type", "u4"),
        ("header", "u1"),
        ("depth", "u1"),
        ("damaged", "u2"),
    ]
)
"""One box: offset in the buffer, size with header, type as a big-endian number, header length,
depth (0: top level), and whether its inside breaks the rules (then no rows of it follow)."""

DONE, PARTIAL, MALFORMED, FULL, TO_END = range(5)
"""Why a walk stopped: at the end; at a box that is not whole in the buffer; at an impossible
header; after `max_rows`; at a box of size 0, which reaches to the end of the file."""

DESCEND = b"mooftraf"
"""Containers whose inside is walked."""
WHOLE = b"moofmoovsidxmfraftyp"
"""Top-level boxes that are only passed when they lie whole in the buffer."""

Rows: TypeAlias = npt.NDArray[np.void]


def code(name: str) -> int:
    """A four-letter code as the number that `ROW` holds.

    >>> hex(code("moof"))
    '0x6d6f6f66'
    """
    return int.from_bytes(name.encode("latin-1"), "big")


_WHOLE_TYPES = np.frombuffer(WHOLE, ">u4").astype(np.uint32)


def is_whole(types: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
    """Which types are among `WHOLE`."""
    return np.isin(types, _WHOLE_TYPES)


_CONTAINERS = {code("moof"), code("traf")}
_WHOLE = {code(WHOLE[i : i + 4].decode()) for i in range(0, len(WHOLE), 4)}
_UUID = code("uuid")


def walk(
    buffer: memoryview, start: int = 0, max_rows: int = 1 << 16
) -> tuple[npt.NDArray[np.void], int, int]:
    """Rows of the boxes from `start` on, fragments with their inside, in file order.

    Args:
        buffer: bytes of the file; a box's position counts from its start.
        start: of the first header.
        max_rows: about how many rows to give at once.

    Returns: rows (`ROW`), the position of the next header (it may lie behind the buffer, where a
    box that need not be whole reaches out of it), and why the walk stopped.
    """
    if compiled is None:
        return _walk(buffer, start, max_rows)
    rows, position, status = compiled.walk(buffer, start, DESCEND, WHOLE, max_rows)
    return np.frombuffer(rows, ROW), position, status


def walk_file(
    fd: int, start: int, stop: int, max_rows: int, max_bytes: int
) -> tuple[npt.NDArray[np.void], int, int, bytes, int, int]:
    """`walk` by reading, one read a fragment: where fragments are large this beats mapping.

    Only with the compiled loop. Returns rows (offsets in the file), position, status, the bytes
    of the `WHOLE` boxes one behind the other, reads made, bytes read.
    """
    (rows, position, status), kept, reads, count = compiled.walk_file(
        fd, start, stop, DESCEND, WHOLE, max_rows, max_bytes
    )
    return np.frombuffer(rows, ROW), position, status, kept, reads, count


def join(
    buffer: memoryview | bytes, offsets: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64] | int
) -> bytes:
    """The bytes of many runs, one behind the other.

    Joined bytes cost less than an index matrix. Runs must lie inside the buffer (ValueError).

    >>> join(b"abcdef", np.array([4, 0]), 2)
    b'efab'
    """
    if compiled is not None:
        widths = np.ascontiguousarray(sizes, np.int64).reshape(-1)
        joined: bytes = compiled.join(buffer, np.ascontiguousarray(offsets, np.int64), widths)
        return joined
    view = memoryview(buffer)
    widths = np.broadcast_to(np.asarray(sizes, np.int64), offsets.shape)
    if len(offsets) and (
        offsets.min() < 0 or widths.min() < 0 or (offsets + widths).max() > len(view)
    ):
        raise ValueError("join: a run lies outside the buffer")
    ends = (offsets + widths).tolist()
    return b"".join([view[a:b] for a, b in zip(offsets.tolist(), ends, strict=True)])


def _header(buffer: memoryview, at: int, stop: int) -> tuple[int, int, int, int]:
    """Status, size, type and header length of the box at `at`."""
    left = stop - at
    if left < 8:
        return PARTIAL, 0, 0, 0
    size, kind = (
        int.from_bytes(buffer[at : at + 4], "big"),
        int.from_bytes(buffer[at + 4 : at + 8], "big"),
    )
    length = 8
    if size == 1:
        if left < 16:
            return PARTIAL, 0, 0, 0
        size, length = int.from_bytes(buffer[at + 8 : at + 16], "big"), 16
        if size < 16 or size >= 2**63:
            return MALFORMED, 0, 0, 0
    if kind == _UUID:
        length += 16
    if size and size < length:
        return MALFORMED, 0, 0, 0
    return DONE, size, kind, length


def _walk(buffer: memoryview, start: int, max_rows: int) -> tuple[npt.NDArray[np.void], int, int]:
    head = Struct(">II").unpack_from
    rows: list[tuple[int, int, int, int, int, int]] = []
    moofs: list[int] = []
    at, stop, status, total = start, len(buffer), DONE, 0
    moof = code("moof")
    while at < stop:
        if total >= max_rows:
            status = FULL
            break
        if stop - at < 8:
            status = PARTIAL
            break
        size, kind = head(buffer, at)
        length = 8
        if size < 8 or kind == _UUID:
            status, size, kind, length = _header(buffer, at, stop)
            if status != DONE:
                break
            if size == 0:
                status = TO_END
                break
        if kind in _WHOLE:
            if size > stop - at:
                status = PARTIAL
                break
            if kind == moof:
                moofs.append(len(rows))
                total += 6  # about as many rows as a small fragment has
        rows.append((at, size, kind, length, 0, 0))
        total += 1
        at += size
    top = np.array(rows, ROW) if rows else np.zeros(0, ROW)
    if not moofs:
        return top, at, status
    inner, damaged = _insides(buffer, top[moofs])
    top["damaged"][np.array(moofs)[damaged]] = 1
    merged = np.concatenate([top, inner])
    return merged[np.argsort(merged["offset"], kind="stable")], at, status


def _insides(
    buffer: memoryview, moofs: npt.NDArray[np.void]
) -> tuple[npt.NDArray[np.void], npt.NDArray[np.bool_]]:
    """Rows of the insides of many fragments, and which of them are damaged."""
    damaged = np.zeros(len(moofs), np.bool_)
    out: list[npt.NDArray[np.void]] = []
    order = np.argsort(moofs["size"], kind="stable")
    sizes = moofs["size"][order]
    edges = np.flatnonzero(np.diff(sizes)) + 1
    for group in np.split(order, edges):
        left = group
        # A size that many layouts share is walked one by one after a few tries.
        for _ in range(4):
            if len(left) < 4:
                break
            shape, bad = _inside(buffer, moofs[left[0]])
            damaged[left[0]] = bad
            alike = _alike(buffer, moofs[left], shape) if not bad else np.arange(len(left)) == 0
            members = moofs["offset"][left[alike]]
            if not bad:
                copies = np.tile(shape, len(members))
                copies["offset"] += np.repeat(members - members[0], len(shape))
                out.append(copies)
            left = left[~alike]
        for one in left:
            shape, bad = _inside(buffer, moofs[one])
            damaged[one] = bad
            if not bad:
                out.append(shape)
    return (np.concatenate(out) if out else np.zeros(0, ROW)), damaged


def _alike(
    buffer: memoryview, moofs: npt.NDArray[np.void], shape: npt.NDArray[np.void]
) -> npt.NDArray[np.bool_]:
    """Which fragments of one size have every inner box header where the first has it."""
    size = int(moofs["size"][0])
    table = np.frombuffer(join(buffer, moofs["offset"], size), np.uint8).reshape(-1, size)
    same = np.ones(len(moofs), np.bool_)
    base = int(moofs["offset"][0])
    for row in shape:
        a = int(row["offset"]) - base
        # Of a uuid box the header holds the user type too; it decides what the box means.
        b = a + int(row["header"])
        same &= (table[:, a:b] == table[0, a:b]).all(axis=1)
    # Where a size of 0 and type 0 ended a container, the others must end there as well.
    first = int(moofs["header"][0])
    same &= (table[:, :first] == table[0, :first]).all(axis=1)
    covered = _covered(shape, base, size)
    for a, b in covered:
        same &= (table[:, a:b] == table[0, a:b]).all(axis=1)
    return same


def _covered(shape: npt.NDArray[np.void], base: int, size: int) -> list[tuple[int, int]]:
    """Bytes of containers that no child covers: padding, which decides where children end."""
    gaps: list[tuple[int, int]] = []
    ends = [(0, size, 8)]
    rows = [
        (int(r["offset"]) - base, int(r["size"]), int(r["header"]), int(r["type"]), int(r["depth"]))
        for r in shape
    ]
    containers = ends + [(a, a + n, h) for a, n, h, kind, _ in rows if kind in _CONTAINERS]
    for a, stop, header in containers:
        children = [(x, x + n) for x, n, _, _, _ in rows if a < x < stop]
        last = max((e for _, e in children), default=a + header)
        if last < stop:
            gaps.append((last, stop))
    return gaps


def _inside(buffer: memoryview, moof: Any) -> tuple[npt.NDArray[np.void], bool]:
    """Rows of one fragment's inside, and whether a child breaks its parent."""
    rows: list[tuple[int, int, int, int, int, int]] = []

    def inside(start: int, stop: int, depth: int) -> bool:
        at = start
        while stop - at >= 8:
            status, size, kind, length = _header(buffer, at, stop)
            if status == DONE and size == 0 and kind == 0:
                return True  # padding of zero bytes, as QuickTime's terminator
            if status != DONE or size == 0 or size > stop - at:
                return False
            rows.append((at, size, kind, length, depth, 0))
            if depth < 8 and kind in _CONTAINERS and not inside(at + length, at + size, depth + 1):
                return False
            at += size
        return True

    offset, size = int(moof["offset"]), int(moof["size"])
    whole = inside(offset + int(moof["header"]), offset + size, 1)
    return (np.array(rows, ROW) if rows and whole else np.zeros(0, ROW)), not whole
