"""A draft in an object store: pieces as objects, named by their first byte, composed at `finish`.

What is appended waits in memory until it makes a piece worth a request, or until `sync`. A piece
that was put is durable, so after a crash `size` may tell more than the last `sync` did.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import obstore

from fragdex.errors import SourceNotFound
from fragdex.service.store.contract import DRAFT_PIECE_BYTES, checked
from fragdex.service.store.object_requests import listing, object_errors, put_whole, remove

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Bucket

__all__ = ["HeldBytes", "ObjectDraft", "gapless"]

PIECE_BYTES = 8 << 20
"""What is gathered before it is put. Chunks of this size become one object each."""

LEAST_PIECE_BYTES = 1 << 20
ALL_WAITING_BYTES = 64 << 20
"""Where all drafts of a store hold more than this, pieces of the least size are put too."""


class HeldBytes:
    """How many bytes all drafts of a store hold in memory."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.size = 0

    def add(self, count: int) -> None:
        """So many more, or fewer."""
        with self._lock:
            self.size += count


def gapless(pieces: Iterable[tuple[int, int]]) -> int:
    """Bytes from 0 on that pieces, given as (start, size) in order, hold without a gap.

    >>> gapless([(0, 5), (5, 5), (12, 5)])
    10
    """
    end = 0
    for start, size in pieces:
        if start > end:
            break
        end = max(end, start + size)
    return end


class ObjectDraft:
    """The draft `name` in `bucket`, an obstore store."""

    def __init__(self, bucket: Bucket, name: str, held: HeldBytes) -> None:
        self._bucket, self._held = bucket, held
        self._folder = f"drafts/{name}/"
        self._waiting: list[bytes] = []
        self._waiting_size = 0
        # (start, size) of the pieces that are there, in order; None: not asked yet
        self._pieces: list[tuple[int, int]] | None = None

    def __repr__(self) -> str:
        return f"<ObjectDraft {self._folder!r}>"

    def size(self) -> int:
        """Bytes that were put, without a gap; asks the object store anew."""
        self._pieces = None
        return self._durable()

    def holds(self, size: int) -> bool:
        """Whether the first `size` bytes are here; asks the object store anew."""
        return self.size() >= size

    def append(self, start: int, data: bytes | memoryview) -> None:
        """Put `data` at byte `start`; what stood there and after is gone."""
        end = self._durable() + self._waiting_size
        if not 0 <= start <= end:
            raise ValueError(f"a draft of {end} bytes cannot go on at byte {start}")
        if start < end:
            self._cut(start)
        if len(data):
            self._wait([*self._waiting, bytes(data)])
        crowded = self._held.size > ALL_WAITING_BYTES
        if self._waiting_size >= (LEAST_PIECE_BYTES if crowded else PIECE_BYTES):
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
                put_whole(self._bucket, other._place(start), [memoryview(data)])
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
                put_whole(self._bucket, target, self.read())
        self.discard()

    def discard(self) -> None:
        """Delete all pieces, the last one first, so that what is left never has a gap."""
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
            found = [
                (int(path.rpartition("/")[2]), size)
                for path, size in listing(self._bucket, self._folder)
            ]
            end = gapless(found)
            if any(start > end for start, _ in found):
                # what an interrupted `_cut` or `discard` left; nothing may ever join on to it
                remove(self._bucket, *(self._place(at) for at, _ in reversed(found) if at > end))
            self._pieces = [piece for piece in found if piece[0] <= end]
        return self._pieces

    def _durable(self) -> int:
        pieces = self._listed()
        return sum(pieces[-1]) if pieces else 0

    def _put(self) -> None:
        """Put what waits as one piece. Where that fails, `size` tells what is there."""
        start = self._durable()
        waiting = self._waiting
        self._wait([])
        size = put_whole(self._bucket, self._place(start), waiting)
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
            put_whole(self._bucket, self._place(start), [memoryview(head)])
            pieces[-1] = (start, end - start)
