"""`fragdex.Frames`: frames of a file by number and by time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import numpy as np
import numpy.typing as npt

from fragdex.decoding.audio import AudioOptions, SoundArray, audio
from fragdex.errors import UndecodableMedia
from fragdex.formats.fidx import open_index
from fragdex.formats.media_or_index import MediaOrIndex, known_and_media
from fragdex.fragments.table import Int64
from fragdex.frames.arrays import (
    CONVERSIONS,
    ArrayConverter,
    ArrayGathering,
    Conversion,
    IntegerConverter,
    NumpyArrays,
    OutputLibrary,
    library_of,
)
from fragdex.frames.crop import Box, crop_of
from fragdex.frames.decode_runs import FramePlan
from fragdex.frames.decoders import FrameCache, pool_of
from fragdex.frames.frame_batch import Frame, FrameBatch, PixelArray
from fragdex.frames.frame_reader import FrameReader
from fragdex.frames.frame_track import FrameTrack
from fragdex.frames.pixels import Converter, Crops, Gathering, PixelFormat, Rows
from fragdex.seeking.model import Index
from fragdex.seeking.numbering import Order
from fragdex.seeking.seek import Selection
from fragdex.seeking.times import TimeLike, exact_time
from fragdex.seeking.track import Track
from fragdex.sources import Source, SourceOptions, check_options, open_source

if TYPE_CHECKING:
    from typing import Self


__all__ = ["Frames"]

CACHE = 128 << 20
DEVICES = ("cuda", "vaapi", "videotoolbox")
MOST_FRAMES = 1 << 20
"""Frames of one answer of `between`."""
MOST_THREADS = 8
THREADS_OF_DEVICE = 4
"""Decoders side by side on a device where pictures are fetched from it: more cost more than they
bring."""
PIXELS_AT_ONCE = 64 << 20
"""Bytes of pixels that iteration decodes ahead."""


class Frames:
    """The frames of one track, exact, by number and by time.

    Every frame has the pixels that decoding the whole track in order gives. A call reads the bytes
    that its frames need in few requests, decodes each group of pictures once, several in parallel,
    and returns the frames in the requested order.

    Args:
        what: the file: path, bytes, seekable file, URL, or an open `Source`, which stays open; or
            an index of it (also the path of a saved one), which says where it is.
        index: of the file, or the path of a saved one (`.fidx`); None: one is built.
        track: track_ID, or a track of the index; None: the first with pictures.
        format: `rgb` and `gray` are uint8, `rgb16` and `gray16` uint16 over the full range, each
            of shape (frames, height, width, channels); `yuv` are the decoded planes, a tuple of
            arrays (frames, height, width), uint16 where they have more than 8 bits.
        crop: the part that is kept: (left, top, right, bottom), right and bottom exclusive.
        size: (width, height) to scale it to; None: as coded, with non-square pixels.
        rotate: rotate frames as the track header says (ISO/IEC 14496-12, 8.3.2).
        period: number of the period, in a file of several moovs; None: there is only one.
        order: of the numbers: `presentation`, or `decode`.
        hidden: whether frames that the edit list hides are numbered as well.
        damaged: `raise` UndecodableMedia, or `blank`: pixels of 0, named by `batch.missing`.
        threads: that decode; None: one a processor (≤ 8); on a device 4, or 2 an engine (≤ 16).
        cache: bytes of pictures and samples that are held for the next call, or a `FrameCache`
            (`fragdex.frames`) that several share, and decoders with it.
        device: hardware that decodes, `cuda`, `vaapi` or `videotoolbox`; None: the processor.
            If that fails, a RuntimeWarning says why, and the processor decodes.
        output: whose arrays the pixels are: `numpy`; or `torch`, `cupy`: with `device="cuda"` they
            stay on it, ordered before what the current stream of that library does next.
        conversion: `swscale`, as FFmpeg (bicubic), or `integer`: equal on every device (bilinear).
        init: the initialization segment of a segment without moov.
        max_bytes, max_requests, options: as of `open_source`.

    A context manager. Several threads may use it, one after the other. It can be pickled and works
    after a fork if `what` is a path, a URL or bytes: the other process opens the file again.

    Raises:
        TrackNotFound: there is no such track of pictures, or there are pictures in several periods.
        UndecodableMedia: it is encrypted, or there is no decoder for it.
        SourceChanged: the index is of another file.
        MissingExtra: PyAV is not installed (`pip install 'fragdex[media]'`).
        ValueError: an invalid option; and what indexing and reading the source raise.

    >>> import fragdex
    >>> frames = fragdex.Frames("fixtures/open-gop.mp4")
    >>> len(frames), frames[3].data.shape, frames[3].time.seconds
    (50, (48, 64, 3), 0.12)
    >>> batch = frames.at([1.5, 0.25, 1.5])
    >>> batch.data.shape, batch.numbers.tolist(), batch.times.tolist()
    ((3, 48, 64, 3), [37, 6, 37], [1.48, 0.24, 1.48])
    """

    def __init__(
        self,
        what: MediaOrIndex,
        index: Index | str | os.PathLike[str] | None = None,
        track: int | Track | None = None,
        *,
        format: PixelFormat = "rgb",
        crop: Box | None = None,
        size: tuple[int, int] | None = None,
        rotate: bool = True,
        period: int | None = None,
        order: Order = "presentation",
        hidden: bool = False,
        damaged: Literal["raise", "blank"] = "raise",
        threads: int | None = None,
        cache: int | FrameCache = CACHE,
        device: str | None = None,
        output: OutputLibrary = "numpy",
        conversion: Conversion = "swscale",
        init: bytes | None = None,
        max_bytes: int | None = None,
        max_requests: int | None = None,
        **options: Unpack[SourceOptions],
    ) -> None:
        check_options("fragdex.Frames", options, _OWN)
        Converter(format, size)
        for name, value, known in (
            ("order", order, ("presentation", "decode")),
            ("damaged", damaged, ("raise", "blank")),
            ("device", (device or DEVICES[0]).partition(":")[0], DEVICES),
            ("conversion", conversion, CONVERSIONS),
        ):
            if value not in known:
                raise ValueError(f"{name} is one of {', '.join(known)}, not {value!r}")
        frame_cache = cache if isinstance(cache, FrameCache) else FrameCache(cache)
        if (threads is not None and threads < 1) or frame_cache.limit < 0:
            raise ValueError("at least one thread, and a cache of 0 bytes or more")
        given = index if isinstance(index, Index | None) else open_index(index)
        self._index, self._what = known_and_media(what, given)
        self._track_wanted, self._init, self._period = track, init, period
        self._format, self._size, self._rotate = format, size, rotate
        self._crop = None if crop is None else crop_of(crop)
        self._order: Order = order
        self._hidden, self._blank = hidden, damaged == "blank"
        self._lib = library_of(output, device)
        self._output, self._conversion = output, conversion
        if conversion == "integer":
            IntegerConverter(NumpyArrays(), format, size)
        self._threads = threads
        self._cache, self._device = frame_cache, device
        self._is_cache_shared = frame_cache is cache
        self._budget = {"max_bytes": max_bytes, "max_requests": max_requests}
        self._options = options
        self._open()

    def _open(self) -> None:
        source = self._source()
        self._pid, self._lock = os.getpid(), RLock()
        stays = self._device is not None and self._lib is not None and self._lib.is_on_device
        try:
            self._opened = FrameTrack(
                source, self._index, self._track_wanted, period=self._period, init=self._init,
                order=self._order, hidden=self._hidden,
                pool=self._cache.decoders if self._device is None else pool_of(self._device),
                device=self._device, stays=stays,
            )  # fmt: skip
        except BaseException:
            if source is not self._what:
                source.close()
            raise
        self._index = self._opened.index
        threads = self._threads or self._usual_threads()
        self._reader = FrameReader(self._opened, threads=threads, cache=self._cache)
        self._converters: list[Any] = []
        self._rests = False

    def _usual_threads(self) -> int:
        decoders = self._opened.decoders
        if decoders.device is None:
            is_told = hasattr(os, "sched_getaffinity")
            own = len(os.sched_getaffinity(0)) if is_told else os.cpu_count() or 1
            return min(own, MOST_THREADS)
        return decoders.side_by_side() if decoders.stays else THREADS_OF_DEVICE

    def _source(self) -> Source:
        return open_source(self._what, **self._budget, **self._options)

    def _ready(self) -> FrameTrack:
        """What is known of the track: made again in another process than the last."""
        if self._pid != os.getpid():
            if self._is_foreign():
                self._pid = os.getpid()
            else:
                self._open()
        return self._opened

    def _awake(self) -> FrameTrack:
        """The track with its file open."""
        self._ready()
        if self._rests:
            source = self._source()
            try:
                self._opened.go_on(source)
            except BaseException:
                source.close()
                raise
            self._rests = False
        return self._opened

    def _is_foreign(self) -> bool:
        return isinstance(self._what, Source) or hasattr(self._what, "read")

    # -- what there is

    @property
    def index(self) -> Index:
        """Index of the file, with every sample of the track."""
        return self._ready().index

    @property
    def source(self) -> Source:
        """The open file; its counts say what was read."""
        return self._awake().source

    @property
    def device(self) -> str | None:
        """The hardware that decodes, or None: the processor."""
        return self._ready().decoders.device

    @property
    def decoded(self) -> int:
        """Pictures that were decoded so far, wanted or not."""
        self._ready()
        return self._reader.decoded

    @property
    def track(self) -> Track:
        """The track whose frames these are."""
        return self._ready().track

    def __len__(self) -> int:
        return len(self._ready().numbering)

    @property
    def ticks(self) -> Int64:
        """When each frame is shown, exact, in units of 1 / `timescale` seconds."""
        return self._ready().numbering.ticks

    @property
    def timescale(self) -> int:
        """Ticks a second."""
        return self._ready().numbering.timescale

    @property
    def times(self) -> npt.NDArray[np.float64]:
        """When each frame is shown, in seconds of presentation time."""
        return self.ticks / self.timescale

    @property
    def durations(self) -> npt.NDArray[np.float64]:
        """For how long each frame is shown, in seconds: until the next one."""
        return self._ready().numbering.durations / self.timescale

    @property
    def key_frames(self) -> Int64:
        """Numbers of the frames that are sync samples."""
        return np.flatnonzero(self._ready().numbering.sync).astype(np.int64)

    def closest_key_frame(self, time: TimeLike) -> int:
        """The sync sample that is shown nearest to a time; of two as near, the earlier one.

        Raises:
            UndecodableMedia: no frame is a sync sample.
        """
        number = self._ready().numbering.closest_key_frame(time)
        if number is None:
            raise UndecodableMedia(f"track {self.track.id} has no sync sample among its frames")
        return number

    def numbers_at(self, times: Iterable[TimeLike] | npt.ArrayLike) -> Int64:
        """The frame that is shown at each time: before the first that one, after the end the last.

        Args:
            times: an array of seconds, or times as `Track.seek` takes them.

        Raises:
            ValueError, TypeError: what is not a time.
            IndexError: there are no frames.
        """
        if not len(self):
            raise IndexError("there are no frames")
        return self._ready().numbering.numbers_at(times)

    # -- as one array: dask, xarray and napari

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Frames, height, width, channels: the shape of all frames as one array.

        Height and width are those of `size`, of `crop`, or of the sample entry (`full_size`).

        Raises:
            TypeError: frames are planes (`format="yuv"`), which are several arrays.
        """
        if self._format == "yuv":
            raise TypeError('planes are several arrays: give format="rgb" or "gray"')
        width, height = self._result_size()
        return len(self), height, width, 1 if self._format.startswith("gray") else 3

    @property
    def full_size(self) -> tuple[int, int]:
        """Width and height of frames before `crop` and `size`: as the sample entry says, turned.

        >>> import fragdex
        >>> fragdex.Frames("fixtures/open-gop.mp4", crop=(8, 8, 24, 24)).full_size
        (64, 48)
        """
        info = self.track.info
        width, height = info.width or 0, info.height or 0
        turned = self._rotate and (info.rotation or 0) % 180 == 90
        return (height, width) if turned else (width, height)

    @property
    def ndim(self) -> int:
        """Number of axes: frames, height, width, channels."""
        return 4

    @property
    def dtype(self) -> np.dtype[np.uint8] | np.dtype[np.uint16]:
        """uint8, or uint16 of `rgb16` and `gray16`."""
        return np.dtype(np.uint16) if self._format.endswith("16") else np.dtype(np.uint8)

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
        """`count` sync samples, spread evenly over those of the video; all, if it has fewer.

        Only these are read and decoded: pictures for a language model, or an overview.

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

    # -- frames

    @overload
    def __getitem__(self, key: int) -> Frame: ...
    @overload
    def __getitem__(self, key: tuple[object, ...]) -> PixelArray: ...  # type: ignore[overload-overlap]
    @overload
    def __getitem__(self, key: Selection) -> FrameBatch: ...
    def __getitem__(
        self, key: int | tuple[object, ...] | Selection
    ) -> Frame | FrameBatch | PixelArray:
        """A frame by its number, or many by a slice or a list of numbers; negative from the end.

        Args:
            key: a number, a slice, an array of numbers or of bool; or a tuple as numpy takes it
                (no None), of which the first is that of frames: then an array is returned.

        Raises:
            IndexError: there is no such frame.
            UndecodableMedia: a frame is damaged, or frames have several sizes and `size` is None.
            And what reading the source raises.
        """
        if isinstance(key, tuple):
            return self._array(key)
        numbers, one = self._numbers(key)
        batch = self._batch(numbers)
        return batch[0] if one else batch

    @overload
    def at(self, times: npt.NDArray[np.generic]) -> FrameBatch: ...  # type: ignore[overload-overlap]
    @overload
    def at(self, times: TimeLike) -> Frame: ...  # type: ignore[overload-overlap]
    @overload
    def at(self, times: Iterable[TimeLike]) -> FrameBatch: ...
    def at(self, times: TimeLike | Iterable[TimeLike] | npt.ArrayLike) -> Frame | FrameBatch:
        """The frame that is shown at a time, or those of many times, in their order.

        Args:
            times: one time as `Track.seek` takes it, or a list or array of them. Before the
                first frame that one is given, after the end the last.

        Raises: as `numbers_at` and `[]`.
        """
        given: Any = times  # types say too little of what numpy takes
        if isinstance(given, str) or (not hasattr(given, "__len__") and np.ndim(given) == 0):
            return self._batch(self.numbers_at([given]))[0]
        return self._batch(self.numbers_at(given))

    def between(
        self, start: TimeLike, stop: TimeLike, *, fps: float | Fraction | None = None
    ) -> FrameBatch:
        """The frames that are shown from `start` to `stop` (exclusive).

        Args:
            fps: None: each frame once; else the frames at `start`, `start + 1 / fps` and so on.

        Raises:
            ValueError: stop lies before start, fps is not positive, or too many frames are asked
                for.
            And as `[]`.
        """
        first, last = exact_time(start), exact_time(stop)
        if last < first:
            raise ValueError(f"the span ends ({stop}) before it starts ({start})")
        if fps is None:
            return self._batch(self._ready().numbering.numbers_between(first, last))
        rate = exact_time(fps)
        if isinstance(first, float) or isinstance(last, float) or isinstance(rate, float):
            raise ValueError("times and rates are finite")
        if rate <= 0 or (last - first) * rate > MOST_FRAMES:
            raise ValueError(f"fps is above 0, for {MOST_FRAMES:,} frames at most")
        count = -(-(last - first) * rate // 1)
        return self._batch(self.numbers_at([first + n / rate for n in range(int(count))]))

    def plan(self, numbers: int | Selection) -> FramePlan:
        """What `frames[numbers]` costs, without reading anything.

        >>> import fragdex
        >>> plan = fragdex.Frames("fixtures/open-gop.mp4").plan([40, 41])
        >>> plan.frames, plan.decoded, plan.runs
        (2, 6, 1)
        """
        chosen, _ = self._numbers(numbers)
        return self._reader.plan(self._awake().numbering.sample[chosen].tolist())

    def take(
        self,
        numbers: int | Selection,
        *,
        boxes: Sequence[Box] | None = None,
        soon: int | Selection | None = None,
    ) -> FrameBatch:
        """Frames by their numbers, each cut to a box of its own, such as an object that moves.

        Args:
            numbers: of the frames, as `[]` takes them; a frame with several boxes repeats, and is
                decoded once.
            boxes: of each, in place of `crop`; None: as `crop` says. Of several sizes they need
                `size`.
            soon: frames that later calls will want, the next ones first. Those in the same groups
                of pictures are decoded now and held, as far as half of the cache has room.

        Raises:
            ValueError: there are more or fewer boxes than frames, or one is invalid.
            UndecodableMedia: a box reaches out of the pictures, or boxes have several sizes.
            And as `[]`.

        >>> import fragdex
        >>> frames = fragdex.Frames("fixtures/open-gop.mp4", size=(16, 16))
        >>> boxes = [(0, 0, 32, 32), (9, 7, 63, 41), (1, 0, 25, 24)]
        >>> frames.take([4, 4, 5], boxes=boxes).data.shape
        (3, 16, 16, 3)
        """
        return self._batch(self._numbers(numbers)[0], boxes=boxes, soon=soon)

    def fill(
        self,
        rows: Rows,
        places: Sequence[int],
        numbers: int | Selection,
        *,
        boxes: Sequence[Box] | None = None,
        soon: int | Selection | None = None,
    ) -> FrameBatch:
        """Decode frames into rows of arrays that several calls or videos fill.

        Args:
            rows: the arrays (`fragdex.frames.Rows`), of numpy's.
            places: the row of each frame.
            numbers: of the frames, as `[]` takes them.
            boxes, soon: as `take` has them.

        Returns: the batch; its `data` are all rows.

        Raises:
            ValueError: frames are arrays of another library (`output=`).
            UndecodableMedia: frames have another size than the rows.
            And as `[]`.

        >>> import fragdex
        >>> rows = fragdex.frames.Rows(3)
        >>> frames = fragdex.Frames("fixtures/open-gop.mp4")
        >>> batch = frames.fill(rows, [2, 0], [7, 9])
        >>> batch.numbers.tolist(), rows.arrays[0].shape
        ([7, 9], (3, 48, 64, 3))
        """
        if self._lib is not None:
            raise ValueError(f"rows are arrays of numpy, and frames are of {self._output}")
        return self._batch(self._numbers(numbers)[0], rows, places, boxes, soon)

    def read_ahead(self, numbers: int | Selection, soon: int | Selection | None = None) -> None:
        """Read the bytes of frames, for the next call, which decodes them.

        Args:
            numbers, soon: what that call is given.

        Raises: what reading raises.

        >>> import fragdex
        >>> frames = fragdex.Frames("fixtures/open-gop.mp4")
        >>> frames.read_ahead([40, 41])
        >>> before = frames.source.requests
        >>> frames[[40, 41]].numbers.tolist(), frames.source.requests - before
        ([40, 41], 0)
        """
        with self._lock:
            opened = self._awake()
            sample = opened.numbering.sample
            self._reader.read_ahead(
                sample[self._numbers(numbers)[0]].tolist(),
                None if soon is None else sample[self._numbers(soon)[0]].tolist(),
            )

    def __iter__(self) -> Iterator[Frame]:
        """Every frame in order, decoded ahead by some."""
        width, height = self._result_size()
        step = max(16, PIXELS_AT_ONCE // ((width * height or 640 * 360) * 3))
        for first in range(0, len(self), step):
            yield from self._batch(np.arange(first, min(first + step, len(self))))

    def audio(self, start: TimeLike, stop: TimeLike, **options: Unpack[AudioOptions]) -> SoundArray:
        """The sound of a span, as `fragdex.decoding.audio` gives it, with its options."""
        with self._lock:
            return audio(self.index, self.source, start, stop, **options)

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

    def _array(self, key: tuple[Any, ...]) -> PixelArray:
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
            shown, declared = (" × ".join(map(str, one[2:0:-1])) for one in (data.shape, shape))
            raise UndecodableMedia(
                f"pictures of track {self.track.id} are {shown}, and its sample entry says "
                f"{declared}",
                advice="give the size that all are scaled to: size=(width, height)",
            )
        if isinstance(key[0], slice):
            first: Any = slice(None)
        else:
            first = 0 if one else np.arange(len(numbers))
        chosen: PixelArray = data[(first, *key[1:])]
        return chosen

    def _result_size(self) -> tuple[int, int]:
        return self._size or (self.full_size if self._crop is None else self._crop.size)

    def _batch(
        self,
        numbers: Int64,
        rows: Rows | None = None,
        places: Sequence[int] | None = None,
        boxes: Sequence[Box] | None = None,
        soon: int | Selection | None = None,
    ) -> FrameBatch:
        crops = None if boxes is None else [crop_of(box) for box in boxes]
        if crops is not None and len(crops) != len(numbers):
            raise ValueError(f"{len(crops)} boxes for {len(numbers)} frames")
        with self._lock:
            numbering = self._awake().numbering
            wanted = numbering.sample[numbers].tolist()
            gathering = self._gathering(wanted, rows, places, crops or self._crop)
            later = None if soon is None else numbering.sample[self._numbers(soon)[0]].tolist()
            missing = self._reader.read(wanted, gathering.give, later)
            reasons = {n: missing[sample] for n, sample in enumerate(wanted) if sample in missing}
            if reasons and not self._blank:
                raise self._undecodable(numbers, reasons)
            size = crops[0].size if crops and not self._size else self._result_size()
            data = gathering.arrays(reasons, size)
        return FrameBatch(
            data[0] if len(data) == 1 else data,
            numbers,
            numbering.ticks[numbers],
            numbering.durations[numbers],
            numbering.timescale,
            reasons,
        )

    def _gathering(
        self,
        samples: list[int],
        rows: Rows | None,
        places: Sequence[int] | None,
        crops: Crops,
    ) -> Gathering:
        format, size, rotate, lib = self._format, self._size, self._rotate, self._lib

        def made() -> Any:
            if self._conversion == "integer":
                return IntegerConverter(lib or NumpyArrays(), format, size, rotate=rotate)
            if lib is None:
                return Converter(format, size, rotate=rotate)
            return ArrayConverter(lib, format, size, rotate=rotate)

        if lib is None:
            return Gathering(samples, self._converters, made, rows, places, crops)
        return ArrayGathering(lib, samples, self._converters, made, crops)

    def _undecodable(self, numbers: Int64, reasons: dict[int, str]) -> UndecodableMedia:
        bad = sorted({int(numbers[n]) for n in reasons})
        shown = ", ".join(map(str, bad[:10])) + (f" and {len(bad) - 10} more" if bad[10:] else "")
        times = self.times[bad]
        ends = times + self.durations[bad]
        return UndecodableMedia(
            f"frames {shown} of track {self.track.id} cannot be decoded: {reasons[min(reasons)]}",
            start=float(times.min()),
            stop=float(ends.max()),
            advice='choose others, or pass damaged="blank"',
        )

    # -- processes

    def __getstate__(self) -> dict[str, Any]:
        if self._is_foreign():
            raise TypeError(
                "frames of an open source cannot go to another process: give its path or URL"
            )
        own = ("_lock", "_opened", "_reader", "_converters", "_pid", "_lib")
        track = self._opened.track
        wanted = {"_index": self._opened.index, "_track_wanted": track.id}
        if len(self._opened.index.periods) > 1:
            wanted["_track_wanted"] = track
        return {k: v for k, v in self.__dict__.items() if k not in own} | wanted

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lib = library_of(self._output, self._device)
        self._open()

    def rest(self) -> None:
        """Let go of the open file, and of what is held, except in a cache that several share.

        The next call opens the file again.
        """
        self._let_go(pictures=not self._is_cache_shared)
        if not self._is_foreign():
            self._opened.source.close()
            self._rests = True

    def close(self) -> None:
        """Close the source, if it was opened here, and give back what is held."""
        self._let_go()
        if self._opened.source is not self._what:
            self._opened.source.close()

    def _let_go(self, *, pictures: bool = True) -> None:
        self._reader.forget(pictures=pictures)
        self._converters.clear()
        if not self._is_cache_shared:
            self._cache.decoders.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        name = self._opened.source.name
        return f"<Frames of {name!r}, track {self.track.id}: {len(self)} frames>"


_OWN = (
    "format", "crop", "size", "rotate", "period", "order", "hidden", "damaged", "threads", "cache",
    "device", "output", "conversion", "init",
)  # fmt: skip
