"""Writing the index for the end of a file: mfra (ISO/IEC 14496-12, 8.8.9 to 8.8.11).

One tfra a track, one entry a fragment that holds a sync sample: the first one. Times are
presentation times; below 0, where the edit list hides them, 0 is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from fragdex.box_header import read_header
from fragdex.boxes import Box, build, make_box, parse_box
from fragdex.byterange import ByteRange
from fragdex.errors import BuildError, InexactIndex
from fragdex.formats.sample_csv import whole_ticks
from fragdex.formats.subsegments import first_access, period_of
from fragdex.fragments.table import NULL, Int64
from fragdex.seeking.model import Index, Track

FIRST_GUESS = 4096
"""Bytes read of a moof at once; a larger one takes a second read."""


def write(index: Index, *, period: int | None = None, source: Any = None) -> bytes:
    """The mfra box, to be put at the very end of the file.

    Args:
        period: number of the period; needed where there are several.
        source: the file, bytes or an open `Source`: its moofs tell the numbers of traf and trun.
            Without it a fragment is taken to hold one traf a track in the order of the tracks,
            and one trun in each.

    Raises:
        InexactIndex: the index does not know moofs or sync samples.
        BuildError: the file has no movie fragments.
    """
    governing = period_of(index, period)
    moofs: dict[int, Box] = {}
    before: Counter[int] = Counter()
    tfras = []
    for track in governing.tracks:
        rows = np.flatnonzero(track.fragments.moof_offset != NULL)
        if len(rows):
            tfras.append(_tfra(track, rows, before, source, moofs))
            before.update(set(track.fragments.moof_offset.tolist()))
    if not tfras:
        raise BuildError(
            "this form needs movie fragments at known positions, and the index has none",
            advice="index a fragmented file box by box (--exact), or make a fragmented copy first:"
            " fragdex view FILE -o COPY.mp4",
        )
    mfro = make_box("mfro")
    size = len(build(make_box("mfra", children=[*tfras, mfro])))
    return build(make_box("mfra", children=[*tfras, mfro.replace(size=size)]))


def _tfra(
    track: Track, rows: Int64, before: Mapping[int, int], source: Any, moofs: dict[int, Box]
) -> Box:
    """The tfra of a track; `before`: offset of a moof → tracks in it that come before this one."""
    in_row, access = (column[rows] for column in first_access(track))
    if (in_row == NULL).any():
        raise InexactIndex(
            f"the sync samples of track {track.id} are not known",
            advice="build the index with exact=True",
        )
    listed = np.flatnonzero((in_row >= 0) & (access != NULL))
    place = track.fragments.moof_offset[rows][listed]
    number = in_row[listed]
    # One traf a track, in the order of the tracks.
    traf = np.array([before[at] + 1 for at in place.tolist()], np.int64)
    trun = np.ones(len(listed), np.int64)
    if source is not None:
        for entry, (at, sample) in enumerate(zip(place.tolist(), number.tolist(), strict=True)):
            if at not in moofs:
                moofs.clear()  # entries rise: what lies before is not requested again
                moofs[at] = _moof(source, at)
            traf[entry], trun[entry], number[entry] = _numbers(moofs[at], track.id, sample)
    time = np.maximum(access[listed] + whole_ticks(track.shift), 0)
    names = ("time", "moof_offset", "traf_number", "trun_number", "sample_number")
    entries = np.zeros(len(listed), [(name, np.int64) for name in names])
    for name, column in zip(names, (time, place, traf, trun, number + 1), strict=True):
        entries[name] = column
    return make_box(
        "tfra",
        version=1,
        track_ID=track.id,
        length_size_of_traf_num=_width(traf),
        length_size_of_trun_num=_width(trun),
        length_size_of_sample_num=_width(number + 1),
        entries=entries,
    )


def _width(column: Int64) -> int:
    """Bytes that a column needs, less one."""
    largest = int(column.max()) if len(column) else 0
    return max((largest.bit_length() + 7) // 8, 1) - 1


def _numbers(moof: Box, track: int, sample: int) -> tuple[int, int, int]:
    """Numbers of traf and trun, from 1, and of the sample in its trun, from 0."""
    for number, traf in enumerate(moof.find_all("traf"), 1):
        tfhd = traf.find("tfhd")
        if tfhd is None or tfhd["track_ID"] != track:
            continue
        for run, trun in enumerate(traf.find_all("trun"), 1):
            if sample < trun["sample_count"]:
                return number, run, sample
            sample -= trun["sample_count"]
    raise BuildError(
        "the index and the file disagree", path="moof/traf/trun", offset=moof.offset, found=track
    )


def _moof(source: Any, at: int) -> Box:
    data = _read(source, at, FIRST_GUESS)
    header = read_header(data)
    if header is None or header.type != b"moof":
        raise BuildError("the index and the file disagree", offset=at, expected="moof")
    if header.size > len(data):
        data = _read(source, at, header.size)
    return parse_box(data, offset=at)


def _read(source: Any, at: int, size: int) -> bytes:
    if hasattr(source, "read_up_to"):
        data: bytes = source.read_up_to(ByteRange.of(at, size))
        return data
    return bytes(memoryview(source)[at : at + size])
