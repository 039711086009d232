"""Frames on a GPU beside the processor: ./dev bench-gpu, or PYTHON benchmarks/gpu.py.

Installs nothing: the interpreter has PyAV 18.1 or later, torch with CUDA, numpy and construct. All
pixels are compared with the processor's first; then windows, one large call, bare decoders and the
memory of the device are measured, in turns, as ratios of one run; so are batches of a set of films,
if there is pyarrow. Some two minutes. What this machine lacks is left out and named, row by row;
without a device, only torch's pixels in main memory are compared with numpy's.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE / "frames"), str(HERE)]

import numpy as np  # noqa: E402

WINDOW, LARGE = 16, 480
FILMS, BATCH, BATCHES = 12, 8, 4
"""Films of a set, windows of a batch, and batches that are measured."""
NEEDS_A_DEVICE = (
    "pixels of frames that a device decodes, against the processor's",
    "the same with CuPy and with JAX",
    "frames a second of windows and of one large call, beside the processor and PyNvVideoCodec",
    "frames a second of ten bare decoders",
    "frames a second of batches of a set",
    "memory of the device over many windows",
)
INTEGERS = {"conversion": "integer", "size": (224, 224)}
PART = (101, 33, 347, 279)
"""Left, top, right, bottom: it begins between samples of chroma."""
LOOKS: list[dict[str, Any]] = [
    {"format": "rgb"}, {"format": "gray"}, {"format": "yuv"}, {"format": "rgb", "crop": PART},
    *({"format": format, **INTEGERS} for format in ("rgb", "gray", "yuv")),
    {"format": "rgb", "crop": PART, **INTEGERS},
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


def wrong_frames(
    film: Path, look: dict[str, Any], device: str | None, library: str = "torch", step: int = 1
) -> tuple[int, int]:
    """Frames of a film whose pixels differ between a library and numpy, and how many there were.

    Args:
        device: that decodes for the library; None: the processor, too.
        step: every so many frames are compared.
    """
    import fragdex

    here = fragdex.Frames(str(film), **look)
    there = fragdex.Frames(str(film), **look, device=device, output=library)
    # By whole numbers the processor takes long: an eighth of the frames.
    asked = np.arange(0, len(here), step * (8 if "conversion" in look else 1))
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
            equal = mine == in_main_memory(theirs)
            same &= equal.reshape(len(numbers), -1).all(1)
        wrong += int((~same).sum())
    return wrong, len(asked)


def in_main_memory(array: Any) -> np.ndarray:
    """An array of torch, CuPy or JAX as one of numpy."""
    if hasattr(array, "get"):
        return array.get()
    return array.numpy(force=True) if hasattr(array, "numpy") else np.asarray(array)


def wrong_in_jax(film: Path) -> bool:
    """Whether JAX reads other pixels by DLPack than torch has on the device.

    Raises:
        ImportError: JAX is not installed.
    """
    import jax

    import fragdex

    numbers = np.arange(0, 100, 9)
    batch = fragdex.Frames(str(film), device="cuda", output="torch")[numbers]
    taken = jax.dlpack.from_dlpack(batch.data)
    return not np.array_equal(in_main_memory(taken), in_main_memory(batch.data))


def compared(film: Any, path: Path, device: str | None, skipped: list[str]) -> dict[str, int]:
    """Frames of a film that differ, by what was made of them; printed."""
    from fragdex.errors import MissingExtra

    counts: dict[str, int] = {}

    def noted(name: str, bad: int, count: int) -> None:
        counts[f"{name}: frames that differ"] = bad
        print(f"{film.height}p {name}: {bad} of {count} frames differ from the processor's")

    for look in LOOKS:
        name = " ".join(map(str, look.values()))
        noted(name, *wrong_frames(path, look, device, step=1 if device else 20))
    if device is None:
        return counts
    try:
        noted("rgb, CuPy", *wrong_frames(path, LOOKS[0], device, "cupy", 10))
        noted("rgb integer, CuPy", *wrong_frames(path, LOOKS[-1], device, "cupy", 10))
    except MissingExtra as error:
        skipped.append(f"CuPy: {error}")
    try:
        noted("rgb, JAX by DLPack", 12 * wrong_in_jax(path), 12)
    except (ImportError, RuntimeError) as error:
        skipped.append(f"JAX: {error}")
    return counts


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


def batches(
    film: Path, folder: Path, device: str | None, skipped: list[str]
) -> Callable[[], int] | None:
    """Shuffled batches of windows of a set of films, each batch of several films.

    Args:
        film: that all of them are copies of.
        folder: for the set.
    """
    from fragdex.data import VideoSet, Windows, WindowSampler, WindowStream, write_set
    from fragdex.errors import MissingExtra

    try:
        if not folder.exists():
            folder.mkdir()
            for number in range(FILMS):
                (folder / f"{number}.mp4").hardlink_to(film)
            write_set(folder, folder / "set.parquet")
        videos = VideoSet(folder / "set.parquet")
    except MissingExtra as error:
        skipped.append(f"frames a second of batches of a set: {error}")
        return None
    windows = Windows(
        videos, frames=WINDOW, device=device, output="numpy" if device is None else "torch"
    )
    stream = WindowStream(windows, WindowSampler(windows, seed=7, together=2), batch=BATCH)

    def work() -> int:
        stream.set_epoch(0)
        some = itertools.islice(stream, BATCHES)
        return sum(batch["numbers"].size for batch in some)

    return work


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
    with tempfile.TemporaryDirectory(dir=film.parent) as place:
        for name, device in (("processor", None), ("device, stays", "cuda")):
            work = batches(film, Path(place) / "set", device, skipped)
            if work is not None:
                works[f"batches of a set, {name}"] = work
        return _medians(works, torch, rounds)


def _medians(works: dict[str, Callable[[], int]], torch: Any, rounds: int) -> dict[str, float]:
    rates: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(rounds + 1):
        for name, work in works.items():
            speed = rate(work, torch)
            if turn:  # the first one opens decoders
                rates[name].append(speed)
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


def measured_rows(
    film: Any, path: Path, torch: Any, skipped: list[str], rounds: int
) -> dict[str, Any]:
    """Frames a second, and memory of the device for the larger film; printed."""
    rates = measured(path, torch, skipped, rounds)
    base = rates["windows, processor"]
    for name, speed in rates.items():
        print(f"{film.height}p {name:28} {speed:8.0f} frames/s  {speed / base:5.2f} ×")
    rows: dict[str, Any] = dict(rates)
    if film.height == 1080:
        count, early, late = memory(path, torch, 30)
        rows["memory"] = {"windows": count, "after 100": early, "last": late}
        print(f"memory of the device: {early >> 20} MiB after 100 windows, "
              f"{late >> 20} MiB after {count:,}")  # fmt: skip
    return rows


def main() -> int:
    """Compare, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, help="a JSON file of all figures")
    arguments = parser.parse_args()
    skipped: list[str] = []
    figures: dict[str, Any] = {"films": {}}
    try:
        import av
        import torch
        from films import Film, made

        from fragdex.decoding.codec import engines_of
    except ImportError as error:
        skipped.append(f"everything: {error.name} is missing; give PYTHON=… that has it")
        films = []
    else:
        device = "cuda" if torch.cuda.is_available() else None
        films = [Film(640, 360, 50, 40)]
        if device is None:
            skipped += [f"{row}: torch sees no CUDA device" for row in NEEDS_A_DEVICE]
        else:
            films.append(Film(1920, 1080, 50, 40))
            figures["device"] = torch.cuda.get_device_name()
            print(f"{figures['device']}, {engines_of(0, 'h264')} engines for H.264, "
                  f"{os.cpu_count()} processors, PyAV {av.__version__}")  # fmt: skip
    wrong = compared_rows = 0
    for film in films:
        path = made(film)
        differ = compared(film, path, device, skipped)
        wrong += sum(differ.values())
        compared_rows += len(differ)
        rows: dict[str, Any] = dict(differ)
        if device is not None:
            rows |= measured_rows(film, path, torch, skipped, arguments.rounds)
        figures["films"][path.name] = rows
    for reason in dict.fromkeys(skipped):
        print(f"left out: {reason}")
    speeds = "measured" if "device" in figures else "not measured"
    print(f"pixels: {compared_rows} rows compared, {wrong} frames differ; speeds: {speeds}")
    if arguments.output:
        arguments.output.write_text(json.dumps(figures | {"left out": skipped}, indent=1))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
