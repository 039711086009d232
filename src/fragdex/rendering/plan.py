"""What is rendered, in which parts: size and duration, slices of whole frames."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from fragdex.errors import PageFailed
from fragdex.rendering.browser.model import Limits, PageFacts
from fragdex.rendering.browser.timing import DEFAULT_HEIGHT, DEFAULT_WIDTH, Crop, View
from fragdex.rendering.films import MAX_FPS, Film
from fragdex.rendering.stills import Still

KEY_SECONDS: Final = 2
"""Between two key frames, and so the length of a fragment."""


_EVEN: Final = 8
"""Key frame intervals in a slice from which on its length may be rounded to them."""

_REPLAY: Final = Fraction(1, 10)
"""What replaying a frame costs, by what showing one does: measured, 0.05–0.2 on most pages."""

_AHEAD: Final = 40
"""Frames that the first process has drawn, at most, when the others begin …"""
_AHEAD_SHARE: Final = Fraction(1, 6)
"""… and of a slice: pages whose frames take long have few of them by then."""


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
    return max(1, _frame_near(duration_ms, fps))


def _frame_near(time_ms: int, fps: Fraction) -> int:
    return math.floor(Fraction(time_ms, 1000) * fps + Fraction(1, 2))


def frame_at(time_ms: int, fps: Fraction) -> int:
    """The frame that is shown at a time.

    >>> frame_at(1000, Fraction(30)), frame_at(1033, Fraction(30)), frame_at(1034, Fraction(30))
    (30, 30, 31)
    """
    return math.floor(Fraction(time_ms, 1000) * fps)


@dataclass(frozen=True, slots=True)
class RenderSpec:
    """What is to be made; what is None is asked of the page.

    Attributes:
        width, height: pixels; the size of the page's root element, else 1280 × 720.
        fps: frames a second.
        duration_ms: of the page's longest finite animation or medium.
        still: one picture of `time_ms` instead of a film.
        film: how a film is stored.
        scale: pixels for each CSS pixel of a side, as `View.scale`.
        from_ms, to_ms: of the film only the frames of this range, the first inclusive, the second
            exclusive; without a `duration_ms`, the film ends where the range does.
        crop: of the window only this, as `View.crop`.
        page_fps: as `View.page_fps`.
    """

    width: int | None = None
    height: int | None = None
    fps: Fraction = Fraction(30)
    duration_ms: int | None = None
    still: Still | None = None
    time_ms: int = 0
    film: Film = Film()  # noqa: RUF009 — frozen
    scale: float = 1.0
    from_ms: int | None = None
    to_ms: int | None = None
    crop: Crop | None = None
    page_fps: Fraction | None = None

    @property
    def end_ms(self) -> int | None:
        """How long the film is, as far as that is said: its duration, or the end of the range."""
        return self.to_ms if self.duration_ms is None else self.duration_ms

    def frames(self, duration_ms: int) -> range:
        """The frames that are to be made of a film.

        A frame belongs to a range where its nearest millisecond does, so that ranges that follow
        each other have every frame once.

        Raises:
            ValueError: the range begins where the film has ended.

        >>> RenderSpec(from_ms=1000, to_ms=1500).frames(10_000), RenderSpec().frames(100)
        (range(30, 45), range(0, 3))
        """
        stop = frame_count(duration_ms, self.fps)
        if self.to_ms is not None:
            stop = min(stop, _frame_near(self.to_ms, self.fps))
        first = _frame_near(self.from_ms or 0, self.fps)
        if first >= stop:
            end_ms = duration_ms if self.to_ms is None else self.to_ms
            raise ValueError(f"no frame is between {self.from_ms or 0} and {end_ms} ms")
        return range(first, stop)

    def view(self, facts: PageFacts | None = None) -> View:
        """How the page is seen, by what it says of itself where that is known.

        >>> from fractions import Fraction
        >>> RenderSpec(63, 32).view().width, RenderSpec(63, 32, scale=2).view().width
        (64, 63)
        """
        width = self.width or (facts.width if facts else None) or DEFAULT_WIDTH
        height = self.height or (facts.height if facts else None) or DEFAULT_HEIGHT
        width, height = (self._side(side) for side in (width, height))
        clear = self.film.transparency if self.still is None else self.still.is_clear
        return View(width, height, self.fps, clear, self.scale, self.crop, self.page_fps)

    def check_page_fps(self) -> None:
        """Refuse a rate of the page that is no whole multiple of that of the film.

        Raises:
            ValueError: it is none.

        >>> RenderSpec(fps=Fraction(25), page_fps=Fraction(60)).check_page_fps()
        Traceback (most recent call last):
        ...
        ValueError: 60 is no whole multiple of 25 frames a second, such as 50, 75
        """
        if self.page_fps is None or (self.page_fps / self.fps).denominator == 1:
            return
        times = max(1, math.floor(self.page_fps / self.fps))
        near = [n * self.fps for n in (times, times + 1) if n * self.fps <= MAX_FPS]
        raise ValueError(
            f"{float(self.page_fps):g} is no whole multiple of {float(self.fps):g} frames a second,"
            f" such as {', '.join(f'{float(rate):g}' for rate in near)}"
        )

    def check_crop(self, width: int | None, height: int | None) -> None:
        """Refuse a crop that is not of whole pixels, or goes beyond a window.

        Args:
            width, height: of the window, as far as they are known.

        Raises:
            ValueError: it says why.

        >>> RenderSpec(crop=(1, 0, 64, 32), scale=1.5).check_crop(640, 360)
        Traceback (most recent call last):
        ...
        ValueError: 1,0,64,32 times 1.5 is not whole: 1.5,0,96,48 pixels
        """
        if self.crop is None:
            return
        if self.film.is_sound:
            raise ValueError(f".{self.film.container} has no pictures")
        text = ",".join(map(str, self.crop))
        scaled = [length * self.scale for length in self.crop]
        pixels = ",".join(f"{length:g}" for length in scaled)
        if any(length % 1 for length in scaled):
            raise ValueError(f"{text} times {self.scale:g} is not whole: {pixels} pixels")
        if self.still is None and (scaled[2] % 2 or scaled[3] % 2):
            raise ValueError(f"a film has even sides, not {scaled[2]:g} × {scaled[3]:g} pixels")
        left, top, wide, high = self.crop
        if (width is not None and left + wide > width) or (
            height is not None and top + high > height
        ):
            window = f"{width or 'any'} × {height or 'any'}"
            raise ValueError(f"{text} goes beyond the window of {window}")

    def _side(self, side: int) -> int:
        """A side that comes to whole pixels; to even ones in a film, as H.264 has them.

        A pixel more rather than one less.
        """
        side, step = max(side, 2), 1 if self.still is not None else 2
        while side * self.scale % step:
            side += 1
        return side


def frames_of(spec: RenderSpec, duration_ms: int) -> range:
    """The frames that are to be made of a film whose duration is known by now.

    Raises:
        PageFailed: none, as the range begins where the film has ended.
    """
    try:
        return spec.frames(duration_ms)
    except ValueError as error:
        raise PageFailed(
            f"{error}: the film is {duration_ms} ms long",
            advice="begin the range before that, or set a longer duration",
        ) from None


def _need_crop(spec: RenderSpec, view: View) -> None:
    try:
        spec.check_crop(view.width, view.height)
    except ValueError as error:
        raise PageFailed(f"crop: {error}", advice="crop within the page's window") from None


def settled(
    spec: RenderSpec, limits: Limits, look: Callable[[View], PageFacts]
) -> tuple[View, int | None]:
    """Size and duration (ms); the page is looked at only where something is left open.

    The duration is that of the film, also where only a range of it is wanted. It is None for
    stills, and where the page does not say either.

    Raises:
        TooLarge: more pixels than the limits allow; and as `look`.
    """
    view = spec.view()
    limits.check(view)
    if spec.width and spec.height:
        _need_crop(spec, view)
    is_film = spec.still is None
    if spec.width and spec.height and not (is_film and spec.end_ms is None):
        return view, spec.end_ms
    facts = look(view)
    view = spec.view(facts)
    limits.check(view)
    _need_crop(spec, view)
    if not is_film:
        return view, None
    return view, facts.duration_ms if spec.end_ms is None else spec.end_ms


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
