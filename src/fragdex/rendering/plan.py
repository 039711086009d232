"""In which parts a render is made, and whether they fit where they meet.

A slice that begins within a video lets pass what comes before, and draws the last frame of that as
well. A page may keep what does not come about again in this way, such as what was answered late,
or by chance. Then that frame is another one than the last of the slice before, and one browser has
to draw the video. Of some things it is known that they come out otherwise, if later than there: a
browser that has skipped frames stops where the page uses one of them (`Notes.keeps`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final

from fragdex.record import record
from fragdex.rendering.browser.model import PageView
from fragdex.rendering.messages import SliceMade
from fragdex.rendering.spec import frame_count, key_interval

_EVEN: Final = 8
"""Key frame intervals in a slice from which on its length may be rounded to them."""

_REPLAY: Final = Fraction(1, 10)
"""What replaying a frame costs, by what showing one does: measured, 0.05–0.2 on most pages."""

_AHEAD: Final = 40
"""Frames that the first process has drawn, at most, when the others begin …"""
_AHEAD_SHARE: Final = Fraction(1, 6)
"""… and of a slice: pages whose frames take long have few of them by then."""


@record(frozen=True, slots=True)
class SlicePlan:
    """A render in parts.

    Attributes:
        view: size and frame rate.
        borders: the first frame of each slice, and the end of the last one.
    """

    view: PageView
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
    view: PageView,
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
    c, and of another at s + c - ahead - replay * s. What all of them replay does not matter.
    """
    # each end is times * c - less
    ends = [(Fraction(1), Fraction(0))]
    for _ in range(count - 1):
        times, less = ends[-1]
        ends.append((times * (1 - replay) + 1, less * (1 - replay) + ahead))
    times, less = ends[-1]
    cost = (1 + less) / times
    return [times * cost - less for times, less in ends[:-1]]


ONE_BROWSER: Final = "drawn by one browser: "
"""How the note of a video begins that is not drawn by several, and why."""


class OneBrowserNeeded(Exception):
    """The page uses something that skipped frames would change; the text says what."""


def first_difference(slices: Sequence[SliceMade]) -> int | None:
    """The first frame before which two neighbours saw different pictures; None: they all agree.

    Args:
        slices: of the whole video, in order.
    """
    for one, other in pairwise(slices):
        if one.ends_with is None or one.ends_with != other.begins_after:
            return other.first
    return None


def difference_note(frame: int) -> str:
    """What the record of a video says whose slices did not fit before a frame."""
    return (
        f"{ONE_BROWSER}before frame {frame}, two of several showed different pictures, as the page "
        "keeps something that does not come about again when frames are skipped"
    )


def skipping_note(error: OneBrowserNeeded) -> str:
    """What the record of a video says whose page uses something that skipping changes."""
    return f"{ONE_BROWSER}the page uses {error}, which skipped frames would change"


def one_browser_notes(notes: Mapping[str, Any] | None) -> list[str]:
    """Why one browser drew a render, or a slice of it, among its notes as JSON."""
    return [line for line in (notes or {}).get("browser", ()) if line.startswith(ONE_BROWSER)]
