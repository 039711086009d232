"""What reads a file in a process of its own; by itself it makes the exact index."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fragdex import ByteRange, Source, index, open_source
from fragdex.service.processes.channel import Channel, opened

__all__ = ["INDEX", "main", "reading"]

INDEX = "file.fidx"
"""An index that is made, in the folder of the child."""


class _ResourceFetcher(Source):
    """A file whose bytes the parent reads."""

    def __init__(self, channel: Channel, size: int) -> None:
        super().__init__("the file", size=size, remote=True)
        self._channel = channel

    def read_up_to(self, range: ByteRange) -> bytes:
        wanted = self._spend(range)
        answer, _ = self._channel.ask(start=wanted.start, stop=wanted.stop)
        return base64.b64decode(answer["data"])


@contextmanager
def reading(channel: Channel, size: int, files: list[int] | None) -> Iterator[Source]:
    """The file that a job was given: handed over open, or read by the parent."""
    if not files:
        yield _ResourceFetcher(channel, size)
        return
    with opened(files[0], "file") as file, open_source(file) as source:
        yield source


def main(channel: Channel) -> None:
    """Make the exact index of a file."""

    def exact(size: int, files: list[int] | None = None) -> dict[str, Any]:
        with reading(channel, size, files) as source:
            index(source, exact=True).save(Path(INDEX))
        return {}

    jobs: dict[str, Callable[..., dict[str, Any]]] = {"exact": exact}
    channel.serve(jobs)
