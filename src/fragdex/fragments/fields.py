"""The fixed fields of many boxes of one kind at once, at the offsets that the declaration gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fragdex.boxes.fragments import TFDT, TFHD, TRUN
from fragdex.boxes.layout import BoxLayout
from fragdex.boxes.rows import Rows
from fragdex.fragments.hop import columns
from fragdex.fragments.table import Int64

__all__ = ["DECIDING", "Fixed", "Group", "fixed_fields", "groups_of"]


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


DECIDING = {layout.code: _deciding_flags(layout) for layout in (TFHD, TFDT, TRUN)}
"""Flag bits that decide which fields a box has, by its code."""


_WORD = np.dtype(">u4")


@dataclass(frozen=True, slots=True)
class Fixed:
    """The fixed fields under one version and flags."""

    width: int
    names: tuple[str, ...]
    places: tuple[tuple[int, np.dtype[Any]], ...]


_FIXED: dict[tuple[str, int], Fixed] = {}


def fixed_fields(layout: BoxLayout, word: int) -> Fixed:
    """The fixed fields of a box whose version and deciding flags make up `word`.

    What is kept is bounded: the deciding bits of a kind make a few hundred words at most.
    """
    key = (layout.code, word)
    if key not in _FIXED:
        places = layout.offsets(word >> 24, word & 0xFFFFFF)
        fixed = {name: place for name, place in places.items() if place[1].names is None}
        width = max((offset + dtype.itemsize for offset, dtype in fixed.values()), default=4)
        _FIXED[key] = Fixed(width, tuple(fixed), tuple(fixed.values()))
    return _FIXED[key]


_NEWER = 0x02000000
"""Stands for every version that no edition defines: who knows what such a box holds (4.2)?"""


def groups_of(
    buffer: memoryview, at: Int64, room: Int64, layout: BoxLayout
) -> tuple[Int64, list[Group]]:
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
        return np.zeros(0, np.int64), []
    if int(room.min()) < 4:
        return _some_without_room(buffer, at, room, layout)
    words = columns(buffer, at, [(0, _WORD)])[0]
    kinds = np.minimum(words & (0xFF000000 | DECIDING[layout.code]), _NEWER)
    groups = []
    for word, rows in _alike(kinds):
        if word == _NEWER:
            groups.append(Group(word >> 24, 0, rows, 0, True, {}))
            continue
        shape = fixed_fields(layout, word)
        fits = room[rows] >= shape.width
        if not fits.all():
            groups.append(Group(word >> 24, word & 0xFFFFFF, rows[~fits], 0, True, {}))
            rows = rows[fits]
        read = columns(buffer, at if len(rows) == n else at[rows], shape.places)
        fields = dict(zip(shape.names, read, strict=True))
        groups.append(Group(word >> 24, word & 0xFFFFFF, rows, shape.width, False, fields))
    return words, groups


def _some_without_room(
    buffer: memoryview, at: Int64, room: Int64, layout: BoxLayout
) -> tuple[Int64, list[Group]]:
    enough = np.flatnonzero(room >= 4)
    some, groups = groups_of(buffer, at[enough], room[enough], layout)
    words = np.zeros(len(at), np.int64)
    words[enough] = some
    for group in groups:
        group.rows = enough[group.rows]
    groups.append(Group(0, 0, np.flatnonzero(room < 4), 0, True, {}))
    return words, groups


def _alike(words: Int64) -> Iterator[tuple[int, Int64]]:
    """Each different value, and the numbers of the rows that have it."""
    if (words == words[0]).all():
        yield int(words[0]), np.arange(len(words))
        return
    order = np.argsort(words, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(words[order])) + 1):
        yield int(words[rows[0]]), rows
