"""Clock timestamps of pictures: what an hour, minute, second and frame of each say of the rate.

AVC has them in its picture timing messages (ISO/IEC 14496-10, D.1.3 and D.2.3), HEVC in messages
of their own (time_code; ISO/IEC 23008-2, D.2.27 and D.3.27).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import groupby, pairwise
from typing import Final, NamedTuple

from fragdex.byterange import ByteRange
from fragdex.indexing.codecs import Missing
from fragdex.repairing.avc import Avc
from fragdex.repairing.hevc import Hevc
from fragdex.repairing.nal_units import SLICE, Golomb, NalUnits
from fragdex.repairing.rates import FILM_PACES, MOST_RATE, NTSC, Rate
from fragdex.sources import Source

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
    known = None if before is None else before.second
    seconds, minutes, hours = (None,) * 3 if known is None else _parts(known)
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
    # a clock that never says its minutes or hours still counts the seconds
    minutes, hours = minutes or 0, hours or 0
    if minutes > 59 or hours > 23:
        return None
    return Stamp((hours * 60 + minutes) * 60 + seconds, frame, counting)


def _parts(second: int) -> tuple[int | None, ...]:
    return second % 60, second // 60 % 60, second // 3600


def stamps_of(syntax: NalUnits, source: Source, offsets: Sequence[int]) -> list[Stamp | None]:
    """The timestamps of pictures in decode order; none: the first pictures have none.

    Args:
        offsets: where their samples begin.
    """
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

    >>> second = [[Stamp(3600 + n // 25, n % 25, 0) for n in range(60)]]
    >>> rate_of_stamps(second).value
    Fraction(25, 1)
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
