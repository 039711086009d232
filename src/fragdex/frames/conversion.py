"""Colours and sizes of pictures in whole numbers, the same in every library of arrays.

Colours of 4:2:0 with 8 bits are those of FFmpeg's libswscale, which makes them on the processor:
the same arithmetic for arrays that lie elsewhere, held to it bit by bit
(tests/frames/test_conversion.py). Chroma is repeated for the pixels that share it (ISO/IEC 23091-2
says where it lies; swscale does not look), products are cut off after 16 bits, and the sum is
clipped. Only `+`, `*`, `>>`, indexing and `Arrays` are needed, so that numpy, torch and CuPy give
the same.
"""

from __future__ import annotations

import functools
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from fragdex.frames.crop import Steps

# 65,536 times what a step of chroma adds, of limited range (ITU-T H.273, 8.3): Cr to red, Cb to
# blue, Cb and Cr from green; rounded as libswscale rounds them.
_MATRICES: Final = {
    "ITU601": (104597, 132201, 25675, 53279),
    "ITU709": (117489, 138438, 13975, 34925),
    "BT2020": (110013, 140363, 12277, 42626),
}
_ONE: Final = 1 << 13
_MOST_LUMA: Final = 30189
"""Of limited range with 7 bits more: what is above becomes white."""


class Arrays(Protocol):
    """What a library of arrays does that operators do not."""

    def sent(self, array: Any) -> Any:
        """An array of numpy's where the others lie."""

    def whole(self, array: Any) -> Any:
        """The same numbers as int32."""

    def bytes(self, array: Any) -> Any:
        """uint8; numbers outside of 0 to 255 become the nearest."""

    def least(self, array: Any, most: int) -> Any:
        """Numbers above `most` become `most`."""

    def stacked(self, arrays: list[Any], axis: int) -> Any:
        """Arrays of one shape along a new axis."""

    def repeated(self, array: Any, down: int, right: int) -> Any:
        """Each number of (height, width) so many times in each direction."""

    def gathered(self, array: Any, places: Any, axis: int) -> Any:
        """What stands at places of an axis."""


class Coefficients(NamedTuple):
    """What a step of luma and chroma adds, times 65,536 / 8; black is times 8."""

    luma: int
    black: int
    red_of_cr: int
    green_of_cb: int
    green_of_cr: int
    blue_of_cb: int


def coefficients(matrix: str, *, full_range: bool) -> Coefficients:
    """Of a matrix, by swscale's name for it."""
    red, blue, cb, cr = _MATRICES[matrix]
    if full_range:
        red, blue, cb, cr = (each * 224 // 255 for each in (red, blue, cb, cr))
    luma = 1 << 16 if full_range else (255 << 16) // 219

    def rounded(value: int) -> int:
        return (value * _ONE + (1 << 15)) >> 16

    return Coefficients(
        rounded(luma), 0 if full_range else 16 * 8,
        rounded(red), rounded(-cb), rounded(-cr), rounded(blue),
    )  # fmt: skip


def rgb_of(
    lib: Arrays,
    luma: Any,
    cb: Any,
    cr: Any,
    of: Coefficients,
    *,
    depth: int = 8,
    steps: Steps = (2, 2),
) -> Any:
    """Red, green and blue of a picture.

    Args:
        cb, cr: the same, or smaller: each number is that of several pixels.
        steps: of how many.

    Returns: uint8 of shape (height, width, 3).
    """
    high, wide = luma.shape
    cb, cr = (8 * (lib.whole(one) - (128 << depth - 8)) for one in (cb, cr))
    shift = 8 + depth
    parts = (
        cr * of.red_of_cr >> shift,
        (cb * of.green_of_cb >> shift) + (cr * of.green_of_cr >> shift),
        cb * of.blue_of_cb >> shift,
    )
    y = brightness_of(lib, luma, of, depth)
    return lib.stacked(
        [lib.bytes(y + lib.repeated(part, *steps)[:high, :wide]) for part in parts], -1
    )


def brightness_of(lib: Arrays, luma: Any, of: Coefficients, depth: int) -> Any:
    """What red, green and blue are where there is no colour, before they are clipped."""
    return (8 * lib.whole(luma) - (of.black << depth - 8)) * of.luma >> 8 + depth


def gray_of(lib: Arrays, luma: Any, *, full_range: bool) -> Any:
    """Gray of the full range of a picture by BT.601: uint8 of shape (height, width, 1)."""
    if not full_range:
        wide = lib.least(lib.whole(luma) << 7, _MOST_LUMA)
        luma = lib.bytes((((wide * 19077 - 39057361) >> 14) + 64) >> 7)
    return luma[..., None]


# Sizes in whole numbers: a triangle as wide as two pixels of the smaller picture (bilinear, and
# without aliases where a picture becomes smaller), first down, then right. Weights have 14 bits;
# between the two directions, numbers have at least 14 bits, so that sums have 28 to 30.

_WEIGHT_BITS: Final = 14
_BETWEEN_BITS: Final = 14
MOST_DEPTH: Final = 12
"""Bits of planes that colours in sums of 32 bits have room for."""


class Line(NamedTuple):
    """How a line of samples becomes one of pixels.

    Attributes:
        after: pixels.
        start: where the first of them begins, in samples; 0: where the first sample begins.
        span: how many samples all of them take.

    A line of chroma may begin or end within a sample, if that is shared with pixels outside.
    """

    after: int
    start: float
    span: float


@functools.lru_cache(maxsize=64)
def taps(before: int, line: Line) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]]:
    """What each pixel of a line is made of, out of `before` samples.

    Returns: pairs of places (int64) and weights (int32), for each pixel one; the weights of a
    pixel add up to 16,384.
    """
    after, start, span = line
    scale = max(span / after, 1.0)
    middle = start + (np.arange(after) + 0.5) * span / after - 0.5
    first = np.ceil(middle - scale).astype(np.int64)
    count = int(np.floor(2 * scale)) + 1
    places = first[:, None] + np.arange(count)
    share = np.clip(1 - np.abs(places - middle[:, None]) / scale, 0, None)
    share[(places < 0) | (places >= before)] = 0
    share /= share.sum(1, keepdims=True)
    weights = np.round(share * (1 << _WEIGHT_BITS)).astype(np.int32)
    # What rounding took away goes to the heaviest.
    heaviest = (np.arange(after), weights.argmax(1))
    weights[heaviest] += (1 << _WEIGHT_BITS) - weights.sum(1)
    places = places.clip(0, before - 1)
    used = weights.any(0)
    return list(zip(places.T[used], weights.T[used], strict=True))


_MOST_TAPS: Final = 64
"""Lines whose weights lie where the arrays do."""


class Scaler:
    """Pictures in other sizes."""

    def __init__(self, lib: Arrays) -> None:
        self._lib = lib
        self._taps: dict[tuple[int, Line], list[tuple[Any, Any]]] = {}

    def scaled(self, array: Any, rows: Line, columns: Line, depth: int) -> Any:
        """A picture in another size.

        Args:
            array: whole numbers of so many bits, of shape (height, width) or with channels.

        Returns: int32, of as many bits.
        """
        between_bits = max(_BETWEEN_BITS, depth)
        down = _WEIGHT_BITS + depth - between_bits
        between = self._summed(self._lib.whole(array), rows, 0, down)
        return self._summed(between, columns, 1, _WEIGHT_BITS + between_bits - depth)

    def _summed(self, array: Any, line: Line, axis: int, shift: int) -> Any:
        lib, key = self._lib, (array.shape[axis], line)
        if key not in self._taps:
            if len(self._taps) >= _MOST_TAPS:
                self._taps.clear()
            self._taps[key] = [(lib.sent(one), lib.sent(other)) for one, other in taps(*key)]
        shape = [1] * len(array.shape)
        shape[axis] = line.after
        total: Any = 1 << shift - 1
        for places, weights in self._taps[key]:
            total = total + lib.gathered(array, places, axis) * weights.reshape(shape)
        return total >> shift
