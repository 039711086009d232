"""The window that a page is seen through, and the instants at which it is looked at."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

__all__ = ["DEFAULT_HEIGHT", "DEFAULT_WIDTH", "GRID_US", "View", "instant_us", "protocol_ms"]

DEFAULT_WIDTH: Final = 1280
DEFAULT_HEIGHT: Final = 720

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


@dataclass(frozen=True, slots=True)
class View:
    """The window that a page is seen through, and how often it is looked at.

    Args:
        width: CSS pixels, which are the frame's pixels.
        height: the same.
        fps: frames a second; 29.97 means 30000/1001.
        transparent: whether the page's own background stays transparent.
    """

    width: int = DEFAULT_WIDTH
    height: int = DEFAULT_HEIGHT
    fps: Fraction = Fraction(30)
    transparent: bool = False
