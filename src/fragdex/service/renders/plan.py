"""What is rendered, in which parts: size and duration, slices of whole frames."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from fragdex.service.renders.browser.model import Limits, PageFacts
from fragdex.service.renders.browser.timing import DEFAULT_HEIGHT, DEFAULT_WIDTH, View
from fragdex.service.renders.films import Film
from fragdex.service.renders.stills import Still

__all__ = [
    "Plan", "View", "Wanted", "frame_at", "frame_count", "key_interval", "plan", "settled",
]  # fmt: skip

KEY_SECONDS: Final = 2
"""Between two key frames, and so the length of a fragment."""


_EVEN: Final = 8
"""Key frame intervals in a slice from which on its length may be rounded to them."""

_REPLAY: Final = Fraction(1, 10)
"""What replaying a frame costs, by what showing one does: measured, 0.05–0.2 on most pages."""


def key_interval(fps: Fraction) -> int:
    """Frames from one key frame to the next.

    >>> key_interval(Fraction(30000, 1001)), key_interval(Fraction(1, 4))
    (60, 1)
    """
    return max(1, round(KEY_SECONDS * fps))


def frame_count(duration_ms: int, fps: Fraction) -> int:
    """How many frames a duration has, at least one; half a frame counts.

    >>> frame_count(10_000, Fraction(30000, 1001)), frame_count(1, Fraction(30))
    (300, 1)
    """
    return max(1, math.floor(Fraction(duration_ms, 1000) * fps + Fraction(1, 2)))


def frame_at(time_ms: int, fps: Fraction) -> int:
    """The frame that is shown at a time.

    >>> frame_at(1000, Fraction(30)), frame_at(1033, Fraction(30)), frame_at(1034, Fraction(30))
    (30, 30, 31)
    """
    return math.floor(Fraction(time_ms, 1000) * fps)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be made; what is None is asked of the page.

    Attributes:
        width, height: pixels; the size of the page's root element, else 1280 × 720.
        fps: frames a second.
        duration_ms: of the page's longest finite animation or medium.
        still: one picture of `time_ms` instead of a film.
        film: how a film is stored.
    """

    width: int | None = None
    height: int | None = None
    fps: Fraction = Fraction(30)
    duration_ms: int | None = None
    still: Still | None = None
    time_ms: int = 0
    film: Film = Film()  # noqa: RUF009 — frozen

    def view(self, facts: PageFacts | None = None) -> View:
        """How the page is seen, by what it says of itself where that is known.

        >>> from fractions import Fraction
        >>> Wanted(63, 32).view().width
        64
        """
        width = self.width or (facts.width if facts else None) or DEFAULT_WIDTH
        height = self.height or (facts.height if facts else None) or DEFAULT_HEIGHT
        if self.still is None:
            # H.264 has even sides: a pixel more rather than one less
            width, height = width + width % 2, height + height % 2
        clear = self.film.transparency if self.still is None else self.still.is_clear
        return View(max(width, 2), max(height, 2), self.fps, clear)


def settled(
    wanted: Wanted, limits: Limits, look: Callable[[View], PageFacts]
) -> tuple[View, int | None]:
    """Size and duration (ms); the page is looked at only where something is left open.

    The duration is None for stills, and where the page does not say either.

    Raises:
        TooLarge: more pixels than the limits allow; and as `look`.
    """
    view = wanted.view()
    limits.check(view)
    is_film = wanted.still is None
    if wanted.width and wanted.height and not (is_film and wanted.duration_ms is None):
        return view, wanted.duration_ms
    facts = look(view)
    view = wanted.view(facts)
    limits.check(view)
    if not is_film:
        return view, None
    return view, facts.duration_ms if wanted.duration_ms is None else wanted.duration_ms


@dataclass(frozen=True, slots=True)
class Plan:
    """A render in parts.

    Attributes:
        view: size and frame rate.
        frames: of the whole.
        borders: the first frame of each slice, and `frames` at the end.
    """

    view: View
    frames: int
    borders: tuple[int, ...]

    @property
    def slices(self) -> tuple[range, ...]:
        """The frames of each slice, in order; together all, none twice."""
        return tuple(range(*pair) for pair in zip(self.borders, self.borders[1:], strict=False))


def plan(
    view: View,
    duration_ms: int,
    *,
    slice_ms: int | None = None,
    slices: int | None = None,
    at_once: bool = False,
) -> Plan:
    """Divide a render.

    Borders fall on key frames of the whole where slices are long enough, so that the result has
    the same fragments however many slices it was made in.

    Args:
        view: size and frame rate.
        duration_ms: of the whole.
        slice_ms: about how long a slice is; the last may be half as long again.
        slices: how many there are instead; fewer where there are not so many frames.
        at_once: whether slices are made all at the same time, each from the page's beginning: later
            ones are shorter then, by what they replay.

    >>> plan(View(1280, 720, Fraction(30)), 10_000, slice_ms=4000).borders
    (0, 120, 300)
    >>> plan(View(1280, 720, Fraction(30)), 10_000, slices=3).borders
    (0, 100, 200, 300)
    >>> plan(View(1280, 720, Fraction(30)), 10_000, slices=2, at_once=True).borders
    (0, 158, 300)
    """
    frames = frame_count(duration_ms, view.fps)
    keys = key_interval(view.fps)
    if slices is None:
        size = frames if slice_ms is None else frame_count(slice_ms, view.fps)
        if keys <= size < frames:
            size = round(size / keys) * keys
        borders = [0, *range(size, frames - size // 2, size), frames]
    else:
        count = max(1, min(slices, frames))
        exact = [frames * share for share in _shares(count, _REPLAY if at_once else Fraction(0))]
        # unless some would have much more to do than others
        grid = keys if frames >= count * keys * _EVEN else 1
        borders = [0, *(round(at / grid) * grid for at in exact), frames]
    return Plan(view, frames, tuple(sorted(set(borders))))


def _shares(count: int, replay: Fraction) -> list[Fraction]:
    """Borders between `count` slices of 1, each of which costs as much as the others.

    A slice costs what it shows, and `replay` of what is before it: with the share s before it and
    the cost c, its end is at s + c - replay * s.
    """
    ends = [Fraction(0)]
    for _ in range(count):
        ends.append(ends[-1] * (1 - replay) + 1)
    return [end / ends[-1] for end in ends[1:-1]]
