"""A recording that is written while it is watched: `extend`, told as its users meet it."""

from itertools import pairwise

import pytest

import fragdex
from fragdex.boxes.fragments import DATA_OFFSET, SAMPLE_DURATION, SAMPLE_SIZE
from fragdex.errors import FormatError, SourceChanged
from fragdex.fragments.table import FragmentFlags
from fragdex.sources import open_source
from fragdex.testing import made_movie, movie
from fragdex.testing.files import Brand, Chunks, make_file
from fragdex.testing.fragments import Fragment
from fragdex.testing.tracks import Moov, Run, Sample, Track, Traf
from laws import brute


def ends(film):
    return [fragment.stop for fragment in film.truth.fragments]


def test_only_the_last_fragment_and_what_came_is_read():
    film = made_movie(200)
    before = fragdex.index(film.data[: ends(film)[-2]])
    with open_source(film.data) as source:
        after = before.extend(source)
        # Still the caller's own.
        assert source.read_up_to(fragdex.ByteRange(4, 8)) == b"ftyp"
    assert after.how.bytes_read < 3 * (ends(film)[-1] - ends(film)[-2])
    brute.same(after, fragdex.index(film.data))


def test_a_recording_may_grow_all_day():
    film = made_movie(1200, samples=1)
    index = fragdex.index(film.data[: ends(film)[0]])
    for stop in ends(film)[1:]:
        index = index.extend(film.data[:stop])
    brute.same(index, fragdex.index(film.data))


def test_runs_of_sync_samples_are_cut_and_joined_again():
    film = made_movie(8, tracks=2)
    for one, two in pairwise(ends(film)[2:]):
        before = fragdex.index(film.data[:one])
        assert len(before.track(2).sync_samples) == 1  # one run, over every fragment
        after = before.extend(film.data[:two])
        assert after.track(2).sync_samples == fragdex.index(film.data[:two]).track(2).sync_samples


@pytest.mark.parametrize("fragmented", [True, False])
def test_digests_grow_with_the_file(fragmented):
    """Only what has come is read for them: they are those of the whole file all the same."""
    data = movie(fragments=6, samples=5, fragmented=fragmented)
    whole = fragdex.index(data, digests=True)
    for stop in (len(data) // 2, len(data) - 3):
        try:
            grown = fragdex.index(data[:stop], digests=True).extend(data)
        except FormatError:
            continue  # too little of it
        assert grown.digests == whole.digests


def test_a_file_that_shrank_is_another_one():
    film = made_movie(5)
    with pytest.raises(SourceChanged):
        fragdex.index(film.data).extend(film.data[:1000])


def test_a_file_that_did_not_grow_keeps_its_index():
    film = made_movie(5)
    index = fragdex.index(film.data)
    assert index.extend(film.data) is index


def test_a_fragment_kept_in_part_is_not_kept_twice():
    film = made_movie(5)
    before = fragdex.index(film.data[: ends(film)[3] - 1], partial=True)
    assert len(before.track(1).fragments) == 4
    brute.same(before.extend(film.data), fragdex.index(film.data))


def test_a_saved_index_goes_on(tmp_path):
    film = made_movie(6, tracks=2)
    fragdex.index(film.data[: ends(film)[3]]).save(tmp_path / "movie.fidx")
    opened = fragdex.open_index(tmp_path / "movie.fidx")
    after, whole = opened.extend(film.data), fragdex.index(film.data)
    for mine, theirs in zip(after.tracks, whole.tracks, strict=True):
        assert mine.fragments == theirs.fragments
        assert brute.sync_samples(mine.sync_samples) == brute.sync_samples(theirs.sync_samples)


def test_a_segment_keeps_the_defaults_of_its_init():
    film = make_file(
        Moov((Track(1, trex=(40, 7, 0)),)),
        *(
            Fragment((Traf(1, (Run((Sample(),) * 3, DATA_OFFSET),), tfdt=120 * n),))
            for n in range(4)
        ),
    )
    start = film.spans[0][1]
    init, segment = film.data[:start], film.data[start:]
    for cut in (ends(film)[0] - start, ends(film)[2] - start):
        before = fragdex.index(segment[:cut], init=init)
        after = before.extend(segment)
        brute.same(after, fragdex.index(segment, init=init))
        assert set(after.track(1).samples.size.tolist()) == {7}


def test_a_hybrid_file_cut_in_its_first_mdat_forgets_the_cut():
    flags = DATA_OFFSET | SAMPLE_SIZE | SAMPLE_DURATION
    samples = (Sample(50, 10),) * 4
    film = make_file(
        Brand(),
        Moov((Track(1, timescale=10, chunks=(samples, samples)),)),
        Chunks(((1, 0), (1, 1))),
        Fragment((Traf(1, (Run(samples, flags),), tfdt=80),)),
    )
    mdat = film.spans[2]
    before = fragdex.index(film.data[: mdat[0] + 70])
    assert "data-outside" in {finding.code for finding in before.findings}
    after = before.extend(film.data)
    assert after.findings == ()
    assert not (after.track(1).fragments.flags & FragmentFlags.OUTSIDE).any()
    brute.same(after, fragdex.index(film.data))


def test_an_index_from_a_sidx_follows_the_file():
    film = made_movie(6, sidx=True)
    before = fragdex.index(film.data[: ends(film)[2]])
    assert before.how.exact  # the sidx promises more than there is
    whole = fragdex.index(film.data)
    assert not whole.how.exact
    assert before.extend(film.data).how.exact
    longer = film.data + made_movie(2, moov=False).data
    assert len(whole.extend(longer).track(1).fragments) == 8
