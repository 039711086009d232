"""Which tracks of several files are one track of a timeline, and what describes their samples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import lcm
from typing import Any, Final

import numpy as np

from fragdex.boxes import Box, build, parse
from fragdex.errors import BuildError
from fragdex.formats.clip_movie import traks_of
from fragdex.fragments.table import Int64
from fragdex.seeking.model import TrackIndex
from fragdex.views.init_segment import descriptions_of
from fragdex.views.media import Media

__all__ = ["Lane", "Piece", "lanes_of"]

_FINEST: Final = 10_000_000
"""Ticks a second of the finest timescale that tracks of different ones get."""
_BIT_RATES: Final = ("bufferSizeDB", "maxBitrate", "avgBitrate", "ES_ID")
"""What an esds says of one recording and not of its configuration."""


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """A period of a file, as a part of a timeline.

    Attributes:
        number: from 0, in the order of the timeline.
        name: of the file, for messages.
        source: number of the file.
        init: its ftyp and moov.
        media: its tracks.
    """

    number: int
    name: str
    source: int
    init: bytes
    media: tuple[Media, ...]


@dataclass(slots=True, eq=False)
class Lane:
    """Tracks of several pieces that are one track of the timeline.

    Attributes:
        id: track_ID on the timeline.
        first: the track of the first piece that has it.
        members: number of the piece → its track.
        entries: the sample entries of all of them, those of equal configuration once.
        trak: of `first`, with these entries.
        timescale: ticks a second on the timeline.
        described: number of the piece → int64 sample_description_index of its samples, among
            `entries`.
    """

    id: int
    first: TrackIndex
    members: dict[int, Media] = field(default_factory=dict)
    entries: list[Box] = field(default_factory=list)
    trak: Box | None = None
    timescale: int = 0
    described: dict[int, Int64] = field(default_factory=dict)


def lanes_of(pieces: Sequence[Piece]) -> list[Lane]:
    """The tracks of a timeline.

    Of two files, tracks of one kind and language belong together, else those of one kind, in
    their order.

    Raises:
        BuildError: tracks that belong together have other codecs or sound of another form.
    """
    lanes: list[Lane] = []
    for piece in pieces:
        for alike in (_same_language, _same_kind):
            for media in piece.media:
                if any(lane.members.get(piece.number) is media for lane in lanes):
                    continue
                free = [
                    lane
                    for lane in lanes
                    if piece.number not in lane.members and alike(lane.first, media.track)
                ]
                if free:
                    lane = min(free, key=lambda one: one.first.id != media.track.id)
                    lane.members[piece.number] = media
        for media in piece.media:
            if not any(lane.members.get(piece.number) is media for lane in lanes):
                used = {lane.id for lane in lanes}
                own = media.track.id
                lanes.append(Lane(own if own not in used else max(used) + 1, media.track))
                lanes[-1].members[piece.number] = media
    for lane in lanes:
        lane.timescale = _timescale(media.timescale for media in lane.members.values())
        _describe(lane, pieces)
    return lanes


def _same_language(one: TrackIndex, other: TrackIndex) -> bool:
    return _same_kind(one, other) and _language(one) == _language(other)


def _same_kind(one: TrackIndex, other: TrackIndex) -> bool:
    return one.kind == other.kind


def _language(track: TrackIndex) -> str | None:
    return track.info.extended_language or track.info.language


def _timescale(scales: Iterable[int]) -> int:
    known = list(scales)
    found = lcm(*known)
    return found if found <= _FINEST else max(known)


def _describe(lane: Lane, pieces: Sequence[Piece]) -> None:
    """The sample entries of a lane, and which of them each sample uses."""
    known: list[bytes] = []
    for piece in pieces:
        media = lane.members.get(piece.number)
        if media is None:
            continue
        trak = traks_of(parse(piece.init)).get(media.track.id)
        own = descriptions_of(trak, media)
        if media.track.info.encryption is not None:
            raise BuildError(
                f"track {media.track.id} is encrypted ({media.track.info.encryption.scheme}), and "
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


def _refuse_other(lane: Lane, entry: Box, other: Box, track: TrackIndex, piece: Piece) -> None:
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


def _sentence(track: TrackIndex) -> str:
    info = track.info
    found = [info.codec or info.format]
    if info.width and info.height:
        found.append(f"{info.width}x{info.height}")
    if info.channel_count:
        found.append(f"{info.channel_count} channels")
    if info.sample_rate:
        found.append(f"{info.sample_rate} Hz")
    return ", ".join(found)


def _with(trak: Box, lane: Lane) -> Box:
    """A trak with the lane's track_ID, timescale and sample entries."""

    def changed(box: Box) -> Box:
        if box.type == "tkhd" and box["track_ID"] != lane.id:
            return box.replace(track_ID=lane.id)
        if box.type == "mdhd":
            return box.replace(timescale=lane.timescale, duration=0)
        if box.type == "stsd":
            return box.replace(children=lane.entries)
        if box.type in ("trak", "mdia", "minf", "stbl"):
            return box.replace(children=[changed(child) for child in box.children])
        return box

    return changed(trak)
