"""Samples of media segments, resolved box by box without the library's own fragment reader."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any, NamedTuple

from fragdex.boxes import Box, find, find_all, parse
from fragdex.errors import FormatError
from fragdex.indexing.codecs import codec_string
from fragdex.record import record

NON_SYNC = 0x10000


class SegmentSample(NamedTuple):
    """One sample: position in the segment, bytes, and ticks of the media timeline.

    `depends`: its flags say that it depends on other samples (sample_depends_on 1).
    """

    offset: int
    size: int
    dts: int
    cts: int
    duration: int
    sync: bool
    depends: bool = False


@record(frozen=True, slots=True)
class InitTrack:
    """What an initialization segment says of a track.

    Attributes:
        id: track_ID.
        kind: handler_type, such as `vide`.
        timescale: ticks a second.
        codec: RFC 6381 codec string, or None.
        start: media time at which the presentation begins, by the first edit; 0 without one.
        defaults: duration, size and flags of the trex; None: there is no trex.
        delay: seconds of the empty edits before that.
    """

    id: int
    kind: str
    timescale: int
    codec: str | None
    start: int
    defaults: tuple[int, int, int] | None
    delay: Fraction = Fraction(0)


def boxes_of(data: bytes) -> tuple[Box, ...]:
    """The complete boxes of a resource; none where it is not made of boxes."""
    try:
        return parse(data)
    except FormatError:
        return ()


def init_tracks(init: bytes) -> list[InitTrack]:
    """The tracks of an initialization segment, in file order."""
    boxes = boxes_of(init)
    trex = {box["track_ID"]: box for box in find_all(boxes, "moov/mvex/trex") if "track_ID" in box}
    mvhd = find(boxes, "moov/mvhd")
    movie = mvhd.get("timescale", 0) if mvhd is not None else 0
    tracks = []
    for trak in find_all(boxes, "moov/trak"):
        number = _field(trak, "tkhd", "track_ID")
        entry = trak.find("mdia/minf/stbl/stsd/*")
        edits = trak.find("edts/elst")
        rows = edits.get("entries", ()) if edits is not None else ()
        shown = [int(row["media_time"]) for row in rows if int(row["media_time"]) >= 0]
        empty = itertools.takewhile(lambda row: int(row["media_time"]) == -1, rows)
        ticks = sum(int(row["segment_duration"]) for row in empty)
        extends = trex.get(number)
        tracks.append(
            InitTrack(
                number,
                str(_field(trak, "mdia/hdlr", "handler_type")),
                _field(trak, "mdia/mdhd", "timescale"),
                codec_string(entry) if entry is not None else None,
                shown[0] if shown else 0,
                None
                if extends is None
                else (
                    extends["default_sample_duration"],
                    extends["default_sample_size"],
                    extends["default_sample_flags"],
                ),
                Fraction(ticks, movie or 1),
            )
        )
    return tracks


def _field(box: Box, path: str, name: str) -> Any:
    below = box.find(path)
    return below.get(name, 0) if below is not None else 0


def segment_samples(
    segment: bytes, track: InitTrack, only: int | None = None
) -> list[SegmentSample]:
    """The samples of one track in a segment, in decode order (ISO/IEC 14496-12, 8.8).

    With `only`, those of the moof at this offset.

    Durations, sizes and flags are those of the trun, else of the tfhd, else of the trex.
    """
    samples: list[SegmentSample] = []
    time = 0
    for moof in boxes_of(segment):
        if moof.type != "moof" or only not in (None, moof.offset):
            continue
        for traf in moof.find_all("traf"):
            head = traf.find("tfhd")
            if head is None or head.get("track_ID") != track.id:
                continue
            tfdt = traf.find("tfdt")
            if tfdt is not None:
                time = int(tfdt.get("baseMediaDecodeTime", time))
            base = int(head.get("base_data_offset", moof.offset))
            at = base
            for trun in traf.find_all("trun"):
                if trun.opaque:
                    continue
                at = base + trun["data_offset"] if "data_offset" in trun else at
                for sample in _run(trun, head, track.defaults or (0, 0, 0), at, time):
                    samples.append(sample)
                    at, time = at + sample.size, time + sample.duration
    return samples


def _run(
    trun: Box, head: Box, trex: tuple[int, int, int], at: int, time: int
) -> list[SegmentSample]:
    names = ("duration", "size", "flags")
    usual = {
        name: int(head.get(f"default_sample_{name}", default))
        for name, default in zip(names, trex, strict=True)
    }
    rows = trun.get("samples", ())
    columns = set(getattr(getattr(rows, "dtype", None), "names", None) or ())
    samples = []
    for number in range(trun["sample_count"]):
        row = rows[number] if columns else {}
        fields = {
            name: int(row[f"sample_{name}"]) if f"sample_{name}" in columns else usual[name]
            for name in names
        }
        if number == 0 and "first_sample_flags" in trun:
            fields["flags"] = trun["first_sample_flags"]
        name = "sample_composition_time_offset"
        shift = int(row[name]) if name in columns else 0
        sync = not fields["flags"] & NON_SYNC
        samples.append(
            SegmentSample(
                at,
                fields["size"],
                time,
                time + shift,
                fields["duration"],
                sync,
                fields["flags"] >> 24 & 3 == 1,
            )
        )
        at, time = at + fields["size"], time + fields["duration"]
    return samples


def segment_seconds(samples: list[SegmentSample], track: InitTrack) -> tuple[Fraction, ...]:
    """How long a segment lasts: the sum of its durations, and the span that is presented.

    The span leaves out what the edit list hides before the start; both are equal where no sample
    is presented in another segment's time.
    """
    if not samples or not track.timescale:
        return (Fraction(0),)
    total = sum(sample.duration for sample in samples)
    first = max(min(sample.cts for sample in samples), track.start)
    last = max(sample.cts + sample.duration for sample in samples)
    return Fraction(total, track.timescale), Fraction(last - first, track.timescale)
