"""Where media is cut into segments: at sync samples of the pictures, near a wanted length."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from fragdex.errors import NoSyncSample
from fragdex.fragments.table import Int64
from fragdex.views.media import Media

__all__ = ["cut", "reference"]


def reference(media: Sequence[Media]) -> Media:
    """The track that decides where all are cut: the first video, or else audio, or else any.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> from fragdex.views.media import media_of
    >>> tracks = fragdex.index(movie(2, tracks=2)).tracks
    >>> reference([media_of(track) for track in reversed(tracks)]).track.kind
    'video'
    """
    for kind in ("video", "audio"):
        for one in media:
            if one.track.kind == kind:
                return one
    return media[0]


def cut(media: Sequence[Media], seconds: Fraction | None, lead: Media | None = None) -> list[Int64]:
    """Numbers of the first sample of each segment, and of the end, for each track.

    A segment begins with a sync sample of the reference track: that nearest to the wanted length
    behind the one before. Other tracks are cut at their sync sample that is presented nearest to
    that moment, so that all have equally many segments; some may be empty.

    Args:
        media: at least one track.
        seconds: wanted length; None: a segment for each sync sample of the reference track.
        lead: the reference track; None: as `reference` says.

    Raises:
        NoSyncSample: a track has no sync sample.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> from fragdex.views.media import media_of
    >>> media = media_of(fragdex.index(movie(6, samples=5, fps=5)).track(1))
    >>> cut([media], Fraction(2))[0].tolist()
    [0, 10, 20, 30]
    """
    lead = lead or reference(media)
    numbers, times = _starts(lead)
    chosen = _near(times.tolist(), lead.end, seconds, lead.track.timescale)
    moments = [Fraction(int(at), lead.track.timescale) for at in times[chosen].tolist()]
    found = []
    for one in media:
        edges = numbers[chosen] if one is lead else _nearest(one, moments)
        found.append(np.concatenate([[0], edges[1:], [len(one)]]).astype(np.int64))
    return found


def _starts(media: Media) -> tuple[Int64, Int64]:
    """Samples that a segment may begin with, and the presentation times from which it shows.

    The times rise, and but for the first they lie behind 0. Nothing behind such a sample is
    presented earlier, be it decoded later.
    """
    numbers = np.flatnonzero(media.samples.sync)
    if not len(numbers):
        raise NoSyncSample(
            f"track {media.track.id} has no sync sample, so that no segment could begin",
            advice="fragdex info says what its samples are; such a file has to be encoded again",
        )
    behind = np.minimum.accumulate(media.presentation[::-1])[::-1]
    times = np.maximum(behind[numbers], 0)
    rises = np.diff(times, prepend=-1) > 0
    return numbers[rises], times[rises]


def _near(times: list[int], end: int, seconds: Fraction | None, timescale: int) -> list[int]:
    """Which of rising times are taken: each nearest to a length behind the one before.

    The end of the track is one to choose from, too: then the last segment reaches to it.
    """
    if seconds is None:
        return list(range(len(times)))
    length = seconds * timescale
    places = [*times, max(end, times[-1])]
    chosen = [0]
    while True:
        last = chosen[-1]
        wanted = times[last] + length
        at = bisect_left(places, wanted, lo=last + 1)
        at = min(at, len(times))
        if at > last + 1 and wanted - places[at - 1] <= places[at] - wanted:
            at -= 1
        if at == len(times):
            return chosen
        chosen.append(at)


def _nearest(media: Media, moments: Sequence[Fraction]) -> Int64:
    """The sync samples presented nearest to some moments; of two as near, the earlier."""
    numbers, times = _starts(media)
    wanted = [moment * media.track.timescale for moment in moments]
    floors = np.array([int(at // 1) for at in wanted], np.int64)
    behind = np.searchsorted(times, floors, side="right")
    before = np.maximum(behind - 1, 0)
    behind = np.minimum(behind, len(times) - 1)
    nearer = [
        b if abs(times_b - at) < abs(at - times_a) else a
        for a, b, times_a, times_b, at in zip(
            before.tolist(),
            behind.tolist(),
            times[before].tolist(),
            times[behind].tolist(),
            wanted,
            strict=True,
        )
    ]
    # where a track ends before such a moment, or begins behind it, there is nothing to cut
    edges = numbers[np.array(nearer, np.int64)]
    late = np.array([at >= media.end for at in wanted], np.bool_)
    edges[late] = len(media)
    return np.maximum.accumulate(edges)
