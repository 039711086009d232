"""Rendering processes that stay ready between the slices of their render."""

from __future__ import annotations

from dataclasses import dataclass

from fragdex.service.processes.idle import Idle
from fragdex.service.renders.browser.timing import View
from fragdex.service.renders.process import Child

__all__ = ["Warm"]


@dataclass(frozen=True, slots=True)
class _Kept:
    key: str
    child: Child

    def end(self) -> None:
        self.child.end()


class Warm:
    """Rendering processes that stay ready for the next slice of their render.

    Args:
        most: so many are kept.
        idle_seconds: and so long.
    """

    def __init__(self, most: int = 2, idle_seconds: float = 15.0) -> None:
        self._most = most
        self._idle: Idle[_Kept] = Idle(idle_seconds)

    def take(self, key: str, view: View, first: int) -> Child | None:
        """A process of a render that has come to a frame or before it, the nearest; kept no longer.

        Args:
            key: names the render, and whose it is.
        """

        def frame(one: _Kept) -> float | None:
            at = one.child.at
            fits = one.key == key and at is not None and at[0] == view and at[1] <= first
            return at[1] if at is not None and fits else None

        found = self._idle.take(frame)
        return None if found is None else found.child

    def keep(self, key: str, child: Child) -> None:
        """Keep a process that has done its job; the one that waits longest goes for it."""
        self._idle.put(_Kept(key, child), self._most)

    def drop(self, key: str) -> None:
        """End the processes of a render that is over."""
        self._idle.end(lambda one: one.key == key)

    def close(self) -> None:
        """End all of them."""
        self._idle.end()
