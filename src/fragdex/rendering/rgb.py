"""The pixels of the browser's pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np

__all__ = ["picture_of", "pixels_of"]

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
