"""A moov that is there and wrong: its samples looked at one by one, and put where they are."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from fragdex.fragments.table import Bool, Int64, SampleTable
from fragdex.repairing.between import Even
from fragdex.repairing.film import Recovered
from fragdex.repairing.fragment_order import FragmentOrder
from fragdex.repairing.nal_units import NalUnits
from fragdex.repairing.pattern import Pattern
from fragdex.repairing.rates import LOOKED_AT, Rate, decided
from fragdex.repairing.stream import rate_in, rate_of_clock
from fragdex.repairing.syntax import FoundSample, Syntax, Window
from fragdex.repairing.walk import UnclaimedBytes, shown_times

TRIED: Final = 64
"""Samples of a track on which a shift is tried."""
MOST_PARTS: Final = 8
"""Parts of a file that may lie at other distances from what the tables say."""
TOGETHER: Final = 1 << 18
"""Samples that are written out at once."""
ENOUGH: Final = 0.5
"""Part of the samples that have to be where the tables say; a hole may have taken the others."""
WRAP: Final = 1 << 32
STALE: Final = 8
"""One of so many pictures may be shown out of the order that it says: composition offsets stay."""
MOST_DELAYED: Final = 32
"""Pictures that one may be decoded ahead of being shown."""


class Described(NamedTuple):
    """A track that a moov describes.

    Attributes:
        pattern: it.
        syntax: how its samples are found, or why they cannot be.
        order: the order and times of its fragments; None: as they stand.
        timecode: the rate of a timecode track; None: there is none.
    """

    pattern: Pattern
    syntax: Syntax | str
    order: FragmentOrder | None = None
    timecode: Rate | None = None


def batches(
    pattern: Pattern, wrapped: bool = False, order: FragmentOrder | None = None
) -> Iterator[SampleTable]:
    """The samples of a track, some at a time.

    Args:
        wrapped: offsets fall back where they passed 4 GiB in 32 bits.
    """
    track = pattern.track
    before, wraps = -1, 0
    for low, high in _rows_together(track.fragments.sample_count, order):
        samples = track.samples_of(low, high)
        if order is not None:
            samples = order.timed(samples, track.fragments.sample_count, low, high)
        if wrapped and len(samples):
            falls = np.diff(samples.offset, prepend=max(before, 0)) < -(WRAP >> 1)
            before = int(samples.offset[-1])
            offset = samples.offset + (wraps + np.cumsum(falls)) * WRAP
            wraps += int(falls.sum())
            samples = SampleTable.of(samples.columns() | {"offset": offset})
        yield samples


def _rows_together(counts: Int64, order: FragmentOrder | None) -> Iterator[tuple[int, int]]:
    """Rows of fragments whose samples are written out at once: neighbours in the file."""
    edges = [0, len(counts)]
    if order is not None:
        edges = [0, *(np.flatnonzero(np.diff(order.rows) != 1) + 1).tolist(), len(counts)]
    for start, stop in pairwise(edges):
        first = start if order is None else int(order.rows[start])
        low, end = first, first + stop - start
        while low < end:
            summed = np.cumsum(counts[low:end])
            high = low + max(1, int(np.searchsorted(summed, TOGETHER)))
            yield low, min(high, end)
            low = high


def is_wrapped(tracks: Sequence[Described], size: int) -> bool:
    """Whether offsets of a file of more than 4 GiB fall back."""
    if size <= WRAP:
        return False
    for pattern, *_ in tracks:
        before = 0
        for samples in batches(pattern):
            if not len(samples):
                continue
            if int(samples.offset.max()) >= WRAP:
                return False
            if (np.diff(samples.offset, prepend=before) < -(WRAP >> 1)).any():
                return True
            before = int(samples.offset[-1])
    return False


def fit(tracks: Sequence[Described], window: Window, *shifts: int) -> float:
    """The part of the first samples that are where the tables say, moved by one of `shifts`."""
    right = tried = 0
    for pattern, syntax in proving(tracks):
        samples = next(batches(pattern), SampleTable.empty())
        some = samples.rows(slice(None, None, max(1, len(samples) // TRIED)))
        for at, size in zip(some.offset.tolist(), some.size.tolist(), strict=True):
            if at + min(shifts) + size > window.stop:
                continue  # the file was cut off before it
            tried += 1
            right += any(is_sample(syntax, window, at + shift, size) for shift in shifts)
    return right / tried if tried else 0.0


def proving(tracks: Sequence[Described]) -> list[tuple[Pattern, Syntax]]:
    """The tracks whose samples say where they end."""
    return [
        (pattern, syntax)
        for pattern, syntax, *_ in tracks
        if not isinstance(syntax, str) and syntax.delimited
    ]


def shift_of(tracks: Sequence[Described], window: Window, start: int) -> int | None:
    """By how much the first samples of a track lie after what the tables say."""
    for pattern, syntax in proving(tracks):
        samples = next(batches(pattern), SampleTable.empty())
        shift = shift_to(samples, syntax, window, start)
        if shift is not None:
            return shift
    return None


def other_shifts(
    tracks: Sequence[Described], window: Window, shift: int, starts: Sequence[int]
) -> list[int]:
    """By how much other parts of a file lie after what the tables say, as in a file of two halves.

    Args:
        starts: of media data, in which they are looked for; the first few of them.
    """
    shifts = [shift]
    for pattern, syntax in proving(tracks):
        for samples in batches(pattern):
            while len(shifts) < MOST_PARTS:
                row = first_elsewhere(samples, syntax, window, shifts, TRIED)
                if row is None:
                    break
                # one more: the halves of a sample in which a file was cut are not a sample
                rows = [samples.rows(slice(row + more, None)) for more in (0, 1)]
                candidates = (
                    shift_to(part, syntax, window, start)
                    for part in rows
                    for start in starts[:MOST_PARTS]
                )
                new = next(
                    (one for one in candidates if one is not None and one not in shifts), None
                )
                if new is None:
                    break
                shifts.append(new)
    return shifts[1:]


class Mended(NamedTuple):
    """What a moov says, looked at.

    Attributes:
        tracks: the samples that are there.
        proved: of each track, how many were proved.
        lost: bytes of samples that are not what the tables say.
        findings: what was repaired and what was not looked at, as sentences.
    """

    tracks: list[Recovered]
    proved: list[int]
    lost: list[UnclaimedBytes]
    findings: list[str]


def mended(
    tracks: Sequence[Described], window: Window, shifts: Sequence[int], wrapped: bool
) -> Mended:
    """The samples of each track, those left out that their codec refuses.

    Args:
        shifts: bytes by which samples lie after what the tables say, those of parts of the file.
    """
    result = Mended([], [], [], [])
    for shift in shifts:
        if shift:
            result.findings.append(f"samples lie {shift:+,} bytes from where the tables say")
    moves = Moves(shifts)
    if wrapped:
        result.findings.append("offsets of chunks passed 4 GiB in 32 bits")
    menders = [_KeptTrack(one.pattern, one.syntax, window, one.timecode) for one in tracks]
    # where samples lie that do not say where they end is known by the others
    for number in sorted(range(len(tracks)), key=lambda number: not menders[number].proves):
        pattern, _, order, _ = tracks[number]
        for samples in batches(pattern, wrapped, order):
            menders[number].add(samples, moves)
    for (pattern, _, order, _), mender in zip(tracks, menders, strict=True):
        if not mender.count:
            result.findings.append(f"track {pattern.track.id}: none of its samples is there")
            continue
        result.tracks.append(mender.recovered())
        result.proved.append(mender.proved)
        result.lost.extend(mender.lost)
        result.findings.extend(mender.findings())
        name = f"track {pattern.track.id}"
        if order is not None and order.moved:
            result.findings.append(f"{name}: {order.moved:,} fragments were in the wrong order")
        if order is not None and order.stale:
            result.findings.append(
                f"{name}: decode times of {order.stale:,} fragments fell back; each begins where"
                " the one before it ends"
            )
    return result


class _KeptTrack:
    """The samples of a track that are kept."""

    def __init__(
        self, pattern: Pattern, syntax: Syntax | str, window: Window, timecode: Rate | None
    ) -> None:
        self._pattern, self._window, self._timecode = pattern, window, timecode
        self._syntax = syntax if isinstance(syntax, Syntax) and syntax.delimited else None
        self._unit = syntax.unit if isinstance(syntax, Even) else 0
        self._why = syntax if isinstance(syntax, str) else ""
        self._kept: list[SampleTable] = []
        # of AVC and HEVC: where the pictures' own order begins again, and the order
        self._fresh, self._order = bytearray(), array("q")
        self._sentences: list[str] = []
        self.lost: list[UnclaimedBytes] = []
        self.proved = self.count = self._marks = self._unknown = self._last = 0

    @property
    def proves(self) -> bool:
        """Whether samples say where they end."""
        return self._syntax is not None

    def add(self, samples: SampleTable, moves: Moves) -> None:
        """Look at samples in decode order."""
        if self._syntax is None:
            shift, keep = moves.around(samples.offset)
            self._unknown += int(np.count_nonzero(~keep))
            offset, sync = samples.offset + shift, samples.sync
            keep &= (offset >= 0) & (offset + samples.size <= self._window.stop)
            keep &= samples.size > 0
        else:
            offset, sync, keep = self._proved(self._syntax, samples, moves)
        columns = samples.columns() | {"offset": offset, "sync": sync}
        if self._unit:
            columns |= {"size": samples.size}
        self._kept.append(SampleTable.of(columns).rows(keep))
        if self._unit:
            self._kept[-1] = self._joined(self._kept[-1])
        count = int(keep.sum())
        self.count += count
        self.proved += count if self._syntax is not None else 0

    def _proved(
        self, syntax: Syntax, samples: SampleTable, moves: Moves
    ) -> tuple[Int64, Bool, Bool]:
        """Where samples are, which of them are sync, and which are what their codec says."""
        offset, sync = samples.offset + moves.shifts[0], samples.sync.copy()
        used = np.full(len(samples), -1, np.int64)
        for row in np.flatnonzero(samples.size > 0).tolist():
            at, size = int(samples.offset[row]), int(samples.size[row])
            match = moves.find(syntax, self._window, at, size, self._last)
            if match is None:
                first = int(offset[row])
                if first >= 0 and first + size <= self._window.stop:
                    self.lost.append(UnclaimedBytes(first, first + size, "not what the tables say"))
                continue
            self._last, sample = match
            used[row], offset[row] = self._last, at + moves.shifts[self._last]
            if sample.sync != sync[row]:
                # pictures that others recover at may be marked: only the others are wrong
                self._marks += 1
                sync[row] = sample.sync
            if isinstance(syntax, NalUnits):
                shown = syntax.accept(sample)
                self._fresh.append(shown.fresh)
                self._order.append(shown.order)
        some = samples.size > 0
        moves.note(samples.offset[some], used[some])
        return offset, sync, used >= 0

    def _joined(self, samples: SampleTable) -> SampleTable:
        """Neighbours of one size as one row."""
        if not len(samples):
            return samples
        heads = np.append(0, np.flatnonzero(np.diff(samples.offset) != self._unit) + 1)
        counts = np.diff(heads, append=len(samples))
        rows = samples.rows(heads)
        return SampleTable.of(rows.columns() | {"size": counts * self._unit})

    def recovered(self) -> Recovered:
        """The samples as a track of the repaired file."""
        table = SampleTable.concat(self._kept)
        dts, cts = self._with_durations(table)
        media_time = self._pattern.media_time
        if len(self._order) == len(cts) and not self._is_in_order(dts, cts):
            shown = shown_times(np.array(self._order, np.int64), self._begins, dts)
            ahead = int((dts - shown).max(initial=0))
            if ahead <= MOST_DELAYED * max(1, int(np.diff(dts).max(initial=0))):
                media_time = max(media_time, ahead)
                cts = shown + media_time
                self._sentences.append("composition times were wrong: pictures say their order")
        return Recovered(
            self._pattern, table.offset, table.size, dts, cts, table.sync, self._unit, media_time
        )

    @property
    def _begins(self) -> Int64:
        """Pictures with which their order begins again."""
        fresh = np.flatnonzero(np.frombuffer(bytes(self._fresh), np.bool_))
        return np.union1d(fresh, [0])

    def _with_durations(self, table: SampleTable) -> tuple[Int64, Int64]:
        """Decode and composition times.

        Where no sample lasts any time, the stream and the mdhd say how long each does.
        """
        if len(table) < 2 or self._unit or int(table.dts[-1]) > int(table.dts[0]):
            return table.dts, table.cts
        mdhd = self._pattern.trak.find("mdia/mdhd")
        each = int(mdhd["duration"]) // len(table) if mdhd is not None else 0
        rates = [one for one in self._rates(table) if one is not None]
        if rates:
            taken, doubts = decided(rates)
            self._sentences += doubts
            of_stream = int(self._pattern.track.timescale / taken)
            # the longer a track, the nearer is what its mdhd says: pictures may vary
            each = of_stream if not each or abs(of_stream - each) * 4 < each else each
        if not 0 < each < WRAP:
            return table.dts, table.cts
        self._sentences.append(
            f"durations are missing: each sample is assumed to last {each} ticks"
        )
        self._pattern = replace(self._pattern, duration=each)
        steps = np.arange(len(table), dtype=np.int64) * each
        return table.dts + steps, table.cts + steps

    def _rates(self, table: SampleTable) -> Iterator[Rate | None]:
        """Pictures a second as the stream and a timecode track say."""
        if self._pattern.track.kind != "video":
            return
        if isinstance(self._syntax, NalUnits):
            yield rate_in(self._syntax)
            if len(self._order) == len(table):
                offsets = table.offset[:LOOKED_AT].tolist()
                # rows before which some are missing are not known
                breaks = [0] if not self.lost else list(range(len(offsets)))
                yield rate_of_clock(
                    self._window.source, self._syntax, offsets, self._order, self._begins, breaks
                )
        yield self._timecode

    def _is_in_order(self, dts: Int64, cts: Int64) -> bool:
        """Whether pictures are shown in the order that they say, but for a few of them.

        Where pictures last no time, their order is of no use.
        """
        if not (np.diff(dts) > 0).all():
            return True
        part = np.cumsum(np.frombuffer(bytes(self._fresh), np.bool_))
        ranked = np.lexsort((np.array(self._order, np.int64), part))
        falls = int((np.diff(cts[ranked]) <= 0).sum())
        return falls * STALE <= len(cts)

    def findings(self) -> Iterator[str]:
        """What was repaired, and what was not looked at."""
        name = f"track {self._pattern.track.id}"
        yield from (f"{name}: {sentence}" for sentence in self._sentences)
        if self._marks:
            yield f"{name}: {self._marks:,} marks of sync samples were wrong"
        if self.lost:
            yield f"{name}: {len(self.lost):,} samples are not what the tables say"
        if self._unknown:
            yield f"{name}: where {self._unknown:,} of its samples lie is not known"
        if self._why:
            yield f"{name}: {self._why}; its samples are taken as the tables say"


# Where the samples of a moov are, whose file was put together in another way than it says.

IN_A_ROW: Final = 8
"""Samples of a track that are found where the tables have them, but for a shift."""
SEARCHED: Final = 1 << 22
"""Bytes of media data in which the first samples are looked for."""


class Moves:
    """By how many bytes samples lie after what the tables say: parts of a file differ.

    Args:
        shifts: the distances, the most likely one first.
    """

    def __init__(self, shifts: Sequence[int]) -> None:
        self.shifts = list(shifts)
        self._places: list[Int64] = []
        self._used: list[Int64] = []
        self._sorted: tuple[Int64, Int64] | None = None

    def note(self, offset: Int64, used: Int64) -> None:
        """Where the tables have samples that were looked at, and which shift is right; -1: none."""
        self._places.append(offset)
        self._used.append(used)
        self._sorted = None

    def find(
        self, syntax: Syntax, window: Window, at: int, size: int, last: int
    ) -> tuple[int, FoundSample] | None:
        """A sample where the tables say, moved by one of the shifts; and which one.

        Args:
            last: the shift of the sample before it, which is tried first.
        """
        sample = sample_at(syntax, window, at + self.shifts[last], size)
        if sample is not None:
            return last, sample
        for number, shift in enumerate(self.shifts):
            if number != last:
                sample = sample_at(syntax, window, at + shift, size)
                if sample is not None:
                    return number, sample
        return None

    def around(self, offset: Int64) -> tuple[Int64, Bool]:
        """The shift of samples that do not say where they end, and whether it is known.

        It is that of the samples before and after them. Where all lies where the tables say, one
        of these two is enough: the other one may be damaged.
        """
        places, used = self._noted()
        if not len(places):
            return np.full(len(offset), self.shifts[0], np.int64), np.ones(len(offset), np.bool_)
        after = np.searchsorted(places, offset)
        last = len(places) - 1
        low = used[np.clip(after - 1, 0, last)]
        high = used[np.clip(after, 0, last)]
        chosen = np.maximum(low, high)
        known = (chosen >= 0) & ((low == high) | (self.shifts == [0]))
        return np.array(self.shifts, np.int64)[np.maximum(chosen, 0)], known

    def _noted(self) -> tuple[Int64, Int64]:
        if self._sorted is None:
            none = np.zeros(0, np.int64)
            places, used = (np.concatenate([none, *a]) for a in (self._places, self._used))
            order = np.argsort(places, kind="stable")
            self._sorted = places[order], used[order]
        return self._sorted


def sample_at(syntax: Syntax, window: Window, at: int, size: int) -> FoundSample | None:
    """The sample of this size that begins here; None: none does."""
    if at < 0 or size <= 0 or at + size > window.stop:
        return None
    sample = syntax.find(window, at, at + size)
    return sample if sample is not None and sample.stop == at + size else None


def is_sample(syntax: Syntax, window: Window, at: int, size: int) -> bool:
    """Whether a sample of this size begins here."""
    return sample_at(syntax, window, at, size) is not None


def shift_to(samples: SampleTable, syntax: Syntax, window: Window, start: int) -> int | None:
    """By how much samples lie after what the tables say; None: they are not found.

    Args:
        samples: the first of which are looked for, as many as are in a row.
    """
    first = samples.rows(slice(0, IN_A_ROW))
    if len(first) < 2:
        return None
    places, sizes = (first.offset - first.offset[0]).tolist(), first.size.tolist()
    data = window.take(start, SEARCHED)
    for place in syntax.starts(data):
        at = start + place
        if all(
            is_sample(syntax, window, at + step, size)
            for step, size in zip(places, sizes, strict=True)
        ):
            return at - int(first.offset[0])
        if syntax.spent > SEARCHED:
            break
    return None


def first_elsewhere(
    samples: SampleTable, syntax: Syntax, window: Window, shifts: Sequence[int], tried: int
) -> int | None:
    """The first of samples that lie at none of these distances; None: there are not two of them.

    Args:
        tried: how many of them are looked at; between two of these it is searched by halves.
    """

    def is_elsewhere(row: int) -> bool:
        at, size = int(samples.offset[row]), int(samples.size[row])
        return not any(is_sample(syntax, window, at + shift, size) for shift in shifts)

    rows = list(range(0, len(samples), max(1, len(samples) // tried)))
    elsewhere = [is_elsewhere(row) for row in rows]
    pairs: Iterable[int] = (n for n in range(1, len(rows)) if elsewhere[n - 1] and elsewhere[n])
    number = next(iter(pairs), None)
    if number is None:
        return None
    low, high = (rows[number - 2] if number > 1 else -1), rows[number - 1]
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_elsewhere(middle) else (middle, high)
    return high
