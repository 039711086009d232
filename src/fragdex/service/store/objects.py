"""The store in an object store (S3 and others) through obstore, named by its URL.

    PREFIX/objects/KEY             objects
    PREFIX/drafts/NAME/START       a piece of a draft, START its first byte as 20 digits

Retries are obstore's, bounded; what fails after them is Unavailable. A put is atomic there: an
object is whole or not there, so every write is durable once it is answered.

What is appended to a draft waits in memory until it makes a piece worth a request, or until
`sync`. A piece that was put is durable, so after a crash `size` may tell more than the last
`sync` did. Clients may put pieces themselves, by URLs that are signed: all that is known of drafts
(taking them over, hashing, composing, sweeping) holds for those. They are not trusted: their sizes
and bytes are looked at when the upload is completed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import obstore
from obstore import exceptions
from obstore.store import AzureStore, GCSStore, S3Store

from fragdex import ByteRange, Source, open_source
from fragdex.errors import FragdexError, InvalidRange, SourceNotFound, Unavailable
from fragdex.service.store.contract import (
    DRAFT_PIECE_BYTES,
    PIECE_BYTES,
    checked,
    local_copy,
    round_trips,
)

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Bucket
    from obstore.store import RetryConfig

RETRIES: RetryConfig = {"max_retries": 4, "retry_timeout": timedelta(seconds=30)}
"""A request waits for an answer meanwhile: seconds, not the minutes that a batch would give."""

READ_BYTES = 4 << 20
"""What one request to the object store reads, at most, when a range is read in order."""


class ObjectStore:
    """Objects and drafts in `bucket`, an obstore store (with its prefix, where it has one)."""

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket
        self.memory = MemoryUse()

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
        return upload_object(self.bucket, _place(key), pieces)

    def delete(self, key: str) -> None:
        """Delete the object."""
        remove(self.bucket, _place(key))

    def keys(self, prefix: str = "") -> Iterator[str]:
        """Keys of all objects that begin with `prefix`, sorted."""
        # Listing by prefix goes by whole segments; the rest of the prefix is compared here.
        folder = prefix.rpartition("/")[0]
        listed = "objects/" + (f"{folder}/" if folder else "")
        keys = [key.removeprefix("objects/") for key, _ in listing(self.bucket, listed)]
        yield from sorted(key for key in keys if key.startswith(prefix))

    def draft(self, name: str) -> ObjectDraft:
        """The draft of that name; nothing is written yet."""
        return ObjectDraft(self.bucket, checked(name), self.memory)

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
        if not round_trips(self):
            raise Unavailable("the object store gave back other bytes than were written")


def _place(key: str) -> str:
    return f"objects/{checked(key)}"


PIECE_OBJECT_BYTES = 8 << 20
"""What is gathered before it is put. Chunks of this size become one object each."""

LEAST_PIECE_OBJECT_BYTES = 1 << 20
ALL_WAITING_BYTES = 64 << 20
"""Where all drafts of a store hold more than this, pieces of the least size are put too."""


class MemoryUse:
    """How many bytes all drafts of a store hold in memory."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.size = 0

    def add(self, count: int) -> None:
        """So many more, or fewer."""
        with self._lock:
            self.size += count


def gapless(pieces: Iterable[tuple[int, int]]) -> int:
    """Bytes from 0 on that pieces, given as (start, size) in order, hold without a gap."""
    end = 0
    for start, size in pieces:
        if start > end:
            break
        end = max(end, start + size)
    return end


class ObjectDraft:
    """The draft `name` in `bucket`, an obstore store."""

    def __init__(self, bucket: Bucket, name: str, held: MemoryUse) -> None:
        self._bucket, self._held = bucket, held
        self._folder = f"drafts/{name}/"
        self._waiting: list[bytes] = []
        self._waiting_size = 0
        # (start, size) of the pieces that are there, in order; None: not asked yet
        self._pieces: list[tuple[int, int]] | None = None

    def __repr__(self) -> str:
        return f"<ObjectDraft {self._folder!r}>"

    def size(self) -> int:
        """Bytes that were put, without a gap; asks the object store again."""
        self._pieces = None
        return self._durable()

    def holds(self, size: int) -> bool:
        """Whether the first `size` bytes are here; asks the object store again."""
        return self.size() >= size

    def append(self, start: int, data: bytes | memoryview) -> None:
        """Put `data` at byte `start`; what stood there and after is gone."""
        end = self._durable() + self._waiting_size
        if not 0 <= start <= end:
            raise ValueError(f"a draft of {end} bytes cannot continue at byte {start}")
        if start < end:
            self._cut(start)
        if len(data):
            self._wait([*self._waiting, bytes(data)])
        crowded = self._held.size > ALL_WAITING_BYTES
        if self._waiting_size >= (LEAST_PIECE_OBJECT_BYTES if crowded else PIECE_OBJECT_BYTES):
            self._put()

    def sync(self) -> int:
        """Put what waits; returns the durable size."""
        if self._waiting:
            self._put()
        return self._durable()

    def read(self, start: int = 0) -> Iterator[memoryview]:
        """The durable bytes from `start` on; an object at a time is held in memory."""
        for first, size in list(self._listed()):
            if first + size <= start:
                continue
            with object_errors():
                data = memoryview(obstore.get(self._bucket, self._place(first)).bytes())
            for at in range(max(0, start - first), len(data), DRAFT_PIECE_BYTES):
                yield data[at : at + DRAFT_PIECE_BYTES]

    def fork(self, name: str, size: int) -> ObjectDraft:
        """The first `size` bytes under another name; whole pieces are copied where they lie."""
        if self._durable() < size:
            raise ValueError(f"the draft holds fewer than {size} bytes")
        other = ObjectDraft(self._bucket, checked(name), self._held)
        other.discard()
        for start, count in self._listed():
            if start + count <= size:
                with object_errors():
                    obstore.copy(self._bucket, self._place(start), other._place(start))
            elif start < size:
                with object_errors():
                    data = obstore.get_range(
                        self._bucket, self._place(start), start=0, end=size - start
                    )
                upload_object(self._bucket, other._place(start), [memoryview(data)])
        other._pieces = None
        return other

    def finish(self, key: str) -> None:
        """Compose the pieces to one object, and drop them."""
        target = f"objects/{checked(key)}"
        there = True
        try:
            with object_errors(key):
                obstore.head(self._bucket, target)
        except SourceNotFound:
            there = False
        if not there:
            self._wait([])
            if not self.size():
                raise SourceNotFound(f"the draft of {key} holds nothing")
            pieces = self._listed()
            if len(pieces) == 1:
                with object_errors():
                    obstore.copy(self._bucket, self._place(0), target)
            else:
                upload_object(self._bucket, target, self.read())
        self.discard()

    def discard(self) -> None:
        """Delete all pieces, the last one first, so that the rest never has a gap."""
        self.close()
        remove(self._bucket, *(path for path, _ in reversed(listing(self._bucket, self._folder))))

    def close(self) -> None:
        """Forget what waits and what is known."""
        self._wait([])
        self._pieces = None

    def __del__(self) -> None:
        self._wait([])

    def _wait(self, pieces: list[bytes]) -> None:
        """Hold these pieces, and no others, in memory."""
        size = sum(map(len, pieces))
        self._held.add(size - self._waiting_size)
        self._waiting, self._waiting_size = pieces, size

    def _place(self, start: int) -> str:
        return f"{self._folder}{start:020d}"

    def _listed(self) -> list[tuple[int, int]]:
        """The pieces that follow one another from byte 0 on."""
        if self._pieces is None:
            pieces = [
                (int(path.rpartition("/")[2]), size)
                for path, size in listing(self._bucket, self._folder)
            ]
            end = gapless(pieces)
            if any(start > end for start, _ in pieces):
                # what an interrupted `_cut` or `discard` left; nothing may ever join on to it
                remove(self._bucket, *(self._place(at) for at, _ in reversed(pieces) if at > end))
            self._pieces = [piece for piece in pieces if piece[0] <= end]
        return self._pieces

    def _durable(self) -> int:
        pieces = self._listed()
        return sum(pieces[-1]) if pieces else 0

    def _put(self) -> None:
        """Put what waits as one piece. Where that fails, `size` says what was stored."""
        start = self._durable()
        waiting = self._waiting
        self._wait([])
        size = upload_object(self._bucket, self._place(start), waiting)
        self._listed().append((start, size))

    def _cut(self, end: int) -> None:
        """Drop what stands at byte `end` and after."""
        durable = self._durable()
        if end >= durable:
            self._wait([b"".join(self._waiting)[: end - durable]] if end > durable else [])
            return
        self._wait([])
        pieces = self._listed()
        while pieces and pieces[-1][0] >= end:
            remove(self._bucket, self._place(pieces[-1][0]))
            pieces.pop()
        if pieces and sum(pieces[-1]) > end:
            start, _ = pieces[-1]
            with object_errors():
                head = obstore.get_range(self._bucket, self._place(start), start=0, end=end - start)
            upload_object(self._bucket, self._place(start), [memoryview(head)])
            pieces[-1] = (start, end - start)


class SignedParts:
    """Pieces of the drafts in `bucket`, an obstore store."""

    def __init__(self, bucket: S3Store | GCSStore | AzureStore) -> None:
        self._bucket = bucket

    @classmethod
    def of(cls, bucket: Bucket) -> SignedParts | None:
        """Those of a bucket; None where it signs no URLs."""
        known = isinstance(bucket, (S3Store, GCSStore, AzureStore))
        return cls(cast("S3Store", bucket)) if known else None

    def urls(self, draft: str, starts: Sequence[int], seconds: float) -> list[str]:
        """URLs to PUT the pieces that begin at these bytes, valid so long.

        Raises:
            Unavailable: no signing credentials.
        """
        if not starts:
            return []
        places = [f"drafts/{checked(draft)}/{start:020d}" for start in starts]
        with object_errors():
            return [*obstore.sign(self._bucket, "PUT", places, timedelta(seconds=seconds))]

    def pieces(self, draft: str) -> list[tuple[int, int]]:
        """(first byte, size) of all pieces that are here, in order, gaps or not."""
        listed = listing(self._bucket, f"drafts/{checked(draft)}/")
        return [(int(place.rpartition("/")[2]), size) for place, size in listed]

    def drop(self, draft: str, starts: Sequence[int]) -> None:
        """Delete the pieces that begin at these bytes."""
        remove(self._bucket, *(f"drafts/{checked(draft)}/{start:020d}" for start in starts))


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
        objects = [
            (str(one["path"]), int(one["size"]))
            for page in obstore.list(bucket, prefix, chunk_size=1000)
            for one in page
        ]
    return sorted(objects)


def upload_object(bucket: Bucket, place: str, pieces: Iterable[bytes | memoryview]) -> int:
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
        # breaks the upload off; the first error is the one reported
        with suppress(exceptions.BaseError, OSError):
            writer.__exit__(type(error), error, error.__traceback__)
        raise
    with object_errors():
        writer.close()
    return size
