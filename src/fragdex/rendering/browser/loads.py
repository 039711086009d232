"""Pictures, fonts and sheets that a frame asks for are in that frame.

A browser draws a frame without what it has not loaded yet, and shows it in a later one. Here that
later frame would be another one in each run. So a frame is drawn, what it began to fetch and decode
comes to its end, and it is drawn again at the same instant, until nothing more has come.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from fragdex.rendering.browser.clocks import Clock
from fragdex.rendering.browser.pipe import Pipe
from fragdex.rendering.browser.scripts import WORKS
from fragdex.rendering.page_media.contract import ENDPOINT

__all__ = ["WithLoads"]

# What a page loads because something was loaded, and so on; one that goes on is not waited for.
_ROUNDS: Final = 16
# What has come is told to the page by events, and events of what they change.
_TURNS: Final = 2
# Seconds for what takes the machine's time: decoders, compilers.
_PAUSES: Final = (0.0, 0.001, 0.002, 0.004, 0.008, 0.016)
# What does not come in so long a time waits for something else: it is not waited for again.
_PATIENCE_SECONDS: Final = 10.0
# Answers that are never complete, or not before the page reads them: of these `WORKS` tells.
_ENDLESS: Final = ("EventSource", "Fetch", "Ping", "WebSocket")


class WithLoads:
    """A page's clock whose frames show what they loaded.

    Args:
        clock: of the page.
        session: of the page.
        works: whether the page has begun what takes the machine's time (`__fragdexWorks`).
        late: told the URL of each file that a frame asked for and that came after it.
        check: raises where the browser has gone wrong meanwhile.
    """

    def __init__(
        self, clock: Clock, pipe: Pipe, session: str, *, works: Callable[[], bool],
        late: Callable[[str], None], check: Callable[[], object],
    ) -> None:  # fmt: skip
        self._clock, self._pipe, self._session = clock, pipe, session
        self._works, self._late, self._check = works, late, check
        self.has_begin_frame = clock.has_begin_frame
        self._begun: dict[str, str] = {}
        """URLs of what has not come yet."""
        self._come = 0
        """What has come until now, for better or worse."""
        self._drawn = 0
        """What of it had come before the last frame was drawn."""
        self._done = self._shown = self._working = self._stuck = 0
        """The same of what takes the machine's time; what is under way, and is not waited for."""
        pipe.on("Network.requestWillBeSent", self._on_begun)
        pipe.on("Network.loadingFinished", self._on_come)
        pipe.on("Network.loadingFailed", self._on_come)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._clock, name)

    def prepare(self) -> None:
        """As `Clock.prepare`."""
        # nobody asks for the bodies
        none = {"maxTotalBufferSize": 0, "maxResourceBufferSize": 0}
        self._pipe.call("Network.enable", self._session, **none)
        self._clock.prepare()

    def _on_begun(self, params: dict[str, Any], session: str | None) -> None:
        url = params["request"]["url"]
        number = params["requestId"]
        # documents and scripts of workers have other numbers: their end is told elsewhere
        is_told = "." in number and params.get("type") not in _ENDLESS
        if session == self._session and is_told and not url.startswith(ENDPOINT):
            self._begun[number] = url

    def _on_come(self, params: dict[str, Any], session: str | None) -> None:
        if session == self._session and self._begun.pop(params["requestId"], None) is not None:
            self._come += 1

    def pass_by(self) -> None:
        """As `Clock.pass_by`."""
        self._draw(self._clock.pass_by)

    def show(self) -> None:
        """As `Clock.show`."""
        self._draw(self._clock.show)

    def capture(self, needed: bool) -> bytes | None:
        """As `Clock.capture`."""
        picture = None

        def draw() -> None:
            nonlocal picture, needed
            # what came since the last frame may have been drawn where nobody looked
            picture = self._clock.capture(needed or not self._is_shown())
            needed = True

        self._draw(draw)
        return picture

    def _draw(self, draw: Callable[[], None]) -> None:
        """Draw until nothing has come since.

        A frame of which nothing is awaited costs one question more: the page's tasks are run by the
        time that passes until the next one.
        """
        if self._look():
            self._await()
        for _ in range(_ROUNDS):
            come, done = self._come, self._done
            draw()
            self._drawn, self._shown = come, done
            if not self._look() and self._is_shown():
                return
            self._await()
            if self._is_shown():
                return
        for url in self._begun.values():
            self._late(url)

    def _look(self) -> bool:
        """Whether the page has begun what has not come yet."""
        # what it began until now is known for certain when this is answered
        if not self._works():
            self._clock.evaluate("0")
        return self._is_busy()

    def _is_shown(self) -> bool:
        """Whether all that has come had come before the last frame was drawn."""
        return self._come == self._drawn and self._done == self._shown

    def _await(self) -> None:
        """Let come what was begun, at this instant, and what is begun by that."""
        self._clock.hold()
        self._clock.turn()
        seen = self._drawn + self._shown
        self._wait()
        while self._come + self._done > seen:
            # the page is told of it behind that, and may begin more
            seen = self._come + self._done
            for _ in range(_TURNS):
                self._clock.turn()
            self._wait()
        self._clock.go_on()

    def _wait(self) -> None:
        """Wait until fetches and decoders have done what was begun."""
        last, since, pauses = -1, 0.0, iter(_PAUSES)
        while self._is_busy():
            now = time.monotonic() - self._pipe.excused
            if self._come + self._done != last:
                last, since = self._come + self._done, now
            if now - since > _PATIENCE_SECONDS:
                self._give_up()
            self._pipe.listen(next(pauses, _PAUSES[-1]))
            self._clock.turn()
            self._check()
        self._stuck = min(self._stuck, self._working)

    def _give_up(self) -> None:
        for url in self._begun.values():
            self._late(url)
        self._begun.clear()
        self._stuck = self._working

    def _is_busy(self) -> bool:
        if self._works():
            told = self._clock.evaluate(WORKS) or [[0, 0]]
            begun, self._done = (sum(column) for column in zip(*told, strict=True))
            self._working = begun - self._done
        return bool(self._begun) or self._working > self._stuck
