"""A whole render without any service: plan, slices in processes side by side, join."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from fragdex.errors import BrowserGone
from fragdex.record import record
from fragdex.rendering.browser.model import Limits, Notes, PageView
from fragdex.rendering.messages import SliceMade
from fragdex.rendering.plan import (
    OneBrowserNeeded,
    SlicePlan,
    difference_note,
    first_difference,
    plan,
    skipping_note,
)
from fragdex.rendering.pool import ChildPool, PageSource
from fragdex.rendering.site import NOTHING, Outside, Site
from fragdex.rendering.spec import RenderSpec, frames_of, key_interval, settled

_ATTEMPTS: Final = 3


@record(frozen=True, slots=True)
class Rendered:
    """What was made, and what happened on the page."""

    path: Path
    view: PageView
    frames: int
    seconds: float
    sound: bool
    slices: tuple[SliceMade, ...]
    notes: Notes
    loudness: dict[str, Any] | None = None


def render(
    site: Site,
    spec: RenderSpec,
    out: Path,
    *,
    jobs: int | None = None,
    slices: int | None = None,
    outside: Outside = NOTHING,
    limits: Limits = Limits(),  # noqa: B008 — frozen
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Rendered:
    """Render a page into a file, which appears whole or not at all.

    Args:
        site: the page's files.
        spec: size, rate, duration, or which still.
        out: the file; an existing one is replaced at the very end.
        jobs: processes side by side; at most as many as there are processors, and no more than
            there is work for (`SliceScheduler`).
        slices: parts to divide the frames in; as many as jobs, or as processors.
        outside: what the page may ask for beyond its site.
        limits: how far the page may go.
        progress: called from any thread with frames done and frames in all.

    Raises:
        PageFailed: the page hangs, crashes, or does not say how long it lasts.
        BrowserGone: the browser ended again and again.
        EngineUnavailable: no Chromium.
        TooLarge: more pixels than the limits allow.
    """
    page = PageSource("", site, outside, limits)
    processors = os.cpu_count() or 1
    with (
        tempfile.TemporaryDirectory(prefix=".fragdex-", dir=out.parent) as scratch,
        closing(ChildPool(most=jobs or processors)) as pool,
    ):
        work = _Work(page, spec, pool, Path(scratch), progress)
        parts = work.parts(jobs, slices)
        drawn = work.slices(parts, jobs)
        notes = Notes()
        if work.needed is None and (differing := first_difference(drawn)) is not None:
            work.needed = difference_note(differing)
        if work.needed is not None:
            notes.say("browser", work.needed)
            drawn = work.alone(parts, drawn)
        rendered = work.joined(parts, drawn, notes) if spec.still is None else _still(parts, drawn)
        os.replace(rendered.path, out)
    return replace(rendered, path=out)


class _Work:
    """One render: its processes, and how far it is."""

    def __init__(
        self, page: PageSource, spec: RenderSpec, pool: ChildPool, folder: Path,
        progress: Callable[[int, int], None],
    ) -> None:  # fmt: skip
        self._page, self._spec, self._pool = page, spec, pool
        self._folder, self._progress = folder, progress
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._done: dict[int, int] = {}
        self.needed: str | None = None
        """Why one browser has to draw all of it; None: several may."""

    def parts(self, jobs: int | None, slices: int | None) -> SlicePlan:
        one = settled(self._spec, self._page.limits, lambda view: self._pool.look(self._page, view))
        if self._spec.still is not None:
            return SlicePlan(one.view, (0, 1))
        frames = frames_of(self._spec, one.duration_ms, one.because)
        if self._spec.film.is_sound:
            # to pass by is what a slice after it would have to do as well
            return SlicePlan(one.view, (frames.start, frames.stop))
        return divided(one.view, frames, jobs, slices)

    def slices(self, parts: SlicePlan, jobs: int | None) -> list[SliceMade]:
        """The slices in order; not all of them where one browser is needed."""
        side_by_side = min(jobs or os.cpu_count() or 1, len(parts.slices))
        self._progress(0, parts.frames)
        scheduler = SliceScheduler(parts.slices, at_once=jobs is not None)
        with ThreadPoolExecutor(side_by_side, "render") as threads:
            tasks = [
                threads.submit(self._slice, parts, number, scheduler)
                for number in range(len(parts.slices))
            ]
            try:
                wait(tasks, return_when=FIRST_EXCEPTION)
                failed = [task.exception() for task in tasks if task.done() and task.exception()]
                if failed:
                    raise failed[0] or AssertionError
            finally:
                # whoever interrupts waits for no slice
                self._stop.set()
                scheduler.end()
                threads.shutdown(cancel_futures=True)
        return [drawn for task in tasks if (drawn := task.result()) is not None]

    def alone(self, parts: SlicePlan, drawn: list[SliceMade]) -> list[SliceMade]:
        """The slices of one browser: that of the first slice continues, or another begins."""
        self._stop.clear()
        if any(one.is_asked for one in drawn):
            # each slice knows only itself: all of it has to be one
            parts = replace(parts, borders=(parts.borders[0], parts.borders[-1]))
            drawn = []
            self._pool.drop(self._page.key)
        for _ in range(_ATTEMPTS - 1):
            with suppress(BrowserGone):
                return self._in_order(parts, drawn)
        return self._in_order(parts, drawn)

    def joined(self, parts: SlicePlan, drawn: list[SliceMade], notes: Notes) -> Rendered:
        with self._pool.child(self._page, parts.view) as child:
            # nobody needs the others any more, and nobody has to wait for their end
            ending = threading.Thread(target=self._pool.close, name="end")
            ending.start()
            joined = child.join(drawn, parts.view, self._folder / "whole", film=self._spec.film)
        ending.join()
        for one in drawn:
            notes.add(one.notes)
        for line in joined.failed:
            notes.say("refused", line)
        return Rendered(
            Path(joined.path), parts.view, joined.frames, joined.seconds, joined.sound,
            tuple(drawn), notes, joined.loudness,
        )  # fmt: skip

    def _slice(self, parts: SlicePlan, number: int, scheduler: SliceScheduler) -> SliceMade | None:
        frames = parts.slices[number]
        scheduler.begin(number)
        if self.needed is not None:
            return None

        def progress(done: int) -> None:
            scheduler.report(frames, done)
            self._count(frames, done, parts.frames)

        def draw() -> SliceMade:
            self._check()
            drawn = self._pool.draw(
                self._page, self._spec, parts.view, frames, self._folder,
                progress=progress, check=self._check,
            )  # fmt: skip
            scheduler.free()
            return drawn

        try:
            for _ in range(_ATTEMPTS - 1):
                # no fault of the page's: another browser may do it
                with suppress(BrowserGone):
                    return draw()
            return draw()
        except OneBrowserNeeded as error:
            # the one that draws from the beginning continues, and nobody else begins
            self.needed = skipping_note(error)
            scheduler.end()
            return None

    def _in_order(self, parts: SlicePlan, slices_drawn: list[SliceMade]) -> list[SliceMade]:
        begin = self._pool.alone(self._page, parts.view, parts.borders)
        before = [one for one in slices_drawn if one.first < begin]
        self._done = {one.first: one.frames for one in before}
        drawn = [
            self._pool.draw(
                self._page, self._spec, parts.view, frames, self._folder,
                progress=partial(self._count, frames, whole=parts.frames), check=self._check,
                all_drawn=True,
            )
            for frames in parts.slices
            if frames.start >= begin
        ]  # fmt: skip
        return before + drawn

    def _check(self) -> None:
        if self._stop.is_set():
            raise _Stopped

    def _count(self, frames: range, done: int, whole: int) -> None:
        with self._lock:
            self._done[frames.start] = max(done, self._done.get(frames.start, 0))
            done = sum(self._done.values())
        self._progress(done, whole)


def _still(parts: SlicePlan, slices: list[SliceMade]) -> Rendered:
    (one,) = slices
    return Rendered(Path(one.path), parts.view, 1, 0.0, False, (one,), one.notes)


class _Stopped(Exception):
    """Another slice failed, or nobody wants this any more."""


def divided(view: PageView, frames: range, jobs: int | None, slices: int | None) -> SlicePlan:
    """The slices of a video, as `render` makes them."""
    # where nobody says how many processes there are, one begins (`SliceScheduler`)
    ahead = slices is None and jobs is None
    if slices is None:
        # A slice that is short costs more in starting and replaying than it saves.
        worth = max(1, len(frames) // key_interval(view.fps))
        slices = jobs or min(os.cpu_count() or 1, worth)
    # as if all were made at once, so that the same slices make the same video on any machine
    return plan(view, frames, slices=slices, at_once=True, ahead=ahead)


WORTH_SECONDS: Final = 1.5
"""Seconds: no other worker is started if a running one reaches the slice within them …"""

_STARTS: Final = 2
"""… or as long as so many starts, on a machine that has other things to do."""

_LEAST_SECONDS: Final = 0.05


class SliceScheduler:
    """Says when a slice may begin: in a process that has become free, or in one of its own.

    Which frames each slice has is settled before, so the video is the same however many processes
    make it. Pages whose pictures stay go by at hundreds of frames a second, and are done before
    another browser has started.

    Args:
        slices: the frames of each, in order.
        at_once: whether all may begin at once, whatever there is to do.
        clock: seconds.
    """

    def __init__(
        self,
        slices: Sequence[range],
        *,
        at_once: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._slices, self._clock = slices, clock
        self._changed = threading.Condition()
        self._seen: dict[int, tuple[int, float]] = {}
        self._began, self._worth = clock(), 0.0
        # What begins after this frame is not reached soon.
        self._soon = -1.0 if at_once else float("inf")
        self._waiting = list(range(1, len(slices)))
        self._free = 0
        self._over = False

    def report(self, frames: range, done: int) -> None:
        """A process has done so many frames of a slice; those that it only replays do not count."""
        now = self._clock()
        with self._changed:
            before, then = self._seen.get(frames.start, (0, now))
            # the first one waits for the browser, the page and what is replayed
            if before and not (done > before and now - then >= _LEAST_SECONDS):
                return
            if done:
                self._seen[frames.start] = (done, now)
                self._worth = self._worth or max(WORTH_SECONDS, _STARTS * (now - self._began))
            if before:
                rate = (done - before) / (now - then)
                self._soon = min(self._soon, frames.start + done + rate * self._worth)
                self._changed.notify_all()

    def free(self) -> None:
        """A process has done its slice."""
        with self._changed:
            self._free += 1
            self._changed.notify_all()

    def end(self) -> None:
        """Nobody has to wait any more."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def may_begin(self, number: int) -> bool:
        """Whether a slice may begin now: the first, the next for whoever is free, one far off."""
        if number not in self._waiting or self._over:
            return True
        is_next = self._free > 0 and number == self._waiting[0]
        return is_next or self._slices[number].start > self._soon

    def begin(self, number: int) -> None:
        """Wait until a slice may begin."""
        with self._changed:
            self._changed.wait_for(lambda: self.may_begin(number))
            if number in self._waiting:
                self._waiting.remove(number)
                self._free = max(0, self._free - 1)
                self._changed.notify_all()
