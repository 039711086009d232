"""Has images measured in child processes, which stay for the next image."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from fragdex.sandbox.channel import Channel, opened
from fragdex.sandbox.child import ChildProcess, Failures, Idle
from fragdex.sandbox.walls import Walls
from fragdex.service.images.probe import Size, probe

__all__ = ["Prober", "main"]

STALL_SECONDS: Final = 20.0
IDLE_SECONDS: Final = 60.0
_MOST_IDLE: Final = 2
# No pixel is decoded; a note on an image may be a megabyte.
_WALLS: Final = Walls(512 << 20, 1 << 20, cpu_seconds=600)
# A bound of processor time holds for all that a child does.
_IMAGES_OF_ONE: Final = 1000
_FAILURES: Final = Failures("the image process", "this image")


class _Child(ChildProcess):
    measured = 0


class Prober:
    """Measures images; may be used by several threads at once. A part of the context."""

    def __init__(self) -> None:
        self._idle: Idle[_Child] = Idle(IDLE_SECONDS)

    def probe(self, path: Path, mime_type: str, max_pixels: int) -> Size:
        """Measure an image that is said to be of a type; raises as `images.probe.probe`."""
        child = self._idle.take(lambda one: 1.0 if one.alive else None) or _Child(
            __name__, _WALLS, _FAILURES, stall_seconds=STALL_SECONDS
        )
        child.measured += 1
        try:
            with path.open("rb") as file:
                told = child.do(
                    "measure", files=[file.fileno()], mime_type=mime_type, max_pixels=max_pixels
                )
        finally:
            if child.alive and child.measured < _IMAGES_OF_ONE:
                self._idle.put(child, _MOST_IDLE)
            else:
                child.end()
        return Size(*told["size"])

    def close(self) -> None:
        """End the children that wait."""
        self._idle.end()


def main(channel: Channel) -> None:
    """What a child does: it measures images that are handed over open."""

    def measure(files: list[int], mime_type: str, max_pixels: int) -> dict[str, Any]:
        with opened(files[0], "image") as file:
            return {"size": probe(file, mime_type, max_pixels)}

    channel.serve({"measure": measure})
