"""The walk over media data: sample by sample, each confirmed by what follows it; their times."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np

from fragdex.fragments.table import Int64
from fragdex.indexing.native import compiled
from fragdex.record import record
from fragdex.repairing.between import Between, Even, PacketPace
from fragdex.repairing.film import Recovered
from fragdex.repairing.pattern import Pattern
from fragdex.repairing.syntax import BLOCK, HOLE, FoundSample, NativeSyntax, Syntax, Window
from fragdex.sources.base import PIECE_SIZE

DEPTH: Final = 4
"""Samples that have to follow one another where the walk starts again."""
MOST_STEPS: Final = 512
"""Places that are looked at for one decision."""
FEW: Final = 4
"""How many times as many for all ends that a sound may have."""
MOST_KNOWN: Final = 1 << 13
"""Places whose samples are remembered."""
SCANNED: Final = 1 << 20
"""Bytes that are searched at once."""
SPENT_A_BYTE: Final = 2
FREE: Final = 1 << 20
"""Bytes of looks in vain, and how many more for each byte that is searched."""
MOST_PACKETS: Final = 64
"""Packets between two pictures."""
MOST_GAPS: Final = 32
"""Ends of sound without ends that are tried."""
MOST_IN_C: Final = 8
"""Tracks that the C extension walks with."""
HELD: Final = (1, PIECE_SIZE, BLOCK, 4 * BLOCK)
"""Bytes that the C extension is given: what is held, then more; Python passes what is larger."""
ERASED: Final = bytes(512)
"""So many zeros are a hole where samples of tracks that are not searched for lie between others."""
SEVERAL_WAYS: Final = "sound that can be divided in several ways"


@record(slots=True)
class FoundSamples:
    """Samples of a track as they are found.

    Attributes:
        syntax: how they are found.
        offset, size, order: int64 of each sample; of even ones, size is that of all in a run.
        sync, fresh: of each sample, or empty: every one is sync.
        proved: of each sample whether its own syntax says where it begins and ends.
        breaks: numbers of samples before which some are missing, the bytes that are, and how many
            samples of this track; -1: not known.
    """

    syntax: Syntax
    offset: array[int] = field(default_factory=lambda: array("q"))
    size: array[int] = field(default_factory=lambda: array("q"))
    order: array[int] = field(default_factory=lambda: array("q"))
    sync: bytearray = field(default_factory=bytearray)
    fresh: bytearray = field(default_factory=bytearray)
    proved: bytearray = field(default_factory=bytearray)
    breaks: list[tuple[int, int, int]] = field(default_factory=list)

    def add(self, at: int, sample: FoundSample, proved: bool) -> None:
        """Keep a sample."""
        sample = self.syntax.accept(sample)
        self.offset.append(at)
        self.size.append(sample.stop - at)
        self.order.append(sample.order)
        self.sync.append(sample.sync)
        self.fresh.append(sample.fresh)
        self.proved.append(proved)

    def extend(self, rows: Int64) -> None:
        """Keep samples that the C extension has found: offset, size, order, sync, fresh, proved."""
        columns = np.ascontiguousarray(rows.T)
        for kept, column in zip((self.offset, self.size, self.order), columns[:3], strict=True):
            kept.frombytes(column.tobytes())
        flags = (self.sync, self.fresh, self.proved)
        for marks, column in zip(flags, columns[3:], strict=True):
            marks += column.astype(np.uint8).tobytes()


class UnclaimedBytes(NamedTuple):
    """Bytes that are in no sample.

    Attributes:
        start, stop: of them (exclusive).
        why: in words.
        lasts: whether samples of the tracks may have been there, so that they take time.
    """

    start: int
    stop: int
    why: str
    lasts: bool = True


class Walk:
    """A walk over the media data of a file.

    Args:
        lanes: the tracks; delimited ones in the order of how much they prove, and at most one
            whose samples only their neighbours delimit.
        pace: how far its sound is ahead of the pictures, which are the first lane.
        others: whether there are tracks that are not searched for: bytes between samples are
            theirs, unless they were erased.
    """

    def __init__(
        self, lanes: list[FoundSamples], pace: PacketPace | None = None, *, others: bool = False
    ) -> None:
        self.lanes = lanes
        self._others = others
        self._pace = pace
        self._unknown = 0
        self._heard_to = -1  # where sound ends that was passed last
        self.lost: list[UnclaimedBytes] = []
        self._framed = [lane for lane in lanes if lane.syntax.delimited]
        self._loose = next((lane for lane in lanes if not lane.syntax.delimited), None)
        self._known: dict[int, list[tuple[FoundSamples, FoundSample]]] = {}
        self._budget = FREE

    def follows(self, window: Window, at: int, count: int) -> bool:
        """Whether so many samples follow one another from here on, or all to the end."""
        self._known.clear()
        self._window = window
        return self._chain(at, count, [MOST_STEPS])

    def over(self, window: Window, start: int) -> Iterator[int]:
        """Find the samples of a stretch of media data; gives the place reached, now and then."""
        self._known.clear()
        self._window = window
        at = start
        while at < window.stop:
            self._forget_ahead()
            reached = self._pass_in_c(at, self._lent())
            if reached > at:
                at = reached
                yield at
                continue
            following = self._step(at)
            if following is None:
                following = self._resume(at)
                self._lose(at, following)
            at = following
            yield at

    def _lent(self) -> list[tuple[FoundSamples, NativeSyntax]]:
        """The tracks as the C extension walks with them; none where one of them cannot be."""
        if compiled is None or len(self.lanes) > MOST_IN_C:
            return []
        lent = [(lane, lane.syntax.lent()) for lane in self.lanes if not lane.syntax.rare]
        known = [(lane, one) for lane, one in lent if one]
        return known if len(known) == len(lent) else []

    def _pass_in_c(self, at: int, lent: Sequence[tuple[FoundSamples, NativeSyntax]]) -> int:
        """Keep what the C extension finds from here on; where Python has to look."""
        if not lent:
            return at
        lanes = tuple(
            (
                int(one.kind),
                len(lane.offset),
                lane.syntax.most,
                np.array(one.numbers, np.int64),
                *one.tables,
            )
            for lane, one in lent
        )
        pace = None if self._pace is None else self._pace.lent()
        window = self._window

        def read(place: int, tries: int) -> tuple[memoryview, int]:
            return window.hold(place, HELD[min(tries, len(HELD) - 1)])

        reached, _, rows, lost, states, base, counts = compiled.walk_media(
            read, at, window.stop, window.cut, lanes, pace, (self._unknown, self._heard_to)
        )
        self._unknown, self._heard_to = counts
        for (lane, _), samples, (first, second, spent) in zip(lent, rows, states, strict=True):
            lane.extend(np.frombuffer(samples, np.int64).reshape(-1, 6))
            lane.syntax.resume((first, second), spent)
        for number, start, end, count in np.frombuffer(lost, np.int64).reshape(-1, 4).tolist():
            assert self._loose is not None
            self.lost.append(UnclaimedBytes(start, end, SEVERAL_WAYS))
            self._loose.breaks.append((number, end - start, count))
        if self._pace is not None:
            self._pace.resume(base)
        if reached > at:
            self._known.clear()
        return int(reached)

    def _step(self, at: int) -> int | None:
        """Keep what begins here; where it ends, or None: nothing was kept."""
        options = [
            (lane, sample)
            for lane, sample in self._options(at)
            if lane.syntax.may_follow(sample) and self._goes_on(at, lane, sample)
        ]
        if len(options) > 1:
            steps = [MOST_STEPS]
            options = [o for o in options if self._chain(o[1].stop, 2 * DEPTH, steps)] or options
        self._forget_ahead()
        if options:
            lane, sample = options[0]
            # after sound it may be the end of a sample whose beginning was taken for sound
            ends = at == self._heard_to and lane.syntax.ends_alike
            lane.add(at, sample, not ends or lane.syntax.is_whole(self._window, at, sample))
            if lane.syntax.remembers or sample.sets:
                self._known.clear()
            return sample.stop
        if self._loose is None:
            return None
        return self._pass_loose(at, self._loose)

    def _pass_loose(self, at: int, lane: FoundSamples) -> int | None:
        syntax = lane.syntax
        assert isinstance(syntax, Between)
        if not syntax.may_start(self._window, at):
            return None
        left = FEW * MOST_STEPS
        for stop in self._gaps(at, syntax):
            self._forget_ahead()
            following = self._options(stop)
            if following and not any(o.syntax.may_follow(sample) for o, sample in following):
                continue
            steps = [min(MOST_STEPS, left)]
            goes_on = self._chain(stop, DEPTH, steps, framed=True)
            left -= MOST_STEPS - max(0, steps[0])
            if not goes_on:
                continue
            sizes = syntax.split(self._window, at, stop, self._fits)
            if sizes is None:
                continue
            if not syntax.is_usual(sizes, stop - at) and not (
                (sizes or following) and self._begins(following, stop)
            ):
                continue
            count = self._counted(sizes, syntax)
            if self._pace is not None and count > 0:
                self._pace.pass_gap(self._packets(count), len(self.lanes[0].offset))
                self._unknown += count if not sizes or isinstance(syntax, Even) else 0
            elif self._pace is not None:
                self._pace.lose()
            if not sizes:
                self.lost.append(UnclaimedBytes(at, stop, SEVERAL_WAYS))
                lane.breaks.append((len(lane.offset), stop - at, count))
            elif isinstance(syntax, Even):
                lane.add(at, FoundSample(stop), False)
            else:
                for size in sizes:
                    lane.add(at, syntax.sample(self._window, at, size), False)
                    at += size
            self._heard_to = stop
            return stop
        return None

    def _begins(self, options: list[tuple[FoundSamples, FoundSample]], at: int) -> bool:
        """Whether what is found here cannot be the end of a sample with much in front of it."""
        return all(
            lane.syntax.is_whole(self._window, at, sample)
            for lane, sample in options
            if lane.syntax.large_leads
        )

    def _counted(self, sizes: list[int], syntax: Between) -> int:
        """How many samples of sound lie between two others; -1: not known."""
        if isinstance(syntax, Even):
            return sizes[1]
        fitting = [n for n in range(1, MOST_PACKETS) if self._fits(n)] if not sizes else []
        return len(sizes) or (fitting[0] if len(fitting) == 1 else -1)

    def _packets(self, more: int) -> int:
        """Packets so far with so many more, those that could not be told apart counted too."""
        assert self._loose is not None
        count = 0 if isinstance(self._loose.syntax, Even) else len(self._loose.offset)
        return count + self._unknown + more

    def _fits(self, count: int) -> bool:
        """Whether so many samples of sound may lie in front of the next picture."""
        if self._pace is None:
            return True
        return self._pace.fits(self._packets(count), len(self.lanes[0].offset))

    def _options(self, at: int) -> list[tuple[FoundSamples, FoundSample]]:
        """Samples that may begin here."""
        known = self._known.get(at)
        if known is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            stop = self._window.stop
            known = [
                (lane, sample)
                for lane in self._framed
                if at < stop
                for sample in lane.syntax.finds(self._window, at, stop)
                if sample.stop - at <= lane.syntax.most
                if lane.syntax.holes or self._window.find(HOLE, at, sample.stop) is None
            ]
            self._known[at] = known
        return known

    def _goes_on(self, at: int, lane: FoundSamples, sample: FoundSample) -> bool:
        """Whether media data ends after a sample, or another one begins."""
        window, stop = self._window, sample.stop
        if stop == window.stop:
            if not window.cut:
                return True
            # where the file was cut off, nothing follows, and it may be a sample of another track
            others = [other for other in self._framed if other is not lane]
            is_other = any(other.syntax.may_begin(window, at) for other in others)
            is_other = is_other or any(other is not lane for other, _ in self._options(at))
            return not is_other and not lane.syntax.open_ended
        if self._options(stop):
            return True
        if self._loose is not None:
            return self._chain(stop, 1, [MOST_STEPS])
        return any(other.syntax.begins(window, stop) for other in self._framed)

    def _chain(self, at: int, depth: int, steps: list[int], framed: bool = False) -> bool:
        """Whether so many samples follow one another from here on, or all to the end.

        Args:
            steps: how many places may still be looked at.
            framed: begin with a sample that says where it ends.
        """
        if at == self._window.stop:
            return True
        if depth <= 0 and not framed:
            return True
        steps[0] -= 1
        if steps[0] < 0:
            return False
        if any(self._chain(o.stop, depth - 1, steps) for _, o in self._options(at)):
            return True
        if framed or self._loose is None:
            return False
        syntax = self._loose.syntax
        assert isinstance(syntax, Between)
        if not syntax.may_start(self._window, at):
            return False
        return any(
            self._chain(stop, depth - 1, steps, framed=True) for stop in self._gaps(at, syntax)
        )

    def _gaps(self, at: int, syntax: Between) -> Iterator[int]:
        """Where sound that begins here may end: at the end, or where a sample begins."""
        window = self._window
        tried = 0
        for length in syntax.lengths:
            stop = at + length
            if stop < window.stop and self._options(stop):
                yield stop
        data = window.take(at, syntax.longest)
        places = sorted({place for lane in self._framed for place in lane.syntax.starts(data)})
        for place in places:
            fits = place > 0 and place not in syntax.lengths
            if fits and isinstance(syntax, Even):
                fits = place % syntax.unit == 0
            if fits and self._options(at + place):
                yield at + place
                tried += 1
                if tried >= MOST_GAPS:
                    return
        if window.stop - at <= syntax.longest and not window.cut:
            yield window.stop

    def _resume(self, at: int) -> int:
        """The next place from which samples follow one another; the end where there is none."""
        window, begin = self._window, at
        self._forget_ahead()
        while at < window.stop:
            zeros = window.skip_zeros(at)
            if zeros - at >= len(HOLE):
                at = zeros - len(HOLE) // 2  # a length begins with zeros, too
            data = window.take(at, SCANNED)
            hole = data.find(HOLE, 1)
            if hole > 0:
                data = data[: hole + 1]
            self._budget += SPENT_A_BYTE * len(data)
            for place in self._places(data):
                where = at + place
                if where > begin and self._chain(where, DEPTH, [MOST_STEPS], framed=True):
                    for lane, sample in self._options(where):
                        # the beginning of it may be in the lost bytes before it
                        if not lane.syntax.is_whole(window, where, sample):
                            lane.syntax.trust(sample)
                            self._known.clear()
                            return sample.stop
                    return where
                self._forget_ahead()
            at += len(data)
        return window.stop

    def _forget_ahead(self) -> None:
        """Forget what was learned of samples that were only looked at."""
        forgotten = [lane.syntax.forget_ahead() for lane in self._framed]
        if any(forgotten):
            self._known.clear()

    def _places(self, data: bytes) -> list[int]:
        """Where samples may begin, of tracks that may still be looked for at every byte."""
        places: set[int] = set()
        for lane in self._framed:
            if lane.syntax.spent <= self._budget:
                places.update(lane.syntax.starts(data))
        return sorted(places)

    def _lose(self, start: int, stop: int) -> None:
        window = self._window
        zeros = window.skip_zeros(start) - start
        if zeros >= stop - start or zeros > 16:
            why = (
                "zeros" if zeros >= stop - start else "begins with zeros, and no sample after them"
            )
        else:
            why = "no sample begins here"
        lasts = not self._others or window.find(ERASED, start, stop) is not None
        self.lost.append(UnclaimedBytes(start, stop, why, lasts))
        if not lasts:
            self._known.clear()
            return
        if self._pace is not None:
            self._pace.lose()
        self._known.clear()
        for lane in self.lanes:
            lane.syntax.interrupted()
            lane.breaks.append((len(lane.offset), stop - start, -1))


def timed(patterns: Sequence[Pattern], lanes: Sequence[FoundSamples]) -> list[Recovered]:
    """The samples of each track with their times.

    Samples follow one another without gaps, pictures in the order in which they are shown. Where
    bytes are lost, the file continues after as much time as so many bytes of it take, in all tracks
    alike, so that sound and pictures stay together.
    """
    recovered = []
    units = [lane.syntax.unit if isinstance(lane.syntax, Even) else 0 for lane in lanes]
    longest = max(
        Fraction(
            (sum(lane.size) // unit if unit else len(lane.size)) * pattern.duration,
            pattern.track.timescale or 1,
        )
        for pattern, lane, unit in zip(patterns, lanes, units, strict=True)
    )
    seconds_a_byte = longest / (sum(sum(lane.size) for lane in lanes) or 1)
    for pattern, lane, unit in zip(patterns, lanes, units, strict=True):
        offset = np.array(lane.offset, np.int64)
        size = np.array(lane.size, np.int64)
        each = pattern.duration
        numbers = np.arange(len(size), dtype=np.int64)
        if unit:
            numbers = np.cumsum(size // unit) - size // unit
        dts = numbers * each
        for row, lost, count in lane.breaks:
            if 0 < row < len(size):
                ticks = seconds_a_byte * lost * pattern.track.timescale
                steps = count if count >= 0 else round(ticks / each) if each else 0
                dts[row:] += steps * each
        sync = np.frombuffer(bytes(lane.sync), np.bool_)
        cts, media_time = dts, pattern.media_time
        if not unit and pattern.track.kind == "video":
            shown = shown_times(np.array(lane.order, np.int64), order_begins(lane), dts)
            delay, needed = pattern.delay, int((dts - shown).max(initial=0))
            if not pattern.negative and needed > delay:
                media_time += needed - delay
                delay = needed
            cts = shown + delay
        recovered.append(Recovered(pattern, offset, size, dts, cts, sync, unit, media_time))
    return recovered


def broken_rows(lane: FoundSamples) -> list[int]:
    """Samples before which some are missing, nobody knows how many; the first one."""
    rows = {row for row, _, count in lane.breaks if count < 0 and 0 < row < len(lane.offset)}
    return sorted({0, *rows})


def order_begins(lane: FoundSamples) -> Int64:
    """Samples with which the order of pictures begins again."""
    fresh = np.flatnonzero(np.frombuffer(bytes(lane.fresh), np.bool_))
    return np.unique(np.concatenate([broken_rows(lane), fresh])).astype(np.int64)


def shown_times(order: Int64, begins: Int64, dts: Int64) -> Int64:
    """Of each picture the time in decode order whose turn it is to be shown at."""
    part = np.searchsorted(begins, np.arange(len(order)), side="right")
    ranked = np.lexsort((order, part))
    shown = np.empty_like(dts)
    shown[ranked] = dts
    return shown
