"""Windows of frames of the videos of a set, by number; the last few videos stay open."""

from __future__ import annotations

import os
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from importlib import import_module
from typing import Any, Final, Literal, Protocol

import numpy as np
import numpy.typing as npt

from fragdex.data.video_set import VideoSet
from fragdex.fragments.table import Int64
from fragdex.frames import FrameCache, Frames
from fragdex.frames.arrays import OutputLibrary
from fragdex.frames.pixels import Converter, PixelFormat
from fragdex.seeking.times import exact_time

RESTING_BYTES: Final = 40_000_000
"""Of all videos that rest: their indexes, numbers and times."""
_BYTES_OF_FILM, _BYTES_OF_FRAME = 20_000, 100


class Films(Protocol):
    """What gives the frames of videos by number; `VideoSet` is one."""

    def frames(self, number: int, **options: Any) -> Frames:
        """The frames of a video, newly opened."""


class OpenFilms:
    """Videos of a set, opened when they are needed.

    Args:
        videos: the set.
        cache: bytes of pictures and samples that all of them hold.
        most: videos whose files are open, and decoders that are kept. Other videos rest: making
            ready what is known of them would take longer than decoding a window.
        options: as `fragdex.Frames` takes them.

    Nothing that is open goes to another process.
    """

    def __init__(self, videos: Films, cache: int, most: int, options: Mapping[str, Any]) -> None:
        self._videos, self._most, self._options = videos, most, dict(options)
        self._cache = FrameCache(cache, most * options.get("threads", 1) + 1)
        self._open: OrderedDict[int, Frames] = OrderedDict()
        self._resting: OrderedDict[int, Frames] = OrderedDict()
        self._resting_bytes = 0
        self._pid = os.getpid()

    def frames(self, video: int) -> Frames:
        """The frames of a video.

        Raises: as `VideoSet.frames`.
        """
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
            opened = self._videos.frames(video, cache=self._cache, **self._options)
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
CACHE: Final = 64 << 20
OPEN_FILMS: Final = 8


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
    | `valid` | only with `damaged="blank"`: bool, whether each frame could be decoded |

    Args:
        videos: the set.
        frames: n.
        stride: distance between frames, in frames of the video or of the rate.
        step: frames (of the video, or of the rate) from the start of a window to that of the next;
            None: n × stride, so that windows of a video follow one another.
        fps: None: the frames of the video; otherwise frames a second, each the one shown then.
        transform: called with each window; its result replaces the window.
        format, size, rotate, damaged, device, output: as in `fragdex.Frames`. Videos of
            several sizes need `size` for batches. CUDA does not survive a fork: workers
            that decode on it are started by `spawn` or `forkserver`.
        threads: that decode; use 1 with several workers.
        cache: bytes of pictures and samples that are kept in each process.
        open_films: files that are open in each process, and decoders that are kept.

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
        size: tuple[int, int] | None = None,
        rotate: bool = True,
        damaged: Literal["raise", "blank"] = "raise",
        device: str | None = None,
        output: OutputLibrary = "numpy",
        threads: int = 1,
        cache: int = CACHE,
        open_films: int = OPEN_FILMS,
    ) -> None:
        step = frames * stride if step is None else step
        for name, number in (
            ("frames", frames), ("stride", stride), ("step", step), ("threads", threads),
            ("open_films", open_films),
        ):  # fmt: skip
            if number < 1:
                raise ValueError(f"{name} is 1 or more, not {number!r}")
        rate = None if fps is None else Fraction(exact_time(fps))
        if rate is not None and rate <= 0:
            raise ValueError(f"fps is above 0, not {fps!r}")
        Converter(format, size)
        self.videos, self.length, self.stride, self.step, self.fps = (
            videos, frames, stride, step, rate,
        )  # fmt: skip
        self._transform = transform
        self._blank = damaged == "blank"
        options = {
            "format": format, "size": size, "rotate": rotate, "damaged": damaged,
            "device": device, "output": output, "threads": threads,
        }  # fmt: skip
        self._films = OpenFilms(videos, cache, open_films, options)
        span = (frames - 1) * stride + 1
        lengths = [
            video.frames if rate is None
            else -(-(video.end - video.start) * rate // video.timescale)
            for video in videos
        ]  # fmt: skip
        counts = [max(0, (int(length) - span) // step + 1) for length in lengths]
        self._ends: Int64 = np.cumsum(counts, dtype=np.int64)

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
        checked = [self._checked(int(number)) for number in numbers]
        by_film: dict[int, list[int]] = {}
        for place, number in enumerate(checked):
            by_film.setdefault(self.video_of(number), []).append(place)
        samples: list[Any] = [None] * len(checked)
        for video, places in by_film.items():
            for place, sample in zip(
                places, self._of(video, [checked[place] for place in places]), strict=True
            ):
                samples[place] = sample
        return samples if self._transform is None else [self._transform(one) for one in samples]

    def video_of(self, number: int) -> int:
        """The number of the video that a window belongs to."""
        return int(np.searchsorted(self._ends, number, side="right"))

    def first_frame(self, number: int) -> int:
        """The number of a window's first frame; with `fps`, of the first one at that rate."""
        video = self.video_of(number)
        return (number - (int(self._ends[video - 1]) if video else 0)) * self.step

    def groups(self) -> npt.NDArray[np.int64]:
        """For each window, the group of pictures of its first frame; counted over all videos.

        Reads the groups of each video from the set.
        """
        spans = []
        before = 0
        first = 0
        for number, end in enumerate(self._ends.tolist()):
            starts = np.arange(end - first, dtype=np.int64) * self.step
            groups = self.videos.groups(number) if end > first else None
            if groups is not None:
                begins = np.sort(groups.frame).astype(np.float64)
                if self.fps is not None:
                    video = self.videos[number]
                    begins = np.sort(groups.start - video.start) * float(self.fps / video.timescale)
                inside = np.searchsorted(begins, starts, side="right")
                spans.append(before + inside)
                before += len(begins) + 1
            first = end
        return np.concatenate(spans) if spans else np.zeros(0, np.int64)

    def _checked(self, number: int) -> int:
        if not -len(self) <= number < len(self):
            raise IndexError(f"there is no window {number}: there are {len(self)}")
        return number % len(self)

    def _of(self, video: int, windows: list[int]) -> list[Sample]:
        """Windows of one video, read and decoded together."""
        frames = self._films.frames(video)
        before = frames.decoded, frames.source.bytes_read, frames.source.requests
        first = int(self._ends[video - 1]) if video else 0
        numbers = [self._numbers(video, frames, window - first) for window in windows]
        batch = frames[np.concatenate(numbers)]
        after = frames.decoded, frames.source.bytes_read, frames.source.requests
        cost = np.subtract(after, before, dtype=np.int64)
        times, count = batch.times, self.length
        samples = []
        for place, window in enumerate(windows):
            part = slice(place * count, (place + 1) * count)
            data = batch.data
            sample: Sample = {
                "frames": tuple(p[part] for p in data) if isinstance(data, tuple) else data[part],
                "times": times[part],
                "numbers": batch.numbers[part],
                "video": video,
                "window": window,
                "cost": cost if not place else np.zeros_like(cost),
            }
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

    def close(self) -> None:
        """Close the files that are open in this process."""
        self._films.close()

    def __repr__(self) -> str:
        return f"<Windows of {self.length} frames: {len(self)} of {len(self.videos)} videos>"


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


# The windows of this process in the order of a sampler: an iterable data set.
#
# Windows are shuffled, those of one group of pictures together.


TOGETHER: Final = 4


class WindowSampler:
    """The numbers of windows in a shuffled order, as a sampler of torch's DataLoader.

    Up to `together` neighbouring windows that begin in one group of pictures stay in sequence, so
    that the frames before them are decoded once for all; these runs are shuffled over all videos.
    The order depends only on the seed, the epoch and the windows, on every machine. Each rank gets
    its own part of the same length.

    Args:
        windows: the data set.
        seed: 0 or more.
        shuffle: False: in the order of the set.
        together: windows of a group that are kept together; 1: every window for itself. A batch
            size that is a multiple keeps them in one batch.
        rank, ranks: which part, of how many.
        uneven: what is done with windows that do not divide among the ranks: `drop` the last ones
            of the order, or `repeat` its first ones.

    Raises:
        ValueError: an invalid number or word.

    A loop over it goes through one epoch; the next loop is the next epoch, unless `set_epoch`
    says which one.

    >>> import os, tempfile
    >>> from fragdex.data import VideoSet, write_set
    >>> path = os.path.join(tempfile.mkdtemp(), "set.parquet")
    >>> _ = write_set("fixtures/open-gop.mp4", path)
    >>> sampler = WindowSampler(Windows(VideoSet(path), frames=4), seed=1)
    >>> list(sampler)
    [6, 7, 8, 0, 1, 2, 9, 10, 11, 3, 4, 5]
    """

    def __init__(
        self,
        windows: Windows,
        *,
        seed: int = 0,
        shuffle: bool = True,
        together: int = TOGETHER,
        rank: int = 0,
        ranks: int = 1,
        uneven: Literal["drop", "repeat"] = "drop",
    ) -> None:
        if seed < 0 or together < 1:
            raise ValueError("seed is 0 or more, together 1 or more")
        if not 0 <= rank < ranks:
            raise ValueError(f"rank is 0 to {ranks - 1}, not {rank}")
        if uneven not in ("drop", "repeat"):
            raise ValueError(f"uneven is drop or repeat, not {uneven!r}")
        self.together = together
        self._windows, self._seed, self._shuffle = windows, seed, shuffle
        self._rank, self._ranks, self._uneven = rank, ranks, uneven
        self._epoch = self._begun = self._start = self._taken = 0
        self._runs: Int64 | None = None

    @property
    def epoch(self) -> int:
        """The epoch of the current loop, or of the next one."""
        return self._epoch

    def set_epoch(self, epoch: int) -> None:
        """Begin the next loop at the start of this epoch."""
        if epoch != self._epoch:
            self._epoch = self._begun = epoch
            self._start = self._taken = 0

    def __len__(self) -> int:
        """Windows of an epoch of this rank."""
        whole, rest = divmod(len(self._windows), self._ranks)
        return whole + (rest > 0 and self._uneven == "repeat")

    def order(self) -> Int64:
        """The windows of this rank in this epoch."""
        order = self._whole()
        count = len(self)
        if count * self._ranks > len(order):
            order = np.resize(order, count * self._ranks)
        return order[self._rank * count : (self._rank + 1) * count]

    def __iter__(self) -> Iterator[int]:
        epoch, order = self._epoch, self.order()
        self._begun = epoch
        start, self._start = self._start, 0
        self._taken = start
        for number in order[start:].tolist():
            self._taken += 1
            yield number
        if self._epoch == epoch:
            self._epoch, self._taken = epoch + 1, 0

    def state_dict(self, used: int | None = None) -> dict[str, Any]:
        """Where the loop is.

        Args:
            used: windows of this epoch that were used, counted from its start; None: those that
                were taken from here. A loader with workers takes more ahead than it hands out:
                say how many you used.
        """
        if used is None:
            epoch, position = self._epoch, self._taken
        elif used >= len(self):
            epoch, position = self._begun + 1, 0
        else:
            epoch, position = self._begun, used
        return {"epoch": epoch, "taken": position, "of": self._of()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume where another one was.

        Raises:
            ValueError: its order was another one: of other windows, seed, ranks or options.
        """
        if dict(state["of"]) != self._of():
            differ = [f"{k}: {v!r} there, {self._of().get(k)!r} here"
                      for k, v in dict(state["of"]).items() if self._of().get(k) != v]  # fmt: skip
            raise ValueError("the state is of another order; " + "; ".join(differ))
        self._epoch = self._begun = int(state["epoch"])
        self._start = self._taken = int(state["taken"])

    def _of(self) -> dict[str, Any]:
        return {
            "windows": len(self._windows), "seed": self._seed, "shuffle": self._shuffle,
            "together": self.together, "rank": self._rank, "ranks": self._ranks,
            "uneven": self._uneven,
        }  # fmt: skip

    def _whole(self) -> Int64:
        """All windows in the order of this epoch, over all ranks."""
        count = len(self._windows)
        if not self._shuffle or not count:
            return np.arange(count, dtype=np.int64)
        if self._runs is None:
            self._runs = _runs(self._windows.groups(), self.together)
        # Raw numbers of a bit generator are the same in every version of numpy (NEP 19).
        bits = np.random.PCG64(np.random.SeedSequence([self._seed, self._epoch]))
        keys = bits.random_raw(int(self._runs[-1]) + 1)
        return np.argsort(np.argsort(np.argsort(keys, kind="stable"))[self._runs], kind="stable")


def _runs(groups: Int64, together: int) -> Int64:
    """For each window the number of its run.

    >>> _runs(np.array([1, 1, 1, 2, 2, 7]), 2).tolist()
    [0, 0, 1, 2, 2, 3]
    """
    changes = np.append(True, groups[1:] != groups[:-1])
    first = np.flatnonzero(changes)
    inside = np.arange(len(groups)) - first[np.cumsum(changes) - 1]
    return np.cumsum(changes | (inside % together == 0)) - 1


class WindowStream:
    """Windows, or batches of them, one after the other.

    Args:
        windows: the data set.
        sampler: their order; None: `WindowSampler(windows)`.
        batch: None: windows; otherwise dicts of this many, with stacked arrays. The last batch may
            be smaller.
        drop_last: leave out a smaller last batch.

    In a worker of torch's DataLoader it gives every n-th batch (without `batch`, every n-th run of
    windows that are kept together). With `batch` and `DataLoader(stream.dataset(),
    batch_size=None, num_workers=n)` the loader gives the same batches for every n.

    >>> import os, tempfile
    >>> from fragdex.data import VideoSet, write_set
    >>> path = os.path.join(tempfile.mkdtemp(), "set.parquet")
    >>> _ = write_set("fixtures/open-gop.mp4", path)
    >>> windows = Windows(VideoSet(path), frames=4)
    >>> for batch in WindowStream(windows, WindowSampler(windows, seed=1), batch=8):
    ...     print(batch["frames"].shape, batch["window"].tolist())
    (8, 4, 48, 64, 3) [6, 7, 8, 0, 1, 2, 9, 10]
    (4, 4, 48, 64, 3) [11, 3, 4, 5]
    """

    def __init__(
        self,
        windows: Windows,
        sampler: WindowSampler | None = None,
        *,
        batch: int | None = None,
        drop_last: bool = False,
    ) -> None:
        if batch is not None and batch < 1:
            raise ValueError(f"batch is 1 or more, not {batch}")
        self.windows = windows
        self.sampler = WindowSampler(windows) if sampler is None else sampler
        self._batch, self._drop_last = batch, drop_last
        self._shard: tuple[int, int] | None = None
        self._given = self._skip = 0

    def shard(self, worker: int, workers: int) -> WindowStream:
        """The part of one of several processes.

        Raises:
            ValueError: there is no such worker.
        """
        if not 0 <= worker < workers:
            raise ValueError(f"worker is 0 to {workers - 1}, not {worker}")
        stream = WindowStream(
            self.windows, self.sampler, batch=self._batch, drop_last=self._drop_last
        )
        stream._shard = worker, workers
        return stream

    def set_epoch(self, epoch: int) -> None:
        """Begin the next loop at the start of this epoch."""
        self.sampler.set_epoch(epoch)
        self._given = self._skip = 0

    def __iter__(self) -> Iterator[Any]:
        worker, workers = self._shard or _torch_worker()
        where = self.sampler.state_dict()
        epoch, order = where["epoch"], self.sampler.order()[where["taken"] :]
        size = self._batch or self.sampler.together
        skip, self._skip = self._skip, 0
        self._given = skip
        for first in range(worker * size, len(order), workers * size):
            numbers = order[first : first + size].tolist()
            if self._drop_last and self._batch is not None and len(numbers) < size:
                break
            items = len(numbers) if self._batch is None else 1
            if skip >= items:
                skip -= items
                continue
            windows: list[Any] = self.windows.__getitems__(
                numbers[skip:] if self._batch is None else numbers
            )
            if self._batch is not None:
                windows = [_stacked(windows)]
            skip = 0
            while windows:  # nothing of them is held while the next ones are made
                self._given += 1
                yield windows.pop(0)
        if self.sampler.epoch == epoch:
            self.set_epoch(epoch + 1)

    def state_dict(self, used: int | None = None) -> dict[str, Any]:
        """Where the loop is.

        Args:
            used: windows of this epoch that were used by all workers together, counted from its
                start; None: what this process gave. Only the first holds where workers took some
                ahead, and the number of workers may differ then.
        """
        if used is not None:
            return {"sampler": self.sampler.state_dict(used), "given": 0, "workers": None}
        shard = self._shard or _torch_worker()
        return {"sampler": self.sampler.state_dict(), "given": self._given, "workers": shard[1]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume where another one was.

        Raises:
            ValueError: its order was another one, or it was divided among more or fewer workers.
        """
        workers = (self._shard or _torch_worker())[1]
        if state["workers"] not in (None, workers):
            raise ValueError(
                f"the state is of one of {state['workers']} workers, and here are {workers}: "
                "take state_dict(used=…) of the process that uses the windows"
            )
        self.sampler.load_state_dict(state["sampler"])
        self._given = self._skip = int(state["given"])

    def dataset(self) -> Any:
        """This stream as a `torch.utils.data.IterableDataset`; imports torch.

        Raises:
            ImportError: torch is not installed.
        """
        return _torch_dataset(self)


def _stacked(samples: list[Sample]) -> Sample:
    """The samples as one of arrays; they lose what they held, so that it is not there twice."""

    def stack(name: str) -> Any:
        values = [sample.pop(name) for sample in samples]
        if isinstance(values[0], tuple):
            return tuple(np.stack(parts) for parts in zip(*values, strict=True))
        values = [np.asarray(value) for value in values]
        kinds = {(value.shape, value.dtype) for value in values}
        if len(kinds) > 1:
            return np.stack(values)  # makes them alike, or says what does not fit
        ((shape, dtype),) = kinds
        stacked = np.empty((len(values), *shape), dtype)
        for place in reversed(range(len(values))):
            stacked[place] = values.pop()
        return stacked

    return {name: stack(name) for name in list(samples[0])}


def _torch_worker() -> tuple[int, int]:
    """Which worker of torch's loader this process is, and of how many."""
    torch_data = sys.modules.get("torch.utils.data")
    info = torch_data.get_worker_info() if torch_data is not None else None
    return (0, 1) if info is None else (info.id, info.num_workers)


def _torch_dataset(stream: WindowStream) -> Any:
    # No extra of this library brings torch: who calls this has it.
    base: Any = import_module("torch.utils.data").IterableDataset

    class WindowDataset(base):  # type: ignore[misc]
        """The windows of a stream."""

        def __iter__(self) -> Iterator[Any]:
            return iter(stream)

        def set_epoch(self, epoch: int) -> None:
            stream.set_epoch(epoch)

        def state_dict(self) -> dict[str, Any]:
            return stream.state_dict()

        def load_state_dict(self, state: Mapping[str, Any]) -> None:
            stream.load_state_dict(state)

        def __reduce_ex__(self, protocol: Any) -> Any:
            # A class that is made here has no name that another process could find.
            return _torch_dataset, (stream,)

    return WindowDataset()
