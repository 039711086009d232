"""Times as exact numbers: seconds in, ticks out, nothing rounded on the way."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import timedelta
from fractions import Fraction
from functools import total_ordering
from typing import Any, Final, Protocol, SupportsIndex, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from fragdex.record import record
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
@record(frozen=True, slots=True, eq=False)
class Time:
    """An instant of the presentation: ticks over a timescale.

    It can be given back to every function that takes seconds, and is exact, which
    `float(time)` need not be. It compares with numbers; `+`, `-`, `*` and `/` are exact and give a
    `Time`; of two times `/` gives their ratio.

    Attributes:
        ticks: whole ticks, or a fraction where the edit list falls between two.
        timescale: ticks a second.

    >>> Time(3, 10).seconds, Time(3, 10) == Time(6, 20), Time(3, 10) < 0.5
    (0.3, True, True)
    >>> Time(1001, 30000) + 1, Time(3, 10) - Time(1, 10), Time.parse("1:30")
    (Time(ticks=31001, timescale=30000), Time(ticks=2, timescale=10), Time(ticks=90, timescale=1))
    >>> f"{Time(37235, 10)}", f"{Time(37235, 10):.3f}"
    ('1:02:03.500', '3723.500')
    """

    ticks: int | Fraction
    timescale: int

    @classmethod
    def parse(cls, text: str) -> Time:
        """A time from a text: `90`, `90.5s`, `1:30` or `1:02:03.5`, as the exact number it is.

        Raises:
            ValueError: it is none of these.

        >>> Time.parse("0:01.5").seconds
        1.5
        """
        return cls._of(parse_time(text))

    @classmethod
    def _of(cls, seconds: Fraction) -> Time:
        return cls(seconds.numerator, seconds.denominator)

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

    def __str__(self) -> str:
        """As a clock, to the millisecond: `1:02:03.500`."""
        whole = round(abs(self.fraction) * 1000)
        minutes, milliseconds = divmod(whole, 60_000)
        clock = f"{minutes // 60}:{minutes % 60:02}:{milliseconds // 1000:02}"
        return f"{'-' if self.fraction < 0 and whole else ''}{clock}.{milliseconds % 1000:03}"

    def __format__(self, spec: str) -> str:
        """As a clock, or with a format of floats (`.3f`) as seconds."""
        return format(self.seconds, spec) if spec else str(self)

    def __eq__(self, other: object) -> bool:
        number = _number(other)
        return NotImplemented if number is None else self.fraction == number

    def __lt__(self, other: Ratio | SupportsIndex) -> bool:
        number = _number(other)
        return NotImplemented if number is None else self.fraction < number

    def __hash__(self) -> int:
        return hash(self.fraction)

    def __add__(self, other: Ratio | SupportsIndex | timedelta) -> Time:
        more = _finite(other)
        return NotImplemented if more is None else self._moved(more)

    __radd__ = __add__

    def __sub__(self, other: Ratio | SupportsIndex | timedelta) -> Time:
        less = _finite(other)
        return NotImplemented if less is None else self._moved(-less)

    def __rsub__(self, other: Ratio | SupportsIndex | timedelta) -> Time:
        whole = _finite(other)
        return NotImplemented if whole is None else (-self)._moved(whole)

    def __mul__(self, factor: Ratio | SupportsIndex) -> Time:
        times = None if isinstance(factor, (Time, timedelta)) else _finite(factor)
        return NotImplemented if times is None else self._with(self.ticks * times)

    __rmul__ = __mul__

    @overload
    def __truediv__(self, other: Time) -> Fraction: ...  # type: ignore[overload-overlap]
    @overload
    def __truediv__(self, other: Ratio | SupportsIndex) -> Time: ...
    def __truediv__(self, other: Ratio | SupportsIndex) -> Time | Fraction:
        if isinstance(other, Time):
            return self.fraction / other.fraction
        by = None if isinstance(other, timedelta) else _finite(other)
        return NotImplemented if by is None else self._with(Fraction(self.ticks) / by)

    def __neg__(self) -> Time:
        return Time(-self.ticks, self.timescale)

    def __abs__(self) -> Time:
        return -self if self.ticks < 0 else self

    def _with(self, ticks: int | Fraction) -> Time:
        return Time(int(ticks) if ticks.denominator == 1 else ticks, self.timescale)

    def _moved(self, seconds: Fraction) -> Time:
        return self._with(self.ticks + seconds * self.timescale)


def _number(other: object) -> Fraction | float | None:
    """What a time is compared with: an exact number, or an infinity or NaN; None: no number."""
    if isinstance(other, Time):
        return other.fraction
    if isinstance(other, (int, float, Fraction)):
        return other
    if not _is_number(other):
        return None
    try:
        return Fraction(*_ratio(other))
    except (ValueError, OverflowError):  # NaN or infinite
        return float(other)  # type: ignore[arg-type]


def _finite(other: object) -> Fraction | None:
    """What can be added to a time, as seconds; None: it cannot."""
    return Fraction(*_ratio(other)) if _is_number(other) or isinstance(other, timedelta) else None


def _is_number(other: object) -> bool:
    is_number = hasattr(other, "as_integer_ratio") or hasattr(other, "__index__")
    return is_number and not isinstance(other, np.ndarray)


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
