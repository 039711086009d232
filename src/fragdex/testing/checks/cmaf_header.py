"""CMAF headers held against ISO/IEC 23000-19: one track, and no sample yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fragdex.boxes import Box
from fragdex.testing.checks.violation import Violation

__all__ = ["Place", "brands_of", "header_rules", "unreadable"]

FILE_BRANDS = {"cmfc", "cmf2"}
TABLES = ("stts", "stsc", "stsz", "stco")
READ = {"ftyp", "styp", "mvhd", "tkhd", "mdhd", "hdlr", "stsd", "trex", "elst", *TABLES}
READ |= {"mfhd", "tfhd", "tfdt", "trun", "moov", "trak", "moof", "traf"}


@dataclass(frozen=True, slots=True)
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
    """The compatible brands of a header.

    >>> brands_of(())
    set()
    """
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
