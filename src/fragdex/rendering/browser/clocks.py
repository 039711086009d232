"""What moves a page through time: one of two clocks, and the scripts that they put into pages.

`VirtualClock` is Chromium's own virtual time, with frames on request; `InjectedClock` a clock of
our own inside the page, for a Chromium that cannot render single frames.

What each step of virtual time is good for was found by a run that failed:

- the clock stands while the page is fetched, and starts only when its document is there; else the
  first milliseconds fall on either side of it, as the machine's load decides;
- it stands while requests are pending;
- a browser answers frames before the page's compositor is ready (on a busy machine the
  first of 250 pages, or the first 20 frames): frame 0 is drawn until the page says that it was
  called for it;
- every instant lies on the grid of the browser's clocks, and time 0 is always as long after the
  start, which hides how long Chromium took to load;
- frameTimeTicks always goes forward: a frame that is drawn again at its instant is a microsecond
  later. Of two frames with equal ticks, some releases (Chromium 150) never answer the second. The
  page's timeline may round it up by a step, at a threshold drawn by chance, so animations that
  begin in such a frame are aligned with its instant;
- the protocol's milliseconds are written so that no microsecond is lost (`protocol_ms`).
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from fractions import Fraction
from importlib import resources
from typing import Any, Final, Protocol

from fragdex.errors import BrowserGone, PageFailed
from fragdex.rendering.browser.model import GRID_US, PageView, instant_us, protocol_ms
from fragdex.rendering.browser.pipe import Pipe, ProtocolError


class Clock(Protocol):
    """Moves a page through time."""

    has_begin_frame: bool

    def scripts(self) -> tuple[str, ...]:
        """Scripts that come before all others in every frame."""

    def prepare(self) -> None:
        """Called before anything is loaded."""

    def step(self, waiting: bool, ms: int = 0) -> None:
        """Let happen what is due while the page is loading, or not ready yet.

        Args:
            waiting: what takes the machine's time gets some.
            ms: milliseconds of the page's time that pass: its timers may ring.
        """

    def go(self) -> None:
        """Have the page's clocks, which tell 0 until time 0, tell the time that passes."""

    def zero(self) -> None:
        """Let time 0 be now; the clock stands from then on."""

    def serve(self, again: bool) -> None:
        """Call what waits for a frame, without one: before time 0, or while the clock is held.

        What requests each frame again, a loop of the page, has its turn once; each time if `again`.
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

    def damage(self) -> None:
        """Have everything drawn again with the next frame."""

    def capture(self, needed: bool) -> bytes | None:
        """The frame as PNG; None where nothing changed, unless it is needed."""


SOURCES: Final = "sources.js"
STEADY: Final = "steady.js"
CLOCK: Final = "clock.js"
FACTS: Final = "facts.js"
BRIDGE: Final = "bridge.js"
WORKER: Final = "worker.js"
GLYPHS: Final = "glyphs.js"
RANDOM: Final = "random.js"
USES: Final = "uses.js"

READY: Final = "(async () => { await globalThis.fragdex?.ready; })()"
"""Settles when the page says that it is ready."""

FONTS: Final = """(async () => {
  document.documentElement.getBoundingClientRect();
  await document.fonts.ready;
})()"""
"""Settles when the page's fonts are here."""

SEEK: Final = """(async () => {{
  await globalThis.fragdex.seek(globalThis.__fragdexExact({ms!r}));
}})()"""
"""Settles when the page shows a moment, as it says."""


WORKS: Final = "globalThis[Symbol.for('fragdex.media')]?.look?.(), globalThis.__fragdexWorks?.()"
"""What takes the machine's time, and no time of the page: how much was begun, how much is done."""


_NTSC: Final = 1001
_HAIR_MS: Final = 1e-5


@functools.cache
def script(name: str) -> str:
    """The text of a script."""
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def sources(view: PageView) -> str:
    """The script of chance and of what clocks tell, for a page or a worker seen so often."""
    rate = view.page_fps or view.fps
    # 29.97 for 30000/1001
    written = Fraction(math.floor(1000 * rate), 1000) if rate.denominator == _NTSC else rate
    # `instant_us` rounds whole rates up by less than a step of the grid, others by at most one
    is_whole = view.fps.denominator == rate.denominator == 1
    late = GRID_US / 1000 + (-_HAIR_MS if is_whole else _HAIR_MS)
    return f"{script(SOURCES).rstrip()}({[float(rate), float(written), late]});"


class InjectedClock:
    """Timers, frames, Date and animations follow it; workers keep the real time."""

    has_begin_frame = False

    def __init__(self, pipe: Pipe, session: str, view: PageView) -> None:
        self._pipe, self._session, self._view = pipe, session, view
        self._last: bytes | None = None
        self._waited_us = 0

    def scripts(self) -> tuple[str, ...]:
        """As `Clock.scripts`."""
        return (script(CLOCK),)

    def prepare(self) -> None:
        """As `Clock.prepare`."""
        # What is animated stands until our clock moves it: else it might end while the page loads.
        self._pipe.call("Animation.enable", self._session)
        self._pipe.call("Animation.setPlaybackRate", self._session, playbackRate=0)

    def step(self, waiting: bool, ms: int = 0) -> None:
        """As `Clock.step`."""
        self._pipe.listen(0.005 if waiting else 0.002)
        self._evaluate(f"globalThis.__fragdexClock?.run({ms})")

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
        answer = self._pipe.call(
            "Runtime.evaluate", self._session, expression=expression, returnByValue=True
        )
        value = answer["result"].get("value")
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

    def damage(self) -> None:
        """As `Clock.damage`; each screenshot draws everything."""

    def capture(self, needed: bool) -> bytes | None:
        """As `Clock.capture`."""
        self.show()
        answer = self._pipe.call(
            "Page.captureScreenshot", self._session, format="png", optimizeForSpeed=True
        )
        picture: bytes = answer["data"]
        if picture == self._last and not needed:
            return None
        self._last = picture
        return picture

    def _evaluate(self, expression: str) -> None:
        try:
            answer = self._pipe.call(
                "Runtime.evaluate", self._session, expression=expression, awaitPromise=True
            )
        except ProtocolError as error:
            raise PageFailed("the page was replaced while it was rendered") from error
        if "exceptionDetails" in answer:
            raise PageFailed(
                "the page took our clock away",
                found=str(answer["exceptionDetails"].get("text")),
            )


EPOCH_SECONDS: Final = 1_700_000_000
"""What `Date.now()` tells when the page begins to load."""

_STEP_US: Final = 1000
_LEAST_US: Final = 1
# Time 0 is so long after the start of the navigation, however long the page took to load: what an
# animation computes of its time, in seconds from there, is in none of the 10 s that follow a hair
# less than a multiple of 10 ms, and shows no step too late …
_ZERO_US: Final = 4_026_000
# … or on this grid, for pages that let more time pass before they are ready.
_LATE_ZERO_US: Final = 50_000
_RETRIES: Final = 20
_MOST_WANTED: Final = 64
_IN_VAIN: Final = 2
_LARGEST_STEP_US: Final = 3_600_000_000
# Until the next frame, as the browser learns. Animated pictures (GIF, WebP …) show what is due
# within it, which is too early; below 0.25 the compositor turns them apart from what the page
# changes, and then waits for itself.
_INTERVAL_MS: Final = 0.3
# A frame of such a page that is not there by then waits for itself all the same, about one of
# 10,000 on a busy machine: another change has it drawn.
_URGE_SECONDS: Final = 1.0
_URGES: Final = 8
# How long a page may be without a compositor.
_AWAKE_SECONDS: Final = 15.0


class VirtualClock:
    """Chromium's own virtual time, and frames on request.

    Args:
        has_animated: whether the page may show animated pictures. Chromium turns one together with
            what the page changes, unless the frame before changed nothing: then in a change of its
            own, which waits to be drawn, while the page's waits to be drawn with it. So all frames
            of such a page change something.
    """

    has_begin_frame = True

    def __init__(
        self, pipe: Pipe, session: str, view: PageView,
        has_animated: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        self._pipe, self._session, self._view = pipe, session, view
        self._has_animated = has_animated
        self._now_us = self._began_us = self._zero_us = self._drawn_us = 0
        # Where the clock was held, how far it is led on since then, and what all seeks took.
        self._held_us = self._late_us = self._lead_us = 0
        self._expired = False
        # The world next to the page's that says whether frames reach the page; 0 when they do.
        self._beside = 0
        # The last picture given; how many after it were equal; how many must be before frames are
        # tried without a picture; whether they are, and how often it was for nothing.
        self._last: bytes | None = None
        self._same, self._wanted, self._tries, self._in_vain = 0, 1, False, 0
        # Whether frames that were drawn without a picture since then changed something.
        self._unseen = False
        self._frames: set[int] = set()
        pipe.on("Emulation.virtualTimeBudgetExpired", self._on_expired)
        pipe.on("Runtime.executionContextCreated", self._on_frame)
        pipe.on("Runtime.executionContextDestroyed", self._on_frame_gone)
        pipe.on("Runtime.executionContextsCleared", self._on_frame_gone)

    def _on_expired(self, _: dict[str, Any], session: str | None) -> None:
        self._expired = self._expired or session == self._session

    def _on_frame(self, params: dict[str, Any], session: str | None) -> None:
        context = params["context"]
        if session == self._session and context.get("auxData", {}).get("isDefault"):
            self._frames.add(context["id"])

    def _on_frame_gone(self, params: dict[str, Any], session: str | None) -> None:
        if session == self._session:
            gone = params.get("executionContextId")
            self._frames -= self._frames.copy() if gone is None else {gone}

    def scripts(self) -> tuple[str, ...]:
        """As `Clock.scripts`."""
        return ()

    def prepare(self) -> None:
        """As `Clock.prepare`."""
        call = self._pipe.call
        call("HeadlessExperimental.enable", self._session)
        answer = call(
            "Emulation.setVirtualTimePolicy",
            self._session,
            policy="pause",
            initialVirtualTime=EPOCH_SECONDS,
        )
        self._now_us = round(answer["virtualTimeTicksBase"] * 1000)
        self._pass(_STEP_US - self._now_us % GRID_US)
        call("Emulation.setVirtualTimePolicy", self._session, policy="pause")
        self._began_us = self._now_us

    def step(self, waiting: bool, ms: int = 0) -> None:
        """As `Clock.step`."""
        # Nothing happens while the clock stands; timers of the page ring in whole milliseconds.
        self._pass(ms * _STEP_US or _LEAST_US)
        # What happened in the step is known for certain when this is answered.
        self._evaluate("0")
        if waiting:
            # What is not of the page's time (decoders, workers, compilers) gets some of ours.
            self._pipe.listen(0.002)

    def go(self) -> None:
        """As `Clock.go`."""
        self._tell_frames("globalThis.__fragdexGo?.()")

    def zero(self) -> None:
        """As `Clock.zero`."""
        self._tell_frames("globalThis.__fragdexFreeze?.()")
        spent = self._now_us - self._began_us
        later = -(-spent // _LATE_ZERO_US) * _LATE_ZERO_US
        self._pass((_ZERO_US if spent < _ZERO_US else later) - spent)
        # each frame comes a tick after the timers that are due with it, and what these post
        self._zero_us = self._now_us + GRID_US
        begin = "globalThis.__fragdexBegin?.({})"
        answer = self._evaluate(begin.format(""))
        at = begin.format(answer["result"].get("value", 0))
        self._tell_frames(at)
        self._pipe.call("Page.addScriptToEvaluateOnNewDocument", self._session, source=at)
        self._note_first_frame()

    def _note_first_frame(self) -> None:
        """Note in a world that the page cannot see when its first frame happens."""
        tree = self._pipe.call("Page.getFrameTree", self._session)
        answer = self._pipe.call(
            "Page.createIsolatedWorld", self._session, frameId=tree["frameTree"]["frame"]["id"]
        )
        self._beside = answer["executionContextId"]
        note = "requestAnimationFrame(() => { globalThis.happened = true })"
        self._evaluate(note, contextId=self._beside)

    def _evaluate(self, expression: str, **where: Any) -> dict[str, Any]:
        try:
            return self._pipe.call(
                "Runtime.evaluate", self._session, expression=expression, **where
            )
        except ProtocolError:
            # a frame that is gone by now
            return {"result": {}}

    def serve(self, again: bool) -> None:
        """As `Clock.serve`."""
        self._tell_frames(f"globalThis.__fragdexServe?.({str(again).lower()})")

    def hold(self) -> None:
        """As `Clock.hold`."""
        if self._late_us:
            # It is held. Told again, it might be a step of the page's clocks later: they are
            # rounded by chance where an instant is not on their grid.
            return
        self._held_us = self._now_us
        self._tell_frames("globalThis.__fragdexHold?.()")

    def wait(self, us: int) -> None:
        """As `Clock.wait`.

        Nothing happens in the page while its clock stands: so that things happen, it advances by
        microseconds, which the next frame takes back.
        """
        if us == 0:
            self.turn()
            self.serve(again=False)
            return
        late = self._late_us
        self._let_go()
        self._pass(us - late)
        self._frame(noDisplayUpdates=True)

    def turn(self) -> None:
        """As `Clock.turn`."""
        self._pass(_LEAST_US)
        self._late_us = self._now_us - self._held_us

    def go_on(self) -> None:
        """As `Clock.go_on`."""
        if self._late_us:
            # by microseconds: the clock is held until it continues
            return
        # requests of the last frame have one of their own
        self._pass(_STEP_US)
        spent = self._now_us - self._held_us
        self._lead_us += spent
        times = f"{spent / 1000!r}, {_STEP_US / 1000!r}"
        self._tell_frames(f"globalThis.__fragdexGoOn?.({times})")

    def _let_go(self) -> None:
        """Have the clock go that is held."""
        if self._late_us:
            self._late_us = 0
            self._tell_frames("globalThis.__fragdexGoOn?.(0)")

    def _tell_frames(self, expression: str) -> None:
        # the next message comes after it: nobody waits for answers
        for frame in sorted(self._frames):
            how = {"expression": expression, "contextId": frame}
            self._pipe.post("Runtime.evaluate", self._session, **how)

    def evaluate(self, expression: str) -> list[Any]:
        """As `Clock.evaluate`."""
        values = [
            self._evaluate(expression, contextId=frame, returnByValue=True)["result"].get("value")
            for frame in sorted(self._frames)
        ]
        return [value for value in values if value is not None]

    def advance(self, i: int) -> int:
        """As `Clock.advance`."""
        wanted = instant_us(i, self._view.fps)
        self.pass_to(wanted)
        return wanted

    def pass_to(self, us: int) -> None:
        """As `Clock.pass_to`."""
        self._let_go()
        while (left := self._zero_us + self._lead_us + us - self._now_us) > 0:
            self._pass(min(left, _LARGEST_STEP_US))

    def _pass(self, us: int) -> None:
        self._expired = False
        self._pipe.call(
            "Emulation.setVirtualTimePolicy",
            self._session,
            policy="pauseIfNetworkFetchesPending",
            budget=protocol_ms(us),
        )
        self._pipe.until(lambda: self._expired)
        self._now_us += us

    def pass_by(self) -> None:
        """As `Clock.pass_by`."""
        self._frame(noDisplayUpdates=True)

    def show(self) -> None:
        """As `Clock.show`."""
        self._unseen = bool(self._frame()["hasDamage"]) or self._unseen

    def capture(self, needed: bool) -> bytes | None:
        """As `Clock.capture`.

        A screenshot damages what it is taken of, and with that the next frame: whether anything
        changed shows only in frames without one, after another without one. Pages that move are
        spared those; frames are tried so where pictures were equal, until twice in a row the trial
        was for nothing.
        """
        unseen, self._unseen = self._unseen, False
        if self._tries and not needed and not self._frame()["hasDamage"] and not unseen:
            self._in_vain, self._wanted = 0, 1
            return None
        picture = self._shoot(needed or self._tries)
        if self._tries:
            # the damage of the screenshot goes with a frame of its own, not with the next one
            self._frame()
        if picture is None:
            return None
        if needed or picture != self._last:
            # One change is a slide; two in a row are a page that moves.
            self._in_vain += 1
            self._same, self._last = 0, picture
            self._tries = self._tries and self._in_vain < _IN_VAIN
            return picture
        self._same += 1
        if self._tries:
            self._in_vain += 1
            if self._in_vain >= _IN_VAIN:
                # It draws again what was there before.
                self._tries, self._same = False, 0
                self._wanted = min(2 * self._wanted, _MOST_WANTED)
        elif self._same >= self._wanted:
            self._tries, self._in_vain = True, 0
            self._frame()
        return None

    def _shoot(self, changed: bool) -> bytes | None:
        """The picture of what is shown; None where nothing changed, as far as is known."""
        for again in range(_RETRIES):
            answer = self._frame(screenshot={"format": "png", "optimizeForSpeed": True})
            picture: bytes | None = answer.get("screenshotData")
            changed = changed or answer["hasDamage"]
            if picture is not None or not changed:
                return picture
            self._pipe.listen(0.002 * again)
            self.damage()
        raise BrowserGone("the browser gave no picture")

    def damage(self) -> None:
        """As `Clock.damage`."""
        color = {"r": 255, "g": 255, "b": 255, "a": 0 if self._view.transparent else 1}
        set_color = "Emulation.setDefaultBackgroundColorOverride"
        self._pipe.post(set_color, self._session, color=color | {"b": 254})
        if self._view.transparent:
            self._pipe.call(set_color, self._session, color=color)
        else:
            self._pipe.call(set_color, self._session)

    def _frame(self, **how: Any) -> dict[str, Any]:
        """Draw a frame; the first one until it has reached the page."""
        answer = self._begin_frame(**how)
        if not self._beside:
            return answer
        began, pause = time.monotonic(), 0.001
        while not self._has_happened():
            if time.monotonic() - began > _AWAKE_SECONDS:
                raise BrowserGone("the browser does not draw the page")
            # few of them: each is a microsecond later than the one before
            self._pipe.listen(pause)
            pause = min(2 * pause, 1.0)
            answer = self._begin_frame(**how)
        self._beside = 0
        if self._drawn_us > self._now_us - self._late_us:
            self._tell_frames("globalThis.__fragdexAlign?.()")
        return answer

    def _has_happened(self) -> bool:
        answer = self._evaluate("globalThis.happened", contextId=self._beside)
        return bool(answer["result"].get("value"))

    def _begin_frame(self, **how: Any) -> dict[str, Any]:
        instant = self._now_us - self._late_us
        if instant > self._drawn_us and self._late_us % GRID_US:
            # Called for it now, after turns, the page sets its timers on the grid of its clocks.
            self._pass(-self._late_us % GRID_US)
            self._late_us = self._now_us - instant
        self._drawn_us = max(instant, self._drawn_us + 1)
        if self._has_animated():
            self.damage()
        method = "HeadlessExperimental.beginFrame"
        how |= {"frameTimeTicks": protocol_ms(self._drawn_us), "interval": _INTERVAL_MS}
        if not self._has_animated():
            return self._pipe.call(method, self._session, **how)
        number = self._pipe.send(method, self._session, **how)
        for _ in range(_URGES):
            self._pipe.listen(_URGE_SECONDS, lambda: self._pipe.has_answer(number))
            if self._pipe.has_answer(number):
                break
            self.damage()
        return self._pipe.answer(number, method)
