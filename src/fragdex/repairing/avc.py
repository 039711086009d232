"""Access units of AVC, and the order in which their pictures are shown (ISO/IEC 14496-10)."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np

from fragdex.indexing.access import is_recovery_point
from fragdex.indexing.avc_sets import Sps, sps_of
from fragdex.indexing.codecs import Missing
from fragdex.indexing.parameter_sets import payload
from fragdex.repairing.nal_units import (
    AFTER,
    BEFORE,
    SLICE,
    NalUnits,
    Slice,
    high_order,
)
from fragdex.repairing.syntax import FoundSample, Kind, NativeSyntax

NON_IDR, IDR, SEI, SPS, PPS, DELIMITER = 1, 5, 6, 7, 8, 9
_ENDS: Final = (10, 11)
"""End of sequence, end of stream."""
FILLER: Final = 12
_MOST_POC: Final = 1 << 31


class Avc(NalUnits):
    """AVC in samples of MP4."""

    messages = SEI

    def __init__(self, length_size: int = 4) -> None:
        super().__init__(length_size)
        self._before = (0, 0)
        self._frames = (0, 0)

    @property
    def delays(self) -> int | None:
        """`Sps.delays` of the first sequence parameter set."""
        return next((one.delays for one in self.sets.values() if isinstance(one, Sps)), None)

    def kind_of(self, unit: bytes, size: int) -> str | None:
        """As `NalUnits.kind_of`: nal_unit_type, and the nal_ref_idc it requires (7.4.1)."""
        head = unit[0]
        kind, referred = head & 31, bool(head & 0x60)
        if head & 0x80:
            return None
        if kind == NON_IDR or (kind == IDR and referred):
            return SLICE
        if kind == DELIMITER:
            return BEFORE if size == 2 and not referred and unit[1] & 31 == 16 else None
        if kind == SEI:
            return BEFORE if not referred else None
        if kind in (SPS, PPS):
            return BEFORE if referred and size <= 4096 else None
        if kind in _ENDS:
            return AFTER if size == 1 and not referred else None
        if kind == FILLER:
            return AFTER if not referred and is_filler(unit[1:size], size <= len(unit)) else None
        return None

    def mark_of(self, slice: bytes) -> int:
        """As `NalUnits.mark_of`: a recovery point is in front of intra slices alone, mostly."""
        bits = payload(slice, 1)
        try:
            bits.ue()
            intra = bits.ue() % 5 in (2, 4)
        except Missing:
            intra = False
        return slice[0] & 31 | intra << 5

    def learn(self, unit: bytes) -> bool:
        """As `NalUnits.learn`."""
        kind = unit[0] & 31
        try:
            if kind == SPS:
                self._keep(SPS, *sps_of(unit), unit)
            elif kind == PPS:
                bits = payload(unit, 1)
                number, owner = bits.ue(), bits.ue()
                bits.take(1)
                paired = bits.take(1)
                if number > 255 or (SPS, owner) not in self.sets:
                    return False
                self._keep(PPS, number, (owner, paired), unit)
            elif kind == SEI:
                return is_messages(unit[1:])
        except Missing:
            return False
        return True

    def recovers(self, unit: bytes) -> bool:
        """A recovery point SEI with recovery_frame_cnt 0 (D.2.8)."""
        return bool(unit) and unit[0] & 31 == SEI and is_recovery_point(unit[1:])

    def slice_of(self, unit: bytes) -> Slice | None:
        """As `NalUnits.slice_of`: the beginning of a slice_header (7.3.3)."""
        bits = payload(unit, 1)
        idr = unit[0] & 31 == IDR
        referred = int(bool(unit[0] & 0x60))
        try:
            first, kind, number = bits.ue(), bits.ue(), bits.ue()
            if kind > 9 or (PPS, number) not in self.sets:
                return None
            owner, paired = self.sets[PPS, number]
            sps: Sps = self.sets[SPS, owner]
            if first >= sps.macroblocks or (idr and kind % 5 not in (2, 4)):
                return None
            if sps.planes:
                bits.take(2)
            frame, field = bits.take(sps.frame_num_bits), 0
            if idr and frame:
                return None
            if not sps.frames_only and bits.take(1):
                field = 1 + bits.take(1)
            epoch = bits.ue() if idr else 0
            if epoch > 65535:
                return None
            low = delta = 0
            if sps.order_type == 0:
                low = bits.take(sps.order_bits)
                if paired and not field:
                    delta = bits.se()
            elif sps.order_type == 1 and not sps.delta_zero:
                delta = bits.se()
        except Missing:
            return None
        picture = (frame, number, owner, field, int(idr), epoch, referred, low)
        head = (owner, frame, referred, low, delta, int(idr))
        return Slice(not first, picture, idr, idr, head, field)

    def accept(self, sample: FoundSample) -> FoundSample:
        """With its picture order count (8.2.1)."""
        self.trust(sample)
        assert sample.head is not None
        owner, frame, referred, low, delta, idr = sample.head
        sps: Sps = self.sets[SPS, owner]
        if sps.order_type == 0:
            high = high_order(low, sps.order_bits, (0, 0) if idr else self._before)
            if referred:
                self._before = (high, low)
            return sample._replace(order=min(high + low, high + low + delta), head=None)
        offset, last = (0, 0) if idr else self._frames
        if frame < last:
            offset += 1 << sps.frame_num_bits
        self._frames = (offset, frame)
        number = offset + frame
        if sps.order_type == 2:
            return sample._replace(order=2 * number - (not referred), head=None)
        others, *cycle = sps.cycle
        count = number - (not referred and number > 0) if cycle else 0
        order = delta + (0 if referred else others)
        if count > 0:
            whole, part = divmod(count - 1, len(cycle))
            order += whole * sum(cycle) + sum(cycle[: part + 1])
        return sample._replace(order=max(-_MOST_POC, min(order, _MOST_POC)), head=None)

    def lent(self) -> NativeSyntax | None:
        """As `Syntax.lent`."""
        rows, types = [], set()
        for (kind, number), fields in self.sets.items():
            if kind == PPS:
                owner, paired = fields
                sps: Sps = self.sets[SPS, owner]
                types.add(sps.order_type)
                rows.append(
                    (
                        *(number, owner, paired, sps.macroblocks, int(sps.planes)),
                        *(sps.frame_num_bits, int(sps.frames_only), sps.order_type),
                        sps.order_bits,
                    )
                )
        if types == {0}:
            return self._lent(Kind.AVC, self._before, rows)
        return self._lent(Kind.AVC, self._frames, rows) if types == {2} else None

    def resume(self, state: tuple[int, int], spent: int) -> None:
        """As `Syntax.resume`."""
        if any(isinstance(one, Sps) and one.order_type == 0 for one in self.sets.values()):
            self._before = state
        else:
            self._frames = state

    def interrupted(self) -> None:
        """The next picture may be any."""
        self._before = self._frames = (0, 0)

    def first_headers(self) -> Any:
        """As `NalUnits.first_headers`."""
        return _first_headers()


@cache
def _first_headers() -> Any:
    kinds = np.arange(256) & 31
    referred = (np.arange(256) & 0x60) != 0
    fit = (kinds == NON_IDR) | (np.isin(kinds, [IDR, SPS, PPS]) & referred)
    fit |= np.isin(kinds, [SEI, DELIMITER]) & ~referred
    return fit & (np.arange(256) < 128)


def is_filler(data: bytes, whole: bool) -> bool:
    """Whether a unit of filler data continues so (7.3.2.7): FF, and 80 at the end."""
    return data.rstrip(b"\xff") == b"" if not whole else data.lstrip(b"\xff") == b"\x80"


def is_messages(data: bytes) -> bool:
    """Whether SEI messages fill a unit after its header, up to a byte 80.

    ISO/IEC 14496-10, 7.3.2.3 and 7.3.2.3.1; in it, a 3 follows two zeros.
    """
    data, at = data.replace(b"\0\0\3", b"\0\0"), 0
    while at < len(data) and data[at:] != b"\x80":
        for part in range(2):
            number = 0
            while at < len(data) and data[at] == 255:
                number, at = number + 255, at + 1
            if at >= len(data):
                return False
            number, at = number + data[at], at + 1
            if part:
                at += number
    return at < len(data)
