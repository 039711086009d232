"""A page that is asked for each frame, beside one of the same weight that is played."""

from __future__ import annotations

import json
import shutil
import wave
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import av
import numpy as np
from measure import PAGES, Measured, Row, Setting, Want, alternate, compared, fragdex_render
from watch import Cost

__all__ = ["asked"]

RATE = 48_000
FPS = 30
WIDTH, HEIGHT = 640, 360


def asked(setting: Setting) -> Measured:
    """Speed beside the ordinary page; every frame and the sound, in one slice, three and seven."""
    seconds = 2 if setting.quick else 10
    site = _site(setting.folder / "asked", seconds)
    row = Row("asked", f"a page that is asked for each frame, {seconds} s with video and sound")

    contenders: dict[str, Callable[[], Cost]] = {}
    for name in ("played", "asked"):
        data = setting.folder / f"{name}.json"
        data.write_text(json.dumps({"seconds": seconds, "asked": name == "asked"}))
        contenders[name] = partial(
            fragdex_render, site, setting.folder / f"{name}.mp4", "--size", "1280x720",
            "--duration", str(seconds), "--page-data", str(data),
        )  # fmt: skip
    amounts = alternate(setting, contenders, {})
    reached = compared(amounts, "played", "asked")
    row.wants.append(Want("≥ 0.7 of the page that is played", reached, 0.7, at_most=False))
    wrong, sound = 0, 0.0
    for slices in (1, 3, 7):
        out = setting.folder / f"asked-{slices}.mp4"
        data = setting.folder / "asked.json"
        fragdex_render(site, out, "--slices", str(slices), "--page-data", str(data))
        numbers = list(_numbers(out))
        wrong += sum(number != i for i, number in enumerate(numbers))
        wrong += abs(len(numbers) - seconds * FPS)
        sound = max(sound, _difference(out, seconds))
    row.wants.append(
        Want("in 1, 3 and 7 slices: wrong frames 0", wrong, 0, at_most=True, unit="frames")
    )
    row.wants.append(
        Want("its sound within 2 % (AAC)", 100 * sound, 2, at_most=True, unit="% of its own")
    )
    return row, amounts


def _site(folder: Path, seconds: int) -> Path:
    """The page, a film whose pictures say their number, and a sound that changes each second."""
    folder.mkdir(exist_ok=True)
    shutil.copy(PAGES / "asked.html", folder / "index.html")
    chunks: list[dict[str, Any]] = []
    data = bytearray()
    with av.open(str(folder / "film.webm"), "w") as film:
        stream: Any = film.add_stream("libvpx", rate=FPS, options={"deadline": "realtime"})
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.bit_rate, stream.codec_context.gop_size = 4_000_000, FPS
        for number in [*range(seconds * FPS), None]:
            for packet in stream.encode(None if number is None else _picture(number)):
                part = bytes(packet)
                chunks.append({"key": packet.is_keyframe, "offset": len(data), "size": len(part)})
                data += part
                film.mux(packet)
    (folder / "chunks.bin").write_bytes(data)
    (folder / "chunks.json").write_text(json.dumps(chunks))
    with wave.open(str(folder / "sound.wav"), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(RATE)
        sound.writeframes((_signal(seconds) * 32767).astype("<i2").tobytes())
    return folder


def _picture(number: int) -> av.VideoFrame:
    """16 columns, the lowest bit first, over something that moves."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    luma = (128 + 60 * np.sin((x + 3 * number) / 40) * np.cos((y - number) / 30)).astype(np.uint8)
    luma[: HEIGHT // 2] = np.where(number >> (x[: HEIGHT // 2] * 16 // WIDTH) & 1, 235, 16)
    planes = np.full((HEIGHT * 3 // 2, WIDTH), 128, np.uint8)
    planes[:HEIGHT] = luma
    frame = av.VideoFrame.from_ndarray(planes, format="yuv420p")
    frame.pts, frame.time_base = number, Fraction(1, FPS)
    return frame


def _signal(seconds: int) -> np.ndarray[Any, Any]:
    times = np.arange(seconds * RATE) / RATE
    return 0.4 * np.sin(2 * np.pi * (400 + 50 * np.floor(times)) * times)


def _numbers(path: Path) -> Iterator[int]:
    with av.open(str(path)) as film:
        for frame in film.decode(video=0):
            row = frame.to_ndarray(format="gray")[HEIGHT // 4]
            step = WIDTH / 16
            yield sum(1 << bit for bit in range(16) if row[int((bit + 0.5) * step)] > 120)


def _difference(path: Path, seconds: int) -> float:
    """How far the sound of a film is from what it should be, by its root mean square."""
    with av.open(str(path)) as film:
        blocks = [frame.to_ndarray()[0] for frame in film.decode(audio=0) if (frame.pts or 0) >= 0]
    heard, right = np.concatenate(blocks), _signal(seconds)
    count = min(len(heard), len(right))
    # where the tone changes the encoder may be a little off
    inner = (np.arange(count) % RATE > RATE // 20) & (np.arange(count) % RATE < RATE * 19 // 20)
    apart = heard[:count][inner] - right[:count][inner]
    return float(np.sqrt((apart**2).mean() / (right**2).mean()))
