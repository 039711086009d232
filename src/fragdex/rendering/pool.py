"""Rendering processes: each renders one page, and stays ready for the next slice of it.

Where the next slice begins at or behind the frame that a browser has reached, it goes on from
there.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from fragdex.rendering import seams
from fragdex.rendering.browser.model import Limits, PageFacts
from fragdex.rendering.browser.timing import View
from fragdex.rendering.messages import Joined, SliceMade
from fragdex.rendering.outputs import Film, Still
from fragdex.rendering.outside import NOTHING, Outside
from fragdex.rendering.process import Check, Progress, RenderProcess, nothing
from fragdex.rendering.seams import OneBrowserNeeded
from fragdex.rendering.site import Site
from fragdex.rendering.spec import RenderSpec, frame_at
from fragdex.sandbox.child import Idle
from fragdex.sandbox.processes import ProcessorTime

IDLE_SECONDS: Final = 15.0
"""So long a process waits for another job."""

_COST_SECONDS: Final = 0.5

Cost = Callable[[float], None]


@dataclass(slots=True)
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
    limits: Limits = Limits()  # noqa: RUF009 — frozen
    watched: bool = False


@dataclass(frozen=True, slots=True)
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
    def child(self, page: PageSource, view: View, first: int = 0) -> Iterator[RenderProcess]:
        """A process for a job that begins at a frame; it is ended by any error, else kept.

        Of the page's processes the one that stands nearest before that frame goes on; one that
        stands elsewhere starts another browser, which is less than to start it all.
        """

        def fitness(one: _Idle) -> int | None:
            if one.key != page.key:
                return None
            at = one.child.at
            return at[1] if at is not None and at[0] == view and at[1] <= first else -1

        found = self._idle.take(fitness)
        if found is None:
            child = RenderProcess(
                page.site, outside=page.outside, limits=page.limits, watched=page.watched
            )
        else:
            child = found.child
            child.outside = page.outside
        try:
            yield child
        except BaseException:
            child.end()
            raise
        self._idle.put(_Idle(page.key, child), self._most)

    def look(self, page: PageSource, view: View, *, check: Check = nothing) -> PageFacts:
        """What a page tells of itself, seen through a view.

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
        view: View,
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
            OneBrowserNeeded: of a film, as of `RenderProcess.draw`; and as `look`.
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
            made = draw(all_drawn=True)
            made.notes.say("browser", seams.needed(error))
            return made

    def _draw(
        self,
        page: PageSource,
        view: View,
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
            taken = ProcessorTime(child.pid)
            made = child.draw(view, frames, folder, check=_costing(taken, cost, check), **how)
            cost(spent := taken.seconds())
            return replace(made, seconds={**made.seconds, "processor": round(spent, 3)})

    def alone(self, page: PageSource, view: View, borders: Sequence[int]) -> int:
        """End the page's processes but that which has drawn its film until a border by itself.

        Returns that border, where it goes on; 0 where there is none: another one begins.
        """

        def fitness(one: _Idle) -> int | None:
            at = one.child.at if one.key == page.key and one.child.is_whole else None
            return at[1] if at is not None and at[0] == view and at[1] in borders else None

        found = self._idle.take(fitness)
        self.drop(page.key)
        if found is None or found.child.at is None:
            return 0
        self._idle.put(found, self._most)
        return found.child.at[1]

    def drop(self, key: str) -> None:
        """End the processes of a render that is over."""
        self._idle.end(lambda one: one.key == key)

    def close(self) -> None:
        """End all that wait."""
        self._idle.end()


def _costing(taken: ProcessorTime, cost: Cost, check: Check) -> Check:
    """A check that also reports what was taken, every half second: a look reads all processes."""
    looked = time.monotonic()

    def both() -> None:
        nonlocal looked
        check()
        if time.monotonic() - looked >= _COST_SECONDS:
            cost(taken.seconds())
            looked = time.monotonic()

    return both


def join_slices(
    page: PageSource,
    slices: Sequence[SliceMade],
    view: View,
    out: Path,
    *,
    film: Film = Film(),  # noqa: B008 — frozen
    check: Check = nothing,
) -> Joined:
    """Write slices one behind the other, with the sound of the whole; raises as `ChildPool.draw`.

    Args:
        slices: in order, each with the `path` where its file is now.
    """
    # A film may be larger than the temporary folder.
    with (
        tempfile.TemporaryDirectory(prefix="join-", dir=out.parent) as folder,
        RenderProcess(
            page.site, outside=page.outside, limits=page.limits, folder=Path(folder)
        ) as child,
    ):
        return child.join(slices, view, out, film=film, check=check)


_LOSSLESS: Final = Still("png", compression=1)


def evenly(frames: range, most: int) -> tuple[int, ...]:
    """At most so many frames, evenly spaced, the first and the last among them.

    >>> evenly(range(10, 20), 4), evenly(range(2), 4), evenly(range(5), 1)
    ((10, 13, 16, 19), (0, 1), (0,))
    """
    count = min(most, len(frames))
    steps = max(1, count - 1)
    return tuple(frames[round(n * (len(frames) - 1) / steps)] for n in range(count))


def drawn(
    page: PageSource, view: View, frames: Sequence[int], *, check: Check = nothing
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
                made = draw(all_drawn=all_drawn)
            except OneBrowserNeeded:
                all_drawn = True
                made = draw(all_drawn=True)
            yield Path(made.path).read_bytes(), made
