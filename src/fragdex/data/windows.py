"""Windows of frames of the videos of a set, by number; the last few videos stay open."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from fractions import Fraction
from importlib import import_module
from threading import Lock
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from fragdex.byterange import ByteRange
from fragdex.data.shared_batches import Make
from fragdex.data.video_set import VideoSet
from fragdex.data.window_order import Lengths
from fragdex.fragments.table import Int64
from fragdex.frames import FrameCache, Frames, Rows
from fragdex.frames.arrays import Conversion, OutputLibrary, library_of
from fragdex.frames.crop import Box, crop_of
from fragdex.frames.decoders import begin_anew_in_forks
from fragdex.frames.pixels import Converter, PixelFormat
from fragdex.seeking.times import exact_time

RESTING_BYTES: Final = 40_000_000
"""Of all videos that rest: their indexes, numbers and times."""
_BYTES_OF_FILM, _BYTES_OF_FRAME = 20_000, 100


class OpenFilms:
    """Videos of a set, opened when they are needed.

    Args:
        videos: opens the frames of a video by its number, as `VideoSet.frames`.
        cache: bytes of pictures and samples that all of them hold.
        most: videos whose files are open, and decoders that are kept. Other videos rest: making
            ready what is known of them would take longer than decoding a window.
        options: as `fragdex.Frames` takes them.

    Nothing that is open goes to another process.
    """

    def __init__(
        self, videos: Callable[..., Frames], cache: int, most: int, options: Mapping[str, Any]
    ) -> None:
        self._videos, self._most, self._options = videos, most, dict(options)
        self._cache = FrameCache(cache, most * (options.get("threads") or 1) + 1)
        self._open: OrderedDict[int, Frames] = OrderedDict()
        self._resting: OrderedDict[int, Frames] = OrderedDict()
        self._resting_bytes = 0
        self._pid = os.getpid()

    def frames(self, video: int) -> Frames:
        """The frames of a video."""
        if self._pid != os.getpid():
            # Files and decoders of the other process are not touched.
            self._open, self._resting = OrderedDict(), OrderedDict()
            self._resting_bytes = 0
            self._pid = os.getpid()
        opened = self._open.pop(video, None)
        if opened is None:
            opened = self._resting.pop(video, None)
            self._resting_bytes -= 0 if opened is None else _bytes_of(opened)
            while len(self._open) >= self._most:
                self._rest(*self._open.popitem(last=False))
        if opened is None:
            opened = self._videos(video, cache=self._cache, **self._options)
        self._open[video] = opened
        return opened

    def _rest(self, video: int, frames: Frames) -> None:
        frames.rest()
        self._resting[video] = frames
        self._resting_bytes += _bytes_of(frames)
        while self._resting_bytes > RESTING_BYTES:
            _, oldest = self._resting.popitem(last=False)
            self._resting_bytes -= _bytes_of(oldest)
            oldest.close()

    def close(self) -> None:
        """Close all of them."""
        for films in (self._open, self._resting):
            while films:
                films.popitem()[1].close()
        self._resting_bytes = 0

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_open": OrderedDict(), "_resting": OrderedDict(), "_pid": -1}


def _bytes_of(frames: Frames) -> int:
    return _BYTES_OF_FILM + _BYTES_OF_FRAME * len(frames)


Sample = dict[str, Any]
Cropping = Callable[[int, tuple[int, int]], Box]
"""Gives the box of a window, by its number and width and height of its video."""
_BYTES_OF_PIXEL: Final = {"rgb": 3, "gray": 1, "rgb16": 6, "gray16": 2, "yuv": 3}
CACHE: Final = 64 << 20
OPEN_FILMS: Final = 8


class _Reading(NamedTuple):
    """What is read of one video for several windows.

    Attributes:
        places: of the windows, in what is requested.
        boxes: of each of these; None: all of them as the frames are.
        soon: frames of the video that later calls will want; None: not known.
        before: what its frames had cost before.
    """

    video: int
    places: list[int]
    frames: Frames
    numbers: Int64
    boxes: list[Box] | None
    soon: Int64 | None
    before: Counts

    def cost(self) -> Int64:
        """Pictures decoded, bytes and requests since then."""
        return np.subtract(counts_of(self.frames), self.before, dtype=np.int64)


class Windows(Sequence[Sample]):
    """All windows of n frames of the videos of a set: a map-style data set.

    A window is a dict of what torch's default collation puts into batches:

    | Key | Value |
    |---|---|
    | `frames` | the pixels, as from `fragdex.Frames`: (n, height, width, channels) |
    | `times` | when each frame is shown, seconds, float64 |
    | `numbers` | of the frames in their video, int64 |
    | `video`, `window` | number of the video in the set, and of the window in this data set |
    | `cost` | int64: decoded frames, bytes, requests; the first of those read together has all |
    | `crop` | only where that is a function: int64, what it returned |
    | `valid` | only with `damaged="blank"`: bool, whether each frame could be decoded |

    Args:
        videos: the set.
        frames: n.
        stride: distance between frames, in frames of the video or of the rate.
        step: frames (of the video, or of the rate) from the start of a window to that of the next;
            None: n × stride, so that windows of a video follow one another.
        fps: None: the frames of the video; otherwise frames a second, each the one shown then.
        transform: called with each window; its result replaces the window.
        crop: as in `fragdex.Frames`; or a function that gives the box of a window: called with the
            number of the window and (width, height) of its video, in the process that decodes.
        format, size, rotate, damaged, device, output, conversion: as in `fragdex.Frames`. Videos of
            several sizes need `size` for batches. CUDA does not survive a fork: workers
            that decode on it are started by `spawn` or `forkserver`.
        threads: that decode each video; None: 1; on a device as many as `fragdex.Frames` has.
        cache: bytes of pictures and samples that are kept in each process.
        open_films: files that are open in each process, and decoders that are kept. On a device,
            videos that are decoded at once; meanwhile the bytes of as many more are read, of each
            up to 32 MiB.

    It can be sent to other processes, by fork as well; each opens the files itself. `[i]` returns
    one window; `__getitems__`, which torch's loader calls, returns several, and decodes frames that
    windows share, or that are in one group of pictures, only once.

    Raises:
        ValueError: an invalid number.

    >>> import os, tempfile
    >>> from fragdex.data import VideoSet, write_set
    >>> path = os.path.join(tempfile.mkdtemp(), "set.parquet")
    >>> _ = write_set("fixtures/open-gop.mp4", path)
    >>> windows = Windows(VideoSet(path), frames=8, stride=2)
    >>> len(windows), windows[1]["frames"].shape, windows[1]["numbers"].tolist()
    (3, (8, 48, 64, 3), [16, 18, 20, 22, 24, 26, 28, 30])
    >>> Windows(VideoSet(path), frames=4, fps=5)[1]["times"].tolist()
    [0.8, 1.0, 1.2, 1.4]
    """

    def __init__(
        self,
        videos: VideoSet,
        frames: int,
        *,
        stride: int = 1,
        step: int | None = None,
        fps: float | Fraction | None = None,
        transform: Callable[[Sample], Any] | None = None,
        format: PixelFormat = "rgb",
        crop: Box | Cropping | None = None,
        size: tuple[int, int] | None = None,
        rotate: bool = True,
        damaged: Literal["raise", "blank"] = "raise",
        device: str | None = None,
        output: OutputLibrary = "numpy",
        conversion: Conversion = "swscale",
        threads: int | None = None,
        cache: int = CACHE,
        open_films: int = OPEN_FILMS,
    ) -> None:
        step = frames * stride if step is None else step
        for name, number in (
            ("frames", frames), ("stride", stride), ("step", step), ("threads", threads),
            ("open_films", open_films),
        ):  # fmt: skip
            if number is not None and number < 1:
                raise ValueError(f"{name} is 1 or more, not {number!r}")
        rate = None if fps is None else Fraction(exact_time(fps))
        if rate is not None and rate <= 0:
            raise ValueError(f"fps is above 0, not {fps!r}")
        Converter(format, size)
        if threads is None and device is None:
            threads = 1
        self.videos, self.length, self.stride, self.step, self.fps = (
            videos, frames, stride, step, rate,
        )  # fmt: skip
        self._transform = transform
        self._blank = damaged == "blank"
        self._format, self._size, self._device, self.output = format, size, device, output
        self._cache = cache
        self._cropping: Cropping | None = crop if callable(crop) else None
        self._crop = None if crop is None or callable(crop) else crop_of(crop)
        options = {
            "format": format, "crop": self._crop, "size": size, "rotate": rotate,
            "damaged": damaged, "device": device, "output": output, "conversion": conversion,
            "threads": threads,
        }  # fmt: skip
        # On a device as many more are open: those whose bytes are read while some are decoded.
        most = open_films if device is None else 2 * open_films
        self._films, self._open_films = OpenFilms(videos.frames, cache, most, options), open_films
        self._ahead = ReadAhead(open_films)
        span = (frames - 1) * stride + 1
        counts = np.zeros(len(videos), np.int64)
        for numbers, spans in videos.spans():
            lengths = spans.frames
            if rate is not None:
                whole = (spans.end - spans.start).astype(object) * rate.numerator
                lengths = -(-whole // (spans.timescale.astype(object) * rate.denominator))
            counts[numbers] = np.maximum((lengths - span) // step + 1, 0)
        self._ends: Int64 = np.cumsum(counts, out=counts)

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def __getitem__(self, number: Any) -> Any:
        """One window; negative from the end.

        Raises:
            IndexError: there is no such window.
            And what opening and reading the video raise.
        """
        return self.__getitems__([number])[0]

    def __getitems__(self, numbers: Sequence[int]) -> list[Any]:
        """Several windows, in the order that is requested."""
        return self.several(numbers)

    def several(self, numbers: Sequence[int], soon: Sequence[int] | None = None) -> list[Any]:
        """The same.

        Args:
            soon: windows that later calls will want, the next ones first. What they share groups of
                pictures with is decoded now: as many of them as half of the cache has room for are
                held. None: not known.
        """
        checked = [self._checked(int(number)) for number in numbers]
        samples: list[Any] = [None] * len(checked)

        def work(reading: _Reading) -> None:
            windows = [checked[place] for place in reading.places]
            for place, sample in zip(reading.places, self._of(reading, windows), strict=True):
                samples[place] = sample

        self._each(checked, soon, work)
        lib = library_of(self.output, self._device)
        if lib is not None:  # threads of ours made them
            lib.hand_over([array for one in samples for array in _arrays(one["frames"])])
        return samples if self._transform is None else [self._transform(one) for one in samples]

    def batch(
        self,
        numbers: Sequence[int],
        make: Make = np.empty,
        soon: Sequence[int] | None = None,
    ) -> Sample:
        """Several windows as one dict: each array has one axis more, of windows.

        Without `transform` frames are decoded to their place in the batch, and not copied there.

        Args:
            numbers: of the windows, in the order of the batch.
            make: called with shape and dtype, as `numpy.empty`: makes the large arrays, which may
                lie in shared memory.
            soon: as `several` has it.

        Raises: as `[]`; and if windows of several sizes are requested without `size`.
        """
        if self._transform is not None or self.output != "numpy":
            return stacked(self.several(numbers, soon), make)
        checked = [self._checked(int(number)) for number in numbers]
        count, length = len(checked), self.length
        rows = Rows(count * length, make)
        times, shown = np.empty((count, length)), np.empty((count, length), np.int64)
        cost, valid = np.zeros((count, 3), np.int64), np.ones((count, length), np.bool_)
        videos, crops = np.empty(count, np.int64), np.zeros((count, 4), np.int64)

        def work(reading: _Reading) -> None:
            places = reading.places
            into = (np.array(places)[:, None] * length + np.arange(length)).ravel()
            batch = reading.frames.fill(
                rows, into.tolist(), reading.numbers, boxes=reading.boxes, soon=reading.soon
            )
            cost[places[0]] = reading.cost()
            videos[places] = reading.video
            if reading.boxes is not None:
                crops[places] = reading.boxes[::length]
            times[places] = batch.times.reshape(-1, length)
            shown[places] = batch.numbers.reshape(-1, length)
            for place in batch.missing:
                valid.reshape(-1)[into[place]] = False

        self._each(checked, soon, work)
        planes = tuple(array.reshape(count, length, *array.shape[1:]) for array in rows.arrays)
        sample: Sample = {
            "frames": planes[0] if len(planes) == 1 else planes,
            "times": times,
            "numbers": shown,
            "video": videos,
            "window": np.array(checked, np.int64),
            "cost": cost,
        }
        if self._cropping is not None:
            sample["crop"] = crops
        return sample | {"valid": valid} if self._blank else sample

    def reads(self, numbers: Sequence[int]) -> dict[str, tuple[ByteRange, ...]]:
        """Bytes that are read of each video for these windows, at most; by its path in the set."""
        reads = {}
        checked = [self._checked(int(number)) for number in numbers]
        for video, windows in self._videos_of(checked, len(checked)).items():
            frames = self._films.frames(video)
            wanted, _ = self._wanted(video, frames, windows, None)
            reads[self.videos[video].path] = frames.plan(wanted).reads
        return reads

    def batch_bytes(self, count: int) -> int:
        """Bytes of the pixels of so many windows of the largest video, as its header says.

        Of `yuv`, those of 4:2:0 with more than 8 bits.
        """
        size = self._size or (None if self._crop is None else self._crop.size)
        if size is not None:
            pixels = size[0] * size[1]
        else:
            sides = ((video.width or 0) * (video.height or 0) for video in self.videos)
            pixels = max(sides, default=0)
        return count * self.length * pixels * _BYTES_OF_PIXEL[self._format]

    def video_of(self, number: int) -> int:
        """The number of the video that a window belongs to."""
        return int(np.searchsorted(self._ends, number, side="right"))

    def first_frame(self, number: int) -> int:
        """The number of a window's first frame; with `fps`, of the first one at that rate."""
        video = self.video_of(number)
        return (number - (int(self._ends[video - 1]) if video else 0)) * self.step

    def runs(self, together: int) -> Iterator[Lengths]:
        """The lengths of runs of windows, in sequence, some at a time; they sum up to `len(self)`.

        The windows of a run begin in one group of pictures of one video, and are `together` at
        most. Reads the groups of all videos from the set.
        """
        kind = np.min_scalar_type(together)
        lengths, counts, order = [], [], []
        ascending = self.videos.ascending
        for numbers, video, begins in self.videos.group_starts(by_time=self.fps is not None):
            windows = self._ends[numbers] - np.where(numbers, self._ends[numbers - 1], 0)
            rate = 1.0 if self.fps is None else float(self.fps)
            inside, count = _run_lengths(windows, self.step, video, begins * rate, together)
            if ascending:
                yield inside.astype(kind)
                continue
            lengths.append(inside.astype(kind))
            counts.append(count)
            order.append(numbers)
        if lengths:
            yield _in_order(*map(np.concatenate, (lengths, counts, order)))

    def _checked(self, number: int) -> int:
        if not -len(self) <= number < len(self):
            raise IndexError(f"there is no window {number}: there are {len(self)}")
        return number % len(self)

    def _videos_of(self, windows: Sequence[int], most: int) -> dict[int, list[int]]:
        """Windows by their videos: the first ones."""
        by_video: dict[int, list[int]] = {}
        for number in windows:
            video = self.video_of(number)
            if video in by_video or len(by_video) < most:
                by_video.setdefault(video, []).append(number)
        return by_video

    def _by_video(self, soon: Sequence[int] | None) -> dict[int, list[int]] | None:
        """The next windows by their videos, as many as half of the cache has room for."""
        if soon is None:
            return None
        room, by_video = self._cache // 2, dict[int, list[int]]()
        for number in soon:
            video = self.videos[self.video_of(number)]
            room -= self.length * (video.width or 0) * (video.height or 0) * 3 // 2
            if room < 0:
                if not by_video:
                    return None  # nothing can be held
                break
            by_video.setdefault(self.video_of(number), []).append(number)
        return by_video

    def _each(
        self,
        windows: list[int],
        soon: Sequence[int] | None,
        work: Callable[[_Reading], None],
    ) -> None:
        """Do some work for each video of windows.

        On a device for several at once, so that its engines are busy. Else one after the other;
        while one is decoded, the bytes of the next one are read, if it is remote.
        """
        by_video: dict[int, list[int]] = {}
        for place, number in enumerate(windows):
            by_video.setdefault(self.video_of(number), []).append(place)
        left, later = list(by_video.items()), self._by_video(soon)
        if self._device is not None:
            self._each_on_device(left, windows, soon, work)
            return
        waiting = self._reading(*left.pop(0), windows, later) if left else None
        with ThreadPoolExecutor(1, THREADS) as pool:  # a thread only where it is used
            while waiting is not None:
                now, waiting, ahead = waiting, None, None
                if left and self._open_films > 1:
                    waiting = self._reading(*left.pop(0), windows, later)
                    if waiting.frames.source.remote:
                        ahead = pool.submit(
                            waiting.frames.read_ahead, waiting.numbers, waiting.soon
                        )
                work(now)
                if ahead is not None:
                    ahead.exception()  # what failed is read again, and fails where it is wanted
                if left and waiting is None:
                    waiting = self._reading(*left.pop(0), windows, later)

    def _each_on_device(
        self,
        videos: list[tuple[int, list[int]]],
        windows: list[int],
        soon: Sequence[int] | None,
        work: Callable[[_Reading], None],
    ) -> None:
        """The same for groups of videos, as many at once as are open.

        While one group is decoded, the bytes of the next are read; with the last, those of the
        next call's first group, which continues after this call.
        """
        most, later = self._open_films, self._by_video(soon)
        groups = [videos[first : first + most] for first in range(0, len(videos), most)]
        following = [
            ({video: [windows[place] for place in places] for video, places in group}, later)
            for group in groups[1:]
        ]
        next_call, rest = (soon or [])[: len(windows)], (soon or [])[len(windows) :]
        following.append((self._videos_of(next_call, most), self._by_video(rest)))
        try:
            with ThreadPoolExecutor(most, "fragdex-videos") as pool:
                for group, ahead in zip(groups, following, strict=False):
                    before = self._ahead.finish()
                    readings = [self._reading(*one, windows, later, before) for one in group]
                    self._work_and_read(pool, work, readings, *ahead)
        except BaseException:
            self._ahead.finish()
            raise

    def _work_and_read(
        self,
        pool: ThreadPoolExecutor,
        work: Callable[[_Reading], None],
        readings: list[_Reading],
        ahead: dict[int, list[int]],
        soon: dict[int, list[int]] | None,
    ) -> None:
        """Do the work for a group of videos; meanwhile read bytes."""
        both = {
            reading.video: self._wanted(reading.video, reading.frames, ahead[reading.video], soon)
            for reading in readings
            if reading.video in ahead
        }

        def work_and_go_on(reading: _Reading) -> None:
            work(reading)
            # One call at a time uses the frames of a video.
            if reading.video in both:
                self._ahead.read(reading.video, reading.frames, *both[reading.video])

        working = [pool.submit(work_and_go_on, reading) for reading in readings]
        for video in [video for video in ahead if video not in both]:
            with suppress(Exception):  # it is opened again, and fails where it is wanted
                frames = self._films.frames(video)
                self._ahead.read(video, frames, *self._wanted(video, frames, ahead[video], soon))
        for done in working:
            done.result()
        self._ahead.end_group()

    def _reading(
        self,
        video: int,
        places: list[int],
        windows: list[int],
        soon: dict[int, list[int]] | None,
        before: Mapping[int, Counts] | None = None,
    ) -> _Reading:
        frames = self._films.frames(video)
        numbers, later = self._wanted(video, frames, [windows[place] for place in places], soon)
        boxes = None
        if self._cropping is not None:
            each = [self._cropping(windows[place], frames.full_size) for place in places]
            boxes = [box for box in each for _ in range(self.length)]
        counts = counts_of(frames) if before is None else before.get(video, counts_of(frames))
        return _Reading(video, places, frames, numbers, boxes, later, counts)

    def _wanted(
        self, video: int, frames: Frames, windows: list[int], soon: dict[int, list[int]] | None
    ) -> tuple[Int64, Int64 | None]:
        """The frames of windows of a video, and those that are wanted later."""
        first = int(self._ends[video - 1]) if video else 0

        def numbers_of(chosen: list[int]) -> Int64:
            each = [self._numbers(video, frames, window - first) for window in chosen]
            return np.concatenate(each) if each else np.zeros(0, np.int64)

        return numbers_of(windows), None if soon is None else numbers_of(soon.get(video, []))

    def _of(self, reading: _Reading, windows: list[int]) -> list[Sample]:
        """Windows of one video, read and decoded together."""
        boxes, length = reading.boxes, self.length
        batch = reading.frames.take(reading.numbers, boxes=boxes, soon=reading.soon)
        video, cost = reading.video, reading.cost()
        times = batch.times
        samples = []
        for place, window in enumerate(windows):
            part = slice(place * length, (place + 1) * length)
            data = batch.data
            sample: Sample = {
                "frames": tuple(p[part] for p in data) if isinstance(data, tuple) else data[part],
                "times": times[part],
                "numbers": batch.numbers[part],
                "video": video,
                "window": window,
                "cost": cost if not place else np.zeros_like(cost),
            }
            if boxes is not None:
                sample["crop"] = np.array(boxes[part.start], np.int64)
            if self._blank:
                inside = range(part.start, part.stop)
                sample["valid"] = np.array([n not in batch.missing for n in inside])
            samples.append(sample)
        return samples

    def _numbers(self, video: int, frames: Frames, window: int) -> Int64:
        places: Int64 = window * self.step + np.arange(self.length) * self.stride
        if self.fps is None:
            return places
        start = Fraction(self.videos[video].start, self.videos[video].timescale)
        at: Int64 = frames.numbers_at([start + int(place) / self.fps for place in places])
        return at

    def stop_reading_ahead(self) -> None:
        """Wait for what is read ahead of the next call, if it does not come."""
        self._ahead.finish()

    def close(self) -> None:
        """Close the files that are open in this process."""
        self.stop_reading_ahead()
        self._films.close()

    def __repr__(self) -> str:
        return f"<Windows of {self.length} frames: {len(self)} of {len(self.videos)} videos>"


def _run_lengths(
    windows: Int64, step: int, video: Int64, begins: npt.NDArray[Any], together: int
) -> tuple[Int64, Int64]:
    """The lengths of the runs of some videos one after the other, and how many each video has.

    Args:
        windows: how many each video has.
        video, begins: of each group of pictures, the place of its video, and where it begins.
    """
    owner = np.repeat(np.arange(len(windows)), windows)
    first = np.cumsum(windows) - windows
    start = (np.arange(len(owner)) - first[owner]) * step
    sorts = np.lexsort((begins, video))
    # The groups of all videos on one line, those of each after those of the video before.
    space = max(start.max(initial=0), begins.max(initial=0)) + 1
    line = video[sorts] * space + begins[sorts]
    group = np.searchsorted(line, owner * space + start, side="right")
    change = np.append(True, (owner[1:] != owner[:-1]) | (group[1:] != group[:-1]))[: len(owner)]
    begun = np.flatnonzero(change)
    inside = np.arange(len(owner)) - begun[np.cumsum(change) - 1]
    starts = np.flatnonzero(change | (inside % together == 0))
    lengths = np.diff(np.append(starts, len(owner)))
    return lengths, np.bincount(owner[starts], minlength=len(windows))


def _in_order(lengths: Lengths, counts: Int64, numbers: Int64) -> Lengths:
    """The lengths of runs in the order of their videos.

    Args:
        counts, numbers: how many each of these videos has, in the same order.
    """
    order = np.argsort(numbers)
    first = (np.cumsum(counts) - counts)[order]
    counts = counts[order]
    before = np.cumsum(counts) - counts
    return lengths[np.repeat(first - before, counts) + np.arange(len(lengths))]


class Costs:
    """What the samples of a loop cost, summed up.

    Attributes:
        samples: that were added.
        frames: that they have.
        decoded: frames that were decoded for them.
        bytes: that were read.
        requests: reads; of a remote file requests.

    >>> costs = Costs()
    >>> costs.add({"numbers": np.zeros((2, 16)), "cost": np.array([[40, 5000, 1], [0, 0, 0]])})
    >>> costs
    <2 samples of 32 frames; a sample: 20.0 decoded frames, 2500 bytes, 0.5 requests>
    """

    def __init__(self) -> None:
        self.samples = self.frames = self.decoded = self.bytes = self.requests = 0

    def add(self, sample: dict[str, Any]) -> None:
        """Add a sample of `Windows`, or a batch of them, as arrays or tensors."""
        cost = np.asarray(sample["cost"]).reshape(-1, 3)
        self.samples += len(cost)
        self.frames += int(np.asarray(sample["numbers"]).size)
        decoded, size, requests = cost.sum(0).tolist()
        self.decoded += decoded
        self.bytes += size
        self.requests += requests

    def __repr__(self) -> str:
        count = max(self.samples, 1)
        return (
            f"<{self.samples} samples of {self.frames} frames; a sample: "
            f"{self.decoded / count:.1f} decoded frames, {self.bytes / count:.0f} bytes, "
            f"{self.requests / count:.1f} requests>"
        )


def _arrays(pixels: Any) -> tuple[Any, ...]:
    """Pixels as arrays: one, or one for each plane."""
    return pixels if isinstance(pixels, tuple) else (pixels,)


def stacked(samples: list[Sample], make: Make = np.empty) -> Sample:
    """The samples as one of arrays; they lose what they held, so that it is not there twice."""

    def stack(values: list[Any]) -> Any:
        if isinstance(values[0], tuple):
            return tuple(stack(list(parts)) for parts in zip(*values, strict=True))
        if hasattr(values[0], "__dlpack__") and not isinstance(values[0], np.ndarray | np.generic):
            # Of torch or CuPy: they stay where they lie.
            return import_module(type(values[0]).__module__.partition(".")[0]).stack(values)
        values = [np.asarray(value) for value in values]
        kinds = {(value.shape, value.dtype) for value in values}
        if len(kinds) > 1:
            return np.stack(values)  # makes them alike, or says what does not fit
        ((shape, dtype),) = kinds
        whole = make((len(values), *shape), dtype)
        for place in reversed(range(len(values))):
            whole[place] = values.pop()
        return whole

    return {name: stack([sample.pop(name) for sample in samples]) for name in list(samples[0])}


# Bytes of videos that are read while others are decoded.

THREADS: Final = "fragdex-read-ahead"
"""What the names of its threads begin with."""

Counts = tuple[int, int, int]
"""Pictures decoded, bytes and requests of a video so far."""


def counts_of(frames: Frames) -> Counts:
    """What the frames of a video have cost so far."""
    return frames.decoded, frames.source.bytes_read, frames.source.requests


class ReadAhead:
    """Reads the bytes of some videos in the background; one group of them at a time.

    Of each video at most `fragdex.frames.frame_reader.READ_AT_ONCE` bytes. Its threads end when
    they have read. It goes to other processes empty, by fork as well.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._start()
        begin_anew_in_forks(self)

    def _start(self) -> None:
        self._lock = Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._before: dict[int, Counts] = {}

    def begin_anew(self) -> None:
        """Read nothing, in a process that was forked: its threads stayed in the other one."""
        self._start()

    def read(self, video: int, frames: Frames, numbers: Int64, soon: Int64 | None = None) -> None:
        """Begin to read what `frames.take(numbers, soon=soon)` needs.

        Args:
            video: by which it is known; nothing else uses its frames until `finish`.
        """
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._threads, THREADS)
            self._before[video] = counts_of(frames)
            # What it raises stays there: it is read again where it is wanted, and fails there.
            self._pool.submit(frames.read_ahead, numbers, soon)

    def end_group(self) -> None:
        """Let the threads end when they have read: nothing is added until `finish`."""
        if self._pool is not None:
            self._pool.shutdown(wait=False)

    def finish(self) -> dict[int, Counts]:
        """Wait until everything is read, and its threads have ended.

        Returns: by video, what its frames had cost before.
        """
        pool, before = self._pool, self._before
        self._pool, self._before = None, {}
        if pool is not None:
            pool.shutdown()
        return before

    def __reduce__(self) -> tuple[type[ReadAhead], tuple[int]]:
        return ReadAhead, (self._threads,)
