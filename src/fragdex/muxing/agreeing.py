"""What a copy of a movie says of itself made true: durations, and the next track_ID.

A file is copied box by box where it can be, with what its muxer got wrong. Players believe these
few fields, so that a copy has them right; all else of it stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from fragdex.boxes import Box
from fragdex.muxing.movie import with_next_id

_UNKNOWN: Final = ((1 << 32) - 1, (1 << 64) - 1)
"""Durations that nobody knows (ISO/IEC 14496-12, 8.2.2)."""
_WIDE: Final = (1 << 32) - 1
_MOST_SAMPLES: Final = 10_000_000


def agreeing(moov: Box) -> Box:
    """The moov with durations that are the sums of what they are of, and a free next track_ID.

    Of a movie with fragments durations stay: they are of a part of it.

    >>> from fragdex.boxes import make_box
    >>> moov = make_box("moov", children=[make_box("mvhd", timescale=1, duration=7)])
    >>> agreeing(moov).find("mvhd")["duration"]
    0
    """
    moov = with_next_id(moov)
    mvhd = moov.find("mvhd")
    if moov.find("mvex") is not None or mvhd is None or not mvhd.get("timescale"):
        return moov
    scale = int(mvhd["timescale"])
    children = [_trak(box, scale) if box.type == "trak" else box for box in moov]
    lasts = [int(head.get("duration", 0)) for box in children for head in box.find_all("tkhd")]
    children = [
        _lasting(box, max(lasts, default=0)) if box.type == "mvhd" else box for box in children
    ]
    return _changed(moov, children)


def _changed(box: Box, children: Sequence[Box]) -> Box:
    if all(new is old for new, old in zip(children, box, strict=True)):
        return box
    return box.replace(children=children)


def _lasting(head: Box, duration: int) -> Box:
    known = int(head["duration"])
    if known == duration or known in _UNKNOWN:
        return head
    version = 1 if duration >= _WIDE else head["version"]
    return head.replace(version=version, duration=duration)


def _trak(trak: Box, scale: int) -> Box:
    mdia = trak.find("mdia")
    mdhd, tkhd = trak.find("mdia/mdhd"), trak.find("tkhd")
    if mdia is None or mdhd is None or tkhd is None or not mdhd.get("timescale"):
        return trak
    claimed = int(mdhd["duration"])
    own = mdhd if claimed in _UNKNOWN else _lasting(mdhd, _at_most(claimed, trak))
    children = [
        _changed(mdia, [own if box is mdhd else box for box in mdia]) if box is mdia else box
        for box in trak
    ]
    elst = trak.find("edts/elst")
    rows: Any = () if elst is None else elst.get("entries", ())
    lasts = int(tkhd["duration"])
    if len(rows):
        lasts = int(rows["segment_duration"].astype(object).sum())
    elif claimed not in _UNKNOWN:
        expected = int(own["duration"]) * scale / int(mdhd["timescale"])
        lasts = lasts if abs(lasts - expected) <= 1 else round(expected)
    return _changed(trak, [_lasting(box, lasts) if box is tkhd else box for box in children])


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
