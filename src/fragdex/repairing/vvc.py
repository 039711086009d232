"""Access units of VVC, and the order in which their pictures are shown (ISO/IEC 23090-3)."""

from __future__ import annotations

from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

from fragdex.indexing.codecs import Missing
from fragdex.indexing.parameter_sets import Golomb, payload
from fragdex.repairing.avc import is_filler, is_messages
from fragdex.repairing.nal_units import AFTER, BEFORE, SLICE, OrderedByLsb, Slice
from fragdex.repairing.syntax import FoundSample, Window

RADL, RASL, IDR_W_RADL, IDR_N_LP, CRA, GDR = 2, 3, 7, 8, 9, 10
OPERATING, CAPABILITY, VPS, SPS, PPS, PREFIX_APS, SUFFIX_APS = range(12, 19)
PICTURE_HEADER, DELIMITER, PREFIX_SEI, SUFFIX_SEI, FILLER = 19, 20, 23, 24, 25
_SLICES: Final = (0, 1, RADL, RASL, IDR_W_RADL, IDR_N_LP, CRA, GDR)
_IRAP: Final = (IDR_W_RADL, IDR_N_LP, CRA)
_SETS: Final = (OPERATING, CAPABILITY, VPS, SPS, PPS, PREFIX_APS)
"""Parameter sets and what else describes pictures (7.4.2.2, Table 5)."""
_CONSTRAINT_BITS: Final = 71
"""Flags of general_constraints_info() (7.3.3.2), before those of later editions."""
MOST_SIDE: Final = 1 << 15
MOST_SUBPICTURES: Final = 600


class Profile(NamedTuple):
    """profile_tier_level() (7.3.3.1), as a VvcPTLRecord has it (ISO/IEC 14496-15, 11.2.4.2).

    Attributes:
        head: general_profile_idc, general_tier_flag and general_level_idc.
        marks: ptl_frame_only_constraint_flag and ptl_multilayer_enabled_flag.
        constraints: general_constraint_info, and its bits: six, or eight more each.
        levels: of sub-layers from the highest but one down; None: it has none.
        parts: general_sub_profile_idc of each.
    """

    head: bytes
    marks: int
    constraints: tuple[int, int]
    levels: tuple[int | None, ...]
    parts: tuple[int, ...]


class Sps(NamedTuple):
    """A sequence parameter set (7.3.2.4), as far as picture headers and sample entries need it."""

    order_bits: int
    width: int
    height: int
    chroma: int
    depth: int
    sub_layers: int
    refreshes: bool
    profile: Profile | None


def sps_of(unit: bytes) -> tuple[int, Sps]:
    """Number of a sequence parameter set, and what it says.

    Raises:
        Missing: it is invalid.
    """
    bits = payload(unit, 2)
    number = bits.take(4)
    bits.take(4)
    layers, chroma, block = bits.take(3), bits.take(2), 1 << bits.take(2) + 5
    profile = _profile(bits, layers) if bits.take(1) else None
    refreshes = bool(bits.take(1))
    if bits.take(1):
        bits.take(1)
    width, height = bits.ue(), bits.ue()
    if layers > 6 or block > 128 or not (0 < width <= MOST_SIDE and 0 < height <= MOST_SIDE):
        raise Missing
    shown = (width, height)
    if bits.take(1):
        left, right, top, bottom = (bits.ue() for _ in range(4))
        shown = (
            width - (left + right) * (2 if chroma in (1, 2) else 1),
            height - (top + bottom) * (2 if chroma == 1 else 1),
        )
    if bits.take(1):
        _skip_subpictures(bits, -(-width // block), -(-height // block))
    depth = bits.ue() + 8
    bits.take(2)
    order_bits = bits.take(4) + 4
    if min(shown) <= 0 or depth > 16 or order_bits > 16:
        raise Missing
    return number, Sps(order_bits, *shown, chroma, depth, layers + 1, refreshes, profile)


def _profile(bits: Golomb, layers: int) -> Profile:
    head = bits.take(16).to_bytes(2, "big")
    marks = bits.take(2)
    left, value = bits.left, bits.value
    if bits.take(1):
        bits.take(_CONSTRAINT_BITS)
        bits.take(bits.take(8))
    bits.align()
    count = left - bits.left
    constraints = (value >> bits.left & (1 << count) - 1, count)
    has_level = [bits.take(1) for _ in range(layers)]
    bits.align()
    levels = tuple(bits.take(8) if there else None for there in has_level)
    return Profile(
        head, marks, constraints, levels, tuple(bits.take(32) for _ in range(bits.take(8)))
    )


def _skip_subpictures(bits: Golomb, columns: int, rows: int) -> None:
    """From sps_num_subpics_minus1 on.

    Args:
        columns, rows: of coding tree blocks.
    """
    last = bits.ue()
    if last >= MOST_SUBPICTURES:
        raise Missing
    sides = [(side - 1).bit_length() for side in (columns, rows)]
    alone, alike = (bits.take(1), bits.take(1)) if last else (1, 1)
    for number in range(last + 1) if last else ():
        if not alike or not number:
            for side in sides if number else ():
                bits.take(side)
            for side in sides if number < last else ():
                bits.take(side)
        if not alone:
            bits.take(2)
    width = bits.ue() + 1
    if width > 16:
        raise Missing
    if bits.take(1) and bits.take(1):
        bits.take(width * (last + 1))


class Header(NamedTuple):
    """The beginning of a picture_header_structure() (7.3.2.8).

    Attributes:
        owner: sps_seq_parameter_set_id.
        refreshes: ph_gdr_or_irap_pic_flag and ph_gdr_pic_flag.
        referred: whether ph_non_ref_pic_flag is 0.
        low: ph_pic_order_cnt_lsb.
    """

    number: int
    owner: int
    refreshes: tuple[int, int]
    referred: bool
    low: int


class Vvc(OrderedByLsb):
    """VVC in samples of MP4."""

    messages = PREFIX_SEI
    sequence_set = SPS

    def __init__(self, length_size: int = 4) -> None:
        super().__init__(length_size)
        self._open: Header | None = None  # of a picture whose slices follow

    @classmethod
    def type_of(cls, unit: bytes) -> int:
        """As `NalUnits.type_of`: it stands in the second byte (7.3.1.2)."""
        return unit[1] >> 3

    def kind_of(self, unit: bytes, size: int) -> str | None:
        """As `NalUnits.kind_of`: nal_unit_header (7.3.1.2), of the base layer."""
        kind, sub_layer = unit[1] >> 3, unit[1] & 7
        if unit[0] or not sub_layer:
            return None
        if kind in _SLICES:
            return SLICE if kind < IDR_W_RADL or sub_layer == 1 else None
        if kind == DELIMITER:
            return BEFORE if size == 3 and unit[2] & 15 == 8 else None
        if kind in (*_SETS, PICTURE_HEADER, PREFIX_SEI):
            return BEFORE
        if kind == FILLER:
            return AFTER if is_filler(unit[2:size], size <= len(unit)) else None
        if kind == SUFFIX_SEI:
            # one that is longer than what is at hand is not looked through
            whole = size > len(unit) or is_messages(unit[2:size])
            return AFTER if whole else None
        return AFTER if kind == SUFFIX_APS else None

    def find(self, window: Window, at: int, stop: int) -> FoundSample | None:
        """The access unit that begins here."""
        self._open = None
        return super().find(window, at, stop)

    def learn(self, unit: bytes) -> bool:
        """As `NalUnits.learn`; a picture header is kept for the slices that follow it."""
        kind = self.type_of(unit)
        try:
            if kind == SPS:
                self._keep(SPS, *sps_of(unit), unit)
            elif kind == PPS:
                bits = payload(unit, 2)
                number, owner = bits.take(6), bits.take(4)
                sps: Sps | None = self.sets.get((SPS, owner))
                bits.take(1)
                if sps is None or not 0 < bits.ue() <= MOST_SIDE or not 0 < bits.ue() <= MOST_SIDE:
                    return False
                self._keep(PPS, number, owner, unit)
            elif kind == VPS:
                self._keep_raw(VPS, unit[2] >> 4, unit)
            elif kind == PICTURE_HEADER:
                bits = payload(unit, 2)
                self._open = self._header(bits) if self._open is None else None
                return self._open is not None
            elif kind == PREFIX_SEI:
                return is_messages(unit[2:])
        except Missing:
            return False
        return True

    def _header(self, bits: Golomb) -> Header | None:
        """The beginning of a picture header; None: it cannot be one."""
        refreshes, referred = bits.take(1), not bits.take(1)
        gradual = bits.take(1) if refreshes else 0
        inter = bits.take(1)
        if refreshes and not gradual and inter:
            return None  # an IRAP picture has slices of type I alone (7.4.3.8)
        if inter:
            bits.take(1)
        number = bits.ue()
        if (PPS, number) not in self.sets:
            return None
        owner = self.sets[PPS, number]
        sps: Sps = self.sets[SPS, owner]
        if gradual and not sps.refreshes:
            return None
        return Header(number, owner, (refreshes, gradual), referred, bits.take(sps.order_bits))

    def slice_of(self, unit: bytes) -> Slice | None:
        """As `NalUnits.slice_of`: a slice_header (7.3.7) with its picture header, or after one."""
        bits, kind, sub_layer = payload(unit, 2), unit[1] >> 3, unit[1] & 7
        waiting, self._open = self._open, None
        try:
            if bits.take(1):
                header = self._header(bits) if waiting is None else None
                if header is None:
                    return None
            elif waiting is None:
                # of which picture it is, its header does not say
                return Slice(False, (sub_layer,), False, False, ())
            else:
                header = waiting
        except Missing:
            return None
        refreshes, gradual = header.refreshes
        if (refreshes and kind not in (*_IRAP, GDR)) or gradual != (kind == GDR):
            return None
        fresh = kind in (IDR_W_RADL, IDR_N_LP)
        counts = sub_layer == 1 and header.referred and kind not in (RADL, RASL)
        head = (header.owner, header.low, int(counts), int(fresh))
        return Slice(True, (sub_layer,), kind in _IRAP, fresh, head)

    def starts(self, data: bytes) -> list[int]:
        """As `NalUnits.starts`, with the type in the second byte of a header."""
        if self.length_size < 4 or len(data) < 6:
            return [*range(len(data))]
        column = np.frombuffer(data, np.uint8)
        fit = (column[:-5] <= 8) & (column[4:-1] == 0) & _second_bytes()[column[5:]]
        return [*np.flatnonzero(fit).tolist(), *range(len(data) - 5, len(data))]

    def first_headers(self) -> Any:
        """As `NalUnits.first_headers`."""
        return np.arange(256) == 0


@cache
def _second_bytes() -> Any:
    kinds, sub_layers = np.arange(256) >> 3, np.arange(256) & 7
    first = np.isin(kinds, (*_SLICES, *_SETS, PICTURE_HEADER, DELIMITER, PREFIX_SEI))
    return first & (sub_layers > 0)
