"""Rendering processes: each renders one page, and stays ready for the next slice of it.

A process is started, given jobs, answered what it asks, and ended. Where the next slice begins at
or after the frame that a browser has reached, it continues from there.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from fragdex.errors import BrowserGone, EngineUnavailable, PageFailed
from fragdex.record import record
from fragdex.rendering import messages
from fragdex.rendering.browser.finding import VARIABLE, find_engine
from fragdex.rendering.browser.model import Limits, PageFacts, PageView
from fragdex.rendering.browser.process import allows_sandbox
from fragdex.rendering.child import MADE
from fragdex.rendering.messages import Joined, SliceMade
from fragdex.rendering.outputs import Film, Still
from fragdex.rendering.plan import OneBrowserNeeded, skipping_note
from fragdex.rendering.site import NOTHING, Answer, Blocked, Outside, Site
from fragdex.rendering.spec import RenderSpec, frame_at, frames_of, settled
from fragdex.sandbox.child import ChildProcess, Failures, Idle
from fragdex.sandbox.folders import take_file
from fragdex.sandbox.processes import ProcessorTime, memory_of_one
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
    """Let it continue."""


class RenderProcess:
    """A process that renders one site.

    Args:
        site: the page's files; a `Folder` has to stay where it is.
        outside: answers what the page requests beyond its site, in this process.
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
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        try:
            program = find_engine().path
        except EngineUnavailable:
            program = None  # said by the first job that needs one
        else:
            environment[VARIABLE] = str(program)
        walls = Walls(
            max(limits.memory_bytes, memory_of_one()),
            _LARGEST_FILE,
            tasks=_TASKS,
            readable=() if program is None else (str(program.parent),),
            programs=True,
        )
        self._process = ChildProcess(
            "fragdex.rendering.child", walls, _FAILURES,
            folder=folder, environment=environment, stall_seconds=STALL_SECONDS,
        )  # fmt: skip
        self.at: tuple[PageView, int] | None = None
        """The view of its browser, and the next frame that it can show."""
        self.is_whole = True
        """Whether its browser has drawn every frame until there, none was skipped."""
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

    def look(self, view: PageView, *, check: Check = nothing) -> PageFacts:
        """The page's description of itself, seen through a view."""
        facts = self._do("look", check, nothing, view=messages.view_as_json(view))
        self.at = (view, 0)
        return PageFacts(**facts)

    def draw(
        self,
        view: PageView,
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
        answer = self._do(
            "draw", check, progress, view=messages.view_as_json(view), first=first, stop=stop,
            still=None if still is None else asdict(still), film=asdict(film),
            all_drawn=all_drawn, ahead=ahead,
        )  # fmt: skip
        if "needs_one" in answer:
            raise OneBrowserNeeded(answer["needs_one"])
        self._take(path)
        progress(len(frames))
        self.at = (view, stop)
        return SliceMade.of_json(answer | {"path": str(path)})

    def join(
        self,
        slices: Sequence[SliceMade],
        view: PageView,
        out: Path,
        *,
        film: Film = Film(),  # noqa: B008 — frozen
        check: Check = nothing,
    ) -> Joined:
        """Write slices one after the other, with their sound."""
        self._slices = slices
        answer = self._do(
            "join", check, nothing, slices=[one.as_json() for one in slices],
            view=messages.view_as_json(view), film=asdict(film),
        )  # fmt: skip
        self._take(out)
        return Joined(**answer | {"path": str(out)})

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
    asset = site.open(path)
    if asset is None:
        return {}, ()
    with asset.file as file, contextlib.ExitStack() as stack:
        if isinstance(file, io.BytesIO):
            copy = stack.enter_context(tempfile.TemporaryFile())
            copy.write(file.getbuffer())
            copy.seek(0)
            file = copy
        return {"media_type": asset.media_type}, (os.dup(file.fileno()),)


IDLE_SECONDS: Final = 15.0
"""So long a process waits for another job."""

_COST_SECONDS: Final = 0.5

Cost = Callable[[float], None]


@record(slots=True)
class PageSource:
    """A page to be rendered.

    Attributes:
        key: names its render, and whose it is.
        site: the page's files.
        outside: what it may ask for beyond them.
        limits: how far it may go.
        watched: as of `Stage`.
    """

    key: str
    site: Site
    outside: Outside = NOTHING
    limits: Limits = Limits()
    watched: bool = False


@record(frozen=True, slots=True)
class _Idle:
    key: str
    child: RenderProcess

    @property
    def alive(self) -> bool:
        return self.child.alive

    def end(self) -> None:
        self.child.end()


class ChildPool:
    """Rendering processes, and those of them that wait for another job.

    Args:
        most: so many are kept waiting.
    """

    def __init__(self, most: int = 2) -> None:
        self._most = most
        self._idle: Idle[_Idle] = Idle(IDLE_SECONDS)

    @contextlib.contextmanager
    def child(self, page: PageSource, view: PageView, first: int = 0) -> Iterator[RenderProcess]:
        """A process for a job that begins at a frame; it is ended by any error, else kept.

        Of the page's processes the one that stands nearest before that frame continues; one that
        stands elsewhere starts another browser, which is less than to start it all.
        """

        def fitness(one: _Idle) -> int | None:
            if one.key != page.key:
                return None
            at = one.child.at
            return at[1] if at is not None and at[0] == view and at[1] <= first else -1

        idle = self._idle.take(fitness)
        if idle is None:
            child = RenderProcess(
                page.site, outside=page.outside, limits=page.limits, watched=page.watched
            )
        else:
            child = idle.child
            child.outside = page.outside
        try:
            yield child
        except BaseException:
            child.end()
            raise
        self._idle.put(_Idle(page.key, child), self._most)

    def look(self, page: PageSource, view: PageView, *, check: Check = nothing) -> PageFacts:
        """A page's description of itself, seen through a view.

        Raises:
            PageFailed: the page hangs, crashes, or is not there.
            BrowserGone: the process ended by no fault of the page's.
            EngineUnavailable: no Chromium.
            TooLarge: the view has more pixels than the limits allow.
        """
        with self.child(page, view) as child:
            return child.look(view, check=check)

    def draw(
        self,
        page: PageSource,
        spec: RenderSpec,
        view: PageView,
        frames: range,
        folder: Path,
        *,
        progress: Progress = nothing,
        check: Check = nothing,
        all_drawn: bool = False,
        cost: Cost | None = None,
    ) -> SliceMade:
        """Render a slice, or the still that is wanted, into a file of a folder.

        Args:
            frames: of the slice.
            progress: called in this thread with how many frames are done.
            check: called several times a second; what it raises ends the process and its browser.
            all_drawn: also the frames before them are drawn, where the page needs that.
            cost: called now and then with the seconds of processor time that the slice has taken;
                what it raises ends the process, as of `check`.

        Raises:
            StoreFull: no room in the folder.
            OneBrowserNeeded: of a video, as of `RenderProcess.draw`; and as `look`.
        """
        if spec.still is not None:
            at = frame_at(spec.time_ms, view.fps)
            frames = range(at, at + 1)
        draw = partial(
            self._draw, page, view, frames, folder, still=spec.still, film=spec.film,
            progress=progress, check=check, cost=cost,
        )  # fmt: skip
        try:
            return draw(all_drawn=all_drawn)
        except OneBrowserNeeded as error:
            if spec.still is None:
                raise
            drawn_slice = draw(all_drawn=True)
            drawn_slice.notes.say("browser", skipping_note(error))
            return drawn_slice

    def _draw(
        self,
        page: PageSource,
        view: PageView,
        frames: range,
        folder: Path,
        *,
        check: Check,
        cost: Cost | None,
        **how: Any,
    ) -> SliceMade:
        with self.child(page, view, frames.start) as child:
            if cost is None:
                return child.draw(view, frames, folder, check=check, **how)
            processor = ProcessorTime(child.pid)
            drawn_slice = child.draw(
                view, frames, folder, check=_costing(processor, cost, check), **how
            )
            cost(spent := processor.seconds())
            return replace(
                drawn_slice, seconds={**drawn_slice.seconds, "processor": round(spent, 3)}
            )

    def alone(self, page: PageSource, view: PageView, borders: Sequence[int]) -> int:
        """End the page's processes but that which has drawn its video until a border by itself.

        Returns that border, where it continues; 0 where there is none: another one begins.
        """

        def fitness(one: _Idle) -> int | None:
            at = one.child.at if one.key == page.key and one.child.is_whole else None
            return at[1] if at is not None and at[0] == view and at[1] in borders else None

        idle = self._idle.take(fitness)
        self.drop(page.key)
        if idle is None or idle.child.at is None:
            return 0
        self._idle.put(idle, self._most)
        return idle.child.at[1]

    def drop(self, key: str) -> None:
        """End the processes of a render that is over."""
        self._idle.end(lambda one: one.key == key)

    def close(self) -> None:
        """End all that wait."""
        self._idle.end()


def _costing(processor: ProcessorTime, cost: Cost, check: Check) -> Check:
    """A check that also reports what was taken, every half second: a look reads all processes."""
    looked = time.monotonic()

    def both() -> None:
        nonlocal looked
        check()
        if time.monotonic() - looked >= _COST_SECONDS:
            cost(processor.seconds())
            looked = time.monotonic()

    return both


def join_slices(
    page: PageSource,
    slices: Sequence[SliceMade],
    view: PageView,
    out: Path,
    *,
    film: Film = Film(),  # noqa: B008 — frozen
    check: Check = nothing,
) -> Joined:
    """Write slices one after the other, with the sound of the whole; raises as `ChildPool.draw`.

    Args:
        slices: in order, each with the `path` where its file is now.
    """
    # A video may be larger than the temporary folder.
    with (
        tempfile.TemporaryDirectory(prefix="join-", dir=out.parent) as folder,
        RenderProcess(
            page.site, outside=page.outside, limits=page.limits, folder=Path(folder)
        ) as child,
    ):
        return child.join(slices, view, out, film=film, check=check)


def film_of(page: PageSource, spec: RenderSpec) -> tuple[PageView, range]:
    """How the video of a page is seen, and its frames.

    Raises:
        PageFailed: it does not say how long it lasts; and as `ChildPool.look`.
    """
    with contextlib.closing(ChildPool(most=1)) as pool:
        one = settled(spec, page.limits, lambda view: pool.look(page, view))
    return one.view, frames_of(spec, one.duration_ms, one.because)


_LOSSLESS: Final = Still("png", compression=1)


def evenly(frames: range, most: int) -> tuple[int, ...]:
    """At most so many frames, evenly spaced, the first and the last among them."""
    count = min(most, len(frames))
    steps = max(1, count - 1)
    return tuple(frames[round(n * (len(frames) - 1) / steps)] for n in range(count))


def drawn(
    page: PageSource, view: PageView, frames: Sequence[int], *, check: Check = nothing
) -> Iterator[tuple[bytes, SliceMade]]:
    """Draw frames in rising order; those between them happen without being drawn.

    Of a page that needs all of its frames, those between are drawn, too.

    Args:
        check: called several times a second; what it raises ends the process and its browser.

    Yields: each as PNG, and what was noted until then. The same pixels give the same bytes.

    Raises:
        PageFailed, BrowserGone, EngineUnavailable, TooLarge: as of `ChildPool.draw`.
    """
    with (
        tempfile.TemporaryDirectory(prefix="fragdex-") as folder,
        RenderProcess(
            page.site, outside=page.outside, limits=page.limits, watched=page.watched
        ) as child,
    ):  # fmt: skip
        all_drawn = False
        for i in frames:
            draw = partial(
                child.draw, view, range(i, i + 1), Path(folder), still=_LOSSLESS, check=check
            )  # fmt: skip
            try:
                drawn_slice = draw(all_drawn=all_drawn)
            except OneBrowserNeeded:
                all_drawn = True
                drawn_slice = draw(all_drawn=True)
            yield Path(drawn_slice.path).read_bytes(), drawn_slice
