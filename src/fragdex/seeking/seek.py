"""The last sync sample at or before a time, in one track.

The sync table is a list of evenly spaced runs sorted by composition time: a bisection finds the
run, a division the sample in it. Both are exact, and equal to a search over all samples.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, Protocol, SupportsIndex, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from fragdex.byterange import ByteRange
from fragdex.errors import NoSyncSample
from fragdex.fragments.table import NULL, FragmentFlags, FragmentTable, SyncTable
from fragdex.record import record
from fragdex.seeking.finding import ROW_COLUMNS, SYNC_COLUMNS, Place, PlainSeeker, damaged
from fragdex.seeking.times import NO_SHIFT, Time, presentation

__all__ = ["Extent", "Hit", "Hits", "Seeker", "Selection"]


@record(slots=True, unsafe_hash=True, repr=False)
class Hit:
    """Where decoding starts for one time in one track.

    Attributes:
        track: track_ID.
        fragment: row of the track's fragment table that holds the sync sample.
        sample: number of the sync sample in the track, from 0 in decode order; None where the
            index has only fragments.
        offset, size: bytes of that fragment: from the boxes before its moof to the end of its
            last mdat; for a progressive file those of the virtual fragment's samples.
        cts, dts: composition and decode time of the sync sample on the media timeline, in ticks;
            dts is None where it is unknown.
        clamped: the time is before the first sync sample, or at or after the end.
        shift: ticks from composition to presentation time.
        timescale: ticks a second.

    >>> hit = Hit(1, 0, 0, 100, 50, 3003, 0, False, Fraction(-3003), 30000)
    >>> hit.range, hit.time.seconds
    (ByteRange(start=100, stop=150), 0.0)
    """

    track: int
    fragment: int
    sample: int | None
    offset: int
    size: int
    cts: int
    dts: int | None
    clamped: bool
    shift: Fraction
    timescale: int

    @property
    def range(self) -> ByteRange:
        """Bytes of the fragment."""
        return ByteRange(self.offset, self.offset + self.size)

    @property
    def time(self) -> Time:
        """Presentation time of the sync sample, exact."""
        return presentation(self.cts, self.shift, self.timescale)

    def __repr__(self) -> str:
        sample = "" if self.sample is None else f" sample={self.sample}"
        return (
            f"<Hit track={self.track} {self.time.seconds:.6f} s{sample} fragment={self.fragment}"
            f" {self.range}{' clamped' if self.clamped else ''}>"
        )


Selection: TypeAlias = slice | Sequence[int | bool] | npt.NDArray[np.integer | np.bool_]
"""Elements of a sequence: a slice, numbers, or a bool for each."""


@record(frozen=True, slots=True, eq=False)
class Hits:
    """Many hits in the order of their times: a sequence of `Hit`, and columns of equal length.

    A number gives a `Hit`; a slice, an array of numbers or of bool gives `Hits`.

    Attributes:
        fragment: int64 rows of the fragment table.
        sample: int64 sample numbers; NULL where the index has only fragments.
        offset, size: int64 bytes of the fragments.
        cts, dts: int64 ticks of the media timeline; dts may be NULL.
        clamped: bool.
        track, shift, timescale: of all of them, as those of `Hit`.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> track = fragdex.index(movie(fragments=3, samples=5, fps=25)).track(1)
    >>> hits = track.seek_many([0.1, 0.3, 0.5])
    >>> len(hits), hits[1] == track.seek(0.3), hits.times.tolist(), hits[1:].sample.tolist()
    (3, True, [0.0, 0.2, 0.4], [5, 10])
    """

    fragment: npt.NDArray[np.int64]
    sample: npt.NDArray[np.int64]
    offset: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    cts: npt.NDArray[np.int64]
    dts: npt.NDArray[np.int64]
    clamped: npt.NDArray[np.bool_]
    track: int = 0
    shift: Fraction = NO_SHIFT
    timescale: int = 1

    @property
    def times(self) -> npt.NDArray[np.float64]:
        """Presentation time of each sync sample, in seconds: the nearest float64."""
        over, under = self.shift.as_integer_ratio()
        most = int(np.abs(self.cts).max(initial=0)) * under + abs(over)
        if max(most, self.timescale * under) < _EXACT:
            return (self.cts * under + over) / (self.timescale * under)
        return np.array([hit.time.seconds for hit in self], np.float64)

    @property
    def ranges(self) -> tuple[ByteRange, ...]:
        """Bytes of each fragment."""
        stops = (self.offset + self.size).tolist()
        return tuple(map(ByteRange, self.offset.tolist(), stops))

    def __len__(self) -> int:
        return len(self.fragment)

    @overload
    def __getitem__(self, key: SupportsIndex) -> Hit: ...  # type: ignore[overload-overlap]
    @overload
    def __getitem__(self, key: Selection) -> Hits: ...
    def __getitem__(self, key: SupportsIndex | Selection) -> Hit | Hits:
        if isinstance(key, slice) or np.ndim(key):  # type: ignore[arg-type]
            return replace(self, **{name: getattr(self, name)[key] for name in _COLUMNS})
        return self._hit(*(getattr(self, name)[key].item() for name in _COLUMNS))

    def __iter__(self) -> Iterator[Hit]:
        columns = (getattr(self, name).tolist() for name in _COLUMNS)
        return map(self._hit, *columns)

    def _hit(
        self, row: int, sample: int, offset: int, size: int, cts: int, dts: int, clamped: bool
    ) -> Hit:
        known = None if sample == NULL else sample, None if dts == NULL else dts
        of = self.shift, self.timescale
        return Hit(self.track, row, known[0], offset, size, cts, known[1], clamped, *of)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hits):
            return NotImplemented
        mine, others = ((one.track, one.shift, one.timescale) for one in (self, other))
        return mine == others and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in _COLUMNS
        )

    __hash__ = None  # type: ignore[assignment]


def hits_of(places: Iterable[Place], track: int, shift: Fraction, timescale: int) -> Hits:
    """Columns of what `find` gave for each time; there must be one."""
    row, sample, offset, size, cts, dts, clamped = np.array([*zip(*places, strict=True)], np.int64)
    clamps = clamped.astype(np.bool_)
    return Hits(row, sample, offset, size, cts, dts, clamps, track, shift, timescale)


_COLUMNS: Final = ("fragment", "sample", "offset", "size", "cts", "dts", "clamped")
_EXACT: Final = 1 << 53
"""Below it, whole numbers are exact as float64."""
FEW = 8
"""Rows of a table whose numbers are taken out at once."""


def _quick(column: npt.NDArray[np.int64]) -> Any:
    """A column whose numbers are read one at a time."""
    return column.tolist() if len(column) <= FEW else column.data


class Finder(Protocol):
    """Finds sync samples of one track; `Seeker` is one, and what also looks at pictures."""

    def find(self, target: int) -> Place: ...
    def find_many(self, targets: npt.NDArray[np.int64]) -> Hits: ...


class Extent:
    """What all fragments of a track come to.

    Each answer reads whole columns once; repeated questions cost no more in a long video.
    """

    def __init__(self, fragments: FragmentTable) -> None:
        self._fragments = fragments

    @cached_property
    def start(self) -> int | None:
        """Least composition time, in ticks; None where it is unknown."""
        known = self._filled(self._fragments.cts_min)
        return int(known.min()) if len(known) else None

    @cached_property
    def stop(self) -> int | None:
        """Greatest composition time plus duration, in ticks; None where it is unknown."""
        known = self._filled(self._fragments.cts_end)
        return int(known.max()) if len(known) else None

    @cached_property
    def samples(self) -> int | None:
        """Samples of all fragments; None where those of one are unknown."""
        counts = self._fragments.sample_count
        return None if (counts == NULL).any() else int(counts.sum())

    @cached_property
    def is_virtual(self) -> bool:
        """Whether all samples are those of the moov."""
        return bool(((self._fragments.flags & FragmentFlags.VIRTUAL) != 0).all())

    @cached_property
    def is_hybrid(self) -> bool:
        """Whether samples of the moov are followed by fragments."""
        virtual = (self._fragments.flags & FragmentFlags.VIRTUAL) != 0
        return bool(virtual.any()) and not self.is_virtual

    def row_behind(self, first: int, target: int) -> int:
        """Row after the last fragment, from row `first` on, with a sample at or before a time.

        Args:
            first: a row of the fragment table; it counts in any case.
            target: composition time in ticks.
        """
        return max(first + 1, bisect_right(self._starts, target))

    @cached_property
    def _starts(self) -> memoryview:
        """For each row the least composition time of it and of all after it, which only rise."""
        starts = self._fragments.cts_min
        known = np.where(starts == NULL, np.iinfo(np.int64).max, starts)
        return np.ascontiguousarray(np.minimum.accumulate(known[::-1])[::-1]).data

    def _filled(self, column: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The known values; a fragment without samples only moves the decode time on."""
        known: npt.NDArray[np.int64] = column[
            (column != NULL) & (self._fragments.sample_count != 0)
        ]
        return known


class Seeker(PlainSeeker):
    """The tables of one track, made ready for many seeks.

    Bisection runs over memoryviews: reading one element of a numpy array costs four times as much.
    A few numbers are taken out, which costs less still, and a third of the memory.
    """

    def __init__(self, fragments: FragmentTable, sync: SyncTable) -> None:
        self._fragments, self._sync = fragments, sync
        of_sync = {name: _quick(getattr(sync, name)) for name in SYNC_COLUMNS}
        super().__init__(of_sync, {name: _quick(getattr(fragments, name)) for name in ROW_COLUMNS})
        self._tested = False
        self._extent = Extent(fragments)

    def end(self) -> int | None:
        """Where the track ends, in ticks; None where that is unknown."""
        return self._extent.stop

    def find_many(self, targets: npt.NDArray[np.int64]) -> Hits:
        """`find` for many composition times at once; raises as it does."""
        sync, fragments = self._sync, self._fragments
        if not len(sync):
            raise NoSyncSample("the track has no sync sample to seek to")
        if not self._tested:
            self._test()
        run = np.searchsorted(sync.cts, targets, side="right") - 1
        clamped = run < 0
        end = self._extent.stop
        if end is not None:
            clamped |= targets >= end
        np.maximum(run, 0, out=run)
        cts, step, last = sync.cts[run], sync.step[run], sync.count[run] - 1
        if last.any():
            # Clipped before it is subtracted: a time without end less a negative one overflows.
            turn = (np.clip(targets, cts, cts + step * last) - cts) // np.where(step, step, 1)
            turn = np.where(step, turn, np.where(targets >= cts, last, 0))
        else:
            turn = last  # every run is a single sample
        sample, row = sync.sample[run], sync.fragment[run]
        dts = sync.dts[run]
        if turn.any():
            moved = turn > 0
            sample = np.where(moved, sample + turn * sync.sample_step[run], sample)
            by_sample = np.searchsorted(fragments.sample_start, sample, side="right") - 1
            if (moved & (by_sample < 0)).any():
                raise damaged("sample", "samples of their fragments", "others")
            row = np.where(moved, by_sample, row)
            cts = cts + turn * step
            dts = np.where(dts == NULL, NULL, dts + turn * step)
        return Hits(row, sample, fragments.offset[row], fragments.size[row], cts, dts, clamped)

    def _test(self) -> None:
        """What `find` looks at for one sync sample, once for all of them."""
        sync, fragments = self._sync, self._fragments
        if ((sync.fragment < 0) | (sync.fragment >= self._rows)).any():
            raise damaged("fragment", f"rows below {self._rows}", "others")
        if (fragments.offset < 0).any() or (fragments.size < 0).any():
            raise damaged("offset", "byte ranges", "others")
        if (sync.count < 1).any():
            raise damaged("count", "a sync sample in each run", "none")
        first = fragments.sample_start[sync.fragment]
        within = sync.sample - first
        outside = (within < 0) | (within >= fragments.sample_count[sync.fragment])
        if (outside & (sync.sample != NULL) & (first != NULL)).any():
            raise damaged("sample", "samples of their fragments", "others")
        self._tested = True
