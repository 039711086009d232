"""Films and sounds that say what they are, and what is read off them."""

from __future__ import annotations

import io
import wave

import av
import numpy as np

RATE = 48_000


def numbered(count, fps, *, bframes=2, keys=30, size=(256, 48), options=None, codec="libx264",
             late=0):  # fmt: skip
    """A film whose pictures say their number in 16 columns, the lowest bit first.

    Its first picture is shown `late` seconds after 0.
    """
    file = io.BytesIO()
    form = "webm" if codec.startswith("libvpx") else "mp4"
    if options is None and form == "mp4":
        options = {"movflags": "frag_keyframe+delay_moov+default_base_moof"}
    container = av.open(file, "w", format=form, options=options or {})
    x264 = f"bframes={bframes}:keyint={keys}:scenecut=0:threads=1"
    speed = {"preset": "ultrafast", "x264-params": x264}
    stream = container.add_stream(
        codec, rate=fps, options=speed if form == "mp4" else {"deadline": "realtime"}
    )
    stream.width, stream.height = size
    stream.pix_fmt = "yuv420p"
    stream.codec_context.gop_size, stream.codec_context.max_b_frames = keys, bframes
    columns = np.arange(size[0]) * 16 // size[0]
    for number in range(count):
        luma = np.where(number >> columns & 1, 235, 16).astype(np.uint8)
        planes = np.full((size[1] * 3 // 2, size[0]), 128, np.uint8)
        planes[: size[1]] = luma
        frame = av.VideoFrame.from_ndarray(planes, format="yuv420p")
        frame.pts = number + late * fps
        container.mux(stream.encode(frame))
    container.mux(stream.encode())
    container.close()
    return file.getvalue()


def number_at(picture, x=0, y=24, width=256):
    """The number that stands in a row of a picture."""
    row = picture[y].mean(axis=1)
    step = width / 16
    return sum(1 << bit for bit in range(16) if row[int(x + bit * step + step / 2)] > 120)


def one_colour(rgb, size=(64, 48), seconds=2, fps=30, transfer=None):
    """A film that is of one colour all through."""
    file = io.BytesIO()
    container = av.open(file, "w", format="mp4")
    stream = container.add_stream("libx264", rate=fps, options={"preset": "ultrafast", "crf": "5"})
    stream.width, stream.height = size
    stream.pix_fmt = "yuv420p"
    if transfer is not None:
        stream.codec_context.color_trc = transfer
    array = np.zeros((size[1], size[0], 3), np.uint8) + np.array(rgb, np.uint8)
    for _ in range(seconds * fps):
        container.mux(stream.encode(av.VideoFrame.from_ndarray(array, format="rgb24")))
    container.mux(stream.encode())
    container.close()
    return file.getvalue()


def wav(samples, rate=RATE):
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes((np.asarray(samples) * 32767).astype("<i2").tobytes())
    return file.getvalue()


def beeps(seconds=3, at=0.5, length=0.05):
    """A beep in each second, which begins with its loudest sample."""
    sound = np.zeros(seconds * RATE)
    count = int(length * RATE)
    beep = np.cos(2 * np.pi * 1000 * np.arange(count) / RATE) * 0.5
    for second in range(seconds):
        first = int((second + at) * RATE)
        sound[first : first + count] = beep
    return wav(sound)


def onsets(sound, level=0.1):
    """Seconds at which something begins after at least a tenth of silence."""
    loud = np.flatnonzero(np.abs(sound[:, 0]) > level)
    begins = loud[np.diff(loud, prepend=-RATE) > RATE // 10]
    return [round(int(at) / RATE, 5) for at in begins]
