"""The browser's pictures as those of video."""

from __future__ import annotations

from typing import Any

from fragdex.service.renders.encoders import RGB_FORMATS

__all__ = ["Pictures"]


class Pictures:
    """PNGs as pictures: in BT.709, limited range, unless the pixels stay RGB.

    The mean of four pixels makes a chroma sample of 4:2:0: within one level of the exact value
    everywhere, and not slower than what is worse.

    Args:
        width, height: of all of them, even: 4:2:0 has no half samples.
        pixel_format: FFmpeg's name of theirs.
    """

    def __init__(self, width: int, height: int, pixel_format: str = "yuv420p") -> None:
        import av
        from av.video.reformatter import VideoReformatter

        self._av = av
        # one for all frames: one that a frame makes for itself costs as much to set up as to use
        self._reformatter: Any = VideoReformatter()
        self._size, self._format = (width, height), pixel_format
        self._decoder: Any = None

    def picture(self, png: bytes) -> Any:
        """The picture of a PNG.

        Raises:
            ValueError: it is no PNG, or of another size.
        """
        if self._decoder is None:
            self._decoder = self._av.CodecContext.create("png", "r")
            self._decoder.thread_count = 1
        packet = self._av.Packet(png)
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
        if self._format in RGB_FORMATS:
            return self._reformatter.reformat(frames[0], format=self._format, threads=1)
        return self._reformatter.reformat(
            frames[0],
            format=self._format,
            src_color_range="JPEG",
            dst_color_range="MPEG",
            dst_colorspace="ITU709",
            interpolation="AREA",
            threads=1,
        )
