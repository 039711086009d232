"""The window that a page is seen through, and the instants at which it is looked at."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

DEFAULT_WIDTH: Final = 1280
DEFAULT_HEIGHT: Final = 720

SCALE_STEP: Final = 0.25
SCALES: Final = tuple(step * SCALE_STEP for step in range(2, 17))
"""Values of `View.scale`: Chromium goes no lower; any side is whole with a few pixels more."""

GRID_US: Final = 100
"""The page's clocks tell tenths of a millisecond; instants between two would be told by chance."""


def instant_us(i: int, fps: Fraction) -> int:
    """When frame i is, in µs after frame 0.

    Rounded up to the grid of the page's clocks, so that a page that computes `floor(t * fps)`
    from the time that it is told gets i. Rates that are no whole numbers are rounded in the page,
    too: there an instant on the grid itself would be a hair too early.

    >>> [instant_us(i, Fraction(30000, 1001)) for i in (0, 1, 2, 30)]
    [0, 33400, 66800, 1001100]
    """
    if i and fps.denominator != 1:
        return (i * 1_000_000 * fps.denominator // (fps.numerator * GRID_US) + 1) * GRID_US
    return -(-i * 1_000_000 * fps.denominator // (fps.numerator * GRID_US)) * GRID_US


def protocol_ms(us: int) -> float:
    """Microseconds as the milliseconds of the DevTools protocol.

    Chromium multiplies by 1000 and, in some releases (150), cuts off what is behind the point: of
    one in a hundred instants that lost a whole microsecond, and with it a step of the page's
    clocks. A quarter of a microsecond more is none too many for those that round.

    >>> int(32_300 / 1000 * 1000), int(protocol_ms(32_300) * 1000)
    (32299, 32300)
    """
    return (us + 0.25) / 1000


Crop = tuple[int, int, int, int]
"""Left, top, width, height."""


@dataclass(frozen=True, slots=True)
class View:
    """The window that a page is seen through, and how often it is looked at.

    Args:
        width: CSS pixels.
        height: the same.
        fps: frames a second; 29.97 means 30000/1001.
        transparent: whether the page's own background stays transparent.
        scale: pixels of a frame for each CSS pixel of a side, the page's `devicePixelRatio`; a
            multiple of 1/4.
        crop: left, top, width and height of what frames show of the window, in CSS pixels that come
            to whole pixels; None: all of it.
        page_fps: times a second that the page is called for a frame, a multiple of `fps`; None:
            as often as it is looked at.

    >>> View(1280, 720, scale=1.5).pixels, View(1280, 720, scale=1.5, crop=(0, 8, 64, 32)).frame
    ((1920, 1080), (96, 48))
    """

    width: int = DEFAULT_WIDTH
    height: int = DEFAULT_HEIGHT
    fps: Fraction = Fraction(30)
    transparent: bool = False
    scale: float = 1.0
    crop: Crop | None = None
    page_fps: Fraction | None = None

    @property
    def pixels(self) -> tuple[int, int]:
        """Width and height of what the browser draws."""
        return math.ceil(self.width * self.scale), math.ceil(self.height * self.scale)

    @property
    def crop_pixels(self) -> Crop | None:
        """The crop in pixels."""
        if self.crop is None:
            return None
        left, top, width, height = (round(length * self.scale) for length in self.crop)
        return left, top, width, height

    @property
    def frame(self) -> tuple[int, int]:
        """Width and height of a frame, in pixels."""
        crop = self.crop_pixels
        return self.pixels if crop is None else crop[2:]


def between_us(i: int, view: View) -> list[int]:
    """When the page is called for frames that nobody sees, after frame i - 1 and before frame i.

    >>> between_us(2, View(fps=Fraction(10), page_fps=Fraction(30)))
    [133400, 166700]
    """
    if view.page_fps is None or i == 0:
        return []
    times = int(view.page_fps / view.fps)
    return [instant_us(k, view.page_fps) for k in range((i - 1) * times + 1, i * times)]
