"""Pictures as arrays of torch or CuPy, on the device that decoded them.

What a decoder on CUDA gives lies in the memory of the device as NV12 or P010: DLPack hands the
planes over without a copy, and the same whole numbers as on the processor make colours of them.
Where these are swscale's (`conversion="swscale"`), everything else (other formats, sizes that are
requested, odd sides) goes through the processor. `conversion="integer"` is defined by whole numbers
alone (`IntegerConverter`), so that every library and device makes the same of all of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from threading import Lock
from typing import Any, Final, Literal

import numpy as np

from fragdex.decoding.pictures import Orientation, matrix_of, orientation_of
from fragdex.errors import MissingExtra
from fragdex.frames.conversion import (
    MOST_DEPTH,
    Arrays,
    Coefficients,
    Line,
    Scaler,
    brightness_of,
    coefficients,
    gray_of,
    rgb_of,
)
from fragdex.frames.crop import Crop, Steps, cut
from fragdex.frames.pixels import (
    PLANAR,
    Converter,
    Crops,
    Gathering,
    Pixels,
    check_alike,
    each_crop,
    is_full_range,
    plane_of,
    steps_of,
    stored_format,
)

OutputLibrary = Literal["numpy", "torch", "cupy"]
LIBRARIES: Final = ("numpy", "torch", "cupy")
Conversion = Literal["swscale", "integer"]
CONVERSIONS: Final = ("swscale", "integer")


def _of_the_user(name: str) -> Any:
    """A library that no extra of ours brings: its build has to fit the device."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtra(
            f'output="{name}" needs {name}', advice=f"install {name} as its own documentation says"
        ) from error


class NumpyArrays(Arrays):
    """numpy's arrays, in main memory."""

    is_on_device = False
    _library: Any = np

    def whole(self, array: Any) -> Any:
        """The same numbers as int32."""
        return array.astype(np.int32)

    def bytes(self, array: Any) -> Any:
        """uint8; numbers outside of 0 to 255 become the nearest."""
        return array.clip(0, 255).astype(np.uint8)

    def words(self, array: Any) -> Any:
        """The same numbers as uint16."""
        return array.astype(np.uint16)

    def least(self, array: Any, most: int) -> Any:
        """Numbers above `most` become `most`."""
        return self._library.minimum(array, most)

    def stacked(self, arrays: list[Any], axis: int) -> Any:
        """Arrays of one shape along a new axis."""
        return self._library.stack(arrays, axis)

    def repeated(self, array: Any, down: int, right: int) -> Any:
        """Each number of (height, width) so many times in each direction."""
        return array.repeat(down, 0).repeat(right, 1)

    def gathered(self, array: Any, places: Any, axis: int) -> Any:
        """What stands at places of an axis."""
        return array.take(places, axis)

    def taken(self, plane: Any) -> Any:
        """The array of a plane of PyAV's, which has to be copied before its picture goes."""
        return np.from_dlpack(plane)

    def sent(self, array: Any) -> Any:
        """An array of numpy's."""
        return array

    def copied(self, array: Any) -> Any:
        """A copy, without gaps."""
        return array.copy(order="C")

    def turned(self, array: Any, orientation: Orientation) -> Any:
        """An array of shape (height, width, …), as it is shown."""
        return orientation.of(array)

    def in_order(self) -> contextlib.AbstractContextManager[Any]:
        """Nothing: what is done here is done in order."""
        return contextlib.nullcontext()

    def blank(self, array: Any) -> Any:
        """An array like this one, of zeros."""
        return self._library.zeros_like(array)

    def hand_over(self, arrays: Iterable[Any]) -> None:
        """Nothing: they are the caller's."""


class TorchArrays(Arrays):
    """torch's tensors.

    Args:
        device: `cuda`, with a number after a colon where there are several; None, or a device
            that this torch cannot use: main memory.

    Raises:
        MissingExtra: torch is not installed.
    """

    def __init__(self, device: str | None) -> None:
        torch = self._torch = _of_the_user("torch")
        self._device = torch.device("cpu")
        if device is not None and torch.cuda.is_available():
            # Without a number it would be the current device: another one may decode.
            self._device = torch.device("cuda", int(device.partition(":")[2] or 0))
        self.is_on_device = self._device.type == "cuda"

    def whole(self, array: Any) -> Any:
        """The same numbers as int32."""
        return array.to(self._torch.int32)

    def bytes(self, array: Any) -> Any:
        """uint8; numbers outside of 0 to 255 become the nearest."""
        return array.clamp(0, 255).to(self._torch.uint8)

    def words(self, array: Any) -> Any:
        """The same numbers as uint16."""
        return array.to(self._torch.uint16)

    def least(self, array: Any, most: int) -> Any:
        """Numbers above `most` become `most`."""
        return array.clamp(max=most)

    def stacked(self, arrays: list[Any], axis: int) -> Any:
        """Arrays of one shape along a new axis."""
        return self._words(lambda *these: self._torch.stack(these, axis), *arrays)

    def repeated(self, array: Any, down: int, right: int) -> Any:
        """Each number of (height, width) so many times in each direction."""
        return array.repeat_interleave(down, 0).repeat_interleave(right, 1)

    def gathered(self, array: Any, places: Any, axis: int) -> Any:
        """What stands at places of an axis."""
        return array.index_select(axis, places)

    def taken(self, plane: Any) -> Any:
        """The array of a plane of PyAV's, which has to be copied before its picture goes."""
        # torch would ask for its own stream, and PyAV refuses any.
        return self._torch.from_dlpack(plane.__dlpack__(stream=None)).to(self._device)

    def sent(self, array: Any) -> Any:
        """A copy of a numpy array."""
        return self._torch.from_numpy(array.copy()).to(self._device)

    def copied(self, array: Any) -> Any:
        """A copy, without gaps."""
        return array.clone(memory_format=self._torch.contiguous_format)

    def turned(self, array: Any, orientation: Orientation) -> Any:
        """An array of shape (height, width, …), as it is shown."""
        array = array.swapaxes(0, 1) if orientation.transposed else array
        axes = [1] * orientation.mirrored + [0] * orientation.flipped
        return self._words(lambda this: this.flip(axes), array) if axes else array

    def _words(self, work: Callable[..., Any], *arrays: Any) -> Any:
        """What some work makes of arrays, whose numbers it leaves as they are.

        Of uint16 torch can do little; it is done with the same bytes as int16.
        """
        torch = self._torch
        if arrays[0].dtype != torch.uint16:
            return work(*arrays)
        return work(*(array.view(torch.int16) for array in arrays)).view(torch.uint16)

    def in_order(self) -> contextlib.AbstractContextManager[Any]:
        """What is done inside comes after what decoders have done: both use the default stream."""
        if not self.is_on_device:
            return contextlib.nullcontext()
        stream = self._torch.cuda.default_stream(self._device)
        return self._torch.cuda.stream(stream)  # type: ignore[no-any-return]

    def blank(self, array: Any) -> Any:
        """An array like this one, of zeros."""
        return self._torch.zeros_like(array)

    def hand_over(self, arrays: Iterable[Any]) -> None:
        """What the caller's stream does from now on comes after what was done in order.

        The memory of the arrays is not used again before that stream has done what it does with
        them.
        """
        if not self.is_on_device:
            return
        cuda = self._torch.cuda
        caller, ours = cuda.current_stream(self._device), cuda.default_stream(self._device)
        if caller != ours:
            caller.wait_stream(ours)
            for array in arrays:
                array.record_stream(caller)


class CupyArrays(NumpyArrays):
    """CuPy's arrays, which have the methods of numpy's.

    Raises:
        MissingExtra: CuPy is not installed.
        ValueError: no device is given: it has no arrays in main memory.
    """

    is_on_device = True

    def __init__(self, device: str | None) -> None:
        if device is None:
            raise ValueError('output="cupy" needs device="cuda": its arrays lie on a device')
        self._library = _of_the_user("cupy")
        self._device = self._library.cuda.Device(int(device.partition(":")[2] or 0))

    def taken(self, plane: Any) -> Any:
        """The array of a plane of PyAV's, which has to be copied before its picture goes."""
        if plane.__dlpack_device__()[0] == 1:
            return self.sent(np.from_dlpack(plane))
        return self._library.from_dlpack(_OnDefaultStream(plane))

    def sent(self, array: Any) -> Any:
        """A copy of a numpy array."""
        return self._library.asarray(array)

    @contextlib.contextmanager
    def in_order(self) -> Any:
        """What is done inside comes after what decoders have done: both use the default stream."""
        with self._device, self._library.cuda.Stream.null:
            yield

    def hand_over(self, arrays: Iterable[Any]) -> None:
        """What the caller's stream does from now on comes after what was done in order.

        CuPy uses the memory of arrays again in the order of the default stream. Its own streams
        are in order with that, unless they were made with `non_blocking=True`.
        """
        with self._device:
            done = self._library.cuda.Stream.null.record()
            self._library.cuda.get_current_stream().wait_event(done)


class _OnDefaultStream:
    """A plane of PyAV's, which takes no other stream than the one that decoded it."""

    def __init__(self, plane: Any) -> None:
        self._plane = plane

    def __dlpack__(self, **_: Any) -> Any:
        return self._plane.__dlpack__(stream=None)

    def __dlpack_device__(self) -> Any:
        return self._plane.__dlpack_device__()


class ArrayConverter:
    """Makes arrays of decoded pictures where they lie. For one thread at a time."""

    def __init__(
        self, lib: Any, format: str, size: tuple[int, int] | None, *, rotate: bool = True
    ) -> None:
        self._lib, self._format, self._size, self._rotate = lib, format, size, rotate
        self._processor = Converter(format, size, rotate=rotate)

    def nothing(self, count: int, width: int, height: int) -> Pixels:
        """Arrays of so many frames that show nothing, as `Converter.nothing` gives them."""
        return tuple(map(self._lib.sent, self._processor.nothing(count, width, height)))

    def pixels(self, frame: Any, crop: Crop | None = None) -> Pixels:
        """The arrays of a picture, which is not needed any more."""
        lib = self._lib
        orientation = orientation_of(frame) if self._rotate else Orientation()
        part, size = Crop(0, 0, frame.width, frame.height), self._size
        if crop is not None:
            part = crop.stored(orientation, frame.width, frame.height)
        if size is not None and orientation.transposed:
            size = size[::-1]
        with lib.in_order():
            if size == part.size and self._processor.has_pixels_of(part, frame):
                size = None
            arrays = self._converted(frame, part, size)
            if arrays is None:
                return tuple(map(lib.sent, self._processor.pixels(frame, crop)))
            return tuple(lib.copied(lib.turned(one, orientation)) for one in arrays)

    def _converted(
        self, frame: Any, part: Crop, size: tuple[int, int] | None
    ) -> tuple[Any, ...] | None:
        """Arrays of a part of a picture as it is stored; None: they are made on the processor."""
        lib, stored = self._lib, stored_format(frame)
        if size is not None or not _has_even_sides(frame):
            return None
        if self._format == "yuv" and stored in ("nv12", "p010le"):
            luma, chroma = (lib.taken(plane) for plane in frame.planes)
            planes = cut(part, [luma, chroma[..., 0], chroma[..., 1]], steps_of(frame))
            # The ten bits of P010 are the upper ones.
            if stored == "p010le":
                planes = [lib.words(lib.whole(one) >> 6) for one in planes]
            return tuple(planes)
        matrix = matrix_of(frame)[0]
        # Of another matrix swscale makes gray by way of colours, with the weights of BT.601.
        formats = ("rgb", "gray") if matrix == "ITU601" else ("rgb",)
        if stored != "nv12" or self._format not in formats:
            return None
        full = is_full_range(frame)
        luma, chroma = (lib.taken(plane) for plane in frame.planes)
        if self._format == "gray":
            return (gray_of(lib, part.of(luma), full_range=full),)
        known = coefficients(matrix, full_range=full)
        planes = [luma, chroma[..., 0], chroma[..., 1]]
        return (_coloured(lib, planes, part, known, steps_of(frame)),)


def _coloured(
    lib: Any, planes: list[Any], part: Crop, known: Coefficients, steps: Steps, depth: int = 8
) -> Any:
    """Red, green and blue of a part of a picture: those that the whole has there."""
    luma, *chroma = planes
    high, wide = luma.shape
    around = part.spread(*steps, wide, high)
    cb, cr = (part.covering(*steps).of(plane) for plane in chroma)
    colours = rgb_of(lib, around.of(luma), cb, cr, known, depth=depth, steps=steps)
    return part.inside(around).of(colours)


class IntegerConverter(ArrayConverter):
    """Makes arrays of decoded pictures by whole numbers, the same in every library and device.

    Planes are scaled by a triangle (`conversion.taps`), before colours are made of them; without
    another size, chroma is repeated. Gray is the luma of the picture over the full range, whatever
    its matrix. Of pictures that are not planes of luma and chroma, or have more than 12 bits,
    swscale makes colours first.
    """

    def __init__(
        self, lib: Any, format: str, size: tuple[int, int] | None, *, rotate: bool = True
    ) -> None:
        super().__init__(lib, format, size, rotate=rotate)
        if format not in ("rgb", "gray", "yuv"):
            raise ValueError(f'conversion="integer" makes rgb, gray and yuv, not {format}')
        self._unscaled, self._scaler = Converter(format, rotate=False), Scaler(lib)

    def _converted(self, frame: Any, part: Crop, size: tuple[int, int] | None) -> tuple[Any, ...]:
        lib, format = self._lib, self._format
        is_420 = _has_even_sides(frame) and frame.format.name in ("yuv420p", "yuvj420p")
        if format == "rgb" and size is None and is_420:
            # libswscale makes the same colours, and faster
            return tuple(map(lib.sent, self._unscaled.pixels(frame, part)))
        planes, depth = self._planes(frame)
        if planes is None:
            arrays = [lib.sent(one) for one in self._unscaled.pixels(frame)]
            if size is None:
                arrays = [part.of(one) for one in arrays]
            else:
                arrays = [self._scaled(one, part, size, (1, 1), 8) for one in arrays]
            return tuple(map(lib.bytes, arrays))
        planes, steps = planes[:1] if format == "gray" else planes, steps_of(frame)
        if size is not None:
            planes = [
                self._scaled(one, part, size, steps if place else (1, 1), depth)
                for place, one in enumerate(planes)
            ]
        elif format != "rgb" or len(planes) == 1:
            planes = cut(part, planes, steps)
        if format == "yuv":
            as_stored = lib.bytes if depth == 8 else lib.words
            return tuple(as_stored(lib.whole(one)) for one in planes)
        known = coefficients(matrix_of(frame)[0], full_range=is_full_range(frame))
        if len(planes) == 1:
            y = lib.bytes(brightness_of(lib, planes[0], known, depth))
            return (lib.stacked([y] * (1 if format == "gray" else 3), -1),)
        if size is None:
            return (_coloured(lib, planes, part, known, steps, depth),)
        luma, cb, cr = planes
        return (rgb_of(lib, luma, cb, cr, known, depth=depth, steps=(1, 1)),)

    def _scaled(
        self, plane: Any, part: Crop, size: tuple[int, int], steps: Steps, depth: int
    ) -> Any:
        """A part of a plane, whose samples are of so many pixels, in another size."""
        (width, height), (down, right) = size, steps
        if self._format == "yuv":  # chroma stays as much smaller as it is
            height, width = -(-height // down), -(-width // right)
        rows = Line(height, part.top % down / down, part.size[1] / down)
        columns = Line(width, part.left % right / right, part.size[0] / right)
        inside = part.covering(down, right).of(plane)
        return self._scaler.scaled(inside, rows, columns, depth)

    def _planes(self, frame: Any) -> tuple[list[Any] | None, int]:
        """Luma and chroma, if there is any, and how many bits they have; None: RGB or others."""
        lib, stored = self._lib, stored_format(frame)
        if stored in ("nv12", "p010le") and _has_even_sides(frame):
            luma, chroma = (lib.taken(plane) for plane in frame.planes)
            planes = [luma, chroma[..., 0], chroma[..., 1]]
            if stored == "nv12":
                return planes, 8
            return [lib.whole(one) >> 6 for one in planes], 10
        frame = self._unscaled.as_the_processor_decodes(frame)
        depth = max(part.bits for part in frame.format.components)
        # Colours are sums of more bits than planes in another size are.
        most = 16 if self._format == "yuv" else MOST_DEPTH
        if not PLANAR.fullmatch(frame.format.name) or depth > most:
            return None, 8
        return [lib.sent(plane_of(plane, 1, deep=depth > 8)) for plane in frame.planes], depth


def _has_even_sides(frame: Any) -> bool:
    """Whether DLPack has all chroma of a picture: of an odd side it leaves out the last sample."""
    return not frame.width % 2 and not frame.height % 2


class ArrayGathering(Gathering):
    """The arrays of one answer, on a device."""

    def __init__(
        self,
        lib: Any,
        samples: Sequence[int],
        converters: list[ArrayConverter],
        make: Callable[[], ArrayConverter],
        crops: Crops = None,
    ) -> None:
        super().__init__(samples, converters, make, crops=crops)
        self._lib, self._samples, self._crops = lib, samples, each_crop(crops, len(samples))
        self._lock = Lock()
        self._pixels: dict[tuple[int, Crop | None], Pixels] = {}

    def _keep(self, sample: int, crop: Crop | None, pixels: Pixels) -> None:
        with self._lock:
            if self._pixels:
                check_alike(next(iter(self._pixels.values())), pixels)
            self._pixels[sample, crop] = pixels

    def arrays(self, blank: Iterable[int], size: tuple[int, int]) -> Pixels:
        """The arrays of the answer, as `Gathering.arrays` gives them."""
        lib, empty = self._lib, set(blank)
        with lib.in_order():
            if self._pixels:
                first = next(iter(self._pixels.values()))
                nothing = tuple(map(lib.blank, first)) if empty else ()
                wanted = zip(self._samples, self._crops, strict=True)
                rows = [
                    nothing if place in empty else self._pixels[one]
                    for place, one in enumerate(wanted)
                ]
                batch = tuple(lib.stacked(list(planes), 0) for planes in zip(*rows, strict=True))
            else:
                width, height = size
                batch = self._make().nothing(len(self._samples), width, height)
        lib.hand_over(batch)
        return batch


def library_of(output: str, device: str | None) -> Any:
    """What makes arrays of a library; None: numpy.

    Raises:
        ValueError: there is no such library, or it cannot use the device.
        MissingExtra: it is not installed.
    """
    if output == "numpy":
        return None
    if output not in LIBRARIES:
        raise ValueError(f"output is one of {', '.join(LIBRARIES)}, not {output!r}")
    if device is not None and device.partition(":")[0] != "cuda":
        raise ValueError(f"output={output!r} stays on CUDA or in main memory, not on {device}")
    return {"torch": TorchArrays, "cupy": CupyArrays}[output](device)
