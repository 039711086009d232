"""md5 and sha-256 of bytes as they arrive, and what a family watches in them.

hashlib's state cannot be saved: between two chunks of an upload it waits in this process's memory.
Where it is not there (after a restart, in another process), the bytes are read again from the
draft, at the latest when the last chunk is in.

Hashing 1 MiB takes a core longer than writing it, and OpenSSL works without the interpreter's lock:
md5, sha-256 and the disk continue side by side, a bounded number of bytes ahead. A worker never
uses more than one thread, and all workers share a few, however many uploads there are.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import cache, partial
from typing import Any, TypeVar

from fragdex.errors import FragdexError, Unavailable
from fragdex.service.uploads.model import ArrivalWatcher

T = TypeVar("T")


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(2, os.cpu_count() or 2), "fragdex-worker")


class FairBudget:
    """A number of bytes that whoever is there shares evenly."""

    def __init__(self, total: int, *, least: int, most: int) -> None:
        self._total, self._least, self._most = total, least, most
        self._present = 0
        self._lock = threading.Lock()

    @property
    def each(self) -> int:
        """The share of one, as of now."""
        return min(self._most, max(self._least, self._total // max(1, self._present)))

    def enter(self) -> None:
        """One more."""
        with self._lock:
            self._present += 1

    def leave(self) -> None:
        """One less."""
        with self._lock:
            self._present -= 1


class SerialExecutor:
    """Calls in the threads of an executor, one at a time, in the order in which they came."""

    def __init__(self, threads: Executor) -> None:
        self._threads = threads
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._running = False
        self._lock = threading.Lock()

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Have it called in this context, after all that came before, whatever became of them."""
        future: Future[T] = Future()
        with self._lock:
            self._waiting.append((future, partial(copy_context().run, call)))
            begins, self._running = not self._running, True
        if begins:
            self._threads.submit(self._run)
        return future

    def _run(self) -> None:
        with self._lock:
            future, call = self._waiting.popleft()
        try:
            result = call()
        except BaseException as error:  # noqa: BLE001
            future.set_exception(error)
        else:
            future.set_result(result)
        with self._lock:
            self._running = bool(self._waiting)
            if not self._running:
                return
        self._threads.submit(self._run)  # after the others: every line gets its turn


class OrderedWorker:
    """Calls `work` with one piece after the other, in the order in which they were put."""

    def __init__(self, work: Callable[[bytes], object]) -> None:
        self._work = work
        self._line = SerialExecutor(_threads())
        self._pieces = self._size = 0  # that wait or are worked on
        self._failure: BaseException | None = None
        self._changed = threading.Condition()

    def put(self, piece: bytes, ahead: int) -> None:
        """Add a piece; waits while more than `ahead` bytes are waiting. Raises what work raised."""
        with self._changed:
            self._changed.wait_for(lambda: self._size <= ahead or self._failure is not None)
            if self._failure is not None:
                raise self._failure
            self._pieces += 1
            self._size += len(piece)
        self._line.submit(partial(self._run, piece))

    def wait(self) -> None:
        """Wait until nothing is left to do. Raises what work raised."""
        with self._changed:
            self._changed.wait_for(lambda: not self._pieces)
            if self._failure is not None:
                raise self._failure

    def _run(self, piece: bytes) -> None:
        try:
            if self._failure is None:
                self._work(piece)
        except BaseException as error:  # noqa: BLE001  raised again in the thread that waits
            self._failure = error
        with self._changed:
            self._pieces -= 1
            self._size -= len(piece)
            self._changed.notify_all()


HELD = 512
"""Uploads whose state is kept between two chunks; the one that waits longest goes first."""

HELD_S = 900.0

# What waits to be hashed, in all uploads of this process together.
AHEAD = FairBudget(32 << 20, least=128 << 10, most=4 << 20)


class Hashes:
    """The running md5 and sha-256 of the first `position` bytes, and the watcher that saw them.

    Not to be used by two threads at once.
    """

    def __init__(self, watcher: ArrivalWatcher | None) -> None:
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


class PausedHashes:
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


held = PausedHashes()
"""What this process keeps."""
