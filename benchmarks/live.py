"""Measure films that grow: python benchmarks/live.py append | viewers | writer | upload.

append: processor time and memory of an append, of a recording of an hour and one of ten.
viewers: 500 players of one process that wait for each part (blocking reload).
writer: requests that fail while something is written every 10 ms.
upload: how long after a fragment was sent a list of its upload names it, by tus without a length
    and in one body without an end.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from math import lcm
from pathlib import Path

from fragdex.origin.titles import Titles
from fragdex.testing import make_file
from fragdex.testing.files import Brand
from fragdex.testing.fragments import Fragment
from fragdex.testing.tracks import NON_SYNC, SYNC, Moov, Run, Sample, Track, Traf

FPS, RATE, FRAME = 25, 48_000, 1024
PICTURE = 512
"""Ticks of a picture."""
NAME = "live.mp4"


class Recording:
    """Fragments of a recording with pictures and sound, without end.

    Args:
        seconds: of a fragment, a whole number of pictures.
        group: fragments from one key frame to the next.
    """

    def __init__(self, seconds: Fraction = Fraction(2), group: int = 1) -> None:
        tracks = (Track(1, "video", FPS * PICTURE), Track(2, "audio", RATE))
        self.head = make_file(Brand(), Moov(tracks)).data
        self._seconds, self._group = seconds, group
        # eight of them have a whole number of frames of sound
        self._made = [self._fragment(number) for number in range(lcm(8, group))]

    def _fragment(self, number: int) -> bytes:
        sizes = [120] + [40] * (int(self._seconds * FPS) - 1)
        key = SYNC if not number % self._group else NON_SYNC
        pictures = [Sample(n, PICTURE, NON_SYNC) for n in sizes]
        pictures[0] = Sample(sizes[0], PICTURE, key)
        first, stop = (self._sounds(one) for one in (number, number + 1))
        sounds = Run((Sample(9, FRAME),) * (stop - first))
        trafs = (Traf(1, (Run(tuple(pictures)),)), Traf(2, (sounds,)))
        return Fragment(trafs).lay(0, {}, {}).data

    def _sounds(self, number: int) -> int:
        return int(number * self._seconds * RATE // FRAME)

    def fragment(self, number: int) -> bytes:
        """A fragment by its number."""
        data, at = bytearray(self._made[number % len(self._made)]), 0
        data[20:24] = struct.pack(">I", number + 1)
        pictures = int(number * self._seconds * FPS) * PICTURE
        for ticks in (pictures, self._sounds(number) * FRAME):
            at = data.index(b"tfdt", at) + 8
            data[at : at + 8] = struct.pack(">Q", ticks)
        return bytes(data)

    def write(self, path: Path, seconds: float) -> int:
        """A recording that lasts so long; gives the number of the next fragment."""
        count = int(seconds / self._seconds)
        with path.open("wb") as file:
            file.write(self.head)
            for number in range(count):
                file.write(self.fragment(number))
        return count


def append(hours: float, count: int) -> None:
    """Appends to a recording, each with its lists and its manifest, in this process."""
    recording, costs, parts = Recording(), [], []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, NAME)
        first = recording.write(path, hours * 3600)
        titles = Titles(folder, growing=1e6)
        titles.open((NAME,)).package["v1.m3u8"]
        for number in range(first, first + count):
            with path.open("ab") as file:
                file.write(recording.fragment(number))
            began = time.process_time()
            package = titles.open((NAME,)).package
            known = time.process_time()
            for one in package.title.renditions:
                package.reloaded(f"{one.name}.m3u8")
                package.reloaded(f"{one.name}.m3u8", skip=True)
            listed = time.process_time()
            package["manifest.mpd"]
            costs.append(time.process_time() - began)
            parts.append((known - began, listed - known, costs[-1] - (listed - began)))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    known_ms, lists_ms, mpd_ms = (min(one) * 1000 for one in zip(*parts, strict=True))
    print(
        f"{hours:>4g} h: least {min(costs) * 1000:.2f} ms, median "
        f"{statistics.median(costs) * 1000:.2f} ms (title {known_ms:.2f}, lists {lists_ms:.2f}, "
        f"manifest {mpd_ms:.2f}); peak {peak} MiB"
    )


@contextmanager
def origin(folder: str) -> Iterator[tuple[int, int]]:
    """Port and process of `fragdex origin`."""
    command = [sys.executable, "-m", "fragdex", "origin", folder, "--port", "0", "--log", "none"]
    command += ["--growing", "600"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = int(re.search(r"http://[^/]*:(\d+)/", process.stdout.readline())[1])  # type: ignore[index]
            yield port, process.pid
        finally:
            process.terminate()


class Connection:
    """Requests one after the other."""

    async def open(self, port: int) -> None:
        """Connect."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", port)

    async def get(self, path: str) -> tuple[int, bytes]:
        """Status and body."""
        self._writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        head = await self._reader.readuntil(b"\r\n\r\n")
        status, length = int(head[9:12]), re.search(rb"(?i)content-length: (\d+)", head)
        return status, await self._reader.readexactly(int(length[1]) if length else 0)


async def _viewer(port: int, until: float, answers: Counter[int]) -> None:
    """A player that has a list again with each part, and gets the part."""
    connection, base = Connection(), f"/{NAME}/hls/"
    await connection.open(port)
    _, text = await connection.get(f"{base}v1.m3u8")
    while time.monotonic() < until:
        segments, tail = text.decode(), text.decode().rpartition("\nv1/")[2]
        number = len(re.findall(r"^v1/\d+\.m4s$", segments, re.MULTILINE))
        part = tail.count("#EXT-X-PART:")
        status, text = await connection.get(f"{base}v1.m3u8?_HLS_msn={number}&_HLS_part={part}")
        answers[status] += 1
        named = re.findall(rb'#EXT-X-PART:[^\n]*URI="([^"]+)"', text)
        if named:
            status, _ = await connection.get(base + named[-1].decode())
            answers[status] += 1


def _processor(pid: int) -> tuple[float, int]:
    """Seconds of processor, and MiB, of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return seconds, int(fields[21]) * os.sysconf("SC_PAGE_SIZE") >> 20


@contextmanager
def writing(path: Path, pieces: Iterator[bytes], pause: float) -> Iterator[None]:
    """Somebody writes a piece again and again, meanwhile."""
    ended = threading.Event()

    def write() -> None:
        with path.open("ab", buffering=0) as file:
            while not ended.wait(pause):
                file.write(next(pieces))

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _fragments(recording: Recording, number: int, cuts: int = 1) -> Iterator[bytes]:
    """Fragments from a number on, each in so many pieces."""
    while True:
        data = recording.fragment(number)
        size = -(-len(data) // cuts)
        yield from (data[at : at + size] for at in range(0, len(data), size))
        number += 1


def viewers(count: int, seconds: float) -> None:
    """Players of a recording whose fragments come every 200 ms."""
    recording = Recording(Fraction(1, 5), 10)

    async def all_of_them(port: int, pid: int, answers: Counter[int]) -> list[tuple[float, int]]:
        until, states = time.monotonic() + seconds, []
        players = [asyncio.create_task(_viewer(port, until, answers)) for _ in range(count)]
        await asyncio.sleep(seconds / 3)
        for _ in range(2):
            states.append((time.monotonic(), *_processor(pid), answers.total()))
            await asyncio.sleep(seconds / 2)
        await asyncio.gather(*players)
        return states

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, NAME)
        number = recording.write(path, 60)
        answers: Counter[int] = Counter()
        with origin(folder) as (port, pid), writing(path, _fragments(recording, number), 0.2):
            first, last = asyncio.run(all_of_them(port, pid, answers))
    wall, used, grown, done = (b - a for a, b in zip(first, last, strict=True))
    print(
        f"{count} viewers: {used / wall:.2f} cores, {done / wall:.0f} answers/s, "
        f"{used / done * 1e6:.0f} us each; memory {last[2]} MiB ({grown:+} in {wall:.0f} s); "
        f"answers {dict(answers)}"
    )


def writer(count: int) -> None:
    """Requests for all kinds of addresses, while a quarter of a fragment comes every 10 ms."""
    recording, answers = Recording(Fraction(1, 5), 10), Counter[tuple[int, str]]()

    async def some(port: int, most: int) -> None:
        connection, base, chance = Connection(), f"/{NAME}/", random.Random(most)
        await connection.open(port)
        _, text = await connection.get(f"{base}hls/v1.m3u8")
        segments = re.findall(r"^v1/\d+\.m4s$", text.decode(), re.MULTILINE)
        kinds = ["hls/v1.m3u8", "hls/a1.m3u8", "hls/master.m3u8", "dash/manifest.mpd", ""]
        for _ in range(most):
            kind = chance.choice(kinds) or f"hls/{chance.choice(segments)}"
            status, text = await connection.get(base + kind)
            answers[status, kind if status != 200 else ""] += 1
            if kind == "hls/v1.m3u8":
                segments = re.findall(r"^v1/\d+\.m4s$", text.decode(), re.MULTILINE)

    async def all_of_them(port: int) -> None:
        await asyncio.gather(*(some(port, count // 10) for _ in range(10)))

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, NAME)
        number = recording.write(path, 60)
        with origin(folder) as (port, _), writing(path, _fragments(recording, number, 4), 0.01):
            asyncio.run(all_of_them(port))
    failed = sum(n for (status, _), n in answers.items() if status != 200)
    print(f"{answers.total()} requests, {failed} failed; {dict(answers)}")


def upload(seconds: float) -> None:
    """Fragments of 200 ms, sent as they are made, of two uploads without a length."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from service.serving import API, serving

    recording = Recording(Fraction(1, 5), 5)
    sent: dict[str, list[float]] = {"tus": [], "one body": []}

    def fragments(way: str) -> Iterator[bytes]:
        # a second at once, so that there is a list; what a fragment brings is listed with the next
        yield recording.head + b"".join(recording.fragment(number) for number in range(20))
        for number in range(20, 20 + int(seconds * 5)):
            time.sleep(0.2)
            sent[way].append(time.monotonic())
            yield recording.fragment(number)

    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as served:
        tus = {"Tus-Resumable": "1.0.0", "Content-Type": "application/offset+octet-stream"}

        def by_tus(address: str) -> None:
            at = 0
            for data in fragments("tus"):
                fields = {**tus, "Upload-Offset": str(at)}
                at += len(data)
                served.client.patch(address, content=data, headers=fields).raise_for_status()

        def in_one_body(address: str) -> None:
            fields = {"Upload-Offset": "0", "Upload-Complete": "?1"}
            fields |= {"Content-Type": "application/partial-upload"}
            body = fragments("one body")
            served.client.patch(address, content=body, headers=fields).raise_for_status()

        begun = {
            "tus": ("tus", {**tus, "Upload-Defer-Length": "1"}, by_tus),
            "one body": ("uploads", {"Upload-Complete": "?0"}, in_one_body),
        }
        for way, (place, fields, send) in begun.items():
            made = served.client.post(f"{API}/{place}", headers=fields).raise_for_status()
            address = made.headers["Location"]
            sender = threading.Thread(target=send, args=(address,))
            sender.start()
            listing = f"{API}/files/{address.rpartition('/')[2]}/hls/v1.m3u8"
            late: list[float] = []
            while sender.is_alive():
                answer = served.client.get(listing)
                now = time.monotonic()
                if answer.status_code == 200 and sent[way]:
                    whole = re.findall(r"EXTINF:([\d.]+)", answer.text)
                    tail = answer.text.rpartition("\nv1/")[2]
                    parts = re.findall(r"PART:DURATION=([\d.]+)", tail)
                    reached = sum(map(float, whole)) + sum(map(float, parts))
                    # the first fragment that was sent and is not listed whole
                    first = max(int(reached * 5 + 0.5) - 20, 0)
                    late.append(now - sent[way][first] if first < len(sent[way]) else 0.0)
                time.sleep(0.02)
            sender.join()
            ends = statistics.quantiles(late, n=20)
            print(
                f"{way}: sent and not listed for {statistics.median(late):.2f} s"
                f" (95 %: {ends[-1]:.2f})"
            )


def main() -> None:
    """What the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=["append", "viewers", "writer", "upload"])
    parser.add_argument("--hours", type=float, help="length of the recording: 1 and 10")
    parser.add_argument("--count", type=int, help="appends (40), viewers (500), requests (10,000)")
    parser.add_argument("--seconds", type=float, default=30, help="for which viewers watch (30)")
    given = parser.parse_args()
    if given.what == "append" and given.hours is None:
        for hours in ("1", "10"):  # each in a process of its own, whose memory is its own
            subprocess.run([sys.executable, *sys.argv, "--hours", hours], check=True)
    elif given.what == "append":
        append(given.hours, given.count or 40)
    elif given.what == "viewers":
        viewers(given.count or 500, given.seconds)
    elif given.what == "upload":
        upload(given.seconds)
    else:
        writer(given.count or 10_000)


if __name__ == "__main__":
    main()
