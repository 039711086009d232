"""No pixel of a picture that was converted is what was in memory before."""

from __future__ import annotations

import av
import numpy as np
import pytest
from av.video.reformatter import VideoReformatter

from fragdex.decoding.pictures import rgb_of
from fragdex.frames.pixels import Converter
from fragdex.rendering.outputs import VIDEO_CODECS
from fragdex.rendering.pictures import _in_bt709, _of_rgb

HEIGHT = 6
STORED = (
    "yuv420p", "yuvj420p", "yuv422p", "yuvj422p", "yuv444p", "yuva420p", "yuva422p", "yuva444p",
    "yuv420p10le", "yuv422p10le", "yuv444p10le", "yuva420p10le", "nv12", "p010le", "gray", "ya8",
    "gbrp", "gbrap", "rgb24", "rgba", "bgra", "bgr0",
)  # fmt: skip
FORMATS = sorted({name for codec in VIDEO_CODECS.values() for name in codec.formats})


def poison(value):
    """Fill memory that is given back; what is taken next is some of it."""
    taken = [np.full(size, value, np.uint8) for size in (1500, 3000, 6000, 9000, 12000) * 3]
    taken.clear()


def noise(name, width):
    frame = av.VideoFrame(width, HEIGHT, name)
    random = np.random.default_rng(width)
    for plane in frame.planes:
        plane.update(random.integers(0, 256, plane.buffer_size, np.uint8).tobytes())
    return frame


def shown(frame):
    """The bytes of a picture that are seen."""
    sizes = []
    for plane in frame.planes:
        of_pixel = max(1, -(-frame.format.components[0].bits // 8))
        packed = len(frame.planes) == 1
        sizes.append(frame.width * frame.format.padded_bits_per_pixel // 8 if packed
                     else plane.width * of_pixel)  # fmt: skip
    rows = (np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size) for plane in frame.planes)
    return b"".join(row[:, :size].tobytes() for row, size in zip(rows, sizes, strict=True))


CONVERSIONS = {
    **{f"{name} as {rgb}": (name, lambda frame, rgb=rgb: rgb_of(frame, rgb).tobytes())
       for name in STORED for rgb in ("rgb24", "rgba", "rgb48le", "rgba64le")},
    **{f"{name} as frames in {form}":
       (name, lambda frame, form=form: b"".join(map(bytes, Converter(form).pixels(frame))))
       for name in STORED for form in ("rgb", "rgb16", "gray", "gray16", "yuv")},
    **{f"{rgb} as {name} of a video":
       (rgb, lambda frame, name=name: shown(_in_bt709(VideoReformatter(), frame, name)))
       for name in FORMATS for rgb in ("rgb24", "rgba")},
    "rgb24 by the C extension":
        ("rgb24", lambda frame: b"" if frame.width % 2 else shown(_of_rgb(frame))),
}  # fmt: skip


@pytest.mark.parametrize("what", CONVERSIONS)
def test_every_pixel_is_written(what):
    name, convert = CONVERSIONS[what]
    differ = []
    for width in range(1, 201):
        frame, made = noise(name, width), set()
        for value in (0x00, 0xAB):
            poison(value)
            made.add(convert(frame))
        if len(made) > 1:
            differ.append(width)
    assert differ == []
