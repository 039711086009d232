"""The stretches of media playlists: what lists say of the segments of each period."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import islice

import numpy as np

from fragdex.fragments.table import Int64
from fragdex.packaging import m3u8
from fragdex.packaging.continued import Shortened
from fragdex.packaging.date_ranges import program_date
from fragdex.packaging.m3u8 import GAP, Stretch
from fragdex.packaging.renditions import Rendition
from fragdex.packaging.titling import Title


def stretch_of(rendition: Rendition, sizes: Int64 | None = None) -> Stretch:
    """The segments, or their first `sizes` bytes; a part of a file is a range (4.3.2.2)."""
    made, name = rendition.made, rendition.name
    durations, init = durations_of(rendition), f"{name}/init.mp4"
    place = None
    if rendition.single_file:
        init, place = f"{name}.mp4", (len(made.init), 0)
        sizes = made.sizes if sizes is None else sizes
        offsets, uris = rendition.offsets.tolist(), [init] * len(made)
    else:
        times = rendition.times.tolist()
        offsets, uris = [0] * len(times), [f"{name}/{time}.m4s" for time in times]
    ranges = None if sizes is None else list(zip(sizes.tolist(), offsets, strict=True))
    return Stretch(durations, uris, ranges, init, place, before=gap_lines(rendition))


def stretches_of(
    parts: Sequence[Rendition], sizes: Sequence[Int64 | None] | None = None
) -> list[Stretch]:
    """The stretches of a rendition's periods; where a key changes, or ends, its segment says so.

    Args:
        sizes: as `stretch_of` takes them, of each.
    """
    made = map(stretch_of, parts, [None] * len(parts) if sizes is None else sizes)
    known = {key for one in parts for key in one.entry_keys if key is not None}
    if not any(line for key in known for line in key.lines()):
        return list(made)
    stretches = []
    for one, stretch in zip(parts, made, strict=True):
        keys, named = one.segment_keys, {}
        for number, key in enumerate(keys):
            if not number or key != keys[number - 1]:
                named[number] = ["METHOD=NONE"] if key is None else list(key.lines())
        stretches.append(replace(stretch, keys=named))
    return stretches


def durations_of(rendition: Rendition) -> list[str]:
    """Seconds of each segment."""
    return m3u8.durations_between(_micros(rendition))[:: 1 if rendition.promised is None else 2]


def _micros(rendition: Rendition) -> list[int]:
    """Microseconds at which segments begin and end; where they leave no gaps, each once."""
    scale = rendition.timescale
    edges = rendition.edges.copy()
    # Players put segments where the ones before them end; a segment lasts as long as its samples,
    # be some of them hidden.
    edges[0] -= rendition.hidden
    if rendition.promised is not None:
        edges = np.stack([edges[:-1], edges[1:] - rendition.gaps], axis=1).reshape(-1)
    return [micro(at, scale) for at in edges.tolist()]


def micro(at: int, scale: int) -> int:
    """Ticks as microseconds, rounded."""
    return (2_000_000 * at + scale) // (2 * scale)


def gap_lines(rendition: Rendition) -> dict[int, list[str]]:
    """Segments that are missing, in front of the numbers of those that follow a gap."""
    before = {}
    is_open = rendition.open is not None  # then it is known where the next one begins
    missing = np.flatnonzero(rendition.gaps if is_open else rendition.gaps[:-1]).tolist()
    edges = []
    if missing:
        edges = [*_micros(rendition), micro(int(rendition.edges[-1]), rendition.timescale)]
    for number in missing:
        start, stop = edges[2 * number + 1 : 2 * number + 3]
        assert rendition.promised is not None
        count = -((start - stop) // int(rendition.promised.longest * 1_000_000))
        steps = [start + (stop - start) * part // count for part in range(count + 1)]
        before[number + 1] = m3u8.gap(steps, f"{rendition.name}/gap.m4s")
    return before


def with_lines(stretch: Stretch, lines: Mapping[int, Sequence[str]]) -> Stretch:
    """With more lines in front of some segments, after those that are there."""
    if not lines:
        return stretch
    before = dict(stretch.before)
    for number, more in lines.items():
        before[number] = [*before.get(number, ()), *more]
    return replace(stretch, before=before)


def _zeros(title: Title, zero: datetime) -> Iterator[datetime]:
    """When the presentation time 0 of each period was; periods follow each other."""
    reached: Fraction | None = None
    for one in title.periods:
        begins = one.renditions[0].begins
        reached = begins if reached is None else reached
        yield zero + timedelta(microseconds=int((reached - begins) * 10**6))
        reached += one.seconds


def _dated(stretch: Stretch, rendition: Rendition, zero: datetime) -> Stretch:
    """With the date of its first segment, and the events in front of the segments they are in."""
    scale, made = rendition.timescale, rendition.made
    first = Fraction(int(rendition.edges[0]), scale)
    before = {0: [f"#EXT-X-PROGRAM-DATE-TIME:{program_date(zero, first)}"]}
    for one in rendition.date_ranges:
        at = one.arrives * scale
        if rendition.later and at >= int(rendition.edges[-1]):
            continue  # its segment is not complete
        number = max(int(np.searchsorted(made.time, int(at // 1), side="right")) - 1, 0)
        before.setdefault(number, []).append(one.line(zero))
    return with_lines(stretch, before)


def shortened(rendition: Rendition, title: Title) -> Shortened | None:
    """The last period of a list whose first lines are kept, and with them those before it."""
    return last_shortened(title.through(rendition))[1]


def last_shortened(parts: Sequence[Rendition]) -> tuple[int, Shortened | None]:
    """The same, of its periods, and the number of it among them."""
    for number in reversed(range(len(parts))):
        one = parts[number]
        if isinstance(one, Shortened):
            return number, one
    return 0, None


def after_kept(
    parts: Sequence[Rendition], title: Title
) -> tuple[list[Stretch], m3u8.Written | None]:
    """The stretches of a list after the lines that are kept, and these.

    Args:
        parts: the rendition in the first periods of the title.
    """
    first, one = last_shortened(parts)
    shown = parts if one is None else [one.stretch, *parts[first + 1 :]]
    stretches = stretches_of(shown)
    if title.zero is not None:
        dates = islice(_zeros(title, title.zero), first, None)
        dated = list(map(_dated, stretches, shown, dates))
        stretches = dated if one is None else [stretches[0], *dated[1:]]
    return stretches, None if one is None else one.written


def first_lines(
    rendition: Rendition, title: Title, periods: int, stop: int | None = None
) -> m3u8.Written:
    """The segments of the first periods of a list.

    Args:
        periods: how many.
        stop: number of the segment of the last one of them before which they end; None: at its
            end.
    """
    stretches, before = after_kept(title.through(rendition)[:periods], title)
    if stop is not None:
        last = stretches[-1]
        durations, uris = last.durations[:stop], last.uris[:stop]
        stretches[-1] = replace(last, durations=durations, uris=uris)
    lines = m3u8.lines_of(stretches, before)
    count = sum(not line.startswith("#") for line in lines)
    if before is None:
        return m3u8.Written(m3u8.text_of(lines), count)
    return m3u8.Written(before.text + m3u8.text_of(lines), before.count + count)


def kept_lines(one: Rendition, title: Title, first: int, stop: int) -> tuple[bytes, int]:
    """The lines of some segments that stay as they are, and how many gaps stand for segments.

    Args:
        one: a stretch of a rendition of the last period.
        title: that grows.
        first, stop: numbers of the segments in it (stop exclusive).
    """
    stretch = stretch_of(one)
    lines = [line for lines in stretch.of_each()[first:stop] for line in lines]
    missing = lines.count(GAP)
    if not one.first_segment + first:
        if title.zero is not None:
            *_, zero = _zeros(title, title.zero)
            stretch = _dated(stretch, one, zero)
        stretch = replace(stretch, durations=stretch.durations[:stop], uris=stretch.uris[:stop])
        lines = [*[m3u8.BREAK] * bool(title.later), *stretch.lines()]
    return m3u8.text_of(lines), missing
