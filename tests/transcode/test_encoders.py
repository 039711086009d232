"""The same pictures give the same bytes, again and again."""

from fractions import Fraction

import av
import numpy as np

from fragdex.transcode.encoders import repeatable

PARAMS = "rc-lookahead=5:sync-lookahead=0:scenecut=0:bframes=0:threads=1"


def pictures(width, height):
    noise = np.random.default_rng(1).integers(
        0, 256, (height // 8 + 2, width // 8 + 2, 3), np.uint8
    )
    large = noise.repeat(8, 0).repeat(8, 1)
    for number in range(12):
        x, y = 2 * number % 8, number % 8
        cut = np.ascontiguousarray(large[y : y + height, x : x + width])
        frame = av.VideoFrame.from_ndarray(cut, format="rgb24").reformat(format="yuv420p")
        frame.pts = number
        yield frame


def encoded(frames, width, height):
    context = av.CodecContext.create("libx264", "w")
    context.width, context.height, context.pix_fmt = width, height, "yuv420p"
    context.time_base = Fraction(1, 10)
    context.options = repeatable({"preset": "veryfast", "crf": "30", "x264-params": PARAMS})
    return b"".join(bytes(packet) for one in (*frames, None) for packet in context.encode(one))


def test_the_same_bytes_in_every_run():
    frames = list(pictures(64, 48))
    kept = []  # moves what the encoder allocates
    outputs = set()
    for number in range(400):
        kept.append(bytearray(number * 997 % 100_000))
        outputs.add(encoded(frames, 64, 48))
        del kept[:-50]
    assert len(outputs) == 1


def test_options_of_other_encoders_stay():
    assert repeatable({"x265-params": "pools=none"}) == {"x265-params": "pools=none"}
