"""Images in a child process: it says how large they are."""

from __future__ import annotations

from typing import Any

from fragdex.service.images.probe import probe
from fragdex.service.processes.channel import Channel, opened

__all__ = ["main"]


def main(channel: Channel) -> None:
    """Measure images that are handed over open."""

    def measure(files: list[int], mime_type: str, max_pixels: int) -> dict[str, Any]:
        with opened(files[0], "image") as file:
            return {"size": probe(file, mime_type, max_pixels)}

    channel.serve({"measure": measure})
