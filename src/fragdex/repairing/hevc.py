"""Access units of HEVC, and the order in which their pictures are shown (ISO/IEC 23008-2)."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np

from fragdex.indexing.codecs import Missing
from fragdex.indexing.hevc_sets import Sps, sps_of
from fragdex.indexing.parameter_sets import Golomb, payload
from fragdex.repairing.avc import is_filler, is_messages
from fragdex.repairing.nal_units import (
    AFTER,
    BEFORE,
    SLICE,
    OrderedByLsb,
    Slice,
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


class Hevc(OrderedByLsb):
    """HEVC in samples of MP4."""

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
            whole = size > len(unit) or is_messages(unit[2:size])
            return AFTER if whole else None
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
                return is_messages(unit[2:])
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
