"""The ftyp and moov of an output: of a clip, with the chapters of its span; of a copy.

Of a clip's, what says how long the source was, or where its samples lie, goes; the rest stays. A
copy is made box by box, with what its muxer got wrong: players believe its durations and the next
track_ID, so that `agreeing` makes them true; all else of it stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from math import ceil, floor
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from fragdex.boxes import Box, build, find, find_all, make_box, parse
from fragdex.boxes.box import with_changes
from fragdex.errors import BuildError
from fragdex.fragments.table import Int64
from fragdex.fragments.track_info import DESCRIPTION
from fragdex.indexing.codecs import encrypted_entries
from fragdex.muxing.kept import Kept
from fragdex.seeking.model import Track

SECOND: Final = 10_000_000
"""Starts count in units of 100 ns (Nero chapters)."""

_UNKNOWN: Final = ((1 << 32) - 1, (1 << 64) - 1)
"""Durations that nobody knows (ISO/IEC 14496-12, 8.2.2)."""
_WIDE: Final = (1 << 32) - 1
_MOST_SAMPLES: Final = 10_000_000


def with_chapters(udta: Box, kept: Kept) -> Box:
    """User data of a movie whose chapters are those of an output, at its times.

    The chapter that is on where a span starts begins there. A list that would be empty, and one
    that cannot be read, goes.
    """

    def at_its_times(chpl: Box) -> Box | Sequence[Box]:
        rows = [] if chpl.opaque else _moved(chpl["chapters"], kept)
        return chpl.replace(chapters=rows) if rows else ()

    return with_changes(udta, {"chpl": at_its_times})


def spanning(boxes: Sequence[Box], kept: Kept | None) -> Sequence[Box]:
    """The boxes of a file with the chapters of an output alone."""
    if kept is None:
        return boxes

    def chaptered(udta: Box) -> Box:
        is_damaged = any(one.opaque for one in udta.find_all("chpl"))
        return udta if is_damaged else with_chapters(udta, kept)

    return [with_changes(box, {"udta": chaptered}) if box.type == "moov" else box for box in boxes]


def _moved(rows: Any, kept: Kept) -> list[dict[str, Any]]:
    moved = []
    on: int | None = None
    for span in kept:
        first, last = floor(span.start * SECOND), ceil(span.stop * SECOND)
        earlier = floor(span.earlier * SECOND)
        shown = max((at for row in rows if (at := int(row["start"])) <= first), default=first)
        for row in rows:
            at = int(row["start"])
            # one that continues after what was removed has begun already
            if shown <= at < last and at != on:
                moved.append({"start": max(at, first) - earlier, "title": row["title"]})
                on = at
    return moved


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
    """The ftyp with its major brand among the compatible ones, and one for signed offsets."""
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
    kept: Kept | None = None,
    boxes: Sequence[Box] | None = None,
    groups: Mapping[int, Sequence[Box]] = MappingProxyType({}),
) -> list[bytes]:
    """The boxes of an initialization segment, made fit for a part of the movie.

    Args:
        delays: keep the empty edits that edit lists begin with.
        from_samples: the samples of the moov become fragments: sample tables are emptied, an mvex
            is made.
        kept: what the clip shows of the source; None: the times of chapters stay.
        boxes: of the segment, where they are known; places of all but the moov count in it.

    A box that needs no change is given back byte for byte.
    """
    boxes = parse(init) if boxes is None else boxes
    if find(boxes, "moov") is None:
        raise BuildError("the initialization segment has no moov")
    pieces = []
    if from_samples and find(boxes, "ftyp") is None:
        # QuickTime files of old have none; players of segments require one (4.3).
        ftyp = make_box("ftyp", major_brand=BRANDS[0], minor_version=0, compatible_brands=BRANDS)
        pieces.append(build(ftyp))
    for box in boxes:
        if box.type == "moov":
            pieces.append(build(_moov(box, tracks, delays, from_samples, kept, groups)))
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
    kept: Kept | None,
    groups: Mapping[int, Sequence[Box]],
) -> Box:
    ids: list[int] = []

    def trak(child: Box) -> Box | Sequence[Box]:
        number = track_id(child)
        if tracks is not None and number not in tracks:
            return ()
        ids.append(number)
        return _trak(child, tracks, delays, from_samples, groups.get(number, ()))

    def mvex(child: Box) -> Box | Sequence[Box]:
        # mehd tells the length of the whole movie.
        return () if from_samples else with_changes(child, {"mehd": lambda _: ()})

    def udta(child: Box) -> Box:
        return child if kept is None else with_chapters(child, kept)

    changes = {"mvhd": _without_duration, "trak": trak, "mvex": mvex, "udta": udta}
    children = [*with_changes(moov, changes)]
    if from_samples:
        trexs = [
            make_box("trex", track_ID=number, default_sample_description_index=1) for number in ids
        ]
        children.append(make_box("mvex", children=trexs))
    return with_next_id(moov.replace(children=children))


def with_relative(ftyp: Box) -> Box:
    """The ftyp with a brand that allows default-base-is-moof, which fragments here may have."""
    brands = ftyp.get("compatible_brands")
    if brands is None or RELATIVE & set(brands):
        return ftyp
    return ftyp.replace(compatible_brands=(*brands, BRANDS[0]))


def with_next_id(moov: Box) -> Box:
    """The moov with a next_track_ID above its track_IDs, as who adds a track needs it (8.2.2)."""
    highest = max((track_id(box) for box in moov.children if box.type == "trak"), default=0)

    def free(mvhd: Box) -> Box:
        if "next_track_ID" not in mvhd or mvhd["next_track_ID"] > highest:
            return mvhd
        # 2^32 - 1: whoever adds one has to look for a number
        return mvhd.replace(next_track_ID=min(highest + 1, 2**32 - 1))

    return with_changes(moov, {"mvhd": free})


@cache
def empty_tables() -> tuple[Box, ...]:
    """Sample tables that say of no sample: those of a moov whose samples are in fragments."""
    return tuple(make_box(code) for code in ("stts", "stsc", "stsz", "stco"))


def traks_of(boxes: Sequence[Box]) -> dict[int, Box]:
    """The traks of a moov by their track_ID; of two of one track_ID the first counts."""
    traks: dict[int, Box] = {}
    for trak in find_all(boxes, "moov/trak"):
        traks.setdefault(track_id(trak), trak)
    return traks


def init_of_track(init: bytes, boxes: Sequence[Box], trak: Box) -> bytes:
    """The initialization segment with one trak, and without an mvex.

    Whoever makes something of each track looks at so much, and not at all tracks each time.
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

    def tref(box: Box) -> Box:
        return box if tracks is None else references(box, tracks)

    return with_changes(
        trak,
        {
            "tkhd": _without_duration,
            "tref": tref,
            "edts/elst": partial(_edits, delays=delays),
            "mdia/mdhd": _without_duration,
            "mdia/minf/stbl": partial(_stbl, from_samples=from_samples, sgpds=sgpds),
        },
    )


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


def _without_duration(box: Box) -> Box:
    return box.replace(duration=0) if box.get("duration") else box


def _edits(box: Box, delays: bool) -> Box:
    """The delay and the first media time; they hold for all that follows (8.6.6)."""
    if "entries" not in box or not len(box["entries"]):
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
    return encrypted_entries(trak.find_all("mdia/minf/stbl/stsd/*"))


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


def agreeing(moov: Box) -> Box:
    """The moov with durations that are the sums of what they are of, and a free next track_ID.

    Of a movie with fragments durations stay: they are of a part of it.
    """
    moov = with_next_id(moov)
    mvhd = moov.find("mvhd")
    if moov.find("mvex") is not None or mvhd is None or not mvhd.get("timescale"):
        return moov
    scale = int(mvhd["timescale"])
    moov = with_changes(moov, {"trak": partial(_agreeing_trak, scale=scale)})
    lasts = [int(head.get("duration", 0)) for head in moov.find_all("trak/tkhd")]
    return with_changes(moov, {"mvhd": partial(_lasting, duration=max(lasts, default=0))})


def _lasting(head: Box, duration: int) -> Box:
    known = int(head["duration"])
    if known == duration or known in _UNKNOWN:
        return head
    version = 1 if duration >= _WIDE else head["version"]
    return head.replace(version=version, duration=duration)


def _agreeing_trak(trak: Box, scale: int) -> Box:
    mdhd, tkhd = trak.find("mdia/mdhd"), trak.find("tkhd")
    if mdhd is None or tkhd is None or not mdhd.get("timescale"):
        return trak
    claimed = int(mdhd["duration"])
    own = mdhd if claimed in _UNKNOWN else _lasting(mdhd, _at_most(claimed, trak))
    elst = trak.find("edts/elst")
    rows: Any = () if elst is None else elst.get("entries", ())
    lasts = int(tkhd["duration"])
    if len(rows):
        lasts = int(rows["segment_duration"].astype(object).sum())
    elif claimed not in _UNKNOWN:
        expected = int(own["duration"]) * scale / int(mdhd["timescale"])
        lasts = lasts if abs(lasts - expected) <= 1 else round(expected)
    return with_changes(
        trak,
        {
            "tkhd": lambda box: _lasting(box, lasts) if box is tkhd else box,
            "mdia/mdhd": lambda box: own if box is mdhd else box,
        },
    )


def _at_most(claimed: int, trak: Box) -> int:
    """A duration, or the ticks until the last sample ends where that is sooner (8.4.2.3)."""
    stts, ctts = (trak.find(f"mdia/minf/stbl/{code}") for code in ("stts", "ctts"))
    if stts is None or "entries" not in stts:
        return claimed
    rows: Any = stts["entries"]
    counts = rows["sample_count"].astype(object)
    total = int(np.dot(counts, rows["sample_delta"].astype(object))) if len(rows) else 0
    if claimed <= total:
        return claimed
    shifts: Any = () if ctts is None else ctts.get("entries", ())
    count = int(shifts["sample_count"].astype(np.int64).sum()) if len(shifts) else 0
    if not count or count != int(counts.sum()) or count > _MOST_SAMPLES:
        return total
    ends = np.cumsum(np.repeat(rows["sample_delta"].astype(np.int64), rows["sample_count"]))
    ends += np.repeat(shifts["sample_offset"].astype(np.int64), shifts["sample_count"])
    return min(claimed, max(total, int(ends.max())))
