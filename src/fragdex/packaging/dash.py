"""A DASH manifest with byte ranges into the file itself (ISO/IEC 23009-1).

One representation with all tracks of the file, since its fragments hold them together. Where a
sidx in front of the file lists all of it, players read that (SegmentBase); where there is none,
the segments are written out (SegmentList).
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any
from xml.etree import ElementTree as ET

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
from fragdex.packaging.hls import WRITABLE_CODEC, uri_of
from fragdex.packaging.hls import address as escaped
from fragdex.seeking.model import Index, Period, Track
from fragdex.seeking.times import NO_SHIFT, TimeLike, floor_ticks

NAMESPACE = "urn:mpeg:dash:schema:mpd:2011"
ON_DEMAND = "urn:mpeg:dash:profile:isoff-on-demand:2011"
LISTED = "urn:mpeg:dash:profile:isoff-main:2011,urn:mpeg:dash:profile:full:2011"
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
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

    >>> from fragdex.seeking.model import How, FileInfo
    >>> write(Index(FileInfo(), How("boxes", True), ()))[:38]
    b"<?xml version='1.0' encoding='utf-8'?>"
    """
    mpd = ET.Element("MPD", {"xmlns": NAMESPACE, "type": "static"})
    address = uri_of(index, uri)
    total = Fraction(0)
    plain = True
    for period in index.periods:
        chosen = reference_track(period, track)
        ticks = floor_ticks(segment_duration, chosen.timescale, NO_SHIFT)
        pieces = subsegments(period, chosen.id, min_ticks=ticks, at_sync=True, playable=True)
        ready = index_range(period, pieces, chosen, source) if source is not None else None
        shown = Fraction(
            int(pieces.time[-1] + pieces.duration[-1] - pieces.time[0]), chosen.timescale
        )
        element = ET.SubElement(
            mpd,
            "Period",
            {
                "id": str(period.number),
                "start": xml_duration(total),
                "duration": xml_duration(shown),
            },
        )
        total += shown
        init = (
            {"sourceURL": escaped(init_uri)}
            if init_uri is not None and not period.init
            else {"range": _span(init_range(period))}
        )
        _adaptation(element, period, chosen, pieces, address, ready, init)
        plain &= ready is not None and sum(len(t.fragments) > 0 for t in period.tracks) == 1
    longest = Fraction(2)
    mpd.set("mediaPresentationDuration", xml_duration(total))
    mpd.set("minBufferTime", xml_duration(longest))
    mpd.set("profiles", ON_DEMAND if plain and index.periods else LISTED)
    ET.indent(mpd)
    text: bytes = ET.tostring(mpd, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def index_range(period: Period, pieces: Subsegments, track: Track, source: Any) -> ByteRange | None:
    """Where the sidx lies that a player can use, or None.

    It speaks of the reference track, stands between the initialization segment and the first
    moof, and its references end where the fragments do.

    Args:
        source: bytes or an open `Source`.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> data = movie(3, sidx=True)
    >>> period = fragdex.index(data).periods[0]
    >>> place = index_range(period, subsegments(period), period.tracks[0], data)
    >>> data[place.start + 4 : place.start + 8]
    b'sidx'
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
    parent: ET.Element,
    period: Period,
    chosen: Track,
    pieces: Subsegments,
    address: str,
    ready: ByteRange | None,
    init: dict[str, str],
) -> None:
    tracks = [t for t in period.tracks if len(t.fragments)]
    kind = chosen.kind if chosen.kind in ("video", "audio") else "application"
    adaptation = ET.SubElement(parent, "AdaptationSet", {"segmentAlignment": "true"})
    adaptation.set("mimeType", f"{kind}/mp4")
    if pieces.starts.all():
        adaptation.set("startWithSAP", "1" if (pieces.access == pieces.time).all() else "3")
    if len(tracks) == 1:
        adaptation.set("contentType", "text" if kind == "application" else kind)
        if chosen.info.language:
            adaptation.set("lang", xml_text(chosen.info.language))
    else:
        for track in tracks:
            about = {"id": str(track.id), "contentType": _content(track.kind)}
            if track.info.language:
                about["lang"] = xml_text(track.info.language)
            ET.SubElement(adaptation, "ContentComponent", about)
    seconds = Fraction(int(pieces.duration.sum()), chosen.timescale)
    size = int(pieces.size.sum())
    representation = ET.SubElement(
        adaptation,
        "Representation",
        {
            "id": str(chosen.id),
            "bandwidth": str(int(8 * size / seconds) + 1 if seconds else 1),
        },
    )
    codecs = [track.codec for track in tracks]
    if all(codec and WRITABLE_CODEC.fullmatch(codec) for codec in codecs):
        representation.set("codecs", ",".join(dict.fromkeys(c for c in codecs if c)))
    _describe(representation, tracks)
    ET.SubElement(representation, "BaseURL").text = address
    _segments(representation, chosen, pieces, ready, init)


def xml_text(text: str) -> str:
    r"""Text without the characters that XML cannot hold in any form (XML 1.0, 2.2).

    >>> xml_text("a\x00b") == "a\ufffdb"
    True
    """
    return _NO_XML.sub("\ufffd", text)


def _content(kind: str) -> str:
    return kind if kind in ("video", "audio", "text") else "application"


def _describe(representation: ET.Element, tracks: list[Track]) -> None:
    """Size and frame rate of the pictures, sampling rate of the sound."""
    for track in tracks:
        info = track.info
        if track.kind == "video" and info.width and info.height:
            representation.set("width", str(info.width))
            representation.set("height", str(info.height))
            rate = frame_rate(track)
            if rate is not None:
                text = f"{rate.numerator}/{rate.denominator}"
                representation.set("frameRate", text.removesuffix("/1"))
        elif track.kind == "audio" and info.sample_rate:
            representation.set("audioSamplingRate", str(info.sample_rate))


def frame_rate(track: Track) -> Fraction | None:
    """Samples a second on average, as a fraction of small numbers; None where it is not known.

    >>> from fragdex.fragments.table import FragmentTable, SyncTable
    >>> from fragdex.fragments.track_info import TrackInfo
    >>> track = Track(TrackInfo.unknown(1), FragmentTable.empty(), SyncTable.empty())
    >>> frame_rate(track) is None
    True
    """
    count, duration = track.sample_count, int(track.fragments.duration.sum())
    if not count or duration <= 0:
        return None
    return Fraction(count * track.timescale, duration).limit_denominator(1001)


def _segments(
    parent: ET.Element,
    chosen: Track,
    pieces: Subsegments,
    ready: ByteRange | None,
    init: dict[str, str],
) -> None:
    first = max(int(pieces.time[0]), 0)
    about = {"timescale": str(chosen.timescale)}
    if first:
        about["presentationTimeOffset"] = str(first)
    if ready is not None:
        base = ET.SubElement(
            parent, "SegmentBase", {"indexRange": _span(ready), "indexRangeExact": "true", **about}
        )
        ET.SubElement(base, "Initialization", init)
        return
    listed = ET.SubElement(parent, "SegmentList", about)
    ET.SubElement(listed, "Initialization", init)
    timeline = ET.SubElement(listed, "SegmentTimeline")
    run: ET.Element | None = None
    for time, duration in zip(pieces.time.tolist(), pieces.duration.tolist(), strict=True):
        # What the edit list hides before 0 has no time in the manifest.
        duration, time = time + duration - max(time, 0), max(time, 0)
        if run is not None and run.get("d") == str(duration):
            run.set("r", str(int(run.get("r", "0")) + 1))
            continue
        run = ET.SubElement(timeline, "S", {"t": str(time), "d": str(duration)})
    for offset, size in zip(pieces.offset.tolist(), pieces.size.tolist(), strict=True):
        ET.SubElement(listed, "SegmentURL", {"mediaRange": _span(ByteRange.of(offset, size))})


def _span(part: ByteRange) -> str:
    """First and last byte, both inclusive (5.3.9.2.2)."""
    return f"{part.start}-{part.stop - 1}"


def xml_duration(seconds: Fraction) -> str:
    """Seconds as an XML duration, to the microsecond."""
    text = f"{float(round(seconds, 6)):.6f}".rstrip("0").rstrip(".")
    return f"PT{text}S"
