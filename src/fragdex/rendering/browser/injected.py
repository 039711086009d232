"""A clock inside the page, and screenshots when the browser has drawn."""

from __future__ import annotations

from typing import Any

from fragdex.errors import PageFailed
from fragdex.rendering.browser.pipe import Pipe, ProtocolError
from fragdex.rendering.browser.scripts import CLOCK, script
from fragdex.rendering.browser.timing import View, instant_us

__all__ = ["InjectedClock"]


class InjectedClock:
    """Timers, frames, Date and animations follow it; workers keep the real time."""

    has_begin_frame = False

    def __init__(self, pipe: Pipe, session: str, view: View) -> None:
        self._pipe, self._session, self._view = pipe, session, view
        self._last: bytes | None = None
        self._waited_us = 0

    def scripts(self) -> tuple[str, ...]:
        """As `Clock.scripts`."""
        return (script(CLOCK),)

    def prepare(self) -> None:
        """As `Clock.prepare`."""

    def step(self, waiting: bool, passes: bool = False) -> None:
        """As `Clock.step`."""
        self._pipe.listen(0.005 if waiting else 0.002)
        self._evaluate(f"globalThis.__fragdexClock?.run({int(passes)})")

    def go(self) -> None:
        """As `Clock.go`."""
        self._evaluate("globalThis.__fragdexClock?.go()")

    def zero(self) -> None:
        """As `Clock.zero`."""
        self._evaluate("__fragdexClock.start()")

    def serve(self, again: bool) -> None:
        """As `Clock.serve`."""
        self._evaluate(f"globalThis.__fragdexClock?.serve({str(again).lower()})")

    def hold(self) -> None:
        """As `Clock.hold`."""
        self._waited_us = 0
        self._evaluate("__fragdexClock.hold()")

    def wait(self, us: int) -> None:
        """As `Clock.wait`."""
        if us and not self._waited_us:
            self._evaluate("__fragdexClock.goOn(0)")
        self._waited_us += us
        self._evaluate(f"__fragdexClock.run({us / 1000!r})")
        if us:
            self._evaluate("__fragdexClock.frame()")
        else:
            self.serve(again=False)

    def turn(self) -> None:
        """As `Clock.turn`."""
        self._evaluate("__fragdexClock.run(0)")

    def evaluate(self, expression: str) -> list[Any]:
        """As `Clock.evaluate`; of the page itself, not of frames within it."""
        told = self._pipe.call(
            "Runtime.evaluate", self._session, expression=expression, returnByValue=True
        )
        value = told["result"].get("value")
        return [] if value is None else [value]

    def go_on(self) -> None:
        """As `Clock.go_on`."""
        self._evaluate(f"__fragdexClock.goOn({self._waited_us / 1000!r})")

    def advance(self, i: int) -> int:
        """As `Clock.advance`."""
        wanted = instant_us(i, self._view.fps)
        self.pass_to(wanted)
        return wanted

    def pass_to(self, us: int) -> None:
        """As `Clock.pass_to`."""
        self._evaluate(f"__fragdexClock.to({us / 1000!r})")

    def pass_by(self) -> None:
        """As `Clock.pass_by`."""
        self._evaluate("__fragdexClock.frame()")

    def show(self) -> None:
        """As `Clock.show`."""
        self._evaluate("__fragdexClock.frame()")
        self._evaluate("__fragdexClock.drawn()")

    def capture(self, needed: bool) -> bytes | None:
        """As `Clock.capture`."""
        self.show()
        told = self._pipe.call(
            "Page.captureScreenshot", self._session, format="png", optimizeForSpeed=True
        )
        picture: bytes = told["data"]
        if picture == self._last and not needed:
            return None
        self._last = picture
        return picture

    def _evaluate(self, expression: str) -> None:
        try:
            told = self._pipe.call(
                "Runtime.evaluate", self._session, expression=expression, awaitPromise=True
            )
        except ProtocolError as error:
            raise PageFailed("the page was replaced while it was rendered") from error
        if "exceptionDetails" in told:
            raise PageFailed(
                "the page took our clock away",
                found=str(told["exceptionDetails"].get("text")),
            )
