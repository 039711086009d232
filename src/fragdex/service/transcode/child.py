"""The media work in a child process: the tracks of one file, written into its own folder."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Final

from fragdex.service.errors import Unprocessable
from fragdex.service.processes.channel import Channel, opened
from fragdex.service.processes.limits import data_left

__all__ = ["main"]

_REPORT_SECONDS: Final = 0.2
# Of its memory: a codec asks for some pictures at once, and gets none of them.
_LITTLE: Final = 1 / 4


def main(channel: Channel) -> None:
    """Process files that are handed over open."""
    import av.logging

    from fragdex.service.transcode.process import process_file

    av.logging.set_level(None)
    last = 0.0

    def progress(part: float) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _REPORT_SECONDS or part >= 1:
            last = now
            channel.send(progress=round(part, 4))

    def process(files: list[int], scrub_alone: bool) -> dict[str, Any]:
        try:
            with opened(files[0], "file") as file:
                made = process_file(file, Path(), progress, scrub_alone=scrub_alone)
        except Unprocessable as error:
            # Codecs without memory say that a sample is damaged, or that something went wrong.
            left, most = data_left(os.getpid(), least=True) or (1, 1)
            if left < most * _LITTLE:
                raise MemoryError from error
            raise
        return {"made": [one.as_json() for one in made]}

    channel.serve({"process": process})
