"""What a fleet is asked for: files that differ from one another, renders, transcriptions."""

from __future__ import annotations

import hashlib
import io
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import av
import film
import numpy as np
from PIL import Image

import fragdex
from fragdex.client import Client, ClientError, RequestRefused, Retries, ServiceUnreachable, api

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures"
PAGE = ROOT / "benchmarks" / "render" / "pages" / "numbers.html"
SPEECH = FIXTURES / "speech" / "pauses-aac.mp4"
FPS = 30
# What stands still for so long is lost.
PATIENCE_S = 120
KINDS = ("image", "caption", "film", "recording")
RECORDING_BYTES = 3 << 20
CHUNK = 1 << 20
# A page that takes its time for every frame: kills find it at work.
BUSY = (
    "<script>(function f() { for (let i = 0; i < 4e6; i++); requestAnimationFrame(f) })()</script>"
)

T = TypeVar("T")


def salted(data: bytes, salt: str) -> bytes:
    """Another file of the same content: a free box at its end (ISO/IEC 14496-12, 8.1.2)."""
    more = salt.encode()
    return data + (8 + len(more)).to_bytes(4, "big") + b"free" + more


def first_seconds(path: Path, seconds: float) -> bytes:
    """The beginning of a fragmented file, as if its recording had ended there."""
    data = path.read_bytes()
    track = fragdex.index(data).tracks[0]
    later = track.fragments.moof_offset[track.fragments.cts_end / track.timescale > seconds]
    return data[: int(later.min())] if len(later) else data


def _picture(number: int) -> bytes:
    pixels = np.random.default_rng(number).integers(0, 256, (120, 160, 3), np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def make_files(folder: Path, count: int) -> list[Path]:
    """Files of each kind in turn, no two alike."""
    folder.mkdir()
    recording = folder / "base"
    film.make(recording, RECORDING_BYTES)
    bases = {"film": (FIXTURES / "faststart.mp4").read_bytes(), "recording": recording.read_bytes()}
    recording.unlink()
    paths = []
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        if kind == "image":
            name, data = f"{number}.png", _picture(number)
        elif kind == "caption":
            text = f"WEBVTT\n\n00:00.000 --> 00:01.000\nfile {number}\n"
            name, data = f"{number}.vtt", text.encode()
        else:
            name, data = f"{kind}-{number}.mp4", salted(bases[kind], f"{number}")
        (folder / name).write_bytes(data)
        paths.append(folder / name)
    return paths


def page(number: int) -> str:
    """A page that shows the number of each frame; no two are alike, for slices are cached."""
    return f"{PAGE.read_text()}{BUSY}<!-- {number} -->"


def frame_numbers(data: bytes) -> list[int]:
    """The numbers that the frames of a film show, by the page's clock."""
    numbers = []
    with av.open(io.BytesIO(data)) as container:
        for frame in container.decode(video=0):
            plane = frame.planes[0]
            rows = np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)
            bits = rows[10, 5:320:10] > 128
            numbers.append(int("".join("1" if bit else "0" for bit in bits), 2))
    return numbers


def words_of(document: Any) -> list[tuple[str, int, int]]:
    """(text, start, end) of the words of a transcription, in milliseconds."""
    return [
        (word.text, round(word.start * 1000), round(word.end * 1000))
        for word in document.word_segments
    ]


@dataclass
class Orders:
    """What was asked for, and what of it was acknowledged; threads ask meanwhile.

    Attributes:
        files: id and path of each file whose record was answered with all bytes there.
        renders, transcriptions: ids of records that were answered.
        again: how often a client had given up, and was asked again by its user.
        broken: what nobody could mend.
    """

    urls: list[str]
    key: str
    files: dict[str, Path] = field(default_factory=dict)
    renders: list[str] = field(default_factory=list)
    transcriptions: list[str] = field(default_factory=list)
    again: int = 0
    broken: list[str] = field(default_factory=list)
    _asked: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._threads = ThreadPoolExecutor(6, thread_name_prefix="orders")
        self._futures: list[Future[None]] = []
        self._closed = threading.Event()

    def client(self) -> Client:
        """A client of the fleet, by the next of its addresses."""
        with self._lock:
            self._asked += 1
            url = self.urls[self._asked % len(self.urls)]
        retries = Retries(longest=2)
        return Client(url, self.key, retries=retries, trust_env=False)

    def insist(self, ask: Callable[[Client], T]) -> T:
        """As a user would who comes again when a client has given up."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                with self.client() as client:
                    return ask(client)
            except ServiceUnreachable:
                if time.monotonic() > deadline:
                    raise
            except RequestRefused as error:
                if (error.status < 500 and error.status != 409) or time.monotonic() > deadline:
                    raise
            with self._lock:
                self.again += 1
            if self._closed.wait(0.5):
                raise ServiceUnreachable("the trial has ended")

    def _later(self, what: str, work: Callable[[], None]) -> None:
        def run() -> None:
            try:
                work()
            except (ClientError, OSError) as error:
                self.broken.append(f"{what}: {error}")

        self._futures.append(self._threads.submit(run))

    def push(self, path: Path) -> None:
        """Have a file pushed."""

        def work() -> None:
            record = self.insist(lambda client: client.push(path, chunk=CHUNK))
            self.files[record.id] = path

        self._later(path.name, work)

    def render(self, number: int, duration_ms: int, slice_ms: int) -> None:
        """Have a page rendered."""
        # The same key, however often it is asked for: one render.
        key = f"render-{number}-{time.time_ns()}"

        def work() -> None:
            request = api.create_render(
                html=page(number), width=320, height=180, fps=FPS, duration_ms=duration_ms,
                work_slice_ms=slice_ms, idempotency_key=key,
            )  # fmt: skip
            self.renders.append(self.insist(lambda client: client.send(request)).id)

        self._later(f"render {number}", work)

    def transcribe(self, file_id: str, number: int, slice_ms: int) -> None:
        """Have a file transcribed."""
        key = f"transcription-{number}-{time.time_ns()}"

        def work() -> None:
            request = api.create_transcription(
                file_id=file_id, work_slice_ms=slice_ms, idempotency_key=key
            )
            self.transcriptions.append(self.insist(lambda client: client.send(request)).id)

        self._later(f"transcription {number}", work)

    def acknowledged(self) -> None:
        """Wait until all that was asked for is acknowledged, or broken."""
        for one in self._futures:
            one.result()
        self._futures.clear()

    def close(self) -> None:
        """Ask for nothing more."""
        self._closed.set()
        self._threads.shutdown(cancel_futures=True)


def md5_of(data: bytes) -> str:
    """md5 in hex."""
    return hashlib.md5(data).hexdigest()
