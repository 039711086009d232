"""CMAF headers, segments and chunks held against ISO/IEC 23000-19."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fragdex.boxes import Box, parse
from fragdex.boxes.fragments import (
    BASE_DATA_OFFSET,
    DATA_OFFSET,
    DEFAULT_BASE_IS_MOOF,
    SAMPLE_COMPOSITION_TIME_OFFSET,
)
from fragdex.errors import FormatError
from fragdex.testing.checks.cmaf_header import Place, brands_of, header_rules, unreadable
from fragdex.testing.checks.samples import (
    InitTrack,
    SegmentSample,
    init_tracks,
    segment_samples,
)
from fragdex.testing.checks.violation import Violation

__all__ = ["check_cmaf"]

SEGMENT_BRANDS = {"cmfs", "cmff", "cmfl", "cmfc", "cmf2"}


def check_cmaf(init: bytes, segments: Iterable[bytes] = ()) -> list[Violation]:
    """What breaks a constraint of CMAF in a header and the segments or chunks behind it, in order.

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
    found: list[Violation] = []
    place = Place("header")
    try:
        boxes = parse(init, strict=True)
    except FormatError as error:
        return [place.wrong("boxes", "14496-12, 4.2", str(error))]
    found += unreadable(place, boxes)
    if found:
        return found
    found += header_rules(place, boxes)
    tracks = init_tracks(init)
    if len(tracks) != 1:
        return found
    state = _Following(tracks[0], "cmf2" in brands_of(boxes))
    for number, segment in enumerate(segments):
        place = Place(f"segment {number}")
        try:
            boxes = parse(segment, strict=True)
        except FormatError as error:
            found.append(place.wrong("boxes", "14496-12, 4.2", str(error)))
            continue
        odd = list(unreadable(place, boxes))
        found += odd
        if odd:
            continue
        found += _segment(place, boxes, state)
        found += _samples(place, segment, boxes, state)
    return found


@dataclass(slots=True)
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
        told = header["sequence_number"] if header is not None else None
        if told is None:
            yield place.wrong("mfhd", "14496-12, 8.8.5", "no mfhd", moof)
        elif state.number is not None and told <= state.number:
            message = f"sequence_number {told} behind {state.number}"
            yield place.wrong("sequence-number", "14496-12, 8.8.5", message, header)
        state.number = told if told is not None else state.number
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
            message = "the first sample is no sync sample"
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
    """The samples lie in the mdats behind their moof, one behind the other."""
    inside = [(mdat.offset + mdat.header_size, mdat.stop) for mdat in mdats]
    at = 0
    for sample in samples:
        stop = sample.offset + sample.size
        if not any(first <= sample.offset and stop <= last for first, last in inside):
            message = f"a sample at {sample.offset} of {sample.size} bytes is in no mdat behind it"
            yield place.wrong("sample-place", "23000-19, 7.3.2.3", message, moof)
            return
        if sample.offset < at:
            message = f"a sample at {sample.offset} lies in the one before it"
            yield place.wrong("sample-overlap", "23000-19, 7.3.2.3", message, moof)
            return
        at = stop
