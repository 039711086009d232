"""The rest of a video when spans are taken out of it, with no sample of these spans in it.

Pictures are decoded with the help of others. After a removed span a track resumes at the next sync
sample; before one it ends where nothing needs what follows; sound and texts stay where all of a
sample is outside. So no edit list hides anything, and what is gone is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from math import ceil

import numpy as np

from fragdex.fragments.table import Int64, SampleTable
from fragdex.muxing.census import LeftOut
from fragdex.muxing.kept import Kept, KeptSpan, following
from fragdex.muxing.plan import PlannedTrack, one_source
from fragdex.muxing.spans import (
    Reader,
    Stretch,
    begin_at,
    first_decoded,
    last_until,
    segments_of,
    stretch_of,
)
from fragdex.record import record
from fragdex.seeking.model import Track
from fragdex.seeking.show import clock
from fragdex.seeking.track import presented

Removed = Sequence[tuple[Fraction | float, Fraction | float]]
"""Spans of the source's presentation (seconds, exclusive)."""


@record(frozen=True, slots=True, eq=False)
class _Rest:
    """Samples of a track that are left of a span.

    Attributes:
        start, stop: seconds of the source's presentation in which they are shown (exclusive).
        low: `start` in ticks of composition time.
        numbers: int64 of them in the track, in decode order.
        earlier: seconds by which the output shows it sooner.
    """

    start: Fraction
    stop: Fraction
    low: Fraction
    numbers: Int64
    samples: SampleTable
    earlier: Fraction


def without_help(tracks: Iterable[Track], kept: Kept, source: Reader) -> list[KeptSpan]:
    """The parts of spans in which pictures that are presented need nothing from outside of them."""
    for track in presented(tracks, "video"):
        parts = (_part_without_help(track, span, source) for span in kept)
        kept = following(part for part in parts if part is not None)
    return list(kept)


def whole_pictures(tracks: Iterable[Track], kept: Kept, source: Reader) -> list[KeptSpan]:
    """Spans without the last of a picture that begins in what is removed before them."""
    for track in presented(tracks, "video"):
        parts = (_from_whole_picture(track, span, source) for span in kept)
        kept = following(part for part in parts if part is not None)
    return list(kept)


def _from_whole_picture(track: Track, span: KeptSpan, source: Reader) -> KeptSpan | None:
    stretch = next(_stretches(track, span, source), None) if span.is_behind else None
    if stretch is None:
        return span
    cts = stretch.samples.cts
    begun = cts[(cts >= ceil(stretch.low)) & (cts < stretch.high)]
    if not len(begun):
        return None
    start = stretch.start + (int(begun.min()) - stretch.low) / track.timescale
    return span._replace(start=start)


def _part_without_help(track: Track, span: KeptSpan, source: Reader) -> KeptSpan | None:
    stretches = [*_stretches(track, span, source)]
    if not stretches:
        return span  # there is nothing to see, and there may be something to hear
    rests = [rest for one in stretches if (rest := _rest(track, one, span, source)) is not None]
    if not rests:
        return None
    start = rests[0].start if span.is_behind else span.start
    return span._replace(start=start, stop=rests[-1].stop if span.is_before else span.stop)


def gone_besides(
    asked: Kept, kept: Kept, why: str = "its pictures need some that are removed"
) -> tuple[LeftOut, ...]:
    """What goes although it should stay: a sentence on each part."""
    edges = [edge for span in kept for edge in span[:2]]
    said = []
    for span in asked:
        inside = [edge for edge in edges if span.start <= edge <= span.stop]
        around = [span.start, *inside, span.stop]
        for low, high in zip(around[::2], around[1::2], strict=True):
            if low < high:
                what = f"{clock(float(low))} – {clock(float(high))}"
                said.append(LeftOut(what, why))
    return tuple(said)


def rest_of(track: Track, kept: Kept, timescale: int, source: Reader) -> PlannedTrack | None:
    """What a track has of spans, and nothing else; None where that is nothing."""
    rests = [
        rest
        for span in kept
        for stretch in _stretches(track, span, source)
        if (rest := _rest(track, stretch, span, source)) is not None
    ]
    if not rests:
        return None
    scale = track.timescale
    tables = []
    for rest in rests:
        by = round((rest.start - rest.earlier) * scale - rest.low)
        columns = rest.samples.columns()
        moved = {name: columns[name] + by for name in ("dts", "cts")}
        tables.append(SampleTable.of(columns | moved))
    samples = SampleTable.concat(tables)
    columns = samples.columns()
    at = np.arange(len(samples))
    # each a tick later than the one before, at least
    dts = np.maximum.accumulate(columns["dts"] - at) + at
    begin = (rests[0].start - rests[0].earlier) * scale
    base = int(dts[0])
    late = max(int((dts - columns["cts"]).max()), 0)
    cts = columns["cts"] + late - base
    durations = columns["duration"].copy()
    durations[:-1] = np.diff(dts)
    samples = SampleTable.of(columns | {"dts": dts - base, "cts": cts, "duration": durations})
    one = Fraction(1)
    edges = (begin / scale, rests[-1].stop - rests[-1].earlier)
    first, end = (round(at * timescale) for at in edges)
    shown_at = round(begin) + late - base
    if track.kind != "audio":
        shown_at = begin_at(samples, slice(0, len(rests[0].numbers)), shown_at)
    if track.kind == "video":
        last_until(samples, shown_at + round((edges[1] - edges[0]) * scale))
    edits = [(first, -1, one)] if first else []
    edits.append((max(end - first, 1), shown_at, one))
    numbers = np.concatenate([rest.numbers for rest in rests])
    return PlannedTrack(track, samples, scale, one_source(0, len(samples)), tuple(edits), numbers)


def _stretches(track: Track, span: KeptSpan, source: Reader) -> Iterator[Stretch]:
    for segment in segments_of(track):
        stretch = stretch_of(track, segment, span.start, span.stop, source)
        if stretch is not None and stretch.rate:
            yield stretch


def _rest(track: Track, stretch: Stretch, span: KeptSpan, source: Reader) -> _Rest | None:
    part = _pictures if track.kind == "video" else _others
    return part(track, stretch, span, source)


def _pictures(track: Track, stretch: Stretch, span: KeptSpan, source: Reader) -> _Rest | None:
    """From the first sync sample on, up to where a picture needs one after the span."""
    cts, low, high = stretch.samples.cts, stretch.low, stretch.high
    own = np.arange(len(cts))
    if span.is_behind:
        inside = stretch.samples.sync & (cts >= ceil(low)) & (cts < high)
        begins = (n for n in np.flatnonzero(inside).tolist() if _begins(track, stretch, n, source))
        first = next(begins, None)
        if first is None:
            return None
        # What is decoded after a sync sample and shown before it may need those before it.
        own = own[first:][cts[first:] >= cts[first]]
        low = Fraction(int(cts[first]))
    if span.is_before:
        late = np.flatnonzero(cts[own] >= high)
        if len(late):
            own, behind = own[: late[0]], own[late[0] :]
            high = min(high, int(cts[behind].min()))
    return _made(track, stretch, span, own, low, high)


def _begins(track: Track, stretch: Stretch, number: int, source: Reader) -> bool:
    """Whether a decoder can begin at a sample of a stretch: its mark may lie."""
    time = Fraction(int(stretch.samples.cts[number]) + track.shift, track.timescale)
    return first_decoded(track, time, source).sample == stretch.first + number


def _others(track: Track, stretch: Stretch, span: KeptSpan, source: Reader) -> _Rest | None:
    """Sound and texts that are in a span as a whole."""
    samples, low, high = stretch.samples, stretch.low, stretch.high
    cts, ends = samples.cts, samples.cts + samples.duration
    own = np.arange(len(cts))
    if span.is_behind:
        own = own[cts[own] >= ceil(low)]
        begins = np.flatnonzero(samples.sync[own])
        own = own[begins[0] :] if len(begins) else own[:0]
        low = Fraction(int(cts[own].min())) if len(own) else low
    if span.is_before:
        own = own[ends[own] <= high]
        high = int(ends[own].max()) if len(own) else high
    return _made(track, stretch, span, own, low, high)


def _made(
    track: Track, stretch: Stretch, span: KeptSpan, own: Int64, low: Fraction, high: int
) -> _Rest | None:
    start, stop = (stretch.start + (at - stretch.low) / track.timescale for at in (low, high))
    stop = min(stop, stretch.stop)
    if not len(own) or start >= stop:
        return None
    rows = stretch.samples.rows(own)
    return _Rest(start, stop, low, stretch.first + own, rows, span.earlier)
