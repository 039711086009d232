"""What a film will cost, foreseen from a few of its frames."""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fragdex.service.processes.sessions import memory_below
from fragdex.service.renders.browser.model import Notes
from fragdex.service.renders.browser.timing import View
from fragdex.service.renders.contact_sheet import film_of
from fragdex.service.renders.messages import SliceMade
from fragdex.service.renders.plan import Wanted
from fragdex.service.renders.pool import PageSource
from fragdex.service.renders.process import Child
from fragdex.service.renders.render import divided
from fragdex.service.renders.sampling import evenly
from fragdex.service.renders.seams import OneBrowserNeeded

__all__ = ["Estimate", "estimate"]

PLACES: Final = 3
"""Where in the film frames are drawn, at most."""
FRAMES: Final = 15
"""That are drawn at each place."""
ENOUGH_SECONDS: Final = 20.0
"""After which what was drawn by then has to do."""

_MEMORY_SECONDS: Final = 0.25
# Joining copies what the slices have.
_WHILE_MADE: Final = 2


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a film will cost on this machine.

    Attributes:
        view, frames: of the film.
        drawn: frames that were drawn for this.
        browsers: that are used at the same time.
        seconds: that it takes; alone_seconds: with one browser.
        memory_bytes: of all browsers and encoders together.
        film_bytes: of the film's pictures; disk_bytes: at most, while it is made.
        notes: what happened on the page.
    """

    view: View
    frames: range
    drawn: int
    browsers: int
    seconds: float
    alone_seconds: float
    memory_bytes: int
    film_bytes: int
    disk_bytes: int
    notes: Notes


class _Enough(Exception):
    """Enough was seen."""


def estimate(
    page: PageSource, wanted: Wanted, *, jobs: int | None = None, slices: int | None = None
) -> Estimate:
    """Draw a few frames of a film, and say what all of it will cost.

    Args:
        jobs, slices: as of `render`.

    Raises:
        PageFailed, BrowserGone, EngineUnavailable, TooLarge: as of `render`.
        OneBrowserNeeded: the film begins within a page that needs all of its frames.
    """
    view, frames = film_of(page, wanted)
    made, film_bytes, memory, start = _sampled(page, wanted, view, frames)
    drawn = sum(one.frames for one in made)
    each = sum(one.seconds["capture"] + one.seconds["finish"] for one in made) / drawn
    ends = [0, *(one.first + one.frames for one in made)]
    passed = sum(one.first - end for one, end in zip(made, ends, strict=False))
    replay = sum(one.seconds["replay"] for one in made) / passed if passed else 0.0

    def taken(part: range) -> float:
        return start + part.start * replay + len(part) * each

    parts = divided(view, frames, jobs, slices).slices
    browsers = min(jobs or os.cpu_count() or 1, len(parts))
    # They take turns where there are more parts than browsers.
    seconds = max(*map(taken, parts), sum(map(taken, parts)) / browsers)
    whole = round(film_bytes / drawn * len(frames))
    return Estimate(
        view, frames, drawn, browsers, seconds, taken(frames), memory * browsers, whole,
        _WHILE_MADE * whole, made[-1].notes,
    )  # fmt: skip


def _sampled(
    page: PageSource, wanted: Wanted, view: View, frames: range
) -> tuple[list[SliceMade], int, int, float]:
    """Slices; bytes of their files; memory of their processes; seconds until the first frame."""
    length = min(FRAMES, len(frames))
    made: list[SliceMade] = []
    file_bytes = memory = 0
    start = 0.0
    began = looked = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="fragdex-") as folder,
        Child(page.site, outside=page.outside, limits=page.limits) as child,
    ):

        def check() -> None:
            nonlocal looked, memory
            now = time.monotonic()
            if now - looked > _MEMORY_SECONDS:
                looked = now
                memory = max(memory, memory_below(child.pid))
            if made and now - began > ENOUGH_SECONDS:
                raise _Enough

        # a page that needs all of its frames tells by the first what they cost
        with suppress(_Enough, OneBrowserNeeded):
            stop = 0
            for first in evenly(range(frames.start, frames.stop - length + 1), PLACES):
                if first < stop:
                    continue
                stop = first + length
                one = child.draw(
                    view, range(first, stop), Path(folder), film=wanted.film, check=check
                )  # fmt: skip
                memory = max(memory, memory_below(child.pid))
                file_bytes += Path(one.path).stat().st_size
                if not made:
                    start = max(0.0, time.monotonic() - began - _work(one))
                made.append(one)
    return made, file_bytes, memory, start


def _work(one: SliceMade) -> float:
    return one.seconds["replay"] + one.seconds["capture"] + one.seconds["finish"]
