"""Files one after the other as one: each at its place of the timeline, its samples as they are.

Fragments have one edit list for the whole track, so that what a later file hides cannot be hidden
by one. Sound that is hidden at its start (priming, pre-roll) is cut at access units; pictures that
are hidden there are needed by those after them, and get a tick each before the file begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from fractions import Fraction
from math import ceil, lcm
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from fragdex.boxes import Box, build, parse
from fragdex.boxes.box import with_changes
from fragdex.errors import BuildError
from fragdex.fragments.table import FAR, FragmentTable, Int64, SampleTable, SyncTable
from fragdex.muxing.between import Between
from fragdex.muxing.census import LeftOut
from fragdex.muxing.groups import groupings_of, joined_groupings
from fragdex.muxing.movie import protected_entries, traks_of, with_next_id
from fragdex.muxing.plan import Plan, PlannedTrack, taking_off
from fragdex.muxing.segmentation import cut, reference
from fragdex.muxing.segments import Segments, descriptions_of
from fragdex.muxing.subsamples import joined_subsamples, with_subsamples
from fragdex.record import record
from fragdex.seeking.model import Track
from fragdex.seeking.times import TimeLike, exact_time

_FINEST: Final = 10_000_000
"""Ticks a second of the finest timescale that tracks of different ones get."""
_BIT_RATES: Final = ("bufferSizeDB", "maxBitrate", "avgBitrate", "ES_ID")
"""What an esds says of one recording and not of its configuration."""


@record(frozen=True, slots=True, eq=False)
class Piece:
    """A period of a file, as a part of a timeline.

    Attributes:
        number: from 0, in the order of the timeline.
    """

    number: int
    name: str
    plan: Plan


@record(slots=True, eq=False)
class JoinedTrack:
    """Tracks of several pieces that are one track of the timeline.

    Attributes:
        id: track_ID on the timeline.
        first: the track of the first piece that has it.
        members: number of the piece → its track.
        entries: the sample entries of all of them, those of equal configuration once.
        trak: of `first`, with these entries.
        described: number of the piece → int64 sample_description_index of its samples, among
            `entries`.
    """

    id: int
    first: Track
    members: dict[int, PlannedTrack] = field(default_factory=dict)
    entries: list[Box] = field(default_factory=list)
    trak: Box | None = None
    timescale: int = 0
    described: dict[int, Int64] = field(default_factory=dict)


def lanes_of(pieces: Sequence[Piece]) -> list[JoinedTrack]:
    """The tracks of a timeline.

    Of two files, tracks of one kind and language belong together, else those of one kind, in
    their order.
    """
    lanes: list[JoinedTrack] = []
    for piece in pieces:
        for like in (_language, lambda track: track.kind):
            for media in piece.plan.tracks:
                if any(lane.members.get(piece.number) is media for lane in lanes):
                    continue
                free = [
                    lane
                    for lane in lanes
                    if piece.number not in lane.members and like(lane.first) == like(media.track)
                ]
                if free:
                    lane = min(free, key=lambda one: one.first.id != media.track.id)
                    lane.members[piece.number] = media
        for media in piece.plan.tracks:
            if not any(lane.members.get(piece.number) is media for lane in lanes):
                used = {lane.id for lane in lanes}
                own = media.track.id
                lanes.append(JoinedTrack(own if own not in used else max(used) + 1, media.track))
                lanes[-1].members[piece.number] = media
    for lane in lanes:
        scales = [media.timescale for media in lane.members.values()]
        lane.timescale = lcm(*scales) if lcm(*scales) <= _FINEST else max(scales)
        _describe(lane, pieces)
    return lanes


def _language(track: Track) -> tuple[str, str | None]:
    return track.kind, track.info.extended_language or track.info.language


def _describe(lane: JoinedTrack, pieces: Sequence[Piece]) -> None:
    """The sample entries of a lane, and which of them each sample uses."""
    known: list[bytes] = []
    for piece in pieces:
        media = lane.members.get(piece.number)
        if media is None:
            continue
        trak = traks_of(parse(piece.plan.init)).get(media.track.id)
        own = descriptions_of(trak, media)
        if trak is not None and protected_entries(trak):
            raise BuildError(
                f"track {media.track.id} is encrypted, and "
                "what decrypts the samples of several files cannot be joined yet",
                path="moov/trak/mdia/minf/stbl/stsd",
                advice="leave it out with tracks=",
            )
        assert trak is not None  # descriptions_of found it
        stsd = trak.find("mdia/minf/stbl/stsd")
        assert stsd is not None  # descriptions_of found it
        if lane.trak is None:
            lane.trak = trak
        numbers = []
        for entry in stsd.children:
            alike = _configuration(entry)
            if alike not in known:
                if known:
                    _refuse_other(lane, lane.entries[0], entry, media.track, piece)
                known.append(alike)
                lane.entries.append(entry)
            numbers.append(known.index(alike) + 1)
        each = np.ones(len(media), np.int64) if own is None else own
        most = len(numbers)
        lane.described[piece.number] = np.array(numbers)[np.clip(each, 1, most) - 1]
    assert lane.trak is not None
    lane.trak = _with(lane.trak, lane)


def _configuration(entry: Box) -> bytes:
    """A sample entry without what says something of one recording alone."""
    inside = []
    for child in entry.children:
        if child.type == "btrt":
            continue
        plain = child.type == "esds" and "ES" in child
        inside.append(repr(_without_rates(child["ES"])).encode() if plain else build(child))
    fields: dict[str, Any] = {"compressorname": bytes(32)} if "compressorname" in entry else {}
    return b"".join([build(entry.replace(children=[], **fields)), *inside])


def _without_rates(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_rates(v) for k, v in value.items() if k not in _BIT_RATES}
    return [_without_rates(v) for v in value] if isinstance(value, (list, tuple)) else value


def _refuse_other(lane: JoinedTrack, entry: Box, other: Box, track: Track, piece: Piece) -> None:
    """Several configurations of a codec of pictures are fine; all else no player can change."""
    if lane.first.kind == "video" and entry.type == other.type:
        return
    mine, theirs = _sentence(lane.first), _sentence(track)
    if mine == theirs:
        theirs += ", configured otherwise"
    raise BuildError(
        f"the {lane.first.kind} of {piece.name} (track {track.id}) cannot follow that of the files "
        "before it without being encoded again",
        path="moov/trak/mdia/minf/stbl/stsd",
        expected=mine,
        found=theirs,
        advice="leave that track out (tracks=), or join files of one configuration",
    )


def _sentence(track: Track) -> str:
    info = track.info
    words = [info.codec or info.format]
    if info.width and info.height:
        words.append(f"{info.width}x{info.height}")
    if info.channel_count:
        words.append(f"{info.channel_count} channels")
    if info.sample_rate:
        words.append(f"{info.sample_rate} Hz")
    return ", ".join(words)


def _with(trak: Box, lane: JoinedTrack) -> Box:
    """A trak with the lane's track_ID, timescale and sample entries."""
    return with_changes(
        trak,
        {
            "tkhd": lambda box: box.replace(track_ID=lane.id),
            "mdia/mdhd": lambda box: box.replace(timescale=lane.timescale, duration=0),
            "mdia/minf/stbl/stsd": lambda box: box.replace(children=lane.entries),
        },
    )


Starts: TypeAlias = Sequence[TimeLike] | Literal["source"] | None
"""Where files begin: each after the previous one (None), at their own times, or as given."""

_SHORT: Final = Fraction(1, 2)
"""Seconds without a sample of a track between two files over which its last one lasts."""


def segments_of(pieces: Sequence[Piece], starts: Starts, seconds: Fraction | None) -> Segments:
    """The segments of a timeline; each has samples of one piece."""
    *early, last = pieces
    cut_off = (replace(p.plan, tracks=tuple(map(_without_rest, p.plan.tracks))) for p in early)
    early = [replace(p, plan=plan) for p, plan in zip(early, cut_off, strict=True)]
    pieces = [
        _cut_off(piece, begins=n > 0, ends=starts is None and n < len(early))
        for n, piece in enumerate([*early, last])
    ]
    lanes = lanes_of(pieces)
    begins = _starts(pieces, starts)
    placed = [_Placed(lane, begins, starts is None, pieces) for lane in lanes]
    joined = [one.joined for one in placed]
    lead = lanes[next(n for n, one in enumerate(joined) if one is reference(joined))]
    edges: list[list[Int64]] = [[] for _ in lanes]
    for piece in pieces:
        if piece.number not in lead.members:
            raise BuildError(
                f"{piece.name} has no {lead.first.kind}, and the other files have",
                path="moov/trak",
                advice="leave those tracks out (tracks=), or that file",
            )
        if piece.number not in placed[lanes.index(lead)].parts:
            raise BuildError(
                f"the sound of {piece.name} is shorter than an access unit, which the next file has"
                " too",
                advice="leave that file out",
            )
        here = [n for n, one in enumerate(placed) if piece.number in one.parts]
        parts = [placed[n].parts[piece.number] for n in here]
        pace = parts[here.index(lanes.index(lead))]
        by_track = dict(zip(here, cut(parts, seconds, pace), strict=True))
        none = np.zeros(len(next(iter(by_track.values()))), np.int64)
        for n, list_ in enumerate(edges):
            # the end of a piece is the start of the next one
            list_.append(by_track.get(n, none)[:-1] + placed[n].bases[piece.number])
    cuts = [
        np.append(np.concatenate(list_), len(one)) for list_, one in zip(edges, joined, strict=True)
    ]
    init = _init(pieces[0].plan.init, lanes)
    between = [
        (piece.plan.between.moved(at), piece.plan.init, _ids(piece, lanes))
        for piece, at in zip(pieces, begins, strict=True)
    ]
    plan = Plan(
        tuple(joined),
        init,
        Between.joined(between, init),
        tuple(
            LeftOut(f"{p.name}: {one.what}", one.why)
            for p in pieces
            for one in (*p.plan.left_out, *p.plan.between.findings)
        ),
    )
    return Segments(plan, seconds, cuts)


def _ids(piece: Piece, lanes: Sequence[JoinedTrack]) -> dict[int, int]:
    """track_ID of each track of a piece → that on the timeline."""
    own = ((lane.members.get(piece.number), lane.id) for lane in lanes)
    return {media.track.id: number for media, number in own if media is not None}


def _starts(pieces: Sequence[Piece], starts: Starts) -> list[Fraction]:
    """Seconds of the timeline at which the presentation times of pieces begin to count."""
    spans = [_span(piece) for piece in pieces]
    if starts is None:
        begins, reached = [], Fraction(0)
        for begin, lasts in spans:
            begins.append(reached - begin)
            reached += lasts - begin
        return begins
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
    tracks = piece.plan.tracks
    shown = [m for m in tracks if m.track.kind in ("video", "audio")] or tracks
    begin = min(_seconds(m, max(int(m.presentation.min()), 0)) for m in shown)
    lead = reference(shown)
    beside = [m for m in shown if m is not lead]
    ends = [_last_half(m) if m.track.kind == "audio" else _end(m) for m in beside]
    return begin, max([_end(lead), *ends])


def _end(media: PlannedTrack) -> Fraction:
    """Seconds at which the last sample ends, or the edit list does."""
    ends, track = _seconds(media, media.end), media.track
    return min(ends, track.stop.fraction) if track.segments and track.stop is not None else ends


def _last_half(media: PlannedTrack) -> Fraction:
    """Seconds at which half of the last access unit is over."""
    return _seconds(media, 2 * int(media.presentation[-1]) + int(media.durations[-1])) / 2


def _cut_off(piece: Piece, begins: bool, ends: bool) -> Piece:
    """A piece whose texts end where its pictures do, so that others can follow.

    Args:
        begins: texts begin with its pictures, too: another piece comes before it.
        ends: another one follows right after it.
    """
    begin, stop = _span(piece)
    tracks, left_out = [], list(piece.plan.left_out)
    for media in piece.plan.tracks:
        track, scale = media.track, media.timescale
        low, high = ceil(begin * scale) if begins else -FAR, int(stop * scale) if ends else FAR
        ended = media.presentation + media.durations
        within = np.flatnonzero((media.presentation < high) & (ended > low))
        is_long = len(within) and (media.end > high or int(media.presentation[0]) < low)
        if track.kind not in ("video", "audio") and is_long:
            spans = f"from {float(begin):.3f} to {float(stop):.3f} s"
            what = f"what track {track.id} ({track.kind}) has outside of its pictures, {spans},"
            left_out.append(LeftOut(what, "other files are shown there"))
            shown = media.presentation.clip(low)
            lasts = ended.clip(max=high) - shown
            media = media.timed(shown, (media.decode - media.media_time).clip(low), lasts)
            media = media.rows(within, end=min(media.end, high))
        tracks.append(media)
    plan = replace(piece.plan, tracks=tuple(tracks), left_out=tuple(left_out))
    return replace(piece, plan=plan)


def _without_rest(media: PlannedTrack) -> PlannedTrack:
    """Sound without access units at the end of which less than half is heard."""
    if media.track.kind != "audio" or len(media) < 2:
        return media
    stop = _end(media) * media.timescale
    heard = np.flatnonzero(2 * media.presentation + media.durations <= ceil(2 * stop))
    high = int(heard[-1]) + 1 if len(heard) else 1
    if high == len(media):
        return media
    end = int((media.presentation[:high] + media.durations[:high]).max())
    return media.rows(slice(0, high), end=end)


def _seconds(media: PlannedTrack, ticks: int) -> Fraction:
    return Fraction(ticks, media.timescale)


class _Placed:
    """A lane with its samples at their places.

    Attributes:
        parts: number of the piece → its samples, on the timeline.
        bases: of each piece the number of its first sample, or where it would be.
    """

    def __init__(
        self, lane: JoinedTrack, begins: Sequence[Fraction], closed: bool, pieces: Sequence[Piece]
    ) -> None:
        info = replace(lane.first.info, id=lane.id, timescale=lane.timescale, edits=())
        self._track = Track(info, FragmentTable.empty(), SyncTable.empty())
        self._closed, self._pieces = closed, pieces
        moved = {n: self._moved(lane.members[n], begins[n]) for n in sorted(lane.members)}
        delay = max(_delay(media) for media, _, _ in moved.values())
        self.parts: dict[int, PlannedTrack] = {}
        before: PlannedTrack | None = None
        for number, (media, hidden, _) in moved.items():
            decode = media.decode - (delay - _delay(media))
            media = media.timed(media.presentation, decode, media.durations)
            if hidden.any():
                media = _squeezed(media, hidden, int(media.presentation[~hidden].min()))
            before = self._without_same(before, media)
            if before is not None:
                last = max(self.parts)
                media, before = self._follow(before, media, pieces[number], pieces[last])
                self.parts[last] = before
            self.parts[number] = before = media
        late = max(0, -int(next(iter(self.parts.values())).decode[0]))
        self.parts = {
            n: m.timed(m.presentation, m.decode + late, m.durations, late)
            for n, m in self.parts.items()
        }
        self.bases: list[int] = []
        at = 0
        for piece in pieces:
            self.bases.append(at)
            at += len(self.parts.get(piece.number, ()))
        parts = list(self.parts.values())
        taken = {
            n: slice(moved[n][2].start, moved[n][2].start + len(one))
            for n, one in self.parts.items()
        }
        said = [_said(lane.members[n], pieces[n], part) for n, part in taken.items()]
        described = np.concatenate([lane.described[n][part] for n, part in taken.items()])
        self.joined = PlannedTrack(
            self._track,
            SampleTable.concat([one.samples for one in parts]),
            lane.timescale,
            np.concatenate([one.source for one in parts]),
            taking_off(late),
            descriptions=None if (described == 1).all() else described,
            groups=joined_groupings([(len(one.samples), one.groups) for one in said]),
            subsamples=joined_subsamples([(len(one.samples), one.subsamples) for one in said]),
            end=max(one.end for one in parts),
        )

    def _moved(self, media: PlannedTrack, at: Fraction) -> tuple[PlannedTrack, Any, slice]:
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
            shown = ends - joint > least
            low = int(shown.argmax()) if shown.any() else len(media) - 1
            if self._track.kind != "audio":
                presentation, decode = np.maximum(presentation, joint), np.maximum(decode, joint)
                durations = ends - presentation
            hidden[:] = False
        high, end = len(media), int(ends.max())
        if self._track.kind == "video":
            stop = round(_end(media) * scale) + joint
            high = int(np.flatnonzero(presentation < stop)[-1]) + 1
            end = min(end, stop)
        part = slice(low, high)
        planned = PlannedTrack(self._track, media.samples, scale, media.source, end=end)
        moved = planned.timed(presentation, decode, durations).rows(part)
        over = moved.presentation >= end
        if over.any():
            moved = _squeezed(moved, over, int(moved.presentation[~over].max()))
        return moved, hidden[part], part

    def _without_same(
        self, before: PlannedTrack | None, media: PlannedTrack
    ) -> PlannedTrack | None:
        """Sound without a last access unit that the next piece has too: both were cut within it.

        A piece of no other has no part; what is before it is returned then.
        """
        first = int(media.presentation.min())
        if before is None or self._track.kind != "audio" or before.presentation[-1] < first:
            return before
        if len(before) > 1:
            return before.rows(slice(0, -1), end=int((before.presentation + before.durations)[-2]))
        if not self._closed:
            return before
        del self.parts[max(self.parts)]
        return self._without_same(self.parts[max(self.parts)] if self.parts else None, media)

    def _follow(
        self, before: PlannedTrack, media: PlannedTrack, piece: Piece, last: Piece
    ) -> tuple[PlannedTrack, PlannedTrack]:
        """A piece after another: decode times that rise, and how long the last sample lasts."""
        lasts = int(before.durations[-1])
        first, reached = int(media.presentation.min()), before.end
        scale = self._track.timescale
        early = reached - first > max(lasts, 1) or first <= int(before.presentation.max())
        # Files that follow each other begin early by the hidden pictures alone.
        crowded = early and self._closed and self._track.kind == "video"
        if early and not crowded:
            raise BuildError(
                f"{piece.name} would begin before {last.name} has ended, on track {self._track.id}",
                expected=f"{float(Fraction(reached, scale)):.3f} s or later",
                found=f"{float(Fraction(first, scale)):.3f} s",
                advice="give later starts, or none: then files follow each other",
            )
        floor = int(before.decode[-1]) + 1
        decode = _not_before(media.decode, floor)
        durations = np.diff(decode, append=decode[-1] + media.durations[-1])
        media = media.timed(media.presentation, decode, durations)
        room = max(0, reached - int(before.presentation.max()) - 1) if crowded else lasts
        if crowded or (media.decode > media.presentation).any():
            raise BuildError(
                f"{piece.name} hides so many pictures at its start that they do not fit after "
                f"{last.name}",
                path="moov/trak/edts/elst",
                expected=f"at most {room} on track {self._track.id}",
                advice="begin it at a sync sample: fragdex.clip(…, at_key_frame=True)",
            )
        gap = int(decode[0]) - floor + 1
        short = self._closed and gap - lasts <= _SHORT * scale
        if gap < lasts or gap - lasts <= lasts // 2 or short:
            until = before.durations.copy()
            until[-1] = gap
            before = before.timed(before.presentation, before.decode, until)
        return media, before


def _said(media: PlannedTrack, piece: Piece, part: slice) -> PlannedTrack:
    """Some samples of a piece's track, with their groups and parts."""
    trak = traks_of(parse(piece.plan.init)).get(media.track.id)
    trafs = piece.plan.between.trafs
    groups = groupings_of(media.track, trak, media.source_numbers, trafs)
    return with_subsamples(replace(media, groups=groups), trak, trafs).rows(part)


def _delay(media: PlannedTrack) -> int:
    """Ticks from the first decode time to the first presentation time."""
    return int(media.presentation.min()) - int(media.decode[0])


def _ticks(column: Int64, own: int, scale: int) -> Int64:
    """Times in another timescale, to the nearest tick."""
    if own == scale:
        return column
    if int(np.abs(column).max()) * scale >= FAR:
        moved = (column.astype(object) * scale + own // 2) // own
        return moved.astype(np.int64)
    ticks: Int64 = (column * scale + own // 2) // own
    return ticks


def _not_before(times: Int64, floor: int) -> Int64:
    """Rising times with those that lie before a floor at it, a tick apart."""
    if not len(times) or int(times[0]) >= floor:
        return times
    squeezed = floor + np.arange(len(times))
    free = np.flatnonzero(times >= squeezed)
    first = int(free[0]) if len(free) else len(times)
    return np.concatenate([squeezed[:first], times[first:]])


def _squeezed(media: PlannedTrack, hidden: Any, at: int) -> PlannedTrack:
    """Hidden pictures, a tick each before one that is shown at a time, in their order."""
    numbers = np.flatnonzero(hidden)
    order = np.argsort(media.presentation[numbers], kind="stable")
    presentation = media.presentation.copy()
    presentation[numbers[order]] = at - len(numbers) + np.arange(len(numbers))
    return media.timed(presentation, media.decode, media.durations)


def _init(init: bytes, lanes: Sequence[JoinedTrack]) -> bytes:
    """The first piece's ftyp and moov, with the traks of the lanes."""
    joined = []
    for box in parse(init):
        if box.type == "moov":
            children = [child for child in box.children if child.type != "trak"]
            at = next((n for n, c in enumerate(children) if c.type == "mvhd"), -1) + 1
            traks: list[Box] = [lane.trak for lane in lanes if lane.trak is not None]
            box = with_next_id(box.replace(children=[*children[:at], *traks, *children[at:]]))
        joined.append(build(box))
    return b"".join(joined)
