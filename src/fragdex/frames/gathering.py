"""Pictures of several threads into the arrays of one answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from fragdex.errors import UndecodableMedia
from fragdex.frames.pixels import Converter, Pixels

__all__ = ["Gathering"]


class Gathering:
    """The arrays of one answer.

    Args:
        samples: of each place of the answer, which sample it shows.
        converters: that wait for work; they are used by one thread at a time.
        make: another converter.
    """

    def __init__(
        self, samples: Sequence[int], converters: list[Converter], make: Callable[[], Converter]
    ) -> None:
        self._places: dict[int, list[int]] = {}
        for place, sample in enumerate(samples):
            self._places.setdefault(sample, []).append(place)
        self._count = len(samples)
        self._converters, self._make = converters, make
        self._lock = Lock()
        self._arrays: Pixels = ()

    def give(self, sample: int, frame: Any) -> None:
        """Take the picture of a sample.

        Raises:
            UndecodableMedia: it has another size than the others.
        """
        try:
            converter = self._converters.pop()
        except IndexError:
            converter = self._make()
        pixels = converter.pixels(frame)
        arrays = self._arrays or self._allocated(pixels)
        if any(
            a.shape[1:] != p.shape or a.dtype != p.dtype
            for a, p in zip(arrays, pixels, strict=False)
        ) or len(arrays) != len(pixels):
            raise UndecodableMedia(
                f"the pictures have several sizes: {_size(arrays[0][0])} and {_size(pixels[0])}",
                advice="give the size that all are scaled to: size=(width, height)",
            )
        for place in self._places[sample]:
            for array, part in zip(arrays, pixels, strict=True):
                array[place] = part
        self._converters.append(converter)

    def arrays(self, blank: Iterable[int], size: tuple[int, int]) -> Pixels:
        """The arrays of the answer.

        Args:
            blank: places whose pixels are 0.
            size: width and height where no picture came.
        """
        if not self._arrays:
            width, height = size
            self._arrays = self._make().nothing(self._count, width, height)
        for place in blank:
            for array in self._arrays:
                array[place] = 0
        return self._arrays

    def _allocated(self, pixels: Pixels) -> Pixels:
        with self._lock:
            if not self._arrays:
                self._arrays = tuple(
                    np.empty((self._count, *part.shape), part.dtype) for part in pixels
                )
            return self._arrays


def _size(array: npt.NDArray[Any]) -> str:
    return f"{array.shape[1]} × {array.shape[0]}"
