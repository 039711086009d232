"""A clip of chosen samples in made fragments of about a second, from a sync sample on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from math import ceil

import numpy as np
import numpy.typing as npt

from fragdex.boxes import Box, parse
from fragdex.errors import BuildError, NoSyncSample
from fragdex.fragments.table import SampleTable
from fragdex.muxing.between import Between, Trafs
from fragdex.muxing.clip_span import (
    BESIDE,
    Clip,
    ClipSpan,
    Read,
    bound,
    delay,
    moves,
    planned_beside,
)
from fragdex.muxing.fragments import WHY, Fragments
from fragdex.muxing.groups import descriptions_of_groups, groupings_of
from fragdex.muxing.kept import following
from fragdex.muxing.movie import clip_init, described, traks_of
from fragdex.muxing.plan import Plan, PlannedTrack, one_source
from fragdex.muxing.protection import protected
from fragdex.muxing.segmentation import reference
from fragdex.muxing.spans import (
    FAR,
    Reader,
    decoded_sooner,
    without_empty,
)
from fragdex.muxing.subsamples import with_subsamples
from fragdex.muxing.timecode import timecode_cut
from fragdex.muxing.view import Block


def clip_of_samples(
    chosen: Sequence[ClipSpan],
    init: bytes,
    read: Read,
    source: Reader,
    keep_times: bool,
    besides: Between,
) -> Clip:
    """A clip of samples in fragments of our own, from the sync sample on."""
    paced = [s for s in chosen if s.track.kind not in BESIDE] or chosen
    beside = [
        s.track for s in chosen if s.track.kind in BESIDE and paced[0].track.kind not in BESIDE
    ]
    chosen = paced
    paced = [s for s in chosen if s.track.kind in ("video", "audio")] or chosen
    cuts = [cut for s in paced if (cut := _cut(s, source)) is not None]
    if not cuts:
        raise NoSyncSample("the file ends before the samples of this span")
    first = min(bound(c.track, c.samples.cts, min) for c in cuts)
    rest = (_cut(s, source) for s in chosen if s not in paced)
    cuts += [_trimmed(cut, first) for cut in rest if cut is not None]
    last = max(bound(c.track, c.samples.cts + c.samples.duration, max) for c in cuts)
    # Timecode begins with the first picture: sound may begin earlier, inside a frame.
    pictures = [c for c in cuts if c.track.kind == "video"] or cuts
    begin = min(bound(c.track, c.samples.cts, min) for c in pictures)
    codes, left_out = planned_beside(
        beside,
        parse(init),
        lambda track, trak: timecode_cut(track, trak, begin, last, source),
    )
    cuts += codes
    ids = tuple(c.track.id for c in cuts)
    back: dict[int, int] = {}
    kept = None
    if not keep_times:
        cuts = [decoded_sooner(cut) for cut in cuts]
        firsts = [(c.track, int(c.samples.dts[0]), int(c.samples.cts.min())) for c in cuts]
        origin, back = moves(firsts)
        for code in codes:
            # Its ticks may last as long as frames: it does not begin a tick late.
            least = ceil(origin * code.track.timescale - delay(code.track))
            back[code.track.id] = min(least, int(code.samples.dts[0]))
        kept = following([(origin, last)])
    boxes = parse(init)
    traks = traks_of(boxes)
    cuts = [_described(cut, traks.get(cut.track.id), read, besides.trafs) for cut in cuts]
    head = clip_init(
        init,
        set(ids),
        delays=keep_times,
        from_samples=True,
        kept=kept,
        boxes=boxes,
        groups={one.track.id: descriptions_of_groups(one.groups) for one in cuts},
    )
    by = Fraction(0) if kept is None else -kept[0].start
    plan = Plan((*cuts,), between=besides.moved(by), left_out=left_out)
    written = parse(b"".join(head))
    lost = plan.lacking(boxes, written, WHY, in_fragments=True, kept=following([(first, last)]))
    return Clip(chain(head, _fragments(plan, back)), first, last, ids, False, left_out=lost)


def _cut(span: ClipSpan, source: Reader) -> PlannedTrack | None:
    """The samples from the sync sample on, in decode order, up to the last that is shown.

    Of a truncated file, those that are in it; None where that is not even the first.
    """
    samples = source.budget.take(span.track, span.first, span.last, span.first)
    start = int(span.track.fragments.sample_start[span.first])
    low = (span.sample or 0) - start
    shown = np.flatnonzero(samples.cts[low:] < span.limit)
    high = low + int(shown[-1]) + 1 if len(shown) else low + 1
    outside = np.flatnonzero((samples.offset + samples.size)[low:high] > (source.size or FAR))
    high = low + int(outside[0]) if len(outside) else high
    if high == low:
        return None
    samples, numbers = samples.rows(slice(low, high)), start + np.arange(low, high)
    sources = one_source(0, len(samples))
    planned = PlannedTrack(span.track, samples, span.track.timescale, sources, numbers=numbers)
    return without_empty(planned)


def _trimmed(cut: PlannedTrack, first: Fraction) -> PlannedTrack:
    """A text is shown for as long as it lasts: the part before the clip's first picture is cut."""
    track, samples = cut.track, cut.samples
    late = -(-(first * track.timescale - track.shift) // 1) - int(samples.cts[0])
    if late <= 0 or late >= int(samples.duration[0]):
        return cut
    columns = {name: column.copy() for name, column in samples.columns().items()}
    columns["dts"][0] += late
    columns["cts"][0] += late
    columns["duration"][0] -= late
    return replace(cut, samples=SampleTable.of(columns))


def _described(cut: PlannedTrack, trak: Box | None, read: Read, trafs: Trafs) -> PlannedTrack:
    """With the descriptions, groups and parts of the samples, and what decrypts them."""
    groups = groupings_of(cut.track, trak, cut.source_numbers, trafs)
    cut = with_subsamples(cut, trak, trafs)
    if trak is None:
        return replace(cut, groups=groups)
    numbers = described(cut.track, trak, cut.source_numbers)
    planned = replace(cut, descriptions=numbers, groups=groups)
    return replace(planned, protection=protected(trak, planned, read))


LEAST_SECONDS = 1.0
"""A fragment starts at a sync sample, at least so long after the one before."""


def _fragments(plan: Plan, back: Mapping[int, int]) -> Iterator[Block]:
    """The blocks of fragments of a plan.

    Args:
        back: track_ID → ticks to take off decode times.
    """
    cuts = plan.tracks
    bounds = _bounds(cuts)
    edges = [np.array([0, *np.searchsorted(_seconds(c), bounds), len(c)]) for c in cuts]
    planned = []
    for cut in cuts:
        if int(cut.durations.min()) < 0:
            raise BuildError(
                f"decode times of track {cut.track.id} fall back (negative-duration), and a clip "
                "cannot say that",
                path="moov/trak/mdia/minf/stbl/stts",
                advice="make a fragmented view first (fragdex view), and the clip of that",
            )
        # a tfdt is a number of 64 bits: where times lie beyond, they go round as it does
        earlier = (back.get(cut.track.id, 0) + (1 << 63)) % (1 << 64) - (1 << 63)
        planned.append(cut.timed(cut.presentation - earlier, cut.decode - earlier, cut.durations))
    made = Fragments(replace(plan, tracks=(*planned,)), edges, explicit=True)
    return (block for number in range(len(made)) for block in made.parts(number))


def _bounds(cuts: Sequence[PlannedTrack]) -> list[float]:
    """Decode times in seconds at which fragments start, but for the first."""
    pace = reference(cuts)
    starts = _seconds(pace)[pace.samples.sync]
    bounds, last = [], starts[0] if len(starts) else 0.0
    for at in starts[1:].tolist():
        if at - last >= LEAST_SECONDS:
            bounds.append(at)
            last = at
    return bounds


def _seconds(cut: PlannedTrack) -> npt.NDArray[np.float64]:
    return np.asarray(cut.decode / cut.timescale)
