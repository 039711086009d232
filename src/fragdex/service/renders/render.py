"""A whole render without any service: plan, slices in processes side by side, join."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Final

from fragdex.service.errors import BrowserGone, PageFailed
from fragdex.service.renders.browser.model import Limits, Notes
from fragdex.service.renders.browser.timing import DEFAULT_HEIGHT, DEFAULT_WIDTH, View
from fragdex.service.renders.made import SliceMade
from fragdex.service.renders.outside import NOTHING, Outside
from fragdex.service.renders.plan import Plan, key_interval, plan
from fragdex.service.renders.process import Child
from fragdex.service.renders.site import Site
from fragdex.service.renders.slice_scheduler import SliceScheduler
from fragdex.service.renders.stills import Still

__all__ = ["Rendered", "Wanted", "render"]

_ATTEMPTS: Final = 3


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be made; what is None is asked of the page.

    Attributes:
        width, height: pixels; the size of the page's root element, else 1280 × 720.
        fps: frames a second.
        duration_ms: of the page's longest finite animation or medium.
        still: one picture of `time_ms` instead of a film.
    """

    width: int | None = None
    height: int | None = None
    fps: Fraction = Fraction(30)
    duration_ms: int | None = None
    still: Still | None = None
    time_ms: int = 0


@dataclass(frozen=True, slots=True)
class Rendered:
    """What was made, and what happened on the page."""

    path: Path
    view: View
    frames: int
    seconds: float
    sound: bool
    slices: tuple[SliceMade, ...]
    notes: Notes


def render(
    site: Site,
    wanted: Wanted,
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
        wanted: size, rate, duration, or which still.
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
    with tempfile.TemporaryDirectory(prefix=".fragdex-", dir=out.parent) as scratch:
        work = _Work(site, outside, limits, Path(scratch), progress)
        try:
            rendered = work.still(wanted) if wanted.still else work.film(wanted, jobs, slices)
        finally:
            work.end()
        os.replace(rendered.path, out)
    return replace(rendered, path=out)


class _Work:
    """One render: its processes, and how far it is."""

    def __init__(
        self, site: Site, outside: Outside, limits: Limits, folder: Path,
        progress: Callable[[int, int], None],
    ) -> None:  # fmt: skip
        self._site, self._outside, self._limits = site, outside, limits
        self._folder, self._progress = folder, progress
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._idle: list[Child] = []
        self._ending: list[threading.Thread] = []
        self._done: dict[int, int] = {}

    def film(self, wanted: Wanted, jobs: int | None, slices: int | None) -> Rendered:
        view, duration_ms = self._asked(wanted)
        if duration_ms is None:
            raise PageFailed(
                "the page does not say how long it lasts: nothing in it is animated for a finite"
                " time",
                advice="set a duration (--duration), or window.fragdex.duration in the page",
            )
        self._limits.check(view)
        parts = _divided(view, duration_ms, jobs, slices)
        side_by_side = min(jobs or os.cpu_count() or 1, len(parts.slices))
        self._progress(0, parts.frames)
        scheduler = SliceScheduler(parts.slices, at_once=jobs is not None)
        with ThreadPoolExecutor(side_by_side, "render") as pool:
            tasks = [
                pool.submit(self._slice, parts, number, scheduler)
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
                pool.shutdown(cancel_futures=True)
        made = [task.result() for task in tasks]
        self._stop.clear()
        child = self._child(view, 0)
        self._let_go()
        joined = child.join(made, view, self._folder / "whole.mp4", check=self._check)
        self._idle.append(child)
        notes = _together(one.notes for one in made)
        for line in joined.failed:
            notes.say("refused", line)
        return Rendered(
            Path(joined.path), view, joined.frames, joined.seconds, joined.sound, tuple(made), notes
        )

    def still(self, wanted: Wanted) -> Rendered:
        still = wanted.still
        assert still is not None
        view, _ = self._asked(wanted)
        clear = still.transparency and still.container != "jpeg"
        view = View(view.width, view.height, view.fps, transparent=clear)
        self._limits.check(view)
        self._progress(0, 1)
        child, made = self._tried(
            view,
            0,
            lambda child: child.still(view, wanted.time_ms, still, self._folder, check=self._check),
        )
        self._idle.append(child)
        self._progress(1, 1)
        return Rendered(Path(made.path), view, 1, 0.0, False, (made,), made.notes)

    def end(self) -> None:
        self._stop.set()
        self._let_go()
        for thread in self._ending:
            thread.join()

    def _let_go(self) -> None:
        """End the processes that nobody needs any more, all of them at once."""
        for child in self._idle:
            self._ending.append(threading.Thread(target=child.end, name="end"))
            self._ending[-1].start()
        self._idle = []

    def _asked(self, wanted: Wanted) -> tuple[View, int | None]:
        """Size and duration; the page is looked at only where something is not told."""
        width, height = wanted.width or DEFAULT_WIDTH, wanted.height or DEFAULT_HEIGHT
        view = View(width, height, wanted.fps)
        self._limits.check(view)
        told = wanted.still is not None or wanted.duration_ms is not None
        if wanted.width and wanted.height and told:
            return view, wanted.duration_ms
        child = self._child(view, 0)
        facts = child.look(view, check=self._check)
        self._idle.append(child)
        width = wanted.width or facts.width or DEFAULT_WIDTH
        height = wanted.height or facts.height or DEFAULT_HEIGHT
        duration_ms = facts.duration_ms if wanted.duration_ms is None else wanted.duration_ms
        return View(width, height, wanted.fps), duration_ms

    def _slice(self, parts: Plan, number: int, scheduler: SliceScheduler) -> SliceMade:
        frames = parts.slices[number]
        scheduler.begin(number)

        def progress(done: int) -> None:
            scheduler.told(frames, done)
            self._count(frames, done, parts.frames)

        child, made = self._tried(
            parts.view,
            frames.start,
            lambda child: child.slice(
                parts.view, frames.start, frames.stop, self._folder,
                progress=progress, check=self._check,
            ),
        )  # fmt: skip
        with self._lock:
            self._idle.append(child)
        scheduler.free()
        return made

    def _tried(
        self, view: View, first: int, job: Callable[[Child], SliceMade]
    ) -> tuple[Child, SliceMade]:
        """Do a job, with another browser where one ends by no fault of the page's."""
        for attempt in count(1):
            self._check()
            child = self._child(view, first)
            try:
                return child, job(child)
            except BrowserGone:
                if attempt == _ATTEMPTS:
                    raise
        raise AssertionError

    def _child(self, view: View, first: int) -> Child:
        """A process for a job: one that has come near to its first frame, else a new one."""
        with self._lock:
            fit = [
                child for child in self._idle
                if child.at is not None and child.at[0] == view and child.at[1] <= first
            ]  # fmt: skip
            best = max(fit, key=lambda child: child.at[1] if child.at else 0, default=None)
            if best is None and self._idle:
                best = self._idle[0]
            if best is not None:
                self._idle.remove(best)
                return best
        return Child(self._site, outside=self._outside, limits=self._limits)

    def _check(self) -> None:
        if self._stop.is_set():
            raise _Stopped

    def _count(self, frames: range, done: int, whole: int) -> None:
        with self._lock:
            self._done[frames.start] = max(done, self._done.get(frames.start, 0))
            done = sum(self._done.values())
        self._progress(done, whole)


class _Stopped(Exception):
    """Another slice failed, or nobody wants this any more."""


def _divided(view: View, duration_ms: int, jobs: int | None, slices: int | None) -> Plan:
    if slices is None:
        whole = plan(view, duration_ms)
        # A slice that is short costs more in starting and replaying than it saves.
        worth = max(1, whole.frames // key_interval(view.fps))
        slices = jobs or min(os.cpu_count() or 1, worth)
    # as if all were made at once, so that the same slices make the same film whoever makes them
    return plan(view, duration_ms, slices=slices, at_once=True)


def _together(several: Iterable[Notes]) -> Notes:
    whole = Notes()
    for notes in several:
        for kind in ("console", "refused", "browser"):
            for line in getattr(notes, kind):
                whole.say(kind, line)
        for one in notes.blocked:
            whole.block(one.url, one.reason)
    return whole
