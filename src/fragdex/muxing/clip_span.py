"""What a clip is: its blocks, the part of each track that it spans, where its own times begin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from fragdex.boxes import Box
from fragdex.byterange import ByteRange
from fragdex.errors import NoSyncSample
from fragdex.formats.subsegments import period_of
from fragdex.fragments.table import NULL
from fragdex.muxing.census import NO_SAMPLES, LeftOut, track_left_out
from fragdex.muxing.kept import Kept
from fragdex.muxing.movie import traks_of
from fragdex.muxing.plan import PlannedTrack
from fragdex.muxing.view import Block, Derived, Interleaved, Scattered, SourceRange
from fragdex.record import record
from fragdex.seeking.model import Index, Period, Track
from fragdex.seeking.times import floor_ticks

Read = Callable[[ByteRange], bytes]
Piece = bytes | ByteRange
"""Bytes to write as they are, or a range of the source to copy."""


@record(frozen=True, slots=True)
class Clip:
    """What a clip is made of.

    Attributes:
        blocks: bytes and ranges of the source, to be written in this order; can be iterated once.
        start, stop: seconds of the source's presentation that the clip really spans (exclusive).
        whole_fragments: whether fragments were taken as they are, and samples were not chosen.
        exact: whether it presents what was requested and no more.
        left_out: which tracks, and what else, are not in it and why, as sentences.
        encoded: pictures next to the cuts that were re-encoded.
        kept: what of the source it shows, where parts of it were removed.
    """

    blocks: Iterator[Block | ByteRange]
    start: Fraction
    stop: Fraction
    tracks: tuple[int, ...]
    whole_fragments: bool
    exact: bool = False
    left_out: tuple[LeftOut, ...] = ()
    encoded: int = 0
    kept: Kept = ()

    def noting(self, tracks: Iterable[Track]) -> Clip:
        """The same, with these tracks in its `left_out` where it does not have them."""
        known = " ".join(self.left_out)
        gone = [
            track_left_out(track, "nothing of it is shown" if track.sample_count else NO_SAMPLES)
            for track in tracks
            if track.id not in self.tracks and f"track {track.id} " not in known
        ]
        return replace(self, left_out=(*self.left_out, *gone))

    @property
    def pieces(self) -> Iterator[Piece]:
        """The blocks, with each range by itself."""
        for block in self.blocks:
            if isinstance(block, (Scattered, Interleaved)):
                parts = block.parts()
                yield from (part if isinstance(part, bytes) else part.range for part in parts)
            elif isinstance(block, SourceRange):
                yield block.range
            elif not isinstance(block, Derived):
                yield block


@record(frozen=True, slots=True)
class ClipSpan:
    """The rows of one track that a clip needs.

    Attributes:
        first, last: numbers of the rows, last exclusive.
        sample: number of the sync sample that decoding begins at, in the track; None: not known.
        limit: ticks of composition time; samples before it are shown.
    """

    track: Track
    first: int
    last: int
    sample: int | None
    limit: int

    @property
    def rows(self) -> Any:
        """Those rows of the track's table of fragments."""
        return self.track.fragments.rows(slice(self.first, self.last))

    @property
    def falls_back(self) -> bool:
        """Whether a row is decoded before the one that stands before it."""
        dts = self.rows.dts
        return bool(((dts[1:] < dts[:-1]) & (dts[1:] != NULL)).any())


def period_at(index: Index, start: Fraction | float, stop: Fraction | float) -> Period:
    """The period that shows something from `start` to `stop`; the first where none does."""
    shown = [
        period
        for period in index.periods
        if any(
            track.start is not None
            and track.stop is not None
            and track.start < stop
            and (track.stop > start or track.stop == track.start == start)
            for track in period.tracks
        )
    ]
    return period_of(index, None) if len(shown) > 1 else next(iter(shown), index.periods[0])


def spans_of(
    period: Period, start: Fraction | float, stop: Fraction | float, ids: set[int] | None
) -> list[ClipSpan]:
    """The rows of each track that show something from `start` to `stop` (seconds, exclusive)."""
    for wanted in ids or ():
        period.track(wanted)
    chosen = [
        track
        for track in period.tracks
        if (ids is None or track.id in ids)
        and (track.timescale and len(track.sync_samples))
        and track.stop is not None
        and (track.stop > start or track.kind == "timecode" or track.stop == track.start == start)
    ]
    # Sound begins with the first picture, which may be shown before `start`.
    pictures = next((track for track in chosen if track.kind == "video"), None)
    begin = start if pictures is None else min(start, pictures.seek(start).time.fraction)
    spans = []
    for track in chosen:
        # A composition time before the limit is presented before `stop`.
        limit = -floor_ticks(-stop, track.timescale, -track.shift)
        hit = track.seek(start if track is pictures else begin)
        rows, here = track.fragments, hit.fragment
        shown = (rows.cts_min < limit) & (rows.cts_min != NULL)
        # Where decode times fall back, what stands before may be shown after.
        shown[:here] &= (rows.dts[:here] > rows.dts[here]) & (rows.dts[here] != NULL)
        places = np.flatnonzero(shown)
        if len(places) and places[-1] >= here:
            first = min(int(places[0]), here)
            sample = hit.sample if first == here else int(rows.sample_start[first])
            spans.append(ClipSpan(track, first, int(places[-1]) + 1, sample, limit))
    if not spans:
        end = "the end" if stop == float("inf") else f"{float(stop):g} s"
        stops = [track.stop.fraction for track in period.tracks if track.stop is not None]
        known = ""
        if stops and start >= (over := max(stops)):
            known = f": it ends at {float(over):g} s"
            if over <= 0:
                known = ": no track shows anything after time 0"
        raise NoSyncSample(f"nothing can be shown from {float(start):g} s to {end}{known}")
    return spans


def bound(track: Track, column: Any, pick: Callable[[Any], Any]) -> Fraction:
    """The least or greatest known composition time of a column, in seconds of presentation."""
    known = column[column != NULL]
    return track.presentation(int(pick(known)) if len(known) else 0).fraction


def delay(track: Track) -> Fraction:
    """Ticks by which empty edits delay a track (ISO/IEC 14496-12, 8.6.6)."""
    media_times = (edit.media_time for edit in track.info.edits if edit.media_time >= 0)
    return track.info.shift(track.movie_timescale) + next(media_times, 0)


def moves(firsts: Sequence[tuple[Track, int, int]]) -> tuple[Fraction, dict[int, int]]:
    """What is taken off all times: seconds, and ticks of each track's media timeline.

    The first sample is shown at 0, or as soon after it as decode times of 0 or more allow. Delays
    are gone then: they are in the decode times.
    """
    delays = {track.id: delay(track) for track, _, _ in firsts}
    origin = min(
        min(track.presentation(cts).fraction, (dts + delays[track.id]) / track.timescale)
        for track, dts, cts in firsts
    )
    return origin, {t.id: int((origin * t.timescale - delays[t.id]) // 1) for t, _, _ in firsts}


BESIDE = ("timecode", "hint")
"""Kinds of tracks whose samples speak of the source's first sample, or of its bytes: taken out of
their place they would lie. Timecode is rewritten, hints are left out."""


def planned_beside(
    tracks: Iterable[Track],
    boxes: Sequence[Box],
    make: Callable[[Track, Box], PlannedTrack | str],
) -> tuple[list[PlannedTrack], tuple[LeftOut, ...]]:
    """The results of timecode tracks, and which tracks are left out and why.

    Args:
        make: the result of a track and its trak, or why nothing is; "" where it has nothing.
    """
    added, notes, traks = [], [], traks_of(boxes)
    for track in tracks:
        part: PlannedTrack | str = "its samples name bytes of the source"
        if track.kind == "timecode":
            part = "the moov does not describe it"
            if track.id in traks:
                part = make(track, traks[track.id])
        if not isinstance(part, str):
            added.append(part)
        elif part:
            notes.append(track_left_out(track, part))
    return added, tuple(notes)
