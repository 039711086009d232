"""Telemetry of cameras among the pictures: when its payloads were recorded.

GoPro's GPMF: a payload is an item DEVC with items inside, each a key of four letters, a type, a
size and a count, and values padded to 32 bits (github.com/gopro/gpmf-parser). Of the clocks in it,
STMP counts microseconds of the recording, TICK milliseconds, and GPSU is the date and time of GPS.
A payload covers about a second: so many pictures lie between two of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from fractions import Fraction
from itertools import islice
from typing import Final, NamedTuple

import numpy as np

from fragdex.byterange import ByteRange
from fragdex.fragments.table import Int64
from fragdex.repairing.rates import Rate, rate_between
from fragdex.repairing.syntax import Found, Syntax, Window
from fragdex.sources import Source

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
    r"""The items that fill these bytes; None: they are no items.

    >>> items(b"TICKL\x04\x00\x01\x00\x00\x00\x07")
    [Item(key=b'TICK', kind=b'L', data=b'\x00\x00\x00\x07')]
    """
    found, at = [], 0
    while at < len(data):
        head = data[at : at + 8]
        if len(head) < 8 or not head[:4].isalnum():
            return None
        size = head[5] * int.from_bytes(head[6:], "big")
        if at + 8 + size > len(data):
            return None
        found.append(Item(head[:4], head[4:5], data[at + 8 : at + 8 + size]))
        at += 8 + size + -size % 4
    return found


class Gpmf(Syntax):
    """Payloads of GPMF: items DEVC, one for each device."""

    holes = True
    rare = True

    def __init__(self) -> None:
        self._left, self._reached = FREE, 0

    def find(self, window: Window, at: int, stop: int) -> Found | None:
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
        return Found(end) if end > at else None

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
        places, at = [], data.find(DEVICE)
        while at >= 0:
            places.append(at)
            at = data.find(DEVICE, at + 1)
        return [*places, *range(max(0, len(data) - len(DEVICE) + 1), len(data))]


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
    """What a clock shows, in seconds; None: it is no clock."""
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
    series: dict[tuple[bytes, ...], list[Moment]] = defaultdict(list)
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
    parts: dict[int, list[Moment]] = defaultdict(list)
    for one in moments:
        parts[int(np.searchsorted(edges, one.at))].append(one)
    run = max(parts.values(), key=len)
    numbers = np.searchsorted(offsets, [one.at for one in run]).tolist()
    clock = run[0].clock[0].decode("ascii")
    witness = f"payloads of telemetry (GPMF, {clock})"
    return rate_between(numbers, [one.seconds for one in run], witness)
