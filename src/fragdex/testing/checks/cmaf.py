"""CMAF headers, segments and chunks held against ISO/IEC 23000-19."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from fragdex.boxes import Box, parse
from fragdex.boxes.fragments import (
    BASE_DATA_OFFSET,
    DATA_OFFSET,
    DEFAULT_BASE_IS_MOOF,
    SAMPLE_COMPOSITION_TIME_OFFSET,
)
from fragdex.errors import FormatError
from fragdex.record import record
from fragdex.testing.checks.samples import InitTrack, SegmentSample, init_tracks, segment_samples
from fragdex.testing.checks.violation import Violation

SEGMENT_BRANDS = {"cmfs", "cmff", "cmfl", "cmfc", "cmf2"}


def check_cmaf(init: bytes, segments: Iterable[bytes] = ()) -> list[Violation]:
    """Violations of CMAF in a header and the segments or chunks after it, in order.

    Args:
        init: the CMAF header: ftyp and moov of one track.
        segments: CMAF segments, fragments or chunks, in order of their time. The first fragment of
            each begins with a sync sample; later moofs of one may be chunks that do not.

    >>> from fragdex.testing import movie
    >>> data = movie(2)
    >>> start = data.index(b"moof") - 4
    >>> [str(one) for one in check_cmaf(data[:start], [data[start:]])]
    ['header: ftyp at 0: neither cmfc nor cmf2 (brand; ISO/IEC 23000-19, 7.2)']
    """
    violations: list[Violation] = []
    place = Place("header")
    try:
        boxes = parse(init, strict=True)
    except FormatError as error:
        return [place.wrong("boxes", "14496-12, 4.2", str(error))]
    violations += unreadable(place, boxes)
    if violations:
        return violations
    violations += header_rules(place, boxes)
    tracks = init_tracks(init)
    if len(tracks) != 1:
        return violations
    state = _Following(tracks[0], "cmf2" in brands_of(boxes))
    for number, segment in enumerate(segments):
        place = Place(f"segment {number}")
        try:
            boxes = parse(segment, strict=True)
        except FormatError as error:
            violations.append(place.wrong("boxes", "14496-12, 4.2", str(error)))
            continue
        odd = list(unreadable(place, boxes))
        violations += odd
        if odd:
            continue
        violations += _segment(place, boxes, state)
        violations += _samples(place, segment, boxes, state)
    return violations


@record(slots=True)
class _Following:
    """Where the track is between one segment and the next."""

    track: InitTrack
    strict: bool  # the brand cmf2: signed composition offsets and no edit list
    number: int | None = None
    time: int | None = None


def _segment(place: Place, boxes: tuple[Box, ...], state: _Following) -> Iterator[Violation]:
    if not any(box.type == "moof" for box in boxes):
        yield place.wrong("moof", "23000-19, 7.3.2.4", "no moof")
    before: str | None = None
    for box in boxes:
        if box.type == "styp":
            if not SEGMENT_BRANDS & set(box["compatible_brands"]):
                yield place.wrong("styp-brand", "23000-19, 7.2", "no brand of CMAF", box)
            if box is not boxes[0] and before != "mdat":
                yield place.wrong("styp-place", "14496-12, 8.16.2", "not in front", box)
        elif box.type == "mdat":
            if before not in ("moof", "mdat"):
                yield place.wrong("mdat", "23000-19, 7.3.2.3", "does not follow a moof", box)
        elif before == "moof":
            yield place.wrong("order", "23000-19, 7.3.2.3", "between moof and mdat", box)
        elif box.type == "moov":
            yield place.wrong("segment-moov", "23000-19, 7.3.3", "a moov in a segment", box)
        if box.type == "moof":
            yield from _moof(place, box, state.track, state.strict)
        before = box.type
    if before == "moof":
        yield place.wrong("no-mdat", "23000-19, 7.3.2.3", "the last moof has no mdat")


def _moof(place: Place, moof: Box, track: InitTrack, strict: bool) -> Iterator[Violation]:
    trafs = moof.find_all("traf")
    if len(trafs) != 1:
        message = f"{len(trafs)} trafs, expected one"
        yield place.wrong("one-traf", "23000-19, 7.3.2.3", message, moof)
    for traf in trafs:
        head = traf.find("tfhd")
        if head is None:
            yield place.wrong("tfhd", "14496-12, 8.8.7", "no tfhd", traf)
            continue
        if head["track_ID"] != track.id:
            message = f"track {head['track_ID']}, the header has {track.id}"
            yield place.wrong("track-id", "23000-19, 7.3.2.3", message, head)
        if not head["flags"] & DEFAULT_BASE_IS_MOOF:
            yield place.wrong("default-base", "23000-19, 7.5", "no default-base-is-moof", head)
        if head["flags"] & BASE_DATA_OFFSET:
            yield place.wrong("base-data-offset", "23000-19, 7.5", "base_data_offset", head)
        if len(traf.find_all("tfdt")) != 1:
            yield place.wrong("tfdt", "23000-19, 7.5", "expected one tfdt", traf)
        truns = traf.find_all("trun")
        if not truns:
            yield place.wrong("trun", "23000-19, 7.5.17", "no trun", traf)
        for trun in truns:
            if not trun["flags"] & DATA_OFFSET:
                yield place.wrong("data-offset", "23000-19, 7.5.17", "no data_offset", trun)
            shifts = trun["flags"] & SAMPLE_COMPOSITION_TIME_OFFSET
            if strict and shifts and not trun["version"]:
                message = "version 0 with composition offsets, under the brand cmf2"
                yield place.wrong("trun-version", "23000-19, 7.5.17", message, trun)


def _samples(
    place: Place, segment: bytes, boxes: tuple[Box, ...], state: _Following
) -> Iterator[Violation]:
    first = True
    for number, moof in enumerate(boxes):
        if moof.type != "moof":
            continue
        header = moof.find("mfhd")
        sequence_number = header["sequence_number"] if header is not None else None
        if sequence_number is None:
            yield place.wrong("mfhd", "14496-12, 8.8.5", "no mfhd", moof)
        elif state.number is not None and sequence_number <= state.number:
            message = f"sequence_number {sequence_number} after {state.number}"
            yield place.wrong("sequence-number", "14496-12, 8.8.5", message, header)
        state.number = sequence_number if sequence_number is not None else state.number
        mdats = tuple(itertools.takewhile(lambda box: box.type == "mdat", boxes[number + 1 :]))
        samples = segment_samples(segment, state.track, moof.offset)
        if not samples:
            continue
        if mdats:
            yield from _data(place, moof, mdats, samples)
        time = samples[0].dts
        if state.time is not None and time != state.time and moof.find("traf/tfdt") is not None:
            kind = "a gap" if time > state.time else "an overlap"
            message = f"decode time {time}, expected {state.time}: {kind}"
            yield place.wrong("continuity", "23000-19, 7.3.2.3", message, moof)
        state.time = samples[-1].dts + samples[-1].duration
        if first and state.track.kind == "vide" and not samples[0].sync:
            message = "the first sample is not a sync sample"
            yield place.wrong("first-sync", "23000-19, 7.3.2.4", message, moof)
        if state.track.kind == "vide" and any(one.sync and one.depends for one in samples):
            message = "a sync sample that depends on others"
            yield place.wrong("sample-flags", "14496-12, 8.8.3", message, moof)
        if any(not sample.duration for sample in samples):
            yield place.wrong("sample-duration", "23000-19, 7.5.17", "a sample of no time", moof)
        first = False


def _data(
    place: Place, moof: Box, mdats: tuple[Box, ...], samples: list[SegmentSample]
) -> Iterator[Violation]:
    """The samples lie in the mdats after their moof, one after the other."""
    inside = [(mdat.offset + mdat.header_size, mdat.stop) for mdat in mdats]
    at = 0
    for sample in samples:
        stop = sample.offset + sample.size
        if not any(first <= sample.offset and stop <= last for first, last in inside):
            message = f"a sample at {sample.offset} of {sample.size} bytes is in no mdat after it"
            yield place.wrong("sample-place", "23000-19, 7.3.2.3", message, moof)
            return
        if sample.offset < at:
            message = f"a sample at {sample.offset} lies in the one before it"
            yield place.wrong("sample-overlap", "23000-19, 7.3.2.3", message, moof)
            return
        at = stop


FILE_BRANDS = {"cmfc", "cmf2"}
TABLES = ("stts", "stsc", "stsz", "stco")
READ = {"ftyp", "styp", "mvhd", "tkhd", "mdhd", "hdlr", "stsd", "trex", "elst", *TABLES}
READ |= {"mfhd", "tfhd", "tfdt", "trun", "moov", "trak", "moof", "traf"}


@record(frozen=True, slots=True)
class Place:
    """The header or one segment, and how what is wrong with it is written."""

    name: str

    def wrong(self, rule: str, clause: str, message: str, box: Box | None = None) -> Violation:
        """A rule that is broken here, or by a box of it."""
        where = self.name if box is None else f"{self.name}: {box.type} at {box.offset}"
        return Violation(rule, f"ISO/IEC {clause}", where, message)


def unreadable(place: Place, boxes: Iterable[Box]) -> Iterator[Violation]:
    """Boxes that the other rules read and that have not their form."""
    for box in boxes:
        if box.opaque and box.type in READ:
            message = box.misfit or "a version that is not defined"
            yield place.wrong("box-form", "14496-12, 4.2", message, box)
        yield from unreadable(place, box.children)


def brands_of(boxes: tuple[Box, ...]) -> set[str]:
    """The compatible brands of a header."""
    return {name for box in boxes[:1] for name in box.get("compatible_brands", ())}


def header_rules(place: Place, boxes: tuple[Box, ...]) -> Iterator[Violation]:
    """What is wrong with the boxes of a header."""
    types = [box.type for box in boxes]
    if types[:1] != ["ftyp"]:
        yield place.wrong("ftyp", "23000-19, 7.3", "the header does not begin with ftyp")
    elif not FILE_BRANDS & brands_of(boxes):
        yield place.wrong("brand", "23000-19, 7.2", "neither cmfc nor cmf2", boxes[0])
    for name in {"moof", "mdat"} & set(types):
        yield place.wrong("header-media", "23000-19, 7.3", f"the header holds {name}")
    moovs = [box for box in boxes if box.type == "moov"]
    if len(moovs) != 1:
        yield place.wrong("moov", "23000-19, 7.3", f"{len(moovs)} moovs, expected one")
        return
    moov = moovs[0]
    traks = moov.find_all("trak")
    if len(traks) != 1:
        message = f"{len(traks)} tracks, expected one"
        yield place.wrong("one-track", "23000-19, 7.3", message, moov)
    if moov.find("mvex") is None:
        yield place.wrong("mvex", "23000-19, 7.5", "no mvex", moov)
    for name in ("mvhd", "trak/tkhd", "trak/mdia/mdhd"):
        box = moov.find(name)
        if box is not None and box.get("duration") not in (0, None, 2**32 - 1, 2**64 - 1):
            message = f"duration {box['duration']}, expected 0"
            yield place.wrong("duration", "23000-19, 7.5", message, box)
    extended = [box.get("track_ID") for box in moov.find_all("mvex/trex")]
    for trak in traks:
        yield from _trak(place, trak, extended, "cmf2" in brands_of(boxes))


def _trak(place: Place, trak: Box, extended: list[int], strict: bool) -> Iterator[Violation]:
    tkhd = trak.find("tkhd")
    if tkhd is not None and extended and extended != [tkhd["track_ID"]]:
        message = f"trex of {extended}, expected one of track {tkhd['track_ID']}"
        yield place.wrong("trex", "23000-19, 7.5", message, trak)
    elif tkhd is not None and not extended:
        yield place.wrong("trex", "23000-19, 7.5", "no trex", trak)
    mdhd = trak.find("mdia/mdhd")
    if mdhd is not None and not mdhd["timescale"]:
        yield place.wrong("timescale", "14496-12, 8.4.2", "timescale 0", mdhd)
    stbl = trak.find("mdia/minf/stbl")
    for name in TABLES:
        table = stbl.find(name) if stbl is not None else None
        if table is None:
            yield place.wrong("sample-tables", "23000-19, 7.5", f"no {name}", trak)
        elif table.get("entry_count") or table.get("sample_count"):
            yield place.wrong("no-samples", "23000-19, 7.5", "lists samples", table)
    if stbl is not None and stbl.find("stss") is not None:
        table = stbl.find("stss")
        yield place.wrong("stss", "23000-19, 7.5", "the header lists sync samples", table)
    entries = trak.find_all("mdia/minf/stbl/stsd/*")
    if not entries:
        yield place.wrong("sample-entry", "14496-12, 8.5.2", "no sample entry", trak)
    edits = trak.find("edts/elst")
    if edits is not None and strict:
        message = "an edit list in a header of brand cmf2"
        yield place.wrong("edit-list", "23000-19, 7.5.13", message, edits)
    elif edits is not None:
        rows = edits["entries"]
        if len(rows) != 1 or int(rows[0]["media_time"]) < 0 or int(rows[0]["segment_duration"]):
            message = "expected one edit of duration 0 that shows media from its time on"
            yield place.wrong("edit-list", "23000-19, 7.5.13", message, edits)
        elif (int(rows[0]["media_rate_integer"]), int(rows[0]["media_rate_fraction"])) != (1, 0):
            yield place.wrong("edit-list", "23000-19, 7.5.13", "media_rate is not 1", edits)
