"""The samples of a track on the timeline of fragments, where the edit list is in the times.

Players of fragments agree on one edit list only: none, or one entry that takes off a time at the
start (ISO/IEC 23000-19, 7.5.13). So a track that begins late has late decode times. The one entry
takes off what the edit list hides before time 0, and the time that pictures wait because others are
decoded before them: composition offsets stay at 0 or above, since players disagree about negative
ones.

A sample lasts until the next one in presentation order is due, and decode times are the sums of
these durations. Browsers show a picture for as long as its sample lasts, which the decode times of
a variable frame rate do not say; and each segment has the decode time at which it is presented,
which is where players put it that read nothing else (decision 0038).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np

from fragdex.errors import BuildError, NoSyncSample
from fragdex.fragments.table import FAR, Int64, SampleTable
from fragdex.seeking.model import TrackIndex

__all__ = ["Media", "media_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Media:
    """Samples of a track, and their times in fragments.

    Attributes:
        track: where they come from.
        source: int64 number of the source that holds each sample.
        samples: in decode order, with the times of the source.
        presentation: int64 presentation time of each, in ticks of the track; below 0: hidden.
        decode: int64 decode time of each in fragments, in ticks; never below 0, nor behind the
            composition time.
        durations: int64 ticks of each to the next one in presentation order, the last one's own;
            and to the next one's decode time.
        media_time: ticks that the edit list of the fragments takes off; 0: they have none.
        end: presentation time in ticks at which the last sample ends.
        settled: whether `media_time` and `decode` stay what they are when samples follow.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> media = media_of(fragdex.index(movie(2, samples=3)).track(1))
    >>> media.presentation.tolist() == media.decode.tolist(), media.media_time
    (True, 0)
    """

    track: TrackIndex
    source: Int64
    samples: SampleTable
    presentation: Int64
    decode: Int64
    durations: Int64
    media_time: int
    end: int
    settled: bool = True

    def __len__(self) -> int:
        return len(self.samples)

    @property
    def offsets(self) -> Int64:
        """int64 composition offset of each sample in fragments, in ticks."""
        offsets: Int64 = self.presentation + self.media_time - self.decode
        return offsets


def media_of(
    track: TrackIndex, *, size: int | None = None, source: int = 0, growing: bool = False
) -> Media:
    """A track's samples on the timeline of fragments.

    Samples that the edit list hides at the end are left out, where nothing shown follows them; and
    those that a file which was cut off no longer has.

    Args:
        track: of an index that knows its samples.
        size: bytes of the source; None: not known.
        source: its number.
        growing: whether what follows must not change the times of what is there: how long
            pictures wait because others are decoded before them is that of the first second.

    Raises:
        InexactIndex: the index does not know the track's samples.
        NoSyncSample: the track has no samples that are shown.
        BuildError: its edit list has several parts, or another rate than 1.
    """
    shown = [segment for segment in track.segments if segment.media_time >= 0]
    if len(shown) > 1 or any(segment.rate != 1 for segment in shown):
        raise BuildError(
            f"the edit list of track {track.id} shows several parts of its media, or not at their "
            "own rate, and fragments cannot say that",
            path="moov/trak/edts/elst",
            expected="one part, at rate 1",
            found=f"{len(shown)} parts",
            advice="make a clip of the whole file instead: it keeps the edit list",
        )
    samples = track.samples
    if shown and track.end is not None:
        stop = track.end.exact * track.timescale - track.shift
        samples = _until(samples, stop, track)
    outside = np.flatnonzero(samples.offset + samples.size > (FAR if size is None else size))
    if len(outside):
        samples = samples.rows(slice(0, int(outside[0])))
    if not len(samples):
        raise NoSyncSample(f"track {track.id} has no samples that are shown")
    presentation = samples.cts + round(track.shift)
    order = np.argsort(presentation, kind="stable")
    durations = np.empty(len(samples), np.int64)
    last = int(samples.duration[order[-1]])
    durations[order] = np.diff(presentation[order], append=presentation[order[-1]] + last)
    decode = np.cumsum(durations) - durations + max(int(presentation.min()), 0)
    first = _first_second(samples, track) if growing else len(samples)
    media_time = max(0, int((decode - presentation)[:first].max()))
    end = int((presentation + durations).max())
    if end <= 0:
        raise NoSyncSample(f"the edit list hides all of track {track.id}")
    settled = not growing or first < len(samples)
    sources: Int64 = np.broadcast_to(np.int64(source), len(samples))
    return Media(track, sources, samples, presentation, decode, durations, media_time, end, settled)


def _first_second(samples: SampleTable, track: TrackIndex) -> int:
    """Samples before the first sync sample that is presented a second behind the first sample.

    Something later is presented behind it, so that all is known that is presented before it.
    """
    latest = np.maximum.accumulate(samples.cts[::-1])[::-1]
    later = samples.sync & (samples.cts >= samples.cts[0] + track.timescale)
    later &= latest > samples.cts
    return int(later.argmax()) if later.any() else len(samples)


def _until(samples: SampleTable, stop: Fraction, track: TrackIndex) -> SampleTable:
    """Without samples at the end that begin at `stop` or later, a composition time in ticks."""
    # The edit list counts in the movie's timescale: a tick of it is rounding.
    stop += Fraction(track.timescale, track.movie_timescale or track.timescale)
    inside = np.flatnonzero(samples.cts < ceil(stop))
    return samples.rows(slice(0, int(inside[-1]) + 1 if len(inside) else 0))
