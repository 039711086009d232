"""Progressive files with odd tables: the virtual fragments hold what the samples say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.fragments.table import NULL, FragmentFlags
from fragdex.indexing import progressive
from fragdex.testing.files import Brand, Chunks, make_file
from fragdex.testing.tracks import NON_SYNC, SYNC, Moov, Sample, Track


def made(track, order=None):
    chunks = order or list(range(len(track.chunks)))
    moov = Moov((track,), fragmented=False)
    return make_file(Brand(("isom",)), moov, Chunks(tuple((1, n) for n in chunks)))


def holds(track):
    """Each fragment's row says what its samples say, one by one."""
    rows = track.fragments
    for n in range(len(rows)):
        part = track.samples_of(n, n + 1)
        assert len(part) == rows.sample_count[n]
        assert rows.data_start[n] <= part.offset.min()
        assert rows.data_stop[n] >= (part.offset + part.size).max()
        assert rows.dts[n] == part.dts[0]
        assert rows.duration[n] == part.duration.sum()
        assert rows.cts_min[n] <= part.cts.min()
        assert rows.cts_end[n] >= (part.cts + part.duration).max()
        assert rows.flags[n] & FragmentFlags.VIRTUAL
    assert (rows.moof_offset == NULL).all()


def sounds(count, size=4, duration=100):
    return tuple(Sample(size, duration) for _ in range(count))


def test_samples_before_the_first_key_frame_are_a_fragment_of_their_own():
    pictures = tuple(Sample(9, 40, SYNC if n in (3, 7) else NON_SYNC) for n in range(10))
    track = fragdex.index(made(Track(chunks=(pictures[:4], pictures[4:]))).data).track(1)
    assert track.fragments.sample_start.tolist() == [0, 3, 7]
    assert track.fragments.first_sync.tolist() == [-1, 0, 0]
    assert track.seek(0).clamped
    assert track.seek(0).sample == 3
    holds(track)


def test_without_any_key_frame_there_is_one_fragment_and_no_seek():
    pictures = tuple(Sample(9, 40, NON_SYNC) for _ in range(10))
    track = fragdex.index(made(Track(chunks=(pictures,))).data).track(1)
    assert track.fragments.sample_count.tolist() == [10]
    with pytest.raises(fragdex.FragdexError):
        track.seek(0)


def test_chunks_out_of_order():
    pictures = [tuple(Sample(9, 40, NON_SYNC if n else SYNC) for n in range(6)) for _ in range(4)]
    track = fragdex.index(made(Track(chunks=tuple(pictures)), [2, 0, 3, 1]).data).track(1)
    holds(track)
    assert (np.diff(track.fragments.offset) < 0).any()


def test_uneven_sound_is_parted_by_the_second():
    chunks = (sounds(7, duration=300), sounds(9, duration=450), sounds(3, duration=1700))
    track = fragdex.index(made(Track(1, "audio", 1000, chunks=chunks, stss=False)).data).track(1)
    holds(track)
    assert (track.fragments.duration[:-1] >= 1000).all()
    assert track.sync_samples.count.sum() == 19
    for time in (0.0, 2.2, 5.0):
        hit = track.seek(time)
        assert hit.cts == track.samples.cts[track.samples.cts <= time * 1000].max()


def test_without_a_timescale_sound_is_one_fragment():
    track = fragdex.index(made(Track(1, "audio", 0, chunks=(sounds(40),), stss=False)).data).track(
        1
    )
    assert track.fragments.sample_count.tolist() == [40]


@st.composite
def even_tracks(draw):
    """A track of samples of one size, and the order of its chunks in the file."""
    rows = draw(
        st.lists(
            st.builds(
                Sample,
                st.just(4),
                st.sampled_from([0, 1, 40, 300, 2500]),
                st.sampled_from([SYNC, NON_SYNC]),
                st.sampled_from([0, 0, 5, 90, -3000]),
            ),
            min_size=1,
            max_size=40,
        )
    )
    each = draw(st.integers(1, 9))
    chunks = tuple(tuple(rows[n : n + each]) for n in range(0, len(rows), each))
    order = draw(st.permutations(range(len(chunks))))
    ctts, stss = draw(st.sampled_from([None, 1])), draw(st.booleans())
    timescale = draw(st.sampled_from([0, 1, 1000]))
    return Track(1, "audio", timescale, chunks=chunks, ctts=ctts, stss=stss), order


@given(even_tracks())
def test_samples_of_one_size_are_read_by_runs_as_if_each_had_its_own(drawn):
    """PCM has millions of samples of a few bytes; what stands for them is a few runs."""
    track, order = drawn
    one = fragdex.index(made(replace(track, sizes="constant"), order).data).track(1)
    each = fragdex.index(made(track, order).data).track(1)
    holds(one)
    shifted = {"offset", "data_start", "data_stop"}  # the tables of one moov are shorter
    for name, column in one.fragments.columns().items():
        same = column - column[0] if name in shifted else column
        other = getattr(each.fragments, name)
        assert same.tolist() == (other - other[0] if name in shifted else other).tolist(), name
    assert one.sync_samples == each.sync_samples
    for name, column in one.samples.columns().items():
        if name != "offset":
            assert column.tolist() == getattr(each.samples, name).tolist()


@pytest.mark.parametrize("numbers", [(1,), (1, 2)])
def test_fragments_that_no_bytes_stand_for_are_bounded(monkeypatch, numbers):
    """One size for all samples and one duration: a few bytes claim any number of seconds."""
    monkeypatch.setattr(progressive, "MAX_VIRTUAL_FRAGMENTS", 60)
    most = 60 // len(numbers)
    for durations in ((1000, 1000), (1000, 1500)):
        chunks = tuple(sounds(100, duration=one) for one in durations)
        tracks = [
            Track(n, "audio", 1000, chunks=chunks, stss=False, sizes="constant") for n in numbers
        ]
        order = tuple((n, chunk) for n in numbers for chunk in (0, 1))
        moov = Moov(tuple(tracks), fragmented=False)
        index = fragdex.index(make_file(Brand(("isom",)), moov, Chunks(order)).data)
        for track in index.tracks:
            assert most // 2 < len(track.fragments) <= most
            holds(track)


def test_a_cut_file_says_which_fragments_are_outside():
    pictures = tuple(Sample(100, 40, NON_SYNC if n % 5 else SYNC) for n in range(20))
    data = made(Track(chunks=(pictures,))).data
    track = fragdex.index(data[:-450]).track(1)
    outside = (track.fragments.flags & FragmentFlags.OUTSIDE) != 0
    assert outside.tolist() == [False, False, False, True]


def test_chunks_that_stsc_says_nothing_of_are_told():
    data = made(Track(chunks=(sounds(3), sounds(3), sounds(2)))).data
    at = data.index(b"stsc") + 12
    assert data[at : at + 4] == b"\0\0\0\1"
    late = fragdex.index(data[:at] + b"\0\0\0\2" + data[at + 4 :])
    assert [finding.code for finding in late.findings][:1] == ["stsc-late"]
    assert late.findings[0].track == 1
    assert not fragdex.index(data).findings
