"""Some seconds of real video and sound, encoded once, repeated by the inputs' maker.

Sixteen seconds is the shortest whole number of two-second groups of pictures that is also a
whole number of AAC frames: 480 pictures at 30 a second, 750 frames of 1,024 samples at 48 kHz.
So the same packets follow themselves without a gap in either track. Other shapes have to come out
even, too.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import av
import numpy as np
import numpy.typing as npt

SECONDS = 16
FRAMES_PER_SECOND = 30
SAMPLE_RATE = 48_000
AAC_FRAME = 1024
GROUP_SECONDS = 2
WIDTH, HEIGHT = 320, 180
PICTURES = SECONDS * FRAMES_PER_SECOND
SOUNDS = SECONDS * SAMPLE_RATE // AAC_FRAME
AUDIO_TICK = Fraction(1, SAMPLE_RATE)


Packet: TypeAlias = "av.Packet[Any]"  # generic for type checkers alone
Row: TypeAlias = tuple[int, Packet, int, int]  # stream, packet, dts and pts in ticks of that stream


@dataclass(frozen=True, slots=True)
class Shape:
    """What is encoded: seconds, frames a second, frames a group, size, bits, tuning of x264."""

    seconds: int = SECONDS
    rate: int = FRAMES_PER_SECOND
    group: int = GROUP_SECONDS * FRAMES_PER_SECOND
    width: int = WIDTH
    height: int = HEIGHT
    bits: str = "200k"
    tuning: str = "bframes=2"
    first: int = 0  # number of the first picture: another one makes another film

    @property
    def pictures(self) -> int:
        """Of one turn of the loop."""
        return self.seconds * self.rate

    @property
    def sounds(self) -> int:
        """AAC frames of one turn of the loop."""
        count, rest = divmod(self.seconds * SAMPLE_RATE, AAC_FRAME)
        if rest or self.pictures % self.group:
            raise SystemExit(f"{self.seconds} s are no whole number of AAC frames and groups")
        return count


SHAPE = Shape()


@dataclass(frozen=True, slots=True)
class Loop:
    """The packets of the loop in decode order, and the streams that describe them."""

    shape: Shape
    video: av.VideoStream
    audio: av.AudioStream
    rows: list[Row]
    holder: object  # the container that owns both streams: it must live as long as they do

    def packets(self, seconds: int) -> Iterator[tuple[int, Packet]]:
        """Yield every packet of a film of so many seconds, with 0 for video and 1 for sound."""
        shape = self.shape
        stop = (seconds * shape.rate, seconds * SAMPLE_RATE)
        step = (shape.pictures, shape.sounds * AAC_FRAME)
        duration = (1, AAC_FRAME)
        tick = (Fraction(1, shape.rate), AUDIO_TICK)
        for turn in range(-(-seconds // shape.seconds)):
            for stream, packet, dts, pts in self.rows:
                shift = turn * step[stream]
                if pts + shift < stop[stream]:
                    # The muxer rescales a packet in place, so every time is set anew.
                    packet.time_base = tick[stream]
                    packet.dts, packet.pts = dts + shift, pts + shift
                    packet.duration = duration[stream]
                    yield stream, packet


def _picture(number: int, width: int, height: int) -> npt.NDArray[np.uint8]:
    """A gradient that drifts, a block that runs, and a little noise: something to predict."""
    y, x = np.mgrid[0:height, 0:width]
    rgb = np.empty((height, width, 3), np.uint8)
    rgb[..., 0] = (x + 2 * number) & 255
    rgb[..., 1] = (y * 2 + number) & 255
    rgb[..., 2] = ((x + y) // 2 - number) & 255
    left = (number * 3) % (width - 40)
    rgb[60:100, left : left + 40] = (250, 240, 30)
    noise = np.random.default_rng(number).integers(0, 12, (height, width, 1), np.uint8)
    rgb[:] = np.minimum(rgb, 243) + noise
    return rgb


def _encode_video(stream: av.VideoStream, shape: Shape) -> list[Packet]:
    packets: list[Packet] = []
    for number in range(shape.pictures):
        picture = _picture(shape.first + number, shape.width, shape.height)
        frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
        frame.pts, frame.time_base = number, Fraction(1, shape.rate)
        packets += stream.encode(frame)
    packets += stream.encode(None)
    return packets


def _encode_audio(stream: av.AudioStream, count: int) -> list[Packet]:
    packets: list[Packet] = []
    for number in range(count + 2):
        t = (np.arange(AAC_FRAME) + number * AAC_FRAME) / SAMPLE_RATE
        tone = 0.3 * np.sin(2 * np.pi * (220 + 40 * np.sin(t)) * t)
        planes = np.stack([tone, tone * 0.5]).astype(np.float32)
        frame = av.AudioFrame.from_ndarray(planes, format="fltp", layout="stereo")
        frame.sample_rate, frame.pts, frame.time_base = SAMPLE_RATE, number * AAC_FRAME, AUDIO_TICK
        packets += stream.encode(frame)
    packets += stream.encode(None)
    # The priming frame before time zero goes: the loop starts on the grid.
    return [packet for packet in packets if _times(packet)[1] >= 0][:count]


def _times(packet: Packet) -> tuple[int, int]:
    if packet.dts is None or packet.pts is None:
        raise SystemExit("an encoder gave a packet without times")
    return packet.dts, packet.pts


def encode(shape: Shape = SHAPE) -> Loop:
    """Encode the loop: H.264 with B-frames and a key frame each group, AAC-LC stereo."""
    holder = av.open(io.BytesIO(), "w", format="mp4")
    video = holder.add_stream("libx264", rate=shape.rate)
    video.width, video.height, video.pix_fmt = shape.width, shape.height, "yuv420p"
    video.time_base = tick = Fraction(1, shape.rate)
    group = shape.group
    video.options = {
        "preset": "veryfast",
        "b": shape.bits,
        "x264-params": f"keyint={group}:min-keyint={group}:scenecut=0:open-gop=0:{shape.tuning}",
    }
    audio = holder.add_stream("aac", rate=SAMPLE_RATE)
    audio.layout, audio.bit_rate = "stereo", 48_000
    # Opening the encoders fills in the parameter sets that avcC and esds are made of.
    holder.start_encoding()
    pictures, sounds = _encode_video(video, shape), _encode_audio(audio, shape.sounds)
    if (len(pictures), len(sounds)) != (shape.pictures, shape.sounds):
        raise SystemExit(f"the loop came out with {len(pictures)} pictures, {len(sounds)} sounds")
    rows: list[Row] = [(0, packet, *_times(packet)) for packet in pictures]
    rows += [(1, packet, *_times(packet)) for packet in sounds]
    rows.sort(key=lambda row: (row[2] * (tick, AUDIO_TICK)[row[0]], row[0]))
    return Loop(shape, video, audio, rows, holder)
