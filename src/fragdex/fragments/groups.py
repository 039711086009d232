"""Access-point groups: open-GOP pictures (`rap `) and pre-roll (`roll`), kept beside sync samples.

sgpd describes groups, sbgp names the group of each sample, in the moov for its own samples and in
each traf for those of the fragment (ISO/IEC 14496-12, 8.9, 10.1 and 10.4). All other grouping
types, such as the keys of common encryption, are not read here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fragdex.boxes import Box, parse_box
from fragdex.errors import FormatError
from fragdex.fragments.headers import code
from fragdex.fragments.hop import join
from fragdex.fragments.table import Int64

__all__ = ["GroupBox", "SampleGroup", "fragment_groups", "group_boxes", "movie_groups"]

TYPES = ("rap ", "roll")
SBGP, SGPD = code("sbgp"), code("sgpd")
LOCAL = 0x10000
"""Indexes above this one name a description in the fragment's own sgpd (8.9.2.3)."""
MAX_GROUPS = 1 << 20
"""Group runs kept of one track."""


@dataclass(frozen=True, slots=True)
class SampleGroup:
    """A run of samples in an access-point group (ISO/IEC 14496-12, 10.1 and 10.4).

    Attributes:
        grouping_type: `rap ` (open-GOP access point) or `roll` (pre-roll), with the space.
        sample_start: number of the first sample in the track.
        sample_count: samples in the run.
        value: roll_distance in samples for `roll`; num_leading_samples for `rap ` (0: unknown).

    >>> SampleGroup("roll", 0, 10, -1).value
    -1
    """

    grouping_type: str
    sample_start: int
    sample_count: int
    value: int


@dataclass(frozen=True, slots=True)
class GroupBox:
    """An sbgp or sgpd of a fragment: number of its traf in the batch, and its bytes."""

    traf: int
    data: bytes


def group_boxes(
    buffer: memoryview, offset: Int64, size: Int64, body: Int64, traf: Int64
) -> list[GroupBox]:
    """The sbgp or sgpd boxes that speak of access points, out of many."""
    enough = size >= 24
    if not enough.any():
        return []
    words = np.frombuffer(join(buffer, body[enough] + 4, 4), "S4")
    wanted = np.flatnonzero(enough)[(words == b"rap ") | (words == b"roll")]
    return [
        GroupBox(int(traf[i]), bytes(buffer[int(offset[i]) : int(offset[i] + size[i])]))
        for i in wanted.tolist()
    ]


def movie_groups(stbl: Box) -> tuple[SampleGroup, ...]:
    """The access-point groups of the samples that a moov names."""
    known = _descriptions(stbl.find_all("sgpd"))
    found: list[SampleGroup] = []
    for sbgp in stbl.find_all("sbgp"):
        found += _runs(sbgp, 0, known, {})
    return tuple(found)


def fragment_groups(
    boxes: Sequence[GroupBox], first_sample: Int64, movie: Box | None
) -> tuple[SampleGroup, ...]:
    """The access-point groups of one track's fragments.

    Args:
        boxes: sbgp and sgpd boxes of its trafs; `traf` counts in `first_sample`.
        first_sample: number in the track of each traf's first sample.
        movie: the track's stbl, whose descriptions fragments may name.
    """
    known = _descriptions(movie.find_all("sgpd")) if movie is not None else {}
    local: dict[int, dict[tuple[str, int], int]] = {}
    runs: list[tuple[int, Box]] = []
    for one in boxes[:MAX_GROUPS]:
        try:
            box = parse_box(one.data)
        except FormatError:
            continue
        if box.type == "sgpd":
            local.setdefault(one.traf, {}).update(_descriptions([box]))
        else:
            runs.append((one.traf, box))
    found: list[SampleGroup] = []
    for traf, sbgp in runs:
        found += _runs(sbgp, int(first_sample[traf]), known, local.get(traf, {}))
    return _joined(found)


def _descriptions(boxes: Iterable[Box]) -> dict[tuple[str, int], int]:
    """(grouping type, index from 1) → value."""
    found: dict[tuple[str, int], int] = {}
    for box in boxes:
        kind = box.get("grouping_type")
        if kind not in TYPES:
            continue
        if "entries" in box:
            entries = [bytes(entry["data"]) for entry in box["entries"]]
        else:
            width = 2 if kind == "roll" else 1
            data = bytes(box.get("data", b""))
            entries = [data[i : i + width] for i in range(0, len(data) - width + 1, width)]
        for index, entry in enumerate(entries, 1):
            if kind == "roll" and len(entry) >= 2:
                found[kind, index] = int.from_bytes(entry[:2], "big", signed=True)
            elif kind == "rap " and entry:
                # The first bit says whether the number of leading samples is known.
                found[kind, index] = entry[0] & 0x7F if entry[0] & 0x80 else 0
    return found


def _runs(
    sbgp: Box,
    first: int,
    known: dict[tuple[str, int], int],
    local: dict[tuple[str, int], int],
) -> list[SampleGroup]:
    kind = sbgp.get("grouping_type")
    if kind not in TYPES or "entries" not in sbgp:
        return []
    found, at = [], first
    for row in sbgp["entries"][:MAX_GROUPS]:
        count, index = int(row["sample_count"]), int(row["group_description_index"])
        value = local.get((kind, index - LOCAL)) if index > LOCAL else known.get((kind, index))
        if index and value is not None and count:
            found.append(SampleGroup(kind, at, count, value))
        at += count
    return found


def _joined(groups: list[SampleGroup]) -> tuple[SampleGroup, ...]:
    """Runs that continue each other become one."""
    out: dict[tuple[str, int, int], SampleGroup] = {}
    for group in groups:
        before = out.pop((group.grouping_type, group.value, group.sample_start), None)
        if before is not None:
            count = before.sample_count + group.sample_count
            group = replace(before, sample_count=count)
        end = group.sample_start + group.sample_count
        out[group.grouping_type, group.value, end] = group
    return tuple(sorted(out.values(), key=lambda g: (g.sample_start, g.grouping_type)))
