"""Segment indexes that we write: read back, they say what the index says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given

import fragdex
from fragdex.boxes import build, parse
from fragdex.errors import BuildError, FragdexError, InexactIndex
from fragdex.formats import sidx
from fragdex.formats.subsegments import (
    Subsegments,
    first_access,
    reference_track,
    subsegments,
)
from fragdex.fragments.table import NULL, FragmentTable, SyncTable
from fragdex.fragments.track_info import TrackInfo
from fragdex.indexing.sidx_reading import SidxReader, tables
from fragdex.seeking.model import Track
from fragdex.testing import make_file, movie
from strategies.files import fragmented_parts

FIXTURES = Path(__file__).parents[2] / "fixtures"


def read_back(written: bytes, first: int) -> SidxReader:
    """What was written, put directly before the first fragment."""
    shift = 1 << 30
    reader = SidxReader()
    for box in parse(written, offset=first + shift - len(written)):
        reader.add(box)
    return reader


@pytest.mark.parametrize("edit", [None, 7000])
@pytest.mark.parametrize("reordered", [False, True])
def test_what_is_written_says_what_the_index_says(edit: int | None, reordered: bool) -> None:
    index = fragdex.index(movie(5, tracks=2, edit=edit, reordered=reordered), exact=True)
    track = index.track(1)
    first = int(track.fragments.offset[0])
    segments = read_back(sidx.write(index), first).segments()
    assert not segments.doubts()
    fragments, sync = tables(segments, index.periods[0].movie)[1]
    # What the edit list hides before presentation time 0 is not counted.
    begin = -int(track.shift)
    exact = track.fragments
    assert fragments.offset[1:].tolist() == (exact.offset[1:] + (1 << 30)).tolist()
    assert fragments.cts_min.tolist() == np.maximum(exact.cts_min, begin).tolist()
    assert fragments.cts_end.tolist() == np.maximum(exact.cts_end, begin).tolist()
    assert sync.cts.tolist() == np.maximum(track.samples.cts[track.samples.sync], begin).tolist()


@given(fragmented_parts())
def test_written_references_tile_the_file_and_their_times_never_fall(parts: list) -> None:
    file = make_file(*parts)
    try:
        index = fragdex.index(file.data, exact=True)
        period = index.periods[0]
        track = reference_track(period)
        written = sidx.write(index, period=0)
    except FragdexError:
        assume(False)
    rows = subsegments(period)
    assert (rows.offset[1:] == rows.offset[:-1] + rows.size[:-1]).all()
    assert (rows.duration >= 0).all()
    assert (np.diff(rows.time) >= 0).all()
    # Each sample is shown in or after the stretch that holds it begins.
    samples = track.samples
    shift = int(rows.time[0] - track.samples.cts.min()) if len(samples) else 0
    row = np.searchsorted(rows.offset, samples.offset, side="right") - 1
    inside = (row >= 0) & (samples.offset < rows.stop) & (samples.size > 0)
    assert (samples.cts[inside] + shift >= rows.time[row[inside]]).all()
    stream = read_back(written, int(rows.offset[0])).segments().streams[track.id]
    assert stream.size.sum() - len(written) == rows.size.sum()
    assert stream.duration.sum() == max(rows.time[-1] + rows.duration[-1], 0) - max(rows.time[0], 0)


def test_more_references_than_one_box_has_room_for_go_into_a_hierarchy() -> None:
    n = 150_000
    sizes = np.arange(n, dtype=np.int64) % 997 + 1
    offset = 10_000 + np.cumsum(sizes) - sizes
    time = np.arange(n, dtype=np.int64) * 20 + (1 << 33)
    twenty = np.full(n, 20)
    segments = Subsegments(offset, sizes, time, twenty, time, twenty // 20, np.arange(n))
    written = sidx.boxes(segments, 7, 1000, first_offset=123)
    assert len(written) == 4
    data = build(written)
    reader = SidxReader()
    reader.feed(0, data[: int.from_bytes(data[:4], "big")])
    padded = data + bytes(64)
    while reader.need:
        for part in reader.need:
            reader.feed(part.start, padded[part.start : part.stop])
    stream = reader.segments().streams[7]
    assert (stream.reference - stream.reference[0]).tolist() == (offset - 10_000).tolist()
    assert stream.reference[0] == len(data) + 123
    assert np.array_equal(stream.time, time)
    assert np.array_equal(stream.access, time)


def test_one_frame_fragments_may_be_joined() -> None:
    index = fragdex.index(movie(40, samples=1, fps=10), exact=True)
    (joined,) = parse(sidx.write(index, segment_duration=1))
    assert joined["references"]["subsegment_duration"].tolist() == [10000] * 4


def test_pictures_shown_out_of_order_across_fragments_keep_times_in_order() -> None:
    index = fragdex.index(FIXTURES / "frag-every-frame.mp4", exact=True)
    (box,) = parse(sidx.write(index))
    sap = box["references"]
    assert sap["starts_with_SAP"].sum() == (index.track(1).fragments.first_sync == 0).sum()


def test_leading_pictures_make_an_open_access_point() -> None:
    index = fragdex.index(FIXTURES / "frag-hvc1.mp4", exact=True)
    (box,) = parse(sidx.write(index))
    rows = box["references"][["starts_with_SAP", "SAP_type", "SAP_delta_time"]].tolist()
    assert rows == [(1, 1, 0)] + [(1, 3, 1536)] * 4


def subsegment(**columns: int) -> Subsegments:
    given = {"offset": 0, "size": 10, "time": 0, "duration": 5, "access": 0, "starts": 1, "row": 0}
    return Subsegments(**{name: np.array([v]) for name, v in (given | columns).items()})


def test_what_does_not_fit_is_refused() -> None:
    for columns in ({"size": 1 << 31}, {"duration": 1 << 32}):
        with pytest.raises(BuildError):
            sidx.boxes(subsegment(**columns), 1, 1000)
    # An access point too far away for its field is left out.
    (box,) = sidx.boxes(subsegment(access=1 << 28, duration=1 << 29), 1, 1000)
    assert box["references"].tolist() == [(0, 10, 1 << 29, 0, 0, 0)]


def test_what_has_no_fragments_has_no_segment_index() -> None:
    with pytest.raises(BuildError, match="movie fragments"):
        sidx.write(fragdex.index(movie(fragmented=False)))
    with pytest.raises(InexactIndex, match="times"):
        sidx.write(fragdex.index(movie(moov=False)))
    two = fragdex.index(FIXTURES / "two-inits.mp4")
    with pytest.raises(BuildError, match="several periods"):
        sidx.write(two)
    with pytest.raises(BuildError, match="no such period"):
        sidx.write(two, period=9)
    assert sidx.write(two, period=1)


def test_a_row_without_a_sync_sample_has_no_access_point() -> None:
    """Of a table whose rows do not number their samples, as one that was made from a sidx."""
    names = [column.name for column in FragmentTable.schema()]
    rows = FragmentTable.of(dict.fromkeys(names, np.full(4, NULL)) | {
        "cts_min": np.array([0, 10, 20, 30]), "flags": np.zeros(4),
    })  # fmt: skip
    zero, one = np.zeros(2, np.int64), np.ones(2, np.int64)
    times = np.array([10, 33])
    sync = SyncTable(times, times, zero, one, np.full(2, NULL), zero, np.array([1, 3]))
    track = Track(TrackInfo.unknown(1), rows, sync, exact=False)
    numbers, access = first_access(track)
    assert numbers.tolist() == [-1, 0, -1, NULL]
    assert access.tolist() == [NULL, 10, NULL, 33]
