"""What is handed out: pixels with numbers, times and durations; contact sheets of them."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import field
from fractions import Fraction
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from fragdex.decoding.picture_files import encoded
from fragdex.errors import MissingExtra
from fragdex.fragments.table import Int64
from fragdex.record import record
from fragdex.seeking.times import Time

MOST: Final = 48
"""Frames on a sheet."""
WIDTH: Final = 160
"""Pixels of a frame on a sheet, at most."""
COLUMNS: Final = 6
_GAP: Final = 4


def sheet_html(batch: FrameBatch) -> str | None:
    """Frames next to each other, with number and time; None where Pillow is not installed.

    The first 48 of a batch; the rest is counted.
    """
    try:
        sources = [
            "data:image/jpeg;base64," + base64.b64encode(encoded(one, "jpeg", 80)).decode()
            for one in _small(batch)
        ]
    except MissingExtra:
        return None
    # Only numbers come here: nothing to escape.
    figures = [
        f'<figure style="margin:0"><img src="{source}" alt="frame {number}">'
        f'<figcaption style="font:11px sans-serif">{number} · {time:.3f} s</figcaption></figure>'
        for source, number, time in zip(
            sources, batch.numbers.tolist(), batch.times.tolist(), strict=False
        )
    ]
    left = len(batch.numbers) - len(figures)
    more = f'<p style="font:11px sans-serif">and {left} more</p>' if left else ""
    grid = f'<div style="display:flex;flex-wrap:wrap;gap:{_GAP}px">{"".join(figures)}</div>'
    return grid + more if figures else "<p>no frames</p>"


def sheet_png(batch: FrameBatch) -> bytes | None:
    """The same as one picture, without text; None where there is none, or no Pillow."""
    pictures = list(_small(batch))
    if not pictures:
        return None
    high, wide = (max(one.shape[side] for one in pictures) for side in (0, 1))
    columns = min(COLUMNS, len(pictures))
    lines = -(-len(pictures) // columns)
    sheet = np.full(
        (lines * (high + _GAP) - _GAP, columns * (wide + _GAP) - _GAP, 3), 255, np.uint8
    )
    for place, one in enumerate(pictures):
        top, left = place // columns * (high + _GAP), place % columns * (wide + _GAP)
        sheet[top : top + one.shape[0], left : left + one.shape[1]] = one
    try:
        return encoded(sheet, "png", 80)
    except MissingExtra:
        return None


def _small(batch: FrameBatch) -> Iterator[npt.NDArray[np.uint8]]:
    """The first frames as uint8 of shape (height, width, 3), small; of planes the luma."""
    data = batch.data
    planes = data[0][..., None] if isinstance(data, tuple) else data
    planes = _in_main_memory(planes[:MOST])
    bits = 8
    if planes.dtype == np.uint16:
        bits = 16
        if isinstance(data, tuple):  # planes do not say how many of their bits are used
            bits = max(9, int(planes.max(initial=0)).bit_length())
    for one in planes:
        step = -(-one.shape[1] // WIDTH)
        small = _averaged(one, step) >> (bits - 8)
        yield np.ascontiguousarray(np.broadcast_to(small, (*small.shape[:2], 3)).astype(np.uint8))


def _in_main_memory(array: Any) -> npt.NDArray[Any]:
    """An array of numpy, torch or CuPy as one of numpy."""
    if isinstance(array, np.ndarray):
        return array
    own: npt.NDArray[Any] = array.get() if hasattr(array, "get") else array.numpy(force=True)
    return own


def _averaged(one: npt.NDArray[Any], step: int) -> npt.NDArray[Any]:
    """A picture smaller by a whole number, each pixel the mean of a square."""
    if step < 2 or min(one.shape[:2]) < step:
        return one
    high, wide = one.shape[0] // step, one.shape[1] // step
    cut = one[: high * step, : wide * step]
    means: npt.NDArray[Any] = cut.reshape(high, step, wide, step, -1).mean((1, 3))
    small: npt.NDArray[Any] = means.astype(one.dtype)
    return small


PixelArray: TypeAlias = npt.NDArray[np.uint8] | npt.NDArray[np.uint16]
"""Pixels: uint16 of the formats `rgb16` and `gray16`, else uint8."""
Data = npt.NDArray[Any] | tuple[npt.NDArray[Any], ...]


class _Exchanged:
    """Arrays that numpy and other libraries take without a copy (DLPack)."""

    __slots__ = ()
    data: Data

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        array = _in_main_memory(self._one())
        if dtype is not None and np.dtype(dtype) != array.dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, **options: Any) -> Any:
        return self._one().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, number = self._one().__dlpack_device__()
        return int(kind), int(number)

    def _one(self) -> npt.NDArray[Any]:
        if isinstance(self.data, tuple):
            raise TypeError("planes are several arrays: use each of .data")
        return self.data


@record(frozen=True, slots=True, eq=False)
class Frame(_Exchanged):
    """One frame.

    Attributes:
        data: uint8 of shape (height, width, channels), or what `format=` of `Frames` says.
        number: of the frame.
        time, duration: seconds of presentation time, exact.

    >>> Frame(np.zeros((2, 2, 3), np.uint8), 7, Time(7, 25), Time(1, 25)).time.seconds
    0.28
    """

    data: Data
    number: int
    time: Time
    duration: Time


@record(frozen=True, slots=True, eq=False, repr=False)
class FrameBatch(_Exchanged):
    """Frames in the requested order.

    Attributes:
        data: uint8 of shape (frames, height, width, channels), or what `format=` of `Frames` says.
        numbers: of the frames, int64.
        ticks, duration_ticks: when each is shown and for how long, int64; exact in units of
            1 / `timescale` seconds.
        timescale: ticks a second.
        missing: place in the batch → why that frame could not be decoded; its pixels are 0. Only
            with `damaged="blank"`.

    A notebook shows it as a contact sheet of the first 48 frames.
    `torch.from_dlpack(batch)` and `numpy.asarray(batch)` take the pixels without a copy.

    >>> zeros = np.zeros(2, np.int64)
    >>> batch = FrameBatch(np.zeros((2, 4, 4, 3), np.uint8), zeros, zeros + 1, zeros + 1, 25)
    >>> len(batch), batch.times.tolist(), batch[1].time.fraction
    (2, [0.04, 0.04], Fraction(1, 25))
    """

    data: Data
    numbers: Int64
    ticks: Int64
    duration_ticks: Int64
    timescale: int
    missing: dict[int, str] = field(default_factory=dict)

    @property
    def times(self) -> npt.NDArray[np.float64]:
        """Seconds of presentation time."""
        return self.ticks / self.timescale

    @property
    def durations(self) -> npt.NDArray[np.float64]:
        """Seconds."""
        return self.duration_ticks / self.timescale

    @property
    def exact_times(self) -> list[Fraction]:
        """Seconds of presentation time as fractions."""
        return [Fraction(ticks, self.timescale) for ticks in self.ticks.tolist()]

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, place: int) -> Frame:
        data = self.data
        return Frame(
            tuple(plane[place] for plane in data) if isinstance(data, tuple) else data[place],
            int(self.numbers[place]),
            Time(int(self.ticks[place]), self.timescale),
            Time(int(self.duration_ticks[place]), self.timescale),
        )

    def __repr__(self) -> str:
        shown = ", ".join(map(str, self.numbers[:8].tolist())) + (", …" if len(self) > 8 else "")
        return f"<FrameBatch of {len(self)} frames: {shown}>"

    def _repr_html_(self) -> str | None:
        return sheet_html(self)

    def _repr_png_(self) -> bytes | None:
        return sheet_png(self)

    def __iter__(self) -> Iterator[Frame]:
        return (self[place] for place in range(len(self)))
