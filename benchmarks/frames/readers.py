"""Readers of frames that take part: each opens a film and gives frames as (n, height, width, 3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

__all__ = ["READERS", "Reader"]


class Reader(Protocol):
    """One of those who take part."""

    def __init__(self, what: str, **options: Any) -> None: ...

    def frames(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Pixels and times of frames in any order, by one call."""

    def window(self, start: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Pixels and times of consecutive frames."""


class Fragdex:
    """`fragdex.Frames`; `index` is a saved one."""

    def __init__(self, what: str, index: str | None = None, **options: Any) -> None:
        import fragdex

        self.film = fragdex.Frames(what, index, **options)

    def frames(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        batch = self.film[numbers]
        return batch.data, batch.times

    def window(self, start: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        batch = self.film[start : start + count]
        return batch.data, batch.times


class Torchcodec:
    """torchcodec's VideoDecoder; `mapping` is a file of its custom frame mappings."""

    def __init__(
        self, what: str, mapping: str | None = None, threads: int = 1, mode: str = "exact"
    ) -> None:
        from torchcodec.decoders import VideoDecoder

        more = {} if mapping is None else {"custom_frame_mappings": Path(mapping).read_text()}
        self.film = VideoDecoder(
            what, dimension_order="NHWC", num_ffmpeg_threads=threads, seek_mode=mode, **more
        )

    def frames(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        batch = self.film.get_frames_at(numbers.tolist())
        return batch.data.numpy(), batch.pts_seconds.numpy()

    def window(self, start: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        batch = self.film.get_frames_in_range(start, start + count)
        return batch.data.numpy(), batch.pts_seconds.numpy()


class ByWindows:
    """torchcodec on windows that fragdex takes out of the film."""

    def __init__(self, what: str, index: str | None = None) -> None:
        import fragdex

        self.source = fragdex.open_source(what)
        opened = fragdex.index(self.source) if index is None else fragdex.open_index(index)
        self.index, self.video = opened, opened.video

    def frames(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError("a window is of consecutive frames")

    def window(self, start: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        from torchcodec.decoders import VideoDecoder

        window = self.index.window(self.video, start, start + count)
        film = VideoDecoder(window.mp4(self.source), dimension_order="NHWC", num_ffmpeg_threads=1)
        return film.get_frames_at(window.wanted.tolist()).data.numpy(), window.times


class WindowsAhead(ByWindows):
    """The same, the next windows being read while one is decoded."""

    def windows(self, starts: Sequence[int], count: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Pixels and times of several windows."""
        from torchcodec.decoders import VideoDecoder

        from fragdex.muxing.window import read_ahead

        chosen = (self.index.window(self.video, start, start + count) for start in starts)
        for window, data in read_ahead(chosen, self.source):
            film = VideoDecoder(data, dimension_order="NHWC", num_ffmpeg_threads=1)
            yield film.get_frames_at(window.wanted.tolist()).data.numpy(), window.times


class Decord:
    """decord's VideoReader."""

    def __init__(self, what: str, threads: int = 0) -> None:
        import decord

        self.film = decord.VideoReader(what, num_threads=threads)

    def frames(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        data = self.film.get_batch(numbers.tolist()).asnumpy()
        return data, self.film.get_frame_timestamp(numbers.tolist())[:, 0]

    def window(self, start: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        return self.frames(np.arange(start, start + count))


class Pyav:
    """PyAV as its users seek: to the key frame before, then on to the frame; rates are constant."""

    def __init__(self, what: str, threads: int = 0) -> None:
        import av

        # Without kept connections libavformat takes the end of one answer for the end of the file.
        options = {"multiple_requests": "1"} if what.startswith("http") else {}
        self.film = av.open(what, options=options)
        self.stream = self.film.streams.video[0]
        self.stream.thread_type = "AUTO"
        self.stream.thread_count = threads
        self.tick = 1 / (self.stream.average_rate * self.stream.time_base)

    def frames(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        parts = [self.window(int(number), 1) for number in numbers]
        return np.concatenate([one[0] for one in parts]), np.concatenate([one[1] for one in parts])

    def window(self, start: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        first = int(start * self.tick)
        self.film.seek(first, stream=self.stream)
        pixels, times = [], []
        for frame in self.film.decode(self.stream):
            if frame.pts >= first:
                pixels.append(frame.to_ndarray(format="rgb24"))
                times.append(frame.time)
                if len(times) == count:
                    break
        return np.stack(pixels), np.array(times)


READERS: dict[str, type[Reader]] = {
    "fragdex": Fragdex, "torchcodec": Torchcodec, "windows": ByWindows,
    "windows-ahead": WindowsAhead, "decord": Decord, "PyAV": Pyav,
}  # fmt: skip
