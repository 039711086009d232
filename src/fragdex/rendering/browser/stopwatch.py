"""How long something is waited for, on machines that have more to do than they can.

There, whatever a page waits for takes longer, and is not late: its bounds are of the time in which
its browser could work. The kernel says for how long each thread stood ready while others ran.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import Final, Protocol

_NANOSECONDS: Final = 1e9
# From this part of a bound on, the machine is looked at, so often.
_AT_FIRST: Final = 1 / 4
_LOOK_SECONDS: Final = 0.25
# Threads that stand ready side by side would count too often: so much of the time counts at least.
_LEAST: Final = 1 / 4


class Excusing(Protocol):
    """Knows what a wait is not to blame for.

    Attributes:
        excused: seconds that we needed ourselves, until now.
        kept: tells the seconds for which the browser stood ready while others ran, until now.
    """

    excused: float
    kept: Callable[[], float]


class Stopwatch:
    """Tells whether something is waited for too long; begins when it is made."""

    def __init__(self, excusing: Excusing) -> None:
        self._excusing = excusing
        self._began, self._excused = time.monotonic(), excusing.excused
        self._kept: float | None = None
        self._looked, self._is_over = 0.0, False

    @property
    def seconds(self) -> float:
        """Seconds until now, without those that we needed ourselves."""
        return time.monotonic() - self._began - (self._excusing.excused - self._excused)

    def exceeds(self, most: float) -> bool:
        """Whether it has waited for more seconds in which the browser could work.

        Once it has, it always says so.
        """
        self._is_over = self._is_over or self._exceeds(most)
        return self._is_over

    def _exceeds(self, most: float) -> bool:
        waited = self.seconds
        if waited < most * _AT_FIRST:
            return False
        if self._kept is None:
            self._kept = self._excusing.kept()
        now = time.monotonic()
        if waited <= most or now - self._looked < min(_LOOK_SECONDS, most * _AT_FIRST):
            return False
        self._looked = now
        return worked(waited, self._excusing.kept() - self._kept) > most


def worked(waited: float, kept: float) -> float:
    """Of the seconds that were waited, those in which the browser could work."""
    return waited - min(max(0, kept), waited * (1 - _LEAST))


def ready_seconds(pids: Iterable[int]) -> float:
    """For how long threads of processes stood ready while others ran; 0 where no kernel says it."""
    total = 0
    for pid in pids:
        try:
            threads = os.listdir(f"/proc/{pid}/task")
        except OSError:
            continue
        for thread in threads:
            total += _delay(f"/proc/{pid}/task/{thread}/schedstat")
    return total / _NANOSECONDS


def own_seconds() -> float:
    """The same of the thread that calls."""
    return _delay("/proc/thread-self/schedstat") / _NANOSECONDS


def _delay(path: str) -> int:
    try:
        with open(path, "rb", buffering=0) as file:
            return int(file.read(99).split()[1])
    except (OSError, IndexError, ValueError):
        return 0
