"""The walk over box headers in Python, where no compiled one is at hand.

The inside of movie fragments is not walked one by one: fragments that one muxer wrote look alike,
so one of each size is walked, and the bytes that decide its layout are compared with those of all
others of that size by numpy.
"""

from __future__ import annotations

from struct import Struct
from typing import Any

import numpy as np
import numpy.typing as npt

from fragdex.fragments.headers import (
    DESCEND,
    DONE,
    FULL,
    MALFORMED,
    PARTIAL,
    PASSED,
    ROW,
    TO_END,
    WHOLE,
    Int64,
    Rows,
    Walked,
    code,
)

__all__ = ["join_plain", "walk_plain"]


def _codes(packed: bytes) -> frozenset[int]:
    return frozenset(code(packed[i : i + 4].decode()) for i in range(0, len(packed), 4))


_CONTAINERS, _WHOLE, _PASSED = map(_codes, (DESCEND, WHOLE, PASSED))
_MOOF, _UUID = code("moof"), code("uuid")
MAX_DEPTH = 8
"""Containers inside containers; moof and traf make two."""
TRIES = 4
"""Layouts of one size that are looked for; what is left is walked one by one."""


def join_plain(buffer: memoryview | bytes, offsets: Int64, sizes: Int64 | int) -> bytes:
    """`join` in Python.

    >>> join_plain(b"abcdef", np.array([4, 0]), 2)
    b'efab'
    """
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


_HEAD = Struct(">II").unpack_from


def walk_plain(buffer: memoryview, start: int, max_rows: int) -> Walked:
    """`walk` in Python.

    >>> walk_plain(memoryview(bytes.fromhex("00000008 66726565")), 0, 10).position
    8
    """
    rows: list[tuple[int, int, int, int]] = []
    moofs: list[int] = []
    at, stop, status, total, behind_whole = start, len(buffer), DONE, 0, False
    while at < stop:
        # Not behind a fragment's moof: what belongs to it is better met in one stretch.
        if total >= max_rows and not behind_whole:
            status = FULL
            break
        if stop - at < 8:
            status = PARTIAL
            break
        size, kind = _HEAD(buffer, at)
        length = 8
        if size < 8 or kind == _UUID:
            status, size, kind, length = _header(buffer, at, stop)
            if status != DONE:
                break
            if size == 0:
                status = TO_END
                break
        behind_whole = kind in _WHOLE
        if behind_whole:
            if size > stop - at:
                status = PARTIAL
                break
            if kind == _MOOF:
                moofs.append(len(rows))
                total += 5  # about as many rows as a small fragment has
        rows.append((at, size, kind, length))
        total += 1
        at += size
    top = np.zeros(len(rows), ROW)
    if rows:
        columns = np.array(rows, np.int64)
        for i, name in enumerate(("offset", "size", "type", "header")):
            top[name] = columns[:, i]
        top["whole"] = np.isin(top["type"], list(_WHOLE))
    if not moofs:
        return Walked(top, np.zeros(0, ROW), at, status)
    inner, damaged = _insides(buffer, top[moofs])
    top["damaged"][np.array(moofs)[damaged]] = 1
    return Walked(top, inner, at, status)


def _insides(buffer: memoryview, moofs: Rows) -> tuple[Rows, npt.NDArray[np.bool_]]:
    """Rows of the insides of many fragments, and which of them are damaged."""
    damaged = np.zeros(len(moofs), np.bool_)
    out: list[Rows] = []
    offsets = np.ascontiguousarray(moofs["offset"])
    order = np.argsort(moofs["size"], kind="stable")
    sizes = moofs["size"][order]
    for group in np.split(order, np.flatnonzero(np.diff(sizes)) + 1):
        left = group
        for _ in range(TRIES):
            if len(left) < 2:
                break
            shape, deciding = _inside(buffer, moofs[left[0]])
            if shape is None:
                damaged[left[0]] = True
                left = left[1:]
                continue
            size = int(moofs["size"][left[0]])
            alike = _alike(join_plain(buffer, offsets[left], size), size, deciding)
            members = offsets[left[alike]]
            copies = np.tile(shape, len(members))
            copies["offset"] += np.repeat(members - members[0], len(shape))
            out.append(copies)
            left = left[~alike]
        for one in left:
            shape, _ = _inside(buffer, moofs[one])
            damaged[one] = shape is None
            if shape is not None:
                out.append(shape)
    if len(out) < 2:
        return (out[0] if out else np.zeros(0, ROW)), damaged
    inner = np.concatenate(out)
    return inner[np.argsort(inner["offset"], kind="stable")], damaged


def _alike(joined: bytes, size: int, deciding: list[tuple[int, int]]) -> npt.NDArray[np.bool_]:
    """Which fragments of one size have the same bytes as the first where layout is decided."""
    aligned = size % 4 == 0 and all(a % 4 == 0 and b % 4 == 0 for a, b in deciding)
    width = 4 if aligned else 1
    table = np.frombuffer(joined, f"u{width}").reshape(-1, size // width)
    same = np.ones(len(table), np.bool_)
    for a, b in deciding:
        for word in range(a // width, b // width):
            same &= table[:, word] == table[0, word]
    return same


def _inside(buffer: memoryview, moof: Any) -> tuple[Rows | None, list[tuple[int, int]]]:
    """Rows of one fragment's inside, and the bytes in it that decide where they are.

    None instead of rows where a child breaks its parent.
    """
    rows: list[tuple[int, int, int, int, int, bool, bool]] = []
    base, size = int(moof["offset"]), int(moof["size"])
    first = int(moof["header"])
    deciding = [(0, first)]

    def inside(start: int, stop: int, depth: int) -> bool:
        at = start
        while stop - at >= 8:
            status, size, kind, length = _header(buffer, at, stop)
            deciding.append((at - base, at - base + max(length, 8)))
            if status == DONE and size == 0 and kind == 0:
                return True  # padding of zero bytes, as QuickTime's terminator
            if status != DONE or size == 0 or size > stop - at:
                return False
            if kind not in _PASSED:
                rows.append((at, size, kind, length, depth, False, False))
            inner = depth < MAX_DEPTH and kind in _CONTAINERS
            if inner and not inside(at + length, at + size, depth + 1):
                return False
            at += size
        return True

    if not inside(base + first, base + size, 1):
        return None, deciding
    return (np.array(rows, ROW) if rows else np.zeros(0, ROW)), deciding
