"""Workers and view transitions follow the page's time.

Of a view transition, what the browser does in frames of its own takes no frame of the video. It
draws a frame of what was before, calls the page back to change it, moves it from the next frame on,
and ends the transition in the one after the last that moves. In a browser each is a sixtieth of a
second. Here it was a frame of the video, or none: some releases (150) call back while the clock
stands, others (156) when it advances, and a frame may be drawn once or several times.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, Final

from fragdex.record import record
from fragdex.rendering.browser.clocks import WORKER, Clock, script, sources
from fragdex.rendering.browser.model import PageView, between_us
from fragdex.rendering.browser.pipe import Pipe, ProtocolError
from fragdex.rendering.browser.stopwatch import Stopwatch

_STATE: Final = "globalThis.__fragdexTransitions?.()"
# How long a frame waits for what a page reads while it changes itself.
_CHANGE_SECONDS: Final = 10.0
# Seconds for what takes the machine's time while the page changes itself: files, decoders.
_PAUSES: Final = (0.0, 0.0, 0.001, 0.002, 0.004, 0.008, 0.016)


@record(frozen=True, slots=True)
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
        late: gets what was not waited for any longer.
    """

    def __init__(
        self, clock: Clock, pipe: Pipe, used: Callable[[], bool], late: Callable[[str], None]
    ) -> None:
        self._clock, self._pipe, self._used, self._late = clock, pipe, used, late
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
        watch = Stopwatch(self._pipe)
        while self._lead(pauses):
            if watch.exceeds(_CHANGE_SECONDS):
                self._late(f"the change of a view transition, after {_CHANGE_SECONDS:g} s")
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


_STEP_US: Final = 1000
# So long a frame waits for what a worker computes; one that takes longer is late.
_PATIENCE_SECONDS: Final = 1.0
_LOOKS: Final = 4
# What a worker tells the page, and the page tells the worker, and it answers.
_TURNS: Final = 2


class WithWorkers:
    """A page's clock that leads on those of its workers.

    What is due in a worker until a frame happens between the page's own timers and that frame; what
    it tells the page has arrived when the frame is drawn, and what it draws is seen in it.

    Args:
        clock: of the page.
        view: how often the page and its workers are called for a frame.
        given: how many canvases the page gave away, which workers may draw, or the page itself.
        late: gets what was not waited for any longer.
        scripts: that come before all others in each worker.
    """

    def __init__(
        self, clock: Clock, pipe: Pipe, view: PageView, given: Callable[[], int],
        late: Callable[[str], None], scripts: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self._clock, self._pipe, self._view, self._given = clock, pipe, view, given
        self._tell_late, self._scripts = late, scripts
        self.has_begin_frame = clock.has_begin_frame
        self._workers: dict[str, int | None] = {}
        """Sessions, each with the number of what it has not answered yet."""
        self._late: set[str] = set()
        self._now_us = self._held_us = self._at = self._placed = 0
        self._zero_us: int | None = None
        pipe.on("Target.detachedFromTarget", self._gone)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._clock, name)

    @property
    def has_workers(self) -> bool:
        """Whether the page has any."""
        return bool(self._workers)

    def add(self, session: str) -> None:
        """Take a worker that has not begun yet."""
        for source in (*self._scripts, sources(self._view), script(WORKER)):
            self._pipe.post("Runtime.evaluate", session, expression=source)
        # It answers when it runs, which is after this: the next call waits for that.
        self._workers[session] = self._send(session, self._to_now())

    def _gone(self, params: dict[str, Any], _: str | None) -> None:
        self._workers.pop(params["sessionId"], None)
        self._late.discard(params["sessionId"])

    def step(self, waiting: bool, ms: int = 0) -> None:
        """As `Clock.step`."""
        self._clock.step(waiting, ms)
        # It is by chance in which step a worker begins.
        self._pass(ms * _STEP_US)

    def zero(self) -> None:
        """As `Clock.zero`."""
        self._clock.zero()
        self._zero_us = self._now_us
        self._pass(0)

    def hold(self) -> None:
        """As `Clock.hold`."""
        self._held_us = self._now_us
        self._clock.hold()

    def wait(self, us: int) -> None:
        """As `Clock.wait`."""
        self._clock.wait(us)
        self._pass(us)

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
            self._take_messages()

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
        if given := self._given():
            if given > self._placed:
                # the first picture of a canvas is placed with something else that changes
                self._clock.damage()
                self._placed = given
            # a canvas that was given away is seen a frame after it was drawn; and the page may have
            # told a worker in its own frame what to draw
            for _ in range(_TURNS):
                self._clock.show()
                self._pass(0)
        return self._clock.capture(needed)

    def _frame(self) -> None:
        """Call what waits for a frame in workers; what they tell the page arrives."""
        if self._workers:
            self._ask_all("globalThis.__fragdexFrame?.()")
            self._take_messages()

    def _take_messages(self) -> None:
        """Let messages of workers reach the page, at no time of it, and in no frame."""
        self._clock.hold()
        self._clock.turn()
        self._clock.go_on()

    def _pass(self, us: int) -> None:
        """Let time pass for the workers, and wait until they have done what was due."""
        self._now_us += us
        self._ask_all(self._to_now())

    def _to_now(self) -> str:
        zero = "null" if self._zero_us is None else repr(self._zero_us / 1000)
        return f"globalThis.__fragdexTo?.({self._now_us / 1000!r}, {zero})"

    def _send(self, session: str, expression: str) -> int:
        return self._pipe.send(
            "Runtime.evaluate", session, expression=expression, awaitPromise=True
        )

    def _ask_all(self, expression: str) -> None:
        """Have all workers do something; those that compute for long are left behind."""
        if not self._workers:
            return
        if not self._are_done():  # one that has just begun
            self._await()
        for session in [*self._workers]:
            if not self._computes(session):
                self._workers[session] = self._send(session, expression)
        self._await()

    def _await(self) -> None:
        self._pipe.listen(_PATIENCE_SECONDS / _LOOKS, self._are_done)
        watch = Stopwatch(self._pipe)
        while not self._are_done() and not watch.exceeds(_PATIENCE_SECONDS):
            self._pipe.listen(_PATIENCE_SECONDS / _LOOKS, self._are_done)
        late = set(filter(self._computes, self._workers)) - self._late
        self._late |= late
        # one that is left behind while the page loads is no frame's
        if late and self._zero_us is not None:
            self._tell_late(f"a worker that computed for more than {_PATIENCE_SECONDS:g} s")

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
