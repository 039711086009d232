"""Files beside each other as one file: every sample once, at its time."""

import hashlib
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fragdex
from fragdex.byterange import ByteRange
from fragdex.errors import NoSyncSample, TrackNotFound
from fragdex.muxing.mixed_files import clip_of_several, muxed
from fragdex.testing import check_bmff

FIXTURES = Path(__file__).parents[2] / "fixtures"
VIDEO = (FIXTURES / "frag-global-sidx-video.mp4").read_bytes()
AUDIO = (FIXTURES / "aac.m4a").read_bytes()
INDEXES = fragdex.index(VIDEO, exact=True), fragdex.index(AUDIO, exact=True)


def digests(data, track):
    """(presentation time in seconds, md5) of each sample of a track."""
    samples, shift = track.samples, track.shift
    return [
        (Fraction(int(cts) + shift, track.timescale), hashlib.md5(data[o : o + s]).digest())
        for cts, o, s in zip(
            samples.cts.tolist(), samples.offset.tolist(), samples.size.tolist(), strict=True
        )
    ]


def test_each_sample_of_each_file_is_there_once_at_its_time():
    one = muxed(INDEXES, source=[VIDEO, AUDIO]).read(source=[VIDEO, AUDIO])
    joined = fragdex.index(one, exact=True)
    assert [track.kind for track in joined.tracks] == ["video", "audio"]
    for track, (data, index) in zip(
        joined.tracks, zip((VIDEO, AUDIO), INDEXES, strict=True), strict=True
    ):
        assert digests(one, track) == digests(data, index.tracks[0])


def test_two_tracks_of_one_id_get_two():
    data = muxed([INDEXES[0]] * 2, source=[VIDEO, VIDEO]).read(source=[VIDEO, VIDEO])
    index = fragdex.index(data, exact=True)
    assert [track.id for track in index.tracks] == [1, 2]
    assert digests(data, index.track(1)) == digests(data, index.track(2))


@settings(max_examples=25)
@given(st.floats(0, 1.9), st.floats(0.05, 2))
def test_a_stretch_shows_what_the_files_show_then(start, length):
    stop = min(start + length, 1.99)
    if not start < stop:
        return
    view = muxed(INDEXES, source=[VIDEO, AUDIO], start=start, stop=stop)
    part = view.read(source=[VIDEO, AUDIO])
    assert len(part) == view.size
    joined = fragdex.index(part, exact=True)
    files = {"video": (VIDEO, INDEXES[0]), "audio": (AUDIO, INDEXES[1])}
    for track in joined.tracks:
        data, index = files[track.kind]
        own = index.tracks[0]
        begin = Fraction(int(Fraction(start) * own.timescale // 1), own.timescale)
        whole = {(time - begin, md5) for time, md5 in digests(data, own)}
        seen = digests(part, track)
        assert set(seen) <= whole
        # all that is shown in the stretch is there
        assert {one for one in whole if 0 <= one[0] < Fraction(stop) - begin} <= set(seen)


@given(st.integers(0, 60_000), st.integers(0, 60_000))
def test_any_range_is_that_of_the_whole(first, second):
    view = muxed(INDEXES, source=[VIDEO, AUDIO], start=0.5)
    low, high = sorted((first, second))
    whole = view.read(source=[VIDEO, AUDIO])
    assert view.read(ByteRange(low, high), source=[VIDEO, AUDIO]) == whole[low:high]


def test_a_stretch_without_samples_says_so():
    with pytest.raises(NoSyncSample, match="from 100 to 101"):
        muxed(INDEXES, source=[VIDEO, AUDIO], start=100, stop=101)
    with pytest.raises(ValueError, match="end after it starts"):
        muxed(INDEXES, source=[VIDEO, AUDIO], start=2, stop=1)


@settings(max_examples=8)
@given(st.sampled_from(["faststart.mp4", "frag-cmaf.mp4", "open-gop.mp4"]), st.floats(0, 1.2))
def test_a_clip_of_tracks_that_are_files_is_that_of_the_file_with_all(name, start):
    data = (FIXTURES / name).read_bytes()
    index = fragdex.index(data, exact=True)
    stop = start + 0.43
    parts = [
        fragdex.view(index, "tracks", source=data, tracks=[track.id]).read(source=data)
        for track in index.tracks
    ]
    indexes = [fragdex.index(part, exact=True) for part in parts]
    view = clip_of_several(indexes, source=parts, start=start, stop=stop)
    several = view.read(source=parts)
    assert len(several) == view.size
    whole = fragdex.clip(index, source=data, start=start, stop=stop).read(source=data)
    assert check_bmff(several) == []
    one, other = fragdex.index(several, exact=True), fragdex.index(whole, exact=True)
    assert one.duration == other.duration
    for mine, theirs in zip(one.tracks, other.tracks, strict=True):
        assert digests(several, mine) == digests(whole, theirs)
        assert mine.info.edits == theirs.info.edits
    last = one.tracks[-1]
    only = clip_of_several(indexes, source=parts, start=start, stop=stop, tracks=[last.id])
    assert [t.kind for t in fragdex.index(only.read(source=parts)).tracks] == [last.kind]
    inexact = clip_of_several(indexes, source=parts, start=start, stop=stop, exact=False)
    assert b"moof" in inexact.read(source=parts)
    with pytest.raises(TrackNotFound, match="no track 9"):
        clip_of_several(indexes, source=parts, tracks=[9], exact=False)
