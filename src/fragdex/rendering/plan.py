"""In which parts a render is made: slices of whole frames."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from fragdex.rendering.browser.timing import View
from fragdex.rendering.spec import frame_count, key_interval

_EVEN: Final = 8
"""Key frame intervals in a slice from which on its length may be rounded to them."""

_REPLAY: Final = Fraction(1, 10)
"""What replaying a frame costs, by what showing one does: measured, 0.05–0.2 on most pages."""

_AHEAD: Final = 40
"""Frames that the first process has drawn, at most, when the others begin …"""
_AHEAD_SHARE: Final = Fraction(1, 6)
"""… and of a slice: pages whose frames take long have few of them by then."""


@dataclass(frozen=True, slots=True)
class SlicePlan:
    """A render in parts.

    Attributes:
        view: size and frame rate.
        borders: the first frame of each slice, and the end of the last one.
    """

    view: View
    borders: tuple[int, ...]

    @property
    def frames(self) -> int:
        """Of all slices."""
        return self.borders[-1] - self.borders[0]

    @property
    def slices(self) -> tuple[range, ...]:
        """The frames of each slice, in order; together all, none twice."""
        return tuple(range(*pair) for pair in zip(self.borders, self.borders[1:], strict=False))


def plan(
    view: View,
    frames: range,
    *,
    slice_ms: int | None = None,
    slices: int | None = None,
    at_once: bool = False,
    ahead: bool = False,
) -> SlicePlan:
    """Divide a render.

    Borders fall on key frames of the result where slices are long enough, so that it has the same
    fragments however many slices it was made in.

    Args:
        view: size and frame rate.
        frames: that are to be made.
        slice_ms: about how long a slice is; the last may be half as long again.
        slices: how many there are instead; fewer where there are not so many frames.
        at_once: whether slices are made all at the same time, each from the page's beginning: later
            ones are shorter then, by what they replay.
        ahead: whether the first has begun before the others: it is longer then.

    >>> plan(View(1280, 720, Fraction(30)), range(300), slice_ms=4000).borders
    (0, 120, 300)
    >>> plan(View(1280, 720, Fraction(30)), range(300), slices=3).borders
    (0, 100, 200, 300)
    >>> plan(View(1280, 720, Fraction(30)), range(30, 330), slices=2, at_once=True).borders
    (30, 188, 330)
    >>> plan(View(), range(300), slices=2, at_once=True, ahead=True).borders
    (0, 171, 300)
    """
    count = len(frames)
    keys = key_interval(view.fps)
    if slices is None:
        size = count if slice_ms is None else frame_count(slice_ms, view.fps)
        if keys <= size < count:
            size = round(size / keys) * keys
        borders = [0, *range(size, count - size // 2, size), count]
    else:
        slices = max(1, min(slices, count))
        start = min(Fraction(_AHEAD, count), _AHEAD_SHARE / slices) if ahead else Fraction(0)
        shares = _shares(slices, _REPLAY if at_once else Fraction(0), start)
        exact = [count * share for share in shares]
        # unless some would have much more to do than others
        grid = keys if count >= slices * keys * _EVEN else 1
        borders = [0, *(round(at / grid) * grid for at in exact), count]
    return SlicePlan(view, tuple(frames.start + border for border in sorted(set(borders))))


def _shares(count: int, replay: Fraction, ahead: Fraction) -> list[Fraction]:
    """Borders between `count` slices of 1, all of which are done at the same time.

    A slice costs what it shows, and `replay` of what is before it; all but the first begin when
    that has shown `ahead`. With the share s before it and the cost c, the end of the first is at
    c, and of another at s + c - ahead - replay * s. What all of them replay is no matter.
    """
    # each end is times * c - less
    ends = [(Fraction(1), Fraction(0))]
    for _ in range(count - 1):
        times, less = ends[-1]
        ends.append((times * (1 - replay) + 1, less * (1 - replay) + ahead))
    times, less = ends[-1]
    cost = (1 + less) / times
    return [times * cost - less for times, less in ends[:-1]]
