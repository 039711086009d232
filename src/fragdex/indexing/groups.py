"""Access-point groups: open-GOP pictures (`rap `) and pre-roll (`roll`), apart from sync samples.

sgpd describes groups, sbgp names the group of each sample, or csgp by patterns, in the moov for its
own samples and in each traf for those of the fragment (ISO/IEC 14496-12, 8.9, 10.1 and 10.4). All
other grouping types, such as the keys of common encryption, are not read here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias

import numpy as np

from fragdex.boxes import Box, parse_box
from fragdex.errors import FormatError
from fragdex.fragments.table import NULL, Int64
from fragdex.fragments.track_info import SampleGroup
from fragdex.indexing.headers import code
from fragdex.indexing.native import join
from fragdex.record import record

TYPES = ("rap ", "roll")
SBGP, SGPD, CSGP = code("sbgp"), code("sgpd"), code("csgp")
LOCAL = 0x10000
"""Indexes above this one name a description in the fragment's own sgpd (8.9.2.3)."""
_COMPACT_LOCAL = 0x80
"""The flag of a csgp whose indexes name one by their first bit (8.9.5.3)."""
MAX_GROUPS = 1 << 20
"""Group runs kept of one track."""
LEFT = frozenset(["sgpd"])
"""Boxes whose entries are many and small; they are read here and not one by one."""

Columns: TypeAlias = tuple[Int64, Int64, Int64, Int64]


@record(frozen=True, slots=True)
class GroupBox:
    """An sbgp, csgp or sgpd of a fragment: number of its traf in the batch, and its bytes."""

    traf: int
    data: bytes


def group_boxes(
    buffer: memoryview, offset: Int64, size: Int64, body: Int64, traf: Int64
) -> list[GroupBox]:
    """The sbgp, csgp or sgpd boxes that speak of access points, out of many."""
    enough = size >= 24
    if not enough.any():
        return []
    words = np.frombuffer(join(buffer, body[enough] + 4, 4), "S4")
    wanted = np.flatnonzero(enough)[(words == b"rap ") | (words == b"roll")]
    return [
        GroupBox(int(traf[i]), bytes(buffer[int(offset[i]) : int(offset[i] + size[i])]))
        for i in wanted.tolist()
    ]


@record(frozen=True, slots=True, eq=False)
class Patterns:
    """What a csgp says: indexes that repeat over samples.

    Attributes:
        length: int64 indexes of each pattern.
        count: int64 samples over which they repeat.
        index: int64 group_description_index of all patterns, one after the other; above
            `LOCAL` those of the fragment's own descriptions.
    """

    length: Int64
    count: Int64
    index: Int64

    @classmethod
    def of(cls, csgp: Box) -> Patterns | None:
        """Those of a box; None: it cannot be read, or a pattern has no index."""
        if "patterns" not in csgp:
            return None
        rows = csgp["patterns"]
        length, count = (rows[n].astype(np.int64) for n in ("pattern_length", "sample_count"))
        index = np.asarray(csgp["sample_group_description_index"], np.int64)
        if not len(index) or not length.all() or length.sum() > len(index):
            return None
        if csgp["flags"] & _COMPACT_LOCAL:
            first = 1 << (4 << (csgp["flags"] & 3)) - 1
            index = np.where(index & first, LOCAL + (index & (first - 1)), index)
        return cls(length, count, index)

    def at(self, numbers: Int64) -> Int64:
        """The index of samples, by their numbers from 0; 0 after all patterns."""
        ends = np.cumsum(self.count)
        which = np.searchsorted(ends, numbers, side="right")
        inside = np.minimum(which, len(ends) - 1)
        turn = (numbers - (ends - self.count)[inside]) % self.length[inside]
        return np.where(which < len(ends), self.index[self._first[inside] + turn], 0)

    def runs(self, samples: int, most: int) -> tuple[Int64, Int64]:
        """Samples of each run and its index, of the first `samples`, at most so many runs."""
        ends = np.minimum(np.cumsum(self.count), samples)
        count = np.diff(ends, prepend=0)
        changes = np.append(0, np.cumsum(np.diff(self.index) != 0))
        is_even = changes[self._first + self.length - 1] == changes[self._first]
        runs = np.where(is_even, np.minimum(count, 1), count)
        runs = np.diff(np.minimum(np.cumsum(runs), most), prepend=0)
        which = np.repeat(np.arange(len(runs)), runs)
        inside = np.arange(len(which)) - np.repeat(np.cumsum(runs) - runs, runs)
        index = self.index[self._first[which] + inside % self.length[which]]
        return np.where(is_even, count, 1)[which], index

    @property
    def _first(self) -> Int64:
        return np.cumsum(self.length) - self.length


def movie_groups(stbl: Box, samples: int) -> tuple[SampleGroup, ...]:
    """The access-point groups of the samples that a moov names, of so many samples."""
    known = _descriptions(map(_body, stbl.find_all("sgpd")))
    boxes = list(stbl.find_all("sbgp"))
    for csgp in stbl.find_all("csgp"):
        body = bytes(_body(csgp))
        if body[4:8].decode("latin-1") not in TYPES:
            continue
        with suppress(FormatError):
            boxes.append(parse_box(struct.pack(">I4s", 8 + len(body), b"csgp") + body))
    parts = _runs_of([(box, 0, samples, {}) for box in boxes], known)
    return tuple(group for part in parts for group in _listed(*part))


def fragment_groups(
    boxes: Sequence[GroupBox], first_sample: Int64, samples: Int64, movie: Box | None
) -> tuple[SampleGroup, ...]:
    """The access-point groups of one track's fragments.

    Args:
        boxes: sbgp, csgp and sgpd boxes of its trafs; `traf` counts in `first_sample`.
        first_sample: number in the track of each traf's first sample.
    """
    known = _descriptions(map(_body, movie.find_all("sgpd"))) if movie is not None else {}
    local: dict[int, list[memoryview]] = {}
    runs: list[tuple[int, Box]] = []
    for one in boxes[:MAX_GROUPS]:
        try:
            box = parse_box(one.data, leave=LEFT)
        except FormatError:
            continue
        if box.type == "sgpd":
            local.setdefault(one.traf, []).append(_body(box))
        else:
            runs.append((one.traf, box))
    described = {traf: _descriptions(bodies) for traf, bodies in local.items()}
    placed = [
        (box, int(first_sample[traf]), int(samples[traf]), described.get(traf, {}))
        for traf, box in runs
    ]
    return _joined(list(_runs_of(placed, known)))


def _body(box: Box) -> memoryview:
    """The bytes of a box that is left as it is."""
    return memoryview(box.get("data", b""))


def _descriptions(bodies: Iterable[memoryview]) -> dict[str, Int64]:
    """Grouping type → value of each description; NULL where it is too short to have one.

    What a later sgpd describes stands for what an earlier one does. Entries are not read one by
    one: of each two bytes count (10.1 and 10.4).
    """
    descriptions: dict[str, Int64] = {}
    for body in bodies:
        kind = bytes(body[4:8]).decode("latin-1")
        values = _values(kind, body) if kind in TYPES else None
        if values is not None:
            before = descriptions.get(kind, values[:0])[len(values) :]
            descriptions[kind] = np.concatenate([values, before]) if len(before) else values
    return descriptions


def _values(kind: str, body: memoryview) -> Int64 | None:
    """The values of an sgpd's descriptions (8.9.3.2); None where it breaks the rules."""
    version, least = body[0], 2 if kind == "roll" else 1
    if version > 3 or len(body) < 12:
        return None
    if not version:
        # No length is given: entries of the shortest form follow each other.
        data, length, count = body[12:], least, (len(body) - 12) // least
    else:
        at = 16 if version > 1 else 12
        length = int.from_bytes(body[8:12], "big")
        count, data = int.from_bytes(body[at : at + 4], "big"), body[at + 4 :]
        if not length:
            return _uneven(kind, data, count)
        if len(body) < at + 4 or count * length > len(data):
            return None
        if length < least:
            return np.full(count, NULL)
    entries = np.frombuffer(data, np.uint8, count * length).reshape(count, length)
    first = entries[:, 0].astype(np.int64)
    if kind == "roll":
        return (first << 8 | entries[:, 1]) - (first >> 7 << 16)
    # The first bit says whether the number of leading samples is known.
    return np.where(first & 0x80, first & 0x7F, 0)


def _uneven(kind: str, data: memoryview, count: int) -> Int64 | None:
    """The values of descriptions that stand after their own lengths."""
    if count * 4 > len(data):
        return None
    numbers, at = np.full(count, NULL), 0
    for index in range(count):
        if at + 4 > len(data):
            return None
        length = int.from_bytes(data[at : at + 4], "big")
        entry = data[at + 4 : at + 4 + min(length, 2)]
        at += 4 + length
        if at > len(data):
            return None
        if kind == "roll" and length >= 2:
            numbers[index] = int.from_bytes(entry, "big", signed=True)
        elif kind == "rap " and length:
            numbers[index] = entry[0] & 0x7F if entry[0] & 0x80 else 0
    return numbers


def _runs_of(
    boxes: Iterable[tuple[Box, int, int, Mapping[str, Int64]]], known: Mapping[str, Int64]
) -> Iterator[Columns]:
    """Runs of samples in a group: number of its type, first sample, samples, value.

    Args:
        boxes: sbgp or csgp, with the number of its first sample, its samples, and what the fragment
            describes.
        known: what the moov describes.
    """
    left = MAX_GROUPS  # a csgp of 30 bytes names any number of runs
    for box, first, samples, local in boxes:
        if box.get("grouping_type") not in TYPES:
            continue
        if box.type == "csgp":
            patterns = Patterns.of(box)
            if patterns is None:
                continue
            count, index = patterns.runs(samples, left)
            left -= len(count)
        elif "entries" in box:
            rows = box["entries"][:MAX_GROUPS]
            count = rows["sample_count"].astype(np.int64)
            index = rows["group_description_index"].astype(np.int64)
        else:
            continue
        yield _runs(box["grouping_type"], first, count, index, known, local)


def _runs(
    kind: str,
    first: int,
    count: Int64,
    index: Int64,
    known: Mapping[str, Int64],
    local: Mapping[str, Int64],
) -> Columns:
    nothing = np.zeros(0, np.int64)
    start = first + np.cumsum(count) - count
    inside = index > LOCAL
    value = _picked(known.get(kind, nothing), index)
    if inside.any():
        value = np.where(inside, _picked(local.get(kind, nothing), index - LOCAL), value)
    some = (value != NULL) & (count > 0)
    return np.full(int(some.sum()), TYPES.index(kind)), start[some], count[some], value[some]


def _picked(values: Int64, index: Int64) -> Int64:
    """The values that indexes from 1 name; NULL where there is none."""
    named = (index > 0) & (index <= len(values))
    picked = np.full(len(index), NULL)
    picked[named] = values[index[named] - 1]
    return picked


def _joined(parts: Sequence[Columns]) -> tuple[SampleGroup, ...]:
    """Runs in the order of their samples; those that continue each other become one."""
    if not parts:
        return ()
    kind, start, count, value = (np.concatenate(column) for column in zip(*parts, strict=True))
    if not len(kind):
        return ()
    order = np.lexsort((start, value, kind))
    kind, start, count, value = (column[order] for column in (kind, start, count, value))
    new = np.ones(len(kind), np.bool_)
    new[1:] = (np.diff(kind) != 0) | (np.diff(value) != 0) | (start[1:] != start[:-1] + count[:-1])
    heads = np.flatnonzero(new)
    count = np.add.reduceat(count, heads)
    kind, start, value = kind[heads], start[heads], value[heads]
    order = np.lexsort((kind, start))
    return tuple(_listed(kind[order], start[order], count[order], value[order]))


def _listed(kind: Int64, start: Int64, count: Int64, value: Int64) -> Iterator[SampleGroup]:
    columns = (column.tolist() for column in (kind, start, count, value))
    return (SampleGroup(TYPES[k], s, n, v) for k, s, n, v in zip(*columns, strict=True))
