"""Rendering processes that stay ready between the slices of their render."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from fragdex.service.renders.browser.timing import View
from fragdex.service.renders.process import Child

__all__ = ["Warm"]


class Warm:
    """Rendering processes that stay ready for the next slice of their render.

    Args:
        most: so many are kept.
        idle_seconds: and so long.
    """

    def __init__(self, most: int = 2, idle_seconds: float = 15.0) -> None:
        self._most, self._idle = most, idle_seconds
        self._lock = threading.Lock()
        self._kept: list[tuple[str, Child, float]] = []
        self._timer: threading.Timer | None = None

    def take(self, key: str, view: View, first: int) -> Child | None:
        """A process of a render that stands at a frame or before it, the nearest; no longer kept.

        Args:
            key: names the render, and whose it is.
        """
        with self._lock:
            fit = [
                row
                for row in self._kept
                if row[0] == key and row[1].at and row[1].at[0] == view and row[1].at[1] <= first
            ]
            if not fit:
                return None
            best = max(fit, key=lambda row: row[1].at[1] if row[1].at else 0)
            self._kept.remove(best)
            return best[1]

    def keep(self, key: str, child: Child) -> None:
        """Keep a process that has done its job; the one that waits longest goes for it."""
        with self._lock:
            self._kept.append((key, child, time.monotonic()))
            gone = [row[1] for row in self._kept[: -self._most]]
            del self._kept[: -self._most]
            self._wake()
        for one in gone:
            one.end()

    def drop(self, key: str) -> None:
        """End the processes of a render that is over."""
        self._end(lambda row: row[0] == key)

    def close(self) -> None:
        """End all of them."""
        self._end(lambda _: True)

    def _wake(self) -> None:
        if self._timer is None and self._kept:
            self._timer = threading.Timer(self._idle / 2, self._sweep)
            self._timer.daemon = True
            self._timer.start()

    def _sweep(self) -> None:
        with self._lock:
            self._timer = None
        self._end(lambda row: time.monotonic() - row[2] > self._idle)
        with self._lock:
            self._wake()

    def _end(self, over: Callable[[tuple[str, Child, float]], bool]) -> None:
        with self._lock:
            gone = [row for row in self._kept if over(row)]
            self._kept = [row for row in self._kept if row not in gone]
        for row in gone:
            row[1].end()
