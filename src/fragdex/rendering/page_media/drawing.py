"""Decoded pictures in the forms that a page can take: a data: URL to show, pixels to read."""

from __future__ import annotations

import base64
import io
from typing import Any, Final

import numpy as np

from fragdex.decoding.pictures import matrix_of, orientation_of, shown_size, upright
from fragdex.decoding.video_track import Picture

__all__ = ["blank", "pixels", "url_of"]

JPEG_QUALITY: Final = 95
_FULL_RANGE: Final = 2


def url_of(picture: Picture) -> str:
    """A data: URL of a picture: JPEG, or PNG where it is not opaque."""
    from PIL import Image

    array = upright(picture)
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
    plain = frame.format.name in ("yuv420p", "yuvj420p") and not any(orientation_of(frame))
    if plain and shown_size(picture) == (frame.width, frame.height):
        data = frame.to_ndarray().tobytes()
        full = frame.color_range == _FULL_RANGE or frame.format.name == "yuvj420p"
        space = {
            "matrix": matrix_of(frame)[1],
            "primaries": "bt709",
            # As pictures on the page: their levels go to the screen as they are.
            "transfer": "iec61966-2-1",
            "fullRange": full,
        }
        form = {"format": "I420", "colorSpace": space}
        width, height = frame.width, frame.height
    else:
        array = upright(picture)
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
