"""The sample tables of a track held against ISO/IEC 14496-12, 8.5 to 8.7."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any, Final

import numpy as np

from fragdex.boxes import Box, find_all, parse
from fragdex.boxes.fragments import DEFAULT_BASE_IS_MOOF
from fragdex.errors import FormatError
from fragdex.fragments.table import Int64
from fragdex.testing.checks.cmaf import Place, unreadable
from fragdex.testing.checks.violation import Violation

_SELF_CONTAINED: Final = 1


def table_rules(place: Place, trak: Box, media: Sequence[tuple[int, int]]) -> Iterator[Violation]:
    """What is wrong with the sample tables of a trak.

    Args:
        media: first byte of each mdat's payload, and the one after it.
    """
    stbl = trak.find("mdia/minf/stbl")
    if stbl is None:
        return
    stsd, stts, stsc = (stbl.find(name) for name in ("stsd", "stts", "stsc"))
    stsz = stbl.find("stsz") or stbl.find("stz2")
    stco = stbl.find("stco") or stbl.find("co64")
    if stsz is None or stco is None:
        yield place.wrong("sample-tables", "14496-12, 8.7", "no stsz, or no stco", stbl)
        return
    if stsd is None or stts is None or stsc is None:
        return  # told already
    yield from _entries(place, trak, stsd)
    sizes = _sizes(stsz)
    yield from _counts(place, stbl, len(sizes))
    chunks: Int64 = stco["entries"]["chunk_offset"].astype(np.int64)
    rows: Any = stsc["entries"]
    firsts = rows["first_chunk"].astype(np.int64)
    each = rows["samples_per_chunk"].astype(np.int64)
    index = rows["sample_description_index"].astype(np.int64)
    if not len(sizes):
        return
    if not len(rows) or firsts[0] != 1 or (np.diff(firsts) <= 0).any():
        yield place.wrong("stsc", "14496-12, 8.7.4", "first_chunk does not rise from 1", stsc)
        return
    if len(index) and not (index.min() >= 1 and index.max() <= len(stsd.children)):
        message = f"sample_description_index {index.max()} of {len(stsd.children)}"
        yield place.wrong("description", "14496-12, 8.7.4", message, stsc)
    if firsts[-1] > len(chunks):
        message = f"chunk {firsts[-1]} of {len(chunks)}"
        yield place.wrong("stsc", "14496-12, 8.7.4", message, stsc)
        return
    per_chunk = np.repeat(each, np.diff(np.append(firsts, len(chunks) + 1)))
    if int(per_chunk.sum()) != len(sizes):
        message = f"{int(per_chunk.sum())} samples in {len(chunks)} chunks, stsz has {len(sizes)}"
        yield place.wrong("sample-count", "14496-12, 8.7.4", message, stsc)
        return
    edges = np.append(0, np.cumsum(per_chunk))
    ends = chunks + np.diff(np.append(0, np.cumsum(sizes))[edges])
    starts = np.array(sorted(media), np.int64).reshape(-1, 2)
    runs = np.searchsorted(starts[:, 0], chunks, side="right") - 1
    inside = (runs >= 0) & (ends <= np.append(starts[:, 1], 0)[runs])
    outside = np.flatnonzero(~inside & (ends > chunks))
    if len(outside):
        first = int(outside[0])
        message = f"chunk {first + 1} at {chunks[first]} to {ends[first]} lies in no mdat"
        yield place.wrong("sample-place", "14496-12, 8.7.5", message, stco)


def _sizes(box: Box) -> Int64:
    if box.type == "stz2":
        return np.asarray(box["entry_size"], np.int64)
    if box["sample_size"]:
        return np.full(int(box["sample_count"]), int(box["sample_size"]), np.int64)
    sizes: Int64 = box["entries"]["entry_size"].astype(np.int64)
    return sizes


def _entries(place: Place, trak: Box, stsd: Box) -> Iterator[Violation]:
    if not stsd.children:
        yield place.wrong("sample-entry", "14496-12, 8.5.2", "no sample entry", stsd)
    dref = trak.find("mdia/minf/dinf/dref")
    count = 0 if dref is None else len(dref.children)
    for entry in stsd.children:
        number = entry.get("data_reference_index")
        if number is not None and not 1 <= int(number) <= count:
            message = f"data_reference_index {number} of {count}"
            yield place.wrong("data-reference", "14496-12, 8.5.2", message, entry)
    for reference in () if dref is None else dref.children:
        if reference.get("flags") is not None and not reference["flags"] & _SELF_CONTAINED:
            message = "its media is in another file"
            yield place.wrong("data-reference", "14496-12, 8.7.2", message, reference)


def _counts(place: Place, stbl: Box, count: int) -> Iterator[Violation]:
    for box in stbl.children:
        if box.type in ("stts", "ctts"):
            claimed = int(box["entries"]["sample_count"].astype(np.int64).sum())
            if claimed != count:
                message = f"{claimed} samples, stsz has {count}"
                yield place.wrong("sample-count", "14496-12, 8.6", message, box)
        elif box.type == "sdtp" and len(box["entries"]) != count:
            message = f"{len(box['entries'])} samples, stsz has {count}"
            yield place.wrong("sample-count", "14496-12, 8.6.4", message, box)
        elif box.type == "sbgp":
            claimed = int(box["entries"]["sample_count"].astype(np.int64).sum())
            if claimed > count:
                message = f"{claimed} samples, stsz has {count}"
                yield place.wrong("sample-count", "14496-12, 8.9.2", message, box)
        elif box.type == "stss":
            numbers = box["entries"]["sample_number"].astype(np.int64)
            if len(numbers) and (
                numbers[0] < 1 or numbers[-1] > count or (np.diff(numbers) <= 0).any()
            ):
                message = f"its numbers do not rise within 1 to {count}"
                yield place.wrong("stss", "14496-12, 8.6.2", message, box)


_ANY_ID: Final = 2**32 - 1
_MOST_SAMPLES: Final = 10_000_000
_UNKNOWN: Final = (2**32 - 1, 2**64 - 1)
_NEWER: Final = {
    *("iso5", "iso6", "iso7", "iso8", "iso9", "isoa", "isob", "isoc"),
    *("cmfc", "cmf2", "cmfs", "cmff", "dash", "msdh", "msix", "piff"),
}
"""Brands that allow default-base-is-moof (8.8.7.1; Annex E)."""
ONCE: Final = {
    "moov": ("mvhd",),
    "trak": ("tkhd", "mdia"),
    "mdia": ("mdhd", "hdlr", "minf"),
    "minf": ("dinf", "stbl"),
    "stbl": ("stsd", "stts", "stsc"),
    "moof": ("mfhd",),
    "traf": ("tfhd",),
}
AT_MOST_ONCE: Final = {
    "": ("ftyp", "moov", "mfra"),
    "moov": ("mvex", "udta"),
    "trak": ("edts", "tref"),
    "stbl": ("ctts", "stss", "stsz", "stz2", "stco", "co64"),
    "traf": ("tfdt",),
}


def check_bmff(data: bytes, init: bytes = b"") -> list[Violation]:
    """What breaks a rule of ISO/IEC 14496-12 in a file, or in a media segment.

    Args:
        data: a file; or segments, whose initialization segment is `init`.
        init: ftyp and moov, where they are not in `data`.

    Boxes tile the file and stand as often as they may; track_IDs are unique, and below
    next_track_ID; all tables of a track count the same samples, which lie in an mdat; durations
    are the sums of what they are of; brands allow what is used; sidx and mfra point where they say.

    >>> from fragdex.testing import movie
    >>> check_bmff(movie(2))
    []
    >>> [str(one) for one in check_bmff(movie(1) + b"more")]
    ['file: 4 bytes after the last box (box-size; ISO/IEC 14496-12, 4.2)']
    """
    place = Place("file" if not init else "segment")
    try:
        boxes = parse(data)
        header = parse(init) if init else boxes
    except FormatError as error:
        return [place.wrong("boxes", "14496-12, 4.2", str(error))]
    violations = [*_tiling(place, boxes, len(data)), *unreadable(place, boxes)]
    if violations:
        return violations
    violations += _counted(place, "", boxes)
    moov = next((box for box in header if box.type == "moov"), None)
    if moov is None:
        return [*violations, place.wrong("moov", "14496-12, 8.2.1", "there is no moov")]
    if not init:
        if boxes[0].type not in ("ftyp", "styp", "moov", "skip", "free", "wide"):
            message = "it does not begin with ftyp"
            violations.append(place.wrong("ftyp", "14496-12, 4.3", message, boxes[0]))
        media = [(b.offset + b.header_size, b.stop) for b in boxes if b.type in ("mdat", "imda")]
        violations += _movie(place, moov, media, any(box.type == "moof" for box in boxes))
    violations += _brands(place, (*header[:1], *(b for b in boxes if b.type == "styp")), boxes)
    violations += _fragments(place, moov, boxes)
    violations += _pointers(place, boxes, len(data))
    return violations


def _tiling(place: Place, boxes: tuple[Box, ...], size: int) -> Iterator[Violation]:
    at = 0
    for box in boxes:
        if box.offset != at:
            yield place.wrong("box-size", "14496-12, 4.2", f"it begins at {box.offset}", box)
        if box.stop > size:
            yield place.wrong("box-size", "14496-12, 4.2", "it ends after the file", box)
        at = box.stop
    if at < size:
        yield place.wrong("box-size", "14496-12, 4.2", f"{size - at} bytes after the last box")


def _counted(place: Place, of: str, boxes: tuple[Box, ...]) -> Iterator[Violation]:
    """Boxes that stand once, or at most once, in the box around them."""
    types = [box.type for box in boxes]
    for name in ONCE.get(of, ()):
        if types.count(name) != 1:
            message = f"{types.count(name)} {name} in {of}, expected one"
            yield place.wrong("box-count", "14496-12, 6.2.3", message, boxes[0] if boxes else None)
    for name in AT_MOST_ONCE.get(of, ()):
        if types.count(name) > 1:
            message = f"{types.count(name)} {name}, expected one at most"
            yield place.wrong("box-count", "14496-12, 6.2.3", message, boxes[0])
    for box in boxes:
        if box.type in ONCE or box.type in AT_MOST_ONCE:
            yield from _counted(place, box.type, box.children)


def _movie(
    place: Place, moov: Box, media: list[tuple[int, int]], has_moofs: bool
) -> Iterator[Violation]:
    mvhd = moov.find("mvhd")
    if mvhd is None:
        return
    ids = [int(box["track_ID"]) for box in moov.find_all("trak/tkhd")]
    if len(set(ids)) < len(ids) or 0 in ids:
        message = f"track_IDs {ids}: each is another, and not 0"
        yield place.wrong("track-id", "14496-12, 8.3.2", message, moov)
    following = int(mvhd["next_track_ID"])
    if following != _ANY_ID and following <= max(ids, default=0):
        message = f"next_track_ID {following}, track_IDs go up to {max(ids)}"
        yield place.wrong("next-track-id", "14496-12, 8.2.2", message, mvhd)
    if not mvhd["timescale"]:
        yield place.wrong("timescale", "14496-12, 8.2.2", "timescale 0", mvhd)
    extended = [int(box["track_ID"]) for box in moov.find_all("mvex/trex")]
    if moov.find("mvex") is not None and sorted(extended) != sorted(ids):
        message = f"trex of tracks {extended}, the moov has {ids}"
        yield place.wrong("trex", "14496-12, 8.8.3", message, moov)
    if has_moofs and moov.find("mvex") is None:
        yield place.wrong("mvex", "14496-12, 8.8.1", "moofs without an mvex", moov)
    for trak in moov.find_all("trak"):
        for tref in trak.find_all("tref/*"):
            # hint and index tracks may name tracks of the source by URL: those are not here
            lost = [int(one) for one in tref.get("track_IDs", ()) if int(one) not in ids]
            if lost:
                message = f"a reference to track {lost[0]}, which there is not"
                yield place.wrong("tref", "14496-12, 8.3.3", message, tref)
        yield from table_rules(place, trak, media)
        yield from _durations(place, trak, mvhd, fragmented=moov.find("mvex") is not None)
    lengths = [int(box["duration"]) for box in moov.find_all("trak/tkhd")]
    claimed = int(mvhd["duration"])
    if moov.find("mvex") is None and claimed not in _UNKNOWN and claimed != max(lengths, default=0):
        message = f"duration {claimed}, the longest track has {max(lengths, default=0)}"
        yield place.wrong("movie-duration", "14496-12, 8.2.2", message, mvhd)


def _durations(place: Place, trak: Box, mvhd: Box, *, fragmented: bool) -> Iterator[Violation]:
    tkhd, mdhd = trak.find("tkhd"), trak.find("mdia/mdhd")
    stts = trak.find("mdia/minf/stbl/stts")
    if tkhd is None or mdhd is None or stts is None:
        return
    media = _media_duration(stts, trak.find("mdia/minf/stbl/ctts"))
    claimed = int(mdhd["duration"])
    if not mdhd["timescale"]:
        yield place.wrong("timescale", "14496-12, 8.4.2", "timescale 0", mdhd)
        return
    if claimed not in _UNKNOWN and claimed > media and not fragmented:
        message = f"duration {claimed}, its samples end at {media}"
        yield place.wrong("media-duration", "14496-12, 8.4.2", message, mdhd)
    elst = trak.find("edts/elst")
    shown = int(tkhd["duration"])
    if fragmented or shown in _UNKNOWN:
        return
    if elst is not None and len(elst["entries"]):
        edits = int(elst["entries"]["segment_duration"].astype(object).sum())
        if shown != edits:
            message = f"duration {shown}, its edits last {edits}"
            yield place.wrong("track-duration", "14496-12, 8.3.2", message, tkhd)
    elif claimed not in _UNKNOWN:
        expected = claimed * int(mvhd["timescale"]) / int(mdhd["timescale"])
        if abs(shown - expected) > 1:
            message = f"duration {shown}, its media lasts {expected:.1f}"
            yield place.wrong("track-duration", "14496-12, 8.3.2", message, tkhd)


def _media_duration(stts: Box, ctts: Box | None) -> int:
    """The sum of all durations, or where the last sample in composition ends (8.4.2.3)."""
    rows: Any = stts["entries"]
    counts, deltas = rows["sample_count"].astype(object), rows["sample_delta"].astype(object)
    total = int(np.dot(counts, deltas))
    shifts: Any = () if ctts is None else ctts["entries"]
    count = int(shifts["sample_count"].astype(np.int64).sum()) if len(shifts) else 0
    if not count or count != int(counts.sum()) or count > _MOST_SAMPLES:
        return total
    lasts = np.repeat(rows["sample_delta"].astype(np.int64), rows["sample_count"])
    ends = np.cumsum(lasts)
    name = "sample_offset"
    ends += np.repeat(shifts[name].astype(np.int64), shifts["sample_count"])
    return max(total, int(ends.max()))


def _brands(place: Place, heads: tuple[Box, ...], boxes: tuple[Box, ...]) -> Iterator[Violation]:
    heads = tuple(box for box in heads if box.type in ("ftyp", "styp"))
    brands = {name for box in heads for name in (*box["compatible_brands"], box["major_brand"])}
    for box in heads:
        if box["compatible_brands"] and box["major_brand"] not in box["compatible_brands"]:
            message = f"major_brand {box['major_brand']!r} is not a compatible_brand"
            yield place.wrong("major-brand", "14496-12, 4.3.3", message, box)
    for tfhd in find_all(boxes, "moof/traf/tfhd"):
        if heads and tfhd["flags"] & DEFAULT_BASE_IS_MOOF and not brands & _NEWER:
            message = f"default-base-is-moof under the brands {sorted(brands)}"
            yield place.wrong("fragment-brand", "14496-12, 8.8.7", message, tfhd)
            break
    if heads and not brands & {"iso4", "mp42", *_NEWER, "qt  "}:
        for ctts in find_all(boxes, "moov/trak/mdia/minf/stbl/ctts"):
            if ctts["version"]:
                message = f"ctts of version 1 under the brands {sorted(brands)}"
                yield place.wrong("ctts-brand", "14496-12, E.4", message, ctts)


def _fragments(place: Place, moov: Box, boxes: tuple[Box, ...]) -> Iterator[Violation]:
    trexs = {int(box["track_ID"]): box for box in moov.find_all("mvex/trex")}
    entries = {
        int(tkhd["track_ID"]): len(trak.find_all("mdia/minf/stbl/stsd/*"))
        for trak in moov.find_all("trak")
        if (tkhd := trak.find("tkhd")) is not None
    }
    media = [(b.offset + b.header_size, b.stop) for b in boxes if b.type == "mdat"]
    before = -1
    ends: dict[int, int] = {}
    for moof in boxes:
        if moof.type != "moof":
            continue
        mfhd = moof.find("mfhd")
        number = int(mfhd["sequence_number"]) if mfhd is not None else before + 1
        if number <= before:
            message = f"sequence_number {number} after {before}"
            yield place.wrong("sequence-number", "14496-12, 8.8.5", message, mfhd)
        before = number
        at = moof.offset
        for traf in moof.find_all("traf"):
            tfhd = traf.find("tfhd")
            if tfhd is None:
                continue
            track = int(tfhd["track_ID"])
            if track not in trexs:
                message = f"track {track}, which the moov does not extend"
                yield place.wrong("track-id", "14496-12, 8.8.7", message, tfhd)
                continue
            entry = tfhd.get("sample_description_index")
            entry = trexs[track]["default_sample_description_index"] if entry is None else entry
            if not 1 <= entry <= entries.get(track, 0):
                message = f"sample_description_index {entry} of {entries.get(track, 0)}"
                yield place.wrong("description", "14496-12, 8.8.7", message, tfhd)
            # Where nothing says otherwise, a traf's data follow those of the one before (8.8.7.1).
            if tfhd["flags"] & DEFAULT_BASE_IS_MOOF:
                at = moof.offset
            at = int(tfhd.get("base_data_offset", at))
            at = yield from _traf(place, at, traf, trexs[track], media, ends)


def _traf(
    place: Place,
    base: int,
    traf: Box,
    trex: Box,
    media: list[tuple[int, int]],
    ends: dict[int, int],
) -> Generator[Violation, None, int]:
    """Returns where the data of the traf end."""
    tfhd, tfdt = traf.find("tfhd"), traf.find("tfdt")
    assert tfhd is not None
    track = int(tfhd["track_ID"])
    time = ends.get(track, 0)
    if tfdt is not None:
        time = int(tfdt["baseMediaDecodeTime"])
        if time < ends.get(track, 0):
            message = f"decode time {time}, samples before it last until {ends[track]}"
            yield place.wrong("decode-time", "14496-12, 8.8.12", message, tfdt)
    at = base
    for trun in traf.find_all("trun"):
        at = base + trun["data_offset"] if "data_offset" in trun else at
        sizes: Int64 = _column(trun, tfhd, trex, "size")
        total = int(sizes.sum())
        inside = any(low <= at and at + total <= high for low, high in media)
        if total and not inside:
            message = f"its samples at {at} to {at + total} lie in no mdat"
            yield place.wrong("sample-place", "14496-12, 8.8.8", message, trun)
        at += total
        time += int(_column(trun, tfhd, trex, "duration").sum())
    ends[track] = time
    return at


def _column(trun: Box, tfhd: Box, trex: Box, name: str) -> Int64:
    rows: Any = trun.get("samples", ())
    names = getattr(getattr(rows, "dtype", None), "names", None) or ()
    if f"sample_{name}" in names:
        column: Int64 = rows[f"sample_{name}"].astype(np.int64)
        return column
    usual = tfhd.get(f"default_sample_{name}")
    usual = trex[f"default_sample_{name}"] if usual is None else usual
    return np.full(int(trun["sample_count"]), int(usual), np.int64)


def _pointers(place: Place, boxes: tuple[Box, ...], size: int) -> Iterator[Violation]:
    """What sidx and mfra point at."""
    moofs = {box.offset for box in boxes if box.type == "moof"}
    starts = {box.offset for box in boxes} | {size}
    for sidx in (box for box in boxes if box.type == "sidx"):
        at = sidx.stop + int(sidx["first_offset"])
        for row in sidx["references"]:
            if at not in starts:
                message = f"a reference to {at}, where no box begins"
                yield place.wrong("sidx", "14496-12, 8.16.3", message, sidx)
                break
            at += int(row["referenced_size"])
        else:
            if at not in starts:
                message = f"its references end at {at}, where no box ends"
                yield place.wrong("sidx", "14496-12, 8.16.3", message, sidx)
    for mfra in (box for box in boxes if box.type == "mfra"):
        mfro = mfra.find("mfro")
        claimed = None if mfro is None else mfro["size"]
        if claimed is not None and int(claimed) != mfra.size:
            message = f"its mfro says {claimed} bytes, it has {mfra.size}"
            yield place.wrong("mfro", "14496-12, 8.8.11", message, mfra)
        for tfra in mfra.find_all("tfra"):
            lost = [int(at) for at in tfra["entries"]["moof_offset"] if int(at) not in moofs]
            if lost:
                message = f"no moof at {lost[0]}"
                yield place.wrong("tfra", "14496-12, 8.8.10", message, tfra)
