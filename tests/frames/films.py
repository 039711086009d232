"""Small films of the kinds that are hard to enter in the middle."""

import functools
import io
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from frames.linear import linear


def film(
    codec, count=60, *, fps=25, size=(96, 64), pix_fmt="yuv420p", fragmented=False, late=0,
    **options,
):  # fmt: skip
    """A film of moving noise; `fragmented` may say where fragments begin, `late` where Bs may."""
    file = io.BytesIO()
    where = fragmented if isinstance(fragmented, str) else "frag_keyframe"
    flags = {"movflags": where + "+empty_moov+default_base_moof"} if fragmented else {}
    with av.open(file, "w", format="mp4", options=flags) as container:
        stream = container.add_stream(codec, rate=Fraction(fps), options=options)
        stream.width, stream.height = size
        stream.pix_fmt = pix_fmt
        noise = np.random.default_rng(5).integers(0, 255, (size[1] * 2, size[0] * 2), np.uint8)
        for number in range(count):
            picture = np.zeros((size[1], size[0], 3), np.uint8)
            y, x = number * 2 % size[1], number * 3 % size[0]
            picture[..., 0] = noise[y : y + size[1], x : x + size[0]]
            picture[..., 1] = np.add.outer(np.arange(size[1]), np.arange(size[0])) + 4 * number
            picture[10:40, 10:40, 2] = 4 * number
            frame = av.VideoFrame.from_ndarray(picture, "rgb24").reformat(format=pix_fmt)
            if number < late:
                frame.pict_type = av.video.frame.PictureType.P
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return file.getvalue()


X264 = "keyint=15:min-keyint=15:scenecut=0:threads=1:"
X265 = "keyint=12:min-keyint=12:scenecut=0:pools=1:frame-threads=1:log-level=none:"
FILMS = {
    "x264 b-pyramid": ("libx264", {"x264-params": X264 + "bframes=5:b-pyramid=normal:ref=4"}),
    "x264 open gop": ("libx264", {"x264-params": X264 + "bframes=3:open-gop=1"}),
    "x264 without b": ("libx264", {"x264-params": X264 + "bframes=0", "fragmented": True}),
    "x264 interlaced": ("libx264", {"x264-params": X264 + "bframes=2:tff=1"}),
    "x264 10 bit": ("libx264", {"x264-params": X264 + "bframes=2", "pix_fmt": "yuv420p10le"}),
    "x264 intra refresh": ("libx264", {"x264-params": "keyint=20:intra-refresh=1:bframes=0"}),
    "x265 open gop": ("libx265", {"x265-params": X265 + "bframes=4:open-gop=1"}),
    "x265 radl": ("libx265", {"x265-params": X265 + "bframes=4:open-gop=0:radl=2"}),
    "x265 layers, 10 bit": (
        "libx265",
        {
            "x265-params": X265 + "bframes=4:open-gop=1:temporal-layers=1",
            "pix_fmt": "yuv420p10le",
            "fragmented": True,
        },
    ),
    "vp9 hidden frames": (
        "libvpx-vp9",
        {"auto-alt-ref": "1", "lag-in-frames": "16", "g": "20", "deadline": "realtime",
         "cpu-used": "8", "b": "200k"},
    ),
    "vp9 layers": (
        "libvpx-vp9",
        {"error-resilient": "default", "lag-in-frames": "0", "g": "20", "deadline": "realtime",
         "cpu-used": "8", "b": "200k", "ts-parameters": "ts_number_layers=2:"
         "ts_target_bitrate=100,200:ts_rate_decimator=2,1:ts_periodicity=2:ts_layer_id=0,1:"
         "ts_layering_mode=2"},
    ),
    "av1 film grain": (
        "libsvtav1",
        {"preset": "12", "g": "16", "svtav1-params": "film-grain=20:lp=1", "fragmented": True},
    ),
    "mpeg2 open gop": ("mpeg2video", {"g": "12", "bf": "2", "b": "900k"}),
    "mpeg4": ("mpeg4", {"g": "12", "bf": "2", "b": "900k"}),
}  # fmt: skip


def in_child(name):
    if "libsvtav1" not in av.codecs_available:
        pytest.skip("PyAV has no libsvtav1")
    program = (
        "import sys; from frames.films import *; codec, options = FILMS[sys.argv[1]];"
        "sys.stdout.buffer.write(film(codec, **options))"
    )
    return subprocess.run(
        [sys.executable, "-c", program, name],
        capture_output=True, check=True, cwd=Path(__file__).parents[1],
    ).stdout  # fmt: skip


@functools.cache
def made(name):
    """A film of the table, and the planes of its pictures by a linear decode."""
    codec, options = FILMS[name]
    try:
        # SVT-AV1 puts its process into another scheduling class
        data = in_child(name) if codec == "libsvtav1" else film(codec, **options)
    except av.codec.codec.UnknownCodecError as error:  # a build of PyAV without this encoder
        pytest.skip(f"{codec}: {error}")
    return data, linear(data)
