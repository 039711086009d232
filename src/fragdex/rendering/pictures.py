"""The browser's pictures as those of video."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

from fragdex.rendering.browser.timing import View
from fragdex.rendering.encoders import RGB_FORMATS
from fragdex.rendering.line import without_line
from fragdex.rendering.rgb import picture_of, pixels_of

__all__ = ["Pictures"]

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
