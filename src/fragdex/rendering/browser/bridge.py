"""Pages that render themselves: each frame is requested, and they say when it is drawn.

`window.FRAMEGEN_BRIDGE` is there before any script of a page. One that gives it callbacks is not
led through time: it learns which part of the video is wanted, then gets a request for each frame,
whose number it draws as the colour of a line at the bottom of the window. With the last frame it
hands over the sound of the part.
"""

from __future__ import annotations

import base64
import json
from fractions import Fraction
from typing import Final

from fragdex.rendering.browser.loads import Waiting
from fragdex.rendering.browser.model import Limits, Notes, PageView

SAMPLE_RATE: Final = 48_000
"""Samples a second of the sound that such pages mix."""

# Whole milliseconds and whole AAC frames: 3 of 1024 samples.
_SPAN_US: Final = 64_000
_SECOND: Final = 1_000_000
# A page may round the span that it is asked for to blocks of its own.
_ROUNDED: Final = 1024
# A multiple of what bridge.js makes text of at once.
_PIECE: Final = 0x6000 * 128
_ROOM: Final = "globalThis[Symbol.for('fragdex.bridge')]"


class Bridge:
    """A page that renders each frame on request.

    Args:
        waiting: for what the page promises.
    """

    def __init__(self, waiting: Waiting, view: PageView, limits: Limits, notes: Notes) -> None:
        self._waiting, self._view = waiting, view
        self._seconds, self._notes = limits.load_seconds, notes
        self._frames: range | None = None
        self._heard = range(0)

    @property
    def frames(self) -> range | None:
        """The frames of the video that the page knows of; None: not yet."""
        return self._frames

    def is_asked(self) -> bool:
        """Whether the page wants to render frames on request."""
        return bool(self._waiting.value(f"{_ROOM}?.isAsked() === true"))

    def measure(self) -> tuple[int | None, int | None, int | None]:
        """Width and height in pixels, and duration in ms, of the page's root element.

        Raises:
            PageFailed: it throws, or does not answer.
        """
        facts = self._waiting.call(f"{_ROOM}.measure()", "how long it is", self._seconds)
        width, height, duration = (None if one is None else max(1, round(one)) for one in facts)
        return width, height, duration

    def initialize(self, frames: range, heard: range) -> None:
        """Tell the page which part of the video is wanted.

        Args:
            frames: that will be requested, of the whole video.
            heard: those of them whose sound is wanted.

        Raises:
            PageFailed: it throws, says that it failed, or does not answer.
        """
        self._frames, self._heard = frames, heard
        start_us, stop_us = self._span_us()
        fps = self._view.fps
        options = {
            "encoderOptions": {
                "fromMs": _number(frames.start * 1000 / fps),
                "toMs": _number(frames.stop * 1000 / fps),
                "alignedFromUs": start_us,
                "alignedToUs": stop_us,
                "video": {
                    "width": self._view.width,
                    "height": self._view.height,
                    "framerate": _number(fps),
                },
            },
            "showFrameBox": False,
            "enableTracing": False,
        }
        self._ask(f"initialize({json.dumps(options)})", "to initialize", self._seconds)

    def frame(self, i: int) -> None:
        """Have the page draw frame i of the video; raises as `initialize`."""
        assert self._frames is not None
        number, is_last = i - self._frames.start, i == self._frames.stop - 1
        # the sound may take the page as long as it lasts
        seconds = self._seconds + is_last * float(len(self._heard) / self._view.fps)
        self._ask(f"frame({number}, {json.dumps(is_last)})", f"for frame {number}", seconds)

    def sound(self) -> bytes:
        """What is heard in the part, once its last frame was drawn.

        Returns: float32, two channels, interleaved, little-endian, at 48 kHz: as many samples as
        the frames last, rounded to the video's; empty where the page gave none.
        """
        size = int(self._waiting.value(f"{_ROOM}.size()"))
        if not size:
            return b""
        start_us, stop_us = self._span_us()
        span = (stop_us - start_us) * SAMPLE_RATE // _SECOND
        channels = 1 if abs(size // 4 - span) <= _ROUNDED else 2
        frame_bytes = 4 * channels
        first, stop = (
            round(i / self._view.fps * SAMPLE_RATE) - start_us * SAMPLE_RATE // _SECOND
            for i in (self._heard.start, self._heard.stop)
        )
        count = min(size // frame_bytes, span)
        if count < stop:
            self._notes.say(
                "refused",
                f"sound that is too short: {count / SAMPLE_RATE:.3f} s for "
                f"{span / SAMPLE_RATE:.3f} s, the rest is silent",
            )
        data = self._bytes(first * frame_bytes, min(stop, count) * frame_bytes)
        return _stereo(data, channels, stop - first)

    def _span_us(self) -> tuple[int, int]:
        """The span of sound that the page gets: frames of AAC that contain the video's."""
        fps = self._view.fps
        start = int(self._heard.start * _SECOND / fps) // _SPAN_US * _SPAN_US
        return start, -(-self._heard.stop * _SECOND // (fps * _SPAN_US)) * _SPAN_US

    def _bytes(self, first: int, stop: int) -> bytes:
        parts = []
        for at in range(first - first % _PIECE, stop, _PIECE):
            text = self._waiting.value(f"{_ROOM}.sound({at}, {min(at + _PIECE, stop)})")
            parts.append(base64.b64decode(text))
        return b"".join(parts)[first % _PIECE :]

    def _ask(self, call: str, what: str, seconds: float) -> None:
        def told() -> str:
            answered = self._waiting.value(f"{_ROOM}.told()")
            return f"; it answered for frame {answered}" if answered else ""

        self._waiting.call(f"{_ROOM}.{call}", what, seconds, told)


def _number(value: Fraction) -> float | int:
    return value.numerator if value.denominator == 1 else float(value)


def _stereo(data: bytes, channels: int, count: int) -> bytes:
    """So many samples of two channels; silence where there are none, or what is no number."""
    # few pages need it, and all would wait for it before their browser starts
    import numpy as np

    values = np.frombuffer(data[: len(data) // (4 * channels) * 4 * channels], "<f4")
    samples = np.zeros((count, 2), "<f4")
    samples[: len(values) // channels] = values.reshape(-1, channels)
    return np.nan_to_num(samples, copy=False, nan=0.0, posinf=0.0, neginf=0.0).tobytes()
