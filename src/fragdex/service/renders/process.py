"""A rendering process: started, given jobs, answered what it asks, and ended."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
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

__all__ = ["Check", "Child", "Progress", "nothing"]

STALL_SECONDS: Final = 180.0
"""Silence after which a process is taken for hung; the browser's own limits are far shorter."""

_POLL_SECONDS: Final = 0.25
# Where a browser is found; the rest of the environment is not for a process that shows pages.
_PASSED_ON: Final = ("FRAGDEX_CHROMIUM", "PLAYWRIGHT_BROWSERS_PATH", "HOME")

Check = Callable[[], None]
Progress = Callable[[int], None]


def nothing(*_: Any) -> None:
    """Let it go on."""


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
        self.outside, self._site = outside, site
        # its own, so that what a killed browser leaves behind goes with it
        self._scratch = tempfile.TemporaryDirectory(
            prefix=speaking.SCRATCH, ignore_cleanup_errors=True
        )
        # the browser, which may run as another user, has its folder in there
        os.chmod(self._scratch.name, 0o711)
        kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        self._process = Process(
            "fragdex.service.renders.child", environment=kept | {"TMPDIR": self._scratch.name}
        )
        self.at: tuple[View, int] | None = None
        """The view of its browser, and the next frame that it can show."""
        # Its answer is waited for with that of the first job.
        self._process.say(
            do="begin", site=speaking.site_as_json(site), limits=asdict(limits),
            walls=speaking.walls_as_json(),
        )  # fmt: skip
        self._unanswered = 1

    @property
    def pid(self) -> int:
        """Of the process, and of the session that all of its processes belong to."""
        return self._process.pid

    def look(self, view: View, *, check: Check = nothing) -> PageFacts:
        """What the page tells of itself, seen through a view."""
        told = self._do(check, nothing, do="look", view=speaking.view_as_json(view))
        self.at = (view, 0)
        return PageFacts(**told)

    def slice(
        self,
        view: View,
        first: int,
        stop: int,
        folder: Path,
        *,
        progress: Progress = nothing,
        check: Check = nothing,
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
        self, view: View, time_ms: int, still: Still, folder: Path, *, check: Check = nothing
    ) -> SliceMade:
        """Render the picture of one moment into a file of a folder."""
        path = folder / f"still.{still.container}"
        told = self._do(
            check, nothing, do="still", view=speaking.view_as_json(view), time_ms=time_ms,
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
        progress: Progress = nothing,
        check: Check = nothing,
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
        if "path" in question:
            told = speaking.asset_as_json(self._site.read(question["path"]))
        else:
            answer: Answer | Blocked
            try:
                answer = self.outside.fetch(question["url"], question["headers"])
            except Blocked as error:
                answer = error
            except Exception as error:  # noqa: BLE001 — a page waits for it, whatever happened
                answer = Blocked(f"it could not be read: {type(error).__name__}")
            told = speaking.answer_as_json(answer)
        self._process.say(answer=question["ask"], **told)

    def _failure(self) -> Exception:
        ending, words = self._process.ending, self._process.words
        if ending in CRASHES:
            return PageFailed("the media libraries broke on what the page plays", found=ending)
        if isinstance(ending, str):
            return BrowserGone(f"the rendering process was ended by {ending}")
        if "No space left on device" in words:
            return StoreFull("no room for the frames of the render", retry_after=60)
        return BrowserGone(f"the rendering process ended with {ending}: {words}")
