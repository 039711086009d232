"""Pictures of the browser: their pixels, the line that proves which frame one is, and stills.

A page that renders on request draws the frame's number in a line below the video. The line is
not part of the video.
"""

from __future__ import annotations

import io
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from fragdex.errors import PageFailed
from fragdex.rendering import bt2020_pq
from fragdex.rendering.browser.canvas import CanvasPicture
from fragdex.rendering.browser.model import PageView
from fragdex.rendering.outputs import Still
from fragdex.rendering.png import PNGReader

if TYPE_CHECKING:
    import numpy as np

_DEEPEST: Final = 9  # zlib
RGB_FORMATS: Final = ("bgr0", "bgra")
"""Pixel formats that stay RGB."""

LINE: Final = 1
"""Its height, in CSS pixels."""


def rows_of_line(view: PageView) -> int:
    """Its height in a picture."""
    return replace(view, height=view.height + LINE).pixels[1] - view.pixels[1]


def without_line(frame: Any, lines: int, number: int) -> Any:
    """A picture of the browser without its last lines.

    Args:
        frame: av.VideoFrame in RGB or RGBA.
        lines: how many; the number is read in the middle of the last one.
        number: that must stand there, as red × 65,536 + green × 256 + blue.

    Raises:
        PageFailed: another number stands there.
    """
    pixels = pixels_of(frame)
    red, green, blue = map(int, pixels[-1, frame.width // 2, :3])
    shown = red << 16 | green << 8 | blue
    if shown != number:
        raise PageFailed(
            "the page says that a frame stands, and shows another one",
            expected=f"the colour #{number:06x} in the line at the bottom, for frame {number}",
            found=f"#{shown:06x}",
            advice="draw the line with the frame, before frameReady() is called",
        )
    return picture_of(pixels[:-lines])


_FORMATS: Final = {3: "rgb24", 4: "rgba"}
_CHANNELS: Final = {name: channels for channels, name in _FORMATS.items()}


def pixels_of(frame: Any) -> np.ndarray[Any, Any]:
    """The pixels of an av.VideoFrame in RGB or RGBA: (height, width, 3 or 4), uint8, not copied."""
    import numpy as np

    plane, channels = frame.planes[0], _CHANNELS[frame.format.name]
    rows = np.frombuffer(plane, np.uint8).reshape(frame.height, plane.line_size)
    return rows[:, : frame.width * channels].reshape(frame.height, frame.width, channels)


def picture_of(pixels: np.ndarray[Any, Any]) -> Any:
    """An av.VideoFrame of such pixels."""
    import av
    import numpy as np

    array = np.ascontiguousarray(pixels)
    return av.VideoFrame.from_ndarray(array, format=_FORMATS[pixels.shape[2]])


# FFmpeg's numbers.
_BT709, _RGB, _FULL, _LIMITED = 1, 0, 2, 1
_BT2020, _PQ, _NOT_SAID = 9, 16, 2


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
        self, view: PageView, pixel_format: str = "yuv420p", lines: int = 0, *, is_pq: bool = False
    ) -> None:
        import av
        from av.video.reformatter import VideoReformatter

        self._av = av
        # one for all frames: one that a frame makes for itself costs as much to set up as to use
        self._reformatter: Any = VideoReformatter()
        width, height = view.pixels
        self._size, self._format = (width, height + lines), pixel_format
        self._reader = PNGReader(*self._size)
        self._lines, self._crop, self._frame = lines, view.crop_pixels, view.frame
        self._decoder: Any = None
        self._is_pq = is_pq
        self._graphs: dict[str, Any] = {}

    def picture(self, png: bytes | CanvasPicture, number: int = 0) -> Any:
        """The picture of a PNG, or of a canvas, in the pixel format; as `decoded`."""
        if isinstance(png, CanvasPicture) and not self._crop and self._is_quick:
            return _to_yuv420(png.data, _LAYOUTS[png.order], 4 * png.width, png.width, png.height)
        picture = self.decoded(png, number)
        if self._is_pq:
            return self._in_pq(picture)
        if self._format in RGB_FORMATS:
            return self._reformatter.reformat(picture, format=self._format, threads=1)
        if picture.format.name == "rgb24" and self._is_quick:
            return _of_rgb(picture)
        return _in_bt709(self._reformatter, picture, self._format)

    @cached_property
    def _is_quick(self) -> bool:
        """Whether the C extension converts them as libswscale does."""
        width, height = self._frame
        is_even = width % 2 == height % 2 == 0
        is_plain = self._format == "yuv420p" and is_even and min(width, height) >= _LEAST
        return is_plain and _is_exact(width)

    def _in_pq(self, picture: Any) -> Any:
        source, sink = self._graph(picture.format.name)
        # of these the table makes others, and nothing else may
        picture.color_primaries = picture.color_trc = _NOT_SAID
        picture.colorspace, picture.color_range = _RGB, _FULL
        picture.pts = None
        source.push(picture)
        converted = sink.pull()
        converted.color_primaries, converted.color_trc = _BT2020, _PQ
        return converted

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
            with TemporaryDirectory() as folder:
                table = Path(folder, "pq.csp")
                table.write_text(bt2020_pq.table(), "ascii")
                filters = [
                    source,
                    graph.add("format", "gbrp16le"),
                    graph.add("lut3d", file=str(table), interp="tetrahedral"),
                    graph.add("scale", "out_color_matrix=bt2020nc:out_range=tv:flags=area"),
                    graph.add("format", self._format),
                    graph.add("buffersink"),
                ]
                for one, other in pairwise(filters):
                    one.link_to(other)
                graph.configure()
            self._graphs[name] = source, filters[-1], graph
        return self._graphs[name][:2]

    def decoded(self, png: bytes | CanvasPicture, number: int = 0) -> Any:
        """The picture of a PNG or of a canvas, in RGB or RGBA: what the view keeps of it.

        Valid until the next.

        Args:
            number: of the frame, where lines below it hold one.

        Raises:
            ValueError: it is not a PNG, or of another size.
            PageFailed: it is another frame.
        """
        if isinstance(png, CanvasPicture):
            picture = self._of_canvas(png)
        elif (picture := self._reader.decoded(png)) is None:
            picture = self._decoded_by_ffmpeg(png)
        if self._lines:
            picture = without_line(picture, self._lines, number)
        if self._crop is not None:
            left, top, width, height = self._crop
            picture = picture_of(pixels_of(picture)[top : top + height, left : left + width])
        return picture

    def _of_canvas(self, canvas: CanvasPicture) -> Any:
        import numpy as np

        rows = np.frombuffer(canvas.data, np.uint8).reshape(canvas.height, canvas.width, 4)
        picture = self._av.VideoFrame.from_ndarray(rows, format=canvas.order)
        return self._reformatter.reformat(picture, format="rgb24", threads=1)

    def _decoded_by_ffmpeg(self, png: bytes) -> Any:
        if self._decoder is None:
            self._decoder = self._av.CodecContext.create("png", "r")
            self._decoder.thread_count = 1
        packet = self._av.Packet(len(png))  # with the padding that decoders read over the end
        packet.update(png)
        # a decoder that is used again skips packets that are not key frames
        packet.is_keyframe = True
        try:
            frames = self._decoder.decode(packet)
        except MemoryError:  # ENOMEM of FFmpeg's is one, too: no fault of the browser's
            raise
        except self._av.error.FFmpegError as error:
            raise ValueError("the browser gave no PNG") from error
        if len(frames) != 1 or (frames[0].width, frames[0].height) != self._size:
            sizes = [(frame.width, frame.height) for frame in frames]
            raise ValueError(f"the browser gave pictures of {sizes}, not {self._size}")
        return frames[0]


def shows_canvas(view: PageView, shown: bytes | CanvasPicture, canvas: CanvasPicture) -> bool:
    """Whether a picture of a view, not cropped, is that of a canvas, to the bit."""
    import numpy as np

    pictures = Pictures(replace(view, crop=None))
    one = pixels_of(pictures.decoded(shown)).copy()
    return bool(np.array_equal(one[..., :3], pixels_of(pictures.decoded(canvas))))


def _in_bt709(reformatter: Any, picture: Any, pixel_format: str) -> Any:
    """A picture in RGB as BT.709, limited range, by libswscale."""
    return reformatter.reformat(
        picture,
        format=pixel_format,
        src_color_range="JPEG",
        dst_color_range="MPEG",
        dst_colorspace="ITU709",
        interpolation="AREA",
        threads=1,
    )


_LAYOUTS: Final = {"rgb24": 0, "rgba": 1, "bgra": 2}
"""How pixels lie, as the C extension numbers it."""


def _of_rgb(rgb: Any) -> Any | None:
    """A picture in RGB as 4:2:0."""
    source = rgb.planes[0]
    return _to_yuv420(source, _LAYOUTS["rgb24"], source.line_size, rgb.width, rgb.height)


def _to_yuv420(pixels: Any, layout: int, stride: int, width: int, height: int) -> Any | None:
    """The same as 4:2:0 by the C extension, in a fifth of the time; None where it cannot."""
    import av

    from fragdex.indexing.native import compiled

    picture: Any = av.VideoFrame(width, height, "yuv420p")
    into = [part for plane in picture.planes for part in (plane, plane.line_size)]
    if not compiled.to_yuv420(pixels, layout, stride, width, height, *into):
        return None
    picture.colorspace, picture.color_range = _BT709, _LIMITED
    return picture


_TRIED: Final = 64
_LEAST: Final = 16
"""Rows of noise on which it is tried; libswscale does smaller pictures in other ways."""


def _is_exact(width: int) -> bool:
    """Whether the C extension converts as this libswscale does, to the last bit.

    It is tried on noise of a width: what libswscale rounds differs by release and processor.
    """
    import numpy as np
    from av.video.reformatter import VideoReformatter

    from fragdex.indexing.native import compiled

    if not hasattr(compiled, "to_yuv420"):
        return False
    # the middle bytes of multiples of a number without a pattern (Knuth's golden ratio)
    samples = np.arange(_TRIED * width * 3, dtype=np.uint32) * np.uint32(2_654_435_761) >> 13
    picture = picture_of(samples.astype(np.uint8).reshape(_TRIED, width, 3))
    ours = _of_rgb(picture)
    if ours is None:
        return False
    theirs = _in_bt709(VideoReformatter(), picture, "yuv420p")
    return bool(np.array_equal(ours.to_ndarray(), theirs.to_ndarray()))


def encode_still(shown: bytes | np.ndarray[Any, Any], still: Still) -> bytes:
    """Store a picture of the browser; the same picture and settings give the same bytes.

    Args:
        shown: a PNG, or its pixels of shape (height, width, 3 or 4), uint8.
    """
    from PIL import Image

    picture: Image.Image
    if isinstance(shown, bytes):
        picture = Image.open(io.BytesIO(shown))
    else:
        picture = Image.fromarray(shown)
    with picture:
        pixels = picture.convert("RGBA" if still.is_clear else "RGB")
    out = io.BytesIO()
    if still.container == "jpeg":
        # 4:4:4 where quality matters: text has coloured edges otherwise
        subsampling = "4:4:4" if still.quality >= 90 else "4:2:0"
        pixels.save(out, "JPEG", quality=still.quality, subsampling=subsampling, optimize=True)
    elif still.container == "png":
        wanted = 80 if still.compression is None else still.compression
        level = max(1, round(wanted * _DEEPEST / 100))
        pixels.save(out, "PNG", compress_level=level, optimize=wanted == 100)
    else:
        method = 4 if still.compression is None else still.compression
        pixels.save(out, "WEBP", quality=still.quality, method=method, exact=False)
    return out.getvalue()
