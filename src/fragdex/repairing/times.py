"""Times of samples that were found: in their order, with what a good film says of them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from fragdex.fragments.table import Int64
from fragdex.repairing.between import Even
from fragdex.repairing.film import Recovered
from fragdex.repairing.pattern import Pattern
from fragdex.repairing.walk import Lane


def timed(patterns: Sequence[Pattern], lanes: Sequence[Lane]) -> list[Recovered]:
    """The samples of each track with their times.

    Samples follow one another without gaps, pictures in the order in which they are shown. Where
    bytes are lost, the film goes on after as much time as so many bytes of it take, in all tracks
    alike, so that sound and pictures stay together.
    """
    made = []
    seconds = _seconds_a_byte(patterns, lanes)
    for pattern, lane in zip(patterns, lanes, strict=True):
        offset = np.array(lane.offset, np.int64)
        size = np.array(lane.size, np.int64)
        unit = lane.syntax.unit if isinstance(lane.syntax, Even) else 0
        each = pattern.duration
        numbers = np.arange(len(size), dtype=np.int64)
        if unit:
            numbers = np.cumsum(size // unit) - size // unit
        dts = numbers * each
        edges = [0]
        for row, lost, count in lane.breaks:
            if 0 < row < len(size):
                ticks = seconds * lost * pattern.track.timescale
                steps = count if count >= 0 else round(ticks / each) if each else 0
                dts[row:] += steps * each
                if count < 0 and edges[-1] != row:
                    edges.append(row)
        fresh = np.frombuffer(bytes(lane.fresh), np.bool_)
        sync = np.frombuffer(bytes(lane.sync), np.bool_)
        cts, media_time = dts, _media_time(pattern)
        if not unit and pattern.track.kind == "video":
            begins = np.unique(np.concatenate([edges, np.flatnonzero(fresh)])).astype(np.int64)
            shown = _shown(np.array(lane.order, np.int64), begins, dts)
            delay, needed = pattern.delay, int((dts - shown).max(initial=0))
            if not pattern.negative and needed > delay:
                media_time += needed - delay
                delay = needed
            cts = shown + delay
        made.append(Recovered(pattern, offset, size, dts, cts, sync, unit, media_time))
    return made


def _media_time(pattern: Pattern) -> int:
    times = [edit.media_time for edit in pattern.track.info.edits if edit.media_time >= 0]
    return times[0] if times else 0


def _shown(order: Int64, begins: Int64, dts: Int64) -> Int64:
    """Of each picture the time in decode order whose turn it is to be shown at."""
    part = np.searchsorted(begins, np.arange(len(order)), side="right")
    ranked = np.lexsort((order, part))
    shown = np.empty_like(dts)
    shown[ranked] = dts
    return shown


def _seconds_a_byte(patterns: Sequence[Pattern], lanes: Sequence[Lane]) -> Fraction:
    """Seconds of the film that a byte of it takes."""
    total = sum(sum(lane.size) for lane in lanes)
    longest = Fraction(0)
    for pattern, lane in zip(patterns, lanes, strict=True):
        unit = lane.syntax.unit if isinstance(lane.syntax, Even) else 0
        count = sum(lane.size) // unit if unit else len(lane.size)
        longest = max(longest, Fraction(count * pattern.duration, pattern.track.timescale or 1))
    return longest / total if total else longest
