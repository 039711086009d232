"""A rendering process: started, given jobs, answered what it asks, and ended."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from fragdex.errors import BrowserGone, EngineUnavailable, PageFailed
from fragdex.rendering import messages
from fragdex.rendering.browser.finding import VARIABLE, find_engine
from fragdex.rendering.browser.model import Limits, PageFacts
from fragdex.rendering.browser.sandbox import allows_sandbox
from fragdex.rendering.browser.timing import View
from fragdex.rendering.child import MADE
from fragdex.rendering.messages import Joined, SliceMade
from fragdex.rendering.outputs import Film, Still
from fragdex.rendering.outside import NOTHING, Answer, Blocked, Outside
from fragdex.rendering.seams import OneBrowserNeeded
from fragdex.rendering.site import Site
from fragdex.sandbox.child import ChildProcess, Failures
from fragdex.sandbox.folders import take_file
from fragdex.sandbox.processes import memory_of_one
from fragdex.sandbox.walls import Walls

STALL_SECONDS: Final = 180.0
"""Silence after which a process is taken for hung; the browser's own limits are far shorter."""

# No file of a render is larger, whatever a page does.
_LARGEST_FILE: Final = 64 << 30
# Of the browser and all of its processes.
_TASKS: Final = 4096
_PASSED_ON: Final = (VARIABLE, "FONTCONFIG_FILE", "FONTCONFIG_PATH")
_FAILURES: Final = Failures("the rendering process", "this page", PageFailed, BrowserGone)

Check = Callable[[], None]
Progress = Callable[[int], None]


def nothing(*_: Any) -> None:
    """Let it go on."""


class RenderProcess:
    """A process that renders one site.

    Args:
        site: the page's files; a `Folder` has to stay where it is.
        outside: answers what the page asks for beyond its site, in this process.
        limits: how far the page may go.
        folder: where it works, empty; None: one of its own in the temporary folder, which a
            browser needs.
        watched: as of `Stage`.
    """

    def __init__(
        self,
        site: Site,
        *,
        outside: Outside = NOTHING,
        limits: Limits = Limits(),  # noqa: B008 — frozen
        folder: Path | None = None,
        watched: bool = False,
    ) -> None:
        self.outside, self._site = outside, site
        kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        try:
            program = find_engine().path
        except EngineUnavailable:
            program = None  # said by the first job that needs one
        else:
            kept[VARIABLE] = str(program)
        walls = Walls(
            max(limits.memory_bytes, memory_of_one()),
            _LARGEST_FILE,
            tasks=_TASKS,
            readable=() if program is None else (str(program.parent),),
            programs=True,
        )
        self._process = ChildProcess(
            "fragdex.rendering.child", walls, _FAILURES,
            folder=folder, environment=kept, stall_seconds=STALL_SECONDS,
        )  # fmt: skip
        self.at: tuple[View, int] | None = None
        """The view of its browser, and the next frame that it can show."""
        self.is_whole = True
        """Whether its browser has drawn every frame until there, none was passed over."""
        self._begin: dict[str, Any] | None = {
            "limits": asdict(limits),
            "sandbox": program is not None and allows_sandbox(program),
            "watched": watched,
        }
        self._slices: Sequence[SliceMade] = ()

    @property
    def pid(self) -> int:
        """Of the process, and of the session that all of its processes belong to."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process.alive

    def look(self, view: View, *, check: Check = nothing) -> PageFacts:
        """What the page tells of itself, seen through a view."""
        told = self._do("look", check, nothing, view=messages.view_as_json(view))
        self.at = (view, 0)
        return PageFacts(**told)

    def draw(
        self,
        view: View,
        frames: range,
        folder: Path,
        *,
        still: Still | None = None,
        film: Film = Film(),  # noqa: B008 — frozen
        progress: Progress = nothing,
        check: Check = nothing,
        all_drawn: bool = False,
        ahead: int = 0,
    ) -> SliceMade:
        """Render frames, or the still of the first one, into a file of a folder.

        Args:
            all_drawn: also the frames before them are drawn, by a browser that skipped none.
            ahead: as of `Slicer.draw`.

        Raises:
            OneBrowserNeeded: its browser has skipped frames that the page needs.
        """
        first, stop = frames.start, frames.stop
        name = f"slice-{first:08}-{stop:08}.mp4" if still is None else f"still.{still.container}"
        path = folder / name
        new = self.at is None or self.at[0] != view or self.at[1] > first
        reached = 0 if new or self.at is None else self.at[1]
        self.is_whole = (new or self.is_whole) and (all_drawn or reached == first)
        told = self._do(
            "draw", check, progress, view=messages.view_as_json(view), first=first, stop=stop,
            still=None if still is None else asdict(still), film=asdict(film),
            all_drawn=all_drawn, ahead=ahead,
        )  # fmt: skip
        if "needs_one" in told:
            raise OneBrowserNeeded(told["needs_one"])
        self._take(path)
        progress(len(frames))
        self.at = (view, stop)
        return SliceMade.of_json(told | {"path": str(path)})

    def join(
        self,
        slices: Sequence[SliceMade],
        view: View,
        out: Path,
        *,
        film: Film = Film(),  # noqa: B008 — frozen
        check: Check = nothing,
    ) -> Joined:
        """Write slices one behind the other, with their sound."""
        self._slices = slices
        told = self._do(
            "join", check, nothing, slices=[made.as_json() for made in slices],
            view=messages.view_as_json(view), film=asdict(film),
        )  # fmt: skip
        self._take(out)
        return Joined(**told | {"path": str(out)})

    def end(self) -> None:
        """End the process, its browser, and what they left behind."""
        self._process.end()

    def __enter__(self) -> RenderProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def _do(self, job: str, check: Check, progress: Progress, **arguments: Any) -> dict[str, Any]:
        """Give a job and wait for what comes of it; the process ends with any error."""
        try:
            if self._begin is not None:
                begin, self._begin = self._begin, None
                self._process.do("begin", check=check, answer=self._answer, **begin)
            return self._process.do(
                job, check=check, answer=self._answer, **arguments,
                on_message=lambda message: progress(message["progress"]),
            )  # fmt: skip
        except BaseException:
            self.end()
            raise

    def _take(self, path: Path) -> None:
        take_file(self._process.folder / MADE, path)

    def _answer(self, question: dict[str, Any]) -> tuple[dict[str, Any], Sequence[int]]:
        if "path" in question:
            return _handed_over(self._site, question["path"])
        if "slice" in question:
            return {}, (os.open(self._slices[question["slice"]].path, os.O_RDONLY),)
        answer: Answer | Blocked
        try:
            answer = self.outside.fetch(question["url"], question["headers"])
        except Blocked as error:
            answer = error
        except Exception as error:  # noqa: BLE001 — a page waits for it, whatever happened
            answer = Blocked(f"it could not be read: {type(error).__name__}")
        return messages.answer_as_json(answer), ()


def _handed_over(site: Site, path: str) -> tuple[dict[str, Any], Sequence[int]]:
    """A file of a site, open; nothing where there is none."""
    found = site.open(path)
    if found is None:
        return {}, ()
    with found.file as file, contextlib.ExitStack() as stack:
        if isinstance(file, io.BytesIO):
            held = stack.enter_context(tempfile.TemporaryFile())
            held.write(file.getbuffer())
            held.seek(0)
            file = held
        return {"media_type": found.media_type}, (os.dup(file.fileno()),)
