"""The fixed fields of many boxes of one kind at once, at the offsets that the declaration gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fragdex.boxes.layout import BoxLayout
from fragdex.boxes.rows import Rows
from fragdex.boxes.tfdt import TFDT
from fragdex.boxes.tfhd import TFHD
from fragdex.boxes.trun import TRUN
from fragdex.fragments.hop import join
from fragdex.fragments.table import Int64

__all__ = ["Group", "groups_of"]


@dataclass(slots=True)
class Group:
    """Boxes of one kind that share version and flags, as far as these decide the layout.

    Attributes:
        version, flags: of all of them; flags that change no layout are left out.
        rows: which of the boxes asked for: an array of row numbers.
        width: bytes of version, flags and fixed fields; the table of rows follows.
        short: whether these boxes are too short for their fields; then `fields` is empty.
        fields: name → int64 values, one a row.
    """

    version: int
    flags: int
    rows: Int64
    width: int
    short: bool
    fields: dict[str, Int64]


def _deciding_flags(layout: BoxLayout) -> int:
    """The flag bits that decide which fields a box has; others must not split groups."""
    mask = 0
    for declared in layout.fields:
        mask |= declared.flag
        kinds = declared.kind.values() if isinstance(declared.kind, dict) else [declared.kind]
        for kind in kinds:
            if isinstance(kind, Rows):
                for _, _, flag in kind.columns:
                    mask |= flag
    return mask


_DECIDING = {layout.code: _deciding_flags(layout) for layout in (TFHD, TFDT, TRUN)}


@dataclass(frozen=True, slots=True)
class _Shape:
    """The fixed fields under one version and flags."""

    width: int
    names: tuple[str, ...]
    dtype: npt.DTypeLike


_SHAPES: dict[tuple[str, int], _Shape] = {}


def _shape(layout: BoxLayout, word: int) -> _Shape:
    """Bounded: the deciding bits of a kind make a few hundred words at most."""
    key = (layout.code, word)
    if key not in _SHAPES:
        places = layout.offsets(word >> 24, word & 0xFFFFFF)
        fixed = {name: place for name, place in places.items() if place[1].names is None}
        width = max((offset + dtype.itemsize for offset, dtype in fixed.values()), default=4)
        dtype = np.dtype(
            {
                "names": list(fixed),
                "formats": [dtype for _, dtype in fixed.values()],
                "offsets": [offset for offset, _ in fixed.values()],
                "itemsize": width,
            }
        )
        _SHAPES[key] = _Shape(width, tuple(fixed), dtype)
    return _SHAPES[key]


def groups_of(
    buffer: memoryview, at: Int64, room: Int64, layout: BoxLayout
) -> tuple[npt.NDArray[np.uint32], list[Group]]:
    """Read the fixed fields of many boxes of one kind.

    Args:
        buffer: holds the boxes.
        at: where each body (version and flags) starts.
        room: bytes of each body.
        layout: the declaration.

    Returns: version and flags of each box as one number (0 where there is no room for them), and
    the boxes group by group.
    """
    n = len(at)
    if not n:
        return np.zeros(0, np.uint32), []
    least = int(room.min())
    if least < 4:
        return _some_without_room(buffer, at, room, layout)
    # One join serves every group whose fixed fields fit into the shortest box.
    common = min(least, 32)
    table = np.frombuffer(join(buffer, at, common), np.uint8).reshape(n, common)
    words = table[:, :4].copy().view(">u4")[:, 0].astype(np.uint32)
    # From version 1 on these layouts do not change any more.
    kinds = np.minimum(words & np.uint32(0xFF000000 | _DECIDING[layout.code]), 0x01FFFFFF)
    groups = []
    for word, rows in _alike(kinds):
        shape = _shape(layout, word)
        every = len(rows) == n
        if shape.width > common:
            fits = room[rows] >= shape.width
            if not fits.all():
                groups.append(Group(word >> 24, word & 0xFFFFFF, rows[~fits], 0, True, {}))
                rows = rows[fits]
            read = np.frombuffer(join(buffer, at[rows], shape.width), shape.dtype)
        else:
            chosen = table if every else table[rows]
            read = np.ascontiguousarray(chosen[:, : shape.width]).view(shape.dtype)[:, 0]
        fields = {name: read[name].astype(np.int64) for name in shape.names}
        groups.append(Group(word >> 24, word & 0xFFFFFF, rows, shape.width, False, fields))
    return words, groups


def _some_without_room(
    buffer: memoryview, at: Int64, room: Int64, layout: BoxLayout
) -> tuple[npt.NDArray[np.uint32], list[Group]]:
    enough = np.flatnonzero(room >= 4)
    some, groups = groups_of(buffer, at[enough], room[enough], layout)
    words = np.zeros(len(at), np.uint32)
    words[enough] = some
    for group in groups:
        group.rows = enough[group.rows]
    groups.append(Group(0, 0, np.flatnonzero(room < 4), 0, True, {}))
    return words, groups


def _alike(words: npt.NDArray[np.uint32]) -> Iterator[tuple[int, Any]]:
    """Each different value, and the numbers of the rows that have it."""
    if (words == words[0]).all():
        yield int(words[0]), np.arange(len(words))
        return
    order = np.argsort(words, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(words[order])) + 1):
        yield int(words[rows[0]]), rows
