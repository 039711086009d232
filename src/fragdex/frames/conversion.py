"""Planes of 4:2:0 with 8 bits to red, green, blue and gray, in whole numbers.

FFmpeg's libswscale does it on the processor; this is the same arithmetic for arrays that lie
elsewhere, held to it bit by bit (tests/frames/test_conversion.py). Chroma is repeated for the four
pixels that share it (ISO/IEC 23091-2 tells where it lies; swscale does not look), products are cut
off after 16 bits, and the sum is clipped. Only `+`, `*`, `>>` and indexing are asked of an array,
so that numpy, torch and CuPy give the same.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, Protocol

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

    def whole(self, array: Any) -> Any:
        """The same numbers as int32."""

    def bytes(self, array: Any) -> Any:
        """uint8; numbers outside of 0 to 255 become the nearest."""

    def least(self, array: Any, most: int) -> Any:
        """Numbers above `most` become `most`."""

    def stacked(self, arrays: list[Any], axis: int) -> Any:
        """Arrays of one shape along a new axis."""

    def repeated(self, array: Any) -> Any:
        """Each number of (height, width) twice in each direction."""


class Coefficients(NamedTuple):
    """What a step of luma and chroma adds, times 65,536 / 8; black is times 8."""

    luma: int
    black: int
    red_of_cr: int
    green_of_cb: int
    green_of_cr: int
    blue_of_cb: int


def coefficients(matrix: str, *, full_range: bool) -> Coefficients:
    """Of a matrix, by swscale's name for it.

    Raises:
        KeyError: it is not one of ITU601, ITU709 and BT2020.

    >>> coefficients("ITU601", full_range=False)
    Coefficients(luma=9539, black=128, red_of_cr=13075, green_of_cb=-3209, green_of_cr=-6660, \
blue_of_cb=16525)
    """
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


def rgb_of(lib: Arrays, luma: Any, chroma: Any, of: Coefficients) -> Any:
    """Red, green and blue of a picture.

    Args:
        luma: uint8 of shape (height, width); both are even.
        chroma: uint8 of shape (height / 2, width / 2, 2): Cb and Cr.

    Returns: uint8 of shape (height, width, 3).
    """
    y = (8 * lib.whole(luma) - of.black) * of.luma >> 16
    both = 8 * (lib.whole(chroma) - 128)
    cb, cr = both[..., 0], both[..., 1]
    parts = (
        cr * of.red_of_cr >> 16,
        (cb * of.green_of_cb >> 16) + (cr * of.green_of_cr >> 16),
        cb * of.blue_of_cb >> 16,
    )
    return lib.stacked([lib.bytes(y + lib.repeated(part)) for part in parts], -1)


def gray_of(lib: Arrays, luma: Any, *, full_range: bool) -> Any:
    """Gray of the full range of a picture by BT.601: uint8 of shape (height, width, 1)."""
    if not full_range:
        wide = lib.least(lib.whole(luma) << 7, _MOST_LUMA)
        luma = lib.bytes((((wide * 19077 - 39057361) >> 14) + 64) >> 7)
    return luma[..., None]
