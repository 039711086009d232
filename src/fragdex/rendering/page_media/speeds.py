"""Sound at another speed: with its pitch kept, as players do by default, or moved along with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from fragdex.decoding.mixing import Floats

__all__ = ["Resampled", "Stretched"]

Read = Callable[[int, int], Floats]

GRAIN: Final = 1440
"""Samples (30 ms) of a grain: some periods of a deep voice."""
HOP: Final = GRAIN // 2
SEARCH: Final = 384
"""Samples (8 ms) by which a grain may lie beside its place, to go on where the last one ended."""
TAPS: Final = 16
"""Samples on each side from which one sample between two is made."""
PHASES: Final = 1024
"""Places between two samples that are told apart."""
AT_ONCE: Final = 8192


class Stretched:
    """Sound whose pitch stays: grains of it, laid closer or wider (waveform similarity).

    Each grain stands, give or take 8 ms, where its time is; which of these places is taken is
    decided by likeness to what would have followed the grain before.

    Args:
        read: samples of the source; may be asked for in any order, is asked for forwards.
        start: the sample of the source that is heard first.
        rate: samples of the source a sample.

    >>> silent = Stretched(lambda start, stop: np.zeros((stop - start, 2), np.float32), 0, 2.0)
    >>> silent.next(1000).shape
    (1000, 2)
    """

    def __init__(self, read: Read, start: int, rate: float) -> None:
        self._read, self._start, self._rate = read, start, rate
        self._window = np.hanning(GRAIN + 1)[:GRAIN, None].astype(np.float32)
        self._ready = np.zeros((0, 2), np.float32)
        self._tail = np.zeros((HOP, 2), np.float32)
        self._grain = 0
        self._last: int | None = None

    def next(self, count: int) -> Floats:
        """The next samples."""
        parts, size = [self._ready], len(self._ready)
        while size < count:
            parts.append(self._hop())
            size += HOP
        whole = np.concatenate(parts)
        self._ready = whole[count:]
        return whole[:count]

    def _hop(self) -> Floats:
        """Half a grain: the end of the last one over the beginning of this one."""
        # The first grain's middle is the first sample: its first half lies before the start.
        middle = self._start + round(self._grain * HOP * self._rate)
        self._grain += 1
        place = middle - HOP
        if self._last is not None:
            place += self._nearest(place, self._last + HOP)
        self._last = place
        grain = self._read(place, place + GRAIN) * self._window
        if self._grain == 1:
            # Nothing was heard before: no fading in.
            self._tail = grain[HOP:]
            return self._hop()
        done: Floats = self._tail + grain[:HOP]
        self._tail = grain[HOP:]
        return done

    def _nearest(self, place: int, wanted: int) -> int:
        """How far beside its place the source is most like what is wanted."""
        # Every other sample of both channels is enough to hear likeness.
        pattern = self._read(wanted, wanted + HOP).sum(axis=1)[::2]
        around = self._read(place - SEARCH, place + SEARCH + HOP).sum(axis=1)[::2]
        if not pattern.any() or not around.any():
            return 0
        likeness = np.correlate(around, pattern, "valid")
        energy = np.convolve(around * around, np.ones(len(pattern), np.float32), "valid")
        score = likeness / np.sqrt(np.maximum(energy, 1e-9))
        # Of places alike (silence, a steady tone) the nearest.
        score -= np.abs(np.arange(len(score)) - SEARCH // 2) * (1e-6 * float(score.max()))
        return int(score.argmax()) * 2 - SEARCH


class Resampled:
    """Sound whose pitch moves with its speed, as a record's.

    Args: as of `Stretched`.

    >>> ramp = Resampled(lambda a, b: np.arange(a, b, dtype=np.float32)[:, None] * [1, 1], 100, 0.5)
    >>> ramp.next(3)[:, 0].round(2).tolist()
    [100.0, 100.5, 101.0]
    """

    def __init__(self, read: Read, start: int, rate: float) -> None:
        self._read, self._start, self._rate = read, start, rate
        self._done = 0
        # Above the source's own speed what would be too high to stand is left out.
        width = max(1.0, rate)
        self._reach = int(np.ceil(TAPS * width))
        taps = np.arange(1 - self._reach, self._reach + 1)
        distance = (taps - np.arange(PHASES + 1)[:, None] / PHASES) / width
        weights = np.sinc(distance) * np.cos(np.clip(distance / TAPS, -1, 1) * (np.pi / 2)) ** 2
        self._weights = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)

    def next(self, count: int) -> Floats:
        """The next samples."""
        parts = [self._some(min(AT_ONCE, count - at)) for at in range(0, count, AT_ONCE)]
        return np.concatenate(parts) if parts else np.zeros((0, 2), np.float32)

    def _some(self, count: int) -> Floats:
        places = self._start + np.arange(self._done, self._done + count) * self._rate
        self._done += count
        whole = np.floor(places).astype(np.int64)
        weights = self._weights[np.rint((places - whole) * PHASES).astype(np.int64)]
        first, reach = int(whole[0]) - self._reach + 1, self._reach
        source = self._read(first, int(whole[-1]) + reach + 1).astype(np.float32)
        windows = np.lib.stride_tricks.sliding_window_view(source, 2 * reach, axis=0)
        chosen = windows[whole - int(whole[0])]
        found: Floats = np.einsum("nct,nt->nc", chosen, weights)
        return found
