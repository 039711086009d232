"""Loaders of torch with workers, and the memory of one: the tasks of child.py that need a set."""

from __future__ import annotations

import resource
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from fragdex.data import VideoSet, Windows, WindowSampler, WindowStream

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


def loader(job: dict[str, Any]) -> dict[str, Any]:
    """So many windows through a loader with workers, in the order of a sampler."""
    windows = Windows(VideoSet(job["set"], follow=True), frames=WINDOW, **job.get("options", {}))
    order = WindowSampler(windows, seed=job["seed"], together=job["together"]).order()
    order = order[: job["windows"]].tolist()
    data: Any = windows
    # What workers would import is imported before they are forked: no work of a reader.
    if job["who"] == "torchcodec":
        import torchcodec.decoders  # noqa: F401

        data = Clips(windows, Path(job["set"]).parent)
    else:
        import av  # noqa: F401
    made = DataLoader(data, batch_size=8, sampler=order, num_workers=job["workers"])
    before = _used()
    clock = time.perf_counter()
    count = 0
    for batch in made:
        pixels = batch if isinstance(batch, torch.Tensor) else batch["frames"]
        count += len(pixels)
    seconds = time.perf_counter() - clock
    used = _used() - before
    assert count == len(order)
    some = [data[number] for number in order[:12]]
    sums = [
        zlib.crc32(np.ascontiguousarray(one if isinstance(one, torch.Tensor) else one["frames"]))
        for one in some
    ]
    return {"seconds": seconds, "cpu": used, "sums": sums}


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
