"""Samples that do not say where they end, and lie between others that do: PCM, and Opus."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

import numpy as np

from fragdex.fragments.table import Int64, SampleTable
from fragdex.repairing.syntax import (
    HOLE,
    FoundSample,
    Kind,
    NativeSyntax,
    Syntax,
    Window,
    flags_table,
)
from fragdex.seeking.model import Track

Fits: TypeAlias = Callable[[int], bool]

MOST_LENGTHS: Final = 64
"""Lengths of chunks that are tried first."""
MOST_HEADS: Final = 16
"""Places in which packets may begin between two pictures: with more, they cannot be told apart."""
MOST_PACKETS: Final = 8
"""Packets of Opus between two pictures."""
MOST_SAMPLES: Final = 1 << 20
"""Samples of a good file that are looked at."""
CHUNKS: Final = 4
"""Longest chunks of a good file in which the end of one is looked for."""
SLACK: Final = 1e-4
FOREVER: Final = 1e9
NOMINAL: Final = 1e-5
"""By so much of it the rate of a short good file may differ from a nominal one."""
FEW: Final = 4
"""Packets by which the pace of a good file may vary."""
LIKENESS: Final = 5
"""First bytes in which packets are alike that are no others by chance."""
MOST_PACKET: Final = 1275
"""Bytes of a frame of Opus (RFC 6716, 3.2.1); what one file has does not bound another."""


def run_heads(offset: Int64, size: Int64) -> Int64:
    """The samples that do not stand right after the one before them, the first among them."""
    return np.append(0, np.flatnonzero(offset[1:] != offset[:-1] + size[:-1]) + 1)


class Between(Syntax):
    """Samples that only their neighbours delimit.

    Attributes:
        lengths: bytes of chunks of a good file, the frequent ones first.
        longest: bytes in which the end of a chunk is looked for.
    """

    delimited = False

    def __init__(self, samples: SampleTable) -> None:
        heads = run_heads(samples.offset, samples.size)
        sums = np.add.reduceat(samples.size, heads) if len(samples) else samples.size
        counted = Counter(sums.tolist())
        self.lengths = [length for length, _ in counted.most_common(MOST_LENGTHS)]
        self.longest = CHUNKS * max(counted, default=0)

    def find(self, window: Window, at: int, stop: int) -> FoundSample | None:
        """None: where it ends is not in it."""
        return None

    @abstractmethod
    def may_start(self, window: Window, at: int) -> bool:
        """Whether a sample may begin here."""

    @abstractmethod
    def split(self, window: Window, start: int, stop: int, fits: Fits) -> list[int] | None:
        """Sizes of the samples that fill these bytes; empty: there are several ways; None: none."""

    def sample(self, window: Window, at: int, size: int) -> FoundSample:
        """A sample of so many bytes that is kept."""
        return FoundSample(at + size)

    def is_usual(self, sizes: Sequence[int], size: int) -> bool:
        """Whether a good file has samples as large as these; of none known, so many bytes."""
        return True


class PacketPace:
    """How far sound may be ahead of pictures where a picture follows it in the file.

    Muxers put samples in the order of their times, each in its own way. How a good file does it
    says how many packets lie between two pictures, where nothing else does.

    Args:
        sound, picture: seconds of a packet, and of a picture.
        least, most: seconds that sound is ahead of the picture that follows it, in a good file.
    """

    def __init__(self, sound: float, picture: float, least: float, most: float) -> None:
        self._sound, self._picture = sound, picture
        self._least, self._most = least - SLACK, most + SLACK
        self._base: tuple[float, float] = (0.0, 0.0)

    def fits(self, packets: int, pictures: int) -> bool:
        """Whether so many packets may lie in front of the picture after so many."""
        ahead = packets * self._sound - pictures * self._picture
        low, high = self._base
        return ahead + high >= self._least and ahead + low <= self._most

    def pass_gap(self, packets: int, pictures: int) -> None:
        """So many packets do: what was not known after a loss is known better."""
        ahead = packets * self._sound - pictures * self._picture
        low, high = self._base
        low, high = max(low, self._least - ahead), min(high, self._most - ahead)
        self._base = (low, high) if low <= high else (-FOREVER, FOREVER)

    def lent(self) -> tuple[float, ...]:
        """What the C extension walks with: what was given, and what is known since."""
        return (self._sound, self._picture, self._least, self._most, *self._base)

    def resume(self, base: tuple[float, float]) -> None:
        """Continue with what the C extension knows since."""
        self._base = base

    def lose(self) -> None:
        """Samples are missing: how far sound is ahead is not known."""
        self._base = (-FOREVER, FOREVER)


def pace_of(sound: Track, pictures: Track) -> PacketPace | None:
    """The pace of a good file; None where its times say nothing."""
    heard, seen = first_samples(sound), first_samples(pictures)
    if not len(heard) or not len(seen):
        return None
    packet, picture = _seconds_each(sound, heard), _seconds_each(pictures, seen)
    if packet is None or picture is None:
        return None
    ends = heard.offset + heard.size
    following = np.searchsorted(seen.offset, ends)
    inside = np.flatnonzero(following < len(seen))
    meets = inside[seen.offset[following[inside]] == ends[inside]]
    if not len(meets):
        return None
    ahead = (meets + 1) * packet - following[meets] * picture
    least, most = float(ahead.min()), float(ahead.max())
    return PacketPace(packet, picture, least, most) if most - least < FEW * packet else None


def _seconds_each(track: Track, samples: SampleTable) -> float | None:
    """Seconds of each sample where all last equally long, but for rounding to ticks; else None."""
    count = len(samples) - 1
    whole = int(samples.dts[-1] - samples.dts[0]) if count > 0 else int(samples.duration[0])
    if whole <= 0 or not track.timescale:
        return None
    line = np.arange(len(samples)) * (whole / max(count, 1))
    if np.abs(samples.dts - samples.dts[0] - line).max() > 1:
        return None
    # A mean of rounded numbers drifts: nominal rates do not.
    rate = max(count, 1) * track.timescale / whole
    for nominal in (round(rate), round(rate * 1.001) / 1.001):
        if nominal and abs(rate - nominal) <= NOMINAL * nominal:
            return 1 / nominal
    return 1 / rate


def first_samples(track: Track) -> SampleTable:
    """As many samples of a good file as are looked at."""
    counts = np.cumsum(track.fragments.sample_count)
    rows = int(np.searchsorted(counts, MOST_SAMPLES)) + 1
    return track.samples_of(0, min(rows, len(counts)))


class Even(Between):
    """Samples of one size: PCM, and packets of a constant bit rate."""

    def __init__(self, samples: SampleTable) -> None:
        super().__init__(samples)
        self.unit = int(samples.size[0])
        self._usual = set(self.lengths)
        self._several = len(self.lengths) == MOST_LENGTHS

    def lent(self) -> NativeSyntax:
        """As `Syntax.lent`."""
        numbers = [int(self.holes), self.unit, self.longest, int(self._several), *self.lengths]
        return NativeSyntax(Kind.EVEN, numbers)

    def may_start(self, window: Window, at: int) -> bool:
        """As `Between.may_start`: any bytes are sound."""
        return at + self.unit <= window.stop

    def split(self, window: Window, start: int, stop: int, fits: Fits) -> list[int] | None:
        """As `Between.split`: one size and how often, as `[unit, count]`."""
        count, rest = divmod(stop - start, self.unit)
        if rest or not count:
            return None
        length = stop - start
        last = stop == window.stop and not window.cut
        several = self._several or last
        usual = length in self._usual or (several and CHUNKS * length <= self.longest)
        return [self.unit, count] if usual and fits(count) else None


class Opus(Between):
    """Opus, whose packets begin with a table of contents (RFC 6716, 3.1)."""

    def __init__(self, samples: SampleTable, packets: Iterable[bytes]) -> None:
        super().__init__(samples)
        heads = set()
        for packet in packets:
            heads.add(packet[:LIKENESS])
            self.holes = self.holes or HOLE in packet
        self._heads = {head[0] for head in heads if head}
        self._longest_chunk = self.longest // CHUNKS
        self._largest = int(samples.size.max(initial=0))
        self._seen = {head[:LIKENESS] for head in heads if len(head) >= LIKENESS}
        self._sorted = b"".join(sorted(self._seen))
        self.lengths = []  # of sizes that vary, none is more likely than a nearer end

    def lent(self) -> NativeSyntax:
        """As `Syntax.lent`."""
        numbers = [int(self.holes), self.longest, self._longest_chunk, self._largest]
        return NativeSyntax(Kind.OPUS, numbers, (flags_table(self._heads), self._sorted))

    def may_start(self, window: Window, at: int) -> bool:
        """As `Between.may_start`."""
        head = window.take(at, 1)
        return bool(head) and head[0] in self._heads

    def split(self, window: Window, start: int, stop: int, fits: Fits) -> list[int] | None:
        """As `Between.split`: by sizes and first bytes like those of the good file."""
        size = stop - start
        if not 0 < size <= self.longest:
            return None
        if not self.may_start(window, start):
            return None
        data = window.take(start, size)
        if HOLE in data and not self.holes:
            return None
        heads = [place for place in range(size) if data[place] in self._heads]
        counts = [count for count in range(1, MOST_PACKETS + 1) if fits(count)]
        if len(heads) > MOST_HEADS or not counts:
            return [] if counts else None
        ways = _ways(heads, size, counts)
        several = len(ways) > 1
        if several:
            known = [at for at in heads if data[at : at + LIKENESS] in self._seen]
            ways = _ways(known, size, counts) if known[:1] == [0] else []
        if len(ways) == 1 and max(ways[0]) > self._largest:
            return []  # the beginning of another packet may not be known
        return list(ways[0]) if len(ways) == 1 else [] if several else None

    def is_usual(self, sizes: Sequence[int], size: int) -> bool:
        """As `Between.is_usual`."""
        return max(sizes) <= self._largest if sizes else size <= self._longest_chunk


def _ways(heads: list[int], size: int, counts: list[int]) -> list[tuple[int, ...]]:
    """How packets that begin at some of these places fill all bytes; two ways at most."""
    # of each place and number of packets before it the ways to get there
    ways: dict[tuple[int, int], list[tuple[int, ...]]] = {(0, 0): [()]}
    for place in [*heads[1:], size]:
        for low in heads:
            if not 0 < place - low <= MOST_PACKET + 1:
                continue
            for number in range(counts[-1]):
                for before in ways.get((low, number), ()):
                    places = ways.setdefault((place, number + 1), [])
                    if len(places) < 2:
                        places.append((*before, place - low))
    return [way for count in counts for way in ways.get((size, count), ())][:2]
