"""Frames of FLAC (RFC 9639, 9): a header with a checksum and a number, and a checksum of the whole.

Nothing says how long a frame is: it ends where its CRC-16 is right. That is so by chance at one of
65,536 places, so that all of them are given where the header of the next frame does not decide.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

from fragdex.indexing.codecs import BitReader, Missing
from fragdex.indexing.native import compiled
from fragdex.repairing.syntax import FoundSample, Syntax, Window, occurrences

MOST_ENDS: Final = 16
"""Places where a frame may end that are given."""
MOST_BYTES: Final = 1 << 20
"""Bytes of a frame; 65,535 samples of 8 channels and 32 bits would be twice as many."""
HEADER_BYTES: Final = 16
"""Bytes of the longest header of a frame."""
FOOTER: Final = 2
_RATES: Final = (
    *(0, 88200, 176400, 192000, 8000, 16000, 22050, 24000, 32000, 44100, 48000, 96000),
)
_DEPTHS: Final = (0, 8, 12, -1, 16, 20, 24, 32)


class StreamInfo(NamedTuple):
    """What the sample entry says of all frames (8.2)."""

    least_block: int
    most_block: int
    most_bytes: int
    rate: int
    channels: int
    depth: int


def stream_info(data: bytes) -> StreamInfo | None:
    """STREAMINFO of the metadata blocks of a dfLa box, or None."""
    bits = BitReader(data)
    try:
        if bits.take(8) & 0x7F or bits.take(24) < 18:
            return None
        least, most = bits.take(16), bits.take(16)
        bits.take(24)
        return StreamInfo(
            least, most, bits.take(24), bits.take(20), bits.take(3) + 1, bits.take(5) + 1
        )
    except Missing:
        return None


class FrameHeader(NamedTuple):
    """A header of a frame (9.1).

    Attributes:
        size: bytes of it, its checksum included.
        block: samples of each channel.
        varies: whether blocks are of several sizes, and frames numbered by their first sample.
        number: of the frame, or of its first sample.
    """

    size: int
    block: int
    varies: bool
    number: int

    @property
    def following(self) -> int:
        """The number of the next frame."""
        return self.number + (self.block if self.varies else 1)


def header_of(data: bytes, info: StreamInfo) -> FrameHeader | None:
    """The header that these bytes begin with; None: they begin with none of this stream."""
    if len(data) < 6 or data[0] != 0xFF or data[1] & 0xFE != 0xF8 or data[3] & 1:
        return None
    block_code, rate_code = data[2] >> 4, data[2] & 15
    layout, depth = data[3] >> 4, _DEPTHS[data[3] >> 1 & 7]
    channels = layout + 1 if layout < 8 else 2
    if not block_code or rate_code == 15 or layout > 10 or channels != info.channels:
        return None
    if depth not in (0, info.depth):
        return None
    number, at = _coded_number(data, 4)
    if not at:
        return None
    if block_code in (6, 7):
        block = int.from_bytes(data[at : at + block_code - 5], "big") + 1
        at += block_code - 5
    else:
        block = 192 if block_code == 1 else 144 << block_code if block_code < 6 else 1 << block_code
    rate = _RATES[rate_code] if rate_code < 12 else 0
    if rate_code >= 12:
        width = 1 if rate_code == 12 else 2
        rate = int.from_bytes(data[at : at + width], "big") * (1, 1000, 1, 10)[rate_code & 3]
        rate = rate * 1000 if rate_code == 12 else rate // 1000 if rate_code == 13 else rate
        at += width
    if rate and info.rate and rate != info.rate:
        return None
    if len(data) <= at or _crc8(data[:at]) != data[at]:
        return None
    if info.most_block and block > info.most_block:
        return None
    return FrameHeader(at + 1, block, bool(data[1] & 1), number)


def _coded_number(data: bytes, at: int) -> tuple[int, int]:
    """A number of up to 36 bits, coded like UTF-8, and where it ends; 0 where there is none."""
    first = data[at]
    if first < 0x80:
        return first, at + 1
    more = 0
    while more < 7 and first & 0x40 >> more:
        more += 1
    rest = data[at + 1 : at + 1 + more]
    if not 0 < more < 7 or len(rest) < more or any(byte & 0xC0 != 0x80 for byte in rest):
        return 0, 0
    number = first & 0x3F >> more
    for byte in rest:
        number = number << 6 | byte & 0x3F
    return number, at + 1 + more


class Flac(Syntax):
    """FLAC in samples of MP4."""

    holes = True  # a checksum is over all of it
    open_ended = True  # a checksum with 0 at its end is one without it, too
    remembers = True

    def __init__(self, info: StreamInfo) -> None:
        self._info = info
        self._next: int | None = None
        raw = info.most_block * info.channels * (info.depth + 1) // 8 + 64
        self._longest = min(info.most_bytes or raw or MOST_BYTES, MOST_BYTES)

    def finds(self, window: Window, at: int, stop: int) -> list[FoundSample]:
        """As `Syntax.finds`: a frame for each place where its checksum is right."""
        header = header_of(window.take(at, HEADER_BYTES), self._info)
        if header is None:
            return []
        data = window.take(at, min(self._longest, stop - at))
        self.spent += len(data)
        ends = crc16_ends(data, header.size + 1 + FOOTER, MOST_ENDS)
        for end in ends:
            following = header_of(window.take(at + end, HEADER_BYTES), self._info)
            if following is not None and following.number == header.following:
                ends = [end]
                break
        head = (header.number, header.following)
        return [FoundSample(at + end, head=head) for end in ends]

    def find(self, window: Window, at: int, stop: int) -> FoundSample | None:
        """The frame that begins here: the one that ends at `stop`, or the shortest."""
        frames = self.finds(window, at, stop)
        return next((one for one in frames if one.stop == stop), frames[0] if frames else None)

    def may_follow(self, sample: FoundSample) -> bool:
        """Whether it has the next number."""
        return self._next is None or sample.head is None or sample.head[0] == self._next

    def accept(self, sample: FoundSample) -> FoundSample:
        """Count the frames."""
        if sample.head is not None:
            self._next = sample.head[1]
        return sample._replace(head=None)

    def interrupted(self) -> None:
        """The next frame may be any."""
        self._next = None

    def begins(self, window: Window, at: int) -> bool:
        """A header, but for the end of the frame."""
        if at + self._longest <= window.stop:
            return False
        header = header_of(window.take(at, HEADER_BYTES), self._info)
        return header is not None and self._next in (None, header.number)

    def starts(self, data: bytes) -> list[int]:
        """Places of the sync code."""
        ends = (b"\xf8", b"\xf9", b"")
        return [at for at in occurrences(data, b"\xff") if data[at + 1 : at + 2] in ends]


@cache
def _crc_table(width: int, polynomial: int) -> tuple[int, ...]:
    rows = []
    for byte in range(256):
        value = byte << width - 8
        for _ in range(8):
            value = value << 1 ^ (polynomial if value >> width - 1 else 0)
            value &= (1 << width) - 1
        rows.append(value)
    return tuple(rows)


def _crc8(data: bytes) -> int:
    """x^8 + x^2 + x + 1 (9.1.8)."""
    table, value = _crc_table(8, 0x07), 0
    for byte in data:
        value = table[value ^ byte]
    return value


def crc16_ends(data: bytes, least: int, most: int) -> list[int]:
    """Numbers of bytes, rising, whose CRC-16 (x^16 + x^15 + x^2 + 1; 9.3) is 0.

    Args:
        least: bytes, at least.
        most: numbers, at most.
    """
    if compiled is not None:
        return list(compiled.crc16_ends(data, least, most))
    return crc16_ends_plain(data, least, most)


def crc16_ends_plain(data: bytes, least: int, most: int) -> list[int]:
    """`crc16_ends` without the C extension."""
    table, value, ends = _crc_table(16, 0x8005), 0, []
    for count, byte in enumerate(data, 1):
        value = (value << 8 & 0xFFFF) ^ table[value >> 8 ^ byte]
        if not value and count >= least:
            ends.append(count)
            if len(ends) >= most:
                break
    return ends
