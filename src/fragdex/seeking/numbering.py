"""Which samples of a track are frames, in what order, when each is shown; runs that decode them.

A run is decoded from a sync sample on; wanted samples become runs of neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import copy
from fractions import Fraction
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from fragdex.fragments.table import Int64, SampleTable
from fragdex.record import record
from fragdex.seeking.times import TimeLike, exact_time, ticks_of_many
from fragdex.seeking.track import Track

Order = Literal["presentation", "decode"]
_FAR: Final = 1 << 62


class Numbering:
    """The frames of a track, numbered from 0.

    Attributes:
        sample: of each frame, the number of its sample in decode order.
        ticks, durations: when it is shown and for how long, in units of 1 / `timescale` seconds.
        timescale: ticks a second; that of the track, or a multiple where the edit list needs one.
        sync: whether it is a sync sample.

    Args:
        track: of an index that has its samples.
        samples: all of them, in decode order.
        size: bytes of the file; samples after its end are not frames. None: unknown.
        order: of the numbers.
        hidden: whether samples that the edit list hides are frames, too.

    The edit list hides samples (`in_edits`). Times are those of `Track.seek`: later edits hide and
    show, but do not move what they show.
    """

    def __init__(
        self,
        track: Track,
        samples: SampleTable,
        *,
        size: int | None = None,
        order: Order = "presentation",
        hidden: bool = False,
    ) -> None:
        shown = (samples.size > 0) & (samples.offset >= 0)
        if size is not None:
            shown &= samples.offset + samples.size <= size
        if not hidden:
            shown &= in_edits(track, samples)
        decode = np.flatnonzero(shown)
        by_time = decode[np.argsort(samples.cts[decode], kind="stable")]
        cts = samples.cts[by_time]
        until = np.append(cts[1:], cts[-1:] + np.maximum(samples.duration[by_time[-1:]], 1))
        rank = np.argsort(by_time, kind="stable") if order == "decode" else np.arange(len(by_time))
        self._track = track
        self._cts_end = int(until[-1]) if len(until) else 0
        self._cts, self._number_by_time = cts, np.argsort(rank, kind="stable")
        self.sample: Int64 = by_time[rank].astype(np.int64)
        self.sync: npt.NDArray[np.bool_] = samples.sync[self.sample]
        shift, scale = track.shift.as_integer_ratio()
        if (_most(cts) + abs(shift)) * scale >= _FAR:
            shift, scale = round(track.shift), 1  # no time of a real video
        self.timescale = track.timescale * scale
        self.ticks: Int64 = cts[rank] * scale + shift
        self.durations: Int64 = (until - cts)[rank] * scale

    def __len__(self) -> int:
        return len(self.sample)

    def numbers_at(self, times: Iterable[TimeLike] | npt.ArrayLike) -> Int64:
        """The frame that is shown at each time: before the first that one, after the end the last.

        Raises:
            ValueError, TypeError: what is not a time.
        """
        targets = ticks_of_many(times, self._track.timescale, self._track.shift)
        place = np.searchsorted(self._cts, targets, side="right") - 1
        return self._number_by_time[np.maximum(place, 0)].astype(np.int64)

    def numbers_between(self, start: TimeLike, stop: TimeLike) -> Int64:
        """The frames that are shown at some moment from `start` to `stop` (exclusive), in order."""
        low, high = self._media(start), self._media(stop)
        if not len(self) or low >= high or low >= self._cts_end:
            return np.zeros(0, np.int64)
        first = int(np.searchsorted(self._cts, _whole(math.floor, low), side="right")) - 1
        last = int(np.searchsorted(self._cts, _whole(math.ceil, high), side="left"))
        return np.sort(self._number_by_time[max(first, 0) : last].astype(np.int64))

    def closest_key_frame(self, time: TimeLike) -> int | None:
        """The sync sample that is shown nearest to a time, the earlier of two; None: there is none.

        Raises:
            ValueError, TypeError: what is not a time.
        """
        wanted: Any = exact_time(time)
        sync = np.flatnonzero(self.sync)
        apart = np.abs(self.ticks[sync] / self.timescale - float(wanted))
        near: list[int] = sync[np.argsort(apart, kind="stable")[:8]].tolist()

        def exactly(number: int) -> tuple[Any, int]:
            ticks = int(self.ticks[number])
            return abs(Fraction(ticks, self.timescale) - wanted), ticks

        return min(near, key=exactly, default=None)

    def _media(self, time: TimeLike) -> Any:
        """A presentation time as ticks of the media, exact."""
        seconds: Any = exact_time(time)
        return seconds * self._track.timescale - self._track.shift


def _whole(rounded: Callable[[Any], int], ticks: Any) -> int:
    return int(math.copysign(_FAR, ticks)) if abs(ticks) >= _FAR else rounded(ticks)


def _most(values: Int64) -> int:
    return max((abs(int(values[0])), abs(int(values[-1])))) if len(values) else 0


def in_edits(track: Track, samples: SampleTable) -> npt.NDArray[np.bool_]:
    """Samples that are frames by the edit list (ISO/IEC 14496-12, 8.6.6).

    Of a track without fragments those that begin in an edit, as for FFmpeg; of others, and where
    none does, those of which at least a moment is in one.
    """
    segments = track.segments
    if not segments:
        return np.ones(len(samples), bool)
    until = samples.cts + np.maximum(samples.duration, 1)
    begun, partly = np.zeros((2, len(samples)), np.bool_)
    for segment in segments:
        stop = segment.media_stop(track.timescale)
        ahead = samples.cts < (_FAR if stop is None else stop)
        begun |= ahead & (samples.cts >= segment.media_time)
        partly |= ahead & (until > segment.media_time)
    return begun if track.extent.is_virtual and begun.any() else partly


MOST_REORDERED = 16
"""Pictures that a decoder holds back at most (ISO/IEC 14496-10, A.3.1: MaxDpbFrames)."""


@record(frozen=True, slots=True)
class FrameRun:
    """Neighbouring samples, decoded from a fresh decoder.

    Attributes:
        start, stop: in decode order; stop is exclusive.
        wanted: those whose pictures are wanted, rising.
    """

    start: int
    stop: int
    wanted: tuple[int, ...]


class SyncStarts:
    """Where decoding has to begin for a sample."""

    def __init__(self, samples: SampleTable) -> None:
        self._cts = samples.cts
        self._sync: Int64 = np.flatnonzero(samples.sync).astype(np.int64)
        self._is_open: bool | None = None

    def of(self, sample: int) -> int:
        """The sync sample that a sample is decoded from; without one, the first sample.

        What is shown before the sync sample that it follows (a leading picture of an open group)
        may refer to the group before (ISO/IEC 14496-12, Annex I: SAP type 3).
        """
        place = int(np.searchsorted(self._sync, sample, side="right")) - 1
        while place > 0 and self._cts[sample] < self._cts[self._sync[place]]:
            place -= 1
        if place < 0 or self._cts[sample] < self._cts[self._sync[place]]:
            return 0
        return int(self._sync[place])

    def has_leading_pictures(self) -> bool:
        """Whether any sample after a sync sample is shown before it: groups are open."""
        if self._is_open is None:
            place = np.searchsorted(self._sync, np.arange(len(self._cts)), side="right") - 1
            known = place >= 0
            early = self._cts[known] < self._cts[self._sync[place[known]]]
            self._is_open = bool(early.any())
        return self._is_open

    def before(self, start: int, steps: int) -> int:
        """The sync sample so many before one; without it, the first sample."""
        place = int(np.searchsorted(self._sync, start, side="left")) - steps
        return int(self._sync[place]) if place >= 0 else 0

    def end(self, start: int, count: int) -> int:
        """After the last sample of the group that begins at a sync sample."""
        place = int(np.searchsorted(self._sync, start, side="right"))
        return int(self._sync[place]) if place < len(self._sync) else count

    def drop(self, first: int, stop: int | None = None) -> None:
        """Samples that are wrongly marked sync: one, or those up to `stop` (exclusive)."""
        stop = first + 1 if stop is None else stop
        self._sync = self._sync[(self._sync < first) | (self._sync >= stop)]
        self._is_open = None

    def copy(self) -> SyncStarts:
        """The same, to drop samples of."""
        return copy(self)


def runs_of(samples: Iterable[int], starts: SyncStarts) -> list[FrameRun]:
    """The runs that bring all these samples, each decoded once, by rising start."""
    by_start: dict[int, list[int]] = {}
    for sample in sorted(set(samples)):
        by_start.setdefault(starts.of(sample), []).append(sample)
    runs: list[FrameRun] = []
    for start, wanted in sorted(by_start.items()):
        if runs and start < runs[-1].stop:
            # The run before goes over this sync sample anyhow.
            both = tuple(sorted({*runs[-1].wanted, *wanted}))
            runs[-1] = FrameRun(runs[-1].start, max(runs[-1].stop, wanted[-1] + 1), both)
        else:
            runs.append(FrameRun(start, wanted[-1] + 1, tuple(wanted)))
    return runs


def reorder_depth(cts: Int64) -> int:
    """How many pictures a decoder has to hold back to give all of them in the order of their times.

    The largest number of samples that are decoded before another and shown after it; 16 at most.
    """
    rank = np.empty(len(cts), np.int64)
    rank[np.argsort(cts, kind="stable")] = np.arange(len(cts))
    # A sample of which no later one is shown earlier has all that is shown before it before it:
    # what else was decoded before it waits. Of other samples more are in front, and fewer wait.
    return min(int((np.arange(len(cts)) - rank).max(initial=0)), MOST_REORDERED)
