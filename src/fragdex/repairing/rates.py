"""How many pictures a second a stream has, by what several witnesses say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Final

MOST_RATE: Final = 1000
DEFAULT_RATE: Final = Fraction(25)
NTSC: Final = Fraction(1000, 1001)
FILM_PACES: Final = frozenset({24, 30, 48, 60, 96, 120, 240})
"""Counts of a clock that stand for themselves, or for a thousandth less (23.976, 29.97 …)."""
USUAL: Final = tuple(
    sorted(
        {Fraction(pace) for pace in (10, 12, 15, 20, 25, 50, 100, 200)}
        | {Fraction(pace) for pace in FILM_PACES}
        | {pace * NTSC for pace in FILM_PACES}
    )
)
"""Rates that cameras have."""
LEAST_MOMENTS: Final = 4
"""Moments between which a rate is believed."""
NEAR: Final = Fraction(1, 10_000)
"""Part by which two rates may differ and still be one."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Pictures a second, as something says.

    Attributes:
        value: the rate.
        witness: what says so, in words.
        low, high: between which it lies; None: exactly the value.
    """

    value: Fraction
    witness: str
    low: Fraction | None = None
    high: Fraction | None = None

    @property
    def bounds(self) -> tuple[Fraction, Fraction]:
        """The lowest and the highest rate that it may mean."""
        low = self.value if self.low is None else self.low
        high = self.value if self.high is None else self.high
        return low, high

    @property
    def is_exact(self) -> bool:
        """Whether it means one rate alone."""
        return self.low in (None, self.value) and self.high in (None, self.value)

    def fits(self, other: Rate) -> bool:
        """Whether both can be true.

        >>> Rate(Fraction(30), "a clock", low=30 * NTSC).fits(Rate(30 * NTSC, "parameter sets"))
        True
        """
        (low, high), (least, most) = self.bounds, other.bounds
        near = 1 + NEAR
        return low <= most * near and least <= high * near


def text_of(rate: Fraction) -> str:
    """A rate as people write it.

    >>> text_of(Fraction(25)), text_of(30 * NTSC)
    ('25', '29.970')
    """
    return str(rate) if rate.denominator == 1 else f"{float(rate):.3f}"


def decided(rates: Sequence[Rate], *, is_given: bool = False) -> tuple[Fraction, list[str]]:
    """The rate that is taken, and what is a guess or contradicts it, as sentences.

    Args:
        rates: what witnesses say, those first that are believed first; two of them that agree are
            believed rather than one.
        is_given: the first one is believed whatever others say.

    >>> decided([Rate(Fraction(50), "parameter sets"), Rate(Fraction(25), "clock timestamps")])[1]
    ['clock timestamps say 25 pictures a second, parameter sets 50: 50 are taken']
    """
    if not rates:
        return DEFAULT_RATE, [f"no rate is known: {DEFAULT_RATE} pictures a second are taken"]
    chosen = rates[0]
    if not is_given:
        backed = [sum(other.fits(one) for other in rates) for one in rates]
        chosen = rates[backed.index(max(backed))]
    if not chosen.is_exact:
        fitting = [one for one in rates if one.fits(chosen)]
        chosen = min(fitting, key=lambda one: one.bounds[1] - one.bounds[0])
    taken = text_of(chosen.value)
    sentences = []
    if not chosen.is_exact:
        low, high = (text_of(one) for one in chosen.bounds)
        sentences.append(
            f"the rate is a guess: {chosen.witness} say {low} to {high} pictures a second,"
            f" {taken} are taken"
        )
    sentences += [
        f"{other.witness} say {text_of(other.value)} pictures a second, {chosen.witness} {taken}:"
        f" {taken} are taken"
        for other in rates
        if not other.fits(chosen)
    ]
    return chosen.value, sentences


def rate_between(numbers: Sequence[int], times: Sequence[Fraction], witness: str) -> Rate | None:
    """Pictures a second between moments; None: time does not pass, or no picture.

    Args:
        numbers: of pictures before each moment.
        times: of the moments, in seconds.
        witness: what says when they are.

    >>> rate_between([0, 31, 60, 91], [Fraction(n) for n in range(4)], "a clock").value
    Fraction(30, 1)
    """
    if len(numbers) < LEAST_MOMENTS or any(b <= a for a, b in pairwise(times)):
        return None
    count, length = numbers[-1] - numbers[0], times[-1] - times[0]
    if count <= 0:
        return None
    each = Fraction(count) / length
    pairs = zip(numbers, times, strict=True)
    off = 1 + max(abs(number - numbers[0] - each * (time - times[0])) for number, time in pairs)
    low, high = max(each - off / length, Fraction(0)), each + off / length
    usual = [rate for rate in USUAL if low <= rate <= high]
    value = min(usual, key=lambda rate: abs(rate - each)) if usual else each.limit_denominator(1001)
    return Rate(value, witness, low, high) if 0 < value <= MOST_RATE else None
