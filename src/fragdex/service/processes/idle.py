"""Children without work, which are kept for a while: a model or a browser takes long to start."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

__all__ = ["Idle"]


class _Ends(Protocol):
    def end(self) -> None:
        """End it."""


One = TypeVar("One", bound=_Ends)


class Idle(Generic[One]):
    """What is kept ready, by whatever wraps a child.

    Args:
        seconds: so long one is kept.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._kept: list[tuple[One, float]] = []
        self._timer: threading.Timer | None = None

    def take(self, fitness: Callable[[One], float | None]) -> One | None:
        """The fittest one, of several the one kept last; it is kept no longer.

        Args:
            fitness: None: it does not fit at all.
        """
        with self._lock:
            best: tuple[float, int] | None = None
            for place, (one, _) in enumerate(self._kept):
                fit = fitness(one)
                if fit is not None:
                    best = max((fit, place), best or (fit, place))
            return None if best is None else self._kept.pop(best[1])[0]

    def put(self, one: One, most: int) -> None:
        """Keep one; of more than `most` those that have waited longest end."""
        with self._lock:
            self._kept.append((one, time.monotonic()))
            gone = [old for old, _ in self._kept[:-most]]
            del self._kept[:-most]
            self._wake()
        for old in gone:
            old.end()

    def each(self, do: Callable[[One], None]) -> None:
        """Do something with each, while nobody takes it."""
        with self._lock:
            for one, _ in self._kept:
                do(one)

    def end(self, which: Callable[[One], bool] = lambda _: True) -> None:
        """End some of them."""
        self._end(lambda one, _: which(one))

    def _end(self, which: Callable[[One, float], bool]) -> None:
        with self._lock:
            gone = [row for row in self._kept if which(*row)]
            self._kept = [row for row in self._kept if row not in gone]
        for one, _ in gone:
            one.end()

    def _wake(self) -> None:
        if self._timer is None and self._kept:
            self._timer = threading.Timer(self._seconds / 2, self._sweep)
            self._timer.daemon = True
            self._timer.start()

    def _sweep(self) -> None:
        self._end(lambda _, since: time.monotonic() - since > self._seconds)
        with self._lock:
            self._timer = None
            self._wake()
