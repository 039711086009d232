"""What `strict`, `partial` and `init` change, told as their users meet them."""

import pytest

import fragdex
from fragdex.boxes.fragments import BASE_DATA_OFFSET, DATA_OFFSET, SAMPLE_SIZE
from fragdex.errors import MalformedBox, NotISOBMFF
from fragdex.fragments.table import FragmentFlags
from fragdex.testing import made_movie, movie
from fragdex.testing.files import make_file
from fragdex.testing.fragments import Fragment
from fragdex.testing.tracks import Moov, Run, Sample, Track, Traf


def test_strict_keeps_the_positions_of_the_rule():
    run = Run((Sample(30),), DATA_OFFSET | SAMPLE_SIZE)
    traf = Traf(1, (run,), BASE_DATA_OFFSET, tfdt=0, stale=10_000)
    film = make_file(Moov((Track(1),)), Fragment((traf,)))
    (true,) = film.truth.samples[1]
    mended = fragdex.index(film.data, exact=True).track(1)
    assert mended.samples.offset.tolist() == [true.offset]
    flags = FragmentFlags(int(mended.fragments.flags[0]))
    assert flags == FragmentFlags.REPAIRED | FragmentFlags.DECLARED_BASE
    strict = fragdex.index(film.data, exact=True, strict=True)
    assert strict.track(1).samples.offset.tolist() == [true.offset + 10_000]
    assert [finding.code for finding in strict.findings] == ["data-outside"]


def test_strict_raises_at_the_first_damage():
    data = movie(3)
    at = data.rindex(b"trun") + 8
    damaged = data[:at] + b"\xff" * 4 + data[at + 4 :]
    index = fragdex.index(damaged)
    assert [finding.code for finding in index.findings] == ["damaged-fragment"]
    assert len(index.track(1).fragments) == 2
    with pytest.raises(MalformedBox) as caught:
        fragdex.index(damaged, strict=True)
    assert caught.value.path == "moof/traf/trun"


def test_partial_keeps_a_fragment_whose_media_is_not_whole():
    film = made_movie(3)
    stops = [fragment.stop for fragment in film.truth.fragments]
    cut = film.data[: stops[2] - 1]
    whole, partial = fragdex.index(cut), fragdex.index(cut, partial=True)
    assert [len(index.track(1).fragments) for index in (whole, partial)] == [2, 3]
    for index in (whole, partial):
        assert not index.complete
        assert index.resume_offset == film.truth.fragments[2].start


def test_init_says_what_a_segment_does_not():
    film = made_movie(3)
    start = film.truth.fragments[0].start
    init, segment = film.data[:start], film.data[start:]
    alone, known = fragdex.index(segment), fragdex.index(segment, init=init)
    assert (alone.track(1).timescale, alone.track(1).codec) == (0, None)
    assert known.track(1).timescale == 25000
    assert known.track(1).codec == fragdex.index(film.data).track(1).codec
    assert known.track(1).fragments == alone.track(1).fragments
    # The moov is not in this file.
    assert known.periods[0].init == ()


def test_an_init_without_a_moov_is_refused():
    with pytest.raises(NotISOBMFF, match="no moov"):
        fragdex.index(movie(2), init=movie(1, moov=False))
