"""Waits for what a page promises: that it is ready, that it shows a moment, that loads are shown.

A page may await frames, timers, files and decoders, though its clock stands. Frames are given to
what waits for them without being drawn, so that no animation begins before time 0, and nothing
moves within a frame. Time of the page passes only where nothing else helps; before a frame is
taken its clocks are brought back. So the frame is the same however long the machine took.

A browser draws a frame without the pictures, fonts and sheets that it has not loaded yet, and shows
them in a later one. Here that later frame would be another one in each run. So a frame is drawn,
what it began to fetch and decode comes to its end, and it is drawn again at the same instant, until
nothing more has come.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from fragdex.errors import PageFailed
from fragdex.rendering.browser.clocks import FONTS, READY, SEEK, WORKS, Clock
from fragdex.rendering.browser.console import text_of
from fragdex.rendering.browser.model import ENDPOINT, LOAD_SECONDS, Limits
from fragdex.rendering.browser.pipe import Pipe
from fragdex.rendering.browser.stopwatch import Stopwatch

# Steps after which a page that is not ready is given frames: one that waits for files and decoders
# alone is ready before, and no loop of it has counted any. And then its loops, too.
_PATIENT: Final = 50
_VERY_PATIENT: Final = 250
_FRAME_STEPS: Final = 16
# Looks in a row, some milliseconds apart, between which nothing has come that the page waits for:
# it is far away, and looked for less often, so many seconds apart.
_FAR: Final = 100
_FAR_SECONDS: Final = 0.02
# Milliseconds of the page's time after which those steps are as long as they are many.
_LONG_STEPS: Final = 64 * _FRAME_STEPS
# Of what a page waits for, so many are named.
_NAMED: Final = 3
# Within a frame, seconds for what takes the machine's time (decoders, workers) …
_PAUSES: Final = (0.0, 0.0, 0.001, 0.002, 0.004, 0.008, 0.016)
# … and then steps of the page's time, in µs.
_FIRST_STEP_US: Final = 1000
_LONGEST_STEP_US: Final = 16_000
_STEP_SECONDS: Final = 0.002
# While a page draws a requested frame its clock does not matter: its time passes soon, too.
_SHORT_PAUSES: Final = (0.0, 0.0, 0.0005, 0.001, 0.001, 0.002, 0.002)
_ASKED_STEP_US: Final = 1000
_ASKED_LONGEST_US: Final = 8000


MORE_TIME: Final = f"{LOAD_SECONDS}=60 allows a page 60 s"
"""What to do about a page that takes long to load, or to answer."""


def waiting_for(pending: list[str]) -> str:
    """What an error says of what has not come."""
    return f"; it waits for {', '.join(pending[:_NAMED])}" if pending else ""


class Waiting:
    """Waits for promises of one page.

    Args:
        clock: of the page.
        check: raises where the browser has gone wrong meanwhile.
        pending: what the page has begun that has not come yet, as errors name it.
    """

    def __init__(
        self, pipe: Pipe, session: str, clock: Clock, limits: Limits, check: Callable[[], object],
        pending: Callable[[], list[str]],
    ) -> None:  # fmt: skip
        self._pipe, self._session, self._clock = pipe, session, clock
        self._limits, self._check, self._pending = limits, check, pending
        self._works, self._looks = [0, 0], 0

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
                step = _FRAME_STEPS if steps >= _LONG_STEPS else 1
                if self._has_worked():
                    step = 1
                    if self._looks > _FAR:
                        self._pipe.listen(_FAR_SECONDS, partial(self._pipe.answered, number))
                else:
                    steps += step
                if steps > self._limits.ready_ms:
                    most = self._limits.ready_ms
                    pending = waiting_for(self._pending())
                    raise PageFailed(f"the page is not ready after {most} ms of its time{pending}")
                if steps == _VERY_PATIENT:
                    self._clock.go()
                self._clock.step(steps > 1, step if steps > _PATIENT else 0)
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

    def call(
        self, call: str, what: str, seconds: float, why: Callable[[], str] = lambda: ""
    ) -> Any:
        """Have a page do what is requested, while everything in the page continues.

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
        watch = Stopwatch(self._pipe)
        step = _ASKED_STEP_US
        while not answered():
            if watch.exceeds(seconds):
                waited = f"{seconds:.0f} s{why()}"
                raise PageFailed(
                    f"the page was asked {what}, and has not answered after {waited}"
                    f"{waiting_for(self._pending())}",
                    advice=MORE_TIME,
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

        watch = Stopwatch(self._pipe)
        left, step = self._limits.ready_ms * 1000, _FIRST_STEP_US

        def check(*, is_over: bool = False) -> None:
            self._check()
            if is_over or watch.exceeds(self._limits.load_seconds):
                most = (
                    f"{self._limits.ready_ms} ms of the page's time, {watch.seconds:.1f} s of ours"
                )
                what = waiting_for(self._pending())
                raise PageFailed(f"fragdex.seek({ms}) has not answered after {most}{what}")

        # However slow the machine is, time of the page passes only where no work is under way.
        is_working = True
        while is_working:
            for pause in _PAUSES:
                self._clock.wait(0)
                self._pipe.listen(pause, answered)
                if answered():
                    return
            is_working = self._has_worked()
            check()
        while not answered():
            check(is_over=left <= 0)
            step = min(step, left)
            self._clock.wait(step)
            self._pipe.listen(_STEP_SECONDS, answered)
            left, step = left - step, min(2 * step, _LONGEST_STEP_US)

    def _has_worked(self) -> bool:
        """Whether the machine works for the page, or has since this was asked last."""
        answer = self._pipe.call(
            "Runtime.evaluate", self._session, expression=WORKS, returnByValue=True
        )
        before, self._works = self._works, answer["result"].get("value") or [0, 0]
        self._looks = self._looks + 1 if self._works == before else 0
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
        answer: dict[str, Any] = self._pipe.answer(number)
        if "exceptionDetails" in answer:
            raise PageFailed(f"{failed}: {text_of(answer['exceptionDetails'])}")
        return answer["result"].get("value")


# Chains of loads that cause loads; one that does not end is not waited for.
_ROUNDS: Final = 16
# The page learns of arrivals by events, and by events of what those change.
_TURNS: Final = 2
# Seconds for what takes the machine's time: decoders, compilers.
_LOAD_PAUSES: Final = (0.0, 0.001, 0.002, 0.004, 0.008, 0.016)
# What does not come in so long a time waits for something else: it is not waited for again. As long
# a frame waits on the whole, for what begins more and more; each time half as long as before.
_PATIENCE_SECONDS: Final = 10.0
_WORK: Final = "work that it began (fetches, decoders, compilers)"
# Answers that are never complete, or not before the page reads them: of these `WORKS` tells.
_ENDLESS: Final = ("EventSource", "Fetch", "Ping", "WebSocket")


class WithLoads:
    """A page's clock whose frames show what they loaded.

    Args:
        clock: of the page.
        session: of the page.
        works: whether the page has begun what takes the machine's time (`__fragdexWorks`).
        late: gets what a frame requested and what came after it: URLs of files, or words.
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
        """What has not come yet: URLs, or words."""
        self._come = 0
        """What has come until now, for better or worse."""
        self._drawn = 0
        """What of it had come before the last frame was drawn."""
        self._done = self._shown = self._working = self._stuck = 0
        """The same of what takes the machine's time; what is under way, and is not waited for."""
        self._patience = _PATIENCE_SECONDS
        self._watch: Stopwatch | None = None
        """How long a frame waits, and since when this one does."""
        pipe.on("Network.requestWillBeSent", self._on_begun)
        pipe.on("Network.loadingFinished", self._on_come)
        pipe.on("Network.loadingFailed", self._on_come)
        pipe.on("Page.frameStartedLoading", self._on_frame)
        pipe.on("Page.frameStoppedLoading", self._on_frame_come)
        pipe.on("Page.frameDetached", self._on_frame_come)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._clock, name)

    def prepare(self) -> None:
        """As `Clock.prepare`."""
        # nobody requests the bodies
        none = {"maxTotalBufferSize": 0, "maxResourceBufferSize": 0}
        self._pipe.call("Network.enable", self._session, **none)
        self._clock.prepare()

    def _on_begun(self, params: dict[str, Any], session: str | None) -> None:
        url = params["request"]["url"]
        number = params["requestId"]
        # documents and scripts of workers have other numbers: their end is reported elsewhere
        is_told = "." in number and params.get("type") not in _ENDLESS
        if session == self._session and is_told and not url.startswith(ENDPOINT):
            self._begun[number] = url

    def _on_come(self, params: dict[str, Any], session: str | None) -> None:
        if session == self._session and self._begun.pop(params["requestId"], None) is not None:
            self._come += 1

    def _on_frame(self, params: dict[str, Any], session: str | None) -> None:
        if session == self._session:
            self._begun[params["frameId"]] = "a frame within the page"

    def _on_frame_come(self, params: dict[str, Any], session: str | None) -> None:
        if session == self._session and self._begun.pop(params["frameId"], None) is not None:
            self._come += 1

    def pending(self) -> list[str]:
        """What was begun and has not come yet: URLs, or words."""
        self._is_busy()
        return [*self._begun.values(), *([_WORK] if self._working > 0 else [])]

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
        self._watch = None
        if self._look():
            self._await()
        for _ in range(_ROUNDS):
            come, done = self._come, self._done
            draw()
            self._drawn, self._shown = come, done
            if not self._look() and self._is_shown():
                return
            self._await()
            if self._is_shown() or self._is_over():
                return
        for url in self._begun.values():
            self._late(url)

    def _is_over(self) -> bool:
        """Whether this frame has waited for as long as it may."""
        self._watch = self._watch or Stopwatch(self._pipe)
        return self._watch.exceeds(self._patience)

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
            if self._is_over():
                self._give_up()
                break
            # the page learns of it after that, and may begin more
            seen = self._come + self._done
            for _ in range(_TURNS):
                self._clock.turn()
            self._wait()
        self._clock.go_on()

    def _wait(self) -> None:
        """Wait until fetches and decoders have done what was begun."""
        pauses = iter(_LOAD_PAUSES)
        while self._is_busy():
            if self._is_over():
                self._give_up()
            self._pipe.listen(next(pauses, _LOAD_PAUSES[-1]))
            self._clock.turn()
            self._check()
        self._stuck = min(self._stuck, self._working)

    def _give_up(self) -> None:
        for url in self._begun.values():
            self._late(url)
        if self._working > self._stuck or not self._begun:
            self._late(_WORK)
        self._begun.clear()
        self._stuck = self._working
        self._patience /= 2

    def _is_busy(self) -> bool:
        if self._works():
            work = self._clock.evaluate(WORKS) or [[0, 0]]
            begun, self._done = (sum(column) for column in zip(*work, strict=True))
            self._working = begun - self._done
        return bool(self._begun) or self._working > self._stuck
