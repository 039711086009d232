"""What stands in the files of slices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

__all__ = ["packets_of", "pictures_of"]


def packets_of(slices: Sequence[Callable[[], BinaryIO]]) -> Iterator[tuple[Any, Any]]:
    """The packets of slices in order, each with the stream that it comes from."""
    import av

    for opening in slices:
        with (
            opening() as file,
            av.open(file, "r", options={"ignore_editlist": "1"}) as part,
        ):
            source: Any = part.streams.video[0]
            for packet in part.demux(source):
                if packet.pts is not None:
                    yield packet, source


def pictures_of(slices: Sequence[Callable[[], BinaryIO]]) -> Iterator[Any]:
    """The decoded pictures of slices in order."""
    for packet, _ in packets_of(slices):
        yield from packet.decode()
