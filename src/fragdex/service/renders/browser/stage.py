"""One page on one Chromium: loaded, stopped at time 0, and looked at frame by frame."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from fragdex.service.errors import PageFailed
from fragdex.service.renders.browser import page_data
from fragdex.service.renders.browser.clocks import Clock
from fragdex.service.renders.browser.console import Console, text_of
from fragdex.service.renders.browser.finding import find_engine
from fragdex.service.renders.browser.injected import InjectedClock
from fragdex.service.renders.browser.model import Limits, Notes, PageFacts
from fragdex.service.renders.browser.pipe import ProtocolError
from fragdex.service.renders.browser.requests import RequestInterceptor
from fragdex.service.renders.browser.running import Running, understood
from fragdex.service.renders.browser.scripts import FACTS, STEADY, script
from fragdex.service.renders.browser.timing import View
from fragdex.service.renders.browser.virtual import VirtualClock
from fragdex.service.renders.browser.waiting import Waiting
from fragdex.service.renders.outside import NOTHING, Outside
from fragdex.service.renders.site import DATA, ORIGIN, Site

if TYPE_CHECKING:
    from fragdex.service.renders.page_media.player import Player

__all__ = ["Stage"]

_ANY_INDEX: Final = ""
# Steps within which a page without anything to wait for is ready.
_AT_ONCE: Final = 5


class Stage:
    """A page in a browser of its own, its clock stopped.

    Frames are asked for in rising order: `skip` what nobody wants to see, `frame` the rest. To be
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

    Raises:
        EngineUnavailable: no Chromium; `advice` says how to get one.
        TooLarge: the view has more pixels than the limits allow.
        PageFailed: the page hangs, crashes, or is not there.
        BrowserGone: the browser ended by no fault of the page's.
    """

    def __init__(
        self,
        site: Site,
        view: View,
        *,
        outside: Outside = NOTHING,
        media: Player | None = None,
        limits: Limits = Limits(),  # noqa: B008 — frozen
        begin_frames: bool = True,
        sandbox: bool = True,
    ) -> None:
        limits.check(view)
        self.view = view
        self.notes = Notes()
        self._media, self._limits = media, limits
        self._seeks = self._closed = False
        self._drawn = False
        index, self._data = site.read(_ANY_INDEX), site.read(DATA)
        if index is None:
            raise PageFailed("the site has no index.html at its root")
        if self._data is not None:
            page_data.check(index.data, self._data.data)
        self._running = Running(
            find_engine(), view, limits, self.notes, begin_frames=begin_frames, sandbox=sandbox
        )
        try:
            self._pipe = self._running.pipe
            self._session = self._running.session
            self._door = RequestInterceptor(self._pipe, site, outside, self.notes, limits)
            self._door.media = media
            self._console = Console(self._pipe, self.notes)
            with understood():
                self._clock: Clock = self._prepare()
                self._waiting = Waiting(
                    self._pipe, self._session, self._clock, limits, self._running.check
                )
                self._load()
                self.facts: PageFacts = self._ask()
        except BaseException as error:
            self.close()
            _tell_more(error, self.notes)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
        if error is not None:
            _tell_more(error, self.notes)

    @property
    def reads(self) -> dict[str, str | None]:
        """SHA-256 of each file of the site that the page read; None where there was none."""
        of_media = self._media.reads if self._media is not None else {}
        own = {DATA: None if self._data is None else self._data.sha256}
        return self._door.reads | of_media | own

    def skip(self, first: int, stop: int, progress: Callable[[int], None] = lambda _: None) -> None:
        """Let frames first … stop-1 pass without looking; `progress` is told each i.

        A page that says that it can be jumped into is not led through them: of those, only frame 0
        happens, with which its animations begin.
        """
        if self.facts.seekable:
            stop = min(stop, 1)
        for i in range(first, stop):
            with understood():
                self._clock.advance(i)
                if self._media is not None:
                    self._media.at_skip()
                self._clock.pass_by()
            self._watch()
            progress(i)

    def frame(self, i: int) -> bytes | None:
        """Frame i as PNG; None where it is the same picture as the last one given."""
        with understood():
            time_us = self._clock.advance(i)
            if self._seeks:
                try:
                    self._waiting.seek(time_us / 1000)
                except PageFailed as error:
                    _tell_more(error, self.notes)
                    raise
            if self._media is not None:
                self._media.before_frame()
            picture = self._clock.capture(needed=not self._drawn)
        self._watch()
        self._drawn = True
        return picture

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of JavaScript in the page, as JSON gives it.

        Raises:
            PageFailed: it throws, or does not end.
        """
        try:
            told = self._pipe.call(
                "Runtime.evaluate", self._session, expression=expression, returnByValue=True
            )
        except ProtocolError as error:
            raise PageFailed(f"the page could not be asked: {error}") from error
        return _value(told)

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

    def _prepare(self) -> Clock:
        """Everything that must be so before the page is asked for."""
        pipe, session, view = self._pipe, self._session, self.view
        kind = VirtualClock if self._running.has_begin_frame else InjectedClock
        clock: Clock = kind(pipe, session, view)
        pipe.call("Page.enable", session)
        if self._media is not None:
            # The page's policy is for the page's scripts; ours come from us.
            pipe.call("Page.setBypassCSP", session, enabled=True)
            self._media.bind(self)
        if not self._running.has_begin_frame:
            pipe.call(
                "Emulation.setDeviceMetricsOverride",
                session,
                width=view.width,
                height=view.height,
                deviceScaleFactor=1,
                mobile=False,
            )
        self._running.on_new_target(self._door.watch)
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
        given = () if self._data is None else (page_data.giving(self._data.data),)
        for source in (*given, *clock.scripts(), script(STEADY), *of_media):
            pipe.call("Page.addScriptToEvaluateOnNewDocument", session, source=source)
        clock.prepare()
        return clock

    def _load(self) -> None:
        """Bring the page to time 0: loaded, ready, its fonts here."""
        pipe, session, limits = self._pipe, self._session, self._limits
        seen: set[str] = set()
        pipe.on("Page.frameNavigated", lambda params, _: _saw_frame(seen, params))
        pipe.on("Page.loadEventFired", lambda *_: seen.add("loaded"))
        deadline = time.monotonic() + limits.load_seconds

        def in_time(what: str) -> None:
            self._running.check()
            if time.monotonic() - pipe.excused > deadline:
                raise PageFailed(f"the page is not {what} after {limits.load_seconds:g} s")

        number = pipe.send("Page.navigate", session, url=f"{ORIGIN}/")
        pipe.until(lambda: "there" in seen or pipe.answered(number))
        answer = pipe.answer(number)
        if "errorText" in answer:
            raise PageFailed(f"the page cannot be opened: {answer['errorText']}")
        pipe.until(lambda: "there" in seen)
        while "loaded" not in seen:
            self._clock.step(waiting=False)
            in_time("loaded")
        steps = self._waiting.ready(in_time)
        while self._media is not None and not self._media.settled():
            steps += 1
            self._clock.step(waiting=True)
            in_time("ready")
        while not self._clock.zero(at_once=steps <= _AT_ONCE):
            self._clock.step(waiting=False)
        if self._media is not None:
            self._media.started()

    def _ask(self) -> PageFacts:
        told = self.evaluate(script(FACTS))
        longest = told["longest"] or 0
        if self._media is not None:
            longest = max(longest, self._media.longest_ms() or 0)
        duration = told["duration"] or longest
        self._seeks = bool(told["seeks"])
        width, height = told["size"] or (None, None)
        return PageFacts(
            width=width,
            height=height,
            duration_ms=max(1, round(duration)) if duration else None,
            seekable=bool(told["seekable"]),
            browser_version=self._running.version,
            has_begin_frame=self._running.has_begin_frame,
        )


def _saw_frame(seen: set[str], params: dict[str, Any]) -> None:
    frame = params["frame"]
    if "parentId" in frame:
        return
    if frame["url"].startswith(f"{ORIGIN}/"):
        seen.add("there")
    elif "there" in seen:
        raise PageFailed(f"the page left for {frame['url'][:200]}")


def _value(told: dict[str, Any]) -> Any:
    if "exceptionDetails" in told:
        raise PageFailed(f"a script of the page failed: {text_of(told['exceptionDetails'])}")
    return told["result"].get("value")


def _tell_more(error: BaseException, notes: Notes) -> None:
    """Let a failure carry what the page said until then."""
    if isinstance(error, PageFailed):
        with contextlib.suppress(AttributeError):
            told = notes.as_json()
            for kind in ("console", "refused", "blocked"):
                error.more.setdefault(kind, told[kind])
