"""Where sound is quiet: thresholds, cuts between slices, utterances.

Everything counts in frames of 10 ms, on a grid that begins at presentation time 0. What is found
is a function of the sound alone, so that two slices agree about the cut between them though each
looks for it by itself; and what an engine is given to hear does not depend on the slices at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

SAMPLE_RATE = 16_000
FRAME_MS = 10
FRAME = SAMPLE_RATE * FRAME_MS // 1000
"""Samples of a frame."""
UNIT = 1000
"""Frames: near each multiple of that there is a cut, whatever the slices are.

An engine tells words by those around them, and its levels by all of an utterance: give it more or
less of the same speech, and words that it was not sure of change, some of them far from the edge.
So nothing but the sound decides where long speech without a pause is parted. Shorter units would
hear more of it twice, longer ones leave slices of ten seconds without a border of their own.
"""
REACH = 300
"""Frames that a cut may lie away from its border: both neighbours read so much, and what lies
between two cuts is never very short."""
PAUSE = 30
"""Frames of quiet that part two utterances."""
PADDING = 20
"""Frames of quiet that an utterance keeps on each side, never past the middle of a pause."""
SHORT_PAUSE = 8
"""Frames of quiet that may lie between two words, and hardly within one."""
HARD_CONTEXT = 150
"""Frames that are heard beyond a cut without a pause, so that its words are heard whole."""
LONG_PAUSE = 2 * PADDING + 20
"""In a pause of so many frames, the place of the cut changes no utterance."""
_NEAR = REACH // 2
"""Frames around a border that are looked at first: a pause near it ends the search."""
_EDGE = 2
"""Frames on both sides of a window that its smoothed edge is made of."""
_SILENCE_DB = 3.0
"""Below that there is nothing but zeros, which say nothing of how loud a room is."""

Ints = npt.NDArray[np.int16]
Levels = npt.NDArray[np.float64]
ReadFrames = Callable[[int, int], Ints]
"""Frames [start, stop) → their samples; silence where the track has none."""


class Cut(NamedTuple):
    """The place between two slices.

    Attributes:
        frame: the first frame of the later slice.
        pause: frames of quiet around it; below `PAUSE` the cut may lie in a word.
    """

    frame: int
    pause: int

    @property
    def hard(self) -> bool:
        """Whether both sides have to listen beyond it."""
        return self.pause < PAUSE


class Utterance(NamedTuple):
    """What an engine is given at once.

    Attributes:
        start, stop: frames of sound that it hears (last exclusive).
        begin, end: frames of which it is asked: words count whose middle lies there. Beyond, it
            only listens.
        language: in which it is heard; None: that of the track.
    """

    start: int
    stop: int
    begin: int
    end: int
    language: str | None = None


def loudness(sound: Ints) -> Levels:
    """Energy of each frame in dB over one step of 16 bits."""
    frames = sound[: len(sound) // FRAME * FRAME].astype(np.float64).reshape(-1, FRAME)
    levels: Levels = 10 * np.log10((frames * frames).mean(axis=1) + 1)
    return levels


def smooth(levels: Levels, width: int = 5) -> Levels:
    """Mean over frames around each one."""
    if not len(levels):
        return levels
    padded = np.pad(levels, (width // 2, width // 2), mode="edge")
    return np.convolve(padded, np.ones(width) / width, "valid")[: len(levels)]


def threshold(probes: Sequence[Ints]) -> float:
    """The level below which a track is quiet, from some parts of it.

    A quarter of the way from its quiet frames (5th percentile) to its loud ones (95th); digital
    silence is left out.
    """
    parts = [smooth(loudness(probe)) for probe in probes]
    levels = np.concatenate(parts) if parts else np.zeros(0)
    levels = levels[levels > _SILENCE_DB]
    if not len(levels):
        return _SILENCE_DB
    low, high = np.percentile(levels, [5, 95])
    return round(float(low + 0.25 * (high - low)), 3)


def runs(flags: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """[start, stop) of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], flags.astype(np.int8), [0]))))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _levels(read: ReadFrames, low: int, high: int) -> Levels:
    """Smoothed levels of frames [low, high), the same whatever lies around."""
    return smooth(loudness(read(low - _EDGE, high + _EDGE)))[_EDGE : _EDGE + high - low]


def cut_near(read: ReadFrames, border: int, reach: int, quiet: float, first: int, last: int) -> Cut:
    """The cut nearest to a border: in a pause if there is one, else where it hurts least.

    Args:
        reach: frames that the cut may lie away from it.
        first, last: frames that the track has (last exclusive).

    A pure function of the sound in `border` ± `reach`. As pauses near the border are preferred, it
    looks at little first, and at more where nothing is found.
    """
    for near in (_NEAR, reach):
        low, high = max(first, border - near), min(last, border + near)
        if high - low < PAUSE:
            return Cut(last, PAUSE)  # that is all there is of the track
        levels = _levels(read, low, high)
        pauses = runs(levels < quiet)
        best: tuple[int, int, int] | None = None
        for start, stop in pauses:
            # A pause that continues outside of the window is longer than it looks: nobody knows
            # where its middle is.
            open_ended = (start == 0 and low > first) or (stop == high - low and high < last)
            long = stop - start >= LONG_PAUSE
            if stop - start < PAUSE or (open_ended and not long):
                continue
            place = low + (start + stop) // 2
            if low + start == first or low + stop == last:
                # Quiet at an edge of the track has an utterance on one side only.
                place = first if low + start == first else last
            elif long:
                margin = LONG_PAUSE // 2
                place = min(max(border, low + start + margin), low + stop - margin)
            candidate = (abs(place - border), place, stop - start)
            best = min(best, candidate) if best else candidate
        if best and (near == reach or best[0] <= near - LONG_PAUSE):
            return Cut(best[1], best[2])
        if near == reach:
            return _hard(levels, pauses, low, border)
    raise AssertionError("the last window always decides")


def _hard(levels: Levels, pauses: Sequence[tuple[int, int]], low: int, border: int) -> Cut:
    """The longest short pause, or else the quietest moment."""
    # the longest one first, then the nearest
    short = [
        (start - stop, abs(low + (start + stop) // 2 - border), low + (start + stop) // 2)
        for start, stop in pauses
        if stop - start >= SHORT_PAUSE
    ]
    if short:
        shortness, _, place = min(short)
        return Cut(place, min(-shortness, PAUSE - 1))
    return Cut(low + int(np.argmin(smooth(levels, 21))), 0)


def utterances(read: ReadFrames, low: int, high: int, quiet: float) -> list[tuple[int, int]]:
    """[start, stop) of the speech between two frames.

    Args:
        low, high: frames; quiet at these edges counts as a pause however short.
    """
    if high <= low:
        return []
    levels = _levels(read, low, high)
    count = len(levels)
    pauses = [
        (start, stop)
        for start, stop in runs(levels < quiet)
        if stop - start >= PAUSE or start == 0 or stop == count
    ]
    if not pauses or pauses[0][0] > 0:
        pauses.insert(0, (0, 0))
    if pauses[-1][1] < count:
        pauses.append((count, count))
    spans: list[tuple[int, int]] = []
    for (start, begin), (end, stop) in pairwise(pauses):
        if end <= begin:
            continue
        first = max(begin - PADDING, 0 if start == 0 else (start + begin) // 2)
        last = min(end + PADDING, count if stop == count else (end + stop) // 2)
        spans.append((low + first, low + last))
    return spans


def joined(spans: Sequence[Utterance], most: int) -> list[Utterance]:
    """Neighbouring utterances together, up to so many frames: for engines that hear in windows."""
    utterances: list[Utterance] = []
    for span in spans:
        if utterances and span.stop - utterances[-1].start <= most:
            utterances[-1] = utterances[-1]._replace(stop=span.stop, end=span.end)
        else:
            utterances.append(span)
    return utterances
