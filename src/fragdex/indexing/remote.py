"""A remote file read at several places at once: few round trips, little more than the headers.

Where a fragment ends, only its own headers say, so that one pass requests one fragment after the
other. Here further passes begin at moofs found in the middle of the file, and all ask together.
What such a pass met counts only once the pass before it ends exactly where it began; a moof that
was wrong costs bytes, and changes nothing.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from fragdex.box_header import read_header
from fragdex.byterange import ByteRange
from fragdex.errors import FormatError
from fragdex.indexing.headers import DONE, Rows, Shaped
from fragdex.indexing.scan import FTYP, MDAT, MOOF, MOOV, Scan
from fragdex.sources import Source

FIRST_GUESS = 1 << 16
"""Bytes requested at once at the start of a remote object: the moov and sidx of most files."""
READ_AHEAD = 1 << 12
"""Bytes requested at least at each further hop: a small moof and the header after it."""


def needed(source: Source, scan: Scan) -> ByteRange | None:
    """What the scan needs next, maybe beyond the source; None where either is at its end."""
    need = scan.need
    if need is None or (source.size is not None and need.start >= source.size):
        return None
    return need


def feed(source: Source, scan: Scan, data: bytes, start: int) -> bool:
    """Give a scan what was read for it; False where that was nothing."""
    if not data:
        return False
    scan.size = source.size
    scan.feed(data, start)
    return True


def step(source: Source, scan: Scan, ahead: int) -> bool:
    """One read of what the scan needs, `ahead` bytes at least; False at the end."""
    need = needed(source, scan)
    if need is None:
        return False
    stop = max(need.stop, need.start + ahead)
    if source.size is not None:
        stop = min(stop, source.size)
    return feed(source, scan, read_there(source, ByteRange(need.start, stop)), need.start)


def read_there(source: Source, wanted: ByteRange) -> bytes:
    """Read what there is of a range; what comes short ends a source that has not told its size."""
    data = source.read_up_to(wanted)
    if source.size is None and 0 < len(data) < wanted.size:
        source.size = wanted.start + len(data)
    return data


RECENT = 8
"""Fragments that are looked at."""
ROWS = 4 * RECENT
"""Boxes that are looked at of many that were met together."""
SPARE = 16
"""Bytes read after the largest recent headers: a few samples more, a longer mdat header."""
DENSE = 4
"""Where reading everything takes up to so many times the bytes of the headers, it is read."""
REQUEST_BYTES = 128
"""Bytes of an answer that tell where its range lies, when several are requested at once."""
LARGEST_WINDOW = 1 << 19
"""Bytes of a read where everything is read."""
FIRST_WINDOW = 1 << 17
APART = frozenset((FTYP, MOOV, MDAT))
"""What is not part of the headers of a fragment, or is their end."""
SMALL_BOX = 1 << 12
"""A box that is not an mdat is read over up to this size, as one that belongs to the next moof."""


class RecentFragments:
    """The last fragments of a pass.

    Args:
        before: what is known from elsewhere in the file; until more is known, this is as there.
    """

    def __init__(self, before: RecentFragments | None = None) -> None:
        self._moofs: deque[int] = deque(before._moofs if before else (), RECENT)
        self._heads: deque[int] = deque(before._heads if before else (), RECENT)
        self._stride = before.stride if before else 0.0
        self._window = 0
        self._edge: int | None = None
        if before:
            self._moofs.clear()

    def note(self, top: Rows) -> None:
        """Take the rows of boxes that were passed, in file order."""
        moof = False
        rows = top[-ROWS:]
        fields = (rows[name].tolist() for name in ("offset", "size", "type", "header"))
        for offset, size, kind, header in zip(*fields, strict=True):
            if self._edge is None or offset < self._edge:
                self._edge = offset
            if kind == MOOF:
                moof = True
                self._moofs.append(offset)
            elif kind in APART or size > SMALL_BOX:
                if moof and kind == MDAT:
                    self._heads.append(offset + header - self._edge)
                moof, self._edge = False, offset + size

    def middle(self, last: NumberedMoof) -> tuple[float, float]:
        """Mean place and number of the last moofs: where one stands by chance counts for less."""
        count = len(self._moofs)
        return sum(self._moofs) / count, last.number - (count - 1) / 2

    @property
    def known(self) -> int:
        """Fragments whose headers are known."""
        return len(self._heads)

    @property
    def stride(self) -> float:
        """Bytes from one moof to the next; 0 where that is not known."""
        if len(self._moofs) > 2:
            self._stride = (self._moofs[-1] - self._moofs[0]) / (len(self._moofs) - 1)
        return self._stride

    @property
    def head(self) -> int:
        """Bytes from the end of the media data to after the next mdat's header.

        As many as were enough each time recently: a second request for the rest of a moof costs
        more than some bytes of media with the others.
        """
        return max(self._heads, default=READ_AHEAD - SPARE) + SPARE

    @property
    def dense(self) -> bool:
        """Whether everything is read, since fragments are small compared with their headers."""
        return 0 < self.stride <= DENSE * (self.head + REQUEST_BYTES)

    def ahead(self) -> int:
        """Bytes to ask for next."""
        if not self.dense:
            self._window = 0
            return self.head
        self._window = min(max(2 * self._window, FIRST_WINDOW), LARGEST_WINDOW)
        return self._window

    def behind(self, need: ByteRange, scan: Scan) -> int:
        """Where to stop reading that begins with what a scan needs."""
        if scan.carried and not self.dense:
            # The rest of a moof, and the header after it.
            return need.stop + SPARE
        return need.start + self.ahead()

    def expected(self, size: int) -> float:
        """Bytes of headers in so many bytes of the file."""
        return size / self.stride * self.head if self.stride else 0.0


ENOUGH_TOPS = 16
"""Reads whose boxes are looked at, to learn how fragments follow one another."""
ENOUGH_KNOWN = 3
"""Fragments whose distance is measured before passes are planned by it."""
MOST_PASSES = 128
"""Passes at once; a round of them is a few requests."""
MOST_UNEVEN = 1.5
"""How much farther than others moofs may be apart where passes are aimed."""
FROM_END = 4
"""Distances between moofs from the end of the file at which one more of those begins."""
FIRST_MISS, LEAST_MISS, MOST_MISS = 1 / 8, 1 / 64, 1 / 4
"""How far moofs may be from where they are expected, in distances between two: at first, bounds."""
FIRST_PARTS = 8
"""Parts in which a file is divided first, to learn how far moofs are from where they should be."""
WELL_AIMED = 1 / 16
"""Where half of moofs are no farther, stretches are divided in as many parts as there can be."""
WIDER = 1.25
"""Part of those that half of moofs miss by at most, and the first window of a search."""
AIMED_COST = 2.5
"""Bytes read until a moof is found that is aimed at, in halves of the first window."""
MISSES = 32
"""Passes by which that is measured."""
FRAGMENTS_EACH = 8
"""Fragments, at least, for which a pass of its own is worth its search."""
SEARCH_OF_HEADS = 0.25
"""Bytes read to find moofs, for each byte of headers that is expected."""
SEARCH_OF_FILE, FEW_PASSES = 1 / 128, 16
"""Where that is more: bytes read to find moofs for so many passes, for each byte of the file."""
LEAST_SEARCH, LEAST_PART = 1 << 19, 1 / 16
"""Bytes that may be read to find moofs in any file, up to a part of it."""
SEARCH_COST = 0.65
"""Bytes read until a moof is found, in distances between two of them."""
KEPT_BACK = 0.25
"""Part of the search that is kept for passes that are begun later."""
LONGEST_SEARCH = 6
"""Distances between moofs after which a search is given up."""
WINDOWS = 1 << 11, 1 << 16
"""Least and most bytes of one read of a search."""
READS = 4
"""Reads of a search in a fragment, where nothing tells where in it a moof begins."""
GROWTH = 4
"""Parts of what was searched by which a search grows where a moof is expected."""
MOST_WASTE = 4
"""Bytes that a pass may read, in parts of what its stretch of the file should take."""
SOME_WASTE = 1 << 16
"""Bytes that any pass may read."""
MOST_BOX = 16
"""How many times larger than recent headers a moof may be that is found or read ahead."""
SOME_BOX = 1 << 12
"""Bytes of a moof that may be found in any file."""
MARGIN = 1.25
"""How much larger than what is expected the budget must be for anything to be read ahead."""

MOOF_START = b"moof\0\0\0\x10mfhd"
"""What a moof begins with after its size: its type, and the header of its mfhd (8.8.5)."""
OVERLAP = len(MOOF_START) + 3
"""Bytes in which a moof may begin that continues in the next piece."""


def moof_in(data: bytes | bytearray, largest: int = 1 << 20) -> int | None:
    """Where what looks like a moof of a possible size begins, or None."""
    at = data.find(MOOF_START, 4)
    while at >= 0:
        header = read_header(data, at - 4)
        if header is not None and 24 <= header.size <= largest:
            return at - 4
        at = data.find(MOOF_START, at + 1)
    return None


class NumberedMoof(NamedTuple):
    """A moof: its place, and its sequence_number (8.8.5), which mostly counts moofs."""

    offset: int
    number: int

    @classmethod
    def of(cls, offset: int, moof: bytes | bytearray | memoryview) -> NumberedMoof:
        """Of the bytes of a moof."""
        return cls(offset, int.from_bytes(moof[20:24], "big"))


_NOWHERE = NumberedMoof(-1, -1)


class ExpectedMoof(NamedTuple):
    """Where a moof is expected between two that are known.

    Attributes:
        pitch: bytes from one moof to the next.
        miss: how far it may be from there, in bytes.
        span: moofs between the two that are known.
    """

    moof: NumberedMoof
    pitch: float
    miss: int
    span: float

    @classmethod
    def between(
        cls,
        left: tuple[float, float],
        right: tuple[float, float],
        numbers: Iterable[int],
        miss: float,
    ) -> list[ExpectedMoof]:
        """At moofs of these numbers, between two places and numbers."""
        span = right[1] - left[1]
        pitch = (right[0] - left[0]) / span
        return [
            cls(
                NumberedMoof(int(left[0] + (n - left[1]) * pitch), n),
                pitch,
                int(miss * pitch),
                span,
            )
            for n in numbers
        ]

    @property
    def lowest(self) -> int:
        """Where the search for it begins at the earliest: the next one is not farther away."""
        return self.moof.offset - int(self.pitch / 2)


class MiddleScan(Scan):
    """A pass that begins at a moof in the middle of the file, which may be wrong.

    Args:
        target: from here on its beginning is searched for.
        aim: where that is expected; None: anywhere.
        reads: in how many a fragment is searched, without aim.

    Attributes:
        begin: where it began; None while that is searched for.
        limit: where the next pass begins, or is searched for.
        first, last: moofs that it has met.
    """

    def __init__(
        self,
        target: int,
        pace: RecentFragments,
        aim: ExpectedMoof | None = None,
        reads: int = READS,
    ) -> None:
        super().__init__(target)
        self.aim, self.first, self.last = aim, _NOWHERE, _NOWHERE
        self.target = self.limit = target
        self.begin: int | None = None
        self.pace, self._elsewhere = RecentFragments(pace), RecentFragments(pace)
        self._over = False
        self._spent = 0
        # What is searched lies in one piece, which grows to both sides of where it is expected.
        self._low = self._high = (
            target if aim is None else max(target, aim.moof.offset - min(aim.miss, WINDOWS[1] // 2))
        )
        self._searched = bytearray()
        self._window = int(min(max(pace.stride / reads, WINDOWS[0]), WINDOWS[1]))
        self._longest = int(LONGEST_SEARCH * pace.stride) + SOME_WASTE
        self._largest = MOST_BOX * pace.head + SOME_BOX
        self._kept: list[bytes | bytearray] = []
        self._tops: list[Rows] = []

    def take_buffered(
        self, kept: bytes | bytearray, top: Rows, shaped: Shaped | None = None
    ) -> None:
        """Keep what was met until it counts."""
        self._kept.append(kept)
        self._tops.append(top)
        self.pace.note(top)
        whole = top[top["whole"] != 0]
        behind = np.cumsum(whole["size"])
        for row in np.flatnonzero(whole["type"] == MOOF)[[0, -1]].tolist() if len(whole) else ():
            start = int(behind[row] - whole["size"][row])
            self.last = NumberedMoof.of(int(whole["offset"][row]), kept[start : start + 24])
            self.first = self.last if self.first is _NOWHERE else self.first

    @property
    def wants(self) -> ByteRange | None:
        """What to read next; None where nothing is, for now or for good."""
        if self._over:
            return None
        if self.begin is None:
            return self._unsearched
        need = self.need
        if need is None or need.stop - self.position > self._largest or need.start >= self.limit:
            return None
        # What is met here may be made up: it is not read faster than it is believed.
        most = max(self._most - self._spent, self._elsewhere.head)
        stop = min(self.pace.behind(need, self), self.limit, need.start + most)
        return ByteRange(need.start, max(stop, need.stop))

    @property
    def _unsearched(self) -> ByteRange | None:
        """Where to search for its beginning next: on both sides in turn of where it is expected."""
        low, high, most = self._low, self._high, WINDOWS[1]
        if self.aim is None or low == self.target:
            stop = high + self._window
        elif low == high:
            stop = high + min(2 * self.aim.miss + self._elsewhere.head, most)
        else:
            middle, more = self.aim.moof.offset, min((high - low) // GROWTH, most)
            if high - middle > middle - low + self._elsewhere.head or high >= self.limit:
                return ByteRange(max(self.target, low - more), low)
            stop = high + more
        return ByteRange(high, min(stop, self.limit)) if high < self.limit else None

    @property
    def _most(self) -> int:
        """Bytes that this pass may have read, by what is known elsewhere in the file."""
        stretch = self.position - (self.target if self.begin is None else self.begin)
        return int(MOST_WASTE * self._elsewhere.expected(stretch)) + SOME_WASTE

    @property
    def edge(self) -> int:
        """Where the pass before it ends."""
        return self.target if self.begin is None else self.begin

    @property
    def is_searching(self) -> bool:
        """Whether its first moof is still to come."""
        return self.first is _NOWHERE and self.wants is not None

    @property
    def due(self) -> float:
        """Bytes that the search for its beginning is likely to read yet."""
        if self.begin is not None or self.lost:
            return 0.0
        anywhere = SEARCH_COST * self._elsewhere.stride
        if self.aim is None:
            return anywhere
        aimed = AIMED_COST * self.aim.miss + self._elsewhere.head
        # Where that was not enough, as much as was read before.
        return min(max(aimed, self._high - self._low), anywhere)

    @property
    def lost(self) -> bool:
        """Whether nothing was found to begin at."""
        return self.begin is None and (self._over or self._unsearched is None)

    def give(self, data: bytes, start: int) -> int:
        """Take what was read; returns how much of it, or of what was read before, was in vain."""
        self._over |= not data
        if self.begin is None:
            self._search(data, start)
            return len(data)
        self._spent += len(data)
        self._feed(data, start)
        if self._spent > self._most:
            self._over = True
            return self._spent
        return 0

    def _search(self, data: bytes, start: int) -> None:
        if start < self._low:
            self._over |= start + len(data) < self._low
            self._low = start
            self._searched[:0] = data
        else:
            self._high += len(data)
            self._searched += data
        offset = moof_in(self._searched, self._largest)
        if offset is None:
            if self._low == self.target:
                del self._searched[:-OVERLAP]
            self._over |= self._high - self._low > self._longest
            return
        self.begin = self._high - len(self._searched) + offset
        self.stop_at(self.begin, DONE, b"")
        self._feed(bytes(self._searched[offset:]), self.begin)
        self._searched.clear()

    def _feed(self, data: bytes, start: int) -> None:
        try:
            self.feed(data, start)
        except FormatError:
            self._over = True

    def hand_over(self, scan: Scan) -> None:
        """Give a scan that has come to where this pass began all that it met."""
        if self._tops:
            scan.take_buffered(b"".join(self._kept), np.concatenate(self._tops))
        scan.go_on_from(self)


class _Passes:
    """The scan, and the passes ahead of it, in file order."""

    def __init__(self, source: Source, scan: Scan) -> None:
        self.source, self.scan = source, scan
        self.pace = RecentFragments()
        self.ahead: list[MiddleScan] = []
        self.most = self.most_aimed = 0
        self.search_left = 0.0
        self._misses, self._hits = deque([FIRST_MISS / WIDER], MISSES), deque([True], MISSES)
        self._spans = deque([1.0], MISSES)
        self.planned = source.connections < 2
        self._noted = 0
        self._note()

    def round(self) -> bool:
        """Read what every pass wants next; False where the scan is over."""
        if not self.planned and self.pace.known >= ENOUGH_KNOWN and self.pace.stride:
            self._plan()
        self._begin_more()
        first = self._wanted()
        if first is None:
            return False
        requests = [(one, wants) for one in self.ahead if (wants := one.wants) is not None]
        if requests and self._fits([first, *(wants for _, wants in requests)]):
            data, *others = self.source.read_many([first, *(wants for _, wants in requests)])
        else:
            data, requests, others = read_there(self.source, first), [], []
        if not feed(self.source, self.scan, data, first.start):
            return False
        for (one, wants), read in zip(requests, others, strict=True):
            self.search_left -= one.give(read, wants.start)
        self._settle()
        return True

    def _wanted(self) -> ByteRange | None:
        """What the scan needs next, and as much after it as is likely to be needed."""
        need, size = needed(self.source, self.scan), self.source.size
        if need is None:
            return None
        early = self.scan.position < FIRST_GUESS
        stop = need.start + FIRST_GUESS if early else self.pace.behind(need, self.scan)
        if self.ahead:
            stop = min(stop, self.ahead[0].edge)
        stop = max(stop, need.stop)
        return ByteRange(need.start, stop if size is None else min(stop, size))

    def _fits(self, ranges: list[ByteRange]) -> bool:
        """Whether the budget holds reads that are made together."""
        source = self.source
        size = sum(one.size for one in ranges)
        return (source.max_bytes is None or source.bytes_read + size <= source.max_bytes) and (
            source.max_requests is None or source.requests + len(ranges) <= source.max_requests
        )

    def _note(self) -> None:
        """Learn from what the scan met since the last time."""
        tops = self.scan.tops()
        for top in tops[max(self._noted, len(tops) - ENOUGH_TOPS) :]:
            self.pace.note(top)
        self._noted = len(tops)

    def _plan(self) -> None:
        """Decide how many passes there are to be, and begin most of them."""
        size, at = self.source.size, self.scan.position
        if size is None:
            return
        self.planned = True
        stride, rest = self.pace.stride, size - at
        cost = SEARCH_COST * stride
        search = max(
            SEARCH_OF_HEADS * self.pace.expected(rest),
            min(SEARCH_OF_FILE * size, FEW_PASSES * cost),
            min(LEAST_SEARCH, LEAST_PART * rest),
        )
        most = min(MOST_PASSES, rest / stride / FRAGMENTS_EACH, search * (1 - KEPT_BACK) / cost)
        if self.pace.dense:
            most = min(most, self.source.connections, rest / LARGEST_WINDOW)
        aimed = 0
        if most > 1 and not self.pace.dense and self._agree():
            aimed = int(min(MOST_PASSES, rest / stride / FRAGMENTS_EACH))
        if most < 2 or not self._affords(rest, search, max(most, aimed)):
            return
        self.most, self.most_aimed, self.search_left = int(most), aimed, search
        if aimed:
            # One at the end, so that all others are between two that are known. They wait for it.
            end = max(at, size - int(FROM_END * stride))
            self.ahead = [MiddleScan(end, self.pace, reads=1)]
        else:
            step = rest // self.most
            self.ahead = [MiddleScan(at + n * step, self.pace) for n in range(1, self.most)]
        self._limit()

    def _agree(self) -> bool:
        """Whether the first moofs are about equally far apart, and their numbers count them."""
        offsets, buffers = self.scan.moofs()[0], self.scan.moof_bytes()
        if len(offsets) < max(ENOUGH_KNOWN, 2):
            return False
        pitch = np.diff(offsets)
        buffer, places = buffers[0]
        first = NumberedMoof.of(int(offsets[0]), buffer[int(places[0]) :])
        counted = NumberedMoof.of(*self.scan.last_moof).number - first.number == len(pitch)
        return counted and int(pitch.max()) <= MOST_UNEVEN * int(pitch.min())

    def _affords(self, rest: int, search: float, passes: float) -> bool:
        """Whether the budget holds all that is read ahead of what one pass would read."""
        source, count = self.source, rest / self.pace.stride
        if source.max_bytes is not None:
            heads = rest if self.pace.dense else self.pace.expected(rest)
            wanted = MARGIN * (heads + count * REQUEST_BYTES) + search
            if source.bytes_read + wanted > source.max_bytes:
                return False
        if source.max_requests is not None:
            left = source.max_requests - source.requests
            # Where one pass alone would not get there either, several may.
            return left > MARGIN * count + 4 * passes or left < count
        return True

    def _settle(self) -> None:
        """Let the scan take what was met from where it is now; drop what began at no moof."""
        self._note()
        for one in self.ahead:
            self._measure(one)
        self.ahead = [one for one in self.ahead if not one.lost]
        while self.ahead and (begin := self.ahead[0].begin) is not None:
            if begin > self.scan.position:
                break
            one = self.ahead.pop(0)
            if begin == self.scan.position:
                one.hand_over(self.scan)
                self._note()
        self._limit()

    def _limit(self) -> None:
        """Let each pass end where the next one begins."""
        limit = self.source.size or 0
        for one in reversed(self.ahead):
            one.limit = limit
            limit = one.edge

    def _measure(self, one: MiddleScan) -> None:
        """Learn from a pass how well it was aimed."""
        if one.aim is None or one.is_searching:
            return
        moof, pitch, _, span = one.aim
        is_hit = one.first.number == moof.number
        self._hits.append(is_hit)
        if is_hit:
            self._misses.append(abs(one.first.offset - moof.offset) / pitch)
            self._spans.append(span)
        one.aim = None

    def _miss(self, part: float) -> float:
        """How far so large a part of moofs is at most from where they are expected.

        In distances between two.
        """
        return sorted(self._misses)[int(part * (len(self._misses) - 1))]

    @property
    def _window(self) -> float:
        """As far as about half of moofs are from where they are expected."""
        return max(WIDER * self._miss(0.5), LEAST_MISS)

    @property
    def _aims(self) -> bool:
        """Whether passes can be aimed: numbers count moofs, and most are where they should be."""
        return self.most_aimed > 0 and sum(self._hits) * 2 >= len(self._hits)

    def _is_near(self, count: int) -> bool:
        """Whether moofs in the middle of so many are mostly near where they are expected.

        Where sizes vary by chance, misses fall with the square root of how many lie between.
        """
        measured = max(sum(self._spans) / len(self._spans), 1)
        return 1.5 * self._miss(0.9) * min(1.0, math.sqrt(count / measured)) <= MOST_MISS

    def _begin_more(self) -> None:
        """Divide the longest stretches that are left where passes have ended, or can be aimed."""
        while (busy := self.busy) < max(self.most, self.most_aimed):
            left = self.search_left - sum(one.due for one in self.ahead)
            size = self.source.size or 0
            stops = [*(one.edge for one in self.ahead), size]
            places = [self.scan.position, *(one.position for one in self.ahead)]
            rests = [stop - at for at, stop in zip(places, stops, strict=True)]
            least = 2 * FRAGMENTS_EACH * self.pace.stride
            rests = [rest if rest >= least else 0 for rest in rests]
            gap, aims = self._gap_to_divide(rests, busy, left)
            if gap is None:
                return
            more = [MiddleScan(aim.lowest, self.pace, aim) for aim in aims]
            more = more or [MiddleScan(places[gap] + rests[gap] // 2, self.pace)]
            if left < sum(one.due for one in more):
                return
            self.ahead[gap:gap] = more
            self._limit()

    def _aim(self, gap: int, parts: int) -> list[ExpectedMoof]:
        """At moofs that divide a stretch that is left; none where nothing tells where they are."""
        if not self._aims or gap == len(self.ahead):
            return []
        before = self.ahead[gap - 1] if gap else None
        left = before.last if before else NumberedMoof.of(*self.scan.last_moof)
        right = self.ahead[gap]
        if _NOWHERE in (left, right.first):
            return []
        count = right.first.number - left.number
        parts = min(parts, count // FRAGMENTS_EACH)
        start = (before or self).pace.middle(left)
        stop = right.pace.middle(right.last)
        if parts < 2 or stop[1] <= start[1] or not self._is_near(count):
            return []
        numbers = [left.number + n * count // parts for n in range(1, parts)]
        aims = ExpectedMoof.between(start, stop, numbers, self._window)
        position = (before or self.scan).position
        pitch = aims[0].pitch
        if not self.pace.stride / 2 < pitch < 2 * self.pace.stride:
            return []
        if not position < aims[0].lowest or aims[-1].lowest >= right.first.offset - pitch:
            return []
        return aims

    def _parts(self, rests: list[int], gap: int, busy: int, left: float) -> int:
        """In how many parts a stretch is divided at once."""
        if len(self._misses) == 1:
            return FIRST_PARTS
        if self._window > WELL_AIMED or len(self._misses) < FIRST_PARTS:
            return 2
        # As long as all parts would be if as many passes were begun as can be.
        more = min(self.most_aimed - busy, int(left * (1 - KEPT_BACK) / self._price))
        parts = min(round(rests[gap] * (busy + more) / sum(rests)), more + 1)
        # Other passes are kept for stretches that cannot be divided yet.
        return parts if any(one.is_searching for one in self.ahead) else max(2, parts)

    @property
    def _price(self) -> float:
        """Bytes that are likely to be read to find a moof that is aimed at."""
        return AIMED_COST * self._window * self.pace.stride + self.pace.head

    def _gap_to_divide(
        self, rests: list[int], busy: int, left: float
    ) -> tuple[int | None, list[ExpectedMoof]]:
        """The longest of some stretches; None where it is not known yet how, or none is long."""
        is_searching = self._aims and any(one.is_searching for one in self.ahead)
        waiting: list[int] = []
        for gap in sorted(range(len(rests)), key=rests.__getitem__, reverse=True):
            if not rests[gap]:
                break
            # Longer ones that wait for what is found shall become as short.
            kept = self._price * sum(2 * rest / rests[gap] - 1 for rest in waiting)
            if waiting and left < kept:
                break
            aims = self._aim(gap, self._parts(rests, gap, busy, left))
            if aims:
                return gap, aims
            if is_searching:
                waiting.append(rests[gap])
            elif busy < self.most:
                return gap, []
        return None, []

    @property
    def busy(self) -> int:
        """Passes that continue, the scan among them."""
        return 1 + sum(one.wants is not None for one in self.ahead)


def read_remote(source: Source, scan: Scan) -> None:
    """Hop through a remote source, at several places at once where that is worth it."""
    passes = _Passes(source, scan)
    while passes.round():
        pass
