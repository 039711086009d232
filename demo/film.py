"""A film that anyone can check: every picture carries its number, for eyes and for programs.

A minute of it is encoded in a few seconds. The number stands in large digits in the middle, and
once more along the lower edge as 16 black or white fields, most significant bit first: what was
decoded can be held against what was asked for.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from av.video.frame import VideoFrame

__all__ = ["FPS", "HEIGHT", "WIDTH", "make", "number_in", "numbers_of"]

WIDTH, HEIGHT, FPS, RATE = 640, 360, 25, 48_000
GROUP = 2 * FPS
"""Pictures from one key frame to the next, and so in a fragment."""
BITS = 16
FIELD = WIDTH // BITS
BLACK, GREY, WHITE = 16, 90, 235  # limited-range luma

Plane = npt.NDArray[np.uint8]

# Seven segments of a digit: top, upper left, upper right, middle, lower left, lower right, bottom.
SEGMENTS = ("1110111", "0010010", "1011101", "1011011", "0111010",
            "1101011", "1101111", "1010010", "1111111", "1111011")  # fmt: skip


def _digit(value: int, height: int) -> Plane:
    """A digit as a mask of height × height/2, 0 or 1."""
    width, bar = height // 2, height // 9
    mask = np.zeros((height, width), np.uint8)
    half = height // 2
    places = (
        (slice(0, bar), slice(0, width)),
        (slice(0, half), slice(0, bar)),
        (slice(0, half), slice(width - bar, width)),
        (slice(half - bar // 2, half + bar // 2 + 1), slice(0, width)),
        (slice(half, height), slice(0, bar)),
        (slice(half, height), slice(width - bar, width)),
        (slice(height - bar, height), slice(0, width)),
    )
    for lit, place in zip(SEGMENTS[value], places, strict=True):
        if lit == "1":
            mask[place] = 1
    return mask


LARGE = [_digit(value, 126) for value in range(10)]


def picture(number: int) -> Plane:
    """Picture `number` as yuv420p: uint8 of shape (HEIGHT × 3 / 2, WIDTH)."""
    planes = np.empty((HEIGHT * 3 // 2, WIDTH), np.uint8)
    luma, chroma = planes[:HEIGHT], planes[HEIGHT:].reshape(2, HEIGHT // 2, WIDTH // 2)
    x = np.arange(WIDTH, dtype=np.int64)
    luma[:] = GREY + (np.abs((x + 4 * number) % 512 - 256) // 6).astype(np.uint8)
    turn = np.abs(number % 512 - 256) // 4
    chroma[0], chroma[1] = 96 + turn, 160 - turn
    digits = [int(letter) for letter in f"{number:05d}"]
    at = (WIDTH - 80 * len(digits) + 17) // 2
    for place, digit in enumerate(digits):
        left = at + 80 * place
        box = luma[100:226, left : left + 63]
        box[LARGE[digit] == 1] = WHITE
    shown = (number >> np.arange(BITS - 1, -1, -1)) & 1
    luma[HEIGHT - 40 :] = np.repeat(np.where(shown, WHITE, BLACK), FIELD).astype(np.uint8)
    return planes


def number_in(frame: VideoFrame) -> int:
    """The number that a decoded picture carries along its lower edge."""
    luma = frame.reformat(width=WIDTH, height=HEIGHT, format="gray").to_ndarray()
    lit = luma[HEIGHT - 20, FIELD // 2 :: FIELD] > 128
    return int((lit << np.arange(BITS - 1, -1, -1)).sum())


def numbers_of(path: Path) -> list[int]:
    """The numbers of all pictures in a file, in the order in which they are shown."""
    import av

    with av.open(str(path)) as container:
        return [number_in(frame) for frame in container.decode(video=0)]


def _sound(start: int, count: int) -> npt.NDArray[np.int16]:
    """A beep at every full second over a quiet hum, int16 of shape (1, count)."""
    n = np.arange(start, start + count)
    beep = np.sin(2 * np.pi * 880 * n / RATE) * (n % RATE < RATE // 10)
    hum = np.sin(2 * np.pi * 110 * n / RATE)
    return (9000 * beep + 900 * hum).astype(np.int16)[None, :]


def make(path: Path, seconds: int) -> None:
    """Write the film: fragmented MP4 with a picture and a sound track, no index inside.

    Raises:
        ImportError: PyAV is not installed (extra `media`).
    """
    import av

    flags = "frag_keyframe+empty_moov+delay_moov+default_base_moof"
    options = {"movflags": flags}
    with av.open(str(path), "w", format="mp4", options=options) as container:
        codec = "libx264" if "libx264" in av.codecs_available else "mpeg4"
        speed = {"preset": "veryfast", "crf": "30"} if codec == "libx264" else {"qmin": "5"}
        video = container.add_stream(codec, rate=FPS, options=speed)
        video.width, video.height, video.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        video.codec_context.gop_size = GROUP
        # Scene cuts would put key frames elsewhere, and the film would say less about itself.
        video.codec_context.options = {**speed, "sc_threshold": "0"}
        audio = container.add_stream("aac", rate=RATE, layout="mono")
        audio.bit_rate = 64_000
        for number in range(seconds * FPS):
            frame = av.VideoFrame.from_ndarray(picture(number), format="yuv420p")
            frame.pts, frame.time_base = number, Fraction(1, FPS)
            container.mux(video.encode(frame))
            if number % FPS == 0:
                _encode_second(container, audio, number // FPS)
        container.mux(video.encode(None))
        container.mux(audio.encode(None))


def _encode_second(container: Any, audio: Any, second: int) -> None:
    from av import AudioFrame

    frame = AudioFrame.from_ndarray(_sound(second * RATE, RATE), format="s16", layout="mono")
    frame.sample_rate, frame.pts, frame.time_base = RATE, second * RATE, Fraction(1, RATE)
    container.mux(audio.encode(frame))
