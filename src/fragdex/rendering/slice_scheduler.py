"""How many processes make a film side by side: no more than it has work for.

Which frames each slice has is settled before, so the film is the same however many there are. Only
who makes a slice is decided here, while the first process is at work: pages whose pictures stay go
by at hundreds of frames a second, and are done before another browser has started.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

__all__ = ["SliceScheduler"]

WORTH_SECONDS: Final = 1.5
"""So long a process may take until it comes to a slice, and no other is started for that …"""

_STARTS: Final = 2
"""… or as long as so many starts, on a machine that has other things to do."""

_LEAST_SECONDS: Final = 0.05


class SliceScheduler:
    """Says when a slice may begin: in a process that has become free, or in one of its own.

    Args:
        slices: the frames of each, in order.
        at_once: whether all may begin at once, whatever there is to do.
        clock: seconds.

    >>> scheduler = SliceScheduler(
    ...     [range(0, 300), range(300, 600)], at_once=False, clock=iter([0, 1, 2]).__next__
    ... )
    >>> scheduler.told(range(0, 300), 1)
    >>> scheduler.may_begin(1)
    False
    >>> scheduler.told(range(0, 300), 31)  # 30 frames a second
    >>> scheduler.may_begin(1)
    True
    """

    def __init__(
        self,
        slices: Sequence[range],
        *,
        at_once: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._slices, self._clock = slices, clock
        self._changed = threading.Condition()
        self._seen: dict[int, tuple[int, float]] = {}
        self._began, self._worth = clock(), 0.0
        # What begins behind this frame is not come to soon.
        self._soon = -1.0 if at_once else float("inf")
        self._waiting = list(range(1, len(slices)))
        self._free = 0
        self._over = False

    def told(self, frames: range, done: int) -> None:
        """A process has done so many frames of a slice; those that it only replays are none."""
        now = self._clock()
        with self._changed:
            before, then = self._seen.get(frames.start, (0, now))
            # the first one waits for the browser, the page and what is replayed
            if before and not (done > before and now - then >= _LEAST_SECONDS):
                return
            if done:
                self._seen[frames.start] = (done, now)
                self._worth = self._worth or max(WORTH_SECONDS, _STARTS * (now - self._began))
            if before:
                rate = (done - before) / (now - then)
                self._soon = min(self._soon, frames.start + done + rate * self._worth)
                self._changed.notify_all()

    def free(self) -> None:
        """A process has done its slice."""
        with self._changed:
            self._free += 1
            self._changed.notify_all()

    def end(self) -> None:
        """Nobody has to wait any more."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def may_begin(self, number: int) -> bool:
        """Whether a slice may begin now: the first, the next for whoever is free, one far off."""
        if number not in self._waiting or self._over:
            return True
        is_next = self._free > 0 and number == self._waiting[0]
        return is_next or self._slices[number].start > self._soon

    def begin(self, number: int) -> None:
        """Wait until a slice may begin."""
        with self._changed:
            self._changed.wait_for(lambda: self.may_begin(number))
            if number in self._waiting:
                self._waiting.remove(number)
                self._free = max(0, self._free - 1)
                self._changed.notify_all()
