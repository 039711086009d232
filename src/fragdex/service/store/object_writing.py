"""Putting an object whole: at once where it is small, in parts where it is large.

obstore drives its parts in the thread that calls it and asks the iterator of pieces for more from
there. An iterator that reads from an object store itself would meet its own driver, so the parts
are put by a thread of their own and the pieces stay with their caller.
"""

from __future__ import annotations

import queue
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

import obstore

from fragdex.service.store.object_requests import object_errors

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Bucket

__all__ = ["PART_BYTES", "put_whole"]

PART_BYTES = 8 << 20
"""One part of a multipart upload; S3 takes 10,000 of them, so 80 GB in all."""

PARTS_AT_ONCE = 2
"""Parts on their way at one time: each is held in memory until it is answered."""

LOOK_S = 0.5


def put_whole(bucket: Bucket, place: str, pieces: Iterable[bytes | memoryview]) -> int:
    """Put an object; returns its size. It is there, whole, once this returns.

    What `pieces` raises is raised as it is, and nothing is written.
    """
    parts = _parts(pieces)
    first = next(parts, b"")
    if len(first) < PART_BYTES:
        with object_errors():
            obstore.put(bucket, place, first, use_multipart=False)
        return len(first)
    waiting: queue.Queue[bytes | BaseException | None] = queue.Queue(1)
    size = 0
    with ThreadPoolExecutor(1, "fragdex-put") as thread:
        putting = thread.submit(_put_parts, bucket, place, waiting)
        try:
            part: bytes | None = first
            while part:
                size += len(part)
                if not _hand_over(waiting, part, putting):
                    break
                part = next(parts, None)
            _hand_over(waiting, None, putting)
        except BaseException as error:
            _hand_over(waiting, error, putting)
            # the caller's own error is what went wrong; the put was told to break off
            putting.exception()
            raise
        with object_errors():
            putting.result()
    return size


def _parts(pieces: Iterable[bytes | memoryview]) -> Iterator[bytes]:
    """The bytes of `pieces` in parts of one size; the last one may be smaller."""
    part = bytearray()
    for piece in pieces:
        view = memoryview(piece)
        while view:
            taken = view[: PART_BYTES - len(part)]
            part += taken
            view = view[len(taken) :]
            if len(part) == PART_BYTES:
                yield bytes(part)
                part.clear()
    if part:
        yield bytes(part)


def _put_parts(
    bucket: Bucket, place: str, waiting: queue.Queue[bytes | BaseException | None]
) -> None:
    def parts() -> Iterator[bytes]:
        while (part := waiting.get()) is not None:
            if isinstance(part, BaseException):
                raise part
            yield part

    obstore.put(bucket, place, parts(), chunk_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE)


def _hand_over(
    waiting: queue.Queue[bytes | BaseException | None],
    part: bytes | BaseException | None,
    putting: Future[None],
) -> bool:
    """Give one part to the thread; False where it has ended and takes no more."""
    while not putting.done():
        try:
            waiting.put(part, timeout=LOOK_S)
            return True
        except queue.Full:
            continue
    return False
