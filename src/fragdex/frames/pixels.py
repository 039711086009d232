"""Decoded pictures to arrays: colours, size, rotation; those of several threads to one answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from fragdex.decoding.pictures import Orientation, matrix_of, orientation_of, written_whole
from fragdex.errors import UndecodableMedia
from fragdex.frames.crop import Crop, Steps, cut

PixelFormat = Literal["rgb", "gray", "rgb16", "gray16", "yuv"]
Pixels = tuple[npt.NDArray[Any], ...]
"""One array of shape (height, width, channels); of yuv one of (height, width) for each plane."""

_NAMES: Final = {"rgb": "rgb24", "gray": "gray", "rgb16": "rgb48le", "gray16": "gray16le"}
_CHANNELS: Final = {"rgb": 3, "gray": 1, "rgb16": 3, "gray16": 1}
PLANAR: Final = re.compile(r"(yuvj?4\d\dp|gray)(9le|1[0246]le)?")
OF_DEVICES: Final = {
    "nv12": "yuv420p", "p010le": "yuv420p10le", "p012le": "yuv420p12le", "p016le": "yuv420p12le",
    "nv16": "yuv422p", "p210le": "yuv422p10le", "p212le": "yuv422p12le", "p216le": "yuv422p12le",
    "nv24": "yuv444p", "yuv444p10msble": "yuv444p10le", "yuv444p12msble": "yuv444p12le",
}  # fmt: skip
"""What hardware decodes into, and what the processor does: planes apart, bits at the lower end.

No coding that hardware decodes has more than 12 bits, whatever its format has room for.
"""
_FULL_RANGE: Final = 2
_SUPPORTED: Final = ("rgb", "gray", "rgb16", "gray16", "yuv")


class Converter:
    """Makes arrays of decoded pictures. For one thread at a time.

    Args:
        format: `rgb`, `gray` (uint8), `rgb16`, `gray16` (uint16, the full range), or `yuv`: the
            decoded planes, uint8, or uint16 where they have more than 8 bits.
        rotate: turn and mirror pictures as the track header says (ISO/IEC 14496-12, 8.3.2).

    Raises:
        ValueError: there is no such format, or an invalid size.
    """

    def __init__(
        self,
        format: str,
        size: tuple[int, int] | None = None,
        *,
        rotate: bool = True,
        threads: int = 1,
    ) -> None:
        if format not in _SUPPORTED:
            raise ValueError(f"frames are one of {', '.join(_SUPPORTED)}, not {format!r}")
        if size is not None and not all(1 <= side <= 16_384 for side in size):
            raise ValueError(f"width and height are 1 to 16,384 pixels, not {size}")
        self._format, self._size = format, size
        self._rotate, self._threads = rotate, threads
        self._reformatter: Any = None
        self._cutter = _Cutter()
        self._more: dict[str, int] = {}

    def pixels(self, frame: Any, crop: Crop | None = None) -> Pixels:
        """The arrays of a picture: views that are to be copied before it is used again.

        Raises:
            UndecodableMedia: the picture is smaller; or its planes are wanted, and the part begins
                between two samples of chroma.
        """
        orientation = orientation_of(frame) if self._rotate else Orientation()
        frame = self.as_the_processor_decodes(frame)
        size = self._size
        if crop is not None:
            stored = crop.stored(orientation, frame.width, frame.height)
            if size == crop.size and self.has_pixels_of(stored, frame):
                size = None
            crop = None if stored.size == (frame.width, frame.height) else stored
        if size is not None and orientation.transposed:
            size = size[::-1]
        if crop is None:
            arrays = self._whole(frame, size)
        elif size is None:
            arrays = self._part(frame, crop)
        else:
            arrays = self._scaled_part(frame, crop, size)
        return tuple(map(orientation.of, arrays))

    def has_pixels_of(self, part: Crop, frame: Any) -> bool:
        """Whether there are such pixels in a picture: no planes of it begin between samples."""
        return self._format != "yuv" or part.is_whole(*steps_of(frame))

    def _whole(
        self,
        frame: Any,
        size: tuple[int, int] | None,
        *,
        matrix: str | None = None,
        planes: str | None = None,
    ) -> Pixels:
        """The arrays of a picture as it is stored, in another size.

        Args:
            matrix: that its colours are made by, as swscale names it; None: its own.
        """
        if self._format == "yuv":
            if planes is None and not PLANAR.fullmatch(frame.format.name):
                planes = "yuv444p"
            ready = self._reformatted(frame, size, planes, matrix)
            deep = _is_deep(ready.format.name)
            return tuple(plane_of(plane, 1, deep=deep) for plane in ready.planes)
        name, width = _NAMES[self._format], (size or (frame.width,))[0]
        if size is None or size == (frame.width, frame.height):
            frame, size = written_whole(frame, name), None
        ready = self._reformatted(frame, size, name, matrix)
        plane = plane_of(ready.planes[0], _CHANNELS[self._format], deep=self._format.endswith("16"))
        return (plane.reshape(ready.height, ready.width, -1)[:, :width],)

    def _part(self, frame: Any, crop: Crop) -> Pixels:
        """The arrays of a part of a picture: those pixels that the whole has there."""
        high, wide = frame.height, frame.width
        if self._format == "yuv":
            own = PLANAR.fullmatch(frame.format.name)
            return tuple(cut(crop, self._whole(frame, None), steps_of(frame) if own else (1, 1)))
        # Where swscale repeats chroma, no pixel depends on others: a part is enough.
        repeats = self._format == "rgb" and frame.format.name in ("yuv420p", "yuvj420p")
        if not repeats or high % 2 or wide % 2:
            return tuple(map(crop.of, self._whole(frame, None)))
        around = crop.spread(2, 2, wide, high)
        arrays = self._whole(self._cutter.part(frame, around), None, matrix=matrix_of(frame)[0])
        return tuple(map(crop.inside(around).of, arrays))

    def _scaled_part(self, frame: Any, crop: Crop, size: tuple[int, int]) -> Pixels:
        """The arrays of a part of a picture, as if it were the whole, in another size.

        Where it begins between samples of chroma, these are repeated for each pixel first.
        """
        matrix, planes = matrix_of(frame)[0], None
        if not PLANAR.fullmatch(frame.format.name):
            planes = "yuv444p" if self._format == "yuv" else _NAMES[self._format]
            frame = self._reformatted(frame, None, planes, matrix)
        elif not crop.is_whole(*steps_of(frame)):
            part = _with_chroma_for_each_pixel(frame, crop)
            return self._whole(part, size, matrix=matrix, planes=frame.format.name)
        return self._whole(self._cutter.part(frame, crop), size, matrix=matrix, planes=planes)

    def nothing(self, count: int, width: int, height: int) -> Pixels:
        """Arrays of so many frames that show nothing; yuv as 4:2:0 with 8 bits."""
        if self._format == "yuv":
            half = (count, (height + 1) // 2, (width + 1) // 2)
            shapes: tuple[tuple[int, ...], ...] = ((count, height, width), half, half)
        else:
            shapes = ((count, height, width, _CHANNELS[self._format]),)
        kind = np.uint16 if self._format.endswith("16") else np.uint8
        return tuple(np.zeros(shape, kind) for shape in shapes)

    def as_the_processor_decodes(self, frame: Any) -> Any:
        """What hardware decoded, in planes: swscale makes other colours of NV12 as it is.

        A frame that lies on a device is fetched from it.
        """
        stored = stored_format(frame)
        name = OF_DEVICES.get(stored, stored)
        if name == frame.format.name:
            return frame
        of_full_range: dict[str, Any] = {}
        if is_full_range(frame):
            name = name.replace("yuv4", "yuvj4") if name[-1] == "p" else name
            of_full_range = {"src_color_range": _FULL_RANGE, "dst_color_range": _FULL_RANGE}
        return self._scaler().reformat(frame, format=name, **self._more, **of_full_range)

    def _scaler(self) -> Any:
        if self._reformatter is None:
            from av.video.reformatter import VideoReformatter

            self._reformatter = VideoReformatter()
            # Older releases of PyAV (15) have no such argument, and one thread.
            known = "threads" in (VideoReformatter.reformat.__doc__ or "")
            self._more = {"threads": self._threads} if known else {}
        return self._reformatter

    def _reformatted(
        self, frame: Any, size: tuple[int, int] | None, name: str | None, matrix: str | None
    ) -> Any:
        if name is None and size is None:
            return frame
        width, height = size or (None, None)
        colours = frame.format.name.startswith(("yuv", "nv", "p0")) and self._format != "yuv"
        return self._scaler().reformat(
            frame,
            width=width,
            height=height,
            format=name,
            src_colorspace=(matrix or matrix_of(frame)[0]) if colours else None,
            interpolation="BICUBIC",
            **self._more,
        )


def stored_format(frame: Any) -> str:
    """FFmpeg's name for how the pixels of a picture lie in memory, its own or a device's."""
    # Older releases of PyAV (15) know no devices.
    own: str = (getattr(frame, "sw_format", None) or frame.format).name
    return own


def steps_of(frame: Any) -> Steps:
    """How many pixels of a picture share a sample of chroma."""
    stored = getattr(frame, "sw_format", None) or frame.format
    return 16 // stored.chroma_height(16), 16 // stored.chroma_width(16)


def is_of_device(frame: Any, *, stays: bool) -> bool:
    """Whether a picture can be of hardware, and not of the processor that took over from it.

    Args:
        stays: whether pictures of hardware stay in its memory.

    One that was fetched has chroma that is interleaved, or as much of it as of luma.
    """
    if stays:
        return frame.sw_format is not None
    name: str = frame.format.name
    return not PLANAR.fullmatch(name) or name.startswith("yuv444")


def is_full_range(frame: Any) -> bool:
    """Whether black is 0, not 16 (ITU-T H.273, 8.3: VideoFullRangeFlag)."""
    return frame.format.name.startswith("yuvj") or int(frame.color_range) == _FULL_RANGE


def check_alike(arrays: Pixels, pixels: Pixels) -> None:
    """Refuse pictures that do not go into one answer."""
    if [(a.shape, a.dtype) for a in arrays] != [(p.shape, p.dtype) for p in pixels]:
        raise UndecodableMedia(
            f"the pictures have several sizes: {_size(arrays[0])} and {_size(pixels[0])}",
            advice="give the size that all are scaled to: size=(width, height)",
        )


def _is_deep(name: str) -> bool:
    """Whether samples have two bytes, in planes of a format that FFmpeg names so."""
    planes = PLANAR.fullmatch(name)
    return planes is not None and planes[2] is not None


class _Cutter:
    """Cuts pictures, as others of the same memory that keep their colours and siting of chroma."""

    def __init__(self) -> None:
        self._of: tuple[Any, ...] = ()
        self._graph: Any = None

    def part(self, frame: Any, crop: Crop) -> Any:
        """A part of a picture as a picture; chroma that it shares with others comes along."""
        import av.filter

        of = (
            frame.format.name, frame.width, frame.height, int(frame.colorspace),
            int(frame.color_range), crop,
        )  # fmt: skip
        if of != self._of:
            name, width, height, colours, limits, _ = of
            wide, high = crop.size
            self._graph = graph = av.filter.Graph()
            source = graph.add(
                "buffer",
                f"video_size={width}x{height}:pix_fmt={name}:time_base=1/1:"
                f"colorspace={colours}:range={limits}",
            )
            cutting = graph.add("crop", f"{wide}:{high}:{crop.left}:{crop.top}:exact=1")
            source.link_to(cutting)
            cutting.link_to(graph.add("buffersink"))
            graph.configure()
            self._of = of
        self._graph.push(frame)
        return self._graph.pull()


def _with_chroma_for_each_pixel(frame: Any, crop: Crop) -> Any:
    """A part of a picture of planes as 4:4:4."""
    import av

    name, (wide, high) = frame.format.name, crop.size
    part: Any = av.VideoFrame(wide, high, re.sub(r"4\d\dp", "444p", name))
    deep, (down, right) = _is_deep(name), steps_of(frame)
    around = crop.spread(down, right, frame.width, frame.height)
    luma, *chroma = (plane_of(plane, 1, deep=deep) for plane in frame.planes)
    samples = [crop.of(luma)]
    for plane in chroma:
        shared = crop.covering(down, right).of(plane)
        samples.append(crop.inside(around).of(shared.repeat(down, 0).repeat(right, 1)))
    for into, own in zip(part.planes, samples, strict=True):
        plane_of(into, 1, deep=deep)[:] = own
    part.colorspace, part.color_range = frame.colorspace, frame.color_range
    return part


def plane_of(plane: Any, channels: int, *, deep: bool) -> npt.NDArray[Any]:
    """The pixels of a plane, without what lines are filled up with."""
    kind: npt.DTypeLike = np.dtype("<u2") if deep else np.uint8
    lines = np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)[: plane.height]
    wide = plane.width * channels * (2 if deep else 1)
    values: npt.NDArray[Any] = lines[:, :wide].view(kind)
    return values


class Rows:
    """Arrays with a row for each of so many pictures, made when the first of them comes.

    Attributes:
        arrays: one, or one for each plane; none before the first picture.

    Args:
        count: how many rows.
        make: called with shape and dtype, as `numpy.empty`.

    >>> Rows(3).of((np.zeros((2, 4, 1), np.uint8),))[0].shape
    (3, 2, 4, 1)
    """

    def __init__(self, count: int, make: Callable[..., npt.NDArray[Any]] = np.empty) -> None:
        self.arrays: Pixels = ()
        self._count, self._make = count, make
        self._lock = Lock()

    def of(self, pixels: Pixels) -> Pixels:
        """The arrays, for rows like these of one picture."""
        with self._lock:
            if not self.arrays:
                self.arrays = tuple(
                    self._make((self._count, *part.shape), part.dtype) for part in pixels
                )
                return self.arrays
        if self._count:
            check_alike(tuple(array[0] for array in self.arrays), pixels)
        return self.arrays


Crops = Sequence[Crop] | Crop | None
"""The parts of pictures that are wanted: one of each, the same of all; None: all of them."""


def each_crop(crops: Crops, count: int) -> Sequence[Crop | None]:
    """Those of each of `count` pictures."""
    return [crops] * count if crops is None or isinstance(crops, Crop) else crops


class Gathering:
    """The arrays of one answer.

    Args:
        samples: of each place of the answer, which sample it shows.
        converters: that wait for work (`Converter`, or what has its methods); they are used by one
            thread at a time.
        make: another converter.
        rows: where the pixels go; None: arrays of their own.
        places: the row of each place; None: in order.
        crops: the part of each place that is wanted; None: all of it.
    """

    def __init__(
        self,
        samples: Sequence[int],
        converters: list[Any],
        make: Callable[[], Any],
        rows: Rows | None = None,
        places: Sequence[int] | None = None,
        crops: Crops = None,
    ) -> None:
        self._rows = Rows(len(samples)) if rows is None else rows
        self._row_of = range(len(samples)) if places is None else places
        self._places: dict[int, dict[Crop | None, list[int]]] = {}
        each = each_crop(crops, len(samples))
        for row, sample, crop in zip(self._row_of, samples, each, strict=True):
            self._places.setdefault(sample, {}).setdefault(crop, []).append(row)
        self._converters, self._make = converters, make

    def give(self, sample: int, frame: Any) -> None:
        """Take the picture of a sample."""
        try:
            converter = self._converters.pop()
        except IndexError:
            converter = self._make()
        for crop in self._places[sample]:
            self._keep(sample, crop, converter.pixels(frame, crop))
        self._converters.append(converter)

    def _keep(self, sample: int, crop: Crop | None, pixels: Pixels) -> None:
        """Copy the arrays of a picture: its converter makes others of the same memory."""
        arrays = self._rows.of(pixels)
        for row in self._places[sample][crop]:
            for array, part in zip(arrays, pixels, strict=True):
                array[row] = part

    def arrays(self, blank: Iterable[int], size: tuple[int, int]) -> Pixels:
        """The arrays of the answer."""
        if not self._rows.arrays:
            width, height = size
            self._rows.of(tuple(one[0] for one in self._make().nothing(1, width, height)))
        for place in blank:
            for array in self._rows.arrays:
                array[self._row_of[place]] = 0
        return self._rows.arrays


def _size(array: npt.NDArray[Any]) -> str:
    return f"{array.shape[1]} × {array.shape[0]}"
