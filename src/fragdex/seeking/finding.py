"""The bisection and the division of a seek, on columns of any kind.

It needs no numpy: a question to a saved index is mostly the import of it.
"""

from __future__ import annotations

from bisect import bisect_right

from fragdex.fragments import FAR, NULL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from fragdex.errors import DamagedIndex

Place = tuple[int, int, int, int, int, int, bool]
"""A sync sample: row, sample, offset, size, cts, dts, clamped."""


SYNC_COLUMNS = ("cts", "dts", "step", "count", "sample", "sample_step", "fragment")
ROW_COLUMNS = ("sample_start", "sample_count", "offset", "size", "cts_end")
"""Columns of the sync and the fragment table that a seek reads."""


def damaged(column: str, expected: str, value: object) -> DamagedIndex:
    """The error for sync samples that do not fit their fragments."""
    from fragdex.errors import DamagedIndex

    return DamagedIndex(
        f"the sync samples of an index do not fit its fragments (column {column})",
        expected=expected,
        found=value,
        advice="build the index again",
    )


def last_tick(time: tuple[int, int], timescale: int, shift: tuple[int, int]) -> int:
    """floor(seconds × timescale − shift): the last media tick at or before a presentation time.

    Args:
        time: numerator and denominator of the seconds.
        shift: of what is added to a composition time to get the presentation time.
    """
    (over, under), (numerator, denominator) = time, shift
    return (over * timescale * denominator - numerator * under) // (under * denominator)


class PlainSeeker:
    """The columns of one track that a seek reads, as anything that gives integers by number."""

    def __init__(self, sync: Mapping[str, Any], rows: Mapping[str, Any]) -> None:
        self._cts, self._dts = sync["cts"], sync["dts"]
        self._step, self._count = sync["step"], sync["count"]
        self._sample, self._sample_step = sync["sample"], sync["sample_step"]
        self._fragment = sync["fragment"]
        self._starts, self._counts = rows["sample_start"], rows["sample_count"]
        self._offset, self._size = rows["offset"], rows["size"]
        self._ends = rows["cts_end"]
        self._rows = len(self._offset)

    def end(self) -> int | None:
        """Where the track ends, in ticks; None where that is unknown."""
        ends = zip(self._ends, self._counts, strict=True)
        return max((end for end, count in ends if end != NULL and count), default=None)

    def find(self, target: int) -> Place:
        """The sync sample for a composition time in ticks.

        Returns: fragment row, sample, offset, size, cts, dts (NULL where unknown), clamped.

        Raises:
            NoSyncSample: there is none.
            DamagedIndex: the tables contradict each other.
        """
        if not len(self._cts):
            from fragdex.errors import NoSyncSample

            raise NoSyncSample("the track has no sync sample to seek to")
        run = bisect_right(self._cts, target) - 1
        clamped = run < 0
        run = max(run, 0)
        cts, step, last = self._cts[run], self._step[run], self._count[run] - 1
        if last < 0:
            raise damaged("count", "a sync sample in each run", last + 1)
        if step < 0:
            raise damaged("step", "times that rise", step)
        turn = (target - cts) // step if step else (last if target >= cts else 0)
        turn = max(0, min(last, turn))
        if turn:
            sample = self._sample[run] + turn * self._sample_step[run]
            row = bisect_right(self._starts, sample) - 1
        else:
            sample, row = self._sample[run], self._fragment[run]
        # The columns of a saved index are not checked yet; what Python's integers say cannot wrap.
        if not 0 <= row < self._rows:
            raise damaged("fragment", f"a row below {self._rows}", row)
        offset, size, first = self._offset[row], self._size[row], self._starts[row]
        if not (0 <= offset < FAR and 0 <= size < FAR):
            raise damaged("offset", "a byte range", (offset, size))
        if sample != NULL and first != NULL and not 0 <= sample - first < self._counts[row]:
            raise damaged("sample", f"one of fragment {row}", sample)
        # Where the fragment ends after the time, so does the track: its columns stay unread.
        if not clamped and (self._ends[row] <= target or not self._counts[row]):
            end = self.end()
            clamped = end is not None and target >= end
        dts = self._dts[run]
        cts += turn * step
        if dts != NULL:
            dts += turn * step
            if not -FAR < dts < FAR:
                raise damaged("dts", f"a time below {FAR}", dts)
        if not -FAR < cts < FAR:
            raise damaged("cts", f"a time below {FAR}", cts)
        return row, sample, offset, size, cts, dts, clamped
