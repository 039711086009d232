"""Sample groups of a source in a copy: the same descriptions, and the group of each sample.

A source says them in its sample table or in its fragments, of any type, run by run or by patterns
(ISO/IEC 14496-12, 8.9); copies say them run by run. Those of fragments that speak of access points
are in the index.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np

from fragdex.boxes import Box, make_box, parse_box
from fragdex.fragments.table import FragmentFlags, Int64
from fragdex.indexing.groups import LOCAL, MAX_GROUPS, Patterns
from fragdex.muxing.between import Trafs, said_of
from fragdex.record import record
from fragdex.seeking.model import Track

MOST_GROUPINGS: Final = 16
"""Types of groups of a track that come along; each takes memory by the number of samples."""
_ROW: Final = np.dtype([("sample_count", ">u4"), ("group_description_index", ">u4")])


@record(frozen=True, eq=False)
class Grouping:
    """The groups of one type, of the samples of a track.

    Attributes:
        version, parameter: of the sbgp, version 1 has a grouping_type_parameter.
        index: int64 group_description_index of each sample; 0: it is in none.
    """

    description: Box
    version: int
    parameter: int
    index: Int64

    def __post_init__(self) -> None:
        changes = np.zeros(len(self.index), np.int32)
        np.cumsum(np.diff(self.index) != 0, out=changes[1:])
        some = np.zeros(len(self.index) + 1, np.int32)
        np.cumsum(self.index != 0, out=some[1:])
        object.__setattr__(self, "_changes", changes)
        object.__setattr__(self, "_some", some)

    @property
    def kind(self) -> str:
        """The grouping_type."""
        return str(self.description["grouping_type"])

    def rows(self, which: slice | Int64) -> Grouping:
        """The groups of some of the samples."""
        return Grouping(self.description, self.version, self.parameter, self.index[which])

    def sizes(self, low: Int64, high: Int64) -> Int64:
        """Bytes of the sbgp of runs of samples (high exclusive); 0 where none of them is in one."""
        if not len(self.index):
            return np.zeros(len(low), np.int64)
        changes, some = self._changes, self._some  # type: ignore[attr-defined]
        last = len(self.index) - 1
        runs = (
            1
            + changes[np.minimum(np.maximum(high - 1, low), last)]
            - changes[np.minimum(low, last)].astype(np.int64)
        )
        head = 20 + 4 * self.version
        return np.where(some[high] > some[low], head + 8 * runs, 0)

    def box(self, low: int, high: int) -> Box | None:
        """The same as a box; None where none of the samples is in a group."""
        data = self.sbgp(low, high)
        return parse_box(data) if data else None

    def sbgp(self, low: int, high: int) -> bytes:
        """The sbgp of samples `low` to `high` (exclusive); nothing where none of them is in one."""
        index = self.index[low:high]
        if not index.any():
            return b""
        edges = np.concatenate([[0], np.flatnonzero(np.diff(index)) + 1, [len(index)]])
        rows = np.empty(len(edges) - 1, _ROW)
        rows["sample_count"], rows["group_description_index"] = np.diff(edges), index[edges[:-1]]
        kind = self.kind.encode("latin-1")
        about = kind + (struct.pack(">I", self.parameter) if self.version else b"")
        size = 16 + len(about) + rows.nbytes
        head = struct.pack(">I4sI", size, b"sbgp", self.version << 24) + about
        return head + struct.pack(">I", len(rows)) + rows.tobytes()


def groupings_of(
    track: Track, trak: Box | None, numbers: Int64, trafs: Trafs = MappingProxyType({})
) -> tuple[Grouping, ...]:
    """The groups of some samples of a track.

    Args:
        numbers: of the samples in the track, from 0.
    """
    stbl = None if trak is None else trak.find("mdia/minf/stbl")
    virtual = (track.fragments.flags & FragmentFlags.VIRTUAL) != 0
    if virtual.all() and stbl is not None:
        return tuple(_of_table(stbl, numbers))[:MOST_GROUPINGS]
    return (*_of_index(track, numbers), *_of_trafs(track, stbl, trafs, numbers))


def _of_table(stbl: Box, numbers: Int64) -> list[Grouping]:
    described = {box["grouping_type"]: box for box in stbl.find_all("sgpd") if not box.opaque}
    found: list[Grouping] = []
    boxes = [box for box in stbl.children if box.type in ("sbgp", "csgp")]
    for box in boxes[:MOST_GROUPINGS]:
        kind = box.get("grouping_type")
        if box.opaque or kind not in described:
            continue
        index = _of_patterns(box, numbers) if box.type == "csgp" else _of_runs(box, numbers)
        if index is None:
            continue
        version = int((box.type == "csgp" and "grouping_type_parameter" in box) or box["version"])
        parameter = int(box.get("grouping_type_parameter", 0))
        found.append(Grouping(described[kind], version, parameter, index))
    return found


def _of_runs(sbgp: Box, numbers: Int64) -> Int64 | None:
    if "entries" not in sbgp:
        return None
    rows = sbgp["entries"]
    ends = np.cumsum(rows["sample_count"].astype(np.int64))
    own = rows["group_description_index"].astype(np.int64)
    if (own > LOCAL).any():
        return None
    return np.append(own, 0)[np.searchsorted(ends, numbers, side="right")]


def _of_patterns(csgp: Box, numbers: Int64) -> Int64 | None:
    """The same of the compact form (8.9.5): the indices of a pattern repeat over its samples.

    None: it names descriptions of a fragment, or a pattern has no index.
    """
    patterns = Patterns.of(csgp)
    if patterns is None or (patterns.index > LOCAL).any():
        return None
    return patterns.at(numbers)


def _of_index(track: Track, numbers: Int64) -> list[Grouping]:
    """Pre-roll and access points (10.1, 10.4), as the index has read them."""
    found = []
    for kind in ("roll", "rap "):
        groups = [group for group in track.groups if group.grouping_type == kind]
        if not groups:
            continue
        start = np.array([group.sample_start for group in groups])
        count = np.array([group.sample_count for group in groups])
        value = np.array([group.value for group in groups])
        values, place = np.unique(value, return_inverse=True)
        index = _spread(start, count, place + 1, numbers)
        length, signed = (2, True) if kind == "roll" else (1, False)
        coded = values if signed else np.where(values > 0, values | 0x80, 0)
        entries = [{"data": int(v).to_bytes(length, "big", signed=signed)} for v in coded]
        sgpd = make_box(
            "sgpd", version=1, grouping_type=kind, default_length=length, entries=entries
        )
        found.append(Grouping(sgpd, 0, 0, index))
    return found


def _spread(start: Int64, count: Int64, value: Int64, numbers: Int64) -> Int64:
    """The values of runs of samples for some samples; 0 where there is no run."""
    order = np.argsort(start, kind="stable")
    start, stop, value = start[order], (start + count)[order], value[order]
    which = np.searchsorted(start, numbers, side="right") - 1
    inside = (which >= 0) & (numbers < stop[which])
    return np.where(inside, value[which], 0)


def _of_trafs(track: Track, stbl: Box | None, trafs: Trafs, numbers: Int64) -> list[Grouping]:
    """Groups of other types, with the descriptions of the moov and of all fragments as one sgpd.

    A type that names a description which cannot be read is not among them.
    """
    data: dict[str, dict[bytes, int]] = {}
    known = _numbered([] if stbl is None else [*stbl.find_all("sgpd")], data)
    runs: dict[tuple[str, int, int], list[tuple[Int64, Int64, Int64]]] = {}
    unknown: set[str] = set()
    for first, samples, boxes in said_of(track, trafs):
        local = _numbered([box for box in boxes if box.type == "sgpd"], data)
        for box in boxes:
            if box.type not in ("sbgp", "csgp"):
                continue
            kind, parameter = str(box["grouping_type"]), int(box.get("grouping_type_parameter", 0))
            count, index = _counted(box, samples)
            here, there = _picked(local.get(kind), index - LOCAL), _picked(known.get(kind), index)
            own = np.where(index > LOCAL, here, there)
            if (own < 0).any():
                unknown.add(kind)
            version = int("grouping_type_parameter" in box)
            start = first + np.cumsum(count) - count
            runs.setdefault((kind, version, parameter), []).append((start, count, own))
    found = []
    for (kind, version, parameter), several in list(runs.items())[:MOST_GROUPINGS]:
        if kind not in unknown:
            start, count, own = (np.concatenate(column) for column in zip(*several, strict=True))
            index = _spread(start, count, own, numbers)
            found.append(Grouping(_described(kind, [*data[kind]]), version, parameter, index))
    return found


def _numbered(sgpds: Iterable[Box], data: dict[str, dict[bytes, int]]) -> dict[str, Int64]:
    """Numbers from 1 of the descriptions of each type, which `data` has each once."""
    numbers: dict[str, Int64] = {}
    for box in sgpds:
        if "entries" in box and not box.get("default_group_description_index"):
            own = data.setdefault(str(box["grouping_type"]), {})
            each = [own.setdefault(bytes(one["data"]), len(own) + 1) for one in box["entries"]]
            numbers[str(box["grouping_type"])] = np.array(each, np.int64)
    return numbers


def _picked(numbers: Int64 | None, index: Int64) -> Int64:
    """The number for each index from 1; 0 stays, and -1 where there is none."""
    each = np.array([0, *(() if numbers is None else numbers), -1], np.int64)
    return each[np.clip(index, 0, len(each) - 1)]


def _counted(box: Box, samples: int) -> tuple[Int64, Int64]:
    """Samples of each run in an sbgp or csgp of so many samples, and its index."""
    if box.type == "csgp":
        patterns = Patterns.of(box)
        nothing = np.zeros(0, np.int64)
        return (nothing, nothing) if patterns is None else patterns.runs(samples, MAX_GROUPS)
    rows = box["entries"]
    return rows["sample_count"].astype(np.int64), rows["group_description_index"].astype(np.int64)


def descriptions_of_groups(groupings: Sequence[Grouping]) -> list[Box]:
    """The sgpd boxes, each once."""
    boxes: dict[int, Box] = {id(one.description): one.description for one in groupings}
    return list(boxes.values())


def _described(kind: str, data: Sequence[bytes]) -> Box:
    """The sgpd of descriptions."""
    lengths = {len(one) for one in data}
    length = lengths.pop() if len(lengths) == 1 else 0
    entries = [
        {"data": one} if length else {"description_length": len(one), "data": one} for one in data
    ]
    return make_box("sgpd", version=1, grouping_type=kind, default_length=length, entries=entries)


def joined_groupings(parts: Sequence[tuple[int, Sequence[Grouping]]]) -> tuple[Grouping, ...]:
    """The groups of tracks one after the other: each type with the descriptions of all of them.

    A type of which one of them has descriptions without lengths, or one that holds by default
    (versions 0, 2 and 3), is not among them.
    """
    keys = {(one.kind, one.parameter): one.version for _, part in parts for one in part}
    joined = []
    for key, version in keys.items():
        mine = [
            (count, next((one for one in part if (one.kind, one.parameter) == key), None))
            for count, part in parts
        ]
        if any(one is not None and one.description["version"] != 1 for _, one in mine):
            continue
        data: dict[bytes, int] = {}
        columns = []
        for count, one in mine:
            entries = () if one is None else one.description["entries"]
            numbers = [data.setdefault(bytes(e["data"]), len(data) + 1) for e in entries]
            own = np.zeros(count, np.int64) if one is None else one.index
            columns.append(np.array([0, *numbers])[np.where(own <= len(numbers), own, 0)])
        sgpd = _described(key[0], [*data])
        joined.append(Grouping(sgpd, version, key[1], np.concatenate(columns)))
    return tuple(joined)
