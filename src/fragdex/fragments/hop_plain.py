"""The walk over box headers in Python, where no compiled one is at hand."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fragdex.box_header import read_header
from fragdex.fragments.headers import (
    DESCEND,
    DONE,
    FULL,
    MALFORMED,
    NO_SHAPE,
    PARTIAL,
    PASSED,
    ROW,
    TO_END,
    WHOLE,
    Fits,
    Int64,
    Mask,
    Packed,
    Rows,
    Walked,
    code,
)

__all__ = [
    "WHOLE_CODES",
    "Inside",
    "columns_plain",
    "fit_plain",
    "header_at",
    "inside_of",
    "join_plain",
    "walk_plain",
]


def _codes(packed: bytes) -> frozenset[int]:
    return frozenset(code(packed[i : i + 4].decode()) for i in range(0, len(packed), 4))


_CONTAINERS, WHOLE_CODES, _PASSED = map(_codes, (DESCEND, WHOLE, PASSED))
_MOOF, _MDAT = code("moof"), code("mdat")
MAX_DEPTH = 8
"""Containers inside containers; moof and traf make two."""


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


def header_at(buffer: memoryview, at: int, stop: int) -> tuple[int, int, int, int]:
    """Status, size, type and header length of the box at `at`.

    >>> header_at(memoryview(bytes.fromhex("00000008 66726565")), 0, 8)[1]
    8
    """
    header = read_header(buffer, at, stop)
    if header is None or header.form == "cut":
        return PARTIAL, 0, 0, 0
    kind, size, length, form = header
    if size >= 2**63 or (size < length and form != "to_end"):
        return MALFORMED, 0, 0, 0
    return DONE, size, int.from_bytes(kind, "big"), length


_HEAD = Struct(">II").unpack_from


def walk_plain(buffer: memoryview, start: int, max_rows: int, inside: bool = False) -> Walked:
    """`walk` in Python.

    >>> walk_plain(memoryview(bytes.fromhex("00000008 66726565")), 0, 10).position
    8
    """
    starts: list[int] = []
    odd: dict[int, tuple[int, int]] = {}
    at, stop, status, total, behind_whole = start, len(buffer), DONE, 0, False
    while at < stop:
        # Not behind a fragment's moof: what belongs to it is better met in one stretch.
        if total >= max_rows and not behind_whole:
            status = FULL
            break
        if not (behind_whole or inside):
            before = len(starts)
            at = _pairs(buffer, at, starts, max_rows - total)
            total += len(starts) - before
            if at >= stop or total >= max_rows:
                continue
        status, size, kind, length = header_at(buffer, at, stop)
        if status == DONE and not size:
            status = TO_END
        if status != DONE:
            break
        behind_whole = kind in WHOLE_CODES
        if behind_whole and size > stop - at:
            status = PARTIAL
            break
        total += 1 + (5 if inside and kind == _MOOF else 0)
        if length > 8 or size >= 1 << 32:
            odd[len(starts)] = size, length
        starts.append(at)
        at += size
    top = _rows(buffer, starts, odd)
    moofs = np.flatnonzero(top["type"] == _MOOF)
    if not len(moofs) or not inside:
        return Walked(top, np.zeros(0, ROW), at, status)
    inner, damaged = _insides(buffer, top[moofs])
    top["damaged"][moofs[damaged]] = 1
    return Walked(top, inner, at, status)


def _pairs(buffer: memoryview, at: int, starts: list[int], room: int) -> int:
    """Pass moofs that a mdat follows, both with short sizes; returns where something else stands.

    Nearly all of a fragmented file is this; whatever else there is, is left to the caller.
    """
    last, full, note = len(buffer) - 8, len(starts) + room, starts.append
    while at <= last and len(starts) < full:
        size, kind = _HEAD(buffer, at)
        behind = at + size
        if kind != _MOOF or size < 8 or behind > last:
            break
        size, kind = _HEAD(buffer, behind)
        if kind != _MDAT or size < 8:
            break
        note(at)
        note(behind)
        at = behind + size
    return at


def _rows(buffer: memoryview, starts: list[int], odd: dict[int, tuple[int, int]]) -> Rows:
    """Rows of the boxes at these places; `odd`: size and header length of those not plain."""
    top = np.zeros(len(starts), ROW)
    if not starts:
        return top
    offsets = np.array(starts, np.int64)
    heads = _table(buffer, offsets, 8).view(">u4")
    top["offset"], top["size"], top["type"], top["header"] = offsets, heads[:, 0], heads[:, 1], 8
    for row, (size, length) in odd.items():
        top["size"][row], top["header"][row] = size, length
    top["whole"] = np.isin(top["type"], list(WHOLE_CODES))
    return top


def columns_plain(
    buffer: memoryview | bytes, offsets: Int64, places: Sequence[tuple[int, np.dtype[Any]]]
) -> Int64:
    """`columns` in Python.

    >>> columns_plain(b"abcd", np.array([0, 2]), [(1, np.dtype(">u1"))]).tolist()
    [[98, 100]]
    """
    reach = max((at + dtype.itemsize for at, dtype in places), default=0)
    return _fields(_table(buffer, offsets, reach), places)


def _table(buffer: memoryview | bytes, offsets: Int64, size: int) -> npt.NDArray[np.uint8]:
    """Runs of one size as the rows of a table."""
    room = len(buffer) - size
    if len(offsets) and (offsets.min() < 0 or offsets.max() > room):
        raise ValueError("a run lies outside the buffer")
    if not size or not len(offsets):
        return np.zeros((len(offsets), size), np.uint8)
    # Every run of this size in the buffer, seen as one item each: numpy copies those asked for.
    every = np.ndarray(room + 1, np.dtype((np.void, size)), buffer, 0, (1,))
    return every[offsets].view(np.uint8).reshape(len(offsets), size)


def _fields(table: npt.NDArray[np.uint8], places: Sequence[tuple[int, np.dtype[Any]]]) -> Int64:
    out = np.empty((len(places), len(table)), np.int64)
    if not len(table):
        return out
    for row, (at, dtype) in zip(out, places, strict=True):
        row[:] = np.ndarray(len(table), dtype, table, at, table.strides[:1])
    return out


def fit_plain(buffer: memoryview | bytes, offsets: Int64, sizes: Int64, shapes: Packed) -> Fits:
    """`fit` in Python.

    >>> shape = (b"ab", bytes([255, 0]), b"")
    >>> fit_plain(memoryview(b"abxb"), np.array([0, 2]), np.array([2, 2]), (shape,)).which.tolist()
    [0, 255]
    """
    if len(offsets) and (
        min(offsets.min(), sizes.min()) < 0 or (offsets + sizes).max() > len(buffer)
    ):
        raise ValueError("fit: a box lies outside the buffer")
    which = np.full(len(offsets), NO_SHAPE, np.uint8)
    cells: list[Int64] = []
    tables: dict[int, tuple[Int64, npt.NDArray[np.uint8]]] = {}
    for number, (template, mask, packed) in enumerate(shapes):
        size = len(template)
        places = np.frombuffer(packed, np.int64).reshape(-1, 3).tolist()
        if any(at < 0 or at + width > size for at, width, _ in places):
            raise ValueError("fit: an impossible place")
        if size not in tables:
            # Each is copied together once, then thinned out as shapes are found in it.
            sized = np.flatnonzero(sizes == size)
            tables[size] = sized, _table(buffer, offsets[sized], size)
        sized, table = tables[size]
        same = _alike(table, template, mask)
        which[sized[same]] = number
        mine = table if same.all() else table[same]
        tables[size] = sized[~same], table[~same]
        dtypes = [
            (at, np.dtype(f">{'i' if signed else 'u'}{width}")) for at, width, signed in places
        ]
        cells.append(_fields(mine, dtypes))
    return Fits(which, cells)


def _alike(table: npt.NDArray[np.uint8], template: bytes, mask: bytes) -> Mask:
    """Which rows have the template's bits wherever the mask is set."""
    width = next(w for w in (8, 4, 2, 1) if len(template) % w == 0)
    rows = table.view(f"u{width}")
    wanted, bits = np.frombuffer(template, f"u{width}"), np.frombuffer(mask, f"u{width}")
    same = np.ones(len(rows), np.bool_)
    for word in np.flatnonzero(bits).tolist():
        same &= (rows[:, word] ^ wanted[word]) & bits[word] == 0
    return same


def _insides(buffer: memoryview, moofs: Rows) -> tuple[Rows, Mask]:
    """Rows of the insides of fragments, and which of them are damaged."""
    damaged = np.zeros(len(moofs), np.bool_)
    out = [np.zeros(0, ROW)]
    for number, moof in enumerate(moofs):
        found = inside_of(buffer, int(moof["offset"]), int(moof["size"]))
        damaged[number] = found is None
        if found is not None:
            out.append(np.array(found.rows, ROW))
    return np.concatenate(out), damaged


class Inside(NamedTuple):
    """What stands inside of one fragment.

    Attributes:
        rows: fields of `ROW` of each box, in file order; not of `PASSED`.
        deciding: (start, stop) of bytes that decide where boxes are, from the moof's start.
    """

    rows: list[tuple[int, int, int, int, int, bool, bool]]
    deciding: list[tuple[int, int]]


def inside_of(buffer: memoryview, offset: int, size: int) -> Inside | None:
    """The boxes inside a moof, or None where a child breaks its parent.

    >>> inside_of(memoryview(bytes.fromhex("0000000c 6d6f6f66 00000000")), 0, 12).rows
    []
    """
    found = Inside([], [])
    status, _, _, header = header_at(buffer, offset, offset + size)
    found.deciding.append((0, header))
    whole = status == DONE and _note_inside(
        found, buffer, offset, (offset + header, offset + size), 1
    )
    return found if whole else None


def _note_inside(
    found: Inside, buffer: memoryview, offset: int, span: tuple[int, int], depth: int
) -> bool:
    """Note the boxes of a span; False where one breaks the rules."""
    at, stop = span
    while stop - at >= 8:
        status, length, kind, header = header_at(buffer, at, stop)
        found.deciding.append((at - offset, at - offset + max(header, 8)))
        if status == DONE and length == 0 and kind == 0:
            return True  # padding of zero bytes, as QuickTime's terminator
        if status != DONE or length == 0 or length > stop - at:
            return False
        if kind not in _PASSED:
            found.rows.append((at, length, kind, header, depth, False, False))
        if depth < MAX_DEPTH and kind in _CONTAINERS:
            inner = at + header, at + length
            if not _note_inside(found, buffer, offset, inner, depth + 1):
                return False
        at += length
    return True
