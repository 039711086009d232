"""Files one behind the other as one: each at its place of the timeline, its samples as they are.

Fragments have one edit list for the whole track, so that what a later file hides cannot be hidden
by one. Sound that is hidden at its start (priming, pre-roll) is cut at access units; pictures that
are hidden there are needed by those behind them, and get a tick each before the file begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from fragdex.boxes import Box, build, parse
from fragdex.errors import BuildError
from fragdex.formats.clip_movie import with_next_id
from fragdex.fragments.table import FAR, FragmentTable, Int64, SampleTable, SyncTable
from fragdex.seeking.model import TrackIndex
from fragdex.seeking.times import TimeLike, exact_time
from fragdex.views.joined_tracks import Lane, Piece, lanes_of
from fragdex.views.media import Media
from fragdex.views.segmentation import cut, reference
from fragdex.views.segments import Segments

__all__ = ["Piece", "Starts", "segments_of"]

Starts: TypeAlias = Sequence[TimeLike] | Literal["source"] | None
"""Where files begin: each behind the one before (None), at their own times, or as given."""

_SHORT: Final = Fraction(1, 2)
"""Seconds without a sample of a track between two files over which its last one lasts."""


def segments_of(pieces: Sequence[Piece], starts: Starts, seconds: Fraction | None) -> Segments:
    """The segments of a timeline; each has samples of one piece.

    Args:
        pieces: at least one.
        starts: where they begin.
        seconds: wanted length; None: a segment for each sync sample.

    Raises:
        ValueError: there are not as many starts as pieces, or one is no time of 0 or later.
        BuildError: pieces overlap, or their tracks do not go together.
        NoSyncSample: a track has no sync sample.
    """
    *early, last = pieces
    cut_off = [replace(p, media=tuple(map(_without_rest, p.media))) for p in early]
    pieces = [*cut_off, last]
    lanes = lanes_of(pieces)
    begins = _starts(pieces, starts)
    placed = [_Placed(lane, begins, starts is None, pieces) for lane in lanes]
    joined = [one.joined for one in placed]
    lead = lanes[next(n for n, one in enumerate(joined) if one is reference(joined))]
    edges: list[list[Int64]] = [[] for _ in lanes]
    for piece in pieces:
        if piece.number not in lead.members:
            raise BuildError(
                f"{piece.name} has no {lead.first.kind}, and the files beside it have",
                path="moov/trak",
                advice="leave those tracks out (tracks=), or that file",
            )
        here = [n for n, one in enumerate(placed) if piece.number in one.parts]
        parts = [placed[n].parts[piece.number] for n in here]
        pace = parts[here.index(lanes.index(lead))]
        found = dict(zip(here, cut(parts, seconds, pace), strict=True))
        none = np.zeros(len(next(iter(found.values()))), np.int64)
        for n, list_ in enumerate(edges):
            # the end of a piece is the start of the next one
            list_.append(found.get(n, none)[:-1] + placed[n].bases[piece.number])
    cuts = [
        np.append(np.concatenate(list_), len(one)) for list_, one in zip(edges, joined, strict=True)
    ]
    return Segments(
        _init(pieces[0].init, lanes),
        joined,
        seconds,
        cuts,
        descriptions=[one.descriptions for one in placed],
    )


def _starts(pieces: Sequence[Piece], starts: Starts) -> list[Fraction]:
    """Seconds of the timeline at which the presentation times of pieces begin to count.

    Raises:
        ValueError, BuildError: as `segments_of`.
    """
    spans = [_span(piece) for piece in pieces]
    if starts is None:
        found, reached = [], Fraction(0)
        for begin, lasts in spans:
            found.append(reached - begin)
            reached += lasts - begin
        return found
    if starts == "source":
        return [-spans[0][0]] * len(spans)
    if isinstance(starts, str) or len(starts) != len(pieces):
        many = f"{len(starts)} starts" if not isinstance(starts, str) else repr(starts)
        raise ValueError(f'{many} for {len(pieces)} files: one for each is needed, or "source"')
    given = [exact_time(start) for start in starts]
    for start, text in zip(given, starts, strict=True):
        if not 0 <= start < float("inf"):
            raise ValueError(f"a file begins at 0 s or later, and not never: {text}")
    return [Fraction(at) - begin for at, (begin, _) in zip(given, spans, strict=True)]


def _span(piece: Piece) -> tuple[Fraction, Fraction]:
    """Seconds of its own presentation from which to which a piece is shown.

    To the end of the pictures; sound that lasts longer by less than half an access unit is left to
    overlap the next file's, so that pictures of recordings that were split follow each other.
    """
    shown = [m for m in piece.media if m.track.kind in ("video", "audio")] or list(piece.media)
    begin = min(_seconds(m, max(int(m.presentation.min()), 0)) for m in shown)
    lead = reference(shown)
    beside = [m for m in shown if m is not lead]
    ends = [_last_half(m) if m.track.kind == "audio" else _end(m) for m in beside]
    return begin, max([_end(lead), *ends])


def _end(media: Media) -> Fraction:
    """Seconds at which the last sample ends, or the edit list does."""
    ends, track = _seconds(media, media.end), media.track
    return min(ends, track.end.exact) if track.segments and track.end is not None else ends


def _last_half(media: Media) -> Fraction:
    """Seconds at which half of the last access unit is over."""
    return _seconds(media, 2 * int(media.presentation[-1]) + int(media.durations[-1])) / 2


def _without_rest(media: Media) -> Media:
    """Sound without access units at the end of which less than half is heard."""
    if media.track.kind != "audio" or len(media) < 2:
        return media
    stop = _end(media) * media.timescale
    heard = np.flatnonzero(2 * media.presentation + media.durations <= ceil(2 * stop))
    high = int(heard[-1]) + 1 if len(heard) else 1
    if high == len(media):
        return media
    part = slice(0, high)
    return replace(
        media,
        source=media.source[part],
        samples=media.samples.rows(part),
        presentation=media.presentation[part],
        decode=media.decode[part],
        durations=media.durations[part],
        end=int((media.presentation[part] + media.durations[part]).max()),
    )


def _seconds(media: Media, ticks: int) -> Fraction:
    return Fraction(ticks, media.timescale)


class _Placed:
    """A lane with its samples at their places.

    Attributes:
        parts: number of the piece → its samples, on the timeline.
        bases: of each piece the number of its first sample, or where it would be.
        joined: all of them.
        descriptions: sample_description_index of each; None: 1 for all.
    """

    def __init__(
        self, lane: Lane, begins: Sequence[Fraction], closed: bool, pieces: Sequence[Piece]
    ) -> None:
        info = replace(lane.first.info, id=lane.id, timescale=lane.timescale, edits=())
        self._track = TrackIndex(info, FragmentTable.empty(), SyncTable.empty())
        self._closed, self._pieces = closed, pieces
        kept = {n: self._moved(lane.members[n], begins[n]) for n in sorted(lane.members)}
        delay = max(_delay(media) for media, _, _ in kept.values())
        self.parts: dict[int, Media] = {}
        before: Media | None = None
        for number, (media, hidden, _) in kept.items():
            media = replace(media, decode=media.decode - (delay - _delay(media)))
            if hidden.any():
                media = _squeezed(media, hidden)
            if before is not None:
                last = self._last(before)
                media, before = self._follow(before, media, pieces[number], pieces[last])
                self.parts[last] = before
            self.parts[number] = before = media
        late = max(0, -int(next(iter(self.parts.values())).decode[0]))
        self.parts = {
            n: replace(m, decode=m.decode + late, media_time=late) for n, m in self.parts.items()
        }
        self.bases: list[int] = []
        at = 0
        for piece in pieces:
            self.bases.append(at)
            at += len(self.parts.get(piece.number, ()))
        parts = list(self.parts.values())
        self.joined = Media(
            self._track,
            np.concatenate([one.source for one in parts]),
            SampleTable.concat([one.samples for one in parts]),
            np.concatenate([one.presentation for one in parts]),
            np.concatenate([one.decode for one in parts]),
            np.concatenate([one.durations for one in parts]),
            late,
            max(one.end for one in parts),
        )
        described = np.concatenate([lane.described[n][part] for n, (_, _, part) in kept.items()])
        self.descriptions: Int64 | None = None if (described == 1).all() else described

    def _last(self, media: Media) -> int:
        return next(number for number, one in self.parts.items() if one is media)

    def _moved(self, media: Media, at: Fraction) -> tuple[Media, Any, slice]:
        """A piece's samples at their place: which pictures are hidden, and what is not cut.

        Decode times are such that the least composition offset is 0.
        """
        own, scale = media.timescale, self._track.timescale
        joint = round(at * scale)
        edges = np.append(media.decode, media.decode[-1] + media.durations[-1]) - media.media_time
        edges = _ticks(edges, own, scale) + joint
        decode, durations = edges[:-1], np.diff(edges)
        presentation = _ticks(media.presentation, own, scale) + joint
        ends = presentation + durations
        low = 0
        hidden = (presentation < joint) if joint > 0 else np.zeros(len(media), np.bool_)
        if hidden.any() and self._track.kind == "video":
            # What is on show where the file begins is shown from there on.
            begun = np.flatnonzero(presentation <= joint)
            presentation[begun[presentation[begun].argmax()]] = joint
            hidden = presentation < joint
        if hidden.any() and self._track.kind != "video":
            # An access unit of sound is cut where half of it or more is hidden.
            least = durations // 2 if self._track.kind == "audio" else 0
            low = min(int((ends - joint > least).argmax()), len(media) - 1)
            if self._track.kind != "audio":
                presentation, decode = np.maximum(presentation, joint), np.maximum(decode, joint)
                durations = ends - presentation
            hidden[:] = False
        part = slice(low, len(media))
        moved = Media(
            self._track,
            media.source[part],
            media.samples.rows(part),
            presentation[part],
            decode[part],
            durations[part],
            0,
            int(ends.max()),
        )
        return moved, hidden, part

    def _follow(
        self, before: Media, media: Media, piece: Piece, last: Piece
    ) -> tuple[Media, Media]:
        """A piece behind another: decode times that rise, and how long the last sample lasts."""
        lasts = int(before.durations[-1])
        first, reached = int(media.presentation.min()), before.end
        scale = self._track.timescale
        if reached - first > max(lasts, 1) or first <= int(before.presentation.max()):
            raise BuildError(
                f"{piece.name} would begin before {last.name} has ended, on track {self._track.id}",
                expected=f"{float(Fraction(reached, scale)):.3f} s or later",
                found=f"{float(Fraction(first, scale)):.3f} s",
                advice="give later starts, or none: then files follow each other",
            )
        floor = int(before.decode[-1]) + 1
        decode = _not_before(media.decode, floor)
        durations = np.diff(decode, append=decode[-1] + media.durations[-1])
        media = replace(media, decode=decode, durations=durations)
        if (media.decode > media.presentation).any():
            raise BuildError(
                f"{piece.name} hides so many pictures at its start that they have no place behind "
                f"{last.name}",
                path="moov/trak/edts/elst",
                expected=f"at most {lasts} on track {self._track.id}",
                advice="begin it at a sync sample: fragdex.view(..., 'clip', exact=False)",
            )
        gap = int(decode[0]) - floor + 1
        short = self._closed and gap - lasts <= _SHORT * scale
        if gap < lasts or gap - lasts <= lasts // 2 or short:
            until = before.durations.copy()
            until[-1] = gap
            before = replace(before, durations=until)
        return media, before


def _delay(media: Media) -> int:
    """Ticks from the first decode time to the first presentation time."""
    return int(media.presentation.min()) - int(media.decode[0])


def _ticks(column: Int64, own: int, scale: int) -> Int64:
    """Times in another timescale, to the nearest tick."""
    if own == scale:
        return column
    if int(np.abs(column).max()) * scale >= FAR:
        moved = (column.astype(object) * scale + own // 2) // own
        return moved.astype(np.int64)
    found: Int64 = (column * scale + own // 2) // own
    return found


def _not_before(times: Int64, floor: int) -> Int64:
    """Rising times with those that lie before a floor at it, a tick apart."""
    if not len(times) or int(times[0]) >= floor:
        return times
    squeezed = floor + np.arange(len(times))
    free = np.flatnonzero(times >= squeezed)
    first = int(free[0]) if len(free) else len(times)
    return np.concatenate([squeezed[:first], times[first:]])


def _squeezed(media: Media, hidden: Any) -> Media:
    """Hidden pictures, a tick each before the first one that is shown, in their order."""
    joint = int(media.presentation[~hidden].min())
    numbers = np.flatnonzero(hidden)
    order = np.argsort(media.presentation[numbers], kind="stable")
    presentation = media.presentation.copy()
    presentation[numbers[order]] = joint - len(numbers) + np.arange(len(numbers))
    return replace(media, presentation=presentation)


def _init(init: bytes, lanes: Sequence[Lane]) -> bytes:
    """The first piece's ftyp and moov, with the traks of the lanes."""
    made = []
    for box in parse(init):
        if box.type == "moov":
            kept = [child for child in box.children if child.type != "trak"]
            at = next((n for n, c in enumerate(kept) if c.type == "mvhd"), -1) + 1
            traks: list[Box] = [lane.trak for lane in lanes if lane.trak is not None]
            box = with_next_id(box.replace(children=[*kept[:at], *traks, *kept[at:]]))
        made.append(build(box))
    return b"".join(made)
