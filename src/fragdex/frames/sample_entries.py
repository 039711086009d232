"""Which sample entry each sample of a track is coded by, and an initialization segment for each."""

from __future__ import annotations

import numpy as np

from fragdex.boxes import Box, build, find, find_all, parse
from fragdex.errors import InexactIndex, UndecodableMedia
from fragdex.formats.clip_samples import described
from fragdex.fragments.table import FragmentFlags, Int64
from fragdex.seeking.row_samples import read_moof
from fragdex.seeking.track import TrackIndex
from fragdex.sources import Source

__all__ = ["entries_of", "init_of_entry"]


def entries_of(init: bytes, track: TrackIndex, count: int, source: Source) -> Int64 | None:
    """sample_description_index of each sample, in decode order; None: there is one entry.

    Where a track has several and its samples are in fragments, every moof is read: the index does
    not say (tfhd, ISO/IEC 14496-12, 8.8.7).

    Raises:
        InexactIndex: the moofs have other samples than the index.
        And what reading the source raises.
    """
    trak = _trak(init, track.id)
    stsd = None if trak is None else trak.find("mdia/minf/stbl/stsd")
    if trak is None or stsd is None or len(stsd.children) < 2:
        return None
    table = track.fragments
    virtual = (table.flags & FragmentFlags.VIRTUAL) != 0
    parts = []
    if virtual.any():
        parts.append(described(trak, np.arange(int(table.sample_count[virtual].sum()))))
    trex = next((b for b in _trexs(init) if b["track_ID"] == track.id), None)
    default = 1 if trex is None else int(trex["default_sample_description_index"])
    offsets = table.moof_offset[~virtual].tolist()
    parts += [_of_moof(read_moof(source, offset), track.id, default) for offset in offsets]
    found = np.concatenate(parts) if parts else np.ones(0, np.int64)
    if len(found) != count:
        raise InexactIndex(
            f"the moofs have {len(found)} samples of track {track.id}, the index {count}",
            advice="build the index again",
        )
    return None if (found == found[:1]).all() and found[:1] == [1] else found


def init_of_entry(init: bytes, track_id: int, entry: int) -> bytes:
    """The initialization segment with one sample entry of a track alone.

    Raises:
        UndecodableMedia: there is no such entry.
    """
    return b"".join(
        build(_only(box, track_id, entry)) if box.type == "moov" else build(box)
        for box in parse(init)
    )


def _only(moov: Box, track_id: int, entry: int) -> Box:
    path = ("mdia", "minf", "stbl", "stsd")

    def changed(box: Box, names: tuple[str, ...]) -> Box:
        if not names:
            if not 1 <= entry <= len(box.children):
                raise UndecodableMedia(f"track {track_id} has no sample entry {entry}")
            return box.replace(children=[box.children[entry - 1]], entry_count=1)
        children = [changed(b, names[1:]) if b.type == names[0] else b for b in box.children]
        return box.replace(children=children)

    children = [
        changed(box, path) if box.type == "trak" and _id(box) == track_id else box
        for box in moov.children
    ]
    return moov.replace(children=children)


def _of_moof(data: bytes, track_id: int, default: int) -> Int64:
    parts = [np.ones(0, np.int64)]
    for traf in find_all(parse(data), "moof/traf"):
        tfhd = traf.find("tfhd")
        if tfhd is None or tfhd.get("track_ID") != track_id:
            continue
        entry = tfhd.get("sample_description_index") or default
        runs = (box for box in traf.children if box.type == "trun")
        count = sum(int(trun.get("sample_count") or 0) for trun in runs)
        parts.append(np.full(count, entry, np.int64))
    return np.concatenate(parts)


def _trak(init: bytes, track_id: int) -> Box | None:
    boxes = parse(init)
    traks = find_all(boxes, "moov/trak") if find(boxes, "moov") else ()
    return next((trak for trak in traks if _id(trak) == track_id), None)


def _trexs(init: bytes) -> list[Box]:
    return [box for box in find_all(parse(init), "moov/mvex/trex") if "track_ID" in box]


def _id(trak: Box) -> int:
    tkhd = trak.find("tkhd")
    return int(tkhd["track_ID"]) if tkhd is not None and "track_ID" in tkhd else 0
