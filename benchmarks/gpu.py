"""Frames on a GPU beside the processor: ./dev bench-gpu, or PYTHON benchmarks/gpu.py.

Installs nothing: the interpreter has PyAV 18.1 or later, torch with CUDA, numpy and construct. All
pixels are compared with the processor's first; then windows, one large call, bare decoders and the
memory of the device are measured, in turns, as ratios of one run. Some two minutes. What this
machine lacks is left out and named.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE / "frames"), str(HERE)]

import numpy as np  # noqa: E402

WINDOW, LARGE = 16, 480
INTEGERS = {"conversion": "integer", "size": (224, 224)}
LOOKS: list[dict[str, Any]] = [
    {"format": "rgb"}, {"format": "gray"}, {"format": "yuv"},
    *({"format": format, **INTEGERS} for format in ("rgb", "gray", "yuv")),
]  # fmt: skip


def windows_of(frames: int, count: int) -> list[np.ndarray]:
    """Windows of neighbours from random places, the same in each run."""
    first = np.random.default_rng(7).integers(0, frames - WINDOW, count)
    return [place + np.arange(WINDOW) for place in first]


def rate(work: Callable[[], int], torch: Any) -> float:
    """Frames a second of some work that gives how many it made."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    count = work()
    torch.cuda.synchronize()
    return count / (time.perf_counter() - began)


def wrong_frames(film: Path, look: dict[str, Any]) -> tuple[int, int]:
    """Frames of a film whose pixels differ between the device and the processor, and all."""
    import fragdex

    here = fragdex.Frames(str(film), **look)
    there = fragdex.Frames(str(film), **look, device="cuda", output="torch")
    # By whole numbers the processor takes long: an eighth of the frames.
    asked = np.arange(0, len(here), 8 if "conversion" in look else 1)
    wrong = 0
    for numbers in np.split(asked, range(50, len(asked), 50)):
        one, other = here[numbers].data, there[numbers].data
        planes = zip(
            one if isinstance(one, tuple) else (one,),
            other if isinstance(other, tuple) else (other,),
            strict=True,
        )
        same = np.ones(len(numbers), bool)
        for mine, theirs in planes:
            equal = mine == theirs.cpu().numpy()
            same &= equal.reshape(len(numbers), -1).all(1)
        wrong += int((~same).sum())
    return wrong, len(asked)


def contenders(film: Path, format: str) -> dict[str, Any]:
    """By name: what gives the frames of numbers, as `Frames` does."""
    import fragdex

    makers: dict[str, Callable[[], Any]] = {
        "processor": lambda: fragdex.Frames(str(film), format=format),
        "device, fetched": lambda: fragdex.Frames(str(film), format=format, device="cuda"),
        "device, stays": lambda: fragdex.Frames(
            str(film), format=format, device="cuda", output="torch"
        ),
        "device, stays, 224 × 224": lambda: fragdex.Frames(
            str(film), format=format, device="cuda", output="torch", **INTEGERS
        ),
        "processor, 224 × 224": lambda: fragdex.Frames(str(film), format=format, size=(224, 224)),
    }
    return {name: make() for name, make in makers.items()}


def nvidia(film: Path, skipped: list[str]) -> Callable[[np.ndarray], Any] | None:
    """NVIDIA's own decoder with colours in the memory of the device, where it is installed."""
    try:
        import PyNvVideoCodec as nvc  # noqa: N813
    except ImportError:
        skipped.append("PyNvVideoCodec is not installed")
        return None
    decoder = nvc.SimpleDecoder(
        str(film), use_device_memory=True, output_color_type=nvc.OutputColorType.RGB
    )
    return lambda numbers: decoder.get_batch_frames_by_index(numbers.tolist())


def bare(film: Path, decoders: int) -> Callable[[], int]:
    """So many decoders side by side, each through the whole film; nothing is made of pictures."""
    import av
    from av.codec.hwaccel import HWAccel

    def work() -> int:
        counts = [0] * decoders

        def run(place: int) -> None:
            wanted = HWAccel("cuda", allow_software_fallback=False, is_hw_owned=True)
            with av.open(str(film), hwaccel=wanted) as container:
                counts[place] = sum(1 for _ in container.decode(video=0))

        threads = [threading.Thread(target=run, args=(place,)) for place in range(decoders)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(counts)

    return work


def measured(film: Path, torch: Any, skipped: list[str], rounds: int) -> dict[str, float]:
    """Frames a second of each contender: the median of rounds in turns."""
    calls = windows_of(1000, 20)
    readers = contenders(film, "rgb")
    works: dict[str, Callable[[], int]] = {}
    for name, frames in readers.items():
        works[f"windows, {name}"] = lambda frames=frames: sum(len(frames[one]) for one in calls)
        works[f"one call, {name}"] = lambda frames=frames: len(frames[np.arange(LARGE)])
    theirs = nvidia(film, skipped)
    if theirs is not None:
        works["windows, PyNvVideoCodec"] = lambda: sum(len(theirs(one)) for one in calls)
    works["ten bare decoders"] = bare(film, 10)
    rates: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(rounds + 1):
        for name, work in works.items():
            found = rate(work, torch)
            if turn:  # the first one opens decoders
                rates[name].append(found)
    return {name: statistics.median(each) for name, each in rates.items()}


def memory(film: Path, torch: Any, seconds: float) -> tuple[int, int, int]:
    """Windows made in some seconds; memory of the device after a few of them, and last."""
    import fragdex

    frames = fragdex.Frames(str(film), device="cuda", output="torch")
    calls = windows_of(len(frames), 10_000)
    early = count = 0
    end = time.monotonic() + seconds
    for count, numbers in enumerate(calls, 1):
        frames[numbers]
        if count == 100:
            early = used(torch)
        if time.monotonic() > end and count > 100:
            break
    return count, early, used(torch)


def used(torch: Any) -> int:
    """Bytes of the device that are taken."""
    free, whole = torch.cuda.mem_get_info()
    return int(whole - free)


def main() -> int:
    """Compare, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, help="a JSON file of all figures")
    arguments = parser.parse_args()
    try:
        import av
        import torch
        from films import Film, made
    except ImportError as error:
        print(f"bench-gpu needs {error.name}: give an interpreter that has it, PYTHON=…")
        return 2
    if not torch.cuda.is_available():
        print("bench-gpu needs a CUDA device: torch sees none")
        return 2
    from fragdex.decoding.codec import engines_of

    engines = engines_of(0, "h264")
    print(f"{torch.cuda.get_device_name()}, {engines} engines for H.264, "
          f"{os.cpu_count()} processors, PyAV {av.__version__}")  # fmt: skip
    skipped: list[str] = []
    figures: dict[str, Any] = {"device": torch.cuda.get_device_name(), "films": {}}
    wrong = 0
    for film in (Film(640, 360, 50, 40), Film(1920, 1080, 50, 40)):
        path = made(film)
        rows: dict[str, Any] = {}
        for look in LOOKS:
            bad, count = wrong_frames(path, look)
            name = " ".join(map(str, look.values()))
            wrong += bad
            rows[f"{name}: frames that differ"] = bad
            print(f"{film.height}p {name}: {bad} of {count} frames differ from the processor's")
        rates = measured(path, torch, skipped, arguments.rounds)
        base = rates["windows, processor"]
        for name, found in rates.items():
            print(f"{film.height}p {name:28} {found:8.0f} frames/s  {found / base:5.2f} ×")
        rows |= rates
        if film.height == 1080:
            count, early, late = memory(path, torch, 30)
            rows["memory"] = {"windows": count, "after 100": early, "last": late}
            print(f"memory of the device: {early >> 20} MiB after 100 windows, "
                  f"{late >> 20} MiB after {count:,}")  # fmt: skip
        figures["films"][path.name] = rows
    for reason in dict.fromkeys(skipped):
        print(f"left out: {reason}")
    if arguments.output:
        arguments.output.write_text(json.dumps(figures | {"left out": skipped}, indent=1))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
