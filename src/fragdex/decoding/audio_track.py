"""A track of sound that is open for decoding, and what could not be decoded of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from fragdex.decoding.open_track import OpenTrack
from fragdex.decoding.samples import TrackSamples
from fragdex.decoding.video_track import one_period_of
from fragdex.errors import TrackNotFound
from fragdex.seeking.model import FragmentIndex, TrackIndex
from fragdex.sources import SourceLike

__all__ = ["AudioTrack", "Gap", "joined"]


@dataclass(frozen=True, slots=True)
class Gap:
    """A span without sound, because its samples cannot be had.

    Attributes:
        start, stop: seconds of presentation time (exclusive).
        reason: why, in some words.

    >>> Gap(1.0, 2.5, "missing from the file").stop
    2.5
    """

    start: float
    stop: float
    reason: str


class AudioTrack(OpenTrack):
    """A track of sound that is open for decoding.

    Attributes:
        track: the `TrackIndex` that is read.
        samples: its `TrackSamples`.

    Args:
        index: of the file.
        source: the file, in any form that `fragdex.open_source` takes.
        track: track_ID; None: the first audio track.
        init: the initialization segment, for segments that have none.

    Raises:
        TrackNotFound: no such track, or it is not audio.
        And what `OpenTrack` raises.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> data = movie()
    >>> AudioTrack(fragdex.index(data), data)
    Traceback (most recent call last):
    ...
    fragdex.errors.TrackNotFound: there is no audio track
    """

    def __init__(
        self,
        index: FragmentIndex,
        source: SourceLike,
        *,
        track: int | None = None,
        init: bytes | None = None,
    ) -> None:
        super().__init__(index, _chosen(index, track), source, init)
        self._shown = _shown(self.track, self._period.movie, self._codec.skip)
        self.samples = TrackSamples(self._index, self.track, self._source)


def joined(gaps: Sequence[Gap]) -> list[Gap]:
    """Gaps that touch, and have one reason, as one.

    >>> joined([Gap(0, 1, "damaged"), Gap(1, 2, "damaged")])
    [Gap(start=0, stop=2, reason='damaged')]
    """
    found: list[Gap] = []
    for gap in gaps:
        last = found[-1] if found else None
        if last is not None and last.reason == gap.reason and gap.start <= last.stop + 0.05:
            found[-1] = Gap(last.start, max(last.stop, gap.stop), gap.reason)
        else:
            found.append(gap)
    return found


def _chosen(index: FragmentIndex, track: int | None) -> TrackIndex:
    sounds = [t for t in index.tracks if t.kind == "audio"]
    if track is None:
        if not sounds:
            raise TrackNotFound("there is no audio track")
        one_period_of(sounds)
        chosen = sounds[0]
    else:
        chosen = index.track(track)
        if chosen.kind != "audio":
            names = ", ".join(str(t.id) for t in sounds) or "none"
            raise TrackNotFound(
                f"track {track} is not an audio track",
                expected=f"one of {names}",
                found=chosen.kind,
            )
    if not chosen.timescale:
        raise TrackNotFound(f"the timescale of track {chosen.id} is unknown, so it has no times")
    return chosen


def _shown(track: TrackIndex, movie: Any, skip: int) -> tuple[int | None, int | None]:
    """First (inclusive) and last (exclusive) tick of cts that the edit list shows; None: all."""
    edits = [edit for edit in track.info.edits if edit.media_time >= 0]
    if not edits:
        first = min((int(c) for c in track.fragments.cts_min[:1]), default=0)
        return (first + skip * track.timescale // 48000 if skip else None), None
    begin = edits[0].media_time
    # Of several edits only the first is applied, as in the whole library: what follows stays.
    whole = len(edits) > 1 or track.info.edits[-1] is not edits[0] or not edits[0].duration
    if whole or movie.fragmented or not movie.timescale:
        return begin, None
    ticks = Fraction(edits[0].duration * track.timescale, movie.timescale)
    return begin, begin + math.ceil(ticks)
