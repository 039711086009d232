"""What reads a file in a process of its own: a function of ours, such as one that indexes it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import fragdex
from fragdex import Index, Source, index, open_index, open_source, package
from fragdex.digest import Digest
from fragdex.errors import FragdexError, LimitExceeded, TrackNotFound
from fragdex.sandbox.channel import Channel, opened
from fragdex.sandbox.child import ParentSource
from fragdex.seeking.model import FileInfo

CHILD = __name__
INDEX = "file.fidx"
"""An index that is made, in the folder of the child."""
MOST_SECONDS: Final = 5.0
"""Of the processor, to package a file: the service does it in a thread, next to its answers."""


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


def sampled(
    source: Source, *, md5: str | None = None, name: str = "", etag: str | None = None
) -> dict[str, Any]:
    """Make the index of a file with all its samples, and try whether it can be packaged in time.

    Args:
        md5, name, etag: of the file, which the index will tell.

    Raises:
        LimitExceeded: packaging it takes too long.
    """
    exact = index(source, exact=True)
    known = FileInfo(name, source.size, None if md5 is None else Digest(md5), etag)
    combined = Index(
        known, exact.how, exact.periods, findings=exact.findings, complete=exact.complete,
        resume_offset=exact.resume_offset,
    )  # fmt: skip
    combined.save(Path(INDEX), samples=True)
    began = time.process_time()
    with suppress(FragdexError):  # the request for it will say why
        package(combined, source=source)["master.m3u8"]
    if time.process_time() - began > MOST_SECONDS:
        raise LimitExceeded(
            "the structure of the file is too large to be packaged on request",
            expected=f"{MOST_SECONDS:g} s of the processor at most",
        )
    return {}


def main(channel: Channel) -> None:
    """Carry out requests about files."""

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


def true_time(
    index: Index, source: Source, track_id: int, kind: str | None, time: Fraction
) -> Fraction:
    """The presentation time of the true sync sample for a moment; raises as a verified `seek`.

    Args:
        index: of the file `source`, which may call the track otherwise if it has only one.
    """
    named = [one for one in index.tracks if one.id == track_id and one.kind == kind]
    own = named or [one for one in index.tracks if one.kind == kind]
    if not own:
        raise TrackNotFound(f"the bytes of track {track_id} hold no such track")
    return Fraction(own[0].seek(time, verified=True, source=source).time.fraction)


def verified(
    source: Source, known: int | None = None, *, track: int, kind: str, time: str
) -> dict[str, Any]:
    """Look at pictures of a file; its index is handed over open where one is known."""
    if known is None:
        index = fragdex.index(source, exact=True)
    else:
        with opened(known, "index") as file:
            index = open_index(file)
    return {"time": str(true_time(index, source, track, kind, Fraction(time)))}
