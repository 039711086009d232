"""View transitions: what the browser does in frames of its own takes no frame of the film.

A browser draws a frame of what was before, calls the page back to change it, moves it from the next
frame on, and ends the transition in the one behind the last that moves. In a browser each is a
sixtieth of a second. Here it was a frame of the film, or none: some releases (150) call back while
the clock stands, others (156) when it goes on, and a frame may be drawn once or several times.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from fragdex.rendering.browser.clocks import Clock
from fragdex.rendering.browser.pipe import Pipe

__all__ = ["WithTransitions"]

_STATE: Final = "globalThis.__fragdexTransitions?.()"
# Seconds for what takes the machine's time while the page changes itself: files, decoders.
_PAUSES: Final = (0.0, 0.0, 0.001, 0.002, 0.004, 0.008, 0.016)


@dataclass(frozen=True, slots=True)
class _State:
    """Of the transitions of a page.

    Args:
        changing: changes that are not done.
        changed: changes that are done.
        ending: transitions of which nothing moves.
        begun, done: other work of the machine for the page.
    """

    changing: int = 0
    changed: int = 0
    ending: int = 0
    begun: int = 0
    done: int = 0

    @property
    def is_settled(self) -> bool:
        return not self.changing and not self.ending


class WithTransitions:
    """A page's clock at which view transitions begin and end with the frame in which they may.

    Where a page lets time pass before it has changed, they begin with the frame after that.

    Args:
        clock: of the page.
        used: whether the page has begun any.
        seconds: how long a frame waits for what the page reads meanwhile.
    """

    def __init__(
        self, clock: Clock, pipe: Pipe, used: Callable[[], bool], seconds: float
    ) -> None:  # fmt: skip
        self._clock, self._pipe, self._used, self._seconds = clock, pipe, used, seconds
        self.has_begin_frame = clock.has_begin_frame
        self._state = _State()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._clock, name)

    def pass_by(self) -> None:
        """As `Clock.pass_by`."""
        self._clock.pass_by()
        if self._settle():
            self._clock.pass_by()

    def show(self) -> None:
        """As `Clock.show`."""
        self._clock.show()
        if self._settle():
            self._clock.show()

    def capture(self, needed: bool) -> bytes | None:
        """As `Clock.capture`."""
        picture = self._clock.capture(needed)
        return self._clock.capture(needed=True) if self._settle() else picture

    def _settle(self) -> bool:
        """Lead transitions on as far as they come at this instant; whether any moved on."""
        if not self._used():
            return False
        before, first = self._state, self._look()
        if first.is_settled:
            return first.changed > before.changed
        # where it was in vain before, the page lets time pass
        pauses = _PAUSES[:1] if before.changing and first.changing else _PAUSES
        self._clock.hold()
        began = time.monotonic() - self._pipe.excused
        while self._lead(pauses):
            if time.monotonic() - self._pipe.excused - began > self._seconds:
                break
        self._clock.go_on()
        return self._state != first

    def _lead(self, pauses: tuple[float, ...]) -> bool:
        """Draw and have the page change itself; whether work is under way that it may wait for."""
        before = self._state
        for pause in pauses:
            self._clock.show()
            self._clock.turn()
            self._pipe.listen(pause)
            if self._look().is_settled:
                return False
        works = self._state.begun > self._state.done or self._state.done > before.done
        return len(pauses) > 1 and works

    def _look(self) -> _State:
        states = self._clock.evaluate(_STATE)
        self._state = _State(*map(sum, zip(*states, strict=True)))
        return self._state
