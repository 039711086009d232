"""Make the files that the benchmarks read: python benchmarks/inputs.py [FOLDER].

One encoded loop is muxed again and again through libavformat's mov muxer with shifted times, so
every box, size and offset is what a real muxer writes. A file that is there and has the counts
asked for is kept; a file is written under another name first, so a broken run leaves none.
"""

from __future__ import annotations

import argparse
import json
import mmap
import struct
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import av
import loop

FOLDER = Path(__file__).parent / "data"
TWO_HOURS, HALF_AN_HOUR = 7200, 1800
FRAGMENTED = "empty_moov+default_base_moof+frag_keyframe"


@dataclass(frozen=True, slots=True)
class Input:
    """A file to be made: name, length in seconds, the muxer's flags, the moofs it must have."""

    name: str
    what: str
    seconds: int
    movflags: str
    moofs: int

    @property
    def samples(self) -> int:
        """Samples of both tracks."""
        return self.seconds * (loop.PICTURES + loop.SOUNDS) // loop.SECONDS


INPUTS = {
    "2h": Input(
        "fragmented-2h.mp4",
        "2 h, a fragment each 2 s, two tracks in each moof",
        TWO_HOURS,
        FRAGMENTED,
        TWO_HOURS // loop.GROUP_SECONDS,
    ),
    "sidx": Input(
        "sidx-2h.mp4",
        "the same with a sidx at the front",
        TWO_HOURS,
        FRAGMENTED + "+global_sidx",
        TWO_HOURS // loop.GROUP_SECONDS,
    ),
    "frames": Input(
        "frames-30min.mp4",
        "30 min, a moof for each frame",
        HALF_AN_HOUR,
        "empty_moov+default_base_moof+frag_every_frame",
        HALF_AN_HOUR * (loop.PICTURES + loop.SOUNDS) // loop.SECONDS,
    ),
    "progressive": Input(
        "progressive-2h.mp4",
        "2 h, not fragmented, moov at the front",
        TWO_HOURS,
        "faststart",
        0,
    ),
    "short": Input(
        "progressive-16s.mp4",
        "the loop once, for making ready where a whole moov must fit in a MiB",
        loop.SECONDS,
        "faststart",
        0,
    ),
    "short-fragments": Input(
        "fragmented-16s.mp4",
        "the same in fragments",
        loop.SECONDS,
        FRAGMENTED,
        loop.SECONDS // loop.GROUP_SECONDS,
    ),
}


@dataclass(frozen=True, slots=True)
class Counts:
    """What stands in a file, counted with nothing but struct; bytes are whole boxes."""

    bytes: int
    boxes: int
    moofs: int
    moof_bytes: int
    largest_moof: int
    moov_bytes: int
    sidx: int
    samples: int


def _trun_samples(data: mmap.mmap, start: int, stop: int) -> int:
    """Sum sample_count over the truns between two offsets (ISO/IEC 14496-12, 8.8.8)."""
    total = 0
    while start + 8 <= stop:
        size, kind = struct.unpack_from(">I4s", data, start)
        if kind == b"traf":
            total += _trun_samples(data, start + 8, start + size)
        elif kind == b"trun":
            total += struct.unpack_from(">I", data, start + 12)[0]
        start += size
    return total


def _stsz_samples(data: mmap.mmap, start: int, stop: int) -> int:
    """Sum sample_count over the stsz boxes below a moov (ISO/IEC 14496-12, 8.7.3)."""
    total = 0
    while start + 8 <= stop:
        size, kind = struct.unpack_from(">I4s", data, start)
        if kind in (b"trak", b"mdia", b"minf", b"stbl"):
            total += _stsz_samples(data, start + 8, start + size)
        elif kind == b"stsz":
            total += struct.unpack_from(">I", data, start + 16)[0]
        start += size
    return total


def count(path: Path) -> Counts:
    """Count the boxes, moofs and samples of a file."""
    boxes = moofs = moof_bytes = largest = moov_bytes = sidx = samples = 0
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at, end = 0, len(data)
        while at + 8 <= end:
            size, kind = struct.unpack_from(">I4s", data, at)
            if size == 1:
                size = struct.unpack_from(">Q", data, at + 8)[0]
            if kind == b"moof":
                moofs += 1
                moof_bytes += size
                largest = max(largest, size)
                samples += _trun_samples(data, at + 8, at + size)
            elif kind == b"moov":
                moov_bytes += size
                samples += _stsz_samples(data, at + 8, at + size)
            elif kind == b"sidx":
                sidx += 1
            boxes += 1
            at += size or end - at
    return Counts(end, boxes, moofs, moof_bytes, largest, moov_bytes, sidx, samples)


def _fits(item: Input, counts: Counts) -> bool:
    """Whether a file has the fragments and samples asked for."""
    wants_sidx = "sidx" in item.movflags
    # The muxer may close one fragment more at the end of the file.
    near = 0 <= counts.moofs - item.moofs <= 2
    return near and counts.samples == item.samples and bool(counts.sidx) == wants_sidx


def _decodes(path: Path) -> bool:
    """Whether a player can begin: parameter sets are there and the first frames decode."""
    with av.open(str(path)) as container:
        video, audio = container.streams.video[0], container.streams.audio[0]
        try:
            next(container.decode(video))
            container.seek(0)
            next(container.decode(audio))
        except (av.FFmpegError, StopIteration):
            return False
    return True


def _mux(item: Input, path: Path, packets: loop.Loop) -> None:
    with av.open(str(path), "w", format="mp4", options={"movflags": item.movflags}) as out:
        streams = (
            out.add_stream_from_template(packets.video),
            out.add_stream_from_template(packets.audio),
        )
        for number, packet in packets.packets(item.seconds):
            packet.stream = streams[number]
            out.mux_one(packet)


def make(folder: Path = FOLDER) -> dict[str, tuple[Path, Counts]]:
    """Make what is missing in the folder and return path and counts of every input by key."""
    folder.mkdir(parents=True, exist_ok=True)
    packets: loop.Loop | None = None
    movies: dict[str, tuple[Path, Counts]] = {}
    for key, item in INPUTS.items():
        path = folder / item.name
        counts = count(path) if path.exists() else None
        if counts is None or not (_fits(item, counts) and _decodes(path)):
            packets = packets or loop.encode()
            began = time.perf_counter()
            unfinished = path.with_suffix(".unfinished")
            _mux(item, unfinished, packets)
            counts = count(unfinished)
            if not (_fits(item, counts) and _decodes(unfinished)):
                raise SystemExit(f"{item.name}: not what was asked for: {counts}")
            unfinished.replace(path)
            print(f"{item.name}: made in {time.perf_counter() - began:.1f} s", flush=True)
        print(f"{item.name}: {item.what}: {json.dumps(asdict(counts))}", flush=True)
        movies[key] = (path, counts)
    return movies


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    make(parser.parse_args().folder)
