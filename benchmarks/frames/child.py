"""One piece of work of one reader, in a process of its own: python child.py, a job on its input.

A job is JSON: `task`, `who`, `what`, `options` and what the task needs. The answer is JSON on the
last line of the output. Imports are not timed.
"""

from __future__ import annotations

import json
import sys
import time
import zlib
from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np
from readers import READERS, Reader, WindowsAhead

Job = dict[str, Any]
Answer = dict[str, Any]


def _opened(job: Job) -> Reader:
    return READERS[job["who"]](job["what"], **job.get("options", {}))


def _warm(who: str) -> None:
    """What a first use imports."""
    if who == "fragdex":
        import av
        import httpx
        import obstore

        import fragdex.frames
    elif who in ("torchcodec", "windows", "windows-ahead"):
        import httpx  # noqa: F401
        import obstore  # noqa: F401
        import torchcodec.decoders  # noqa: F401

        import fragdex.muxing.window  # noqa: F401
    elif who == "decord":
        import decord  # noqa: F401
    else:
        import av  # noqa: F401


def _sums(pixels: np.ndarray) -> list[int]:
    return [zlib.crc32(np.ascontiguousarray(one)) for one in pixels]


def truth(job: Job) -> Answer:
    """Checksums of all frames up to a number, decoded from the start one after the other."""
    import av

    sums = []
    with av.open(job["what"]) as film:
        film.streams.video[0].thread_type = "AUTO"
        for frame in film.decode(video=0):
            sums.append(zlib.crc32(frame.to_ndarray(format="rgb24")))
            if len(sums) == job["frames"]:
                break
    return {"sums": sums}


def frames(job: Job) -> Answer:
    """All frames by one call."""
    numbers = np.array(job["numbers"])
    used, clock = time.process_time(), time.perf_counter()
    reader = _opened(job)
    opened = time.perf_counter()
    pixels, times = reader.frames(numbers)
    done = time.perf_counter()
    cpu = time.process_time() - used
    return {
        "open": opened - clock, "seconds": done - clock, "cpu": cpu,
        "numbers": job["numbers"], "sums": _sums(pixels), "times": times.tolist(),
    }  # fmt: skip


def windows(job: Job) -> Answer:
    """Windows, each by a call of its own, or one after the other from a reader that reads ahead."""
    count = job["count"]
    used, clock = time.process_time(), time.perf_counter()
    reader = _opened(job)
    opened = time.perf_counter()
    numbers: list[int] = []
    sums: list[int] = []
    times: list[float] = []
    taken, used = 0.0, time.process_time() - used
    if isinstance(reader, WindowsAhead):
        batches = reader.windows(job["starts"], count)
    else:
        batches = (reader.window(start, count) for start in job["starts"])
    for start in job["starts"]:
        cpu, before = time.process_time(), time.perf_counter()
        pixels, shown = next(batches)
        taken += time.perf_counter() - before
        used += time.process_time() - cpu
        numbers += range(start, start + count)
        sums += _sums(pixels)
        times += shown.tolist()
    return {
        "open": opened - clock, "seconds": opened - clock + taken, "cpu": used,
        "numbers": numbers, "sums": sums, "times": times,
    }  # fmt: skip


def first(job: Job) -> Answer:
    """Open a film and take a frame, again and again: each time as if it were the first."""
    runs = []
    for _ in range(job["runs"]):
        clock = time.perf_counter()
        reader = _opened(job)
        pixels, times = reader.window(job["number"], 1)
        runs.append(time.perf_counter() - clock)
        sums, shown = _sums(pixels), times.tolist()
        del reader
    return {"runs": runs, "numbers": [job["number"]], "sums": sums, "times": shown}


def same(job: Job) -> Answer:
    """The largest difference of a pixel to another reader's."""
    numbers = np.array(job["numbers"])
    one, _ = _opened(job).frames(numbers)
    other, _ = READERS["fragdex"](job["what"]).frames(numbers)
    apart = np.abs(one.astype(np.int16) - other)
    return {"most": int(apart.max()), "share": float((apart > 0).mean())}


def epoch(job: Job) -> Answer:
    """Some windows of a shuffled epoch of a set; what this process had at most, in bytes."""
    from others import peak

    from fragdex.data import VideoSet, Windows, WindowSampler, WindowStream

    clock = time.perf_counter()
    videos = VideoSet(job["set"], root=job["root"], follow=True)
    windows = Windows(videos, frames=16, format="gray")
    stream = iter(WindowStream(windows, WindowSampler(windows, seed=1), batch=8))
    first = next(stream)
    opened = time.perf_counter() - clock
    seen, requests, count = set(), int(first["cost"].sum(0)[2]), 8
    for batch in islice(stream, job["windows"] // 8):
        seen |= set(batch["video"].tolist())
        requests += int(batch["cost"].sum(0)[2])
        count += len(batch["window"])
    return {
        "peak": peak(), "open": opened, "windows": len(windows), "videos": len(seen),
        "requests": requests / count, "seconds": time.perf_counter() - clock - opened,
    }  # fmt: skip


TASKS: dict[str, Callable[[Job], Answer]] = {
    "truth": truth, "frames": frames, "windows": windows, "first": first, "same": same,
    "epoch": epoch,
}  # fmt: skip


def main() -> None:
    """Do the job."""
    job = json.loads(sys.stdin.read())
    task = job["task"]
    if task in TASKS:
        _warm(job.get("who", ""))
        answer = TASKS[task](job)
    elif task in ("episodes", "removed", "lance_table", "lance_windows", "names", "nodes"):
        import others

        answer = others.TASKS[task](job)
    else:
        import loaders

        answer = loaders.TASKS[task](job)
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
