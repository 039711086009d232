"""Runs of samples (trun): read, summed up, and their sync samples found, thousands at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fragdex.boxes.fragments import (
    SAMPLE_DURATION,
    SAMPLE_FLAGS,
    SAMPLE_SIZE,
    TRUN,
)
from fragdex.fragments.fields import Group, groups_of
from fragdex.fragments.summing import RunKind, summed
from fragdex.fragments.table import NULL, Int64, Table, column

__all__ = [
    "RunDecoder",
    "RunDetails",
    "RunGroup",
    "Runs",
    "SyncPoints",
    "column_of",
]

MAX_COUNT_WITHOUT_ROWS = 1 << 24
"""Samples of a run that has no bytes for them; real runs of that kind hold seconds of PCM."""

Mask = npt.NDArray[np.bool_]
Samples = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Runs(Table):
    """One row per trun, in file order."""

    SCHEMA_NAME: ClassVar[str] = "runs"

    traf: Int64 = column("i8", "row", "row of Trafs")
    count: Int64 = column("i8", "sample", "samples")
    data_offset: Int64 = column("i8", "byte", "data_offset", nullable=True)
    size: Int64 = column("i8", "byte", "sum of the sample sizes")
    duration: Int64 = column("i8", "tick", "sum of the sample durations")
    cts_min: Int64 = column("i8", "tick", "least composition time, from the run's start")
    cts_end: Int64 = column("i8", "tick", "greatest composition time + duration, likewise")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SyncPoints(Table):
    """Sync samples, relative to their run; a row stands for `count` samples in a row."""

    SCHEMA_NAME: ClassVar[str] = "points"

    run: Int64 = column("i8", "row", "row of Runs")
    index: Int64 = column("i8", "sample", "in the run")
    dts: Int64 = column("i8", "tick", "from the run's start")
    cts: Int64 = column("i8", "tick", "from the run's start")
    step: Int64 = column("i8", "tick", "from one to the next")
    count: Int64 = column("i8", "sample", "how many")


@dataclass(slots=True)
class RunGroup:
    """Runs of one version and flags, and where their rows of samples lie."""

    rows: Int64
    at: Int64
    flags: int
    stride: int
    first_flags: Int64 | None


@dataclass(slots=True)
class RunDetails:
    """What is needed to write out every sample of every run of a batch."""

    buffer: memoryview
    count: Int64
    default_duration: Int64
    default_size: Int64
    default_flags: Int64
    groups: list[RunGroup]


def column_of(table: Samples, flags: int, mask: int) -> Samples | None:
    """One column of the samples of runs with these flags, or None where they have it not."""
    if not flags & mask:
        return None
    # Columns stand in the order of their flag bits.
    return table[:, (flags & 0xF00 & (mask - 1)).bit_count()]


class RunDecoder:
    """Reads truns and sums them up, group by group of equal version and flags.

    Args:
        buffer: holds the truns.
        owner: number of the traf of each.
        duration, size, flags: the defaults that hold for each (tfhd over trex); durations are
            `signed`.
        missing: name of a default → the runs whose default is not known.
        keep_groups: keep what `details` needs.
    """

    def __init__(
        self,
        buffer: memoryview,
        owner: Int64,
        duration: Int64,
        size: Int64,
        flags: Int64,
        *,
        missing: Mapping[str, Mask],
        keep_groups: bool,
    ) -> None:
        n = len(owner)
        self.buffer, self.owner = buffer, owner
        self.default_duration, self.default_size, self.default_flags = duration, size, flags
        self.missing, self.keep_groups = missing, keep_groups
        self.lacking: dict[str, Int64] = {}
        self.count, self.data_offset = np.zeros(n, np.int64), np.full(n, NULL)
        self.size, self.duration = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.cts_min, self.cts_end = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.found: list[tuple[Int64, ...]] = []
        self.groups: list[RunGroup] = []
        self.wide_offsets = self.backward = self.loose = 0

    def runs(self) -> Runs:
        """The runs in file order."""
        return Runs(
            self.owner,
            self.count,
            self.data_offset,
            self.size,
            self.duration,
            self.cts_min,
            self.cts_end,
        )

    def points(self) -> SyncPoints:
        """The sync samples in file order."""
        if not self.found:
            return SyncPoints.empty()
        if len(self.found) == 1:
            return SyncPoints(*self.found[0])
        columns = [np.concatenate(parts) for parts in zip(*self.found, strict=True)]
        order = np.lexsort((columns[1], columns[0]))
        return SyncPoints(*(column[order] for column in columns))

    def details(self, keep: Mask) -> RunDetails:
        """The groups as they were read; runs that are not kept are numbered away."""
        number = np.cumsum(keep) - 1
        groups = []
        for group in self.groups:
            kept = keep[group.rows]
            first = group.first_flags[kept] if group.first_flags is not None else None
            groups.append(
                RunGroup(number[group.rows[kept]], group.at[kept], group.flags, group.stride, first)
            )
        return RunDetails(
            self.buffer,
            self.count[keep],
            self.default_duration[keep],
            self.default_size[keep],
            self.default_flags[keep],
            groups,
        )

    def read(self, at: Int64, room: Int64) -> Int64:
        """Read the runs whose bodies start at `at`; returns the rows that are damaged."""
        bad = [np.zeros(0, np.int64)]
        for group in groups_of(self.buffer, at, room, TRUN)[1]:
            if group.short:
                bad.append(group.rows)
                continue
            count, stride = group.fields["sample_count"], 4 * (group.flags & 0xF00).bit_count()
            left = room[group.rows] - group.width - count * stride
            fits = left >= 0
            self.loose += int((left > 0).sum())
            if not stride:
                fits &= count <= MAX_COUNT_WITHOUT_ROWS
            if not fits.all():
                bad.append(group.rows[~fits])
                group.rows = group.rows[fits]
                group.fields = {name: column[fits] for name, column in group.fields.items()}
            self.take(group, at[group.rows] + group.width, stride)
        return np.concatenate(bad)

    def take(self, group: Group, at: Int64, stride: int) -> None:
        """Take runs of one version and flags whose rows of samples start at `at`."""
        rows, count = group.rows, group.fields["sample_count"]
        first_flags = group.fields.get("first_sample_flags")
        self.count[rows] = count
        if "data_offset" in group.fields:
            self.data_offset[rows] = group.fields["data_offset"]
        if self.keep_groups:
            self.groups.append(RunGroup(rows, at, group.flags, stride, first_flags))
        filled = count > 0
        if not filled.all():
            rows, at, count = rows[filled], at[filled], count[filled]
            first_flags = first_flags[filled] if first_flags is not None else None
        if len(rows):
            self._note_lacking(rows, group.flags)
            kind = RunKind(group.version, group.flags)
            duration, size = self.default_duration[rows], self.default_size[rows]
            defaults = (duration, size, self.default_flags[rows])
            found = summed(self.buffer, kind, at, count, defaults, first_flags)
            self.size[rows], self.duration[rows] = found.size, found.duration
            self.cts_min[rows], self.cts_end[rows] = found.cts_min, found.cts_end
            self.wide_offsets += found.wide
            self.backward += found.backward
            run, *rest = found.points
            if len(run):
                self.found.append((rows[run], *rest))

    def _note_lacking(self, rows: Int64, flags: int) -> None:
        for name, mask in (
            ("size", SAMPLE_SIZE),
            ("duration", SAMPLE_DURATION),
            ("flags", SAMPLE_FLAGS),
        ):
            if name in self.missing and not flags & mask:
                lacks = rows[self.missing[name][rows]]
                self.lacking[name] = np.append(self.lacking.get(name, lacks[:0]), lacks)
