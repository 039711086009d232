"""The same moov again is the same movie; another moov is another period."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fragdex
from fragdex import Indexer
from fragdex.testing import made_movie, movie
from fragdex.testing.files import Brand, Chunks, make_file
from fragdex.testing.tracks import NON_SYNC, SYNC, Moov, Sample, Track


def parts_of(film):
    """Bytes of the initialization segment, and of each fragment."""
    pieces = [film.data[start:stop] for start, stop in film.spans]
    return b"".join(pieces[:2]), pieces[2:]


def of_media(data, track):
    """What a sample is, whatever stands between the fragments: its bytes and times."""
    samples = track.samples
    return [
        (data[offset : offset + size], dts, cts, duration, sync)
        for offset, size, dts, cts, duration, sync in zip(
            *(samples.columns()[name].tolist() for name in samples.columns()), strict=True
        )
    ]


def repeats(index):
    return sum(f.count for f in index.findings if f.code == "repeated-moov")


def same_movie(data, plain):
    """One movie with the samples of `plain`, however it is read."""
    first = Indexer()
    for at in range(0, len(data), 50):
        first.feed(data[at : at + 50])
    for index in (fragdex.index(data, exact=True), fragdex.index(data), first.finish()):
        assert len(index.periods) == 1
        assert repeats(index)
        assert (index.exact, index.complete) == (True, True)
        wanted = fragdex.index(plain, exact=True)
        assert [t.id for t in index.tracks] == [t.id for t in wanted.tracks]
        for track, other in zip(index.tracks, wanted.tracks, strict=True):
            assert of_media(data, track) == of_media(plain, other)
            assert track.period == 0
            assert track.fragments.sample_start.tolist() == other.fragments.sample_start.tolist()
            assert track.stop == other.stop
    return index


@settings(max_examples=10)
@given(st.integers(1, 6), st.integers(1, 2), st.booleans(), st.data())
def test_an_init_segment_before_any_fragment_changes_nothing(fragments, tracks, sidx, draw):
    plain = made_movie(fragments, tracks=tracks, sidx=sidx)
    init, media = parts_of(plain)
    again = draw.draw(st.lists(st.booleans(), min_size=len(media), max_size=len(media)))
    again[-1] = True
    data = init + b"".join(init * more + part for more, part in zip(again, media, strict=True))
    if sidx:
        # What it counts from has moved: an index that is not believed.
        data = data.replace(b"sidx", b"free", 1)
    index = same_movie(data, plain.data)
    assert repeats(index) == sum(again)
    assert index.periods[0].init[0].stop <= len(init)


def test_segments_with_a_sidx_each_are_one_movie():
    parts = [made_movie(n, sidx=True) for n in (4, 6)]
    init, (_sidx, *_) = parts_of(parts[0])
    _, (_, *later) = parts_of(parts[1])
    data = parts[0].data + init + b"".join(later[4:])
    same_movie(data, movie(6))


def test_a_moov_that_differs_in_what_decodes_nothing_is_the_same():
    plain = made_movie(3)
    init, media = parts_of(plain)
    at = init.index(b"mvhd") + 8
    other = init[:at] + b"\x01\x02\x03\x04" + init[at + 4 :]
    same_movie(init + media[0] + other + media[1] + init + media[2], plain.data)


@pytest.mark.parametrize("tracks", [1, 2])
def test_a_moov_twice_counts_its_samples_once(tracks):
    plain = movie(3, tracks=tracks, fragmented=False)
    at = plain.index(b"moov") - 4
    moov = plain[at : at + int.from_bytes(plain[at : at + 4], "big")]
    same_movie(plain + moov, plain)


def later_moov():
    """A file whose moov stands behind its samples, and the moov of its first chunk alone."""
    chunks = tuple(
        tuple(Sample(40 + n, 10, NON_SYNC if n else SYNC) for n in range(4)) for _ in range(3)
    )
    track = Track(1, chunks=chunks)
    order = tuple((1, n) for n in range(3))
    film = make_file(Brand(("isom",)), Chunks(order), Moov((track,), fragmented=False))
    first = Track(1, chunks=chunks[:1])
    return film, Moov((first,), fragmented=False).data({1: [film.spans[1][0] + 8]})


def test_a_preliminary_moov_gives_way_to_the_final_one():
    film, early = later_moov()
    at = film.spans[2][0]
    data = film.data[:at] + early + film.data[at:]
    index = same_movie(data, film.data)
    assert index.periods[0].init[-1].start == at + len(early)
    # A moov that knows less may stand behind, too.
    assert same_movie(film.data + early, film.data).periods[0].init[-1].start == at


def test_a_final_moov_that_names_the_samples_of_the_fragments():
    plain = made_movie(3)
    samples = fragdex.index(plain.data, exact=True).track(1)
    named = [
        Sample(s.size, s.duration, SYNC if s.sync else NON_SYNC) for s in plain.truth.samples[1]
    ]
    chunks = tuple(tuple(named[at : at + 5]) for at in (0, 5, 10))
    track = Track(1, "video", 25000, chunks=chunks)
    places = samples.fragments.data_start.tolist()
    moov = Moov((track,), fragmented=False).data({1: places})
    same_movie(plain.data + moov, plain.data)


def test_times_that_begin_anew_are_another_period():
    data = movie(2)
    index = fragdex.index(data + data)
    assert [len(t.fragments) for t in index.tracks] == [2, 2]
    assert len(index.periods) == 2
    assert not repeats(index)


def test_other_defaults_are_another_period():
    plain = made_movie(2)
    init, media = parts_of(plain)
    at = init.index(b"trex") + 16
    other = init[:at] + (9).to_bytes(4, "big") + init[at + 4 :]
    assert len(fragdex.index(init + media[0] + other + media[1]).periods) == 2
