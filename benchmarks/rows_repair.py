"""Files whose moov is lost, beside reading them."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import peers
from clock import Contender, in_process, process
from loop import SAMPLE_RATE, Packet
from rows import Row, Setting, Want, median, ratio, run

import fragdex

SECONDS, GOOD_SECONDS, LOOP_SECONDS = 100, 10, 2
RATE, WIDTH, HEIGHT, BITS = 30, 1280, 720, 20_000_000


@dataclass(frozen=True, slots=True)
class Camera:
    """What a camera writes: encoders, container, samples of a packet of sound."""

    name: str
    video: str
    audio: str
    container: str = "mp4"
    packet: int = 1024
    options: dict[str, str] = field(default_factory=lambda: {"preset": "ultrafast"})


CAMERAS = (
    Camera("AVC and AAC", "libx264", "aac"),
    Camera("HEVC and AAC", "libx265", "aac"),
    Camera("AV1 and Opus", "libsvtav1", "libopus", packet=960, options={"preset": "12"}),
    Camera("AVC and PCM", "libx264", "pcm_s16le", container="mov"),
)


@dataclass(frozen=True, slots=True)
class Takes:
    """Some seconds of a camera, to be repeated."""

    camera: Camera
    streams: tuple[Any, Any]
    packets: tuple[list[Packet], list[Packet]]
    holder: object  # the container that owns the streams

    @classmethod
    def of(cls, camera: Camera) -> Takes:
        """Encode noise: as many bits as a camera writes."""
        holder = av.open(io.BytesIO(), "w", format=camera.container)
        video: Any = holder.add_stream(camera.video, rate=RATE)
        video.width, video.height, video.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        video.bit_rate, video.options = BITS, camera.options
        video.gop_size, video.max_b_frames = RATE * LOOP_SECONDS, 0
        audio: Any = holder.add_stream(camera.audio, rate=SAMPLE_RATE)
        audio.layout, audio.bit_rate = "stereo", 128_000
        holder.start_encoding()
        random = np.random.default_rng(0)
        pictures, sounds = [], []
        for number in range(RATE * LOOP_SECONDS):
            noise = random.integers(0, 60, (HEIGHT, WIDTH, 3), np.uint8)
            picture = av.VideoFrame.from_ndarray(noise + np.uint8(number), format="rgb24")
            picture.pts, picture.time_base = number, Fraction(1, RATE)
            pictures += video.encode(picture)
        pictures += video.encode(None)
        for number in range(LOOP_SECONDS * SAMPLE_RATE // camera.packet):
            wave = (random.normal(0, 3000, (1, 2 * camera.packet))).astype(np.int16)
            sound = av.AudioFrame.from_ndarray(wave, format="s16", layout="stereo")
            sound.sample_rate, sound.pts = SAMPLE_RATE, number * camera.packet
            sounds += audio.encode(sound)
        sounds += audio.encode(None)
        return cls(camera, (video, audio), (pictures, sounds), holder)

    def _rows(self, seconds: int) -> Iterator[tuple[int, Packet]]:
        pictures, sounds = self.packets
        heard, each = 0, Fraction(self.camera.packet, SAMPLE_RATE)
        for number in range(seconds * RATE):
            while heard * each < Fraction(number, RATE):
                packet = sounds[heard % len(sounds)]
                packet.pts = packet.dts = heard * self.camera.packet
                packet.duration, packet.time_base = self.camera.packet, Fraction(1, SAMPLE_RATE)
                heard += 1
                yield 1, packet
            packet = pictures[number % len(pictures)]
            packet.pts = packet.dts = number
            packet.duration, packet.time_base = 1, Fraction(1, RATE)
            yield 0, packet

    def write(self, path: Path, seconds: int) -> None:
        """A file with its moov at the end."""
        with av.open(str(path), "w", format=self.camera.container) as out:
            streams = [out.add_stream_from_template(stream) for stream in self.streams]
            for number, packet in self._rows(seconds):
                packet.stream = streams[number]
                out.mux_one(packet)


def _files(camera: Camera) -> tuple[Path, Path]:
    """A file whose moov is lost, and a good one; made where they are not there."""
    folder = peers.BUILD / "repair"
    folder.mkdir(parents=True, exist_ok=True)
    name = camera.name.replace(" ", "-")
    broken, good = folder / f"{name}-broken", folder / f"{name}-good"
    if not (broken.exists() and good.exists()):
        takes = Takes.of(camera)
        takes.write(good, GOOD_SECONDS)
        unfinished = broken.with_suffix(".unfinished")
        takes.write(unfinished, SECONDS)
        with unfinished.open("r+b") as file:
            file.truncate(unfinished.read_bytes().rindex(b"moov") - 4)
        unfinished.replace(broken)
    return broken, good


def repair(setting: Setting) -> Row:
    """Samples found again by their own syntax, with a good file of the same camera."""
    contenders: list[Contender] = []
    facts: dict[str, Any] = {}
    cat = shutil.which("cat")
    for camera in CAMERAS:
        if cat is None or camera.video not in av.codecs_available:
            continue
        broken, good = map(str, _files(camera))
        contenders += [
            process(f"cat, {camera.name}", [cat, broken]),
            in_process(camera.name, lambda b=broken, g=good: fragdex.repair(b, g)),
        ]
        tracks = fragdex.repair(broken, good).tracks
        facts[camera.name] = {
            "bytes": Path(broken).stat().st_size,
            "samples": [track.samples for track in tracks],
        }
    f = run(contenders, setting.slow)
    return Row(
        "repair",
        f"repair, moov lost, {SECONDS} s of {BITS / 1e6:.0f} Mbit/s",
        f,
        [
            Want(
                f"{name}: ≥ 0.5 × as fast as cat",
                ratio(median(f, f"cat, {name}"), median(f, name)),
                0.5,
                at_most=False,
            )
            for name in facts
        ],
        facts,
    )
