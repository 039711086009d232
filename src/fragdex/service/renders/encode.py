"""Pictures → the H.264 of a slice, in a thread beside the browser.

What decides the bytes is fixed: one x264 thread, key frames by count alone, no pictures out of
order. Every slice of a view has the same parameter sets, so that packets of several slices make
one stream; and as no picture is reordered, its first stands at 0 without an edit list.
"""

from __future__ import annotations

import queue
import threading
import time
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from fragdex.service.errors import BrowserGone
from fragdex.service.renders.pictures import Pictures
from fragdex.service.renders.plan import View, key_interval
from fragdex.service.renders.repeats import Numbered, repeat_unit

__all__ = ["ENCODER", "Encoding", "encoder_version"]

ENCODER: Final = {
    "preset": "veryfast",
    "crf": "18",
    "forced-idr": "1",
    # chromaloc 1: the middle of four pixels, which is where the conversion takes chroma from
    "x264-params": "stitchable=1:open-gop=0:scenecut=0:bframes=0:chromaloc=1",
}
"""Settings of x264. Key frames are ordered one by one (`plan.key_interval`)."""

_NEVER: Final = 1 << 20
# A picture that stays is encoded so often, each time better; after that it is repeated.
_REFINED: Final = 3

# Pictures that wait for the encoder: a few MB each in the worst case.
_WAITING: Final = 4
_BT709: Final = 1  # ISO/IEC 23091-2: colour primaries, transfer and matrix alike
_ANY, _INTRA = 0, 1  # FFmpeg's numbers of picture types
_LIMITED: Final = 1  # FFmpeg's number of the range 16–235


def encoder_version() -> str:
    """What decides an encoded slice besides its pictures: libraries, settings."""
    import av

    libraries = ".".join(
        str(part)
        for name in ("libavcodec", "libswscale", "libavformat")
        for part in av.library_versions[name]
    )
    return f"{libraries} {ENCODER}"


def _settle(context: Any, width: int, height: int) -> None:
    context.width, context.height, context.pix_fmt = width, height, "yuv420p"
    context.thread_count = 1
    context.gop_size = _NEVER
    context.color_range = _LIMITED
    context.colorspace = context.color_primaries = context.color_trc = _BT709


def _alone(width: int, height: int, changed: dict[str, str]) -> Any:
    """An encoder as that of a file, without one; options that are "" are left out."""
    import av
    from av.codec.context import Flags

    context: Any = av.CodecContext.create("libx264", "w")
    _settle(context, width, height)
    context.time_base, context.framerate = Fraction(1, 30), Fraction(30)
    context.options = {name: text for name, text in (ENCODER | changed).items() if text}
    context.flags |= Flags.global_header
    return context


class _File:
    """The file of a slice: H.264 in MP4, times counted in frames from 0."""

    def __init__(self, path: Path, view: View) -> None:
        import av

        self.pictures = Pictures(view.width, view.height)
        self.frames = 0
        self._av = av
        self._size = view.width, view.height
        self._keys = key_interval(view.fps)
        self._last: Any = None
        self._same = 0  # how often it was encoded
        self._written = 0
        self._numbered = Numbered()
        # bitexact: no date, no version of the library
        self._container = av.open(
            str(path), "w", format="mp4", options={"fflags": "+bitexact", "movflags": "+faststart"}
        )
        stream: Any = self._container.add_stream("libx264", rate=view.fps, options=dict(ENCODER))
        _settle(stream.codec_context, *self._size)
        stream.codec_context.time_base = stream.time_base = 1 / view.fps
        self._stream, self._time_base = stream, 1 / view.fps

    def frame(self, png: bytes | None) -> None:
        if png is not None:
            self._last, self._same = self.pictures.picture(png), 0
        elif self._last is None:
            raise ValueError("the first frame of a slice has no picture")
        number, key = self.frames, self.frames % self._keys == 0
        self.frames += 1
        if key:
            self._same = 0
        if self._same >= _REFINED and self._can_repeat():
            return
        self._same += 1
        picture = self._last
        picture.pts, picture.time_base = number, self._time_base
        # a PNG's frame says that it is a key frame, which x264 would take for an order
        picture.pict_type = _INTRA if key else _ANY
        for packet in self._stream.encode(picture):
            self._write(packet)

    def close(self) -> None:
        for packet in self._stream.encode(None):
            self._write(packet)
        self._repeat_until(self.frames)
        self._container.close()

    def _can_repeat(self) -> bool:
        if self._numbered.unit is None:
            self._numbered.unit = repeat_unit(*self._size, _alone)
            if self._numbered.unit is None:
                self._same = -_NEVER
        return self._numbered.unit is not None

    def _write(self, packet: Any) -> None:
        self._repeat_until(packet.pts)
        if packet.is_keyframe:
            self._numbered.begin()
        else:
            changed = self._numbered.next(packet)
            packet = packet if changed is None else self._av.Packet(changed)
        self._mux(packet)

    def _repeat_until(self, number: int) -> None:
        while self._written < number:
            self._mux(self._av.Packet(self._numbered.repeat()))

    def _mux(self, packet: Any) -> None:
        packet.pts = packet.dts = self._written
        packet.duration, packet.time_base = 1, self._time_base
        packet.stream = self._stream
        self._written += 1
        self._container.mux_one(packet)


class Encoding:
    """Encodes frames in a thread, in the order they are given.

    As a context manager it ends the thread whatever happens; `finish` completes the file.

    Args:
        path: of the slice's file.
        view: size and frame rate.
    """

    def __init__(self, path: Path, view: View) -> None:
        self._queue: queue.Queue[bytes | _End | None] = queue.Queue(_WAITING)
        self._error: BaseException | None = None
        self._path, self._view = path, view
        self.seconds = 0.0
        """Spent on decoding, converting and encoding; the rest is waiting for the browser."""
        self.frames = 0
        self._thread = threading.Thread(target=self._run, name="encode", daemon=True)
        self._thread.start()

    def __enter__(self) -> Encoding:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._thread.is_alive():
            self._put(_End(whole=False))
            self._thread.join()

    def frame(self, png: bytes | None) -> None:
        """Add a frame; None: the same picture as the frame before, at next to no cost.

        Raises:
            BrowserGone: an earlier frame was no PNG of the view's size.
        """
        self._check()
        self._put(png)

    def finish(self) -> int:
        """Wait until all frames are written; returns how many there are."""
        self._put(_End(whole=True))
        self._thread.join()
        self._check()
        return self.frames

    def _check(self) -> None:
        if isinstance(self._error, ValueError):
            raise BrowserGone(str(self._error)) from self._error
        if self._error is not None:
            raise self._error

    def _put(self, item: bytes | _End | None) -> None:
        # an encoder that has failed takes nothing any more
        while self._thread.is_alive():
            try:
                self._queue.put(item, timeout=1)
            except queue.Full:
                continue
            return

    def _run(self) -> None:
        try:
            file = _File(self._path, self._view)
            while not isinstance(item := self._queue.get(), _End):
                began = time.thread_time()
                file.frame(item)
                self.seconds += time.thread_time() - began
            if item.whole:
                began = time.thread_time()
                file.close()
                self.seconds += time.thread_time() - began
            self.frames = file.frames
        except BaseException as error:  # noqa: BLE001 — told to whoever gives the next frame
            self._error = error


class _End:
    def __init__(self, whole: bool) -> None:
        self.whole = whole
