"""Times as exact numbers: seconds in, ticks out, nothing rounded on the way."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from functools import total_ordering
from typing import TYPE_CHECKING, Any, Final, Protocol, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from fragdex.renamed import OldName
from fragdex.seeking.finding import last_tick
from fragdex.seeking.time_texts import parse_time

__all__ = [
    "NO_SHIFT",
    "Ratio",
    "Time",
    "TimeLike",
    "exact_time",
    "floor_ticks",
    "floor_ticks_many",
    "presentation",
    "ticks_of_many",
]


class Ratio(Protocol):
    """A number that is a fraction of whole numbers: int, float, Fraction, Decimal, np.float64."""

    def as_integer_ratio(self) -> tuple[int, int]:
        """Numerator and denominator, in lowest terms."""


NO_SHIFT: Final = Fraction(0)
"""The shift of durations: none."""

TimeLike: TypeAlias = Ratio | SupportsIndex | timedelta | str
"""What every function takes as a time: a number of seconds (`Time`, int, float, Fraction, Decimal,
numpy scalar), a timedelta, or a text (`90`, `90.5s`, `1:30`, `1:02:03.5`)."""


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

    if not TYPE_CHECKING:
        exact = OldName()

    @property
    def fraction(self) -> Fraction:
        """Seconds as a fraction."""
        return Fraction(self.ticks) / self.timescale

    @property
    def seconds(self) -> float:
        """Seconds as the nearest float."""
        return float(self.fraction)

    def as_integer_ratio(self) -> tuple[int, int]:
        """Numerator and denominator of the seconds, in lowest terms."""
        return self.fraction.as_integer_ratio()

    def __float__(self) -> float:
        return self.seconds

    def __eq__(self, other: object) -> bool:
        return self.fraction == (other.fraction if isinstance(other, Time) else other)

    def __lt__(self, other: Time | float | Fraction) -> bool:
        return self.fraction < (other.fraction if isinstance(other, Time) else other)

    def __hash__(self) -> int:
        return hash(self.fraction)


def presentation(cts: int, shift: Fraction, timescale: int) -> Time:
    """Presentation time of a composition time: whole ticks where the edit list allows it.

    >>> presentation(3003, Fraction(-3003), 30000).ticks
    0
    """
    if not shift:
        return Time(cts, timescale)
    pts = cts + shift
    return Time(pts.numerator if pts.denominator == 1 else pts, timescale)


def exact_time(time: TimeLike) -> Fraction | float:
    """A time in seconds as the exact number it is; a float where it is infinite.

    Raises:
        ValueError: it is NaN, or a string that is not a time (see `parse_time`).
        TypeError: it is not a time at all.

    >>> exact_time(timedelta(milliseconds=1500)), exact_time("1:30"), exact_time(math.inf)
    (Fraction(3, 2), Fraction(90, 1), inf)
    """
    try:
        over, under = _ratio(time)
    except OverflowError:
        return math.copysign(math.inf, time)  # type: ignore[arg-type]  # of a number alone
    return Fraction(over, under)


def _ratio(time: Any) -> tuple[int, int]:
    """Numerator and denominator of any time.

    Raises:
        OverflowError: it is infinite.
        ValueError, TypeError: as `exact_time`.
    """
    if hasattr(time, "as_integer_ratio"):
        try:
            over, under = time.as_integer_ratio()
        except ValueError:
            raise ValueError("the time is not a number (NaN)") from None
        return int(over), int(under)
    if isinstance(time, str):
        return parse_time(time).as_integer_ratio()
    if isinstance(time, timedelta):
        return Fraction(time // timedelta(microseconds=1), 1_000_000).as_integer_ratio()
    if isinstance(time, np.timedelta64):
        if np.isnat(time):
            raise ValueError("the time is not a time (NaT)")
        return Fraction(int(time.astype("m8[ns]").astype(np.int64)), 10**9).as_integer_ratio()
    if hasattr(time, "__index__") and not isinstance(time, np.ndarray):
        return int(time.__index__()), 1
    raise TypeError(
        'a time is a number of seconds, a timedelta or a text such as "1:02:03.5", not '
        f"{type(time).__name__}"
    )


def floor_ticks(seconds: TimeLike, timescale: int, shift: Fraction) -> int:
    """The last media tick at or before a presentation time: floor(seconds × timescale − shift).

    Args:
        seconds: taken as the exact number it is; infinities give ±2^63.
        timescale: ticks a second.
        shift: ticks added to a composition time to get the presentation time.

    Raises:
        ValueError, TypeError: as `exact_time`.

    >>> floor_ticks(0.1, 90000, Fraction(0))  # the float 0.1 is a little more than 1/10
    9000
    """
    try:
        # Numbers come here a million times, everything else now and then.
        over, under = seconds.as_integer_ratio()  # type: ignore[union-attr]
    except (AttributeError, ValueError):
        over, under = _ratio(seconds)
    except OverflowError:
        return 2**63 if seconds > 0 else -(2**63)  # type: ignore[operator]
    if not shift:
        return int(over * timescale // under)
    return int(last_tick((over, under), timescale, shift.as_integer_ratio()))


def ticks_of_many(
    times: npt.ArrayLike | Iterable[TimeLike], timescale: int, shift: Fraction
) -> npt.NDArray[np.int64]:
    """`floor_ticks` of an array of numbers, or of any times one by one; in one dimension.

    >>> ticks_of_many([0.5, 2], 10, Fraction(0)), ticks_of_many(["0.3", "1:00"], 10, Fraction(0))
    (array([ 5, 20]), array([  3, 600]))
    """
    given: Any = list(times) if isinstance(times, Iterator) else times
    array = np.asarray(given)
    if array.dtype.kind in "fiub" or not array.size:
        return floor_ticks_many(np.asarray(array, np.float64).ravel(), timescale, shift)
    # An array of texts or timedeltas gives numpy's own scalars, a list what it held.
    return _one_by_one(array.ravel() if array.ndim != 1 else given, timescale, shift)


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
        raise ValueError("the time is not a number (NaN)")
    numerator, denominator = shift.as_integer_ratio()
    scale = timescale * denominator
    if scale >= 2**53 or abs(numerator) >= 2**53:
        return _one_by_one(seconds.tolist(), timescale, shift)
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
        ticks[far] = _one_by_one(seconds[far].tolist(), timescale, shift)
    return ticks


def _one_by_one(
    seconds: Iterable[TimeLike], timescale: int, shift: Fraction
) -> npt.NDArray[np.int64]:
    values = [floor_ticks(t, timescale, shift) for t in seconds]
    return np.array([min(max(v, -(2**63)), 2**63 - 1) for v in values], np.int64)
