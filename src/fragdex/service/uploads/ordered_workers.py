"""Work on pieces in order, in threads, a bounded number of bytes ahead of itself.

Hashing 1 MiB takes a core longer than writing it, and OpenSSL works without the interpreter's
lock: md5, sha-256 and the disk go on side by side. A worker never uses more than one thread, and
all workers share a few, however many uploads there are.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import cache, partial
from typing import Any, TypeVar

__all__ = ["FairBudget", "OrderedWorker", "SerialExecutor"]

T = TypeVar("T")


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(2, os.cpu_count() or 2), "fragdex-worker")


class FairBudget:
    """A number of bytes that whoever is there shares evenly.

    >>> shares = FairBudget(64, least=1, most=32)
    >>> for _ in range(4):
    ...     shares.enter()
    >>> shares.each
    16
    """

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
    """Calls in the threads of an executor, one at a time, in the order in which they came.

    >>> with ThreadPoolExecutor() as threads:
    ...     line = SerialExecutor(threads)
    ...     calls = [line.submit(lambda n=n: n * n) for n in range(3)]
    ...     [call.result() for call in calls]
    [0, 1, 4]
    """

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
        self._threads.submit(self._run)  # behind the others: every line gets its turn


class OrderedWorker:
    """Calls `work` with one piece after the other, in the order in which they were put.

    >>> seen = []
    >>> worker = OrderedWorker(seen.append)
    >>> for piece in (b"a", b"b", b"c"):
    ...     worker.put(piece, 1)
    >>> worker.wait()
    >>> seen
    [b'a', b'b', b'c']
    """

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
