"""Frames a second, exactly."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

__all__ = ["MAX_FPS", "RATE", "rate_of"]

MAX_FPS: Final = 120

# Rates that are written with two or three digits and mean a thousandth less than whole (SMPTE).
_NTSC: Final = {round(1000 * n / 1.001): Fraction(1000 * n, 1001) for n in (24, 30, 48, 60, 120)}
RATE: Final = "[0-9]{1,6}(?:/[1-9][0-9]{0,4})?"
"""What a rate looks like that is written out."""

_RATE: Final = re.compile(RATE)


def rate_of(value: float | str) -> Fraction:
    """Frames a second, exactly.

    >>> rate_of(29.97), rate_of("30000/1001"), rate_of(25), rate_of(12.5)
    (Fraction(30000, 1001), Fraction(30000, 1001), Fraction(25, 1), Fraction(25, 2))

    Raises:
        ValueError: no rate, or none between 1 and 120.
    """
    if isinstance(value, str):
        if not _RATE.fullmatch(value):
            raise ValueError("a number, or a fraction such as 30000/1001, is expected")
        rate = Fraction(value)
    elif isinstance(value, int):
        rate = Fraction(value)
    else:
        near = min(_NTSC, key=lambda thousandths: abs(thousandths - 1000 * value))
        rate = _NTSC[near] if abs(near - 1000 * value) < 6 else Fraction(str(value))
        rate = rate.limit_denominator(1001)
    if not 1 <= rate <= MAX_FPS:
        raise ValueError(f"frames a second are 1 to {MAX_FPS}")
    return rate
