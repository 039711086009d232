"""The media work in a child process: the tracks of one file, written into a folder of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from fragdex.errors import Unprocessable
from fragdex.sandbox.channel import Channel, opened
from fragdex.sandbox.child import ChildProcess, Failures
from fragdex.sandbox.folders import take_file
from fragdex.sandbox.processes import data_left, memory_of_one
from fragdex.sandbox.walls import Walls
from fragdex.transcode.tracks import TranscodedTrack

STALL_SECONDS: Final = 300.0
"""Silence after which the work is taken for hung; it speaks several times a second."""

# No file that a hostile input makes us write is larger than this many times the input …
_GROWTH: Final = 8
# … or this, for a small input whose pictures are large.
_LEAST_BOUND: Final = 4 << 30
_CPU_SECONDS: Final = 24 * 3600
_PATHS: Final = ("path", "index_path", "ranges_path")
_FAILURES: Final = Failures("the media process", "this file")
_REPORT_SECONDS: Final = 0.2
# Of its memory: a codec allocates some pictures at once, and gets none of them.
_LITTLE: Final = 1 / 4


def run(
    path: Path,
    folder: Path,
    progress: Callable[[float], None] = lambda _: None,
    check: Callable[[], None] = lambda: None,
    *,
    scrub_alone: bool = False,
    sound_alone: bool = False,
    ranges: bool = False,
    stall_seconds: float = STALL_SECONDS,
) -> list[TranscodedTrack]:
    """Make the tracks of a media file in a child process.

    Args:
        progress: called with 0…1, in this thread.
        check: called several times a second; what it raises ends the child.
        scrub_alone: only the scrub track; none of a file without video.
        sound_alone: only tracks of sound, without loss where they are encoded.
        ranges: also find out where the file has the bytes of copied tracks.

    Raises:
        Unprocessable: the file cannot be processed, or breaks the libraries.
        StoreFull: no room in the folder.
        Unavailable: somebody ended the child.
        RuntimeError: the child failed for another reason.
    """

    def on_message(message: dict[str, Any]) -> None:
        progress(message["progress"])

    with path.open("rb") as file:
        size = max(_GROWTH * path.stat().st_size, _LEAST_BOUND)
        walls = Walls(memory_of_one(), size, cpu_seconds=_CPU_SECONDS)
        with ChildProcess(
            __name__, walls, _FAILURES,
            folder=folder, stall_seconds=stall_seconds,
        ) as child:  # fmt: skip
            answer = child.do(
                "process", check=check, on_message=on_message, files=[file.fileno()],
                scrub_alone=scrub_alone, sound_alone=sound_alone, ranges=ranges,
            )["made"]  # fmt: skip
    return [
        TranscodedTrack(**one | {name: _own(folder, one[name]) for name in _PATHS})
        for one in answer
    ]


def _own(folder: Path, name: str) -> str:
    """A file of the folder: whoever broke a child may have named or made any other."""
    if not name:
        return ""
    path = folder / Path(name).name
    take_file(path, path)
    return str(path)


def main(channel: Channel) -> None:
    """What the child does: it processes files that are handed over open."""
    import av.logging

    from fragdex.transcode.process import process_file

    av.logging.set_level(None)
    last = 0.0

    def progress(part: float) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _REPORT_SECONDS or part >= 1:
            last = now
            channel.send(progress=round(part, 4))

    def process(files: list[int], ranges: bool, **alone: bool) -> dict[str, Any]:
        try:
            with opened(files[0], "file") as file:
                tracks = process_file(file, Path(), progress, ranges=ranges, **alone)
        except Unprocessable as error:
            # Codecs without memory say that a sample is damaged, or that something went wrong.
            left, most = data_left(os.getpid(), least=True) or (1, 1)
            if left < most * _LITTLE:
                raise MemoryError from error
            raise
        return {"made": [asdict(one) for one in tracks]}

    channel.serve({"process": process})
