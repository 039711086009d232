"""One page on one Chromium: loaded, stopped at time 0, and looked at frame by frame."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

from fragdex.errors import BrowserGone, PageFailed
from fragdex.rendering.browser.animated import ANIMATED, CSS_CHANCE
from fragdex.rendering.browser.canvas import CanvasPicture, CanvasReader
from fragdex.rendering.browser.clocks import (
    BRIDGE,
    FACTS,
    GLYPHS,
    RANDOM,
    STEADY,
    USES,
    Clock,
    InjectedClock,
    VirtualClock,
    script,
    sources,
)
from fragdex.rendering.browser.console import Console, text_of
from fragdex.rendering.browser.finding import find_engine
from fragdex.rendering.browser.loads import MORE_TIME, Waiting, WithLoads, waiting_for
from fragdex.rendering.browser.model import Limits, Notes, PageFacts, PageView
from fragdex.rendering.browser.pipe import ProtocolError
from fragdex.rendering.browser.process import Running, understood
from fragdex.rendering.browser.requests import (
    ISOLATED,
    RequestInterceptor,
    check_data,
    data_script,
    shares_memory,
)
from fragdex.rendering.browser.stopwatch import Stopwatch
from fragdex.rendering.browser.worker_clocks import WithTransitions, WithWorkers
from fragdex.rendering.pictures import LINE, shows_canvas
from fragdex.rendering.site import DATA, NOTHING, ORIGIN, Outside, Site

if TYPE_CHECKING:
    from fragdex.rendering.page_media.player import Player


# Pages that render themselves: each frame is requested, and they say when it is ready.
#
# `window.FRAMEGEN_BRIDGE` is there before any script of a page. One that gives it callbacks is not
# led through time: it gets the wanted part of the video, then requests for one frame after the
# other, whose number it draws as the colour of a line at the bottom of the window. With the last
# frame it hands over the sound of the part.


SAMPLE_RATE: Final = 48_000
"""Samples a second of the sound that such pages mix."""

# Whole milliseconds and whole AAC frames: 3 of 1024 samples.
_SPAN_US: Final = 64_000
_SECOND: Final = 1_000_000
# A page may round the requested span to its own blocks.
_ROUNDED: Final = 1024
# A multiple of what bridge.js makes text of at once.
_PIECE: Final = 0x6000 * 128
_ROOM: Final = "globalThis[Symbol.for('fragdex.bridge')]"


class Bridge:
    """A page that draws each frame on request.

    Args:
        waiting: for what the page promises.
    """

    def __init__(self, waiting: Waiting, view: PageView, limits: Limits, notes: Notes) -> None:
        self._waiting, self._view = waiting, view
        self._seconds, self._notes = limits.load_seconds, notes
        self._frames: range | None = None
        self._heard = range(0)

    @property
    def frames(self) -> range | None:
        """The frames of the video given to the page; None: not yet."""
        return self._frames

    def is_asked(self) -> bool:
        """Whether the page wants a request for each frame."""
        return bool(self._waiting.value(f"{_ROOM}?.isAsked() === true"))

    def measure(self) -> tuple[int | None, int | None, int | None]:
        """Width and height in pixels, and duration in ms, of the page's root element.

        Raises:
            PageFailed: it throws, or does not answer.
        """
        facts = self._waiting.call(f"{_ROOM}.measure()", "how long it is", self._seconds)
        width, height, duration = (None if one is None else max(1, round(one)) for one in facts)
        return width, height, duration

    def initialize(self, frames: range, heard: range) -> None:
        """Tell the page which part of the video it has to draw.

        Args:
            frames: that it will draw, of the whole video.
            heard: those of them whose sound it has to give.

        Raises:
            PageFailed: it throws, says that it failed, or does not answer.
        """
        self._frames, self._heard = frames, heard
        start_us, stop_us = self._span_us()
        fps = self._view.fps
        options = {
            "encoderOptions": {
                "fromMs": _number(frames.start * 1000 / fps),
                "toMs": _number(frames.stop * 1000 / fps),
                "alignedFromUs": start_us,
                "alignedToUs": stop_us,
                "video": {
                    "width": self._view.width,
                    "height": self._view.height,
                    "framerate": _number(fps),
                },
            },
            "showFrameBox": False,
            "enableTracing": False,
        }
        self._ask(f"initialize({json.dumps(options)})", "to initialize", self._seconds)

    def frame(self, i: int) -> None:
        """Have the page draw frame i of the video; raises as `initialize`."""
        assert self._frames is not None
        number, is_last = i - self._frames.start, i == self._frames.stop - 1
        # the sound may take the page as long as it lasts
        seconds = self._seconds + is_last * float(len(self._heard) / self._view.fps)
        self._ask(f"frame({number}, {json.dumps(is_last)})", f"for frame {number}", seconds)

    def sound(self) -> bytes:
        """The sound of the part, after its last frame was drawn.

        Returns: float32, two channels, interleaved, little-endian, at 48 kHz: as many samples as
        the frames last, rounded to those of the video; empty if the page gave none.
        """
        size = int(self._waiting.value(f"{_ROOM}.size()"))
        if not size:
            return b""
        start_us, stop_us = self._span_us()
        span = (stop_us - start_us) * SAMPLE_RATE // _SECOND
        channels = 1 if abs(size // 4 - span) <= _ROUNDED else 2
        frame_bytes = 4 * channels
        first, stop = (
            round(i / self._view.fps * SAMPLE_RATE) - start_us * SAMPLE_RATE // _SECOND
            for i in (self._heard.start, self._heard.stop)
        )
        count = min(size // frame_bytes, span)
        if count < stop:
            self._notes.say(
                "refused",
                f"sound that is too short: {count / SAMPLE_RATE:.3f} s for "
                f"{span / SAMPLE_RATE:.3f} s, the rest is silent",
            )
        data = self._bytes(first * frame_bytes, min(stop, count) * frame_bytes)
        return _stereo(data, channels, stop - first)

    def _span_us(self) -> tuple[int, int]:
        """The span of sound given to the page: frames of AAC that hold the sound of the video."""
        fps = self._view.fps
        start = int(self._heard.start * _SECOND / fps) // _SPAN_US * _SPAN_US
        return start, -(-self._heard.stop * _SECOND // (fps * _SPAN_US)) * _SPAN_US

    def _bytes(self, first: int, stop: int) -> bytes:
        parts = []
        for at in range(first - first % _PIECE, stop, _PIECE):
            text = self._waiting.value(f"{_ROOM}.sound({at}, {min(at + _PIECE, stop)})")
            parts.append(base64.b64decode(text))
        return b"".join(parts)[first % _PIECE :]

    def _ask(self, call: str, what: str, seconds: float) -> None:
        def told() -> str:
            answered = self._waiting.value(f"{_ROOM}.told()")
            return f"; it answered for frame {answered}" if answered else ""

        self._waiting.call(f"{_ROOM}.{call}", what, seconds, told)


def _number(value: Fraction) -> float | int:
    return value.numerator if value.denominator == 1 else float(value)


def _stereo(data: bytes, channels: int, count: int) -> bytes:
    """So many samples of two channels; silence where there are none, or what is not a number."""
    # few pages need it, and all would wait for it before their browser starts
    import numpy as np

    values = np.frombuffer(data[: len(data) // (4 * channels) * 4 * channels], "<f4")
    samples = np.zeros((count, 2), "<f4")
    samples[: len(values) // channels] = values.reshape(-1, channels)
    return np.nan_to_num(samples, copy=False, nan=0.0, posinf=0.0, neginf=0.0).tobytes()


_ANY_INDEX: Final = ""
# Frames after which none is shown one too late any more: a new size waits for its picture.
_RESIZED: Final = 2
# Of the clock, at one instant, for graphs that are still being played.
_MOST_TURNS: Final = 5000
# Steps between the page's being ready and time 0, at least.
_SETTLING: Final = 2


class Stage:
    """A page in a browser of its own, its clock stopped.

    Frames are requested in rising order: `skip` what nobody wants to see, `frame` the rest. To be
    used in one thread at a time.

    Args:
        site: the page's files.
        view: size of the window, frame rate.
        outside: answers requests that leave the site.
        media: the page's own sound and pictures; without it they stay silent and black.
        limits: how far the page may go.
        begin_frames: False has even a browser that gives frames on request run with a clock of
            ours.
        sandbox: whether Chromium's own sandbox is tried; it needs a user other than root.
        watched: whether `notes.uses` tells what may come out otherwise in another run.

    Raises:
        EngineUnavailable: no Chromium; `advice` says how to get one.
        TooLarge: the view has more pixels than the limits allow.
        PageFailed: the page hangs, crashes, or is not there.
        BrowserGone: the browser ended by no fault of the page's.
    """

    def __init__(
        self,
        site: Site,
        view: PageView,
        *,
        outside: Outside = NOTHING,
        media: Player | None = None,
        limits: Limits = Limits(),  # noqa: B008 — frozen
        begin_frames: bool = True,
        sandbox: bool = True,
        watched: bool = False,
    ) -> None:
        limits.check(view)
        self.view = view
        self.notes = Notes()
        self._media, self._limits = media, limits
        self._seeks = self._closed = False
        self._drawn = False
        self._watched, self._beside = watched, 0
        index, self._data = site.read(_ANY_INDEX), site.read(DATA)
        if index is None:
            raise PageFailed("the site has no index.html at its root")
        if self._data is not None:
            check_data(index.data, self._data.data)
        self._shares_memory = shares_memory(index.data)
        self._running = Running(
            find_engine(), view, limits, self.notes, begin_frames=begin_frames, sandbox=sandbox,
            shares_memory=self._shares_memory,
        )  # fmt: skip
        try:
            self._pipe = self._running.pipe
            self._session = self._running.session
            self._door = RequestInterceptor(self._pipe, site, outside, self.notes, limits)
            self._door.media = media
            self._console = Console(self._pipe, self.notes)
            with understood():
                self._clock = self._prepare()
                self._waiting = Waiting(
                    self._pipe, self._session, self._clock, limits, self._running.check,
                    self._pending,
                )  # fmt: skip
                self._bridge = Bridge(self._waiting, view, limits, self.notes)
                self._canvas = CanvasReader(
                    self._clock, self._running, view, str(self._door.main_frame), self._is_alone,
                    partial(shows_canvas, view),
                )  # fmt: skip
                self._load()
                self.facts: PageFacts = self._ask()
        except BaseException as error:
            self.close()
            _tell_more(error, self.notes)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self.close()
        if error is not None:
            _tell_more(error, self.notes)

    def is_alive(self) -> bool:
        """Whether the page answers; what was kept may have been killed meanwhile.

        The page, since a browser may not have heard yet that the page's process is gone.
        """
        try:
            self._pipe.call("Runtime.evaluate", self._session, expression="0")
        except (BrowserGone, PageFailed, ProtocolError):
            return False
        return True

    @property
    def reads(self) -> dict[str, str | None]:
        """SHA-256 of each file of the site that the page read; None where there was none."""
        of_media = self._media.reads if self._media is not None else {}
        own = {DATA: None if self._data is None else self._data.sha256}
        return self._door.reads | of_media | own

    def skip(self, first: int, stop: int, progress: Callable[[int], None] = lambda _: None) -> None:
        """Let frames first … stop-1 pass without looking; `progress` gets each i.

        A page that says that it can be jumped into is not led through them: of those, only frame 0
        happens, with which its animations begin.
        """
        if self.facts.seekable:
            stop = min(stop, 1)
        for i in range(first, stop):
            with understood():
                self._clock.advance(i)
                if self._media is not None:
                    self._media.hear(kept=False)
                    self._media.before_frame(drawing=False)
                self._clock.pass_by()
            self._watch()
            progress(i)

    def hear_until(self, i: int, *, kept: bool) -> None:
        """Bring a page that plays graphs of its own (WebAudio) to frame i, not yet drawing it.

        So a slice has their sound from its first frame to its end, whoever continues from there.

        Args:
            kept: whether what was heard until then is kept, or forgotten.
        """
        if self._media is not None and self._media.listens and self.begun is None:
            with understood():
                self._clock.advance(i)
                self._settle_graphs(self._media)
                self._media.hear(kept=kept)

    def _settle_graphs(self, media: Player) -> None:
        """Let graphs tell that they stand, which their threads do in the machine's time.

        One that does not yet would keep what it plays until the next frame.
        """
        if media.stands():
            return
        self._clock.hold()
        for _ in range(_MOST_TURNS):
            self._clock.turn()
            if media.stands():
                break
            self._pipe.listen(0.001)
        self._clock.go_on()

    @property
    def begun(self) -> range | None:
        """The frames of the video that a page knows will be requested; None: it does not."""
        return self._bridge.frames

    def measure(self) -> PageFacts:
        """The page's description of itself, once it knows its media."""
        if not self.facts.is_asked:
            return self.facts
        with self._telling():
            width, height, duration_ms = self._bridge.measure()
        facts = self.facts
        return replace(
            facts,
            width=width or facts.width,
            height=height or facts.height,
            duration_ms=duration_ms or facts.duration_ms,
        )

    def begin(self, frames: range, heard: range) -> None:
        """Tell a page that renders on request which frames will be requested; once.

        Its window has a line more than the video then, and so have its pictures (`line.py`).

        Args:
            frames: of the video; the only ones, in this order.
            heard: those whose sound is wanted.

        Raises:
            PageFailed: it fails to; or a scale below 1, which leaves the line no pixel.
        """
        if self.view.scale < 1:
            raise PageFailed(
                f"a page that renders itself cannot be drawn at a scale of {self.view.scale:g}",
                advice="draw it at 1 or more, and make the video smaller",
            )
        with self._telling():
            self._set_window(self.view.height + LINE)
            for _ in range(_RESIZED):
                self._clock.capture(needed=True)
            self._bridge.initialize(frames, heard)

    def sound(self) -> bytes:
        """The sound of the frames that were requested of a page: as of `Bridge.sound`."""
        with self._telling():
            return self._bridge.sound()

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        """Let failures within carry what the page said until then."""
        try:
            with understood():
                yield
        except PageFailed as error:
            _tell_more(error, self.notes)
            raise

    def frame(self, i: int) -> bytes | None:
        """Frame i as PNG; None where it is the same picture as the last one given."""
        picture = self.picture(i, pixels=False)
        assert not isinstance(picture, CanvasPicture)
        return picture

    def picture(self, i: int, *, pixels: bool = True) -> bytes | CanvasPicture | None:
        """Frame i as PNG, or as pixels; None where it is the same as the last one given.

        Args:
            pixels: whether it may be the pixels of a canvas that is all of the page. The next
                picture may be the same then, and is not None for that.

        Raises:
            CanvasDiffers: such pixels were not what the page showed.
        """
        begun = self._bridge.frames
        if begun is not None:
            return self._rendered_frame(i, begun)
        with understood():
            self._reach(i, drawing=True)
            picture = self._canvas.capture(not self._drawn, pixels)
        self._watch()
        self._drawn = True
        return picture

    @property
    def canvas_frames(self) -> int:
        """Of how many frames the pixels of a canvas were given."""
        return self._canvas.frames

    def _is_alone(self) -> bool:
        """Whether nothing changes the page's pictures in a frame of its own."""
        console = self._console
        return not (self._clock.has_workers or console.given_canvases or console.has_transitions)

    def _rendered_frame(self, i: int, begun: range) -> bytes | None:
        with self._telling():
            self._clock.advance(i - begun.start)
            self._bridge.frame(i)
            if self._media is not None:
                self._media.hear(kept=True)
                self._media.before_frame()
            picture = self._clock.capture(needed=True)
        self._watch()
        return picture

    def pass_by(self, i: int) -> None:
        """Let frame i happen, to be heard: no picture is taken of it."""
        with understood():
            self._reach(i, drawing=False)
            self._clock.pass_by()
        self._watch()

    def _reach(self, i: int, *, drawing: bool) -> None:
        """Bring the page to frame i, which is heard until then and shown what it plays."""
        time_us = self._clock.advance(i)
        if self._media is not None:
            # before `seek`, whose changes are heard from this frame on
            self._media.hear(kept=True)
        if self._seeks:
            with self._telling():
                self._waiting.seek(time_us / 1000)
        if self._media is not None:
            self._media.before_frame(drawing=drawing)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of JavaScript in the page, as JSON gives it.

        Raises:
            PageFailed: it throws, or does not end.
        """
        try:
            answer = self._pipe.call(
                "Runtime.evaluate", self._session, expression=expression, returnByValue=True
            )
        except ProtocolError as error:
            raise PageFailed(f"the page could not be asked: {error}") from error
        return _value(answer)

    def note_looks(self) -> None:
        """Note what the page shows now: characters that no font has, chance that has no seed."""
        # a page that was replaced meanwhile says so with its next frame
        with contextlib.suppress(ProtocolError):
            self._note_chance()
            self._note_glyphs()

    def _note_chance(self) -> None:
        if CSS_CHANCE not in self.notes.refused and any(self._clock.evaluate(script(RANDOM))):
            self.notes.say("refused", CSS_CHANCE)

    def _note_glyphs(self) -> None:
        if not self._beside:
            answer = self._pipe.call(
                "Page.createIsolatedWorld", self._session, frameId=self._door.main_frame
            )
            self._beside = answer["executionContextId"]
        answer = self._pipe.call(
            "Runtime.evaluate",
            self._session,
            expression=script(GLYPHS),
            contextId=self._beside,
            returnByValue=True,
        )
        for one in answer["result"].get("value") or "":
            self.notes.say("glyphs", one)

    def relieve(self) -> None:
        """Have the browser give back what it does not need.

        It would do so by itself when it is idle, which it never is in virtual time.
        """
        with contextlib.suppress(ProtocolError):
            self._pipe.call("HeapProfiler.collectGarbage", self._session)
            self._pipe.call("Memory.simulatePressureNotification", self._session, level="critical")

    def _watch(self) -> None:
        """Look after the browser between two frames."""
        if self._running.check():
            self.relieve()
        for line in self._media.refused() if self._media is not None else ():
            self.notes.say("refused", line)

    def close(self) -> None:
        """End the browser and all of its processes."""
        if not self._closed:
            self._closed = True
            if self._media is not None:
                self._media.close()
            self._running.close()

    def _prepare(self) -> WithWorkers:
        """Everything that must hold before the page is requested."""
        pipe, session, view = self._pipe, self._session, self.view
        own: Clock = InjectedClock(pipe, session, view)
        if self._running.has_begin_frame:
            own = VirtualClock(pipe, session, view, lambda: ANIMATED in self.notes.keeps)
        loads = WithLoads(
            own, pipe, session, works=lambda: self._console.has_works,
            late=self._note_late, check=self._running.check,
        )  # fmt: skip
        self._pending = loads.pending
        late = self._note_late
        moved = WithTransitions(loads, pipe, lambda: self._console.has_transitions, late)
        isolated = (ISOLATED,) if self._shares_memory else ()
        clock = WithWorkers(moved, pipe, view, lambda: self._console.given_canvases, late, isolated)
        pipe.call("Page.enable", session)
        if self._media is not None:
            # The page's policy is for the page's scripts; ours come from us.
            pipe.call("Page.setBypassCSP", session, enabled=True)
            self._media.bind(self)
        if not self._running.has_begin_frame:
            self._set_window(view.height)

        def on_new_target(session: str, is_worker: bool) -> None:
            self._door.watch(session)
            if is_worker:
                clock.add(session)

        self._running.on_new_target(on_new_target)
        self._door.watch(session)
        self._door.main_frame = pipe.call("Page.getFrameTree", session)["frameTree"]["frame"]["id"]
        self._console.watch(session)
        quota = self._limits.storage_bytes
        pipe.call("Storage.overrideQuotaForOrigin", session, origin=ORIGIN, quotaSize=quota)
        pipe.call("Emulation.setTimezoneOverride", session, timezoneId="UTC")
        pipe.call("Emulation.setLocaleOverride", session, locale="en-US")
        if view.transparent:
            clear = {"r": 0, "g": 0, "b": 0, "a": 0}
            pipe.call("Emulation.setDefaultBackgroundColorOverride", session, color=clear)
        of_media = self._media.scripts() if self._media is not None else ()
        given = (data_script(self._data.data if self._data is not None else None),)
        uses = (script(USES),) if self._watched else ()
        ours = script(STEADY), *of_media, script(BRIDGE)
        for source in (*given, *isolated, sources(view), *clock.scripts(), *uses, *ours):
            pipe.call("Page.addScriptToEvaluateOnNewDocument", session, source=source)
        clock.prepare()
        return clock

    def _note_late(self, url: str) -> None:
        self.notes.say("late", url)

    def _set_window(self, height: int) -> None:
        """Give the page a window of a height."""
        self._pipe.call(
            "Emulation.setDeviceMetricsOverride",
            self._session,
            width=self.view.width,
            height=height,
            deviceScaleFactor=self.view.scale,
            mobile=False,
        )

    def _load(self) -> None:
        """Bring the page to time 0: loaded, ready, its fonts here."""
        pipe, session, limits = self._pipe, self._session, self._limits
        seen: set[str] = set()
        pipe.on("Page.frameNavigated", lambda params, _: _saw_frame(seen, params))
        pipe.on("Page.loadEventFired", lambda *_: seen.add("loaded"))
        watch = Stopwatch(pipe)

        def in_time(what: str) -> None:
            self._running.check()
            if watch.exceeds(limits.load_seconds):
                pending = waiting_for(self._pending())
                most = f"{limits.load_seconds:g} s"
                raise PageFailed(f"the page is not {what} after {most}{pending}", advice=MORE_TIME)

        number = pipe.send("Page.navigate", session, url=f"{ORIGIN}/")
        pipe.until(lambda: "there" in seen or pipe.answered(number))
        answer = pipe.answer(number)
        if "errorText" in answer:
            raise PageFailed(f"the page cannot be opened: {answer['errorText']}")
        pipe.until(lambda: "there" in seen)
        while "loaded" not in seen:
            self._clock.step(waiting=False)
            in_time("loaded")
        self._waiting.ready(in_time)
        while self._media is not None and not self._media.settled():
            self._clock.step(waiting=True)
            in_time("ready")
        # what was posted when the page became ready (messages, microtasks of them) is done before
        for _ in range(_SETTLING):
            self._clock.step(waiting=True)
        self._clock.zero()
        if self._media is not None:
            self._media.started()

    def _ask(self) -> PageFacts:
        facts = self.evaluate(script(FACTS))
        longest = facts["longest"] or 0
        if self._media is not None:
            longest = max(longest, self._media.longest_ms() or 0)
        duration = facts["duration"] or longest
        self._note_chance()
        self._seeks = bool(facts["seeks"])
        width, height = facts["size"] or (None, None)
        return PageFacts(
            width=width,
            height=height,
            duration_ms=max(1, round(duration)) if duration else None,
            seekable=bool(facts["seekable"]),
            browser_version=self._running.version,
            has_begin_frame=self._running.has_begin_frame,
            is_asked=self._bridge.is_asked(),
            failed=tuple(self.notes.incomplete[:1]),
        )


def _saw_frame(seen: set[str], params: dict[str, Any]) -> None:
    frame = params["frame"]
    if "parentId" in frame:
        return
    if frame["url"].startswith(f"{ORIGIN}/"):
        seen.add("there")
    elif "there" in seen:
        raise PageFailed(f"the page left for {frame['url'][:200]}")


def _value(answer: dict[str, Any]) -> Any:
    if "exceptionDetails" in answer:
        raise PageFailed(f"a script of the page failed: {text_of(answer['exceptionDetails'])}")
    return answer["result"].get("value")


def _tell_more(error: BaseException, notes: Notes) -> None:
    """Let a failure carry what the page said until then."""
    if isinstance(error, PageFailed):
        with contextlib.suppress(AttributeError):
            lines = notes.as_json()
            for kind in ("console", "refused", "blocked", "incomplete"):
                error.more.setdefault(kind, lines[kind])
