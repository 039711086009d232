"""Requests to an object store, and what may go wrong with them, as the service says it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import obstore
from obstore import exceptions

from fragdex.errors import FragdexError, SourceNotFound
from fragdex.service.errors import Unavailable

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Bucket

__all__ = ["listing", "object_errors", "remove"]

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
