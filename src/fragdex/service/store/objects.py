"""The store in an object store (S3 and others) through obstore, named by its URL.

    PREFIX/objects/KEY             objects
    PREFIX/drafts/NAME/START       a piece of a draft, START its first byte as 20 digits

Retries are obstore's, bounded; what fails after them is Unavailable. A put is atomic there: an
object is whole or not there, so every write is durable once it is answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import obstore

from fragdex import ByteRange, Source, open_source
from fragdex.errors import InvalidRange, Unavailable
from fragdex.service.store.contract import PIECE_BYTES, checked, gives_back, local_copy
from fragdex.service.store.object_draft import HeldBytes, ObjectDraft
from fragdex.service.store.object_requests import listing, object_errors, put_whole, remove
from fragdex.service.store.signed_parts import SignedParts

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Bucket
    from obstore.store import RetryConfig

__all__ = ["RETRIES", "ObjectStore"]

RETRIES: RetryConfig = {"max_retries": 4, "retry_timeout": timedelta(seconds=30)}
"""A request waits for an answer meanwhile: seconds, not the minutes that a batch would give."""

READ_BYTES = 4 << 20
"""What one request to the object store asks for, at most, when a range is read in order."""


class ObjectStore:
    """Objects and drafts in `bucket`, an obstore store (with its prefix, where it has one).

    >>> from obstore.store import MemoryStore
    >>> store = ObjectStore(MemoryStore())
    >>> store.write("greetings/one", [b"good ", b"day"])
    8
    >>> b"".join(store.read("greetings/one", ByteRange(5, 8)))
    b'day'
    """

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket
        self.held = HeldBytes()

    def __repr__(self) -> str:
        return f"<ObjectStore {self.bucket!r}>"

    def size(self, key: str) -> int:
        """Bytes of the object."""
        with object_errors(key):
            return obstore.head(self.bucket, _place(key))["size"]

    def read(self, key: str, wanted: ByteRange) -> Iterator[bytes]:
        """The bytes of a range of an object, in pieces of at most 256 KiB."""
        return self._pieces(key, _place(key), wanted)

    def _pieces(self, key: str, place: str, wanted: ByteRange) -> Iterator[bytes]:
        if not wanted.size:
            self._within(wanted, self.size(key))
            return
        with object_errors(key):
            try:
                start, stop = wanted.start, min(wanted.stop, wanted.start + READ_BYTES)
                answer = obstore.get(self.bucket, place, options={"range": (start, stop)})
            except obstore.exceptions.GenericError:
                # a range that begins past the end looks like any failure
                self._within(wanted, self.size(key))
                raise
            whole, etag = answer.meta["size"], answer.meta["e_tag"]
            self._within(wanted, whole)
            data = answer.bytes()
        while True:
            view = memoryview(data)
            for at in range(0, len(view), PIECE_BYTES):
                yield bytes(view[at : at + PIECE_BYTES])
            start += len(view)
            if start >= wanted.stop:
                return
            stop = min(wanted.stop, start + READ_BYTES)
            options: Any = {"range": (start, stop)} | ({"if_match": etag} if etag else {})
            with object_errors(key):
                data = obstore.get(self.bucket, place, options=options).bytes()
            if not data:
                raise Unavailable(f"the object store cut {key} short")

    def _within(self, wanted: ByteRange, size: int) -> None:
        if wanted.stop > size:
            raise InvalidRange("the range ends after the object", expected=size, found=wanted)

    def source(self, key: str) -> Source:
        """The object as the library reads it, by ranges."""
        return open_source(_place(key), store=self.bucket)

    def write(self, key: str, pieces: Iterable[bytes]) -> int:
        """Write an object whole; returns its size."""
        return put_whole(self.bucket, _place(key), pieces)

    def delete(self, key: str) -> None:
        """Delete the object."""
        remove(self.bucket, _place(key))

    def keys(self, prefix: str = "") -> Iterator[str]:
        """Keys of all objects that begin with `prefix`, sorted."""
        # Listing by prefix goes by whole segments; the rest of the prefix is compared here.
        folder = prefix.rpartition("/")[0]
        listed = "objects/" + (f"{folder}/" if folder else "")
        found = [key.removeprefix("objects/") for key, _ in listing(self.bucket, listed)]
        yield from sorted(key for key in found if key.startswith(prefix))

    def draft(self, name: str) -> ObjectDraft:
        """The draft of that name; nothing is written yet."""
        return ObjectDraft(self.bucket, checked(name), self.held)

    def drafts(self) -> Iterator[str]:
        """Names of all drafts that hold bytes, sorted."""
        names: dict[str, list[tuple[int, int]]] = {}
        for key, size in listing(self.bucket, "drafts/"):
            name, _, start = key.removeprefix("drafts/").rpartition("/")
            names.setdefault(name, []).append((int(start), size))
        yield from sorted(names)

    def direct(self) -> SignedParts | None:
        """Pieces that clients put themselves, where the object store signs URLs."""
        return SignedParts.of(self.bucket)

    def local(self, key: str) -> AbstractContextManager[Path]:
        """A copy in a temporary file, removed when the context ends."""
        return local_copy(self, key)

    def path(self, key: str) -> Path | None:
        """None: the bytes are elsewhere."""
        checked(key)
        return None

    def sweep_temporary(self) -> int:
        """0: nothing is half written there."""
        return 0

    def check(self) -> None:
        """Write, read and delete a small object."""
        if not gives_back(self):
            raise Unavailable("the object store gave back other bytes than were written")


def _place(key: str) -> str:
    return f"objects/{checked(key)}"
