"""Sequence and video parameter sets of HEVC (ISO/IEC 23008-2)."""

from __future__ import annotations

from typing import NamedTuple

from fragdex.indexing.codecs import Missing
from fragdex.indexing.parameter_sets import (
    Golomb,
    Signal,
    Ticks,
    pass_signal,
    payload,
    take_ticks,
)


class Sps(NamedTuple):
    """A sequence parameter set (7.3.2.2.1): what slice headers need, and the clock.

    Attributes:
        ticks: vui_num_units_in_tick and vui_time_scale, or None; a picture lasts a tick (E.3.1).
        colour: what the vui_parameters() say, or None.
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
    colour: Signal | None = None


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
        _ticks_of_sps(bits, order_bits), bits.colour,
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
