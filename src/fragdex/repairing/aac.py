"""Frames of AAC Low Complexity, as long as their own syntax says (ISO/IEC 14496-3, 4.4.2).

In an MP4 nothing stands between frames of AAC, and nothing says how long one is: the last bit of a
frame is known when all of it has been read, coefficient by coefficient. So each frame that is found
is proved: its elements are those of the channel configuration, its sections end with the last band,
its scale factors are in their range, and it ends with an ID_END.
"""

from __future__ import annotations

from typing import Final

from fragdex.repairing.aac_codebooks import DELTA_BITS, bands, deltas, spectral

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
"""Elements that are no sound, in one frame."""


class _Damaged(Exception):
    """These bits are no frame."""


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
        """As `take`, without going on; zeros behind the end."""
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
            taken = table[word >> 8 - (at & 7) & 0xFFFF]
            at += taken & 63
            if taken > 63:
                self.at = at
                for _ in range(taken >> 6):
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
        data: at least the frame.
        rate_index: samplingFrequencyIndex of the core, without SBR.
        configuration: channelConfiguration; None or 0: any elements.

    >>> read_frame(bytes.fromhex("00000007") + bytes(9), 4, 1)  # silence, and ID_END
    (4, 32)
    """
    bits = _Reader(data)
    try:
        whole = _is_frame(bits, rate_index, ELEMENTS.get(configuration or 0))
    except _Damaged:
        whole = False
    return (bits.at + 7 >> 3 if whole else 0), bits.at


def _is_frame(bits: _Reader, rate_index: int, elements: tuple[int, ...] | None) -> bool:
    """raw_data_block (Table 4.3)."""
    found = filled = 0
    while (kind := bits.take(3)) != END:
        if kind in (SCE, CPE, LFE):
            if elements is not None and elements[found : found + 1] != (kind,):
                return False
            found += 1
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
    return found == len(elements) if elements is not None else found > 0


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
    made = []
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
        made.append(group)
    return made


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
