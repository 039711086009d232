"""All frames as one array of four axes, of which only what is asked for is decoded."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from fragdex.errors import UndecodableMedia
from fragdex.fragments.table import Int64
from fragdex.frames.frame_batch import FrameBatch
from fragdex.frames.frame_track import FrameTimes
from fragdex.frames.pixels import PixelFormat


class LazyArray(FrameTimes):
    """Frames as dask, xarray and napari ask for them.

    >>> import fragdex
    >>> isinstance(fragdex.Frames("fixtures/open-gop.mp4"), LazyArray)
    True
    """

    _format: PixelFormat
    _size: tuple[int, int] | None
    _rotate: bool

    @abstractmethod
    def _batch(self, numbers: Int64) -> FrameBatch:
        """Frames by their numbers."""

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Frames, height, width, channels: the shape of all frames as one array.

        Height and width are those of the sample entry, turned as the frames are, or `size`.

        Raises:
            TypeError: frames are planes (`format="yuv"`), which are several arrays.
        """
        if self._format == "yuv":
            raise TypeError('planes are several arrays: give format="rgb" or "gray"')
        width, height = self._size or self._coded_size()
        return len(self), height, width, 1 if self._format.startswith("gray") else 3

    @property
    def ndim(self) -> int:
        """4."""
        return 4

    @property
    def dtype(self) -> np.dtype[Any]:
        """uint8, or uint16 of `rgb16` and `gray16`."""
        return np.dtype(np.uint16 if self._format.endswith("16") else np.uint8)

    @property
    def chunks(self) -> tuple[tuple[int, ...], ...]:
        """How many frames each group of pictures has, and the whole of the other axes.

        In the form of dask: a group is decoded as a whole, so that blocks of whole groups cost the
        least. Frames that come before the first sync sample are a group.

        >>> import fragdex
        >>> fragdex.Frames("fixtures/open-gop.mp4").chunks
        ((12, 12, 12, 12, 2), (48,), (64,), (3,))
        """
        count, *others = self.shape
        edges = np.union1d(self.key_frames, [0, count])
        return (tuple(np.diff(edges).tolist()), *((length,) for length in others))

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        """All frames, decoded into memory."""
        if copy is False:
            raise ValueError("frames are decoded: there is no array without a copy")
        array = self._array((slice(None),))
        return array if dtype is None else array.astype(dtype, copy=False)

    def sync_frames(self, count: int) -> FrameBatch:
        """So many sync samples, spread evenly over those of the film; all, where it has fewer.

        Nothing but these is read and decoded: pictures for a language model, or an overview.

        Raises:
            ValueError: count is not 1 or more.
            UndecodableMedia: no frame is a sync sample.
            And as `[]`.

        >>> import fragdex
        >>> fragdex.Frames("fixtures/open-gop.mp4").sync_frames(3).numbers.tolist()
        [0, 24, 48]
        """
        if count < 1:
            raise ValueError(f"at least one frame, not {count}")
        sync = self.key_frames
        if not len(sync):
            raise UndecodableMedia(f"track {self.track.id} has no sync sample among its frames")
        count = min(count, len(sync))
        places = (2 * np.arange(count) + 1) * len(sync) // (2 * count)
        return self._batch(sync[places])

    # -- how

    def _numbers(self, key: Any) -> tuple[Int64, bool]:
        count = len(self)
        if isinstance(key, slice):
            return np.arange(*key.indices(count), dtype=np.int64), False
        array = np.asarray(key)
        if array.dtype == np.bool_ and array.shape == (count,):
            array = np.flatnonzero(array)
        if array.ndim > 1 or (array.size and array.dtype.kind not in "iu"):
            raise TypeError("frames are selected by whole numbers, slices or lists of numbers")
        numbers = array.astype(np.int64).reshape(-1)
        wrong = (numbers >= count) | (numbers < -count)
        if wrong.any():
            raise IndexError(f"there is no frame {numbers[wrong][0]}: there are {count}")
        return np.where(numbers < 0, numbers + count, numbers), array.ndim == 0

    def _array(self, key: tuple[Any, ...]) -> npt.NDArray[Any]:
        """Pixels of all frames as one array, of which only those frames are decoded."""
        shape = self.shape
        if any(part is None for part in key):
            raise TypeError("frames have four axes, and no others are put between them")
        at = next((place for place, part in enumerate(key) if part is Ellipsis), len(key))
        others = len(key) - (at < len(key))
        if others > self.ndim:
            raise IndexError(f"frames have four axes, and the index has {others}")
        key = (*key[:at], *[slice(None)] * (self.ndim - others), *key[at + 1 :])
        numbers, one = self._numbers(key[0])
        data = self._batch(numbers).data if len(numbers) else np.zeros((0, *shape[1:]), self.dtype)
        assert not isinstance(data, tuple)
        if data.shape[1:] != shape[1:]:
            found, said = (" × ".join(map(str, one[2:0:-1])) for one in (data.shape, shape))
            raise UndecodableMedia(
                f"pictures of track {self.track.id} are {found}, and its sample entry says {said}",
                advice="give the size that all are scaled to: size=(width, height)",
            )
        if isinstance(key[0], slice):
            first: Any = slice(None)
        else:
            first = 0 if one else np.arange(len(numbers))
        chosen: npt.NDArray[Any] = data[(first, *key[1:])]
        return chosen

    def _coded_size(self) -> tuple[int, int]:
        info = self.track.info
        width, height = info.width or 0, info.height or 0
        turned = self._rotate and (info.rotation or 0) % 180 == 90
        return (height, width) if turned else (width, height)
