"""Recorders that begin again in the same file: their fragments are parted where the clock restarts.

Nothing in the boxes says it but the decode times, which fall back in all tracks at once. What comes
before and after has the same moov and the same times, so that each is a period of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fragdex.fragments.findings import Findings
from fragdex.fragments.table import NULL, FragmentTable, SyncTable
from fragdex.fragments.track_info import SampleGroup
from fragdex.indexing.resolve import Settled

MOST_PARTS = 256
"""Times that a clock restarts, up to which fragments are parted."""
WRAPPED = 1 << 31
"""Ticks that a time of 32 bits falls back at least where it runs over."""


class Part(NamedTuple):
    """The fragments from one start of the clock to the next.

    Attributes:
        tables: of each track its rows, counted from 0; sync runs are not joined yet.
        samples: of each track those before it, and those up to its end.
    """

    tables: dict[int, Settled]
    samples: dict[int, tuple[int, int]]

    def groups(self, track: int, groups: tuple[SampleGroup, ...]) -> tuple[SampleGroup, ...]:
        """Those of all fragments that are in this part, counted from its first sample."""
        if not self.samples:
            return groups
        start, stop = self.samples.get(track, (0, 0))
        return tuple(
            replace(one, sample_start=one.sample_start - start)
            for one in groups
            if start <= one.sample_start < stop
        )


def parted(
    tables: Mapping[int, Settled], timescales: Mapping[int, int], findings: Findings
) -> list[Part]:
    """The fragments of a moov, parted where the clock of all their tracks restarts.

    What came before lasts a second at least, in one track: less is no recording, and times that
    fall back in other ways are those of damaged files.

    Args:
        tables: of each track; sync runs are not joined yet.
    """
    whole = Part(dict(tables), {})
    if not any(finding.code == "time-again" for finding in findings.all()):
        return [whole]
    clocks = {
        track: _Clock(rows, timescales.get(track, 0))
        for track, (rows, _) in tables.items()
        if len(rows)
    }
    edges: list[dict[int, int]] = []
    for _ in range(2 * MOST_PARTS):
        falls = {track: row for track, one in clocks.items() if (row := one.falls_back()) >= 0}
        if not falls or len(edges) == MOST_PARTS:
            break
        first = min(falls, key=lambda track: clocks[track].place(falls[track]))
        place = clocks[first].place(falls[first])
        rows = {track: one.row_at(place) for track, one in clocks.items()}
        if (
            clocks[first].comes_twice(falls[first])
            or not any(clocks[track].has_recorded(row) for track, row in rows.items())
            or not all(clocks[track].begins_again(row) for track, row in rows.items())
        ):
            clocks[first].pass_over(falls[first])
            continue
        for track, row in rows.items():
            clocks[track].start = row
        edges.append(rows)
        findings.add(
            "clock-restarts",
            "the decode times of all tracks begin again: what follows is a period of its own",
            offset=place,
            path="moof/traf/tfdt",
        )
    if not edges:
        return [whole]
    starts = [dict.fromkeys(tables, 0), *edges]
    stops = [*edges, {track: len(rows) for track, (rows, _) in tables.items()}]
    return [_part(tables, low, high) for low, high in zip(starts, stops, strict=True)]


class _Clock:
    """The decode times of one track, from its last start on."""

    def __init__(self, rows: FragmentTable, timescale: int) -> None:
        self._rows, self._timescale = rows, timescale
        self.start = 0
        self._passed: npt.NDArray[np.bool_] = (rows.sample_count == 0) | (rows.dts == NULL)

    def place(self, row: int) -> int:
        return int(self._rows.moof_offset[row])

    def row_at(self, place: int) -> int:
        """The first row whose moof stands at a place or after it."""
        return int(np.searchsorted(self._rows.moof_offset, place))

    def falls_back(self) -> int:
        """The first row that begins before one that stands before it; -1: none does.

        Neighbours that begin together do not, as muxers write them whose fragments are single
        pictures; but after one fragment of several samples, another from its time on does.
        """
        dts = np.where(self._passed, np.iinfo(np.int64).min, self._rows.dts)[self.start :]
        highest = np.maximum.accumulate(dts)[:-1]
        here = ~self._passed[self.start + 1 :] & (dts[1:] < highest)
        here &= (highest - np.where(here, dts[1:], highest)) < WRAPPED
        several = self.start < len(self._rows) and self._rows.sample_count[self.start] > 1
        here[:1] |= several & ~self._passed[self.start + 1 : self.start + 2] & (dts[1:2] == dts[:1])
        return self.start + 1 + int(here.argmax()) if here.any() else -1

    def has_recorded(self, row: int) -> bool:
        """Whether a second or more stands before a row, which begins about where that did."""
        rows, second = self._rows, self._timescale
        if not second or not self.start < row < len(rows):
            return False
        lasted = int(rows.duration[self.start : row].sum())
        return lasted >= second and int(rows.dts[row]) <= int(rows.dts[self.start]) + second

    def begins_again(self, row: int) -> bool:
        """Whether nothing follows here, or what follows is no later than what came before."""
        before = self._rows.dts[self.start : row][~self._passed[self.start : row]]
        after = self._rows.dts[row:][~self._passed[row:]]
        return not len(before) or not len(after) or bool(after[0] <= before.max())

    def comes_twice(self, row: int) -> bool:
        """Whether fragments from here on repeat those directly before, and times continue then."""
        rows = self._rows
        same = np.flatnonzero(rows.dts[self.start : row] == rows.dts[row])
        if not len(same):
            return False
        first = self.start + int(same[-1])
        count = min(row - first, len(rows) - row)
        columns = (rows.dts, rows.duration, rows.sample_count, rows.data_stop - rows.data_start)
        copied = all(
            np.array_equal(column[first : first + count], column[row : row + count])
            for column in columns
        )
        whole = first == self.start and row - first > 1
        return copied and not whole

    def pass_over(self, row: int) -> None:
        self._passed[row] = True


def _part(tables: Mapping[int, Settled], low: Mapping[int, int], high: Mapping[int, int]) -> Part:
    cut: dict[int, Settled] = {}
    samples: dict[int, tuple[int, int]] = {}
    for track, (rows, sync) in tables.items():
        first, stop = low.get(track, 0), high.get(track, 0)
        mine = rows.rows(slice(first, stop))
        if not len(mine):
            continue
        # What the moov itself names stands before the first part, and is counted there.
        begin = int(mine.sample_start[0]) if first else 0
        before = _rows_before(rows, sync)
        samples[track] = begin, int(mine.sample_start[-1] + mine.sample_count[-1])
        columns = mine.columns() | {"sample_start": mine.sample_start - begin}
        place = sync.fragment - before
        marks = sync.rows((place >= first) & (place < stop))
        cut[track] = (
            FragmentTable.of(columns),
            SyncTable.of(
                marks.columns()
                | {
                    "sample": marks.sample - begin,
                    "fragment": marks.fragment - (first + before if first else 0),
                }
            ),
        )
    return Part(cut, samples)


def _rows_before(rows: FragmentTable, sync: SyncTable) -> int:
    """Rows that stand before those of a track's fragments: of samples that the moov names."""
    if not len(sync) or sync.sample[0] < 0:
        return 0
    row = int(np.searchsorted(rows.sample_start, sync.sample[0], side="right")) - 1
    return int(sync.fragment[0]) - row
