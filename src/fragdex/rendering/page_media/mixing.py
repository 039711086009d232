"""Strips become sound, block by block.

Full scale is not passed: where a sum would be too loud, it is turned down for that moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Final

import numpy as np

from fragdex.decoding.mixing import Floats
from fragdex.errors import FragdexError, ServiceError
from fragdex.rendering.outside import Blocked
from fragdex.rendering.page_media.opening import OpenMedia
from fragdex.rendering.page_media.strips import SAMPLE_RATE, SoundStrip
from fragdex.rendering.page_media.voices import Voice

__all__ = ["Limiter", "mix"]

BLOCK: Final = SAMPLE_RATE
"""Samples that are mixed at once."""
WINDOW: Final = 240
"""Samples (5 ms) over which loudness is turned down and up again."""
_FAULTS: Final = (FragdexError, ServiceError, Blocked, OSError, ValueError, ArithmeticError)


def mix(
    strips: Iterable[SoundStrip],
    open_media: OpenMedia,
    stop: float | Fraction,
    failed: Callable[[str], None] = lambda _: None,
    *,
    start: float | Fraction = 0,
) -> Iterator[Floats]:
    """The sound of a render, or of a range of it: the same samples.

    What is heard at the same time is added; where the sum would pass full scale it is turned down
    for that moment. Memory is that of a few seconds, however long the render is.

    Args:
        strips: of all slices, by `joined`.
        open_media: source of a strip → its bytes.
        stop: seconds on the time line of the render; exclusive.
        failed: told what cannot be decoded, and stays silent.
        start: likewise; inclusive.

    Yields: arrays of shape (at most 48,000, 2), float32 between -1 and 1; together the samples
    between both ends, each end rounded.

    >>> sum(len(block) for block in mix([], None, Fraction(5, 2)))
    120000
    """
    first, total = (round(Fraction(at) * SAMPLE_RATE) for at in (start, stop))
    blocks = _mixed(strips, open_media, first - first % BLOCK, total, failed)
    unheard = first % BLOCK
    for block in blocks:
        if unheard < len(block):
            yield block[unheard:]
        unheard = max(0, unheard - len(block))


def _mixed(
    strips: Iterable[SoundStrip], open_media: OpenMedia, first: int, total: int,
    failed: Callable[[str], None],
) -> Iterator[Floats]:  # fmt: skip
    """The samples from the first, where a block begins, until the last, exclusive."""
    waiting = sorted(strips, key=lambda strip: strip.start, reverse=True)
    voices: list[Voice] = []
    limiter = Limiter()
    for start in range(first, total, BLOCK):
        stop = min(start + BLOCK, total)
        while waiting and waiting[-1].start * SAMPLE_RATE < stop:
            strip = waiting.pop()
            try:
                voices.append(Voice(strip, open_media))
            except _FAULTS as error:
                failed(f"{strip.source[:120]}: {error}")
        block = np.zeros((stop - start, 2), np.float32)
        for voice in list(voices):
            try:
                voice.add_to(block, start)
            except _FAULTS as error:
                failed(f"{voice.strip.source[:120]}: {error}")
                voice.stop = start
            if voice.stop <= stop:
                voices.remove(voice)
                voice.close()
        yield from limiter.take(block)
    yield from limiter.rest()


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
