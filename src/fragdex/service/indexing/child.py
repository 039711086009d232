"""What reads a file in a process of its own: a function of ours, such as one that indexes it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from fragdex import ByteRange, Source, index, open_source
from fragdex.service.processes.channel import Channel, opened
from fragdex.service.processes.child import Answer

__all__ = ["CHILD", "INDEX", "ParentSource", "exact", "main", "reads"]

CHILD = __name__
INDEX = "file.fidx"
"""An index that is made, in the folder of the child."""


class ParentSource(Source):
    """A file whose bytes the parent `reads`."""

    def __init__(self, channel: Channel, size: int | None, name: str = "the file") -> None:
        super().__init__(name, size=size, remote=True)
        self._channel = channel

    def read_up_to(self, range: ByteRange) -> bytes:
        """Ask the parent."""
        wanted = self._spend(range)
        answer, _ = self._channel.ask(start=wanted.start, stop=wanted.stop)
        return base64.b64decode(answer["data"])


def reads(source: Source) -> Answer:
    """What answers a `ParentSource` in a child, of a file that its parent has open."""

    def answer(asked: dict[str, Any]) -> tuple[dict[str, Any], Sequence[int]]:
        data = source.read_up_to(ByteRange(asked["start"], asked["stop"]))
        return {"data": base64.b64encode(data).decode()}, ()

    return answer


@contextmanager
def _reading(channel: Channel, size: int, files: list[int]) -> Iterator[Source]:
    """The file that a job was given: handed over open, or read by the parent."""
    if not files:
        yield ParentSource(channel, size)
        return
    with opened(files[0], "file") as file, open_source(file) as source:
        yield source


def exact(source: Source) -> dict[str, Any]:
    """Make the exact index of a file."""
    index(source, exact=True).save(Path(INDEX))
    return {}


def main(channel: Channel) -> None:
    """Do what is asked of files."""

    def call(
        function: str, size: int, lent: int, arguments: dict[str, Any],
        files: list[int] | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        module, name = function.split(":")
        given = files or []
        do: Callable[..., dict[str, Any]] = getattr(import_module(module), name)
        with _reading(channel, size, given[lent:]) as source:
            return do(source, *given[:lent], **arguments)

    channel.serve({"call": call})
