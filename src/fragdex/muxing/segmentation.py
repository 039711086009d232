"""Where media is cut into segments: at sync samples of the pictures, near a wanted length.

Media that still grows is cut only at places that nothing to come can change.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fragdex.errors import NoSyncSample
from fragdex.fragments.table import FAR, NULL, Int64, SampleTable
from fragdex.muxing.plan import PlannedTrack, greatest_from, greatest_to, least_from


def reference(media: Sequence[PlannedTrack]) -> PlannedTrack:
    """The track that decides where all are cut: the first video, or else audio, or else any."""
    for kind in ("video", "audio"):
        for one in media:
            if one.track.kind == kind:
                return one
    return media[0]


MARGIN: Final = Fraction(1, 4)
"""Seconds that segments may last longer than the target: they are rounded to whole ones."""
_ROUNDED: Final = Fraction(499, 1000)
"""Seconds above the target that a player still rounds to it."""
_LONGEST_FIRST: Final = 12
"""Seconds after which the next key frame no longer counts for what is promised."""
_MOST_REORDERED: Final = 4
"""Pictures that are presented before one that is decoded earlier, at least as many as expected."""
_PART: Final = Fraction(1, 3)
"""Seconds of a part, about: players begin three before the end of a list."""


class Promise(NamedTuple):
    """What does not change while media grows, by how it begins.

    Attributes:
        target: whole seconds that no segment exceeds by more than `MARGIN`.
        part: seconds that no part exceeds, unless one sample does.
    """

    target: int
    part: Fraction

    @property
    def longest(self) -> Fraction:
        """Seconds that a segment lasts at most."""
        return self.target + MARGIN


def promise(lead: PlannedTrack, seconds: Fraction | None, growing: bool) -> Promise | None:
    """The wanted length, or that of the first segment where key frames are further apart.

    Returns: None: what has come does not decide it yet.
    """
    scale, shown = lead.timescale, lead.presentation
    numbers, _ = _known(lead) if growing else starts(lead)
    times = shown[numbers]
    begins = max(int(shown.min()), 0)
    length = seconds or Fraction(0)
    most = begins + int(max(3 * length, Fraction(_LONGEST_FIRST)) * scale)
    reached = _horizon(lead) if growing else lead.end
    following = times[times >= _wanted(begins, seconds, scale)]
    first = Fraction(0)
    if len(following) and int(following[0]) <= most:
        first = Fraction(int(following[0]) - begins)
    elif not len(following) and reached <= most:
        if growing:
            return None
        first = Fraction(lead.end - begins)
    if growing and reached <= begins + scale:
        return None
    early = lead.durations[(shown <= begins + scale) & (shown >= 0)]
    usual = int(np.sort(early)[len(early) // 2]) if len(early) else 1
    unit = Fraction(min(max(usual, 1), scale), scale)
    part = max(1, _PART // unit) * unit
    return Promise(max(1, ceil(max(first / scale, length) - MARGIN)), part)


def _wanted(last: int, seconds: Fraction | None, scale: int) -> int:
    """The time from which on a key frame begins the next segment, in ticks."""
    if seconds is None:
        return last + 1
    return last + max(1, ceil((seconds - min(MARGIN, seconds / 4)) * scale))


def bridged(media: PlannedTrack, longest: Fraction) -> PlannedTrack:
    """The same, with samples that last no longer: what follows later leaves a gap before it."""
    ticks = int(longest * media.timescale)
    durations = media.durations
    long = durations > ticks
    if not long.any():
        return media
    order = np.argsort(media.presentation, kind="stable")
    usual = np.empty_like(durations)
    usual[order] = np.concatenate([durations[order[:1]], durations[order[:-1]]])
    kept = np.where(long, np.clip(usual, 1, ticks), durations)
    latest = int(order[-1])
    end = media.end - int(durations[latest] - kept[latest])
    samples = SampleTable.of(media.samples.columns() | {"duration": kept})
    return replace(media, samples=samples, end=end)


def gaps(media: PlannedTrack, edges: Int64, times: Int64) -> Int64:
    """Ticks between the end of what each segment shows and where the next one begins.

    Args:
        times: presentation time at which each begins, and the end of the last one.
    """
    stops = np.maximum.reduceat(media.presentation + media.durations, edges[:-1])
    stops[:-1] = np.maximum.accumulate(stops)[:-1]
    return np.maximum(times[1:] - np.maximum(stops, times[:-1]), 0)


def cut(
    media: Sequence[PlannedTrack],
    seconds: Fraction | None,
    lead: PlannedTrack | None = None,
    promised: Promise | None = None,
) -> list[Int64]:
    """Numbers of the first sample of each segment, and of the end, for each track.

    A segment begins with a sync sample of the reference track: that nearest to the wanted length
    after the one before, or an earlier one that another sample description begins with. Other
    tracks are cut at their sync sample that is presented nearest to that moment, so that all have
    equally many segments; some may be empty.

    Args:
        promised: how long segments may last, of media that is `bridged`, cut as `limited` does;
            None: any.
    """
    lead = lead or reference(media)
    cuts = cuts_of(lead, seconds, promised)
    return [edges_of(one, lead, cuts, promised) for one in media]


def cuts_of(lead: PlannedTrack, seconds: Fraction | None, promised: Promise | None = None) -> Cuts:
    """Where the track is cut that decides it for others, by the arguments of `cut`."""
    if promised is not None:
        return limited(lead, seconds, promised, growing=False)
    numbers, times = starts(lead)
    chosen = near(times.tolist(), lead.end, seconds, lead.timescale, _forced(lead, numbers))
    return Cuts(numbers[chosen], times[chosen], times[chosen], len(lead))


def edges_of(
    media: PlannedTrack, lead: PlannedTrack, cuts: Cuts, promised: Promise | None = None
) -> Int64:
    """First sample of each segment of one track, and the end; of the arguments of `cut`."""
    if media is lead:
        edges = cuts.edges
    elif promised is None:
        edges = _nearest(media, cuts.moments, lead.timescale)
    else:
        edges = _nearest(media, _and_after(media, lead, cuts.moments, promised), lead.timescale)
    edges = np.concatenate([[0], edges[1:], [len(media)]]).astype(np.int64)
    if promised is None:
        return edges
    edges = np.unique(edges)
    return edges if media is lead else np.union1d(edges, _divisions(media, edges, promised)[0])


def _divisions(media: PlannedTrack, edges: Int64, promised: Promise) -> tuple[Int64, Int64]:
    """Where segments of a track that follows another have to end earlier, to keep what is promised.

    Such as where it stands still as the other does, and begins again shortly before it: the sample
    nearest to a cut of the other comes after its own gap.

    Returns: sync samples that begin segments, too; presentation time of each, in ticks.
    """
    numbers, times = starts(media)
    ends = greatest_to(media.presentation + media.durations)
    stops = np.append(np.minimum(times[1:], ends[numbers[1:] - 1]), ends[-1])
    begins = np.maximum(least_from(media.presentation)[edges[:-1]], 0)
    ticks = int((promised.target + _ROUNDED) * media.timescale)
    closing = np.searchsorted(numbers, edges[1:]) - 1
    chosen = []
    for number in np.flatnonzero(stops[closing] - begins > ticks).tolist():
        at, last, stop = int(edges[number]), int(closing[number]), int(begins[number]) + ticks
        while True:
            # the last sync sample that this one may end with
            place = max(int(np.searchsorted(stops, stop, side="right")), 1)
            place = max(place, int(np.searchsorted(numbers, at, side="right")))
            if place > last:
                break
            chosen.append(place)
            at, stop = int(numbers[place]), int(times[place]) + ticks
    places = np.array(chosen, np.int64)
    return numbers[places], times[places]


def _and_after(media: PlannedTrack, lead: PlannedTrack, moments: Int64, promised: Promise) -> Int64:
    """Moments, and those at which a track is cut that lasts longer than the lead."""
    scale = lead.timescale
    step, end = int(promised.longest * scale), media.end * scale // media.timescale
    if end - lead.end <= step:
        return moments
    return np.concatenate([moments, np.arange(lead.end, end, step)])


def starts(media: PlannedTrack) -> tuple[Int64, Int64]:
    """Samples that a segment may begin with, and the presentation times from which it shows.

    The times rise, and but for the first they lie after 0. Nothing after such a sample is
    presented earlier, be it decoded later. What is hidden is not after 0.
    """
    numbers = np.flatnonzero(media.samples.sync)
    if not len(numbers):
        raise NoSyncSample(
            f"track {media.track.id} has no sync sample, so that no segment could begin",
            advice="fragdex info says what its samples are; such a file has to be encoded again",
        )
    times = least_from(media.presentation)
    if len(numbers) < len(media):
        times = times[numbers]
    times = np.where(times > media.hidden, times, 0)
    rises = np.append(True, times[1:] > times[:-1])
    # of sound all are, and most tracks with the most samples are sound
    return (numbers, times) if rises.all() else (numbers[rises], times[rises])


def changes(media: PlannedTrack) -> Int64:
    """Samples that use another sample description than the one before."""
    numbers = media.descriptions
    return np.flatnonzero(np.diff([1] if numbers is None else numbers)) + 1


def _forced(media: PlannedTrack, numbers: Int64) -> list[int]:
    """Which of these samples are the first with their description."""
    return np.flatnonzero(np.isin(numbers, changes(media))).tolist()


def near(
    times: list[int],
    end: int,
    seconds: Fraction | None,
    timescale: int,
    forced: Sequence[int] = (),
) -> list[int]:
    """Which of rising times are taken: each nearest to a length after the one before.

    Those at the places `forced`, which rise, are taken in any case.

    The end of the track is one to choose from, too: then the last segment reaches to it.
    """
    if seconds is None:
        return list(range(len(times)))
    # whole numbers: fractions of thousands of times take a while
    length, unit = (seconds * timescale).as_integer_ratio()
    places = [at * unit for at in times]
    if times:
        places.append(max(end, times[-1]) * unit)
    chosen = [0] if times else []
    while chosen:
        last = chosen[-1]
        following = bisect_right(forced, last)
        wanted = places[last] + length
        at = bisect_left(places, wanted, lo=last + 1)
        at = min(at, len(times))
        if following < len(forced) and forced[following] < at:
            at = forced[following]
        elif at > last + 1 and wanted - places[at - 1] <= places[at] - wanted:
            at -= 1
        if at == len(times):
            break
        chosen.append(at)
    return chosen


class Cuts(NamedTuple):
    """Where a track is cut that decides it for others.

    Attributes:
        edges: first sample of each segment; the last one may be open.
        times: presentation time at which each begins, in ticks.
        moments: where others are cut: also where there is nothing of this one.
        reached: the sample up to which parts of the last segment are complete.
    """

    edges: Int64
    times: Int64
    moments: Int64
    reached: int


class Decided(NamedTuple):
    """What is decided already of a track that grows.

    Attributes:
        first: the sample that the next segment begins with; 0: the track begins there.
        back: pictures that were presented before one that is decoded earlier, at most.
    """

    first: int = 0
    back: int = 0


NOTHING: Final = Decided()


def limited(
    media: PlannedTrack,
    seconds: Fraction | None,
    promised: Promise,
    growing: bool,
    decided: Decided = NOTHING,
) -> Cuts:
    """Segments that last no longer than promised, decided by what came before their ends.

    One ends at the first sync sample after about the wanted length; where that comes too late,
    after the last part that is in time; and where there is a gap.

    Args:
        decided: of the track; samples before that are there for what they say of those after them.
    """
    shown, scale, count = media.presentation, media.timescale, len(media)
    horizon = _horizon(media, decided.back) if growing else None
    first = decided.first
    highest = greatest_to(shown)
    final = count if horizon is None else int(np.searchsorted(highest, horizon))
    least, ends_ = least_from(shown), greatest_to(shown + media.durations)
    keys = starts(media)[0]
    keys = keys[keys > 0]
    later = np.flatnonzero(least[1:] > ends_[:-1]) + 1
    due = np.union1d(later[least[later] > 0], np.intersect1d(changes(media), keys))
    # what comes may be presented before a key frame, but when that is itself presented is known
    key_times, key_numbers, due_numbers = shown[keys].tolist(), keys.tolist(), due.tolist()
    # of these few are looked up
    behind = np.append(least, max(media.end, int(highest[-1]))).data
    ends, sync = ends_.data, media.samples.sync.data
    runs = None
    most, part = int(promised.longest * scale), int(promised.part * scale)
    step = max(int(min(seconds or promised.longest, promised.longest) * scale), 1)
    wait = _wanted(0, seconds, scale)
    edges, times, moments = [first], [max(behind[first], 0)], [max(behind[first], 0)]
    reached = at = first
    begun, stop, bound, is_whole = -1, most, count, False
    while True:
        if begun != edges[-1]:
            begun, stop = edges[-1], times[-1] + most
            # one that begins with another picture ends at the next key frame
            begins_well = sync[begun] or not begun
            n = bisect_left(key_times, times[-1] + (wait if begins_well else 1))
            n = max(n, bisect_right(key_numbers, begun))
            bound = count
            if n < len(key_numbers) and key_times[n] <= stop:
                bound = key_numbers[n]
            n = bisect_right(due_numbers, begun)
            if n < len(due_numbers) and due_numbers[n] < bound:
                bound = due_numbers[n]
            # where all of it is here and in time, its parts decide nothing
            is_whole = min(behind[bound], ends[bound - 1]) <= stop and (
                bound <= final if bound < count else horizon is None
            )
        following = bound
        if not is_whole:
            if runs is None:
                runs = np.append(0, np.cumsum(media.durations)).data
            following = min(bisect_right(runs, runs[at] + part, at) - 1, bound)
            following = max(following, at + 1)
        is_end = following == bound < count
        is_known = following <= final if is_end else horizon is None or following < final
        if not is_known or at >= count:
            break
        if min(behind[following], ends[following - 1]) > stop and at > edges[-1]:
            following, is_end = at, True  # the part before was the last that is in time
        reached = at = following
        if following == count:
            break
        if not is_end:
            continue
        if horizon is not None and behind[following] > horizon:
            break  # a picture may come that is presented before it
        edges.append(following)
        moments += [*range(ends[following - 1], behind[following], step), behind[following]]
        times.append(behind[following])
    one, two, three = (np.array(column, np.int64) for column in (edges, times, moments))
    return Cuts(one, two, three, reached)


def parts_of(media: PlannedTrack, edges: Int64, promised: Promise) -> Int64:
    """First sample of each part of segments, and the end."""
    ticks, durations = int(promised.part * media.timescale), media.durations
    at, stops = edges[:-1], edges[1:]
    at, stops = at[at < stops], stops[at < stops]
    least = int(durations.min()) if len(at) else 0
    if least and least == durations.max():
        many = max(ticks // least, 1)
        counts = -(-(stops - at) // many)
        firsts = np.repeat(at - (np.cumsum(counts) - counts) * many, counts)
        return np.append(firsts + np.arange(len(firsts)) * many, edges[-1])
    total = np.append(0, np.cumsum(durations))
    places = [edges[-1:]]
    while len(at):  # the next part of each segment that has one
        places.append(at)
        following = np.searchsorted(total, total[at] + ticks, side="right") - 1
        at = np.maximum(following, at + 1)
        at, stops = at[at < stops], stops[at < stops]
    return np.sort(np.concatenate(places))


def open_parts(
    media: PlannedTrack, start: int, reached: int, promised: Promise, back: int = 0
) -> Int64:
    """First sample of each part of a segment that is not complete, and the end of the last one.

    Args:
        reached: presentation time in ticks up to which the other is known.
    """
    shown = media.presentation
    final = int(np.searchsorted(np.maximum.accumulate(shown), _horizon(media, back)))
    stop = min(final, int(np.searchsorted(least_from(shown), reached, side="right")) - 1)
    divided, _ = _divisions(media, np.array([start, len(media)]), promised)
    stop = min([stop, *divided[:1].tolist()])
    total = np.append(0, np.cumsum(media.durations))
    ticks = int(promised.part * media.timescale)
    places = [start]
    while True:
        at = places[-1]
        following = max(int(np.searchsorted(total, total[at] + ticks, side="right")) - 1, at + 1)
        if following >= stop:
            return np.array(places, np.int64)
        places.append(following)


def _is_reordered(media: PlannedTrack) -> bool:
    """Whether composition offsets differ in the source: then pictures may come in another order."""
    rows = media.track.fragments
    known = (rows.cts_min != NULL) & (rows.dts != NULL)
    return bool(np.ptp((rows.cts_min - rows.dts)[known]) if known.any() else True)


def reordered(media: PlannedTrack) -> int:
    """Pictures that are presented before one that is decoded earlier, at most; 0: none is."""
    shown = media.presentation
    back = 0
    if not (shown[1:] > shown[:-1]).all():
        back = int((np.arange(len(shown)) - np.searchsorted(np.sort(shown), shown)).max())
    if back or (media.track.kind == "video" and _is_reordered(media)):
        back = max(back, _MOST_REORDERED)
    return back


def _horizon(media: PlannedTrack, least: int = 0) -> int:
    """The presentation time before which nothing more comes."""
    rising, back = np.sort(media.presentation), max(reordered(media), least)
    return int(rising[max(len(rising) - 1 - back, 0)]) if len(rising) > back else -1


def _nearest(media: PlannedTrack, moments: Int64, timescale: int) -> Int64:
    """The sync samples presented nearest to some moments in ticks."""
    numbers, times = starts(media)
    edges = numbers[nearest(times, media.timescale, moments, timescale)[0]]
    # where the track has ended there is nothing to cut
    own = media.timescale
    wanted: Any = moments.astype(_wide(times, timescale, moments, own)) * own
    edges[(wanted >= media.end * timescale).astype(np.bool_)] = len(media)
    return np.maximum.accumulate(edges)


def nearest(
    times: Int64, scale: int, moments: Int64, timescale: int
) -> tuple[Int64, npt.NDArray[np.bool_]]:
    """Which of rising times are nearest to rising moments; of two as near, the earlier.

    Returns: places in `times`, and of each moment whether there is a time after it.
    """
    kind = _wide(times, timescale, moments, scale)
    wanted: Any = moments.astype(kind) * scale
    places: Any = times.astype(kind) * timescale
    behind = np.searchsorted(places, wanted, side="right")
    known = behind < len(places)
    before = np.maximum(behind - 1, 0)
    behind = np.minimum(behind, len(places) - 1)
    nearer = np.abs(places[behind] - wanted) < np.abs(wanted - places[before])
    return np.where(nearer.astype(np.bool_), behind, before), known


def _wide(times: Int64, timescale: int, moments: Int64, scale: int) -> type:
    """What holds both in ticks of both timescales: Python's integers where 64 bits may not do."""
    return np.int64 if max(int(times[-1]) * timescale, int(moments[-1]) * scale) < FAR else object


def settled(
    media: PlannedTrack,
    lead: PlannedTrack,
    cuts: Cuts,
    promised: Promise,
    decided: Decided = NOTHING,
) -> tuple[Int64, Int64, Int64] | None:
    """Segments that stay as they are, and complete parts of the one after them.

    They are cut as `cut` cuts the whole, whatever follows. None: not one segment is complete.

    Args:
        cuts: of the lead, as `limited` gives them while more comes.

    Returns: first sample of each segment, and the end; presentation time at which each begins and
        the last one ends, in ticks; first sample of each part of the next one, and the end.
    """
    edges, times, moments, reached = cuts
    if media is lead:
        if len(edges) < 2:
            return None
        places = parts_of(media, np.array([edges[-1], max(reached, edges[-1])]), promised)
        return edges, times, places
    own, shown = _known(media)
    if not len(own):
        return None
    scales = media.timescale, lead.timescale
    chosen, is_known = nearest(shown, scales[0], moments, scales[1])
    chosen = np.maximum.accumulate(chosen[is_known])
    edges, ends = own[chosen], shown[chosen]
    if len(edges) < 2:
        return None
    edges[0] = decided.first
    edges, first = np.unique(edges, return_index=True)
    if len(edges) < 2:
        return None
    until = int(least_from(lead.presentation)[min(reached, len(lead) - 1)])
    is_last = len(chosen) == len(moments)
    limit = until * scales[0] // scales[1] if is_last else -1
    opened = open_parts(media, int(edges[-1]), limit, promised, decided.back)
    more, moments = _divisions(media, edges, promised)
    places = np.searchsorted(edges, more)
    return np.insert(edges, places, more), np.insert(ends[first], places, moments), opened


def first_of(media: PlannedTrack, moment: int, timescale: int) -> int:
    """The sample at which a track is cut that follows another, which is cut at a moment."""
    own, shown = _known(media)
    if not len(own):
        return -1
    place, _ = nearest(shown, media.timescale, np.array([moment]), timescale)
    return int(own[place[0]])


def _known(media: PlannedTrack) -> tuple[Int64, Int64]:
    """Starts of segments after which enough is known: a sample that is presented later."""
    numbers, times = starts(media)
    latest = greatest_from(media.presentation)
    known = latest[numbers] > media.presentation[numbers]
    return numbers[known], times[known]
