"""Waits for what a page promises: that it is ready, and that it shows a moment.

A page may await frames, timers, files and decoders, though its clock stands. Frames are given to
what waits for them without being drawn, so that no animation begins before time 0, and nothing
moves within a frame. Time of the page passes only where nothing else helps; before a frame is
taken its clocks are brought back. So the frame is the same however long the machine took.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from fragdex.errors import PageFailed
from fragdex.rendering.browser.clocks import Clock
from fragdex.rendering.browser.console import text_of
from fragdex.rendering.browser.model import Limits
from fragdex.rendering.browser.pipe import Pipe
from fragdex.rendering.browser.scripts import FONTS, READY, SEEK, WORKS

__all__ = ["Waiting"]

# Steps after which a page that is not ready is given frames: one that waits for files and decoders
# alone is ready before, and no loop of it has counted any. And then its loops, too.
_PATIENT: Final = 50
_VERY_PATIENT: Final = 250
_FRAME_STEPS: Final = 16
# Within a frame, seconds for what takes the machine's time (decoders, workers) …
_PAUSES: Final = (0.0, 0.0, 0.001, 0.002, 0.004, 0.008, 0.016)
# … and then steps of the page's time, in µs.
_FIRST_STEP_US: Final = 1000
_LONGEST_STEP_US: Final = 16_000
_STEP_SECONDS: Final = 0.002
# For a page that is asked for a frame its clock is of no account: time passes for it, too, soon.
_SHORT_PAUSES: Final = (0.0, 0.0, 0.0005, 0.001, 0.001, 0.002, 0.002)
_ASKED_STEP_US: Final = 1000
_ASKED_LONGEST_US: Final = 8000


class Waiting:
    """Waits for promises of one page.

    Args:
        clock: of the page.
        check: raises where the browser has gone wrong meanwhile.
    """

    def __init__(
        self, pipe: Pipe, session: str, clock: Clock, limits: Limits, check: Callable[[], object]
    ) -> None:
        self._pipe, self._session, self._clock = pipe, session, clock
        self._limits, self._check = limits, check
        self._works = [0, 0]

    def ready(self, in_time: Callable[[str], None]) -> None:
        """Wait until the page is ready and its fonts are here.

        No time of the page passes while it waits for files, decoders and frames alone. Then its
        timers ring, and at last its clocks go.

        Raises:
            PageFailed: it says that it will not be, or is not in time.
        """
        steps = 0
        for promise in (READY, FONTS):
            number = self._ask(promise)
            while not self._pipe.answered(number):
                if not self._has_worked():
                    steps += 1
                if steps > self._limits.ready_ms:
                    most = self._limits.ready_ms
                    raise PageFailed(f"the page is not ready after {most} ms of its time")
                if steps == _VERY_PATIENT:
                    self._clock.go()
                self._clock.step(steps > 1, passes=steps > _PATIENT)
                if promise is READY and steps > _PATIENT and steps % _FRAME_STEPS == 0:
                    self._clock.serve(again=steps > _VERY_PATIENT)
                in_time("ready")
            self._answer(number, "the page says that it will not be ready")

    def seek(self, ms: float) -> None:
        """Have the page show a moment.

        Raises:
            PageFailed: it throws, or does not answer.
        """
        number = self._ask(SEEK.format(ms=ms))
        # Most are done when anything else is answered.
        self._pipe.call("Runtime.evaluate", self._session, expression="0")
        if not self._pipe.answered(number):
            self._clock.hold()
            self._give(number, ms)
            self._clock.go_on()
        self._answer(number, f"fragdex.seek({ms}) failed")

    def asked(
        self, call: str, what: str, seconds: float, why: Callable[[], str] = lambda: ""
    ) -> Any:
        """Have a page do what it is asked for, while all that is of the page goes on.

        Args:
            call: an expression, which may be a promise; its value is returned.
            what: it is asked, as errors say it.
            seconds: that it may take.
            why: tells more where it does not answer.

        Raises:
            PageFailed: it throws, or does not answer.
        """
        number = self._ask(call)
        # Most are done when anything else is answered.
        self._pipe.call("Runtime.evaluate", self._session, expression="0")
        if not self._pipe.answered(number):
            self._clock.hold()
            self._go_on_until(number, what, seconds, why)
            self._clock.go_on()
        return self._answer(number, f"the page was asked {what}, and failed")

    def _go_on_until(self, number: int, what: str, seconds: float, why: Callable[[], str]) -> None:
        def answered() -> bool:
            return self._pipe.answered(number)

        for pause in _SHORT_PAUSES:
            self._clock.wait(0)
            self._pipe.listen(pause, answered)
            if answered():
                return
        began = time.monotonic() - self._pipe.excused
        step = _ASKED_STEP_US
        while not answered():
            waited = time.monotonic() - self._pipe.excused - began
            if waited > seconds:
                raise PageFailed(
                    f"the page was asked {what}, and has not answered after {waited:.0f} s{why()}"
                )
            self._clock.wait(step)
            # about as long as it is for the page
            self._pipe.listen(step / 1_000_000, answered)
            self._check()
            step = min(2 * step, _ASKED_LONGEST_US)

    def value(self, expression: str) -> Any:
        """The value of an expression that waits for nothing; raises as `asked`."""
        number = self._ask(expression)
        self._pipe.until(lambda: self._pipe.answered(number))
        return self._answer(number, "the page could not be asked")

    def _give(self, number: int, ms: float) -> None:
        """Give the page what it waits for, until it answers."""

        def answered() -> bool:
            return self._pipe.answered(number)

        began = time.monotonic() - self._pipe.excused
        # However slow the machine is, time of the page passes only where no work is under way.
        while time.monotonic() - self._pipe.excused - began <= self._limits.load_seconds:
            for pause in _PAUSES:
                self._clock.wait(0)
                self._pipe.listen(pause, answered)
                if answered():
                    return
            if not self._has_worked():
                break
            self._check()
        began = time.monotonic() - self._pipe.excused
        left, step = self._limits.ready_ms * 1000, _FIRST_STEP_US
        while not answered():
            waited = time.monotonic() - self._pipe.excused - began
            if left <= 0 or waited > self._limits.load_seconds:
                most = f"{self._limits.ready_ms} ms of the page's time, {waited:.1f} s of ours"
                raise PageFailed(f"fragdex.seek({ms}) has not answered after {most}")
            step = min(step, left)
            self._clock.wait(step)
            self._pipe.listen(_STEP_SECONDS, answered)
            self._check()
            left, step = left - step, min(2 * step, _LONGEST_STEP_US)

    def _has_worked(self) -> bool:
        """Whether the machine works for the page, or has since this was asked last."""
        told = self._pipe.call(
            "Runtime.evaluate", self._session, expression=WORKS, returnByValue=True
        )
        before, self._works = self._works, told["result"].get("value") or [0, 0]
        begun, done = self._works
        return bool(begun > done or self._works != before)

    def _ask(self, promise: str) -> int:
        return self._pipe.send(
            "Runtime.evaluate",
            self._session,
            expression=promise,
            awaitPromise=True,
            returnByValue=True,
        )

    def _answer(self, number: int, failed: str) -> Any:
        told: dict[str, Any] = self._pipe.answer(number)
        if "exceptionDetails" in told:
            raise PageFailed(f"{failed}: {text_of(told['exceptionDetails'])}")
        return told["result"].get("value")
