"""Pictures → the file of a slice: how its encoder is set, and what an unchanged frame costs.

The same pictures give the same bytes: one thread, key frames by count alone, packets in the order
in which they are shown, so that the first of a stream stands at 0 without an edit list. All slices
of a video have the same parameter sets, so that their packets make one stream.
"""

from __future__ import annotations

import hashlib
import queue
import re
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Final

from fragdex.errors import BrowserGone
from fragdex.rendering.browser.canvas import CanvasPicture
from fragdex.rendering.browser.model import PageView
from fragdex.rendering.outputs import Film
from fragdex.rendering.pictures import RGB_FORMATS, Pictures, rows_of_line
from fragdex.rendering.spec import key_interval
from fragdex.transcode.encoders import only_errors, repeatable, usual_class

ENCODER: Final = {
    "preset": "veryfast",
    "crf": "18",
    "forced-idr": "1",
    # chromaloc 1: the middle of four pixels, which is where the conversion takes chroma from
    "x264-params": "stitchable=1:open-gop=0:scenecut=0:bframes=0:chromaloc=1",
}
"""Settings of x264 by default. Key frames are ordered one by one."""

_BT709, _RGB = 1, 0  # ISO/IEC 23091-2: primaries, transfer and matrix alike; the matrix of RGB
_BT2020, _PQ = 9, 16  # likewise: primaries and matrix; SMPTE ST 2084
_SRGB: Final = 13  # the transfer of what browsers paint
_LIMITED, _FULL = 1, 2  # FFmpeg's numbers of the ranges 16–235 and 0–255
_X265: Final = (
    "bframes=0:open-gop=0:scenecut=0:pools=none:frame-threads=1:wpp=0:info=0:log-level=none"
)
_PRORES_ALPHA_BITS: Final = "16"


def version(film: Film) -> str:
    """What decides an encoded slice besides its pictures: libraries, settings."""
    import av

    libraries = ".".join(
        str(part)
        for name in ("libavcodec", "libswscale", "libavformat")
        for part in av.library_versions[name]
    )
    if film.is_sound:
        return "none"
    pictures = (film.video.encoder, film.format, film.of_slices)
    return f"{libraries} {pictures} {options(film, Fraction(30))}"


def options(film: Film, fps: Fraction) -> dict[str, str]:
    """The options of a video's encoder, as FFmpeg names them."""
    if film.is_plain:
        return dict(ENCODER)
    name, video = film.video_name, film.video
    settings: dict[str, str] = {}
    if film.bit_rate is None and video.crf is not None:
        settings["crf"] = str(video.crf[1] if film.crf is None else film.crf)
    preset = film.preset or video.preset
    keys = film.gop or key_interval(fps)
    if name == "h264":
        settings |= ENCODER | {"preset": str(preset)} | settings
        if film.bit_rate is not None:
            del settings["crf"]
    elif name == "hevc":
        settings |= {
            "preset": str(preset),
            "x265-params": f"keyint={keys}:min-keyint={keys}:{_X265}",
        }
    elif name == "av1":
        settings |= {"preset": str(preset), "svtav1-params": "lp=1:scd=0"}
    elif name == "vp9":
        settings |= {
            "cpu-used": str(preset), "deadline": "good", "row-mt": "0", "lag-in-frames": "0",
            "auto-alt-ref": "0",
        }  # fmt: skip
    elif name == "prores":
        profile = film.preset or ("4444" if "444" in film.format else "hq")
        settings |= {"profile": str(list(video.presets).index(profile)), "vendor": "apl0"}
        if film.transparency:
            settings["alpha_bits"] = _PRORES_ALPHA_BITS
    else:
        settings |= {"level": "3", "slices": "4"}
    return settings


def settle(context: Any, film: Film, width: int, height: int, fps: Fraction) -> None:
    """Set what options do not: size, pixels, colours, key frames."""
    if film.video_name == "av1":
        only_errors()
    context.width, context.height, context.pix_fmt = width, height, film.format
    context.thread_count = 1
    if film.video_name == "h264":
        # ordered one by one
        context.gop_size = _NEVER
    else:
        context.gop_size = 1 if film.video_name == "ffv1" else film.gop or key_interval(fps)
    if film.bit_rate is not None:
        context.bit_rate = film.bit_rate
    elif film.video_name == "vp9":
        context.bit_rate = 0  # else FFmpeg's usual one holds next to the quality
    context.color_primaries = _BT2020 if film.is_pq else _BT709
    if film.is_pq:
        context.color_range, context.colorspace, context.color_trc = _LIMITED, _BT2020, _PQ
    elif film.format in RGB_FORMATS:
        context.color_range, context.colorspace, context.color_trc = _FULL, _RGB, _SRGB
    else:
        context.color_range = _LIMITED
        context.colorspace = context.color_trc = _BT709


_NEVER: Final = 1 << 20
# A picture that stays is encoded so often, each time better; after that it is repeated.
_REFINED: Final = 3

# Pictures that wait for the encoder: a few MB each in the worst case.
_WAITING: Final = 4
_ANY, _INTRA = 0, 1  # FFmpeg's numbers of picture types


def _alone(width: int, height: int, changed: dict[str, str]) -> Any:
    """An encoder as that of a plain video, without a file; options that are "" are left out."""
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

    def __init__(self, path: Path, view: PageView, film: Film, number: int | None) -> None:
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

    def frame(self, png: bytes | CanvasPicture | None) -> None:
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
    """H.264 by default: a picture that stays is repeated at no cost."""

    def __init__(self, path: Path, view: PageView, film: Film, number: int | None) -> None:
        super().__init__(path, view, film, number)
        self._same = 0  # how often the last picture was encoded
        self._numbered = PictureNumbers()

    def frame(self, png: bytes | CanvasPicture | None) -> None:
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
        view: PageView,
        film: Film = Film(),  # noqa: B008 — frozen
        number: int | None = None,
    ) -> None:
        self._queue: queue.Queue[bytes | CanvasPicture | _End | None] = queue.Queue(_WAITING)
        self._error: BaseException | None = None
        self._path, self._view, self._film, self._number = path, view, film, number
        self.seconds = 0.0
        """Spent on decoding, converting and encoding; the rest is waiting for the browser."""
        self.frames = 0
        self._thread = threading.Thread(target=self._run, name="encode", daemon=True)
        self._thread.start()

    def __enter__(self) -> Encoding:
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread.is_alive():
            self._put(_End(whole=False))
            self._thread.join()

    def frame(self, png: bytes | CanvasPicture | None) -> None:
        """Add a frame; None: the same picture as the frame before, at next to no cost.

        Raises:
            BrowserGone: an earlier frame was not a PNG of the view's size.
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

    def _put(self, item: bytes | CanvasPicture | _End | None) -> None:
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
        except BaseException as error:  # noqa: BLE001 — reported to the next caller
            self._error = error


class _End:
    def __init__(self, whole: bool) -> None:
        self.whole = whole


# An encoder looks at every macroblock to find that nothing changed, and then says so in some 30
# bytes, the same for every such frame but for its number. So these bytes are requested once, of a
# picture of the same size, and written again and again. As H.264 numbers its frames (`frame_num`,
# ISO/IEC 14496-10 7.4.3), those that the encoder makes afterwards are renumbered. This holds for
# streams as they are made here: one slice a picture, one reference, output in the order of coding
# (pic_order_cnt_type 2), `frame_num` of 4 bits.

_START: Final = b"\0\0\0\1"
_NON_IDR: Final = 1
_FRAME_NUMS: Final = 16
# NAL unit header, then first_mb_in_slice 0 (1 bit), slice_type 5 (00110), picture parameter set 0
# (1): frame_num begins at bit 15.
_P_SLICE: Final = 0b1001101
_SHIFT: Final = 24 - 15 - 4
_EMULATED: Final = re.compile(rb"\x00\x00(?=[\x00-\x03])")
# Coarse enough that nothing is left to be made better in the second frame.
_QP: Final = "45"
_PLAIN: Final = 3
# Brightness that any bytes become: neither near black nor near white.
_MIDDLE: Final = bytes(40 + value % 160 for value in range(256))
_TRIED: Final = 3


def _renumbered(unit: bytes, number: int) -> bytes:
    """The access unit of a P picture, with another frame_num.

    Raises:
        ValueError: it is invalid, or of another kind than those meant here.
    """
    if not unit.startswith(_START) or unit[4] & 31 != _NON_IDR or _START[1:] in unit[4:]:
        raise ValueError("the encoder returned another kind of picture than requested")
    body = bytearray(unit[4:].replace(b"\0\0\3", b"\0\0"))
    head = int.from_bytes(body[:3])
    if head >> 9 & 0x7F != _P_SLICE:
        raise ValueError("the encoder returned another kind of slice than requested")
    head = head & ~(0xF << _SHIFT) | number % _FRAME_NUMS << _SHIFT
    body[:3] = head.to_bytes(3)
    return _START + _EMULATED.sub(b"\0\0\3", bytes(body))


class PictureNumbers:
    """Numbers the pictures of a stream, repeated ones among them.

    Attributes:
        unit: the access unit that repeats, of `repeat_unit`.
    """

    def __init__(self, unit: bytes | None = None) -> None:
        self.unit = unit
        self._last = 0
        self._added = False

    def begin(self) -> None:
        """An IDR picture: its number is 0."""
        self._last, self._added = 0, False

    def next(self, unit: Any) -> bytes | None:
        """Another picture of the encoder's, renumbered; None where its number is right."""
        self._last += 1
        return _renumbered(bytes(unit), self._last) if self._added else None

    def repeat(self) -> bytes:
        """One more frame of the same picture."""
        if self.unit is None:
            raise ValueError("frames are missing, and there is nothing to repeat")
        self._last += 1
        self._added = True
        return _renumbered(self.unit, self._last)


@cache
def repeat_unit(
    width: int, height: int, encoder: Callable[[int, int, dict[str, str]], Any]
) -> bytes | None:
    """The access unit that repeats any picture of a size; None where it cannot be made.

    It is made of a plain picture, and tried on one that is nowhere like the place beside: what
    leaves that as it is, several times over, moves nothing, adds nothing and paints nothing.

    Args:
        width, height: even.
        encoder: makes the encoder of a stream, with these options of x264 changed.
    """
    plain = _picture(width, height, bytes([128]) * (width * height * 3 // 2))
    context = encoder(width, height, {"crf": "", "qp": _QP})
    packets = []
    noise = _picture(width, height, _noise(width, height))
    for number, picture in enumerate([plain] * _PLAIN + [noise]):
        picture.pts, picture.time_base = number, Fraction(1, 30)
        picture.pict_type = 1 if number in (0, _PLAIN) else 0
        packets += context.encode(picture)
    units = [bytes(packet) for packet in packets + context.encode(None)]
    repeat, other = units[_PLAIN - 1], units[_PLAIN]
    try:
        numbered = PictureNumbers(repeat)
        stream = [other, *(numbered.repeat() for _ in range(_TRIED))]
    except ValueError:
        return None
    return repeat if _is_still(context, stream) else None


def _noise(width: int, height: int) -> bytes:
    """Samples of a picture in blocks that have nothing in common with each other."""
    across = width // 16 + 1
    blocks = hashlib.shake_256(b"noise").digest(across * (height // 32 + 1)).translate(_MIDDLE)
    lines = []
    for at in range(0, len(blocks), across):
        line = b"".join(bytes([value]) * 16 for value in blocks[at : at + across])
        lines.append(line[:width] * 48)
    return b"".join(lines)


def _picture(width: int, height: int, samples: bytes) -> Any:
    """A picture in 4:2:0 of samples plane by plane."""
    import av

    picture: Any = av.VideoFrame(width, height, "yuv420p")
    at = 0
    for plane in picture.planes:
        stop = at + plane.width * plane.height
        if rest := bytes(plane.line_size - plane.width):
            lines = (samples[i : i + plane.width] + rest for i in range(at, stop, plane.width))
            plane.update(b"".join(lines))
        else:
            plane.update(samples[at:stop])
        at = stop
    return picture


def _is_still(context: Any, stream: list[bytes]) -> bool:
    """Whether a stream of one picture and what may repeat it shows nothing else."""
    import av

    decoder = av.CodecContext.create("h264", "r")
    decoder.thread_count = 1
    decoder.extradata = context.extradata
    decoder.options = {"err_detect": "explode"}
    shown = []
    try:
        for unit in stream:
            packet = av.Packet(len(unit))  # with the padding that decoders read over the end
            packet.update(unit)
            shown += decoder.decode(packet)
        shown += decoder.decode(None)
    except av.error.FFmpegError:
        return False
    pictures = [[bytes(plane) for plane in frame.planes] for frame in shown]
    return len(pictures) == len(stream) and all(one == pictures[0] for one in pictures)
