"""Sound whose frames say where they end: AAC, MP3, AC-3 and E-AC-3."""

from __future__ import annotations

from array import array
from functools import cache
from typing import Final

from fragdex.indexing.native import compiled
from fragdex.repairing.syntax import (
    FoundSample,
    Kind,
    NativeSyntax,
    Syntax,
    Window,
    flags_table,
    places_of,
)

# Frames of AAC Low Complexity, as long as their own syntax says (ISO/IEC 14496-3, 4.4.2).
#
# In an MP4 nothing stands between frames of AAC, and nothing says how long one is: the last bit of
# a frame is known when all of it has been read, coefficient by coefficient. So each frame that is
# found is proved: its elements are those of the channel configuration, its sections end with the
# last band, its scale factors are in their range, and it ends with an ID_END.


# The Huffman codebooks, as far as the length of a frame depends on them. All are canonical:
# codewords of one length are consecutive numbers, shorter ones come first. So a codebook is what
# its codewords stand for, in their order, length by length (ISO/IEC 14496-3, Tables 4.A.1 to
# 4.A.12). Of spectral values only this counts: how many bits of sign follow (those that are not 0,
# in unsigned codebooks), and how many escape sequences (values of 16 in codebook 11).
LONGEST: Final = 16
"""Bits of the longest codeword of a spectral codebook."""
ESCAPE: Final = 11
"""The codebook with escape sequences."""

# signed values: no bits after the codeword. length -> codewords
_SIGNED: Final[dict[int, dict[int, int]]] = {
    1: {1: 1, 5: 8, 7: 24, 9: 24, 10: 8, 11: 16},
    2: {3: 1, 4: 1, 5: 7, 6: 24, 7: 15, 8: 19, 9: 14},
    5: {1: 1, 4: 4, 5: 4, 7: 4, 8: 12, 9: 12, 10: 12, 11: 18, 12: 10, 13: 4},
    6: {4: 9, 6: 16, 7: 13, 8: 8, 9: 23, 10: 8, 11: 4},
}
# length -> of each codeword the bits of sign; a: one and an escape, b: two and one, c: two and two
_UNSIGNED: Final[dict[int, dict[int, str]]] = {
    3: {
        1: "0",
        4: "1111",
        5: "22",
        6: "222323",
        7: "433",
        8: "11223",
        9: "232331221224334",
        10: "323244332333223",
        11: "24334423",
        12: "333334444",
        13: "223",
        14: "343",
        15: "44432",
        16: "33",
    },
    4: {
        4: "4333312022",
        5: "221211",
        7: "444433333",
        8: "333333322222222222211",
        9: "11444444",
        10: "33333333343334",
        11: "44222222433",
        12: "33",
    },
    7: {
        1: "0",
        3: "11",
        4: "2",
        6: "2211",
        7: "22211",
        8: "2222222211",
        9: "22212122222222",
        10: "211222222222222",
        11: "11222222",
        12: "2222",
    },
    8: {
        3: "2",
        4: "21212",
        5: "0112222",
        6: "2222211222",
        7: "22222221212222",
        8: "222121222222222",
        9: "22121222",
        10: "2112",
    },
    9: {
        1: "0",
        3: "11",
        4: "2",
        6: "2211",
        7: "222",
        8: "11222222",
        9: "22112222222",
        10: "12122222222122222222",
        11: "1222122221222211222222222222212",
        12: "22122222222222222222222122122222221222",
        13: "22222222222212212222122222222222",
        14: "22222222222222",
        15: "2222",
    },
    10: {
        4: "222",
        5: "21122222",
        6: "11222202211222",
        7: "22222222212122222",
        8: "2222222121222222222222222",
        9: "2221222221222222222222222221212",
        10: "22222212222221222222222222222221212122222",
        11: "2222222222121222122212",
        12: "22222122",
    },
    11: {
        4: "02",
        5: "c11222",
        6: "2221212",
        7: "2222221122222222",
        8: "2222222bbbbb2b121b2bbbb22222bb22bbb22b2bbb2b22bb2221bb22221",
        9: "2bb22b2b2222222b221222222122222222222222122222222222a22",
        10: "2222a212222222222222222222222222222221222222222222222222122222222222222222222222"
        "222211222222222",
        11: "2222222222222222212212122212222211222212212",
        12: "112112",
    },
}
_MEANING: Final = {"0": (0, 0), "1": (1, 0), "2": (2, 0), "3": (3, 0), "4": (4, 0)} | {
    "a": (1, 1),
    "b": (2, 1),
    "c": (2, 2),
}

DELTA_BITS: Final = 19
"""Bits of the longest codeword of a difference of scale factors."""
_DELTA_COUNTS: Final = {1: 1, 3: 1, 4: 3, 5: 2, 6: 4, 7: 3, 8: 5, 9: 4, 10: 6, 11: 6} | {
    12: 6,
    13: 5,
    14: 8,
    15: 4,
    16: 7,
    17: 3,
    18: 7,
    19: 46,
}
# fmt: off
_DELTAS: Final = (
    0, -1, 1, -2, 2, -3, 3, -4, 4, -5, 5, 6, -6, 7, -7, 8, -8, 9, -9, 10, -10, -11, 11, 12, -12,
    13, -13, 14, -14, 16, 15, 17, 18, -15, -17, -16, 19, -18, -19, 20, -20, 21, -21, 22, -22, 23,
    -23, -25, 25, -27, -24, -26, 24, -28, 27, 29, -30, -29, 26, -31, -34, -33, -32, -36, 28, -35,
    -38, -37, 30, -39, -41, -57, -59, -58, -60, 38, 39, 40, 41, 42, 57, 37, 31, 32, 33, 34, 35, 36,
    44, 51, 52, 53, 54, 55, 56, 50, 45, 46, 47, 48, 49, 58, -54, -52, -51, -50, -55, 43, 60, 59,
    -56, -53, -45, -44, -42, -40, -43, -49, -48, -46, -47,
)
# fmt: on


@cache
def spectral(codebook: int) -> array[int]:
    """What each 16 bits begin with: bits of codeword and signs, plus 64 for each escape."""
    if codebook in _SIGNED:
        words = [(size, 0, 0) for size, n in _SIGNED[codebook].items() for _ in range(n)]
    else:
        words = [
            (size, *_MEANING[mark]) for size, marks in _UNSIGNED[codebook].items() for mark in marks
        ]
    table = array("H")
    for size, signs, escapes in words:
        table.extend([size + signs + 64 * escapes] * (1 << LONGEST - size))
    return table


@cache
def deltas() -> tuple[tuple[int, int, tuple[int, ...]], ...]:
    """Of each length of codewords: bits, the first number of 19 bits after them, and the deltas."""
    codewords: list[tuple[int, int, tuple[int, ...]]] = []
    at = first = 0
    for size, count in _DELTA_COUNTS.items():
        at += count << DELTA_BITS - size
        codewords.append((size, at, _DELTAS[first : first + count]))
        first += count
    return tuple(codewords)


_LONG: Final = {
    "96": "14*1 5*2 5*3 2*4 6 7 9 11 11*16",
    "64": "14*1 4*2 3*3 3*4 5 2*6 7 9 18*10",
    "48": "10*1 7*2 4*3 2*4 2*5 2*6 2*7 19*8 24",
    "32": "10*1 7*2 4*3 2*4 2*5 2*6 2*7 22*8",
    "24": "11*1 10*2 4*3 3*4 2*5 2*6 2*7 8 2*9 10 11 12 2*13 5*16",
    "16": "11*2 9*3 4*4 3*5 2*6 2*7 8 9 2*10 11 12 13 14 15 3*16",
    "8": "13*3 7*4 4*5 3*6 2*7 8 2*9 10 11 12 13 14 15 16 20",
}
_SHORT: Final = {
    "96": "6*1 3*2 4 7 9",
    "48": "5*1 3*2 3*3 3*4",
    "24": "7*1 3*2 2*3 2*4 5",
    "16": "8*1 2*2 2*3 4 2*5",
    "8": "7*1 4*2 3 4 2*5",
}
"""Widths of bands in units of four coefficients, and how many follow one another."""
_BANDS: Final = (
    *(("96", "96"), ("96", "96"), ("64", "96"), ("48", "48"), ("48", "48"), ("32", "48")),
    *(("24", "24"), ("24", "24"), ("16", "16"), ("16", "16"), ("16", "16"), ("8", "8"), ("8", "8")),
)
"""samplingFrequencyIndex → scale factor bands of long and of short windows."""


@cache
def bands(rate_index: int, short: bool) -> tuple[int, ...]:
    """Where scale factor bands begin, in coefficients of a window, and where the last one ends.

    ISO/IEC 14496-3, Tables 4.129 to 4.147, for frames of 1024.
    """
    widths = (_SHORT if short else _LONG)[_BANDS[rate_index][short]]
    borders = [0]
    for run in widths.split():
        count, _, width = run.rpartition("*")
        borders += [borders[-1] + 4 * int(width) * step for step in range(1, int(count or 1) + 1)]
    return tuple(borders)


@cache
def _tables() -> tuple[bytes, bytes]:
    """All codebooks one after the other, and the table of deltas: as the C extension reads them.

    Each 19 bits begin with a codeword of so many bits, and stand for a delta: 32 * (64 + it).
    """
    books = b"".join(spectral(number).tobytes() for number in range(1, ESCAPE + 1))
    rows = array("H")
    for size, _, values in deltas():
        for value in values:
            rows.extend([size + 32 * (64 + value)] * (1 << DELTA_BITS - size))
    return books, rows.tobytes().ljust(2 << DELTA_BITS, b"\0")


@cache
def _edges(rate_index: int) -> tuple[bytes, bytes]:
    """`bands` of long and of short windows, as the C extension reads them."""
    long, short = (array("H", bands(rate_index, kind)).tobytes() for kind in (False, True))
    return long, short


SCE, CPE, CCE, LFE, DSE, PCE, FIL, END = range(8)
"""id_syn_ele (4.5.2.1.1, Table 4.85)."""
ELEMENTS: Final = {
    1: (SCE,),
    2: (CPE,),
    3: (SCE, CPE),
    4: (SCE, CPE, SCE),
    5: (SCE, CPE, CPE),
    6: (SCE, CPE, CPE, LFE),
    7: (SCE, CPE, CPE, CPE, LFE),
}
"""channelConfiguration → the elements of a frame, in their order (1.6.3.5, Table 1.19)."""
MOST_BYTES: Final = 8192
"""Bytes of a frame: 6144 bits a channel, and what fills it up."""
_NOISE, _INTENSITY, _RESERVED = 13, 14, 12
_MOST_FILL: Final = 16
"""Elements that are not sound, in one frame."""


class _Damaged(Exception):
    """These bits are not a frame."""


class _Reader:
    """Bits of a frame, highest first."""

    __slots__ = ("_data", "at", "stop")

    def __init__(self, data: bytes) -> None:
        self._data, self.at, self.stop = data, 0, len(data) * 8

    def take(self, count: int) -> int:
        at = self.at
        self.at = at + count
        if self.at > self.stop:
            raise _Damaged
        first, last = at >> 3, self.at + 7 >> 3
        word = int.from_bytes(self._data[first:last], "big")
        return word >> (last << 3) - self.at & (1 << count) - 1

    def peek(self, count: int) -> int:
        """As `take`, without advancing; zeros after the end."""
        first = self.at >> 3
        word = int.from_bytes(self._data[first : first + 4].ljust(4, b"\0"), "big")
        return word >> 32 - count - (self.at & 7) & (1 << count) - 1

    def skip(self, count: int) -> None:
        self.at += count
        if self.at > self.stop:
            raise _Damaged

    def pairs(self, codebook: int, count: int) -> None:
        """Pass so many codewords, with their signs and escape sequences."""
        table, data, at = spectral(codebook), self._data, self.at
        for _ in range(count):
            first = at >> 3
            word = int.from_bytes(data[first : first + 3], "big")
            if first + 3 > len(data):
                word <<= 8 * (first + 3 - len(data))
            entry = table[word >> 8 - (at & 7) & 0xFFFF]
            at += entry & 63
            if entry > 63:
                self.at = at
                for _ in range(entry >> 6):
                    self._escape()
                at = self.at
        self.at = at
        if at > self.stop:
            raise _Damaged

    def _escape(self) -> None:
        """escape_sequence: ones, a zero, and four bits more than ones (4.6.3.3)."""
        for ones in range(9):
            if not self.take(1):
                self.skip(ones + 4)
                return
        raise _Damaged

    def delta(self) -> int:
        """A difference of scale factors."""
        word = self.peek(DELTA_BITS)
        for size, behind, values in deltas():
            if word < behind:
                self.skip(size)
                return values[len(values) - 1 - (behind - 1 - word >> DELTA_BITS - size)]
        raise _Damaged


class _Windows:
    """ics_info: how the coefficients of a channel are arranged (4.4.2.1, Table 4.6)."""

    __slots__ = ("bands", "groups", "limit", "short")

    def __init__(self, bits: _Reader, rate_index: int) -> None:
        if bits.take(1):  # ics_reserved_bit
            raise _Damaged
        self.short = bits.take(2) == 2
        bits.skip(1)  # window_shape
        self.groups = [1]
        if self.short:
            self.limit = bits.take(4)
            for _ in range(7):
                if bits.take(1):
                    self.groups[-1] += 1
                else:
                    self.groups.append(1)
        else:
            self.limit = bits.take(6)
            if bits.take(1):  # predictor_data_present: none in Low Complexity
                raise _Damaged
        self.bands = bands(rate_index, self.short)
        if self.limit >= len(self.bands):
            raise _Damaged


def read_frame(data: bytes, rate_index: int, configuration: int | None) -> tuple[int, int]:
    """Bytes of the frame that `data` begins with, 0: it begins with none; and bits that were read.

    Args:
        rate_index: samplingFrequencyIndex of the core, without SBR.
        configuration: channelConfiguration; None or 0: any elements.
    """
    if compiled is None:
        return read_frame_plain(data, rate_index, configuration)
    elements = bytes(ELEMENTS.get(configuration or 0, ()))
    size, bits = compiled.aac_frame(data, *_tables(), *_edges(rate_index), elements)
    return int(size), int(bits)


def read_frame_plain(data: bytes, rate_index: int, configuration: int | None) -> tuple[int, int]:
    """`read_frame` without the C extension."""
    bits = _Reader(data)
    try:
        whole = _is_frame(bits, rate_index, ELEMENTS.get(configuration or 0))
    except _Damaged:
        whole = False
    return (bits.at + 7 >> 3 if whole else 0), min(bits.at, bits.stop)


def _is_frame(bits: _Reader, rate_index: int, elements: tuple[int, ...] | None) -> bool:
    """raw_data_block (Table 4.3)."""
    count = filled = 0
    while (kind := bits.take(3)) != END:
        if kind in (SCE, CPE, LFE):
            if elements is not None and elements[count : count + 1] != (kind,):
                return False
            count += 1
            bits.skip(4)  # element_instance_tag
            if kind == CPE:
                _pair(bits, rate_index)
            else:
                _channel(bits, rate_index, None)
        elif kind in (FIL, DSE) and filled < _MOST_FILL:
            filled += 1
            if kind == FIL:
                _fill(bits)
            else:
                _stream(bits)
        else:
            return False
    return count == len(elements) if elements is not None else count > 0


def _fill(bits: _Reader) -> None:
    count = bits.take(4)
    if count == 15:
        count += bits.take(8) - 1
    bits.skip(8 * count)


def _stream(bits: _Reader) -> None:
    """data_stream_element (Table 4.10)."""
    bits.skip(4)
    aligned = bits.take(1)
    count = bits.take(8)
    if count == 255:
        count += bits.take(8)
    if aligned:
        bits.skip(-bits.at % 8)
    bits.skip(8 * count)


def _pair(bits: _Reader, rate_index: int) -> None:
    """channel_pair_element (Table 4.5)."""
    windows = None
    if bits.take(1):  # common_window
        windows = _Windows(bits, rate_index)
        mask = bits.take(2)
        if mask == 3:
            raise _Damaged
        if mask == 1:
            bits.skip(len(windows.groups) * windows.limit)
    _channel(bits, rate_index, windows)
    _channel(bits, rate_index, windows)


def _channel(bits: _Reader, rate_index: int, windows: _Windows | None) -> None:
    """individual_channel_stream (Table 4.50)."""
    gain = bits.take(8)
    windows = windows or _Windows(bits, rate_index)
    sections = _sections(bits, windows)
    _scale_factors(bits, windows, sections, gain)
    if bits.take(1):  # pulse_data_present: of long windows only
        if windows.short:
            raise _Damaged
        count = bits.take(2) + 1
        if bits.take(6) >= len(windows.bands):
            raise _Damaged
        bits.skip(9 * count)
    if bits.take(1):  # tns_data_present
        _noise_shaping(bits, windows)
    if bits.take(1):  # gain_control_data_present: none in Low Complexity
        raise _Damaged
    edges = windows.bands
    for length, group in zip(windows.groups, sections, strict=True):
        for codebook, low, high in group:
            if 0 < codebook < _RESERVED:
                count = (edges[high] - edges[low]) * length
                bits.pairs(codebook, count // (4 if codebook < 5 else 2))


Section = tuple[int, int, int]
"""Codebook, first band and last (exclusive)."""


def _sections(bits: _Reader, windows: _Windows) -> list[list[Section]]:
    """section_data (Table 4.52)."""
    width = 3 if windows.short else 5
    escape = (1 << width) - 1
    sections = []
    for _ in windows.groups:
        band, group = 0, []
        while band < windows.limit:
            codebook, high = bits.take(4), band
            if codebook == _RESERVED:
                raise _Damaged
            while (step := bits.take(width)) == escape:
                high += step
            high += step
            if not band <= high <= windows.limit or high == band:
                raise _Damaged
            group.append((codebook, band, high))
            band = high
        sections.append(group)
    return sections


def _scale_factors(
    bits: _Reader, windows: _Windows, sections: list[list[Section]], gain: int
) -> None:
    """scale_factor_data (Table 4.53); each has to be from 0 to 255 (4.6.2.3.2)."""
    noisy = False
    for group in sections:
        for codebook, low, high in group:
            for _ in range(low, high if codebook else low):
                if codebook == _NOISE and not noisy:
                    noisy = True
                    bits.skip(9)
                    continue
                delta = bits.delta()
                if codebook < _NOISE:
                    gain += delta
                    if not 0 <= gain <= 255:
                        raise _Damaged


def _noise_shaping(bits: _Reader, windows: _Windows) -> None:
    """tns_data (Table 4.54)."""
    short = windows.short
    for _ in range(8 if short else 1):
        filters = bits.take(1 if short else 2)
        resolution = bits.take(1) if filters else 0
        for _ in range(filters):
            bits.skip(4 if short else 6)
            order = bits.take(3 if short else 5)
            if order:
                bits.skip(1)
                bits.skip((3 + resolution - bits.take(1)) * order)


class Aac(Syntax):
    """AAC Low Complexity, with or without SBR and PS.

    Args:
        rate_index: samplingFrequencyIndex of the core.
        configuration: channelConfiguration.

    Attributes:
        leads: first bits that frames of the file have, as ids of elements; None: any may come.
    """

    def __init__(self, rate_index: int, configuration: int | None) -> None:
        self._rate_index, self._configuration = rate_index, configuration
        self.leads: set[int] | None = None

    def lent(self) -> NativeSyntax:
        """As `Syntax.lent`."""
        elements = bytes(ELEMENTS.get(self._configuration or 0, ()))
        leads = flags_table(range(8) if self.leads is None else self.leads, 8)
        tables = (*_tables(), *_edges(self._rate_index), elements, leads)
        return NativeSyntax(Kind.AAC, [int(self.holes)], tables)

    def find(self, window: Window, at: int, stop: int) -> FoundSample | None:
        """The frame that begins here."""
        data = window.take(at, min(MOST_BYTES, stop - at))
        if not data or (self.leads is not None and data[0] >> 5 not in self.leads):
            return None
        size, bits = read_frame(data, self._rate_index, self._configuration)
        self.spent += bits >> 3
        return FoundSample(at + size) if size else None

    def starts(self, data: bytes) -> list[int]:
        """Places where an element may begin that begins frames of this file."""
        if self.leads is None:
            return super().starts(data)
        return places_of(data, (byte for byte in range(256) if byte >> 5 in self.leads))


_BIT_RATES: Final = {
    # kbit/s by version 1 or not, and layer (ISO/IEC 11172-3, 2.4.2.3; 13818-3, 2.4.2.3)
    (True, 1): (0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448),
    (True, 2): (0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (True, 3): (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (False, 1): (0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256),
    (False, 2): (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
_BIT_RATES[False, 3] = _BIT_RATES[False, 2]
_SAMPLE_RATES: Final = (44100, 48000, 32000)


class MpegAudio(Syntax):
    """MPEG-1 and MPEG-2 audio, layers 1 to 3: a header of 32 bits says the size."""

    def __init__(self, rate: int | None) -> None:
        self._rate = rate

    def find(self, window: Window, at: int, stop: int) -> FoundSample | None:
        """The frame that begins here."""
        head = int.from_bytes(window.take(at, 4).ljust(4, b"\0"), "big")
        version, layer = head >> 19 & 3, 4 - (head >> 17 & 3)
        rates, speed = head >> 12 & 15, head >> 10 & 3
        if head >> 21 != 0x7FF or version == 1 or layer == 4 or rates in (0, 15) or speed == 3:
            return None
        rate = _SAMPLE_RATES[speed] >> (0 if version == 3 else 1 if version == 2 else 2)
        if (self._rate is not None and rate != self._rate) or head & 3 == 2:
            return None
        bits = _BIT_RATES[version == 3, layer][rates] * 1000
        pad = head >> 9 & 1
        if layer == 1:
            size = (12 * bits // rate + pad) * 4
        else:
            size = (72 if layer == 3 and version != 3 else 144) * bits // rate + pad
        return FoundSample(at + size) if at + size <= stop else None

    def starts(self, data: bytes) -> list[int]:
        """Places of a first byte FF."""
        return places_of(data, b"\xff")


_AC3_RATES: Final = (
    *(32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640),
)


class Ac3(Syntax):
    """AC-3 and E-AC-3: a sync word and a size (ETSI TS 102 366, 5.3.1 and E.1.2).

    A sample of E-AC-3 is the independent substream with those that depend on it (F.2).
    """

    def find(self, window: Window, at: int, stop: int) -> FoundSample | None:
        """The frame that begins here."""
        size, kind = self._frame(window, at)
        if not size or kind == 1:
            return None
        at += size
        while kind is not None:
            size, kind = self._frame(window, at)
            if not size or kind != 1:
                break
            at += size
        return FoundSample(at) if at <= stop else None

    def _frame(self, window: Window, at: int) -> tuple[int, int | None]:
        """Bytes of a frame, 0: none; and the type of its substream, None: AC-3."""
        head = window.take(at, 6)
        if len(head) < 6 or head[:2] != b"\x0b\x77":
            return 0, None
        identity, speed = head[5] >> 3, head[4] >> 6
        if identity > 10:
            size = ((head[2] & 7) << 8 | head[3]) * 2 + 2
            return (size, head[2] >> 6) if identity <= 16 and head[2] >> 6 < 3 else (0, None)
        code = head[4] & 63
        if speed == 3 or code >= 2 * len(_AC3_RATES):
            return 0, None
        rate = _AC3_RATES[code >> 1]
        words = (2 * rate, rate * 96000 // 44100 + (code & 1), 3 * rate)[speed]
        return 2 * words, None

    def starts(self, data: bytes) -> list[int]:
        """Places of the sync word."""
        return places_of(data, b"\x0b")
