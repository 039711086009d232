"""Starts rendering processes, gives them jobs, answers what they ask, and ends them.

A process renders one site. It may do several jobs, one after the other: where the next slice of
the same render begins at or behind the frame that its browser has reached, it goes on from there.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from fragdex.service.errors import BrowserGone, PageFailed, StoreFull
from fragdex.service.processes import CRASHES, Process
from fragdex.service.renders import speaking
from fragdex.service.renders.browser.model import Limits, PageFacts
from fragdex.service.renders.browser.timing import View
from fragdex.service.renders.made import Joined, SliceMade
from fragdex.service.renders.outside import NOTHING, Answer, Blocked, Outside
from fragdex.service.renders.site import Site
from fragdex.service.renders.stills import Still

__all__ = ["Child", "Warm", "look", "run_join", "run_slice", "run_still"]

STALL_SECONDS: Final = 180.0
"""Silence after which a process is taken for hung; the browser's own limits are far shorter."""

_POLL_SECONDS: Final = 0.25
# Where a browser is found; the rest of the environment is not for a process that shows pages.
_PASSED_ON: Final = ("FRAGDEX_CHROMIUM", "PLAYWRIGHT_BROWSERS_PATH", "HOME")

Check = Callable[[], None]
Progress = Callable[[int], None]


def _nothing(*_: Any) -> None:
    pass


class Child:
    """A process that renders one site.

    Args:
        site: the page's files; a `Folder` has to stay where it is.
        outside: answers what the page asks for beyond its site, in this process.
        limits: how far the page may go.
    """

    def __init__(
        self,
        site: Site,
        *,
        outside: Outside = NOTHING,
        limits: Limits = Limits(),  # noqa: B008 — frozen
        stall_seconds: float = STALL_SECONDS,
    ) -> None:
        self._stall = stall_seconds
        self.outside = outside
        # its own, so that what a killed browser leaves behind goes with it
        self._scratch = tempfile.TemporaryDirectory(
            prefix="fragdex-render-", ignore_cleanup_errors=True
        )
        kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        self._process = Process(
            "fragdex.service.renders.child", environment=kept | {"TMPDIR": self._scratch.name}
        )
        self.at: tuple[View, int] | None = None
        """The view of its browser, and the next frame that it can show."""
        # Its answer is waited for with that of the first job.
        self._process.say(do="begin", site=speaking.site_as_json(site), limits=asdict(limits))
        self._unanswered = 1

    @property
    def pid(self) -> int:
        """Of the process, and of the session that all of its processes belong to."""
        return self._process.pid

    def look(self, view: View, *, check: Check = _nothing) -> PageFacts:
        """What the page tells of itself, seen through a view."""
        told = self._do(check, _nothing, do="look", view=speaking.view_as_json(view))
        self.at = (view, 0)
        return PageFacts(**told)

    def slice(
        self,
        view: View,
        first: int,
        stop: int,
        folder: Path,
        *,
        progress: Progress = _nothing,
        check: Check = _nothing,
    ) -> SliceMade:
        """Render frames first … stop-1 into a file of a folder."""
        path = folder / f"slice-{first:08}-{stop:08}.mp4"
        seen = speaking.view_as_json(view)
        told = self._do(
            check, progress, do="slice", view=seen, first=first, stop=stop, path=str(path)
        )
        progress(stop - first)
        self.at = (view, stop)
        return SliceMade.of_json(told)

    def still(
        self, view: View, time_ms: int, still: Still, folder: Path, *, check: Check = _nothing
    ) -> SliceMade:
        """Render the picture of one moment into a file of a folder."""
        path = folder / f"still.{still.container}"
        told = self._do(
            check, _nothing, do="still", view=speaking.view_as_json(view), time_ms=time_ms,
            still=asdict(still), path=str(path),
        )  # fmt: skip
        made = SliceMade.of_json(told)
        self.at = (view, made.first + 1)
        return made

    def join(
        self,
        slices: Sequence[SliceMade],
        view: View,
        out: Path,
        *,
        progress: Progress = _nothing,
        check: Check = _nothing,
    ) -> Joined:
        """Write slices one behind the other, with their sound."""
        told = self._do(
            check, progress, do="join", slices=[made.as_json() for made in slices],
            view=speaking.view_as_json(view), out=str(out),
        )  # fmt: skip
        return Joined(**told)

    def end(self) -> None:
        """End the process, its browser, and what they left behind."""
        self._process.end()
        self._scratch.cleanup()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def _do(self, check: Check, progress: Progress, **job: Any) -> dict[str, Any]:
        """Give a job and wait for what comes of it; the process ends with any error."""
        self._process.say(**job)
        self._unanswered += 1
        answer: dict[str, Any] = {}
        try:
            while self._unanswered:
                answer = self._hear(check, progress)
                self._unanswered -= 1
        except BaseException:
            self.end()
            raise
        return answer

    def _hear(self, check: Check, progress: Progress) -> dict[str, Any]:
        heard = time.monotonic()
        while True:
            check()
            try:
                said = self._process.hear(_POLL_SECONDS)
            except EOFError:
                raise self._failure() from None
            if said is None:
                if time.monotonic() - heard > self._stall:
                    raise BrowserGone("the rendering process hung")
                continue
            heard = time.monotonic()
            if "progress" in said:
                progress(said["progress"])
            elif "ask" in said:
                # An answer takes as long as the network does; whoever cancels does not wait.
                threading.Thread(target=self._answer, args=(said,), daemon=True).start()
            elif "failed" in said:
                raise speaking.error_of_json(said["failed"])
            else:
                told: dict[str, Any] = said["done"]
                return told

    def _answer(self, question: dict[str, Any]) -> None:
        answer: Answer | Blocked
        try:
            answer = self.outside.fetch(question["url"], question["headers"])
        except Blocked as error:
            answer = error
        except Exception as error:  # noqa: BLE001 — a page waits for an answer, whatever happened
            answer = Blocked(f"it could not be read: {type(error).__name__}")
        self._process.say(answer=question["ask"], **speaking.answer_as_json(answer))

    def _failure(self) -> Exception:
        ending, words = self._process.ending, self._process.words
        if ending in CRASHES:
            return PageFailed("the media libraries broke on what the page plays", found=ending)
        if isinstance(ending, str):
            return BrowserGone(f"the rendering process was ended by {ending}")
        if "No space left on device" in words:
            return StoreFull("no room for the frames of the render", retry_after=60)
        return BrowserGone(f"the rendering process ended with {ending}: {words}")


class Warm:
    """Rendering processes that stay ready for the next slice of their render.

    Args:
        most: so many are kept.
        idle_seconds: and so long.
    """

    def __init__(self, most: int = 2, idle_seconds: float = 15.0) -> None:
        self._most, self._idle = most, idle_seconds
        self._lock = threading.Lock()
        self._kept: list[tuple[str, Child, float]] = []
        self._timer: threading.Timer | None = None

    def take(self, key: str, view: View, first: int) -> Child | None:
        """A process of a render that stands at a frame or before it, the nearest; no longer kept.

        Args:
            key: names the render, and whose it is.
        """
        with self._lock:
            fit = [
                row
                for row in self._kept
                if row[0] == key and row[1].at and row[1].at[0] == view and row[1].at[1] <= first
            ]
            if not fit:
                return None
            best = max(fit, key=lambda row: row[1].at[1] if row[1].at else 0)
            self._kept.remove(best)
            return best[1]

    def keep(self, key: str, child: Child) -> None:
        """Keep a process that has done its job; the one that waits longest goes for it."""
        with self._lock:
            self._kept.append((key, child, time.monotonic()))
            gone = [row[1] for row in self._kept[: -self._most]]
            del self._kept[: -self._most]
            self._wake()
        for one in gone:
            one.end()

    def drop(self, key: str) -> None:
        """End the processes of a render that is over."""
        self._end(lambda row: row[0] == key)

    def close(self) -> None:
        """End all of them."""
        self._end(lambda _: True)

    def _wake(self) -> None:
        if self._timer is None and self._kept:
            self._timer = threading.Timer(self._idle / 2, self._sweep)
            self._timer.daemon = True
            self._timer.start()

    def _sweep(self) -> None:
        with self._lock:
            self._timer = None
        self._end(lambda row: time.monotonic() - row[2] > self._idle)
        with self._lock:
            self._wake()

    def _end(self, over: Callable[[tuple[str, Child, float]], bool]) -> None:
        with self._lock:
            gone = [row for row in self._kept if over(row)]
            self._kept = [row for row in self._kept if row not in gone]
        for row in gone:
            row[1].end()


@contextlib.contextmanager
def _child(
    site: Site, view: View, first: int, outside: Outside, limits: Limits,
    warm: Warm | None, key: str,
) -> Iterator[Child]:  # fmt: skip
    child = warm.take(key, view, first) if warm is not None else None
    if child is None:
        child = Child(site, outside=outside, limits=limits)
    else:
        child.outside = outside
    try:
        yield child
    except BaseException:
        child.end()
        raise
    if warm is not None:
        warm.keep(key, child)
    else:
        child.end()


def look(
    site: Site,
    view: View,
    *,
    outside: Outside = NOTHING,
    limits: Limits = Limits(),  # noqa: B008 — frozen
    check: Check = _nothing,
    warm: Warm | None = None,
    key: str = "",
) -> PageFacts:
    """What a page tells of itself, seen through a view.

    Raises:
        PageFailed: the page hangs, crashes, or is not there.
        BrowserGone: the process ended by no fault of the page's.
        EngineUnavailable: no Chromium.
        TooLarge: the view has more pixels than the limits allow.
    """
    with _child(site, view, 0, outside, limits, warm, key) as child:
        return child.look(view, check=check)


def run_slice(
    site: Site,
    view: View,
    first: int,
    stop: int,
    folder: Path,
    *,
    outside: Outside = NOTHING,
    limits: Limits = Limits(),  # noqa: B008 — frozen
    progress: Progress = _nothing,
    check: Check = _nothing,
    warm: Warm | None = None,
    key: str = "",
) -> SliceMade:
    """Render frames first … stop-1 into a file of a folder, in a process of their own.

    Args:
        progress: called in this thread with how many frames are done.
        check: called several times a second; what it raises ends the process and its browser.
        warm, key: where processes are kept between slices, and the name of the render there.

    Raises:
        StoreFull: no room in the folder; and as `look`.
    """
    with _child(site, view, first, outside, limits, warm, key) as child:
        return child.slice(view, first, stop, folder, progress=progress, check=check)


def run_still(
    site: Site,
    view: View,
    time_ms: int,
    still: Still,
    folder: Path,
    *,
    outside: Outside = NOTHING,
    limits: Limits = Limits(),  # noqa: B008 — frozen
    check: Check = _nothing,
    warm: Warm | None = None,
    key: str = "",
) -> SliceMade:
    """Render the picture of one moment into a file of a folder; raises as `run_slice`."""
    with _child(site, view, 0, outside, limits, warm, key) as child:
        return child.still(view, time_ms, still, folder, check=check)


def run_join(
    site: Site,
    slices: Sequence[SliceMade],
    view: View,
    out: Path,
    *,
    outside: Outside = NOTHING,
    limits: Limits = Limits(),  # noqa: B008 — frozen
    progress: Progress = _nothing,
    check: Check = _nothing,
) -> Joined:
    """Write slices one behind the other, with the sound of the whole; raises as `run_slice`.

    Args:
        slices: in order, each with the `path` where its file is now.
        progress: called with how many frames are written.
    """
    with Child(site, outside=outside, limits=limits) as child:
        return child.join(slices, view, out, progress=progress, check=check)
