"""Small media files of every kind, made with FFmpeg's libraries when they are asked for."""

import os
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

FIXTURES = Path(__file__).parents[2] / "fixtures"
RATE = 25


def picture(n, width, height):
    """A frame whose grey is its number, on a moving ramp."""
    ramp = (np.arange(width)[None, :] + 3 * n + np.zeros((height, 1))) % 256
    image = np.stack([ramp, np.full((height, width), (7 * n) % 256), 255 - ramp], axis=-1)
    return av.VideoFrame.from_ndarray(image.astype(np.uint8), format="rgb24")


def make(
    path,
    *,
    video=None,
    audio=None,
    seconds=4,
    width=128,
    height=96,
    key=RATE,
    form=None,
    options=None,
    start=0,
    pix_fmt="yuv420p",
    rotation=0,
    layout="stereo",
    rate=48000,
):
    """Write a file; `video` and `audio` are encoders, `options` the video encoder's.

    `layout` and `rate` are those of the sound.
    """
    with av.open(str(path), "w", format=form) as out:
        streams = []
        if video:
            stream = out.add_stream(video, rate=RATE, options=options or {})
            stream.width, stream.height, stream.pix_fmt = width, height, pix_fmt
            stream.codec_context.gop_size = key
            if rotation:
                stream.set_display_rotation(rotation)
            streams.append(stream)
        if audio:
            streams.append(out.add_stream(audio, rate=rate, layout=layout))
        for stream in streams:
            if stream.type == "video":
                for n in range(round(seconds * RATE)):
                    frame = picture(n, width, height).reformat(format=pix_fmt)
                    frame.pts, frame.time_base = n + start * RATE, Fraction(1, RATE)
                    out.mux(stream.encode(frame))
            else:
                count = len(av.AudioLayout(layout).channels)
                tone = np.sin(np.arange(rate * seconds) * 440 * 2 * np.pi / rate)
                data = np.repeat((tone * 12000).astype(np.int16), count)[None, :]
                for first in range(0, data.shape[1] // count, 960):
                    piece = data[:, count * first : count * (first + 960)]
                    frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(piece), "s16", layout)
                    frame.sample_rate = rate
                    frame.pts, frame.time_base = first + start * rate, Fraction(1, rate)
                    out.mux(stream.encode(frame))
            out.mux(stream.encode(None))
    if video == "libsvtav1" and hasattr(os, "sched_setscheduler"):
        # As root it makes the process that begins it a real-time one: a busy child of that one
        # would let nothing else run.
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return Path(path)


@pytest.fixture
def made(tmp_path):
    """A function that makes a media file in a folder of the test's own."""
    return lambda name, **what: make(tmp_path / name, **what)


@pytest.fixture
def fixture_file():
    return lambda name: FIXTURES / name
