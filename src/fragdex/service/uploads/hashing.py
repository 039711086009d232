"""md5 and sha-256 of bytes as they arrive, and what a family watches in them.

hashlib's state cannot be saved: between two chunks of an upload it waits in this process's memory.
Where it is not there (after a restart, in another process), the bytes are read again from the
draft, at the latest when the last chunk is in.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable

from fragdex.errors import FragdexError, Unavailable
from fragdex.service.uploads.model import Watcher
from fragdex.service.uploads.ordered_workers import FairBudget, OrderedWorker

__all__ = ["Hashes", "HeldHashes", "held"]

HELD = 512
"""Uploads whose state is kept between two chunks; the one that waits longest goes first."""

HELD_S = 900.0

# What waits to be hashed, in all uploads of this process together.
AHEAD = FairBudget(32 << 20, least=128 << 10, most=4 << 20)


class Hashes:
    """The running md5 and sha-256 of the first `position` bytes, and the watcher that saw them.

    Not to be used by two threads at once.

    >>> hashes = Hashes(None)
    >>> hashes.feed(b"abc")
    >>> hashes.wait()
    >>> hashes.position, hashes.md5.hex()
    (3, '900150983cd24fb0d6963f7d28e17f72')
    """

    def __init__(self, watcher: Watcher | None) -> None:
        self.position = 0
        self.watcher = watcher
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._sha256 = hashlib.sha256()
        self._first = OrderedWorker(self._md5.update)
        self._second = OrderedWorker(self._hash_and_watch)

    def _hash_and_watch(self, piece: bytes) -> None:
        self._sha256.update(piece)
        if self.watcher is not None:
            try:
                self.watcher.feed(piece)
            except FragdexError:
                self.watcher = None

    def feed(self, piece: bytes) -> None:
        """Take the next bytes; returns before they are hashed."""
        self._first.put(piece, AHEAD.each)
        self._second.put(piece, AHEAD.each)
        self.position += len(piece)

    def wait(self) -> None:
        """Wait until all that was fed is hashed."""
        self._first.wait()
        self._second.wait()

    @property
    def md5(self) -> bytes:
        """16 bytes."""
        return self._md5.digest()

    @property
    def sha256(self) -> bytes:
        """32 bytes."""
        return self._sha256.digest()

    def catch_up(
        self, pieces: Iterable[bytes | memoryview], stop: int, alive: Callable[[], object]
    ) -> None:
        """Feed bytes that are in the store, up to byte `stop`; `alive` is called between pieces.

        Raises:
            Unavailable: they end before.
        """
        for piece in pieces:
            self.feed(bytes(piece[: stop - self.position]))
            alive()
            if self.position == stop:
                return
        if self.position < stop:
            raise Unavailable("the store lost bytes of this upload", retry_after=1)


class HeldHashes:
    """Hashes between two chunks, by draft: a draft's first bytes never change under its name."""

    def __init__(self, most: int = HELD, seconds: float = HELD_S) -> None:
        self._most, self._seconds = most, seconds
        self._held: OrderedDict[str, tuple[float, Hashes]] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, draft: str, hashes: Hashes) -> None:
        """Keep them until the next chunk."""
        now = time.monotonic()
        with self._lock:
            self._held[draft] = now, hashes
            self._held.move_to_end(draft)
            while self._held and self._too_much(now):
                self._held.popitem(last=False)

    def take(self, draft: str, position: int) -> Hashes | None:
        """Those of this draft, at `position` or before; they are the caller's then."""
        with self._lock:
            _, hashes = self._held.pop(draft, (0.0, None))
        return hashes if hashes is not None and hashes.position <= position else None

    def clear(self) -> None:
        """Forget all, as a restart does."""
        with self._lock:
            self._held.clear()

    def _too_much(self, now: float) -> bool:
        since, _ = next(iter(self._held.values()))
        return len(self._held) > self._most or since < now - self._seconds


held = HeldHashes()
"""What this process keeps."""
