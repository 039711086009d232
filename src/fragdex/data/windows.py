"""Windows of frames of the films of a set, by number; the last few films stay open."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from fragdex.data.video_set import VideoSet
from fragdex.fragments.table import Int64
from fragdex.frames import FrameCache, Frames
from fragdex.frames.arrays import OutputLibrary
from fragdex.frames.pixels import Converter, PixelFormat
from fragdex.seeking.times import exact_time

RESTING_BYTES: Final = 40_000_000
"""Of all films that rest: their indexes, numbers and times."""
_BYTES_OF_FILM, _BYTES_OF_FRAME = 20_000, 100


class OpenFilms:
    """Films of a set, opened when they are wanted.

    Args:
        videos: the set.
        cache: bytes of pictures and samples that all of them hold.
        most: films whose files are open, and decoders that are kept. Other films rest: making
            ready what is known of them would take longer than decoding a window.
        options: as `fragdex.Frames` takes them.

    Nothing that is open goes to another process.
    """

    def __init__(self, videos: VideoSet, cache: int, most: int, options: Mapping[str, Any]) -> None:
        self._videos, self._most, self._options = videos, most, dict(options)
        self._cache = FrameCache(cache, most * options.get("threads", 1) + 1)
        self._open: OrderedDict[int, Frames] = OrderedDict()
        self._resting: OrderedDict[int, Frames] = OrderedDict()
        self._resting_bytes = 0
        self._pid = os.getpid()

    def frames(self, video: int) -> Frames:
        """The frames of a film.

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
    """All windows of n frames of the films of a set: a map-style data set.

    A window is a dict of what torch's default collation puts into batches:

    | Key | Value |
    |---|---|
    | `frames` | the pixels, as `fragdex.Frames` gives them: (n, height, width, channels) |
    | `times` | when each frame is shown, seconds, float64 |
    | `numbers` | of the frames in their film, int64 |
    | `video`, `window` | number of the film in the set, and of the window in this data set |
    | `cost` | int64: decoded frames, bytes, requests; the first of those read together has all |
    | `valid` | only with `damaged="blank"`: bool, whether each frame could be decoded |

    Args:
        videos: the set.
        frames: n.
        stride: every so many frames of the film, or of the rate.
        step: frames (of the film, or of the rate) from the start of a window to that of the next;
            None: n × stride, so that windows of a film follow one another.
        fps: None: the frames of the film; else frames a second, each the one that is shown then.
        transform: called with each window, gives what is handed out in its place.
        format, size, rotate, damaged, device, output: as `fragdex.Frames` takes them. Films of
            several sizes need `size` to be put into batches. CUDA does not survive a fork: workers
            that decode on it are started by `spawn` or `forkserver`.
        threads: that decode; 1 where several workers do.
        cache: bytes of pictures and samples that are held in each process.
        open_films: films whose files are open in each process, and decoders that are kept.

    It goes to other processes, by fork too; each opens films for itself. `[i]` gives one window;
    `__getitems__`, which torch's loader calls, several, and frames that windows share or that lie
    in one group of pictures are decoded once.

    Raises:
        ValueError: a number that is none.

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
            And what opening and reading the film raise.
        """
        return self.__getitems__([number])[0]

    def __getitems__(self, numbers: Sequence[int]) -> list[Any]:
        """Several windows, in the order that is asked for."""
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
        """The number of the film that a window is of."""
        return int(np.searchsorted(self._ends, number, side="right"))

    def groups(self) -> npt.NDArray[np.int64]:
        """For each window, which group of pictures its first frame is in; counted over all films.

        Reads the groups of each film from the set.
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
        """Windows of one film, read and decoded together."""
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
        """Close the films that are open in this process."""
        self._films.close()

    def __repr__(self) -> str:
        return f"<Windows of {self.length} frames: {len(self)} of {len(self.videos)} films>"


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
