"""Access units of HEVC, and the order in which their pictures are shown (ISO/IEC 23008-2)."""

from __future__ import annotations

from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

from fragdex.indexing.codecs import Missing
from fragdex.repairing.avc import is_filler, is_messages
from fragdex.repairing.nal_units import (
    AFTER,
    BEFORE,
    SLICE,
    Golomb,
    OrderedByLsb,
    Slice,
    Ticks,
    pass_signal,
    payload,
    take_ticks,
)
from fragdex.repairing.syntax import Kind, NativeSyntax

VPS, SPS, PPS, DELIMITER, PREFIX_SEI, SUFFIX_SEI = 32, 33, 34, 35, 39, 40
_IDR: Final = (19, 20)
_ENDS: Final = (36, 37)
"""End of sequence, end of bitstream."""
FILLER: Final = 38
_IRAP: Final = range(16, 24)
_PASSED: Final = (*range(6, 10), *range(0, 16, 2))
"""Pictures that others do not count from: leading ones, and those of no reference (8.3.1)."""


class Sps(NamedTuple):
    """A sequence parameter set (7.3.2.2.1): what slice headers need, and the clock.

    Attributes:
        ticks: vui_num_units_in_tick and vui_time_scale, or None; a picture lasts a tick (E.3.1).
    """

    order_bits: int
    planes: bool
    width: int
    height: int
    blocks: int
    profile: bytes
    chroma: int
    depths: tuple[int, int]
    sub_layers: int
    ticks: Ticks | None = None


def sps_of(unit: bytes) -> tuple[int, Sps]:
    """Number of a sequence parameter set, and what it says.

    Raises:
        Missing: it is invalid.
    """
    bits = payload(unit, 2)
    bits.take(4)
    layers = bits.take(3)
    bits.take(1)
    profile = _profile(bits, layers)
    number, chroma = bits.ue(), bits.ue()
    planes = chroma == 3 and bool(bits.take(1))
    width, height = bits.ue(), bits.ue()
    coded = (width, height)
    if bits.take(1):
        left, right, top, bottom = (bits.ue() for _ in range(4))
        width -= (left + right) * (2 if chroma in (1, 2) else 1)
        height -= (top + bottom) * (2 if chroma == 1 else 1)
    depths = (bits.ue() + 8, bits.ue() + 8)
    order_bits = bits.ue() + 4
    for _ in range(layers + 1 if bits.take(1) else 1):
        for _ in range(3):
            bits.ue()
    smallest = bits.ue() + 3
    size = 1 << smallest + bits.ue()
    if number > 15 or chroma > 3 or order_bits > 16 or max(depths) > 16 or not 8 <= size <= 64:
        raise Missing
    if not (0 < width <= 1 << 15 and 0 < height <= 1 << 15):
        raise Missing
    blocks = -(-coded[0] // size) * -(-coded[1] // size)
    return number, Sps(
        order_bits, planes, width, height, blocks, profile, chroma, depths, layers + 1,
        _ticks_of_sps(bits, order_bits),
    )  # fmt: skip


def ticks_of_vps(unit: bytes) -> Ticks | None:
    """vps_num_units_in_tick and vps_time_scale of a video parameter set (7.3.2.1), or None."""
    bits = payload(unit, 2)
    try:
        bits.take(12)
        layers = bits.take(3)
        bits.take(17)
        _profile(bits, layers)
        for _ in range(layers + 1 if bits.take(1) else 1):
            for _ in range(3):
                bits.ue()
        width = bits.take(6) + 1
        bits.take(width * _few(bits.ue(), 1023))
        return take_ticks(bits)
    except Missing:
        return None


def _profile(bits: Golomb, layers: int) -> bytes:
    """The general part of profile_tier_level() (7.3.3), with its level."""
    profile = bits.take(96).to_bytes(12, "big")
    marks = [(bits.take(1), bits.take(1)) for _ in range(layers)]
    if layers:
        bits.take(2 * (8 - layers))
    for has_profile, has_level in marks:
        bits.take(88 * has_profile + 8 * has_level)
    return profile


def _few(number: int, most: int) -> int:
    if number > most:
        raise Missing
    return number


def _ticks_of_sps(bits: Golomb, order_bits: int) -> Ticks | None:
    """The clock of a sequence parameter set, from log2_min_luma_transform_block_size_minus2 on."""
    try:
        for _ in range(4):
            bits.ue()
        if bits.take(1) and bits.take(1):
            _skip_scaling_lists(bits)
        bits.take(2)
        if bits.take(1):  # PCM
            bits.take(8)
            bits.ue()
            bits.ue()
            bits.take(1)
        sets: list[_PictureSet] = []
        for _ in range(_few(bits.ue(), 64)):
            sets.append(_picture_set(bits, sets))
        if bits.take(1):
            for _ in range(_few(bits.ue(), 32)):
                bits.take(order_bits + 1)
        bits.take(2)
        return _ticks_of_vui(bits) if bits.take(1) else None
    except Missing:
        return None


def _skip_scaling_lists(bits: Golomb) -> None:
    """scaling_list_data() (7.3.4)."""
    for size in range(4):
        for _ in range(0, 6, 3 if size == 3 else 1):
            if not bits.take(1):
                bits.ue()
                continue
            for _ in range(min(64, 16 << 2 * size) + (size > 1)):
                bits.ue()


_PictureSet = tuple[list[int], list[int]]
"""Picture order counts from the current picture, backwards and forwards, nearest first."""


def _picture_set(bits: Golomb, before: list[_PictureSet]) -> _PictureSet:
    """st_ref_pic_set() of a sequence parameter set (7.3.7, 7.4.8)."""
    if before and bits.take(1):
        sign = -1 if bits.take(1) else 1
        distance = sign * (bits.ue() + 1)
        back, forth = before[-1]
        # used_by_curr_pic_flag, and use_delta_flag only where that is 0
        kept = [bool(bits.take(1) or bits.take(1)) for _ in range(len(back) + len(forth) + 1)]
        moved = [
            (count + distance, keeps) for count, keeps in zip([*back, *forth, 0], kept, strict=True)
        ]
        counts = [count for count, keeps in moved if keeps]
        return (
            sorted((count for count in counts if count < 0), reverse=True),
            sorted(count for count in counts if count > 0),
        )
    sizes = [_few(bits.ue(), 16), _few(bits.ue(), 16)]
    sides: list[list[int]] = []
    for sign, size in zip((-1, 1), sizes, strict=True):
        counts, at = [], 0
        for _ in range(size):
            at += sign * (bits.ue() + 1)
            bits.take(1)
            counts.append(at)
        sides.append(counts)
    return sides[0], sides[1]


def _ticks_of_vui(bits: Golomb) -> Ticks | None:
    """The clock in vui_parameters() (E.2.1)."""
    pass_signal(bits)
    bits.take(3)
    if bits.take(1):
        for _ in range(4):
            bits.ue()
    return take_ticks(bits)


class Hevc(OrderedByLsb):
    """HEVC in samples of MP4.

    >>> Hevc().kind_of(bytes([70, 1, 0x50]), 3)
    'before'
    """

    header = 2
    type_bits = 0x7E
    messages = PREFIX_SEI
    sequence_set = SPS

    def kind_of(self, unit: bytes, size: int) -> str | None:
        """As `NalUnits.kind_of`: nal_unit_header (7.3.1.2), of the base layer."""
        kind, layer, sub_layer = unit[0] >> 1, (unit[0] & 1) << 5 | unit[1] >> 3, unit[1] & 7
        if kind > 63 or layer or not sub_layer:
            return None
        if kind < 10 or 16 <= kind < 22:
            return SLICE if kind < 16 or sub_layer == 1 else None
        if kind == DELIMITER:
            return BEFORE if size == 3 and unit[2] & 31 == 16 else None
        if kind in (VPS, SPS, PPS):
            return BEFORE if size <= 4096 else None
        if kind == PREFIX_SEI:
            return BEFORE
        if kind in _ENDS:
            return AFTER if size == 2 else None
        if kind == FILLER:
            return AFTER if is_filler(unit[2:size], size <= len(unit)) else None
        if kind == SUFFIX_SEI:
            # one that is longer than what is at hand is not looked through
            short = size <= len(unit)
            messages = unit[2:size].replace(b"\0\0\3", b"\0\0")
            return AFTER if not short or is_messages(messages) else None
        return None

    def learn(self, unit: bytes) -> bool:
        """As `NalUnits.learn`."""
        kind = unit[0] >> 1
        try:
            if kind == SPS:
                self._keep(SPS, *sps_of(unit), unit)
            elif kind == PPS:
                bits = payload(unit, 2)
                number, owner = bits.ue(), bits.ue()
                dependent, output, extra = bits.take(1), bits.take(1), bits.take(3)
                if number > 63 or (SPS, owner) not in self.sets:
                    return False
                self._keep(PPS, number, (owner, dependent, output, extra), unit)
            elif kind == VPS:
                self._keep_raw(VPS, unit[2] >> 4, unit)
            elif kind == PREFIX_SEI:
                return is_messages(unit[2:].replace(b"\0\0\3", b"\0\0"))
        except Missing:
            return False
        return True

    def slice_of(self, unit: bytes) -> Slice | None:
        """As `NalUnits.slice_of`: the beginning of a slice_segment_header (7.3.6.1)."""
        bits, kind = payload(unit, 2), unit[0] >> 1
        try:
            return self._slice(bits, kind, unit[1] & 7)
        except Missing:
            return None

    def _slice(self, bits: Golomb, kind: int, sub_layer: int) -> Slice | None:
        first = bool(bits.take(1))
        if kind in _IRAP:
            bits.take(1)
        number = bits.ue()
        if (PPS, number) not in self.sets:
            return None
        owner, may_depend, output, extra = self.sets[PPS, number]
        sps: Sps = self.sets[SPS, owner]
        depends = 0
        if not first:
            depends = bits.take(1) if may_depend else 0
            if not 0 < bits.take((sps.blocks - 1).bit_length()) < sps.blocks:
                return None
        picture = (number, kind, sub_layer)
        fresh = kind in _IDR
        if depends:
            return Slice(False, picture, False, False, ())
        bits.take(extra)
        sort = bits.ue()
        if sort > 2:
            return None
        if output:
            bits.take(1)
        if sps.planes:
            bits.take(2)
        low = 0 if fresh else bits.take(sps.order_bits)
        counts = int(sub_layer == 1 and kind not in _PASSED)
        # A BLA picture begins a sequence too (8.1.3); a CRA does where the decoder starts.
        fresh = fresh or kind in (16, 17, 18)
        head = (owner, low, counts, int(fresh))
        return Slice(first, picture, kind in _IRAP, fresh, head)

    def lent(self) -> NativeSyntax:
        """As `Syntax.lent`."""
        rows = []
        for (kind, number), fields in self.sets.items():
            if kind == PPS:
                owner, *marks = fields
                sps: Sps = self.sets[SPS, owner]
                bits = (sps.blocks - 1).bit_length()
                rows.append(
                    (number, owner, *marks, sps.blocks, bits, int(sps.planes), sps.order_bits)
                )
        return self._lent(Kind.HEVC, self._before, rows)

    def first_headers(self) -> Any:
        """As `NalUnits.first_headers`."""
        return _first_headers()


@cache
def _first_headers() -> Any:
    kinds = np.arange(256) >> 1
    fit = (kinds < 10) | ((kinds >= 16) & (kinds < 22)) | ((kinds >= VPS) & (kinds <= DELIMITER))
    return (fit | (kinds == PREFIX_SEI)) & ((np.arange(256) & 1) == 0)
