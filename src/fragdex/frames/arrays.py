"""Pictures as arrays of torch or CuPy, on the device that decoded them.

What a decoder on CUDA gives lies in the memory of the device as NV12 or P010: DLPack hands the
planes over without a copy, and the same whole numbers as on the processor make colours of them
(`conversion`). Everything else (other formats, sizes that are requested, odd sides) goes through
the processor, so that pixels are the same everywhere.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any, Final, Literal, NamedTuple, Protocol

import numpy as np

from fragdex.decoding.pictures import Orientation, matrix_of, orientation_of
from fragdex.errors import MissingExtra
from fragdex.frames.pixels import (
    Converter,
    Gathering,
    Pixels,
    check_alike,
    is_full_range,
    stored_format,
)

# Planes of 4:2:0 with 8 bits to red, green, blue and gray, in whole numbers.
#
# FFmpeg's libswscale does it on the processor; this is the same arithmetic for arrays that lie
# elsewhere, held to it bit by bit (tests/frames/test_conversion.py). Chroma is repeated for the
# four pixels that share it (ISO/IEC 23091-2 tells where it lies; swscale does not look), products
# are cut off after 16 bits, and the sum is clipped. Only `+`, `*`, `>>` and indexing are asked of
# an array, so that numpy, torch and CuPy give the same.


# 65,536 times what a step of chroma adds, of limited range (ITU-T H.273, 8.3): Cr to red, Cb to
# blue, Cb and Cr from green; rounded as libswscale rounds them.
_MATRICES: Final = {
    "ITU601": (104597, 132201, 25675, 53279),
    "ITU709": (117489, 138438, 13975, 34925),
    "BT2020": (110013, 140363, 12277, 42626),
}
_ONE: Final = 1 << 13
_MOST_LUMA: Final = 30189
"""Of limited range with 7 bits more: what is above becomes white."""


class Arrays(Protocol):
    """What a library of arrays does that operators do not."""

    def whole(self, array: Any) -> Any:
        """The same numbers as int32."""

    def bytes(self, array: Any) -> Any:
        """uint8; numbers outside of 0 to 255 become the nearest."""

    def least(self, array: Any, most: int) -> Any:
        """Numbers above `most` become `most`."""

    def stacked(self, arrays: list[Any], axis: int) -> Any:
        """Arrays of one shape along a new axis."""

    def repeated(self, array: Any) -> Any:
        """Each number of (height, width) twice in each direction."""


class Coefficients(NamedTuple):
    """What a step of luma and chroma adds, times 65,536 / 8; black is times 8."""

    luma: int
    black: int
    red_of_cr: int
    green_of_cb: int
    green_of_cr: int
    blue_of_cb: int


def coefficients(matrix: str, *, full_range: bool) -> Coefficients:
    """Of a matrix, by swscale's name for it.

    Raises:
        KeyError: it is not one of ITU601, ITU709 and BT2020.

    >>> coefficients("ITU601", full_range=False)
    Coefficients(luma=9539, black=128, red_of_cr=13075, green_of_cb=-3209, green_of_cr=-6660, \
blue_of_cb=16525)
    """
    red, blue, cb, cr = _MATRICES[matrix]
    if full_range:
        red, blue, cb, cr = (each * 224 // 255 for each in (red, blue, cb, cr))
    luma = 1 << 16 if full_range else (255 << 16) // 219

    def rounded(value: int) -> int:
        return (value * _ONE + (1 << 15)) >> 16

    return Coefficients(
        rounded(luma), 0 if full_range else 16 * 8,
        rounded(red), rounded(-cb), rounded(-cr), rounded(blue),
    )  # fmt: skip


def rgb_of(lib: Arrays, luma: Any, chroma: Any, of: Coefficients) -> Any:
    """Red, green and blue of a picture.

    Args:
        luma: uint8 of shape (height, width); both are even.
        chroma: uint8 of shape (height / 2, width / 2, 2): Cb and Cr.

    Returns: uint8 of shape (height, width, 3).
    """
    y = (8 * lib.whole(luma) - of.black) * of.luma >> 16
    both = 8 * (lib.whole(chroma) - 128)
    cb, cr = both[..., 0], both[..., 1]
    parts = (
        cr * of.red_of_cr >> 16,
        (cb * of.green_of_cb >> 16) + (cr * of.green_of_cr >> 16),
        cb * of.blue_of_cb >> 16,
    )
    return lib.stacked([lib.bytes(y + lib.repeated(part)) for part in parts], -1)


def gray_of(lib: Arrays, luma: Any, *, full_range: bool) -> Any:
    """Gray of the full range of a picture by BT.601: uint8 of shape (height, width, 1)."""
    if not full_range:
        wide = lib.least(lib.whole(luma) << 7, _MOST_LUMA)
        luma = lib.bytes((((wide * 19077 - 39057361) >> 14) + 64) >> 7)
    return luma[..., None]


OutputLibrary = Literal["numpy", "torch", "cupy"]
LIBRARIES: Final = ("numpy", "torch", "cupy")


def _of_the_user(name: str) -> Any:
    """A library that no extra of ours brings: its build has to fit the device."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtra(
            f'output="{name}" needs {name}', advice=f"install {name} as its own documentation says"
        ) from error


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
        self._device = torch.device(device if device and torch.cuda.is_available() else "cpu")

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
        return self._torch.stack(arrays, axis)

    def repeated(self, array: Any) -> Any:
        """Each number of (height, width) twice in each direction."""
        return array.repeat_interleave(2, 0).repeat_interleave(2, 1)

    def taken(self, plane: Any) -> Any:
        """The array of a plane of PyAV's, which has to be copied before its picture goes."""
        return self._torch.from_dlpack(plane).to(self._device)

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
        return array.flip(axes) if axes else array

    def in_order(self) -> contextlib.AbstractContextManager[Any]:
        """What is done inside comes after what decoders have done: both use the default stream."""
        if self._device.type != "cuda":
            return contextlib.nullcontext()
        stream = self._torch.cuda.default_stream(self._device)
        return self._torch.cuda.stream(stream)  # type: ignore[no-any-return]

    def hand_over(self) -> None:
        """What the caller's stream does from now on comes after what was done in order."""
        if self._device.type == "cuda":
            cuda = self._torch.cuda
            cuda.current_stream(self._device).wait_stream(cuda.default_stream(self._device))


class CupyArrays(Arrays):
    """CuPy's arrays.

    Args:
        device: `cuda`, with a number after a colon where there are several.

    Raises:
        MissingExtra: CuPy is not installed.
        ValueError: no device is given: it has no arrays in main memory.
    """

    def __init__(self, device: str | None) -> None:
        if device is None:
            raise ValueError('output="cupy" needs device="cuda": its arrays lie on a device')
        cupy = self._cupy = _of_the_user("cupy")
        self._device = cupy.cuda.Device(int(device.partition(":")[2] or 0))

    def whole(self, array: Any) -> Any:
        """The same numbers as int32."""
        return array.astype("int32")

    def bytes(self, array: Any) -> Any:
        """uint8; numbers outside of 0 to 255 become the nearest."""
        return array.clip(0, 255).astype("uint8")

    def words(self, array: Any) -> Any:
        """The same numbers as uint16."""
        return array.astype("uint16")

    def least(self, array: Any, most: int) -> Any:
        """Numbers above `most` become `most`."""
        return self._cupy.minimum(array, most)

    def stacked(self, arrays: list[Any], axis: int) -> Any:
        """Arrays of one shape along a new axis."""
        return self._cupy.stack(arrays, axis)

    def repeated(self, array: Any) -> Any:
        """Each number of (height, width) twice in each direction."""
        return array.repeat(2, 0).repeat(2, 1)

    def taken(self, plane: Any) -> Any:
        """The array of a plane of PyAV's, which has to be copied before its picture goes."""
        if plane.__dlpack_device__()[0] == 1:
            return self.sent(np.from_dlpack(plane))
        return self._cupy.from_dlpack(_OnDefaultStream(plane))

    def sent(self, array: Any) -> Any:
        """A copy of a numpy array."""
        return self._cupy.asarray(array)

    def copied(self, array: Any) -> Any:
        """A copy, without gaps."""
        return array.copy(order="C")

    def turned(self, array: Any, orientation: Orientation) -> Any:
        """An array of shape (height, width, …), as it is shown."""
        return orientation.of(array)

    @contextlib.contextmanager
    def in_order(self) -> Any:
        """What is done inside comes after what decoders have done: both use the default stream."""
        with self._device, self._cupy.cuda.Stream.null:
            yield

    def hand_over(self) -> None:
        """What the caller's stream does from now on comes after what was done in order."""
        with self._device:
            done = self._cupy.cuda.Stream.null.record()
            self._cupy.cuda.get_current_stream().wait_event(done)


class _OnDefaultStream:
    """A plane of PyAV's, which takes no other stream than the one that decoded it."""

    def __init__(self, plane: Any) -> None:
        self._plane = plane

    def __dlpack__(self, **_: Any) -> Any:
        return self._plane.__dlpack__(stream=None)

    def __dlpack_device__(self) -> Any:
        return self._plane.__dlpack_device__()


class ArrayConverter:
    """Makes arrays of decoded pictures where they lie. For one thread at a time.

    Args:
        lib: whose arrays.
        format, size, rotate: as `Converter` takes them.
    """

    def __init__(
        self, lib: Any, format: str, size: tuple[int, int] | None, *, rotate: bool = True
    ) -> None:
        self._lib, self._format, self._size, self._rotate = lib, format, size, rotate
        self._processor = Converter(format, size, rotate=rotate)

    def nothing(self, count: int, width: int, height: int) -> Pixels:
        """Arrays of so many frames that show nothing, as `Converter.nothing` gives them."""
        return tuple(map(self._lib.sent, self._processor.nothing(count, width, height)))

    def pixels(self, frame: Any) -> Pixels:
        """The arrays of a picture, which is not needed any more."""
        lib = self._lib
        with lib.in_order():
            arrays = self._converted(frame)
            if arrays is None:
                return tuple(map(lib.sent, self._processor.pixels(frame)))
            orientation = orientation_of(frame) if self._rotate else Orientation()
            return tuple(lib.copied(lib.turned(one, orientation)) for one in arrays)

    def _converted(self, frame: Any) -> tuple[Any, ...] | None:
        """Arrays as the picture is stored; None: they are made on the processor."""
        stored = stored_format(frame)
        if self._size is not None or frame.width % 2 or frame.height % 2:
            return None
        if self._format == "yuv" and stored in ("nv12", "p010le"):
            luma, chroma = (self._lib.taken(plane) for plane in frame.planes)
            planes: tuple[Any, ...] = (luma, chroma[..., 0], chroma[..., 1])
            # The ten bits of P010 are the upper ones.
            if stored == "p010le":
                planes = tuple(self._lib.words(self._lib.whole(one) >> 6) for one in planes)
            return planes
        matrix = matrix_of(frame)[0]
        # Of another matrix swscale makes gray by way of colours, with the weights of BT.601.
        known = ("rgb", "gray") if matrix == "ITU601" else ("rgb",)
        if stored != "nv12" or self._format not in known:
            return None
        full = is_full_range(frame)
        luma, chroma = (self._lib.taken(plane) for plane in frame.planes)
        if self._format == "gray":
            return (gray_of(self._lib, luma, full_range=full),)
        return (rgb_of(self._lib, luma, chroma, coefficients(matrix, full_range=full)),)


class ArrayGathering(Gathering):
    """The arrays of one answer, on a device."""

    def __init__(
        self,
        lib: Any,
        samples: Sequence[int],
        converters: list[ArrayConverter],
        make: Callable[[], ArrayConverter],
    ) -> None:
        super().__init__(samples, converters, make)
        self._lib, self._samples = lib, samples
        self._pixels: dict[int, Pixels] = {}

    def _keep(self, sample: int, pixels: Pixels) -> None:
        with self._lock:
            if self._pixels:
                check_alike(next(iter(self._pixels.values())), pixels)
            self._pixels[sample] = pixels

    def arrays(self, blank: Iterable[int], size: tuple[int, int]) -> Pixels:
        """The arrays of the answer, as `Gathering.arrays` gives them."""
        lib, empty = self._lib, set(blank)
        with lib.in_order():
            if self._pixels:
                nothing = tuple(one * 0 for one in next(iter(self._pixels.values())))
                rows = [
                    nothing if place in empty else self._pixels[sample]
                    for place, sample in enumerate(self._samples)
                ]
                batch = tuple(lib.stacked(list(planes), 0) for planes in zip(*rows, strict=True))
            else:
                width, height = size
                batch = self._make().nothing(len(self._samples), width, height)
        lib.hand_over()
        return batch


def library_of(output: str, device: str | None) -> Any:
    """What makes arrays of a library; None: numpy.

    Args:
        output: of LIBRARIES.
        device: that decodes, as `Frames` takes it.

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
