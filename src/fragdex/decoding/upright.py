"""Decoded pictures as they are shown: pixels square, the picture upright, in RGB."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from fragdex.decoding.codec import MOST_PIXELS
from fragdex.decoding.video_track import Picture
from fragdex.errors import UndecodableMedia

__all__ = [
    "Orientation",
    "is_much_smaller",
    "matrix_of",
    "orientation_of",
    "shown_size",
    "upright",
]

_UNSPECIFIED: Final = 2
_HD_LINES: Final = 720
# Matrix coefficients by their number (ITU-T H.273, 8.3): names for swscale and for VideoFrame.
_BT709: Final = ("ITU709", "bt709")
_BT601: Final = ("ITU601", "smpte170m")
_MATRICES: Final = {1: _BT709, 5: ("ITU601", "bt470bg"), 6: _BT601, 9: ("BT2020", "bt2020-ncl")}


class Orientation(NamedTuple):
    """How a stored picture becomes the one that is shown (ISO/IEC 14496-12, 6.2.2).

    Attributes:
        transposed: its rows become columns, before all else.
        mirrored: then left and right change places.
        flipped: and top and bottom.
    """

    transposed: bool = False
    mirrored: bool = False
    flipped: bool = False

    def of(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """A view of an array of shape (height, width, …), as it is shown.

        >>> Orientation(transposed=True, mirrored=True).of(np.array([[1, 2], [3, 4]])).tolist()
        [[3, 1], [4, 2]]
        """
        array = array.swapaxes(0, 1) if self.transposed else array
        array = array[:, ::-1] if self.mirrored else array
        return array[::-1] if self.flipped else array


_AS_STORED: Final = Orientation()


def orientation_of(frame: Any) -> Orientation:
    """What the display matrix of a decoded picture says; one with other angles is left as it is.

    Args:
        frame: PyAV's VideoFrame.
    """
    found = frame.side_data.get("DISPLAYMATRIX")
    if found is None:
        return _AS_STORED
    # a b u c d v x y w: x' = a x + c y, y' = b x + d y
    a, b, _, c, d = np.frombuffer(bytes(found)[:20], np.int32).tolist()
    if a and d and not b and not c:
        return Orientation(False, a < 0, d < 0)
    if b and c and not a and not d:
        return Orientation(True, c < 0, b < 0)
    return _AS_STORED


def shown_size(picture: Picture) -> tuple[int, int]:
    """Width and height of a decoded picture as it is shown: its pixels square, itself upright.

    Raises:
        UndecodableMedia: it has more pixels than anyone may ask for.
    """
    frame = picture.frame
    height = frame.height
    width = max(1, round(frame.width * (picture.aspect if picture.aspect > 0 else 1)))
    if width * height > MOST_PIXELS:
        raise UndecodableMedia(f"pictures of {width} × {height} are too large")
    return (height, width) if orientation_of(frame).transposed else (width, height)


def is_much_smaller(size: tuple[int, int], own: tuple[int, int]) -> bool:
    """Whether both sides are a third of a picture's own or less.

    >>> is_much_smaller((320, 180), (1920, 1080)), is_much_smaller((320, 800), (1920, 1080))
    (True, False)
    """
    return all(side * 3 <= whole for side, whole in zip(size, own, strict=True))


def matrix_of(frame: Any) -> tuple[str, str]:
    """Names of the matrix that its colours are made by; of one that does not say, by its height."""
    said = int(frame.colorspace)
    guess = _BT709 if frame.height >= _HD_LINES else _BT601
    return guess if said == _UNSPECIFIED else _MATRICES.get(said, guess)


def upright(picture: Picture, size: tuple[int, int] | None = None) -> np.ndarray[Any, Any]:
    """Red, green, blue (and opacity, where it has any), as it is shown.

    Args:
        size: width and height; None: `shown_size`.

    Returns: uint8 of shape (height, width, 3 or 4).

    Raises: as `shown_size`.
    """
    frame = picture.frame
    name = frame.format.name
    clear = "yuva" in name or "rgba" in name or "argb" in name or name in ("bgra", "abgr", "ya8")
    width, height = size or shown_size(picture)
    orientation = orientation_of(frame)
    if orientation.transposed:
        width, height = height, width
    is_yuv = name.startswith(("yuv", "nv", "p0"))
    # of much smaller pictures each pixel is the mean of those that it stands for
    is_small = is_much_smaller((width, height), (frame.width, frame.height))
    ready = frame.reformat(
        width=width,
        height=height,
        format="rgba" if clear else "rgb24",
        src_colorspace=matrix_of(frame)[0] if is_yuv else None,
        interpolation="AREA" if is_small else "BICUBIC",
    )
    array: np.ndarray[Any, Any] = ready.to_ndarray()
    return np.ascontiguousarray(orientation.of(array))
