"""Sequence parameter sets of AVC (ISO/IEC 14496-10)."""

from __future__ import annotations

from typing import Final, NamedTuple

from fragdex.indexing.codecs import Missing
from fragdex.indexing.parameter_sets import (
    Golomb,
    Signal,
    Ticks,
    pass_signal,
    payload,
    take_ticks,
)

_HIGH: Final = (100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135)
MOST_RATES: Final = 32
"""Rates of the decoder model (cpb_cnt_minus1, E.2.2)."""


class Sps(NamedTuple):
    """A sequence parameter set (7.3.2.1.1), as far as slice headers need it.

    Attributes:
        frame_num_bits, order_type, order_bits: log2_max_frame_num, pic_order_cnt_type and
            log2_max_pic_order_cnt_lsb; 0 bits where the type has none.
        frames_only: frame_mbs_only_flag.
        planes: separate_colour_plane_flag.
        delta_zero: delta_pic_order_always_zero_flag.
        cycle: offset_for_ref_frame, and what comes first: offset_for_non_ref_pic.
        width, height: pixels of a picture, cropping taken off.
        ticks: num_units_in_tick and time_scale, or None.
        steady: fixed_frame_rate_flag: whether pictures last a number of ticks, and not at least it.
        delays: bits in front of pic_struct in picture timing messages (D.1.3), or None: these have
            no timestamps.
        identity: profile, compatibility and level.
        colour: what the vui_parameters() say, or None.
    """

    frame_num_bits: int
    order_type: int
    order_bits: int
    frames_only: bool
    planes: bool
    delta_zero: bool
    cycle: tuple[int, ...]
    macroblocks: int
    width: int
    height: int
    ticks: Ticks | None
    steady: bool
    delays: int | None
    identity: bytes
    colour: Signal | None = None


def sps_of(unit: bytes) -> tuple[int, Sps]:
    """Number of a sequence parameter set, and what it says.

    Raises:
        Missing: it is invalid.
    """
    identity, bits = unit[1:4], payload(unit, 4)
    number = bits.ue()
    chroma, planes = 1, False
    if identity[:1] and identity[0] in _HIGH:
        chroma = bits.ue()
        if chroma == 3:
            planes = bool(bits.take(1))
        if bits.ue() > 6 or bits.ue() > 6:
            raise Missing
        bits.take(1)
        if bits.take(1):
            for place in range(8 if chroma != 3 else 12):
                if bits.take(1):
                    _skip_scaling_list(bits, 16 if place < 6 else 64)
    frame_num_bits = bits.ue() + 4
    order_type, order_bits, delta_zero = bits.ue(), 0, False
    cycle: tuple[int, ...] = ()
    if order_type == 0:
        order_bits = bits.ue() + 4
    elif order_type == 1:
        delta_zero = bool(bits.take(1))
        others = bits.se()
        bits.se()
        cycle = (others, *(bits.se() for _ in range(min(bits.ue(), 255))))
    if number > 31 or chroma > 3 or frame_num_bits > 16 or order_bits > 16 or order_type > 2:
        raise Missing
    bits.ue()
    bits.take(1)
    columns, rows = bits.ue() + 1, bits.ue() + 1
    frames_only = bool(bits.take(1))
    if not frames_only:
        bits.take(1)
    bits.take(1)
    rows *= 1 if frames_only else 2
    width, height = columns * 16, rows * 16
    if bits.take(1):
        left, right, top, bottom = (bits.ue() for _ in range(4))
        wide = 2 if chroma in (1, 2) else 1
        high = (2 if chroma == 1 else 1) * (1 if frames_only else 2)
        width -= (left + right) * wide
        height -= (top + bottom) * high
    if not (0 < width <= 1 << 15 and 0 < height <= 1 << 15):
        raise Missing
    ticks, steady, delays = _timing(bits) if bits.take(1) else (None, False, None)
    sps = Sps(
        frame_num_bits,
        order_type,
        order_bits,
        frames_only,
        planes,
        delta_zero,
        cycle,
        columns * rows,
        width,
        height,
        ticks,
        steady,
        delays,
        identity,
        bits.colour,
    )
    return number, sps


def _skip_scaling_list(bits: Golomb, size: int) -> None:
    last = following = 8
    for _ in range(size):
        if following:
            following = (last + bits.se()) % 256
        last = following or last


def _timing(bits: Golomb) -> tuple[Ticks | None, bool, int | None]:
    """`Sps.ticks`, `Sps.steady` and `Sps.delays`, of VUI parameters (E.1.1)."""
    ticks, steady = None, False
    try:
        pass_signal(bits)
        left = bits.left
        ticks = take_ticks(bits)
        if bits.left < left - 1:
            steady = bool(bits.take(1))
        return ticks, steady, _delays(bits)
    except Missing:
        return ticks, steady, None


def _delays(bits: Golomb) -> int | None:
    """`Sps.delays`, by the parameters of the decoder model (E.1.2)."""
    delays = has_model = 0
    for _ in range(2):
        if not bits.take(1):
            continue
        has_model = 1
        rates = bits.ue() + 1
        if rates > MOST_RATES:
            raise Missing
        bits.take(8)
        for _ in range(rates):
            bits.ue()
            bits.ue()
            bits.take(1)
        bits.take(5)
        delays = bits.take(5) + 1 + bits.take(5) + 1
        bits.take(5)
    bits.take(has_model)
    return delays if bits.take(1) else None
