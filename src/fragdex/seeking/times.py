"""Times as exact numbers: seconds in, ticks out, nothing rounded on the way."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import total_ordering
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Time", "floor_ticks", "floor_ticks_many", "presentation"]


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Time:
    """An instant of the presentation: ticks over a timescale.

    It can be given back to every function that takes seconds, and is exact, which
    `float(time)` need not be.

    Attributes:
        ticks: whole ticks, or a fraction where the edit list falls between two.
        timescale: ticks a second.

    >>> Time(3, 10).seconds, Time(3, 10) == Time(6, 20)
    (0.3, True)
    """

    ticks: int | Fraction
    timescale: int

    @property
    def exact(self) -> Fraction:
        """Seconds as a fraction."""
        return Fraction(self.ticks) / self.timescale

    @property
    def seconds(self) -> float:
        """Seconds as the nearest float."""
        return float(self.exact)

    def as_integer_ratio(self) -> tuple[int, int]:
        """Numerator and denominator of the seconds, in lowest terms."""
        return self.exact.as_integer_ratio()

    def __float__(self) -> float:
        return self.seconds

    def __eq__(self, other: object) -> bool:
        return self.exact == (other.exact if isinstance(other, Time) else other)

    def __lt__(self, other: Time | float | Fraction) -> bool:
        return self.exact < (other.exact if isinstance(other, Time) else other)

    def __hash__(self) -> int:
        return hash(self.exact)


def presentation(cts: int, shift: Fraction, timescale: int) -> Time:
    """Presentation time of a composition time: whole ticks where the edit list allows it.

    >>> presentation(3003, Fraction(-3003), 30000).ticks
    0
    """
    if not shift:
        return Time(cts, timescale)
    pts = cts + shift
    return Time(pts.numerator if pts.denominator == 1 else pts, timescale)


def floor_ticks(seconds: Any, timescale: int, shift: Fraction) -> int:
    """The last media tick at or before a presentation time: floor(seconds × timescale − shift).

    Args:
        seconds: int, float, Fraction, Decimal, numpy scalar or Time; taken as the exact number
            it is. Infinities give ±2^63.
        timescale: ticks a second.
        shift: ticks added to a composition time to get the presentation time.

    Raises:
        ValueError: the time is NaN.

    >>> floor_ticks(0.1, 90000, Fraction(0))  # the float 0.1 is a little more than 1/10
    9000
    """
    try:
        over, under = seconds.as_integer_ratio()
    except OverflowError:
        return 2**63 if seconds > 0 else -(2**63)
    except ValueError:
        raise ValueError("a time to seek to is not a number") from None
    if not shift:
        return int(over * timescale // under)
    numerator, denominator = shift.as_integer_ratio()
    return int((over * timescale * denominator - numerator * under) // (under * denominator))


_SPLITTER = float(2**27 + 1)  # Dekker's constant for 53-bit significands


def floor_ticks_many(
    seconds: npt.NDArray[np.float64], timescale: int, shift: Fraction
) -> npt.NDArray[np.int64]:
    """`floor_ticks` of many float64 times, just as exact; results are cut to the int64 range.

    The product t × timescale is computed together with its rounding error (Dekker 1971); the
    error decides where the product falls on a whole tick.

    >>> floor_ticks_many(np.array([0.1, 0.3]), 10, Fraction(0))  # the float 0.3 is below 3/10
    array([1, 2])
    """
    if np.isnan(seconds).any():
        raise ValueError("a time to seek to is not a number")
    numerator, denominator = shift.as_integer_ratio()
    scale = timescale * denominator
    if scale >= 2**53 or abs(numerator) >= 2**53:
        return _one_by_one(seconds, timescale, shift)
    # Beyond 2^52 ticks a float64 product has no fraction left; few files start that late.
    bound = math.ldexp(1.0, 52) / scale
    far = np.abs(seconds) > bound
    t = np.where(far, 0.0, seconds)
    product = t * scale
    high = _SPLITTER * t
    high -= high - t
    low = t - high
    scale_high = float(_SPLITTER * scale - (_SPLITTER * scale - scale))
    scale_low = float(scale - scale_high)
    error = ((high * scale_high - product) + high * scale_low + low * scale_high) + low * scale_low
    whole = np.floor(product)
    whole -= (whole == product) & (error < 0)
    ticks: npt.NDArray[np.int64] = whole.astype(np.int64) - numerator
    if denominator != 1:
        ticks = np.floor_divide(ticks, denominator)
    if far.any():
        ticks[far] = _one_by_one(seconds[far], timescale, shift)
    return ticks


def _one_by_one(
    seconds: npt.NDArray[np.float64], timescale: int, shift: Fraction
) -> npt.NDArray[np.int64]:
    values = [floor_ticks(t, timescale, shift) for t in seconds.tolist()]
    return np.array([min(max(v, -(2**63)), 2**63 - 1) for v in values], np.int64)
