"""The clocks of a page's workers: they follow that of the page, from frame to frame."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, Final

from fragdex.rendering.browser.clocks import Clock
from fragdex.rendering.browser.pipe import Pipe, ProtocolError
from fragdex.rendering.browser.scripts import SOURCES, WORKER, script
from fragdex.rendering.browser.timing import View, between_us

__all__ = ["WithWorkers"]

_STEP_US: Final = 1000
# So long a frame waits for what a worker computes; one that takes longer is late.
_PATIENCE_SECONDS: Final = 1.0
# What a worker tells the page, and the page tells the worker, and it answers.
_TURNS: Final = 2


class WithWorkers:
    """A page's clock that leads on those of its workers.

    What is due in a worker until a frame happens between the page's own timers and that frame; what
    it tells the page has arrived when the frame is drawn, and what it draws is seen in it.

    Args:
        clock: of the page.
        view: how often the page and its workers are called for a frame.
        draw: whether workers may draw: the page gave a canvas away.
    """

    def __init__(
        self, clock: Clock, pipe: Pipe, view: View, draw: Callable[[], bool]
    ) -> None:  # fmt: skip
        self._clock, self._pipe, self._view, self._draw = clock, pipe, view, draw
        self.has_begin_frame = clock.has_begin_frame
        self._workers: dict[str, int | None] = {}
        """Sessions, each with the number of what it has not answered yet."""
        self._late: set[str] = set()
        self._now_us = self._held_us = self._at = 0
        self._zero_us: int | None = None
        pipe.on("Target.detachedFromTarget", self._gone)

    def add(self, session: str) -> None:
        """Take a worker that has not begun yet."""
        for name in (SOURCES, WORKER):
            self._pipe.post("Runtime.evaluate", session, expression=script(name))
        self._workers[session] = None
        self._pass(0)

    def _gone(self, params: dict[str, Any], _: str | None) -> None:
        self._workers.pop(params["sessionId"], None)
        self._late.discard(params["sessionId"])

    def scripts(self) -> tuple[str, ...]:
        """As `Clock.scripts`."""
        return self._clock.scripts()

    def prepare(self) -> None:
        """As `Clock.prepare`."""
        self._clock.prepare()

    def step(self, waiting: bool, passes: bool = False) -> None:
        """As `Clock.step`."""
        self._clock.step(waiting, passes)
        # It is by chance in which step a worker begins.
        self._pass(_STEP_US if passes else 0)

    def go(self) -> None:
        """As `Clock.go`."""
        self._clock.go()

    def zero(self) -> None:
        """As `Clock.zero`."""
        self._clock.zero()
        self._zero_us = self._now_us
        self._pass(0)

    def serve(self, again: bool) -> None:
        """As `Clock.serve`."""
        self._clock.serve(again)

    def hold(self) -> None:
        """As `Clock.hold`."""
        self._held_us = self._now_us
        self._clock.hold()

    def wait(self, us: int) -> None:
        """As `Clock.wait`."""
        self._clock.wait(us)
        self._pass(us)

    def turn(self) -> None:
        """As `Clock.turn`."""
        self._clock.turn()

    def evaluate(self, expression: str) -> list[Any]:
        """As `Clock.evaluate`."""
        return self._clock.evaluate(expression)

    def go_on(self) -> None:
        """As `Clock.go_on`."""
        self._clock.go_on()
        if self._zero_us is not None:
            self._zero_us += self._now_us - self._held_us

    def advance(self, i: int) -> int:
        """As `Clock.advance`."""
        if i == self._at + 1:
            # a page that is jumped into is not led through what lies between
            for us in between_us(i, self._view):
                self.pass_to(us)
                self.pass_by()
        self._at = i
        wanted = self._clock.advance(i)
        self._lead(wanted)
        return wanted

    def pass_to(self, us: int) -> None:
        """As `Clock.pass_to`."""
        self._clock.pass_to(us)
        self._lead(us)

    def _lead(self, us: int) -> None:
        """Bring the workers to an instant; what they and the page tell each other arrives."""
        if self._zero_us is not None:
            self._now_us = max(self._now_us, self._zero_us + us)
        for _ in range(_TURNS if self._workers else 0):
            self._pass(0)
            self._hear()

    def pass_by(self) -> None:
        """As `Clock.pass_by`."""
        self._frame()
        self._clock.pass_by()

    def show(self) -> None:
        """As `Clock.show`."""
        self._frame()
        self._clock.show()

    def capture(self, needed: bool) -> bytes | None:
        """As `Clock.capture`."""
        self._frame()
        if self._workers and self._draw():
            # a canvas that a worker has drawn is seen a frame later; and the page may have told it
            # in its own frame what to draw
            for _ in range(_TURNS):
                self._clock.show()
                self._pass(0)
        return self._clock.capture(needed)

    def _frame(self) -> None:
        """Call what waits for a frame in workers; what they tell the page arrives."""
        if self._workers:
            self._ask_all("globalThis.__fragdexFrame?.()")
            self._hear()

    def _hear(self) -> None:
        """Let messages of workers reach the page, at no time of it."""
        self._clock.hold()
        self._clock.wait(0)
        self._clock.go_on()

    def _pass(self, us: int) -> None:
        """Let time pass for the workers, and wait until they have done what was due."""
        self._now_us += us
        zero = "null" if self._zero_us is None else repr(self._zero_us / 1000)
        self._ask_all(f"globalThis.__fragdexTo?.({self._now_us / 1000!r}, {zero})")

    def _ask_all(self, expression: str) -> None:
        """Have all workers do something; those that compute for long are left behind."""
        if not self._workers:
            return
        for session in [*self._workers]:
            if not self._computes(session):
                self._workers[session] = self._pipe.send(
                    "Runtime.evaluate", session, expression=expression, awaitPromise=True
                )
        self._pipe.listen(_PATIENCE_SECONDS, self._are_done)
        self._late |= set(filter(self._computes, self._workers))

    def _computes(self, session: str) -> bool:
        """Whether a worker has not answered yet."""
        number = self._workers.get(session)
        if number is None:
            return False
        if not self._pipe.answered(number):
            return True
        with contextlib.suppress(ProtocolError):  # it is gone
            self._pipe.answer(number)
        self._workers[session] = None
        self._late.discard(session)
        return False

    def _are_done(self) -> bool:
        return not any(self._computes(one) for one in [*self._workers] if one not in self._late)
