"""Where media that still grows is cut: only at places that nothing to come can change."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from fragdex.fragments.table import Int64
from fragdex.views.media import Media
from fragdex.views.segmentation import near, nearest, starts

__all__ = ["settled"]


def settled(media: Media, lead: Media, seconds: Fraction | None) -> tuple[Media, Int64] | None:
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
    return _until(media, int(edges[-1]), int(ends[first[-1]])), edges


def _known(media: Media) -> tuple[Int64, Int64]:
    """Starts of segments behind which enough is known: a sample that is presented later."""
    numbers, times = starts(media)
    latest = np.maximum.accumulate(media.presentation[::-1])[::-1]
    known = latest[numbers] > media.presentation[numbers]
    return numbers[known], times[known]


def _until(media: Media, stop: int, end: int) -> Media:
    rows = slice(0, stop)
    return replace(
        media,
        source=media.source[rows],
        samples=media.samples.rows(rows),
        presentation=media.presentation[rows],
        decode=media.decode[rows],
        durations=media.durations[rows],
        end=end,
    )
