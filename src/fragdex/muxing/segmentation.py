"""Where media is cut into segments: at sync samples of the pictures, near a wanted length.

Media that still grows is cut only at places that nothing to come can change.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from fragdex.errors import NoSyncSample
from fragdex.fragments.table import FAR, Int64
from fragdex.muxing.plan import PlannedTrack, greatest_from, least_from


def reference(media: Sequence[PlannedTrack]) -> PlannedTrack:
    """The track that decides where all are cut: the first video, or else audio, or else any.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> from fragdex.muxing.media import media_of
    >>> tracks = fragdex.index(movie(2, tracks=2)).tracks
    >>> reference([media_of(track) for track in reversed(tracks)]).track.kind
    'video'
    """
    for kind in ("video", "audio"):
        for one in media:
            if one.track.kind == kind:
                return one
    return media[0]


def cut(
    media: Sequence[PlannedTrack], seconds: Fraction | None, lead: PlannedTrack | None = None
) -> list[Int64]:
    """Numbers of the first sample of each segment, and of the end, for each track.

    A segment begins with a sync sample of the reference track: that nearest to the wanted length
    after the one before. Other tracks are cut at their sync sample that is presented nearest to
    that moment, so that all have equally many segments; some may be empty.

    Args:
        media: at least one track.
        seconds: wanted length; None: a segment for each sync sample of the reference track.
        lead: the reference track; None: as `reference` says.

    Raises:
        NoSyncSample: a track has no sync sample.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> from fragdex.muxing.media import media_of
    >>> media = media_of(fragdex.index(movie(6, samples=5, fps=5)).track(1))
    >>> cut([media], Fraction(2))[0].tolist()
    [0, 10, 20, 30]
    """
    lead = lead or reference(media)
    numbers, times = starts(lead)
    chosen = near(times.tolist(), lead.end, seconds, lead.timescale)
    cuts = []
    for one in media:
        same = one is lead
        edges = numbers[chosen] if same else _nearest(one, times[chosen], lead.timescale)
        cuts.append(np.concatenate([[0], edges[1:], [len(one)]]).astype(np.int64))
    return cuts


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
    behind = least_from(media.presentation)
    times = np.where(behind[numbers] > media.hidden, behind[numbers], 0)
    rises = np.diff(times, prepend=-1) > 0
    return numbers[rises], times[rises]


def near(times: list[int], end: int | None, seconds: Fraction | None, timescale: int) -> list[int]:
    """Which of rising times are taken: each nearest to a length after the one before.

    The end of the track is one to choose from, too: then the last segment reaches to it. None:
    it is not known yet, and the last one taken is where the last segment ends.

    >>> near([0, 3, 6, 9], 12, Fraction(5), 1), near([0, 3, 6, 9], None, Fraction(5), 1)
    ([0, 2], [0, 2])
    """
    if seconds is None:
        return list(range(len(times)))
    # whole numbers: fractions of thousands of times take a while
    length, unit = (seconds * timescale).as_integer_ratio()
    places = [at * unit for at in times]
    if end is not None and times:
        places.append(max(end, times[-1]) * unit)
    chosen = [0] if times else []
    while chosen:
        last = chosen[-1]
        wanted = places[last] + length
        at = bisect_left(places, wanted, lo=last + 1)
        if end is not None:
            at = min(at, len(times))
        elif at == len(times):
            break  # which one is nearest, only what comes can tell
        if at > last + 1 and wanted - places[at - 1] <= places[at] - wanted:
            at -= 1
        if at == len(times):
            break
        chosen.append(at)
    return chosen


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

    Args:
        times, scale: in ticks of so many a second.
        moments, timescale: likewise.

    Returns: places in `times`, and of each moment whether there is a time after it.

    >>> places, behind = nearest(np.array([0, 4, 9]), 1, np.array([1, 3, 9]), 1)
    >>> places.tolist(), behind.tolist()
    ([0, 1, 2], [True, True, False])
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
    media: PlannedTrack, lead: PlannedTrack, seconds: Fraction | None
) -> tuple[PlannedTrack, Int64] | None:
    """The samples of segments that stay as they are, and where these begin and end.

    They are cut as `cut` cuts the whole, whatever follows. None: not one segment is complete.

    Args:
        media: the track.
        lead: the track that decides where all are cut.
        seconds: wanted length; None: a segment for each sync sample of the lead.
    """
    numbers, times = _known(lead)
    chosen = near(times.tolist(), None, seconds, lead.timescale)
    if media is lead:
        edges, ends = numbers[chosen], times[chosen]
    else:
        own, shown = _known(media)
        if not len(own) or not len(chosen):
            return None
        scales = media.timescale, lead.timescale
        places, decided = nearest(shown, scales[0], times[chosen], scales[1])
        places = np.maximum.accumulate(places[decided])
        edges, ends = own[places], shown[places]
    if len(edges) < 2:
        return None
    edges[0] = 0
    edges, first = np.unique(edges, return_index=True)
    if len(edges) < 2:
        return None
    return media.rows(slice(0, int(edges[-1])), end=int(ends[first[-1]])), edges


def _known(media: PlannedTrack) -> tuple[Int64, Int64]:
    """Starts of segments after which enough is known: a sample that is presented later."""
    numbers, times = starts(media)
    latest = greatest_from(media.presentation)
    known = latest[numbers] > media.presentation[numbers]
    return numbers[known], times[known]
