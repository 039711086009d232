"""Full scale is not passed: where a sum would be too loud, it is turned down for that moment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from fragdex.decoding.mixing import Floats

__all__ = ["Limiter"]

WINDOW: Final = 240
"""Samples (5 ms) over which loudness is turned down and up again."""


class Limiter:
    """Turns sound down where it is above full scale, and leaves everything else as it is.

    Each window of 5 ms has a gain at which it would be within full scale. At the border of two
    windows the lesser of both holds, and in between it goes in a straight line: so no sample
    passes full scale, and nothing jumps. The last window waits until the next one is known.

    >>> loud = np.full((480, 2), 2.0, np.float32)
    >>> limiter = Limiter()
    >>> whole = np.concatenate([*limiter.take(loud), *limiter.rest()])
    >>> whole.shape, float(abs(whole).max())
    ((480, 2), 1.0)
    """

    def __init__(self) -> None:
        self._held = np.zeros((0, 2), np.float32)
        self._before = 1.0  # the gain at the border in front of what is held

    def take(self, block: Floats) -> Iterator[Floats]:
        """What can be given out now."""
        joined = np.concatenate([self._held, block])
        ready = max(0, (len(joined) - WINDOW) // WINDOW) * WINDOW
        if ready:
            yield self._turned(joined[:ready], joined[ready : ready + WINDOW])
        self._held = joined[ready:]

    def rest(self) -> Iterator[Floats]:
        """What is left at the end."""
        if len(self._held):
            yield self._turned(self._held, self._held[:0])
            self._held = self._held[:0]

    def _turned(self, sound: Floats, following: Floats) -> Floats:
        loudest = np.abs(sound).max(initial=0.0)
        after = _gain(following)
        if loudest <= 1 and after == 1 and self._before == 1:
            return sound
        gains = [_gain(sound[at : at + WINDOW]) for at in range(0, len(sound), WINDOW)]
        borders = [self._before, *map(min, gains, [*gains[1:], after])]
        places = np.minimum(np.arange(len(borders)) * WINDOW, len(sound))
        curve = np.interp(np.arange(len(sound)), places, borders)
        self._before = borders[-1]
        turned: Floats = sound * curve[:, None].astype(np.float32)
        return np.clip(turned, -1, 1, out=turned)


def _gain(window: Floats) -> float:
    return 1 / max(1.0, float(np.abs(window).max(initial=0.0)))
