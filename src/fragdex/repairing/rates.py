"""How many pictures a second a stream has, by what several witnesses say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from fractions import Fraction
from itertools import groupby, islice, pairwise
from typing import Final, NamedTuple

import numpy as np

from fragdex.byterange import ByteRange
from fragdex.fragments.table import Int64
from fragdex.indexing.codecs import Missing
from fragdex.indexing.parameter_sets import Golomb
from fragdex.record import record
from fragdex.repairing.avc import Avc
from fragdex.repairing.hevc import Hevc
from fragdex.repairing.nal_units import SLICE, NalUnits
from fragdex.repairing.syntax import FoundSample, Syntax, Window, occurrences
from fragdex.sources import Source

MOST_RATE: Final = 1000
DEFAULT_RATE: Final = Fraction(25)
NTSC: Final = Fraction(1000, 1001)
FILM_PACES: Final = frozenset({24, 30, 48, 60, 96, 120, 240})
"""Counts of a clock that stand for themselves, or for a thousandth less (23.976, 29.97 …)."""
USUAL: Final = tuple(
    sorted(
        {Fraction(pace) for pace in (10, 12, 15, 20, 25, 50, 100, 200)}
        | {Fraction(pace) for pace in FILM_PACES}
        | {pace * NTSC for pace in FILM_PACES}
    )
)
"""Rates that cameras have."""
LEAST_MOMENTS: Final = 4
"""Moments between which a rate is believed."""
NEAR: Final = Fraction(1, 10_000)
"""Part by which two rates may differ and still be one."""


@record(frozen=True, slots=True)
class Rate:
    """Pictures a second, as something says.

    Attributes:
        value: the rate.
        witness: what says so, in words.
        low, high: between which it lies; None: exactly the value.
    """

    value: Fraction
    witness: str
    low: Fraction | None = None
    high: Fraction | None = None

    @property
    def bounds(self) -> tuple[Fraction, Fraction]:
        """The lowest and the highest rate that it may mean."""
        low = self.value if self.low is None else self.low
        high = self.value if self.high is None else self.high
        return low, high

    @property
    def is_exact(self) -> bool:
        """Whether it means one rate alone."""
        return self.low in (None, self.value) and self.high in (None, self.value)

    def fits(self, other: Rate) -> bool:
        """Whether both can be true."""
        (low, high), (least, most) = self.bounds, other.bounds
        near = 1 + NEAR
        return low <= most * near and least <= high * near


def text_of(rate: Fraction) -> str:
    """A rate as people write it.

    >>> text_of(Fraction(25)), text_of(30 * NTSC)
    ('25', '29.970')
    """
    return str(rate) if rate.denominator == 1 else f"{float(rate):.3f}"


def decided(rates: Sequence[Rate], *, is_given: bool = False) -> tuple[Fraction, list[str]]:
    """The rate that is taken, and what is a guess or contradicts it, as sentences.

    Args:
        rates: what witnesses say, those first that are believed first; two of them that agree are
            believed rather than one.
        is_given: the first one is believed whatever others say.

    >>> decided([Rate(Fraction(50), "parameter sets"), Rate(Fraction(25), "clock timestamps")])[1]
    ['clock timestamps say 25 pictures a second, parameter sets 50: 50 are taken']
    """
    if not rates:
        return DEFAULT_RATE, [f"no rate is known: {DEFAULT_RATE} pictures a second are taken"]
    chosen = rates[0]
    if not is_given:
        backed = [sum(other.fits(one) for other in rates) for one in rates]
        chosen = rates[backed.index(max(backed))]
    if not chosen.is_exact:
        fitting = [one for one in rates if one.fits(chosen)]
        chosen = min(fitting, key=lambda one: one.bounds[1] - one.bounds[0])
    taken = text_of(chosen.value)
    sentences = []
    if not chosen.is_exact:
        low, high = (text_of(one) for one in chosen.bounds)
        sentences.append(
            f"the rate is a guess: {chosen.witness} say {low} to {high} pictures a second,"
            f" {taken} are taken"
        )
    sentences += [
        f"{other.witness} say {text_of(other.value)} pictures a second, {chosen.witness} {taken}:"
        f" {taken} are taken"
        for other in rates
        if not other.fits(chosen)
    ]
    return chosen.value, sentences


def rate_between(numbers: Sequence[int], times: Sequence[Fraction], witness: str) -> Rate | None:
    """Pictures a second between moments; None: time does not pass, or no picture.

    Args:
        numbers: of pictures before each moment.
        times: of the moments, in seconds.
        witness: what says when they are.

    >>> rate_between([0, 31, 60, 91], [Fraction(n) for n in range(4)], "a clock").value
    Fraction(30, 1)
    """
    if len(numbers) < LEAST_MOMENTS or any(b <= a for a, b in pairwise(times)):
        return None
    count, length = numbers[-1] - numbers[0], times[-1] - times[0]
    if count <= 0:
        return None
    each = Fraction(count) / length
    pairs = zip(numbers, times, strict=True)
    off = 1 + max(abs(number - numbers[0] - each * (time - times[0])) for number, time in pairs)
    low, high = max(each - off / length, Fraction(0)), each + off / length
    usual = [rate for rate in USUAL if low <= rate <= high]
    value = min(usual, key=lambda rate: abs(rate - each)) if usual else each.limit_denominator(1001)
    return Rate(value, witness, low, high) if 0 < value <= MOST_RATE else None


# Clock timestamps of pictures: what an hour, minute, second and frame of each say of the rate.
#
# AVC has them in its picture timing messages (ISO/IEC 14496-10, D.1.3 and D.2.3), HEVC in messages
# of their own (time_code; ISO/IEC 23008-2, D.2.27 and D.3.27).

PICTURE_TIMING: Final = 1
TIME_CODE: Final = 136
DAY: Final = 24 * 3600
_TIMESTAMPS: Final = (1, 1, 1, 2, 2, 3, 3, 2, 3)
"""NumClockTS of each pic_struct (Table D-1)."""
DROP_FRAME: Final = 4
"""counting_type: frames 0 and 1 are left out at the start of nine of ten minutes (D.2.3)."""
PROBED: Final = 8
"""Pictures without a timestamp after which none is looked for."""
LOOKED_AT: Final = 2048
"""Pictures whose timestamps are read."""
MOST_UNITS: Final = 32
HEAD_BYTES: Final = 2048
"""Bytes of a sample in which its messages are looked for."""


class Stamp(NamedTuple):
    """A clock timestamp.

    Attributes:
        second: of the day.
        frame: n_frames: the picture in its second.
        counting: counting_type.
    """

    second: int
    frame: int
    counting: int


def messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    r"""Type and payload of the messages of an SEI unit, without its header (7.3.2.3).

    >>> list(messages(b"\x05\x01a\x06\x00\x80"))
    [(5, b'a'), (6, b'')]
    """
    plain = data.replace(b"\0\0\3", b"\0\0")
    at = 0
    while at + 2 < len(plain):
        numbers = [0, 0]
        for part in range(2):
            while at < len(plain) and plain[at] == 255:
                numbers[part] += 255
                at += 1
            if at >= len(plain):
                return
            numbers[part] += plain[at]
            at += 1
        kind, size = numbers
        if at + size > len(plain):
            return
        yield kind, plain[at : at + size]
        at += size


def stamp_of_avc(data: bytes, delays: int, before: Stamp | None = None) -> Stamp | None:
    """The first timestamp of a picture timing message (D.1.3); None: it has none.

    Args:
        data: its payload.
        delays: as `avc.Sps` has them.
        before: the last one: what a timestamp does not say is as it was.
    """
    bits = Golomb(data)
    try:
        bits.take(delays)
        structure = bits.take(4)
        count = _TIMESTAMPS[structure] if structure < len(_TIMESTAMPS) else 0
        for _ in range(count):
            if bits.take(1):
                bits.take(2)
                return _take_stamp(bits, 8, before)
    except Missing:
        return None
    return None


def stamp_of_hevc(data: bytes, before: Stamp | None = None) -> Stamp | None:
    """The first timestamp of a time_code message (D.2.27); None: it has none."""
    bits = Golomb(data)
    try:
        for _ in range(bits.take(2)):
            if bits.take(1):
                return _take_stamp(bits, 9, before)
    except Missing:
        return None
    return None


def _take_stamp(bits: Golomb, frame_bits: int, before: Stamp | None) -> Stamp | None:
    """From units_field_based_flag (nuit_field_based_flag) on."""
    bits.take(1)
    counting = bits.take(5)
    full = bits.take(1)
    bits.take(2)
    frame = bits.take(frame_bits)
    seconds: int | None = None
    minutes = hours = 0  # a clock that never says its minutes or hours still counts the seconds
    if before is not None:
        minutes, seconds = divmod(before.second, 60)
        hours, minutes = divmod(minutes, 60)
    if full:
        seconds, minutes, hours = bits.take(6), bits.take(6), bits.take(5)
    elif bits.take(1):
        seconds = bits.take(6)
        if bits.take(1):
            minutes = bits.take(6)
            if bits.take(1):
                hours = bits.take(5)
    if seconds is None or seconds > 59:
        return None
    if minutes > 59 or hours > 23:
        return None
    return Stamp((hours * 60 + minutes) * 60 + seconds, frame, counting)


def stamps_of(syntax: NalUnits, source: Source, offsets: Sequence[int]) -> list[Stamp | None]:
    """The timestamps of pictures in decode order; none: the first pictures have none."""
    stamps: list[Stamp | None] = []
    last: Stamp | None = None
    for number, at in enumerate(offsets[:LOOKED_AT]):
        if number >= PROBED and last is None:
            break
        stamp = _stamp_at(syntax, source, at, last)
        last = stamp or last
        stamps.append(stamp)
    return stamps if last is not None else []


def _stamp_at(syntax: NalUnits, source: Source, at: int, last: Stamp | None) -> Stamp | None:
    """The timestamp among the messages in front of the picture of a sample."""
    head = source.read_up_to(ByteRange.of(at, HEAD_BYTES))
    place = 0
    for _ in range(MOST_UNITS):
        begin = place + syntax.length_size
        size = int.from_bytes(head[place:begin], "big")
        unit = head[begin : begin + size]
        if len(unit) <= syntax.header or syntax.kind_of(unit, size) == SLICE:
            break
        if syntax.type_of(unit) == syntax.messages:
            for kind, data in messages(unit[syntax.header :]):
                stamp = None
                if isinstance(syntax, Avc) and kind == PICTURE_TIMING:
                    delays = syntax.delays
                    stamp = None if delays is None else stamp_of_avc(data, delays, last)
                elif isinstance(syntax, Hevc) and kind == TIME_CODE:
                    stamp = stamp_of_hevc(data, last)
                if stamp is not None:
                    return stamp
        place = begin + size
    return None


def rate_of_stamps(runs: Sequence[Sequence[Stamp | None]]) -> Rate | None:
    """Pictures a second that the clock of a stream counts; None: it does not say it clearly.

    Args:
        runs: of pictures in the order in which they are shown, between which none is missing.
    """
    counts: set[int] = set()
    turns: set[int] = set()
    drops = False
    for run in runs:
        for known, part in groupby(run, key=lambda one: one is not None):
            if known:
                stamps = [one for one in part if one is not None]
                if any(_falls(before, after) for before, after in pairwise(stamps)):
                    return None
                drops = drops or any(one.counting == DROP_FRAME for one in stamps)
                seconds = [list(group) for _, group in groupby(stamps, key=lambda o: o.second)]
                counts |= set(_counted(seconds))
                turns |= set(_turned(seconds))
    each = counts or turns
    if len(each) != 1:
        return None
    (count,) = each
    if not 1 <= count <= MOST_RATE:
        return None
    exact = Fraction(count)
    if drops and count in FILM_PACES:
        return Rate(exact * NTSC, "clock timestamps")
    low = exact * NTSC if count in FILM_PACES else exact
    return Rate(exact, "clock timestamps", low=low)


def _counted(seconds: Sequence[Sequence[Stamp]]) -> Iterator[int]:
    """Pictures of whole seconds: those before and after are there too."""
    for before, here, after in zip(seconds, seconds[1:], seconds[2:], strict=False):
        second = here[0].second
        whole = _follows(before, here) and _follows(here, after) and here[0].frame == 0
        if whole and not (here[0].counting == DROP_FRAME and second % 60 == 0):
            yield len(here)


def _turned(seconds: Sequence[Sequence[Stamp]]) -> Iterator[int]:
    """Pictures that the clock counts before the next second begins."""
    for here, after in pairwise(seconds):
        frames = [one.frame for one in here]
        by_ones = frames == list(range(frames[0], frames[0] + len(frames)))
        if len(here) > 1 and by_ones and _follows(here, after) and after[0].frame == 0:
            yield frames[-1] + 1


def _falls(before: Stamp, after: Stamp) -> bool:
    """Whether a clock goes back, but for midnight."""
    if after.second == before.second:
        return after.frame < before.frame
    return (after.second - before.second) % DAY > DAY // 2


def _follows(before: Sequence[Stamp], after: Sequence[Stamp]) -> bool:
    return (after[0].second - before[0].second) % DAY == 1


# Telemetry of cameras among the pictures: when its payloads were recorded.
#
# GoPro's GPMF: a payload is an item DEVC with items inside, each a key of four letters, a type, a
# size and a count, and values padded to 32 bits (github.com/gopro/gpmf-parser). Of the clocks in
# it, STMP counts microseconds of the recording, TICK milliseconds, and GPSU is the date and time
# of GPS. A payload covers about a second: so many pictures lie between two of them.

DEVICE, STREAM = b"DEVC", b"STRM"
_BEGIN: Final = DEVICE + b"\0\1"
_CLOCKS: Final = {b"STMP": (b"J", 8, 1_000_000), b"TICK": (b"L", 4, 1000)}
"""Type and bytes of a clock, and how many of its ticks a second has."""
GPS_TIME: Final = b"GPSU"
FREE: Final = 1 << 18
TIMES: Final = 8
"""Bytes that are read as payloads: so many, and each byte so many times."""
MOST_PAYLOADS: Final = 1024
"""Payloads whose clocks are read."""
MOST_DEVICES: Final = 16
"""Items DEVC of a payload."""


class Item(NamedTuple):
    """An item of GPMF: its key, the type of its values (0: items), and their bytes."""

    key: bytes
    kind: bytes
    data: bytes


class Moment(NamedTuple):
    """When a payload was recorded.

    Attributes:
        at: where it begins in the file.
        clock: key of the clock, with the device and stream to which it belongs.
        seconds: what it shows.
    """

    at: int
    clock: tuple[bytes, ...]
    seconds: Fraction


def items(data: bytes) -> list[Item] | None:
    r"""The items that fill these bytes; None: they are not items.

    >>> items(b"TICKL\x04\x00\x01\x00\x00\x00\x07")
    [Item(key=b'TICK', kind=b'L', data=b'\x00\x00\x00\x07')]
    """
    entries, at = [], 0
    while at < len(data):
        head = data[at : at + 8]
        if len(head) < 8 or not head[:4].isalnum():
            return None
        size = head[5] * int.from_bytes(head[6:], "big")
        if at + 8 + size > len(data):
            return None
        entries.append(Item(head[:4], head[4:5], data[at + 8 : at + 8 + size]))
        at += 8 + size + -size % 4
    return entries


class Gpmf(Syntax):
    """Payloads of GPMF: items DEVC, one for each device."""

    holes = True
    rare = True

    def __init__(self) -> None:
        self._left, self._reached = FREE, 0

    def find(self, window: Window, at: int, stop: int) -> FoundSample | None:
        """The payload that begins here."""
        end = at
        for _ in range(MOST_DEVICES):
            head = window.take(end, 8)
            if head[:6] != _BEGIN or len(head) < 8:
                break
            size = 8 + int.from_bytes(head[6:], "big")
            size += -size % 4
            if end + size > stop or not self._may_read(end, size):
                break
            if not items(window.take(end + 8, size - 8)):
                break
            end += size
        return FoundSample(end) if end > at else None

    def _may_read(self, at: int, size: int) -> bool:
        """Whether bytes are read once more, which payloads inside of each other ask for."""
        self._left += TIMES * max(0, at + size - max(self._reached, at))
        self._reached = max(self._reached, at + size)
        if size > self._left:
            return False
        self._left -= size
        return True

    def starts(self, data: bytes) -> list[int]:
        """Places of the key of a device."""
        cut = range(max(0, len(data) - len(DEVICE) + 1), len(data))
        return [*occurrences(data, DEVICE), *cut]


def moments_in(source: Source, payloads: Iterable[ByteRange]) -> list[Moment]:
    """The times of payloads, in the order of the file; of the first ones where there are many."""
    moments: list[Moment] = []
    for payload in islice(payloads, MOST_PAYLOADS):
        for device in items(source.read_up_to(payload)) or []:
            moments += _moments(items(device.data) or [], payload.start)
    return moments


def _moments(inside: Sequence[Item], at: int) -> Iterator[Moment]:
    """What the clocks in a payload show."""
    device = next((one.data for one in inside if one.key == b"DVID"), b"")
    for stream in inside:
        if stream.key != STREAM:
            continue
        values = items(stream.data) or []
        name = values[-1].key if values else b""
        for value in values:
            seconds = _seconds(value)
            if seconds is not None:
                yield Moment(at, (value.key, device, name), seconds)


def _seconds(item: Item) -> Fraction | None:
    """What a clock shows, in seconds; None: it is not a clock."""
    if item.key in _CLOCKS:
        kind, size, ticks = _CLOCKS[item.key]
        if item.kind != kind or len(item.data) < size:
            return None
        return Fraction(int.from_bytes(item.data[:size], "big"), ticks)
    if item.key != GPS_TIME or item.kind not in (b"U", b"c"):
        return None
    try:
        when = datetime.strptime(item.data[:16].decode("ascii"), "%y%m%d%H%M%S.%f")
    except ValueError:
        return None
    since = when - datetime(2000, 1, 1)
    return Fraction(since.days * 86400 + since.seconds) + Fraction(since.microseconds, 10**6)


def rates_of(moments: Sequence[Moment], offsets: Int64, edges: Sequence[int]) -> list[Rate]:
    """Pictures a second between payloads, by each kind of clock that is in enough of them.

    Args:
        offsets: where the pictures begin, rising.
        edges: places in the file where pictures are missing: nothing is counted over them.
    """
    series = defaultdict(list)
    for one in moments:
        series[one.clock].append(one)
    rates = []
    for key in (*_CLOCKS, GPS_TIME):
        those = [run for clock, run in series.items() if clock[0] == key]
        if those:
            rate = _rate(max(those, key=len), offsets, edges)
            if rate is not None:
                rates.append(rate)
    return rates


def _rate(moments: Sequence[Moment], offsets: Int64, edges: Sequence[int]) -> Rate | None:
    """Pictures between the first payload and the last one, of the longest part without a hole."""
    parts = defaultdict(list)
    for one in moments:
        parts[int(np.searchsorted(edges, one.at))].append(one)
    run = max(parts.values(), key=len)
    numbers = np.searchsorted(offsets, [one.at for one in run]).tolist()
    clock = run[0].clock[0].decode("ascii")
    witness = f"payloads of telemetry (GPMF, {clock})"
    return rate_between(numbers, [one.seconds for one in run], witness)
