"""Which rows of which tracks a clip needs, and by how much their times move."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from fragdex.errors import NoSyncSample
from fragdex.formats.subsegments import period_of
from fragdex.fragments.table import NULL
from fragdex.seeking.model import FragmentIndex, Period, TrackIndex
from fragdex.seeking.times import floor_ticks

__all__ = ["Span", "bound", "delay", "moves", "period_at", "spans_of"]


@dataclass(frozen=True, slots=True)
class Span:
    """The rows of one track that a clip needs.

    Attributes:
        first, last: numbers of the rows, last exclusive.
        sample: number of the sync sample that decoding begins at, in the track; None: not known.
        limit: ticks of composition time; samples before it are shown.
    """

    track: TrackIndex
    first: int
    last: int
    sample: int | None
    limit: int

    @property
    def rows(self) -> Any:
        """Those rows of the track's table of fragments."""
        return self.track.fragments.rows(slice(self.first, self.last))


def period_at(index: FragmentIndex, start: Fraction | float, stop: Fraction | float) -> Period:
    """The period that shows something from `start` to `stop`; the first where none does.

    Raises:
        BuildError: several do.
    """
    shown = [
        period
        for period in index.periods
        if any(
            track.start is not None
            and track.end is not None
            and track.start < stop
            and track.end > start
            for track in period.tracks
        )
    ]
    return period_of(index, None) if len(shown) > 1 else next(iter(shown), index.periods[0])


def spans_of(
    period: Period, start: Fraction | float, stop: Fraction | float, ids: set[int] | None
) -> list[Span]:
    """The rows of each track that show something from `start` to `stop` (seconds, exclusive).

    Args:
        ids: of the tracks; None: all.

    Raises:
        TrackNotFound: there is no such track.
        NoSyncSample: nothing can be shown.
    """
    for track_id in ids or ():
        period.track(track_id)
    chosen = [
        track
        for track in period.tracks
        if (ids is None or track.id in ids)
        and (track.timescale and len(track.sync))
        and (track.end is not None and (track.end > start or track.kind == "timecode"))
    ]
    # Sound begins with the first picture, which may be shown before `start`.
    pictures = next((track for track in chosen if track.kind == "video"), None)
    begin = start if pictures is None else min(start, pictures.seek(start).time.exact)
    found = []
    for track in chosen:
        # A composition time before the limit is presented before `stop`.
        limit = -floor_ticks(-stop, track.timescale, -track.shift)
        hit = track.seek(start if track is pictures else begin)
        begins = track.fragments.cts_min[hit.fragment :]
        shown = np.flatnonzero((begins < limit) & (begins != NULL))
        if len(shown):
            last = hit.fragment + int(shown[-1]) + 1
            found.append(Span(track, hit.fragment, last, hit.sample, limit))
    if not found:
        end = "the end" if stop == float("inf") else f"{float(stop):g} s"
        raise NoSyncSample(f"nothing can be shown from {float(start):g} s to {end}")
    return found


def bound(track: TrackIndex, column: Any, pick: Callable[[Any], Any]) -> Fraction:
    """The least or greatest known composition time of a column, in seconds of presentation."""
    known = column[column != NULL]
    return track.presentation(int(pick(known)) if len(known) else 0).exact


def delay(track: TrackIndex) -> Fraction:
    """Ticks by which empty edits delay a track (ISO/IEC 14496-12, 8.6.6)."""
    media_times = (edit.media_time for edit in track.info.edits if edit.media_time >= 0)
    return track.shift + next(media_times, 0)


def moves(firsts: Sequence[tuple[TrackIndex, int, int]]) -> tuple[Fraction, dict[int, int]]:
    """What is taken off all times: seconds, and ticks of each track's media timeline.

    Args:
        firsts: each track with the decode and the composition time of its first sample.

    The first sample is shown at 0, or as soon after it as decode times of 0 or more allow. Delays
    are gone then: they are in the decode times.
    """
    delays = {track.id: delay(track) for track, _, _ in firsts}
    origin = min(
        min(track.presentation(cts).exact, (dts + delays[track.id]) / track.timescale)
        for track, dts, cts in firsts
    )
    return origin, {t.id: int((origin * t.timescale - delays[t.id]) // 1) for t, _, _ in firsts}
