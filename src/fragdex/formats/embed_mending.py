"""Boxes at a new place in the file: the fields that count from the start of the file, mended."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fragdex.box_header import read_header
from fragdex.boxes import Box, build, make_box, parse_box
from fragdex.byterange import ByteRange
from fragdex.errors import BuildError
from fragdex.formats.clip_movie import with_next_id
from fragdex.fragments.table import Int64
from fragdex.indexing.moov import plain_init

__all__ = ["Shifts", "mended_box", "mended_mfra", "needs_rebasing"]

BASE_DATA_OFFSET = 0x1
"""base-data-offset-present in tfhd's flags (ISO/IEC 14496-12, 8.8.7)."""


class Shifts:
    """Where positions of a file go when ranges of it are replaced by more or fewer bytes.

    Args:
        edits: (range, bytes that take its place); an empty range is an insertion, and what stands
            at its place moves behind it.

    >>> shifts = Shifts([(ByteRange(10, 10), 5), (ByteRange(20, 24), 0)])
    >>> shifts.of(np.array([9, 10, 30])).tolist()
    [9, 15, 31]
    """

    def __init__(self, edits: Iterable[tuple[ByteRange, int]]) -> None:
        changes = sorted((part.stop, size - part.size) for part, size in edits)
        self._edges = np.array([stop for stop, _ in changes], np.int64)
        self._growth = np.cumsum([0, *(grown for _, grown in changes)])

    def of(self, positions: Int64) -> Int64:
        """The new places of old positions; inside a replaced range they keep to its start."""
        moved: Int64 = positions + self._growth[np.searchsorted(self._edges, positions, "right")]
        return moved

    def one(self, position: int) -> int:
        """The new place of one position, which may lie anywhere in 64 bits."""
        place = int(np.searchsorted(self._edges, min(position, 1 << 62), "right"))
        return position + int(self._growth[place])


def mended_box(data: bytes, offset: int, shifts: Shifts) -> bytes:
    """A moov or meta with chunk offsets, auxiliary offsets and item locations moved.

    It grows where an offset needs 64 bits now (ISO/IEC 14496-12, 8.7.5, 8.7.9, 8.11.3).

    Raises:
        BuildError: an offset cannot be written any more.

    >>> table = make_box("stbl", children=[make_box("stco", entries=[(800,)])])
    >>> out = mended_box(build(table), 0, Shifts([(ByteRange(0, 0), 50)]))
    >>> parse_box(out).find("stco")["entries"]["chunk_offset"].tolist()
    [850]
    """
    data = plain_init(data)
    box = parse_box(data, offset=offset)
    mended = _mended(box, shifts)
    if mended.type == "moov":
        mended = with_next_id(mended)
    return data if mended is box else build(mended)


def _mended(box: Box, shifts: Shifts) -> Box:
    if box.type in ("stco", "co64") and not box.opaque:
        return _chunks(box, shifts)
    if box.type == "saio" and not box.opaque:
        return _auxiliary(box, shifts)
    if box.type == "iloc" and box.opaque:
        try:
            data = _locations(bytes(box["data"]), shifts)
        except IndexError:  # a damaged one, which names no item
            return box
        return box if data == box["data"] else box.replace(data=data)
    children = [_mended(child, shifts) for child in box.children]
    if all(new is old for new, old in zip(children, box.children, strict=True)):
        return box
    return box.replace(children=children)


def _chunks(box: Box, shifts: Shifts) -> Box:
    old = box["entries"]["chunk_offset"].astype(np.int64)
    new = shifts.of(old)
    if np.array_equal(old, new):
        return box
    rows = np.zeros(len(new), [("chunk_offset", ">u8")])
    rows["chunk_offset"] = new
    if box.type == "stco" and int(new.max()) >> 32:
        return make_box("co64", parent="stbl", flags=box["flags"], entries=rows)
    return box.replace(entries=rows)


def _auxiliary(box: Box, shifts: Shifts) -> Box:
    old = box["entries"]["offset"].astype(np.int64)
    new = shifts.of(old)
    if np.array_equal(old, new):
        return box
    rows = np.zeros(len(new), [("offset", ">u8")])
    rows["offset"] = new
    return box.replace(version=int(box["version"] or int(new.max()) >> 32 > 0), entries=rows)


def _locations(data: bytes, shifts: Shifts) -> bytes:
    """The content of an iloc: items that lie in the file itself are moved (8.11.3)."""
    version = data[0] if data else 255
    if version > 2 or len(data) < 8:
        return data
    widths = [data[4] >> 4, data[4] & 15, data[5] >> 4, data[5] & 15 if version else 0]
    offset_size, length_size, base_size, index_size = widths
    wide = 4 if version == 2 else 2
    out = bytearray(data)
    at = 6 + wide
    count = int.from_bytes(data[6:at], "big")

    def number(where: int, size: int) -> int:
        if where + size > len(data):
            raise IndexError(where)
        return int.from_bytes(data[where : where + size], "big")

    def put(where: int, size: int, value: int) -> None:
        if value >> 8 * size:
            raise BuildError("an item location does not fit any more", path="meta/iloc")
        out[where : where + size] = value.to_bytes(size, "big")

    for _ in range(count):
        at += wide
        method = 0
        if version:
            method = number(at, 2) & 15
            at += 2
        here = method == 0 and number(at, 2) == 0  # of this file, not of another one
        base_at = at + 2
        base = number(base_at, base_size)
        extents = number(base_at + base_size, 2)
        at = base_at + base_size + 2
        extent = index_size + offset_size + length_size
        places = [at + n * extent + index_size for n in range(extents if extent else 1)]
        at += extents * extent
        if not here:
            continue
        moves = [shifts.one(p) - p for p in (base + number(place, offset_size) for place in places)]
        if len(set(moves)) == 1 and base_size:
            put(base_at, base_size, base + moves[0])
        elif any(moves):
            for place, move in zip(places, moves, strict=True):
                put(place, offset_size, number(place, offset_size) + move)
    return bytes(out)


def mended_mfra(data: bytes, offset: int, shifts: Shifts) -> bytes:
    """An mfra with its moofs moved (8.8.10); times and numbers stay.

    >>> tfra = make_box("tfra", track_ID=1, entries=[(0, 800, 1, 1, 1)])
    >>> data = build(make_box("mfra", children=[tfra, make_box("mfro")]))
    >>> out = mended_mfra(data, 0, Shifts([(ByteRange(0, 0), 50)]))
    >>> parse_box(out).find("tfra")["entries"]["moof_offset"].tolist()
    [850]
    """
    mfra = parse_box(data, offset=offset)
    children = []
    for child in mfra.children:
        if child.type == "tfra" and not child.opaque and len(child["entries"]):
            old = child["entries"]
            place = shifts.of(old["moof_offset"].astype(np.int64))
            rows = np.zeros(len(old), [(name, np.int64) for name in old.dtype.names])
            for name in old.dtype.names:
                rows[name] = old[name]
            rows["moof_offset"] = place
            version = int(child["version"] or int(place.max()) >> 32 > 0)
            child = child.replace(version=version, entries=rows)
        children.append(child)
    mended = mfra.replace(children=children)
    size = len(build(mended))
    return build(
        mended.replace(children=[c.replace(size=size) if c.type == "mfro" else c for c in children])
    )


def needs_rebasing(moof: bytes, header: int) -> bool:
    """Whether a moof declares a base offset, or has auxiliary offsets, which may count from afar.

    Args:
        moof: all of it.
        header: bytes of its own header.

    >>> tfhd = make_box("tfhd", flags=1, track_ID=1, base_data_offset=800)
    >>> data = build(make_box("moof", children=[make_box("traf", children=[tfhd])]))
    >>> needs_rebasing(data, 8)
    True
    """
    return any(
        code == b"saio" or moof[body + 3] & BASE_DATA_OFFSET
        for traf, end in _inside(moof, header, len(moof), b"traf")
        for code in (b"tfhd", b"saio")
        for body, _ in _inside(moof, traf, end, code)
    )


def _inside(data: bytes, at: int, stop: int, code: bytes) -> list[tuple[int, int]]:
    """Bodies, as (start, stop), of the boxes of one type among the boxes from `at` to `stop`."""
    found: list[tuple[int, int]] = []
    while (header := read_header(data, at, stop)) is not None:
        if not header.fits(stop - at):
            break
        if header.type == code:
            found.append((at + header.length, at + header.size))
        at += header.size
    return found
