"""Films that the rows read: a loop, encoded once, over and over (benchmarks/loop.py).

The loop is 40 s: a whole number of groups of 50 and of 250 frames at 25 a second, and of AAC
frames. Frame n therefore has the pixels of frame n modulo 1,000, and a time of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import av
import loop
import numpy as np

from fragdex.data import write_set
from fragdex.data.set_file import SetFile, set_writer
from fragdex.data.set_parts import GROUP_BYTES, GROUP_ROWS

__all__ = ["FOLDER", "LOOP", "RATE", "Film", "made", "made_set", "many_rows"]

FOLDER = Path(__file__).parents[1] / "data" / "frames"
RATE, LOOP_SECONDS = 25, 40
LOOP = RATE * LOOP_SECONDS
"""Frames after which the pixels are the same again."""
SET_FILMS, SET_LOOPS = 200, 8

_SD = "bframes=3"
# Without a word on colours each reader takes a matrix of its own choice.
_HD = _SD + ":colorprim=bt709:transfer=bt709:colormatrix=bt709"


@dataclass(frozen=True, slots=True)
class Film:
    """Size, frames a group, seconds."""

    width: int
    height: int
    group: int
    seconds: int

    @property
    def name(self) -> str:
        """Of its file."""
        return f"{self.width}x{self.height}-{self.group}-{self.seconds}s.mp4"

    @property
    def frames(self) -> int:
        """How many there are."""
        return self.seconds * RATE

    def shape(self, first: int = 0) -> loop.Shape:
        """Of its loop."""
        is_hd = self.height >= 720
        bits = f"{max(self.width * self.height * 5 // 1000, 300)}k"
        return loop.Shape(
            LOOP_SECONDS, RATE, self.group, self.width, self.height, bits, _HD if is_hd else _SD,
            first,
        )  # fmt: skip


def made(film: Film) -> Path:
    """The path of a film, which is made where it is missing."""
    path = FOLDER / film.name
    if not path.exists():
        _mux(loop.encode(film.shape()), film.seconds, path)
        print(f"    {path.name}: {path.stat().st_size:,} bytes", flush=True)
    return path


def made_set(count: int) -> Path:
    """A folder with so many small films: a few loops in many lengths."""
    folder = FOLDER / f"set-{count}"
    for turn in range(SET_LOOPS):
        numbers = range(turn, count, SET_LOOPS)
        missing = [number for number in numbers if not _of_set(folder, number).exists()]
        if missing:
            packets = loop.encode(Film(320, 180, 50, LOOP_SECONDS).shape(turn * LOOP))
            for number in missing:
                _mux(packets, 16 + number // SET_LOOPS, _of_set(folder, number))
    return folder


def many_rows(count: int, path: Path) -> Path:
    """A set with so many rows, whose videos are some of `made_set` under names of their own.

    Written as `write_set` writes sets, but by whole row groups. Returns their folder.
    """
    folder = made_set(SET_LOOPS)
    few = path.with_suffix(".few")
    write_set([str(_of_set(folder, number)) for number in range(SET_LOOPS)], few)
    rows = SetFile(str(few)).read(0)
    few.unlink()
    with set_writer(str(path)) as writer:
        each = max(min(GROUP_ROWS, GROUP_BYTES * SET_LOOPS // rows["index"].nbytes), 1)
        for first in range(0, count, each):
            numbers = np.arange(first, min(first + each, count))
            names = [f"{n}/../{n % SET_LOOPS:03}.mp4" for n in numbers.tolist()]
            group = rows.take(numbers % SET_LOOPS)
            writer.write_table(group.set_column(0, group.schema.field(0), [names]))
    return folder


def _of_set(folder: Path, number: int) -> Path:
    return folder / f"{number:03}.mp4"


def _mux(packets: loop.Loop, seconds: int, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    with av.open(str(unfinished), "w", format="mp4", options={"movflags": "faststart"}) as out:
        streams = [out.add_stream_from_template(one) for one in (packets.video, packets.audio)]
        for number, packet in packets.packets(seconds):
            packet.stream = streams[number]
            out.mux_one(packet)
    unfinished.replace(path)
