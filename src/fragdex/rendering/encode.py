"""Pictures → the file of a slice, in a thread beside the browser.

As no picture is reordered, the first of a stream stands at 0 without an edit list.
"""

from __future__ import annotations

import queue
import threading
import time
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from fragdex.errors import BrowserGone
from fragdex.rendering.browser.timing import View
from fragdex.rendering.encoders import ENCODER, RGB_FORMATS, options, settle, usual_class
from fragdex.rendering.films import Film
from fragdex.rendering.number_line import picture_of, pixels_of, rows_of_line, without_line
from fragdex.rendering.plan import key_interval
from fragdex.rendering.repeats import Numbered, repeat_unit
from fragdex.transcode.x264 import repeatable

_NEVER: Final = 1 << 20
# A picture that stays is encoded so often, each time better; after that it is repeated.
_REFINED: Final = 3

# Pictures that wait for the encoder: a few MB each in the worst case.
_WAITING: Final = 4
_ANY, _INTRA = 0, 1  # FFmpeg's numbers of picture types


def _alone(width: int, height: int, changed: dict[str, str]) -> Any:
    """An encoder as that of a plain film, without a file; options that are "" are left out."""
    import av
    from av.codec.context import Flags

    context: Any = av.CodecContext.create("libx264", "w")
    settle(context, Film(), width, height, Fraction(30))
    context.time_base, context.framerate = Fraction(1, 30), Fraction(30)
    wanted = {name: text for name, text in (ENCODER | changed).items() if text}
    context.options = repeatable(wanted)
    context.flags |= Flags.global_header
    return context


class _File:
    """The file of a slice: times counted in frames from 0."""

    def __init__(self, path: Path, view: View, film: Film, number: int | None) -> None:
        import av

        lines = 0 if number is None else rows_of_line(view)
        self.pictures = Pictures(view, film.format, lines, is_pq=film.is_pq)
        self._number = number or 0
        self.frames = 0
        self._av = av
        self._size = view.frame
        self._keys = film.gop or key_interval(view.fps)
        self._orders_keys = film.video_name == "h264"
        self._last: Any = None
        self._written = 0
        # bitexact: no date, no version of the library
        container, settings = "matroska", {"fflags": "+bitexact"}
        if film.video_name == "h264":
            container, settings = "mp4", settings | {"movflags": "+faststart"}
        self._container = av.open(str(path), "w", format=container, options=settings)
        encoder = film.video.encoder
        stream: Any = self._container.add_stream(
            encoder, rate=view.fps, options=repeatable(options(film, view.fps))
        )
        settle(stream.codec_context, film, *self._size, view.fps)
        stream.codec_context.time_base = stream.time_base = 1 / view.fps
        self._stream, self._time_base = stream, 1 / view.fps

    def frame(self, png: bytes | None) -> None:
        """Add a frame; None: the same picture once more."""
        if png is not None:
            self._last = self.pictures.picture(png, self._number + self.frames)
        elif self._last is None:
            raise ValueError("the first frame of a slice has no picture")
        self._encode(self.frames % self._keys == 0)
        self.frames += 1

    def close(self) -> None:
        """Complete the file."""
        for packet in self._stream.encode(None):
            self._write(packet)
        self._container.close()

    def _encode(self, key: bool) -> None:
        picture = self._last
        picture.pts, picture.time_base = self.frames, self._time_base
        # a PNG's frame says that it is a key frame, which encoders would take for an order
        picture.pict_type = _INTRA if key and self._orders_keys else _ANY
        for packet in self._stream.encode(picture):
            self._write(packet)
        usual_class()

    def _write(self, packet: Any) -> None:
        packet.pts = packet.dts = self._written
        packet.duration, packet.time_base = 1, self._time_base
        packet.stream = self._stream
        self._written += 1
        self._container.mux_one(packet)


class _PlainFile(_File):
    """H.264 as it is where nobody asks for more: a picture that stays is repeated at no cost."""

    def __init__(self, path: Path, view: View, film: Film, number: int | None) -> None:
        super().__init__(path, view, film, number)
        self._same = 0  # how often the last picture was encoded
        self._numbered = Numbered()

    def frame(self, png: bytes | None) -> None:
        """Add a frame; None: the same picture once more."""
        if png is not None or self.frames % self._keys == 0:
            self._same = 0
        stays = png is None and self._last is not None
        if stays and self._same >= _REFINED and self._can_repeat():
            self.frames += 1
            return
        self._same += 1
        super().frame(png)

    def close(self) -> None:
        """Complete the file."""
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
        super()._write(packet)

    def _repeat_until(self, number: int) -> None:
        while self._written < number:
            super()._write(self._av.Packet(self._numbered.repeat()))


class Encoding:
    """Encodes frames in a thread, in the order they are given.

    As a context manager it ends the thread whatever happens; `finish` completes the file.

    Args:
        path: of the slice's file.
        view: size and frame rate.
        film: how it is stored.
        number: of the first frame, where pictures have a line with it (`without_line`).
    """

    def __init__(
        self,
        path: Path,
        view: View,
        film: Film = Film(),  # noqa: B008 — frozen
        number: int | None = None,
    ) -> None:
        self._queue: queue.Queue[bytes | _End | None] = queue.Queue(_WAITING)
        self._error: BaseException | None = None
        self._path, self._view, self._film, self._number = path, view, film, number
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
            PageFailed: an earlier frame shows the number of another one.
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
            kind = _PlainFile if self._film.is_plain else _File
            file = kind(self._path, self._view, self._film, self._number)
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


_BT709, _SRGB, _RGB, _FULL = 1, 13, 0, 2  # FFmpeg's numbers of what browsers paint
_TO_PQ: Final = (
    "out_primaries=bt2020:out_transfer=smpte2084:out_color_matrix=bt2020nc:out_range=tv"
    ":flags=area:intent=relative_colorimetric"
)


class Pictures:
    """PNGs as pictures: in BT.709, limited range, unless the pixels stay RGB.

    The mean of four pixels makes a chroma sample of 4:2:0: within one level of the exact value
    everywhere, and not slower than what is worse.

    Args:
        view: that they are of; its frames have even sides: 4:2:0 has no half samples.
        pixel_format: FFmpeg's name of theirs.
        is_pq: whether they are of BT.2020 with PQ, white at 203 cd/m².
        lines: below each of them that hold the number of its frame (`without_line`).
    """

    def __init__(
        self, view: View, pixel_format: str = "yuv420p", lines: int = 0, *, is_pq: bool = False
    ) -> None:
        import av
        from av.video.reformatter import VideoReformatter

        self._av = av
        # one for all frames: one that a frame makes for itself costs as much to set up as to use
        self._reformatter: Any = VideoReformatter()
        width, height = view.pixels
        self._size, self._format = (width, height + lines), pixel_format
        self._lines, self._crop, self._frame = lines, view.crop_pixels, view.frame
        self._decoder: Any = None
        self._is_pq = is_pq
        self._graphs: dict[str, Any] = {}

    def picture(self, png: bytes, number: int = 0) -> Any:
        """The picture of a PNG, in the pixel format; as `decoded`."""
        picture = self.decoded(png, number)
        if self._is_pq:
            return self._in_pq(picture)
        if self._format in RGB_FORMATS:
            return self._reformatter.reformat(picture, format=self._format, threads=1)
        return self._reformatter.reformat(
            picture,
            format=self._format,
            src_color_range="JPEG",
            dst_color_range="MPEG",
            dst_colorspace="ITU709",
            interpolation="AREA",
            threads=1,
        )

    def _in_pq(self, picture: Any) -> Any:
        source, sink = self._graph(picture.format.name)
        picture.color_primaries, picture.color_trc = _BT709, _SRGB
        picture.colorspace, picture.color_range = _RGB, _FULL
        picture.pts = None
        source.push(picture)
        return sink.pull()

    def _graph(self, name: str) -> Any:
        """A filter that converts pictures of a pixel format; of one thread, as encoders are."""
        import av.filter

        if name not in self._graphs:
            graph: Any = av.filter.Graph()
            graph.threads = 1
            width, height = self._frame
            source = graph.add_buffer(
                width=width, height=height, format=name, time_base=Fraction(1, 1)
            )
            scale, form = graph.add("scale", _TO_PQ), graph.add("format", self._format)
            sink = graph.add("buffersink")
            source.link_to(scale)
            scale.link_to(form)
            form.link_to(sink)
            graph.configure()
            self._graphs[name] = source, sink, graph
        return self._graphs[name][:2]

    def decoded(self, png: bytes, number: int = 0) -> Any:
        """The picture of a PNG, in RGB or RGBA: what the view keeps of it.

        Args:
            number: of the frame, where lines below it hold one.

        Raises:
            ValueError: it is no PNG, or of another size.
            PageFailed: it is another frame.
        """
        if self._decoder is None:
            self._decoder = self._av.CodecContext.create("png", "r")
            self._decoder.thread_count = 1
        packet = self._av.Packet(len(png))  # with the padding that decoders read over the end
        packet.update(png)
        # a decoder that is used again skips packets that are no key frames
        packet.is_keyframe = True
        try:
            frames = self._decoder.decode(packet)
        except MemoryError:  # ENOMEM of FFmpeg's is one, too: no fault of the browser's
            raise
        except self._av.error.FFmpegError as error:
            raise ValueError("the browser gave no PNG") from error
        if len(frames) != 1 or (frames[0].width, frames[0].height) != self._size:
            found = [(frame.width, frame.height) for frame in frames]
            raise ValueError(f"the browser gave pictures of {found}, not {self._size}")
        picture = frames[0]
        if self._lines:
            picture = without_line(picture, self._lines, number)
        if self._crop is not None:
            left, top, width, height = self._crop
            picture = picture_of(pixels_of(picture)[top : top + height, left : left + width])
        return picture
