"""A smart cut of 10 s out of two hours beside encoding those 10 s again, by codec.

`python benchmarks/smart_cut.py [CODEC …]`, with the environment of `./dev setup`. A film of 10 s is
drawn, encoded, and repeated until it has two hours; then both cut the same places in turns. Seconds
are those of the processor, all threads together. Some two minutes on two cores.
"""

from __future__ import annotations

import argparse
import io
import statistics
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np

import fragdex
from fragdex.transcode import seams
from fragdex.transcode.encoders import only_errors, usual_class

WIDTH, HEIGHT, RATE, GROUP = 640, 360, 25, 50
SECONDS, REPEATS, CUT = 10, 720, 10
ENCODERS: dict[str, tuple[str, dict[str, str]]] = {
    "avc": ("libx264", {"preset": "medium", "crf": "23"}),
    "hevc": ("libx265", {"preset": "medium", "crf": "28", "x265-params": "log-level=none"}),
    "av1": ("libsvtav1", {"preset": "8", "crf": "35"}),
    "vp9": ("libvpx-vp9", {"deadline": "good", "cpu-used": "4", "row-mt": "1", "crf": "33"}),
}
"""FFmpeg's encoder, and the settings that the film and the encoding of 10 s have."""


def pictures() -> Any:
    """Ten seconds of a drawn scene: a background that moves, shapes, and a little noise."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float32)
    draw = np.random.default_rng(1)
    for number in range(SECONDS * RATE):
        luma = 110 + 60 * np.sin((x + 3 * number) / 70) * np.cos((y - 2 * number) / 50)
        for shape in range(6):
            middle = (x - (200 * shape + 9 * number) % WIDTH) ** 2 + (y - 120 * shape) ** 2
            luma[middle < (40 + 10 * shape) ** 2] = 40 * shape
        luma += draw.normal(0, 2, luma.shape)
        planes = [np.clip(luma, 16, 235).astype(np.uint8)]
        planes += [np.clip(128 + (part[::2, ::2] - 110) / 4, 16, 240).astype(np.uint8)
                   for part in (luma, luma[::-1])]  # fmt: skip
        yield av.VideoFrame.from_ndarray(
            np.concatenate([plane.reshape(-1, WIDTH) for plane in planes]), "yuv420p"
        )


def encoded(file: Any, frames: Any, codec: str, **options: str) -> None:
    """Write frames as an MP4."""
    name, settings = ENCODERS[codec]
    only_errors()
    with av.open(file, "w", format="mp4") as container:
        stream: Any = container.add_stream(name, rate=RATE, options=settings | options)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.codec_context.gop_size = GROUP
        for number, frame in enumerate(frames):
            frame.pts, frame.time_base = number, Fraction(1, RATE)
            frame.pict_type = 0
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    usual_class()


def film(codec: str, path: Path) -> None:
    """Two hours of a codec."""
    once = io.BytesIO()
    encoded(once, pictures(), codec)
    once.seek(0)
    with av.open(once) as source, av.open(str(path), "w") as container:
        (stream,) = source.streams.video
        packets = [packet for packet in source.demux(stream) if packet.size]
        data = [(bytes(p), p.pts, p.dts, p.duration, p.is_keyframe) for p in packets]
        out = container.add_stream_from_template(stream, opaque=True)
        for turn in range(REPEATS):
            late = round(turn * SECONDS / stream.time_base)
            for content, pts, dts, duration, is_key in data:
                packet = av.Packet(content)
                packet.pts, packet.dts, packet.duration = pts + late, dts + late, duration
                packet.time_base, packet.stream, packet.is_keyframe = stream.time_base, out, is_key
                container.mux_one(packet)


def again(path: Path, start: float, codec: str) -> int:
    """Ten seconds decoded and encoded again; bytes."""
    with av.open(str(path)) as container:
        (stream,) = container.streams.video
        stream.thread_type = "AUTO"
        container.seek(int(start / stream.time_base), stream=stream)

        def frames() -> Any:
            for frame in container.decode(stream):
                if frame.time >= start + CUT:
                    return
                if frame.time >= start:
                    yield frame

        file = io.BytesIO()
        encoded(file, frames(), codec)
        return len(file.getvalue())


def smart(index: Path, path: Path, start: float) -> tuple[int, int]:
    """The same as a smart cut, from a saved index; bytes, and pictures that were encoded."""
    from fragdex.muxing.copies import ClipRequest, clip_view

    with fragdex.open_source(str(path)) as source:
        view, clip = clip_view(
            fragdex.open_index(index), source, ClipRequest(start, start + CUT, smart=True)
        )
        return len(view.read(source=source)), clip.encoded


def main(codecs: list[str], places: int) -> None:
    """Print a line for each codec."""
    for codec in codecs:
        with tempfile.TemporaryDirectory() as folder:
            path, index = Path(folder, "film.mp4"), Path(folder, "film.fidx")
            film(codec, path)
            fragdex.index(str(path), exact=True).save(index, samples=True)
            ratios, rows = [], []
            for number in range(places):
                # Each somewhere else in a group, so that the mean is that of any place.
                start = 1000 + 300 * number + (number + 0.5) / places * GROUP / RATE
                began = time.process_time()
                size, count = smart(index, path, start)
                cut = time.process_time() - began
                began = time.process_time()
                whole = again(path, start, codec)
                both = time.process_time() - began
                ratios.append(both / cut)
                rows.append((cut, both, count, size, whole))
            cut, both, count, size, whole = map(statistics.mean, zip(*rows, strict=True))
            print(
                f"{codec}: smart {cut:.2f} s ({count:g} of {CUT * RATE} pictures encoded, "
                f"{size / 1e3:.0f} kB), encoded again {both:.2f} s ({whole / 1e3:.0f} kB), "
                f"{sum(row[1] for row in rows) / sum(row[0] for row in rows):.1f} × "
                f"({min(ratios):.1f} to {max(ratios):.1f}), "
                f"seams of at least {seams.LEAST_PSNR:g} dB",
                flush=True,
            )


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("codecs", nargs="*", default=list(ENCODERS))
    arguments.add_argument("--places", type=int, default=7)
    chosen = arguments.parse_args()
    main(chosen.codecs, chosen.places)
