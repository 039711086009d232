"""Pixels of the browser's pictures, and the line that proves which frame one is.

A page that is asked for each frame draws the frame's number in a line below the film. The line is
no part of the film.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from fragdex.errors import PageFailed
from fragdex.rendering.browser.timing import View

if TYPE_CHECKING:
    import numpy as np


LINE: Final = 1
"""Its height, in CSS pixels."""


def rows_of_line(view: View) -> int:
    """Its height in a picture.

    >>> rows_of_line(View(1280, 720)), rows_of_line(View(1280, 720, scale=2))
    (1, 2)
    """
    return replace(view, height=view.height + LINE).pixels[1] - view.pixels[1]


def without_line(frame: Any, lines: int, number: int) -> Any:
    """A picture of the browser without its last lines.

    Args:
        frame: av.VideoFrame in RGB or RGBA.
        lines: how many; the number is read in the middle of the last one.
        number: that must stand there, as red × 65,536 + green × 256 + blue.

    Raises:
        PageFailed: another number stands there.
    """
    pixels = pixels_of(frame)
    red, green, blue = map(int, pixels[-1, frame.width // 2, :3])
    found = red << 16 | green << 8 | blue
    if found != number:
        raise PageFailed(
            "the page says that a frame stands, and shows another one",
            expected=f"the colour #{number:06x} in the line at the bottom, for frame {number}",
            found=f"#{found:06x}",
            advice="draw the line with the frame, before frameReady() is called",
        )
    return picture_of(pixels[:-lines])


_FORMATS: Final = {3: "rgb24", 4: "rgba"}
_CHANNELS: Final = {name: channels for channels, name in _FORMATS.items()}


def pixels_of(frame: Any) -> np.ndarray[Any, Any]:
    """The pixels of an av.VideoFrame in RGB or RGBA: (height, width, 3 or 4), uint8, not copied."""
    import numpy as np

    plane, channels = frame.planes[0], _CHANNELS[frame.format.name]
    rows = np.frombuffer(plane, np.uint8).reshape(frame.height, plane.line_size)
    return rows[:, : frame.width * channels].reshape(frame.height, frame.width, channels)


def picture_of(pixels: np.ndarray[Any, Any]) -> Any:
    """An av.VideoFrame of such pixels."""
    import av
    import numpy as np

    array = np.ascontiguousarray(pixels)
    return av.VideoFrame.from_ndarray(array, format=_FORMATS[pixels.shape[2]])
