"""Films whose pictures say their number in 16 columns of black and white."""

import io
from fractions import Fraction

import av
import numpy as np

BIT = 16
FRAGMENTED = {"movflags": "frag_keyframe+delay_moov+default_base_moof"}


def luma_of(number, size):
    """The brightness of a picture: its number in columns, the lowest bit first."""
    columns = np.arange(size[0]) * BIT // size[0]
    row = np.where(number >> columns & 1, 235, 16).astype(np.uint8)
    return np.broadcast_to(row, (size[1], size[0]))


def numbered(
    count, fps, *, bframes=2, keys=30, fragmented=True, size=(256, 48), codec="libx264",
    aspect=None, rotation=None,
):  # fmt: skip
    """A film of `count` pictures, a key frame every `keys`."""
    file = io.BytesIO()
    options = FRAGMENTED if fragmented else {}
    container = av.open(file, "w", format="mp4", options=options)
    x264 = f"bframes={bframes}:keyint={keys}:scenecut=0:threads=1"
    stream = container.add_stream(
        codec, rate=fps, options={"preset": "ultrafast", "x264-params": x264}
    )
    stream.width, stream.height = size
    stream.pix_fmt = "yuv420p"
    if aspect is not None:
        stream.codec_context.sample_aspect_ratio = Fraction(aspect)
    stream.codec_context.gop_size, stream.codec_context.max_b_frames = keys, bframes
    for number in range(count):
        planes = np.full((size[1] * 3 // 2, size[0]), 128, np.uint8)
        planes[: size[1]] = luma_of(number, size)
        container.mux(stream.encode(av.VideoFrame.from_ndarray(planes, format="yuv420p")))
    container.mux(stream.encode())
    container.close()
    data = file.getvalue()
    return data if rotation is None else turned(data, rotation)


def turned(data, degrees):
    """The same film with a matrix in the tkhd that turns it clockwise (ISO/IEC 14496-12, 8.3.2)."""
    one = (1).to_bytes(2, "big") + bytes(2)
    minus = (-1).to_bytes(2, "big", signed=True) + bytes(2)
    zero, unit = bytes(4), (1 << 30).to_bytes(4, "big")
    a, b, c, d = {
        90: (zero, one, minus, zero), 180: (minus, zero, zero, minus), 270: (zero, minus, one, zero)
    }[degrees]  # fmt: skip
    plain = one + zero * 3 + one + zero * 3 + unit
    at = data.index(plain, data.index(b"tkhd"))
    matrix = a + b + zero + c + d + zero * 3 + unit
    return data[:at] + matrix + data[at + len(plain) :]


def number_in(luma):
    """The number that a brightness says."""
    row = luma[luma.shape[0] // 2]
    width = luma.shape[1] / BIT
    return sum(1 << bit for bit in range(BIT) if row[int((bit + 0.5) * width)] > 125)
