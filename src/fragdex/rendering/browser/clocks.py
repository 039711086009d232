"""What moves a page through time: one of two clocks.

virtual     Chromium's own virtual time, and frames on request
injected    a clock of our own inside the page, for a Chromium that gives no frames on request
"""

from __future__ import annotations

from typing import Any, Protocol

__all__ = ["Clock"]


class Clock(Protocol):
    """Moves a page through time."""

    has_begin_frame: bool

    def scripts(self) -> tuple[str, ...]:
        """Scripts that come before all others in every frame."""

    def prepare(self) -> None:
        """Called before anything is loaded."""

    def step(self, waiting: bool, passes: bool = False) -> None:
        """Let happen what is due while the page is loading, or not ready yet.

        Args:
            waiting: what takes the machine's time gets some.
            passes: a millisecond of the page's time passes: its timers may ring.
        """

    def go(self) -> None:
        """Have the page's clocks, which tell 0 until time 0, tell the time that passes."""

    def zero(self) -> None:
        """Let time 0 be now; the clock stands from then on."""

    def serve(self, again: bool) -> None:
        """Call what waits for a frame, without one: before time 0, or while the clock is held.

        What asks for each frame anew, a loop of the page, has its turn once; each time if `again`.
        """

    def hold(self) -> None:
        """Have the page's clocks stand, while a frame is waited for by its page."""

    def wait(self, us: int) -> None:
        """Let what is due happen, and so much time pass; with time, the page's clocks go."""

    def turn(self) -> None:
        """Let what is due in the page happen, in no time of it; the clock is held."""

    def evaluate(self, expression: str) -> list[Any]:
        """The values of an expression in each frame of the page; of those that have one."""

    def go_on(self) -> None:
        """Bring the page's clocks back to where they were held."""

    def advance(self, i: int) -> int:
        """Bring the clock to frame i, not yet drawing it; the instant in µs."""

    def pass_to(self, us: int) -> None:
        """Bring the clock to an instant after time 0."""

    def pass_by(self) -> None:
        """Let the frame happen where nobody looks."""

    def show(self) -> None:
        """Let the frame happen and be drawn, without a picture of it."""

    def capture(self, needed: bool) -> bytes | None:
        """The frame as PNG; None where nothing changed, unless it is needed."""
