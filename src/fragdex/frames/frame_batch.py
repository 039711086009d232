"""What is handed out: pixels with numbers, times and durations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from fragdex.fragments.table import Int64
from fragdex.frames.notebook_sheet import sheet_html, sheet_png
from fragdex.seeking.times import Time

__all__ = ["Frame", "FrameBatch"]

Data = npt.NDArray[Any] | tuple[npt.NDArray[Any], ...]


class _Exchanged:
    """Arrays that numpy and other libraries take without a copy (DLPack)."""

    __slots__ = ()
    data: Data

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        array = self._one()
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


@dataclass(frozen=True, slots=True, eq=False)
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FrameBatch(_Exchanged):
    """Frames in the order that was asked for.

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
    >>> len(batch), batch.times.tolist(), batch[1].time.exact
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
