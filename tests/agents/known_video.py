"""A video whose content is known: every picture says its number, and what happens when is below."""

import io
from fractions import Fraction

import av
import numpy as np

FPS, COUNT, SIZE, BITS = 10, 1200, (320, 160), 16
HIGH = 12
CUTS = {137: 60, 412: 200, 905: 110}
"""Pictures with which a scene begins, and how bright it is; in lines above it stands the number."""
RATE = 48_000
LOUD, SOFT, LOUDEST, SILENT = (20, 30), 0.02, (70, 71), (50, 53.5)
LINES = [
    (2.0, 4.5, "Ada", "Welcome to the glass house."),
    (12.0, 14.0, "Grace", "Here the first picture ends."),
    (33.25, 36.0, "Ada", "The seven bells are out of tune."),
    (36.5, 39.0, "Grace", "Nobody has tuned them for years."),
    (71.0, 73.0, "Ada", "That was the loudest bell & the last."),
    (73.25, 76.0, None, "(applause)"),
    (110.5, 113.0, "Grace", "Good night from the glass house."),
]


def scene_of(number):
    shade = 20
    for first, brightness in CUTS.items():
        if number >= first:
            shade = brightness
    return shade


def picture(number):
    luma = np.full((SIZE[1], SIZE[0]), scene_of(number), np.uint8)
    columns = np.arange(SIZE[0]) * BITS // SIZE[0]
    luma[:HIGH] = np.where(number >> columns & 1, 235, 16)
    return np.concatenate([luma, np.full((SIZE[1] // 2, SIZE[0]), 128, np.uint8)])


def number_in(pixels):
    """The number that a picture says, of any size: the lowest bit first."""
    row = np.asarray(pixels)[round(pixels.shape[0] * HIGH / SIZE[1] / 2)]
    row = row.mean(axis=-1) if row.ndim > 1 else row
    width = len(row) / BITS
    return sum(1 << bit for bit in range(BITS) if row[int((bit + 0.5) * width)] > 125)


def sound():
    at = np.arange(COUNT * RATE // FPS) / RATE
    volume = np.full(len(at), SOFT)
    for (low, high), loud in ((LOUD, 0.3), (LOUDEST, 0.9), (SILENT, 0)):
        volume[(at >= low) & (at < high)] = loud
    return (volume * np.sin(2 * np.pi * 1000 * at)).astype(np.float32)


def webvtt():
    def clock(seconds):
        return f"00:{int(seconds // 60):02}:{seconds % 60:06.3f}"

    blocks = ["WEBVTT"]
    for start, stop, speaker, text in LINES:
        voice = f"<v {speaker}>" if speaker else ""
        escaped = text.replace("&", "&amp;")
        blocks.append(f"{clock(start)} --> {clock(stop)}\n{voice}{escaped}")
    return "\n\n".join(blocks) + "\n"


def made(*, with_sound=True, fragmented=False, count=COUNT, fps=FPS):
    """The bytes of the video."""
    file = io.BytesIO()
    options = {"movflags": "frag_keyframe+delay_moov+default_base_moof"} if fragmented else {}
    with av.open(file, "w", format="mp4", options=options) as container:
        params = "bframes=2:keyint=50:scenecut=0:threads=1"
        stream = container.add_stream(
            "libx264", rate=fps, options={"preset": "ultrafast", "x264-params": params}
        )
        stream.width, stream.height, stream.pix_fmt = *SIZE, "yuv420p"
        heard = container.add_stream("aac", rate=RATE, layout="mono") if with_sound else None
        for number in range(count):
            frame = av.VideoFrame.from_ndarray(picture(number), format="yuv420p")
            frame.pts, frame.time_base = number, Fraction(1, fps)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
        if heard is not None:
            samples = sound()[: count * RATE // FPS]
            for place in range(0, len(samples), 1024):
                part = samples[place : place + 1024].reshape(1, -1)
                frame = av.AudioFrame.from_ndarray(part, format="fltp", layout="mono")
                frame.sample_rate, frame.pts, frame.time_base = RATE, place, Fraction(1, RATE)
                container.mux(heard.encode(frame))
            container.mux(heard.encode())
    return file.getvalue()
