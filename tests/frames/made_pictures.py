"""Pictures as a decoder gives them, made of arrays; and arrays that stand for those of a device."""

from __future__ import annotations

import av
import numpy as np

from fragdex.frames.arrays import NumpyArrays


class ArraysElsewhere(NumpyArrays):
    """What a library of arrays on a device does, by numpy: this machine has no device."""

    def sent(self, array):
        return array.copy()

    def hand_over(self, arrays):
        self.handed_over = list(arrays)


def filled(name, planes, *, matrix=6, full=False):
    """A picture of FFmpeg's; interleaved chroma is given by (height, width, 2)."""
    high, wide = planes[0].shape[:2]
    frame = av.VideoFrame(wide, high, name)
    for plane, values in zip(frame.planes, planes, strict=True):
        lines = np.full((plane.buffer_size // plane.line_size, plane.line_size), 77, np.uint8)
        raw = np.ascontiguousarray(values).reshape(values.shape[0], -1).view(np.uint8)
        lines[: raw.shape[0], : raw.shape[1]] = raw
        plane.update(lines)
    frame.colorspace, frame.color_range = matrix, 2 if full else 1
    return frame
