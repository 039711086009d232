"""Decoded pictures in the forms that a page can take: a data: URL to show, pixels to read."""

from __future__ import annotations

import base64
import io
from typing import Any, Final

import numpy as np

from fragdex.decoding.pictures import Picture
from fragdex.errors import UndecodableMedia
from fragdex.service.transcode.probe import MOST_PIXELS

__all__ = ["blank", "pixels", "shown_size", "url_of"]

JPEG_QUALITY: Final = 95
_UNSPECIFIED: Final = 2
_HD_LINES: Final = 720
# Matrix coefficients by their number (ITU-T H.273, 8.3): names for swscale and for VideoFrame.
_BT709: Final = ("ITU709", "bt709")
_BT601: Final = ("ITU601", "smpte170m")
_MATRICES: Final = {1: _BT709, 5: ("ITU601", "bt470bg"), 6: _BT601, 9: ("BT2020", "bt2020-ncl")}
_FULL_RANGE: Final = 2


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
    return (height, width) if frame.rotation % 180 else (width, height)


def url_of(picture: Picture) -> str:
    """A data: URL of a picture: JPEG, or PNG where it is not opaque."""
    from PIL import Image

    array = _upright(picture)
    file = io.BytesIO()
    if array.shape[2] == 4:
        Image.fromarray(array, "RGBA").save(file, "PNG", compress_level=1)
        kind = "png"
    else:
        Image.fromarray(array, "RGB").save(file, "JPEG", quality=JPEG_QUALITY, subsampling="4:2:0")
        kind = "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"


def pixels(picture: Picture) -> dict[str, Any]:
    """What a VideoFrame (WebCodecs) is made of: nothing is lost where the format allows it."""
    frame = picture.frame
    plain = frame.format.name in ("yuv420p", "yuvj420p") and not frame.rotation
    if plain and shown_size(picture) == (frame.width, frame.height):
        data = frame.to_ndarray().tobytes()
        full = frame.color_range == _FULL_RANGE or frame.format.name == "yuvj420p"
        space = {
            "matrix": _matrix(frame)[1],
            "primaries": "bt709",
            # As pictures on the page: their levels go to the screen as they are.
            "transfer": "iec61966-2-1",
            "fullRange": full,
        }
        form = {"format": "I420", "colorSpace": space}
        width, height = frame.width, frame.height
    else:
        array = _upright(picture)
        height, width = array.shape[:2]
        if array.shape[2] == 3:
            array = np.dstack([array, np.full((height, width), 255, np.uint8)])
        data, form = np.ascontiguousarray(array).tobytes(), {"format": "RGBA"}
    return {
        "pixels": base64.b64encode(data).decode(),
        "codedWidth": width,
        "codedHeight": height,
        **form,
    }


def blank(width: int, height: int) -> str:
    """A data: URL of a picture of this size through which everything is seen.

    >>> blank(2, 1)[:30]
    'data:image/png;base64,iVBORw0K'
    """
    from PIL import Image

    file = io.BytesIO()
    Image.new("1", (width, height)).save(file, "PNG", transparency=0)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def _matrix(frame: Any) -> tuple[str, str]:
    """Of a picture that does not tell, the usual one for its height."""
    told = int(frame.colorspace)
    guess = _BT709 if frame.height >= _HD_LINES else _BT601
    return guess if told == _UNSPECIFIED else _MATRICES.get(told, guess)


def _upright(picture: Picture) -> np.ndarray[Any, Any]:
    """Red, green, blue (and opacity, where it has any), as it is shown."""
    frame = picture.frame
    name = frame.format.name
    clear = "yuva" in name or "rgba" in name or "argb" in name or name in ("bgra", "abgr", "ya8")
    width, height = shown_size(picture)
    if frame.rotation % 180:
        width, height = height, width
    is_yuv = name.startswith(("yuv", "nv", "p0"))
    ready = frame.reformat(
        width=width,
        height=height,
        format="rgba" if clear else "rgb24",
        src_colorspace=_matrix(frame)[0] if is_yuv else None,
        interpolation="BICUBIC",
    )
    array: np.ndarray[Any, Any] = ready.to_ndarray()
    turns = round(frame.rotation / 90) % 4
    return np.ascontiguousarray(np.rot90(array, turns)) if turns else array
