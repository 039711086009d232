"""Requests to an object store, and what may go wrong with them, as the service says it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import obstore
from obstore import exceptions

from fragdex.errors import FragdexError, SourceNotFound, Unavailable

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Bucket

__all__ = ["PART_BYTES", "listing", "object_errors", "put_whole", "remove"]

PART_BYTES = 8 << 20
"""One part of a multipart upload; S3 takes 10,000 of them, so 80 GB in all."""

PARTS_AT_ONCE = 2
"""Parts on their way at one time: each is held in memory until it is answered."""

RETRY_S = 5.0


@contextmanager
def object_errors(key: str | None = None) -> Iterator[None]:
    """Turn failures into SourceNotFound, where `key` is given and missing, or Unavailable.

    What the object store said stays out of the message (it names buckets and hosts); it is the
    error's cause.
    """
    try:
        yield
    except FragdexError:
        raise
    except (FileNotFoundError, exceptions.NotFoundError) as error:
        if key is None:
            raise Unavailable("the object store misses a piece", retry_after=RETRY_S) from error
        raise SourceNotFound(f"the store holds no {key}") from error
    except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
        raise Unavailable(
            "the object store refuses this service",
            retry_after=RETRY_S,
            advice="look at the credentials and at the policy of the bucket",
        ) from error
    except (exceptions.BaseError, OSError) as error:
        raise Unavailable("the object store does not answer", retry_after=RETRY_S) from error


def remove(bucket: Bucket, *places: str) -> None:
    """Delete objects; harmless where they are not there."""
    for place in places:
        try:
            with object_errors(place):
                obstore.delete(bucket, place)
        except SourceNotFound:
            pass


def listing(bucket: Bucket, prefix: str) -> list[tuple[str, int]]:
    """(path, size) of all objects below a folder, sorted by path."""
    with object_errors():
        found = [
            (str(one["path"]), int(one["size"]))
            for page in obstore.list(bucket, prefix, chunk_size=1000)
            for one in page
        ]
    return sorted(found)


def put_whole(bucket: Bucket, place: str, pieces: Iterable[bytes | memoryview]) -> int:
    """Put an object, in parts where it is large; returns its size. It is there once this returns.

    What `pieces` raises is raised as it is, and nothing is written.
    """
    size = 0
    writer = obstore.open_writer(
        bucket, place, buffer_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE
    )
    try:
        for piece in pieces:
            with object_errors():
                writer.write(piece)
            size += len(piece)
    except BaseException as error:
        # breaks the upload off; what went wrong first is what is told
        with suppress(exceptions.BaseError, OSError):
            writer.__exit__(type(error), error, error.__traceback__)
        raise
    with object_errors():
        writer.close()
    return size
