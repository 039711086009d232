"""Strips become sound, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Final

import numpy as np

from fragdex.decoding.mixing import Floats
from fragdex.errors import FragdexError
from fragdex.service.errors import ServiceError
from fragdex.service.renders.outside import Blocked
from fragdex.service.renders.page_media.limiting import Limiter
from fragdex.service.renders.page_media.opening import OpenMedia
from fragdex.service.renders.page_media.strips import SAMPLE_RATE, SoundStrip
from fragdex.service.renders.page_media.voices import Voice

__all__ = ["mix"]

BLOCK: Final = SAMPLE_RATE
"""Samples that are mixed at once."""
_FAULTS: Final = (FragdexError, ServiceError, Blocked, OSError, ValueError, ArithmeticError)


def mix(
    strips: Iterable[SoundStrip],
    open_media: OpenMedia,
    duration: float | Fraction,
    failed: Callable[[str], None] = lambda _: None,
) -> Iterator[Floats]:
    """The sound of a render.

    What is heard at the same time is added; where the sum would pass full scale it is turned down
    for that moment. Memory is that of a few seconds, however long the render is.

    Args:
        strips: of all slices, by `joined`.
        open_media: source of a strip → its bytes.
        duration: seconds.
        failed: told what cannot be decoded, and stays silent.

    Yields: arrays of shape (at most 48,000, 2), float32 between -1 and 1; together as many samples
    as the duration has, rounded.

    >>> sum(len(block) for block in mix([], None, Fraction(5, 2)))
    120000
    """
    total = round(Fraction(duration) * SAMPLE_RATE)
    waiting = sorted(strips, key=lambda strip: strip.start, reverse=True)
    voices: list[Voice] = []
    limiter = Limiter()
    for start in range(0, total, BLOCK):
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
