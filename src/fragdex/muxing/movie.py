"""The initialization segment of a clip, and the chapter list for its span.

What says how long the source was, or where its samples lie, goes; the rest stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from math import ceil, floor
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from fragdex.boxes import Box, build, find, find_all, make_box, parse
from fragdex.errors import BuildError
from fragdex.fragments.table import Int64
from fragdex.fragments.track_info import DESCRIPTION
from fragdex.seeking.model import Track

SECOND: Final = 10_000_000
"""Starts count in units of 100 ns (Nero chapters)."""


def with_chapters(udta: Box, start: Fraction, stop: Fraction) -> Box:
    """User data of a movie whose chapters are those from `start` to `stop`, moved to begin at 0.

    The chapter that is on at `start` begins at 0. A list that would be empty, and one that cannot
    be read, goes.

    Args:
        udta: of the source's moov; without a chapter list, it stays as it is.
        start, stop: seconds of the source's presentation, stop exclusive.

    >>> with_chapters(Box("udta", {}), Fraction(0), Fraction(1)).children
    ()
    """
    children: list[Box] = []
    for child in udta.children:
        if child.type == "chpl":
            rows = [] if child.opaque else _moved(child["chapters"], start, stop)
            if not rows:
                continue
            child = child.replace(chapters=rows)
        children.append(child)
    return udta.replace(children=children) if udta.children else udta


def _moved(rows: Any, start: Fraction, stop: Fraction) -> list[dict[str, Any]]:
    first, last = floor(start * SECOND), ceil(stop * SECOND)
    shown = max((at for row in rows if (at := int(row["start"])) <= first), default=first)
    return [
        {"start": max(int(row["start"]) - first, 0), "title": row["title"]}
        for row in rows
        if shown <= int(row["start"]) < last
    ]


BRANDS = ("iso6", "mp41")
"""Brands of fragments with default-base-is-moof (ISO/IEC 14496-12, Annex E.7)."""
RELATIVE = frozenset(["cmfc", "cmf2", "dash", "msdh", "piff", *(f"iso{n}" for n in "56789abc")])
"""Brands that allow it: without one of them, fragments may not say so (8.8.7)."""

PROGRESSIVE = frozenset(
    ["isom", "iso2", "iso3", "iso4", "mp41", "mp42", "avc1", "av01", "qt  ", "M4A ", "M4V "]
)
"""Brands that ask nothing of fragments."""


SIGNED = ("iso4", "mp42", "qt  ", *(f"iso{letter}" for letter in "56789abc"))
"""Brands that allow composition offsets below 0 (Annex E)."""


def agreeing_brands(ftyp: Box, moov: Box | None) -> Box:
    """The ftyp with its major brand among the compatible ones, and one for signed offsets.

    >>> ftyp = make_box("ftyp", major_brand="M4A ", compatible_brands=("isom",))
    >>> agreeing_brands(ftyp, None)["compatible_brands"]
    ('isom', 'M4A ')
    """
    brands = ftyp.get("compatible_brands")
    if not brands:
        return ftyp
    more = [ftyp["major_brand"]] if ftyp["major_brand"] not in brands else []
    tables = moov.find_all("trak/mdia/minf/stbl/ctts") if moov is not None else ()
    if any(box.get("version") for box in tables) and not set(SIGNED) & {*brands, *more}:
        more.append(SIGNED[0])
    return ftyp.replace(compatible_brands=(*brands, *more)) if more else ftyp


def clip_init(
    init: bytes,
    tracks: set[int] | None,
    *,
    delays: bool,
    from_samples: bool,
    span: tuple[Fraction, Fraction] | None = None,
    boxes: Sequence[Box] | None = None,
    groups: Mapping[int, Sequence[Box]] = MappingProxyType({}),
) -> list[bytes]:
    """The boxes of an initialization segment, made fit for a part of the movie.

    Args:
        init: ftyp, moov and what else belongs to them.
        tracks: the tracks that go into the clip; None: all.
        delays: keep the empty edits that edit lists begin with.
        from_samples: the samples of the moov become fragments: sample tables are emptied, an mvex
            is made.
        span: seconds of the source's presentation that become the clip, which begins at 0; None:
            the times of chapters stay.
        boxes: of the segment, where they are known; places of all but the moov count in it.
        groups: track_ID → descriptions of sample groups that samples from the moov are in.

    A box that needs no change is given back byte for byte.

    Raises:
        BuildError: there is no moov.
    """
    boxes = parse(init) if boxes is None else boxes
    if find(boxes, "moov") is None:
        raise BuildError("the initialization segment has no moov")
    pieces = []
    for box in boxes:
        if box.type == "moov":
            pieces.append(build(_moov(box, tracks, delays, from_samples, span, groups)))
        elif box.type == "ftyp" and from_samples:
            brands = dict.fromkeys((*BRANDS, *box.get("compatible_brands", ())))
            # What QuickTime calls its own files has other rules for fragments.
            compatible = [brand for brand in brands if brand != "qt  "]
            moov = make_box(
                "ftyp", major_brand=BRANDS[0], minor_version=0, compatible_brands=tuple(compatible)
            )
            pieces.append(build(moov))
        elif box.type == "ftyp" and (told := agreeing_brands(with_relative(box), None)) is not box:
            pieces.append(build(told))
        else:
            pieces.append(init[box.offset : box.stop])
    return pieces


def movie_brands(boxes: Sequence[Box]) -> bytes:
    """The ftyp of a progressive file: that of the source, without the brands of fragments."""
    ftyp = find(boxes, "ftyp")
    fragmented = find(boxes, "moov/mvex") is not None
    if ftyp is None or not fragmented:
        return b"" if ftyp is None else build(agreeing_brands(ftyp, find(boxes, "moov")))
    brands = [brand for brand in ftyp.get("compatible_brands", ()) if brand in PROGRESSIVE]
    major = "qt  " if ftyp.get("major_brand") == "qt  " else "isom"
    compatible = tuple(
        dict.fromkeys((major, *(() if major == "qt  " else ("iso2", "mp41")), *brands))
    )
    return build(make_box("ftyp", major_brand=major, minor_version=0, compatible_brands=compatible))


def _moov(
    moov: Box,
    tracks: set[int] | None,
    delays: bool,
    from_samples: bool,
    span: tuple[Fraction, Fraction] | None,
    groups: Mapping[int, Sequence[Box]],
) -> Box:
    children: list[Box] = []
    ids = []
    for child in moov.children:
        if child.type == "mvhd":
            child = _without_duration(child)
        elif child.type == "trak":
            number = track_id(child)
            if tracks is not None and number not in tracks:
                continue
            ids.append(number)
            child = _trak(child, tracks, delays, from_samples, groups.get(number, ()))
        elif child.type == "mvex":
            if from_samples:
                continue
            # mehd tells the length of the whole movie.
            child = child.replace(children=[b for b in child.children if b.type != "mehd"])
        elif child.type == "udta" and span is not None:
            child = with_chapters(child, *span)
        children.append(child)
    if from_samples:
        children.append(make_box("mvex", children=[_trex(number) for number in ids]))
    return with_next_id(moov.replace(children=children))


def with_relative(ftyp: Box) -> Box:
    """The ftyp with a brand that allows default-base-is-moof, which fragments here may have.

    >>> with_relative(make_box("ftyp", compatible_brands=("qt  ",)))["compatible_brands"]
    ('qt  ', 'iso6')
    """
    brands = ftyp.get("compatible_brands")
    if brands is None or RELATIVE & set(brands):
        return ftyp
    return ftyp.replace(compatible_brands=(*brands, BRANDS[0]))


def with_next_id(moov: Box) -> Box:
    """The moov with a next_track_ID above its track_IDs, as who adds a track needs it (8.2.2).

    >>> mvhd, tkhd = make_box("mvhd", next_track_ID=1), make_box("tkhd", track_ID=7)
    >>> moov = make_box("moov", children=[mvhd, make_box("trak", children=[tkhd])])
    >>> with_next_id(moov).find("mvhd")["next_track_ID"]
    8
    """
    highest = max((track_id(box) for box in moov.children if box.type == "trak"), default=0)
    children = [
        # 2^32 - 1: whoever adds one has to look for a number
        box.replace(next_track_ID=min(highest + 1, 2**32 - 1))
        if box.type == "mvhd" and "next_track_ID" in box and box["next_track_ID"] <= highest
        else box
        for box in moov.children
    ]
    if all(new is old for new, old in zip(children, moov.children, strict=True)):
        return moov
    return moov.replace(children=children)


@cache
def empty_tables() -> tuple[Box, ...]:
    """Sample tables that say of no sample: those of a moov whose samples are in fragments.

    >>> [box.type for box in empty_tables()]
    ['stts', 'stsc', 'stsz', 'stco']
    """
    return tuple(make_box(code) for code in ("stts", "stsc", "stsz", "stco"))


def _trex(number: int) -> Box:
    return make_box("trex", track_ID=number, default_sample_description_index=1)


def traks_of(boxes: Sequence[Box]) -> dict[int, Box]:
    """The traks of a moov by their track_ID; of two of one track_ID the first counts.

    >>> traks_of([])
    {}
    """
    traks: dict[int, Box] = {}
    for trak in find_all(boxes, "moov/trak"):
        traks.setdefault(track_id(trak), trak)
    return traks


def init_of_track(init: bytes, boxes: Sequence[Box], trak: Box) -> bytes:
    """The initialization segment with one trak, and without an mvex.

    Whoever makes something of each track looks at so much, and not at all tracks each time.

    Args:
        init: ftyp, moov and what else belongs to them.
        boxes: of it.
        trak: one of the moov's.

    >>> tkhds = [make_box("tkhd", track_ID=number) for number in (1, 2)]
    >>> traks = [make_box("trak", children=[tkhd]) for tkhd in tkhds]
    >>> init = build(make_box("moov", children=traks))
    >>> boxes = parse(init)
    >>> len(init_of_track(init, boxes, boxes[0].children[1])), len(init)
    (108, 208)
    """
    pieces = []
    for box in boxes:
        if box.type != "moov":
            pieces.append(init[box.offset : box.stop])
            continue
        inside = b"".join(
            init[child.offset : child.stop]
            for child in box.children
            if child is trak or child.type not in ("trak", "mvex")
        )
        pieces.append((8 + len(inside)).to_bytes(4, "big") + b"moov" + inside)
    return b"".join(pieces)


def track_id(trak: Box) -> int:
    """track_ID of a trak; 0 where it says none."""
    tkhd = next((box for box in trak.children if box.type == "tkhd"), None)
    return 0 if tkhd is None else int(tkhd.fields.get("track_ID", 0))


def _trak(
    trak: Box, tracks: set[int] | None, delays: bool, from_samples: bool, sgpds: Sequence[Box]
) -> Box:
    children = []
    for child in trak.children:
        if child.type == "tkhd":
            child = _without_duration(child)
        elif child.type == "tref" and tracks is not None:
            child = references(child, tracks)
        elif child.type == "edts":
            child = child.replace(children=[_edits(b, delays) for b in child.children])
        elif child.type == "mdia":
            child = _mdia(child, from_samples, sgpds)
        children.append(child)
    return trak.replace(children=children)


def references(tref: Box, tracks: set[int]) -> Box:
    """Without the references to tracks that are left out."""
    children = []
    for child in tref.children:
        ids = child.get("track_IDs")
        if ids is not None:
            here = [int(number) for number in ids if int(number) in tracks]
            if not here:
                continue
            child = child if len(here) == len(ids) else child.replace(track_IDs=here)
        children.append(child)
    return tref.replace(children=children)


def _mdia(mdia: Box, from_samples: bool, sgpds: Sequence[Box]) -> Box:
    children = []
    for child in mdia.children:
        if child.type == "mdhd":
            child = _without_duration(child)
        elif child.type == "minf":
            inner = [
                _stbl(b, from_samples, sgpds) if b.type == "stbl" else b for b in child.children
            ]
            child = child.replace(children=inner)
        children.append(child)
    return mdia.replace(children=children)


def _without_duration(box: Box) -> Box:
    return box.replace(duration=0) if box.get("duration") else box


def _edits(box: Box, delays: bool) -> Box:
    """The delay and the first media time; they hold for all that follows (8.6.6)."""
    if box.type != "elst" or "entries" not in box or not len(box["entries"]):
        return box
    entries: Any = box["entries"]
    shown = next((n for n, row in enumerate(entries) if row["media_time"] >= 0), len(entries) - 1)
    shown_entries = entries[: shown + 1].copy()
    if shown_entries["media_time"][shown] >= 0:
        shown_entries["segment_duration"][shown] = 0
    if not delays:
        shown_entries = shown_entries[shown_entries["media_time"] >= 0]
    return box.replace(entries=shown_entries)


def _stbl(stbl: Box, from_samples: bool, sgpds: Sequence[Box]) -> Box:
    """Without samples. Tables that are empty already stay as they are."""
    sizes = stbl.find("stsz") or stbl.find("stz2")
    if not from_samples and (sizes is None or not sizes.get("sample_count")):
        return stbl
    stsd = stbl.find("stsd")
    children = [] if stsd is None else [stsd]
    children += empty_tables()
    children += sgpds
    return stbl.replace(children=children)


def described(track: Track, trak: Box, numbers: Int64) -> Int64:
    """sample_description_index of samples of a track by their numbers.

    Those of the moov by its stsc (8.7.4), those of fragments by their tfhd (8.8.7).

    Raises:
        BuildError: the index does not know those of fragments.
    """
    stsd = trak.find("mdia/minf/stbl/stsd")
    if stsd is None or len(stsd.children) < 2:
        return np.ones(len(numbers), np.int64)
    if track.extent.is_virtual:
        return chunks_of(trak, numbers)[0]
    runs = [group for group in track.groups if group.grouping_type == DESCRIPTION]
    if not runs:
        raise BuildError(
            f"fragments of track {track.id} have several sample descriptions, and which one each "
            "uses is not in the index",
            path="moov/trak/mdia/minf/stbl/stsd",
            advice="index the file again, with exact=True",
        )
    starts = np.array([run.sample_start for run in runs])
    values = np.array([run.value for run in runs])
    used: Int64 = values[np.maximum(np.searchsorted(starts, numbers, side="right") - 1, 0)]
    ahead = numbers < starts[0]  # those of a hybrid file's moov
    used[ahead] = chunks_of(trak, numbers[ahead])[0]
    return used


def protected_entries(trak: Box) -> list[int]:
    """Numbers (from 1) of the sample entries whose samples are encrypted."""
    entries = enumerate(trak.find_all("mdia/minf/stbl/stsd/*"), 1)
    return [number for number, entry in entries if entry.find("sinf/schi") is not None]


def chunks_of(trak: Box, numbers: Int64) -> tuple[Int64, Int64, Int64]:
    """By stsc (8.7.4) of each sample: description, chunk, first sample of that chunk.

    All count from 0 but descriptions, which count from 1.
    """
    stbl = trak.find("mdia/minf/stbl")
    stsc = None if stbl is None else stbl.find("stsc")
    entries: Any = None if stsc is None else stsc.get("entries")
    if entries is None or not len(entries):
        nothing = np.zeros(len(numbers), np.int64)
        return nothing + 1, nothing, nothing
    index = entries["sample_description_index"].astype(np.int64)
    firsts = entries["first_chunk"].astype(np.int64) - 1
    each = np.maximum(entries["samples_per_chunk"].astype(np.int64), 1)
    # The last entry holds to the end, however many chunks that is.
    ends = np.cumsum(np.diff(firsts) * each[:-1])
    entry = np.searchsorted(ends, numbers, side="right")
    before = np.append(0, ends)[entry]
    turn = (numbers - before) // each[entry]
    return index[entry], firsts[entry] + turn, before + turn * each[entry]
