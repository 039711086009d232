"""A DASH manifest with byte ranges into the file itself (ISO/IEC 23009-1).

One representation with all tracks of the file, since its fragments hold them together. Where a
sidx in front of the file lists all of it, players read that (SegmentBase); where there is none,
the segments are written out (SegmentList).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from fragdex.box_header import read_header
from fragdex.boxes import parse_box
from fragdex.byterange import ByteRange
from fragdex.errors import FormatError
from fragdex.formats.subsegments import (
    Subsegments,
    init_range,
    reference_track,
    subsegments,
)
from fragdex.formats.wire import SEGMENT_DURATION
from fragdex.packaging import mpd
from fragdex.packaging.hls import uri_of
from fragdex.packaging.m3u8 import address, picture_size
from fragdex.packaging.mpd import AdaptationSet, Representation, Segments, xml_duration
from fragdex.seeking.model import Index, Period, Track
from fragdex.seeking.times import NO_SHIFT, TimeLike, floor_ticks

FIRST_GUESS = 4096
"""Bytes read at once after the initialization segment, where a sidx is looked for."""
LARGEST = 1 << 20
"""Bytes of a sidx: more than 65,535 references take."""


def write(
    index: Index,
    *,
    uri: str | None = None,
    source: Any = None,
    track: int | None = None,
    segment_duration: TimeLike = SEGMENT_DURATION,
    init_uri: str | None = None,
) -> bytes:
    """The manifest, as UTF-8 text; each period of the index is one of the presentation.

    Args:
        uri: address of the file, as it is to stand in the manifest; None: its URL, or the last
            part of its path.
        source: the file, bytes or an open `Source`: it is looked into for a sidx. Without it the
            segments are listed.
        track: the reference stream; None: the first video track, or else the first audio track.
        segment_duration: a listed segment lasts at least so long.
        init_uri: address of the initialization segment, where the file has none itself.

    Raises:
        BuildError: there are no movie fragments, or no initialization segment.
        InexactIndex: times of fragments are not known.
    """
    at = uri_of(index, uri)
    total = Fraction(0)
    plain = True
    periods = []
    for period in index.periods:
        chosen = reference_track(period, track)
        ticks = floor_ticks(segment_duration, chosen.timescale, NO_SHIFT)
        pieces = subsegments(period, chosen.id, min_ticks=ticks, at_sync=True, playable=True)
        ready = index_range(period, pieces, chosen, source) if source is not None else None
        shown = Fraction(
            int(pieces.time[-1] + pieces.duration[-1] - pieces.time[0]), chosen.timescale
        )
        about = {
            "id": str(period.number),
            "start": xml_duration(total),
            "duration": xml_duration(shown),
        }
        total += shown
        init = (
            {"sourceURL": address(init_uri)}
            if init_uri is not None and not period.init
            else {"range": mpd.span(init_range(period))}
        )
        segments = _segments(chosen, pieces, ready, init)
        periods.append(mpd.Period(about, [_adaptation(period, chosen, pieces, at, segments)]))
        plain &= ready is not None and sum(len(t.fragments) > 0 for t in period.tracks) == 1
    attributes = {
        "type": "static",
        "mediaPresentationDuration": xml_duration(total),
        "minBufferTime": "PT2S",
        "profiles": mpd.ON_DEMAND if plain and index.periods else mpd.LISTED,
    }
    return mpd.manifest(attributes, periods)


def index_range(period: Period, pieces: Subsegments, track: Track, source: Any) -> ByteRange | None:
    """Where the sidx lies that a player can use, or None.

    It speaks of the reference track, stands between the initialization segment and the first
    moof, and its references end where the fragments do.

    Args:
        source: bytes or an open `Source`.
    """
    at = max(part.stop for part in period.init) if period.init else 0
    stop = int(pieces.offset[0] + pieces.size[0])
    start, data = at, b""
    while at < stop:
        if at + 16 > start + len(data):
            start, data = at, _read(source, at, FIRST_GUESS)
        header = read_header(data, at - start)
        if header is None or header.size < 8 or header.type in (b"moof", b"mdat"):
            return None
        size = header.size
        if header.type == b"sidx":
            if at + size > start + len(data):
                start, data = at, _read(source, at, min(size, LARGEST))
            here = ByteRange.of(at, size)
            if _lists_all(data[at - start : at - start + size], here, pieces, track):
                return here
        at += size
    return None


def _lists_all(data: bytes, place: ByteRange, pieces: Subsegments, track: Track) -> bool:
    try:
        box = parse_box(data, offset=place.start)
    except FormatError:
        return False
    rows = box.get("references", ())
    if not len(rows) or box["reference_ID"] != track.id or rows["reference_type"].any():
        return False
    begin = place.stop + box["first_offset"]
    return bool(begin + int(rows["referenced_size"].astype("i8").sum()) == pieces.stop)


def _read(source: Any, at: int, size: int) -> bytes:
    if hasattr(source, "read_up_to"):
        data: bytes = source.read_up_to(ByteRange.of(at, size))
        return data
    return bytes(memoryview(source)[at : at + size])


def _adaptation(
    period: Period, chosen: Track, pieces: Subsegments, at: str, segments: Segments
) -> AdaptationSet:
    tracks = [t for t in period.tracks if len(t.fragments)]
    kind = chosen.kind if chosen.kind in ("video", "audio") else "application"
    about = {"segmentAlignment": "true", "mimeType": f"{kind}/mp4"}
    if pieces.starts.all():
        about["startWithSAP"] = "1" if (pieces.access == pieces.time).all() else "3"
    components = []
    if len(tracks) == 1:
        about |= {"contentType": "text" if kind == "application" else kind} | _language(chosen)
    else:
        components = [
            {"id": str(track.id), "contentType": _content(track.kind)} | _language(track)
            for track in tracks
        ]
    seconds = Fraction(int(pieces.duration.sum()), chosen.timescale)
    video = [t for t in tracks if picture_size(t)]
    rates = [t.info.sample_rate for t in tracks if t.kind == "audio" and t.info.sample_rate]
    representation = Representation(
        {"id": str(chosen.id), "bandwidth": mpd.bandwidth(int(pieces.size.sum()), seconds)},
        [track.codec for track in tracks],
        picture_size(video[-1]) if video else None,
        next(filter(None, map(frame_rate, reversed(video))), None),
        rates[-1] if rates else None,
        address=at,
        segments=segments,
        about=video[-1].info if video else tracks[-1].info,
    )
    return AdaptationSet(about, [representation], components=components)


def _language(track: Track) -> dict[str, str]:
    return {"lang": track.info.language} if track.info.language else {}


def _content(kind: str) -> str:
    return kind if kind in ("video", "audio", "text") else "application"


def frame_rate(track: Track) -> Fraction | None:
    """Samples a second on average, as a fraction of small numbers; None where it is not known."""
    count, duration = track.sample_count, int(track.fragments.duration.sum())
    if not count or duration <= 0:
        return None
    return Fraction(count * track.timescale, duration).limit_denominator(1001)


def _segments(
    chosen: Track, pieces: Subsegments, ready: ByteRange | None, init: dict[str, str]
) -> Segments:
    first = max(int(pieces.time[0]), 0)
    about = {"timescale": str(chosen.timescale)}
    if first:
        about["presentationTimeOffset"] = str(first)
    if ready is not None:
        place = {"indexRange": mpd.span(ready), "indexRangeExact": "true"}
        return Segments("SegmentBase", place | about, init)
    # What the edit list hides before 0 has no time in the manifest.
    times = np.maximum(pieces.time, 0)
    durations = pieces.time + pieces.duration - times
    places = zip(pieces.offset.tolist(), pieces.size.tolist(), strict=True)
    ranges = [ByteRange.of(offset, size) for offset, size in places]
    listed = times.tolist(), durations.tolist(), ranges
    return Segments("SegmentList", about, init, *listed, all_times=True)
