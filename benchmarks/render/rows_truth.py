"""Whether what is rendered is right: the same each time, every frame at its moment, sound too."""

from __future__ import annotations

import hashlib
import multiprocessing
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from measure import PAGES, Amount, Measured, Row, Setting, Want, fragdex_render

__all__ = ["accuracy", "determinism", "sync"]

RATES = (Fraction(30), Fraction(60), Fraction(30000, 1001))


def _luma(path: Path) -> Iterator[np.ndarray[Any, Any]]:
    with av.open(str(path)) as film:
        film.streams.video[0].thread_type = "AUTO"
        for frame in film.decode(video=0):
            plane = frame.planes[0]
            rows = np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)
            yield rows[:, : plane.width]


def _difference(one: Path, other: Path) -> float:
    """The largest mean difference of luma of any frame; many where one is missing."""
    worst = 0.0
    try:
        for a, b in zip(_luma(one), _luma(other), strict=True):
            worst = max(worst, float(np.abs(a.astype(np.int16) - b).mean()))
    except ValueError:
        return 255.0
    return worst


def _spin(stop: Any) -> None:
    while not stop.is_set():
        sum(range(10_000))


def determinism(setting: Setting) -> Measured:
    """Runs again, in other numbers of slices, and while the machine is busy."""
    row = Row("determinism", "the simple page, 5 s, again and in slices")
    seconds = "2" if setting.quick else "5"
    outputs: dict[str, Path] = {}
    stop = multiprocessing.Event()
    load = [multiprocessing.Process(target=_spin, args=(stop,), daemon=True) for _ in range(4)]
    for name, slices, busy in (
        ("1", 1, False), ("1 again", 1, False), ("3", 3, False), ("3 busy", 3, True),
        ("7", 7, False), ("7 busy", 7, True), ("1 busy", 1, True),
    ):  # fmt: skip
        if busy and not load[0].is_alive() and not stop.is_set():
            for one in load:
                one.start()
        outputs[name] = setting.folder / f"{name.replace(' ', '-')}.mp4"
        fragdex_render(
            "simple", outputs[name], "--size", "1280x720", "--duration", seconds, "--slices",
            str(slices),
        )  # fmt: skip
    stop.set()
    for one in load:
        one.join()
    bytes_of = {name: hashlib.sha256(path.read_bytes()).digest() for name, path in outputs.items()}
    pairs = (("1", "1 again"), ("1", "1 busy"), ("3", "3 busy"), ("7", "7 busy"))
    different = sum(bytes_of[one] != bytes_of[other] for one, other in pairs)
    row.wants.append(Want("runs that differ: 0", different, 0, at_most=True, unit="of 4"))
    worst = max(_difference(outputs["1"], outputs[name]) for name in ("3", "7"))
    row.wants.append(
        Want("3 and 7 slices: mean luma of any frame within 1", worst, 1, at_most=True, unit="/255")
    )
    return row, {}


def _rows_of(picture: np.ndarray[Any, Any]) -> list[int]:
    """The four numbers of pages/numbers.html."""
    numbers = []
    for top in (0, 40, 80, 120):
        bits = picture[top + 10, 5:320:10] > 128
        numbers.append(int("".join("1" if bit else "0" for bit in bits), 2))
    return numbers


def accuracy(setting: Setting) -> Measured:
    """Numbers and times in the pictures, read out of the finished files."""
    seconds = 4 if setting.quick else 60
    row = Row("accuracy", f"frames and times printed by the page, {seconds} s")
    for fps in RATES:
        rate = f"<script>window.rate = {fps.numerator} / {fps.denominator}</script>"
        page = setting.folder / "numbers.html"
        text = (PAGES / "numbers.html").read_text()
        page.write_text(text.replace("<canvas", rate + "<canvas", 1))
        out = setting.folder / "numbers.mp4"
        fragdex_render(
            page, out, "--size", "320x180", "--fps", str(fps), "--duration", str(seconds)
        )
        wrong = frames = 0
        for i, picture in enumerate(_luma(out)):
            frame, at, clock, calls = _rows_of(picture)
            exact = i * 10_000 / fps
            right = frame == i == calls and at == clock and 0 <= at - exact < 2
            wrong += not right
            frames += 1
        wrong += abs(frames - round(seconds * fps))
        row.wants.append(
            Want(f"{float(fps):.5g} fps: wrong frames: 0", wrong, 0, at_most=True,
                 unit=f"of {frames:,}")
        )  # fmt: skip
    _video(setting, row, seconds)
    return row, {}


VIDEO_PAGE = """<!doctype html><style>html, body { margin: 0; width: 320px; height: 180px;
overflow: hidden } video { display: block }</style><video src=numbers.mp4 autoplay muted></video>"""


def _video(setting: Setting, row: Row, seconds: int) -> None:
    """The same for a <video> whose pictures are numbered."""
    for fps in RATES:
        site = setting.folder / "site"
        site.mkdir(exist_ok=True)
        (site / "index.html").write_text(VIDEO_PAGE)
        count = round(seconds * fps)
        _numbered(site / "numbers.mp4", count, fps)
        out = setting.folder / "video.mp4"
        fragdex_render(
            site, out, "--size", "320x180", "--fps", str(fps), "--duration", str(seconds)
        )
        numbers = [_rows_of(picture)[0] for picture in _luma(out)]
        wrong = sum(number != i for i, number in enumerate(numbers)) + abs(len(numbers) - count)
        row.wants.append(
            Want(f"<video> at {float(fps):.5g} fps: wrong frames: 0", wrong, 0, at_most=True,
                 unit=f"of {count:,}")
        )  # fmt: skip


def _numbered(path: Path, count: int, fps: Fraction) -> None:
    """A film whose pictures are their numbers, as squares like those of pages/numbers.html."""
    with av.open(str(path), "w") as film:
        stream = film.add_stream("libx264", rate=fps, options={"preset": "veryfast", "crf": "20"})
        stream.width, stream.height, stream.pix_fmt = 320, 180, "yuv420p"
        for number in range(count):
            luma = np.full((180, 320), 110, np.uint8)
            bits = [number >> (31 - bit) & 1 for bit in range(32)]
            luma[:20] = np.repeat(np.array(bits, np.uint8) * 219 + 16, 10)
            planes = np.vstack([luma, np.full((90, 320), 128, np.uint8)])
            frame = av.VideoFrame.from_ndarray(planes, format="yuv420p")
            frame.pts, frame.time_base = number, 1 / fps
            film.mux(stream.encode(frame))
        film.mux(stream.encode(None))


def sync(setting: Setting) -> Measured:
    """A flash and a beep each second; where both are in the finished file."""
    minutes = 0.2 if setting.quick else 10
    row = Row("sync", f"a flash and a beep each second, {minutes:g} min")
    out = setting.folder / "sync.mp4"
    fragdex_render("beeps", out, "--size", "320x180", "--duration", str(round(60 * minutes)))
    flashes = [i / 30 for i, picture in enumerate(_luma(out)) if picture[90, 160] > 128]
    heard = _onsets(out)
    seconds = round(60 * minutes)
    pairs = [(second, heard.get(second), second in flashes) for second in range(1, seconds)]
    missing = sum(at is None for _, at, _ in pairs)
    off = max((abs(at - second) for second, at, _ in pairs if at is not None), default=0.0)
    dark = sum(not seen for *_, seen in pairs)
    row.wants += [
        Want("beeps that are missing: 0", missing, 0, at_most=True, unit=f"of {len(pairs)}"),
        Want("beeps off by < 1 ms", 1000 * off, 1, at_most=True, unit="ms"),
        Want("flashes in another frame: 0", dark, 0, at_most=True, unit=f"of {len(pairs)}"),
    ]
    return row, {"beeps": Amount("ms", "largest offset", [1000 * off])}


def _onsets(path: Path) -> dict[int, float]:
    """Second → where the beep next to it begins, in seconds."""
    onsets: dict[int, float] = {}
    quiet_until = -1.0
    with av.open(str(path)) as film:
        if not film.streams.audio:
            return {}
        for frame in film.decode(audio=0):
            samples = np.abs(frame.to_ndarray()[0])
            at = float(frame.pts * frame.time_base)
            loud = np.flatnonzero(samples > 0.1)
            for sample in loud[:1] if at > quiet_until else ():
                onset = at + int(sample) / frame.sample_rate
                onsets[round(onset)] = onset
                quiet_until = onset + 0.3
    return onsets
