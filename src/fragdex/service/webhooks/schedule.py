"""When a delivery that failed is tried again: pauses that grow, and chance, against crowds."""

from __future__ import annotations

import random
from typing import Final

__all__ = ["PAUSES", "pause"]

PAUSES: Final = (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
"""Seconds after the first attempt, the second …: those that Standard Webhooks recommends."""

_JITTER: Final = 0.2
"""Up to this part longer."""
_LONGEST: Final = 86_400.0
"""A receiver that asks for more time gets so much."""


def pause(
    attempts: int, limit: int, retry_after: float | None = None, chance: float | None = None
) -> float | None:
    """Seconds until the next attempt; None: there is none.

    Args:
        attempts: that have failed, 1 or more.
        limit: attempts in all, 1 to 10.
        retry_after: what the receiver asks for, in seconds.
        chance: 0 to 1; drawn where it is None.

    >>> [pause(n, 4, chance=0) for n in (1, 2, 3, 4)]
    [5.0, 300.0, 1800.0, None]
    >>> pause(1, 4, retry_after=60, chance=0)
    60
    """
    if attempts >= min(limit, len(PAUSES) + 1):
        return None
    drawn = random.random() if chance is None else chance
    seconds = PAUSES[attempts - 1] * (1 + _JITTER * drawn)
    return max(seconds, min(retry_after or 0.0, _LONGEST))
