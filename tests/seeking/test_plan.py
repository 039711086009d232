"""What a span of time and a seek read: the fragments that they need, and no other."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import fragdex
from fragdex import ByteRange
from fragdex.byterange import coalesce
from fragdex.errors import NoSyncSample
from fragdex.fragments.table import NULL, FragmentTable, SyncTable
from fragdex.seeking import plan
from fragdex.seeking.plan import MOST_COUNTED, Span
from fragdex.testing import movie

DATA = movie(fragments=6, samples=5, fps=25)  # fragments of 0.2 s
TICK = Fraction(1, 25_000)


def bytes_of(track, first, last):
    rows = track.fragments
    return (ByteRange(int(rows.offset[first]), int(rows.offset[last] + rows.size[last])),)


@pytest.mark.parametrize(
    ("start", "stop", "first", "last"),
    [
        ("0.25", "0.65", 1, 3),
        ("0.2", "0.6", 1, 2),
        ("0.2", Fraction(3, 5) + TICK, 1, 3),
        (Fraction(1, 5) - TICK, "0.6", 0, 2),
        ("0.3", "0.3", 1, 1),
        ("0.2", "0.2", 1, 1),
        ("-1", "0", 0, 0),
        ("5", "6", 5, 5),
        ("0", 10**9, 0, 5),
    ],
)
def test_a_span_is_the_fragments_that_play_it(start, stop, first, last):
    index = fragdex.index(DATA)
    assert index.span(start, stop).media == bytes_of(index.track(1), first, last)


@pytest.mark.parametrize(
    ("time", "row", "samples"),
    [
        ("0", 0, 1),
        ("0.04", 0, 2),
        ("0.199", 0, 5),
        ("0.2", 1, 1),
        ("0.25", 1, 2),
        ("9", 5, 5),
        ("-1", 0, 1),
    ],
)
def test_a_seek_reads_its_fragment_and_decodes_up_to_the_picture_on_show(time, row, samples):
    index = fragdex.index(DATA)
    plan = index.plan(time)
    assert plan.reads == bytes_of(index.track(1), row, row)
    assert plan.samples == {1: samples}
    assert (plan.requests, plan.bytes) == (1, plan.reads[0].size)
    assert plan.init == index.periods[0].init


def test_a_seek_reads_on_from_the_sync_sample_to_the_fragment_of_the_time():
    index = fragdex.index(DATA)
    track = index.track(1)
    track.sync_samples = SyncTable.of(
        {key: column[:1] for key, column in track.sync_samples.columns().items()}
    )
    one = {key: column.copy() for key, column in track.sync_samples.columns().items()}
    one["count"][:], one["step"][:] = 1, 0
    track.sync_samples = SyncTable.of(one)
    plan = index.plan("0.45")
    assert plan.reads == bytes_of(track, 0, 2)
    assert plan.samples == {1: 12}
    assert "3 fragments to read, 12 samples to decode" in plan.why[0]


def test_a_fragment_without_a_time_is_not_taken_for_an_early_one():
    index = fragdex.index(DATA)
    track = index.track(1)
    columns = {key: column.copy() for key, column in track.fragments.columns().items()}
    columns["cts_min"][5] = NULL
    track.fragments = FragmentTable.of(columns)
    assert index.plan("0.25").reads == bytes_of(track, 1, 1)


def test_a_fragment_without_samples_is_not_fetched():
    index = fragdex.index(DATA)
    track = index.track(1)
    columns = {key: column.copy() for key, column in track.fragments.columns().items()}
    columns["sample_count"][2] = 0
    track.fragments = FragmentTable.of(columns)
    media = index.span("0.2", "0.8").media
    assert media == (*bytes_of(track, 1, 1), *bytes_of(track, 3, 3))


def test_a_plan_says_why():
    index = fragdex.index(DATA)
    assert index.plan("0.2").why == (
        "track 1: sync sample at 0.200 s in fragment 1; 1 fragment to read, 1 sample to decode",
    )
    assert index.plan("0.25").why[0].endswith("; 1 fragment to read, 2 samples to decode")
    assert index.plan(-1).why[0].endswith(" to decode (the time is outside the track)")


def test_an_index_of_fragments_alone_does_not_say_how_many_samples_are_decoded():
    index = fragdex.open_index(fragdex.index(DATA).export("fidx"))
    plan = index.plan("0.25")
    assert plan.samples == {1: None}
    assert plan.why == ("track 1: sync sample at 0.200 s in fragment 1; 1 fragment to read",)


def test_a_claim_of_millions_of_samples_is_not_counted():
    index = fragdex.index(DATA)
    track = index.track(1)
    columns = {key: column.copy() for key, column in track.fragments.columns().items()}
    columns["sample_count"][1] = MOST_COUNTED + 1
    track.fragments = FragmentTable.of(columns)
    assert index.plan("0.25").samples == {1: None}
    assert index.plan("0").samples == {1: 1}


def test_a_track_without_a_sync_sample_is_left_out_of_a_plan_and_spoils_a_span():
    index = fragdex.index(movie(tracks=2))
    index.track(2).sync_samples = SyncTable.empty()
    plan = index.plan(0, tracks=[2, 1])
    assert [hit.track for hit in plan.hits] == [1]
    assert plan.samples.keys() == {1}
    with pytest.raises(NoSyncSample):
        index.span(0, 1, tracks=[1, 2])


def test_bytes_of_several_tracks_are_merged():
    index = fragdex.index(movie(tracks=2, fragments=4))
    ranges = index.span(0, 1)
    assert ranges.media == (ByteRange(ranges.media[0].start, ranges.media[-1].stop),)
    assert ranges.size == sum(part.size for part in ranges.media) > 0
    apart = index.span(0, 10, tracks=[1])
    assert np.all(np.diff([part.start for part in apart.media]) > 0)


@pytest.mark.parametrize("count", [0, 1, 2, plan.FEW, plan.FEW + 1, 500])
@pytest.mark.parametrize("max_gap", [0, 1, 5])
def test_ranges_as_columns_are_merged_as_ranges_are(count, max_gap):
    random = np.random.default_rng(count)
    start = random.integers(0, 6 * count + 1, count)
    stop = start + random.integers(0, 9, count)
    columns = plan._Ranges.merged([start[::2], start[1::2]], [stop[::2], stop[1::2]], max_gap)
    merged = tuple(map(ByteRange, columns.start.tolist(), columns.stop.tolist()))
    assert merged == coalesce(map(ByteRange, start.tolist(), stop.tolist()), max_gap)
    assert Span._of_columns(columns, init=()).size == sum(part.size for part in merged)
    assert Span._of_columns(columns, init=()).media == merged
