"""Which boxes of a file are content, and which only say where samples lie and when.

A declaration in `fragdex.boxes` tells: what is not declared as structure, and what is not declared
at all, is content that a copy keeps or names. Fragments with such boxes are marked, so that whoever
writes a copy looks into those alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from fragdex.boxes import BoxLayout, layout_of
from fragdex.fragments.table import FragmentFlags, FragmentTable, Int64
from fragdex.indexing import native
from fragdex.indexing.headers import Rows, code

UUID = code("uuid")
_ALWAYS = frozenset(map(code, ("ftyp", "moov", "moof", "mdat", "mfra")))
"""Boxes at the top level that are read, or whose inside is."""
_KINDS = 1 << 12


def is_structure(layout: BoxLayout | None) -> bool:
    """Whether a box says nothing that a copy must keep: declared so, or only boxes inside."""
    if layout is None:
        return False
    counted = {layout.child_count} - {None}
    only_children = layout.children and {field.name for field in layout.fields} <= counted
    return layout.structure or only_children


@lru_cache(_KINDS)
def _structure(kind: int | bytes) -> bool:
    """Whether boxes of a type, or of a user type, are structure."""
    name = kind.hex() if isinstance(kind, bytes) else kind.to_bytes(4, "big").decode("latin-1")
    return is_structure(layout_of(name))


def says_more(kinds: Iterable[int], user_types: Iterable[bytes]) -> bool:
    """Whether there is content among the boxes inside a fragment."""
    return not all(map(_structure, user_types)) or not all(
        kind == UUID or _structure(kind) for kind in kinds
    )


def inside_says_more(buffer: memoryview, inner: Rows) -> bool:
    """The same of the rows of a walk inside of fragments."""
    user = inner[inner["type"] == UUID]
    ends = user["offset"].astype(np.int64) + user["header"]
    types = native.join(buffer, ends - 16, 16) if len(user) else b""
    users = {types[at : at + 16] for at in range(0, len(types), 16)}
    return says_more(set(inner["type"].tolist()), users)


def between(tops: Sequence[Rows]) -> Int64:
    """Where the boxes at the top level begin that are content, and are neither header nor data."""
    found = []
    for top in tops:
        types = top["type"]
        odd = np.ones(len(types), np.bool_)
        for kind in _ALWAYS:
            odd &= types != kind
        if odd.any():
            places = np.flatnonzero(odd)
            kinds = types[places]
            told = {kind: not _structure(kind) for kind in set(kinds.tolist())}
            places = places[[told[kind] for kind in kinds.tolist()]]
            found.append(top["offset"][places].astype(np.int64))
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def marked(table: FragmentTable, odd: Int64, more: bool) -> FragmentTable:
    """The rows of a track, with marks on those next to which content stands.

    Args:
        odd: where boxes at the top level begin that are content, rising.
    """
    if not len(table) or not (len(odd) or more):
        return table
    virtual = (table.flags & FragmentFlags.VIRTUAL) != 0
    flags = table.flags.copy()
    if more:
        flags[~virtual] |= np.uint32(FragmentFlags.BESIDE)
    if len(odd):
        # the row of the first moof after each box; where there is none, the last row
        real = np.flatnonzero(~virtual)
        order = real[np.argsort(table.moof_offset[real], kind="stable")]
        order = order if len(order) else np.array([len(table) - 1])
        after = np.searchsorted(table.moof_offset[order], odd)
        next_to = order[np.minimum(after, len(order) - 1)]
        flags[next_to] |= np.uint32(FragmentFlags.BETWEEN)
    return FragmentTable.of(table.columns() | {"flags": flags})
