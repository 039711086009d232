"""Who is shown, settled where an index is made: edits that begin inside a picture.

What stands here holds for seeking, frames, clips, views and repair alike, since they all ask the
track (`Track.shift`, `Track.segments`).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from fragdex.fragments.findings import Findings
from fragdex.fragments.table import NULL, FragmentFlags, FragmentTable
from fragdex.fragments.track_info import Movie, TrackInfo
from fragdex.seeking.model import SampleLoader

OF_ALL_ROWS = frozenset({"edit-inside-picture", "other-frames"})
"""Findings that hang on all rows of a track: made again where it grows."""

MOST_ROWS = 1 << 10
"""Rows around the beginning of an edit that are looked into."""


def settled_shift(
    info: TrackInfo, movie: Movie, fragments: FragmentTable, load: SampleLoader, findings: Findings
) -> Fraction:
    """Ticks from composition to presentation time, as what is built on FFmpeg counts them.

    Of a track without fragments, whose one edit has a duration and begins inside a picture, that
    picture is no frame, and the next one stands where the edit begins (docs/disagreements.md).
    """
    shift = info.shift(movie.timescale)
    shown = info.segments(movie.timescale)
    if info.kind != "video" or not shown or not len(fragments) or not info.timescale:
        return shift

    def note(code: str, message: str) -> None:
        findings.add(code, message, path="moov/trak/edts/elst", track=info.id)

    begin, stop = shown[0].media_time, shown[0].media_stop(info.timescale)
    least = fragments.cts_min
    is_virtual = (fragments.flags & FragmentFlags.VIRTUAL) != 0
    if (least == NULL).any():
        return shift
    if not is_virtual.all():
        # Where an edit lasts to the end, players of fragments hide what is before it, too.
        ends = len(shown) == 1 and stop is not None and not is_virtual.any()
        if ends and (int(least.min()) < begin or int(fragments.cts_end.max()) > (stop or 0)):
            note("other-frames", "the edit list hides pictures of fragments, which FFmpeg shows")
        return shift
    if stop is None and not movie.fragmented and movie.timescale:
        note(
            "other-frames",
            "an edit lasts 0, though no fragments follow: all that follows is shown, and FFmpeg "
            "shows nothing",
        )
    if len(shown) > 1 or not shown[0].rate or stop is None:
        return shift  # of what FFmpeg shows nothing, the standard counts
    if int(least.min()) >= begin:
        if int(least.min()) > begin:
            note(
                "other-frames",
                f"the edit begins {int(least.min()) - begin} ticks before the first picture, and "
                "nothing is shown then; FFmpeg shows all pictures so much earlier",
            )
        return shift
    around = np.flatnonzero((least <= begin) & (fragments.cts_end >= begin))[:MOST_ROWS].tolist()
    after = [load(row, row + 1).cts for row in around]
    firsts = [int(cts[cts >= begin].min()) for cts in after if (cts >= begin).any()]
    firsts += least[least > begin][:1].tolist() and [int(least[least > begin].min())]
    first = min(firsts, default=stop)
    if first == begin:
        return shift
    if first >= stop:
        note(
            "other-frames",
            "the edit list shows nothing but a part of one picture, which is a frame here; FFmpeg "
            "shows none",
        )
        return shift
    note(
        "edit-inside-picture",
        f"the edit begins inside a picture, {first - begin} ticks before the next one; that one is "
        "the first frame and stands where the edit begins, as in FFmpeg",
    )
    return shift - (first - begin)
