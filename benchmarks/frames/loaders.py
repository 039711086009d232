"""Loaders of torch with workers, and the memory of one: the tasks of child.py that need a set."""

from __future__ import annotations

import itertools
import resource
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from fragdex.data import VideoSet, WindowLoader, Windows, WindowSampler, WindowStream

__all__ = ["TASKS"]

WINDOW = 16


class Clips(Dataset):
    """The windows of a set by torchcodec, as its users write it: each worker keeps its decoders."""

    def __init__(self, windows: Windows, folder: Path) -> None:
        ends = np.cumsum([video.frames // WINDOW for video in windows.videos])
        self._places = [
            (str(folder / video.path), place * WINDOW)
            for video in windows.videos
            for place in range(video.frames // WINDOW)
        ]
        assert len(self._places) == ends[-1] == len(windows)
        self._open: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, number: int) -> torch.Tensor:
        from torchcodec.decoders import VideoDecoder

        path, start = self._places[number]
        if path not in self._open:
            self._open[path] = VideoDecoder(path, dimension_order="NHWC")
        return self._open[path][start : start + WINDOW]


BATCH = 8
SUMMED = 2
"""Batches whose pixels are compared."""


def loader(job: dict[str, Any]) -> dict[str, Any]:
    """So many windows through a loader with workers, in the order of a sampler.

    `how`: `items` of a map-style set, as torch collates them; `stream`: batches in shared memory by
    torch's loader; `own`: the same by ours. Pixels are copied once, as to a device.
    """
    windows = Windows(VideoSet(job["set"], follow=True), frames=WINDOW, **job.get("options", {}))
    sampler = WindowSampler(windows, seed=job["seed"], together=job["together"])
    order = sampler.order()[-job["windows"] :].tolist()
    state = sampler.state_dict(len(sampler) - len(order))
    # What workers would import is imported before they are forked: no work of a reader.
    if job["who"] == "torchcodec":
        import torchcodec.decoders  # noqa: F401
    else:
        import av  # noqa: F401
    workers = job["workers"]

    def batches() -> Iterator[Any]:
        if job["how"] == "items":
            data: Any = windows
            if job["who"] == "torchcodec":
                data = Clips(windows, Path(job["set"]).parent)
            yield from DataLoader(data, batch_size=BATCH, sampler=order, num_workers=workers)
            return
        sampler.load_state_dict(state)
        stream = WindowStream(windows, sampler, batch=BATCH)
        if job["how"] == "own":
            with WindowLoader(stream, workers=workers) as own:
                yield from own
            return
        yield from DataLoader(stream.dataset(workers), batch_size=None, num_workers=workers)

    staging: list[np.ndarray] = []
    before = _used()
    clock = time.perf_counter()
    count = 0
    for batch in batches():
        planes = _planes(batch)
        if not staging:
            staging = [np.empty_like(plane) for plane in planes]
        for to, plane in zip(staging, planes, strict=True):
            np.copyto(to[: len(plane)], plane)
        count += len(planes[0])
    seconds = time.perf_counter() - clock
    used = _used() - before
    assert count == len(order)
    sums = []
    for batch in itertools.islice(batches(), SUMMED):
        for plane in _planes(batch):
            sums += [zlib.crc32(np.ascontiguousarray(one)) for one in plane]
    return {"seconds": seconds, "cpu": used, "windows": count, "sums": sums}


def _planes(batch: Any) -> list[np.ndarray]:
    """The pixels of a batch of tensors or arrays."""
    frames = batch if isinstance(batch, torch.Tensor) else batch["frames"]
    return [np.asarray(one) for one in (frames if isinstance(frames, tuple | list) else [frames])]


def memory(job: dict[str, Any]) -> dict[str, Any]:
    """What one process holds while it makes so many windows, one batch after the other."""
    import av  # noqa: F401 - libraries are no memory of windows

    windows = Windows(VideoSet(job["set"], follow=True), frames=WINDOW, cache=job["cache"])
    stream = WindowStream(windows, WindowSampler(windows, seed=1), batch=8)
    before = _resident()
    held = []
    count = 0
    while count < job["windows"]:
        for batch in stream:
            before_last, count = count, count + len(batch["window"])
            if count // job["every"] > before_last // job["every"]:
                held.append(_resident())
            if count >= job["windows"]:
                break
    return {"before": before, "held": held, "windows": count}


def _used() -> float:
    """Seconds of processors of this process and of children that ended."""
    return sum(
        one.ru_utime + one.ru_stime
        for one in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def _resident() -> int:
    line = next(one for one in Path("/proc/self/status").read_text().splitlines() if "VmRSS" in one)
    return int(line.split()[1]) * 1024


TASKS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {"loader": loader, "memory": memory}
