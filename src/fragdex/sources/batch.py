"""Several reads at once: threads that end with the call, and a width that gives way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from threading import Condition
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

CLEAN_CALLS = 16
"""Calls without a refusal after which one request more is tried at once."""


class Cancelled(Exception):
    """Another read of the batch failed, so that this one ends too.

    >>> raise Cancelled
    Traceback (most recent call last):
    fragdex.sources.batch.Cancelled
    """


class Batch:
    """How many requests may be under way at once, and whether to go on at all.

    Args:
        most: requests under way at once.
        interrupt: called when the rest is cancelled, to wake reads that wait for their server.

    `width` halves where a server refuses some of the requests that are under way together, and
    grows by one after many calls without a refusal.

    >>> Batch(4).run([1, 2, 3], lambda number: number * 2)
    [2, 4, 6]
    """

    def __init__(self, most: int, interrupt: Callable[[], None] | None = None) -> None:
        self.most = self.width = most
        self.cancelled = False
        self._interrupt = interrupt
        self._active = 0
        self._clean = 0
        self._changed = Condition()

    def run(self, jobs: Sequence[T], work: Callable[[T], R]) -> list[R]:
        """Do all the jobs, at most `width` at once, and return what came of them, in order.

        The first error cancels the rest, is waited for until every thread has ended, and raised.

        >>> Batch(2).run([1, 0], lambda number: 1 // number)
        Traceback (most recent call last):
        ZeroDivisionError: integer division or modulo by zero
        """
        if len(jobs) < 2 or self.width < 2:
            return [work(job) for job in jobs]
        with ThreadPoolExecutor(min(self.width, len(jobs)), "fragdex-read") as pool:
            futures = [pool.submit(work, job) for job in jobs]
            try:
                for future in as_completed(futures):
                    future.result()
            except BaseException:
                self.cancel()
                pool.shutdown(cancel_futures=True)
                self.cancelled = False
                raise
        self._clean += 1
        if self._clean >= CLEAN_CALLS and self.width < self.most:
            self.width, self._clean = self.width + 1, 0
        return [future.result() for future in futures]

    def begin(self) -> int:
        """Wait until one more request may be made; returns the width at that moment.

        >>> batch = Batch(1)
        >>> batch.begin()
        1
        """
        with self._changed:
            while self._active >= self.width and not self.cancelled:
                self._changed.wait()
            self.check()
            self._active += 1
            return self.width

    def end(self, width: int, *, refused: bool = False) -> bool:
        """Say that a request is over that began at a width; whether that may be why it failed.

        >>> batch = Batch(8)
        >>> batch.end(batch.begin(), refused=True), batch.width
        (True, 4)
        """
        with self._changed:
            self._active -= 1
            if refused:
                self._clean = 0
                self.width = max(1, min(self.width, width // 2))
            self._changed.notify_all()
        return refused and width > 1

    def pause(self, seconds: float) -> None:
        """Wait so long, or until the batch is cancelled.

        >>> Batch(1).pause(0)
        """
        with self._changed:
            self._changed.wait_for(lambda: self.cancelled, seconds)
            self.check()

    def check(self) -> None:
        """Raise Cancelled where the batch is over.

        >>> Batch(1).check()
        """
        if self.cancelled:
            raise Cancelled

    def cancel(self) -> None:
        """End whatever is under way or waits.

        >>> Batch(1).cancel()
        """
        with self._changed:
            self.cancelled = True
            self._changed.notify_all()
        if self._interrupt is not None:
            self._interrupt()
