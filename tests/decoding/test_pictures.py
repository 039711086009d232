"""Any picture says itself whether it is the right one: its number is burnt in as bars."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

import fragdex
from decoding.filming import number_in, numbered, with_several_sets
from fragdex.decoding.pictures import KeyFrameReader, PictureReader
from fragdex.errors import TrackNotFound, UndecodableMedia
from fragdex.formats.fidx import open_index
from fragdex.sources import open_source

FIXTURES = Path(__file__).parents[2] / "fixtures"
RATES = [Fraction(30), Fraction(60), Fraction(30000, 1001)]


def number_of(picture):
    return number_in(picture.frame.to_ndarray(format="gray"))


@pytest.mark.parametrize("fragmented", [True, False])
@pytest.mark.parametrize("fps", RATES)
def test_each_instant_shows_its_picture(fps, fragmented):
    film = numbered(150, fps, fragmented=fragmented)
    with PictureReader(fragdex.index(film), film) as reader:
        in_order = [number_of(reader.at(Fraction(n) / fps)) for n in range(150)]
        assert in_order == list(range(150))
        for n in np.random.default_rng(4).integers(0, 150, 25).tolist():
            almost_over = Fraction(n + 1) / fps - Fraction(1, 100_000)
            picture = reader.at(almost_over)
            assert (number_of(picture), picture.time) == (n, reader.time_at(almost_over))


def test_parameter_sets_of_later_samples_are_not_used_for_earlier_ones():
    film = with_several_sets()
    index = fragdex.index(film)
    with PictureReader(index, film) as reader:
        for n in (3, 13, 5, 25, 16, 22, 0, 19, 29, 9):
            assert number_of(reader.at(Fraction(n, 25))) == n
    with KeyFrameReader(index, film) as reader:
        numbers = [number_of(reader.near(seconds)) for seconds in (0.8, 0.4, 0, 0.4, 0.8)]
        assert numbers == [20, 10, 0, 10, 20]


def test_before_the_first_and_after_the_last_picture_stand_these():
    film = numbered(40, Fraction(30))
    with PictureReader(fragdex.index(film), film) as reader:
        assert [number_of(reader.at(at)) for at in (-1, 0, 1.32, 99, 0.5)] == [0, 0, 39, 39, 15]


@pytest.mark.parametrize("with_samples", [True, False])
def test_a_picture_an_hour_into_a_film_costs_one_read(tmp_path, with_samples):
    film = numbered(7240, Fraction(2), keys=8, size=(64, 32))
    fragdex.index(film, exact=True).save(tmp_path / "film.fidx", samples=with_samples)
    index = open_index(tmp_path / "film.fidx")
    source = open_source(film)
    with PictureReader(index, source) as reader:
        opened, before = source.requests, source.bytes_read
        assert number_of(reader.at(3600)) == 7200
        assert source.requests == opened + 1
        assert source.bytes_read - before < len(film) / 100
        # the rest of that fragment is at hand; each further one is one read more
        assert [number_of(reader.at(3600 + n / 2)) for n in range(4)] == [7200, 7201, 7202, 7203]
        assert source.requests == opened + 1
        later = [number_of(reader.at(3600 + n / 2)) for n in range(4, 32)]
        assert later == list(range(7204, 7232))
        assert source.requests <= opened + 1 + 4


def test_pictures_in_order_are_read_once():
    film = numbered(150, Fraction(30), keys=10)
    source = open_source(film)
    index = fragdex.index(source)
    with PictureReader(index, source) as reader:
        opened = source.requests
        for n in range(150):
            reader.at(Fraction(n, 30))
        assert source.requests - opened == len(index.track(1).fragments)


def test_edit_lists_move_the_pictures():
    film = FIXTURES / "frag-start-7s.mp4"
    index = fragdex.index(film)
    track = next(track for track in index.tracks if track.kind == "video")
    with PictureReader(index, film) as reader:
        shown = [
            reader.at(track.presentation(cts).fraction).time for cts in sorted(track.samples.cts)
        ]
    assert shown[0] == track.start.fraction
    assert shown == sorted({track.presentation(cts).fraction for cts in track.samples.cts})


ODD = {
    "cut-faststart.mp4": "cut off before the samples",
    "cut-in-moof.mp4": "the moof that is not whole is not a fragment here",
    "frag-global-sidx-stale-base.mp4": "its sidx is wrong on purpose",
    "two-inits.mp4": "two periods, each with times of its own",
    "encrypted.mp4": "encrypted",
    "frag-encrypted.mp4": "encrypted",
    "frag-every-frame.mp4": "declares two pictures for one time",
}


@pytest.mark.parametrize(
    "name",
    sorted(
        path.name
        for path in FIXTURES.iterdir()
        if path.suffix in (".mp4", ".mov", ".m4v") and path.name not in ODD
    ),
)
def test_pictures_are_those_that_the_demuxer_of_ffmpeg_finds(name):
    path = FIXTURES / name
    try:
        index = fragdex.index(path, exact=True)
        reader = PictureReader(index, path)
    except fragdex.FragdexError as error:
        pytest.skip(f"no pictures: {error}")
    with reader, av.open(str(path), options={"ignore_editlist": "1"}) as container:
        wanted = [s for s in container.streams.video if s.id == reader.track.id]
        stream = (wanted or container.streams.video)[0]
        expected = [frame.to_ndarray(format="gray") for frame in container.decode(stream)]
        times = [
            reader.track.presentation(cts).fraction for cts in sorted(reader.track.samples.cts)
        ]
        times = times[: len(expected)]
        pictures = [reader.at(time) for time in times]
        assert [picture.time for picture in pictures] == times
        for picture, luma in zip(pictures, expected, strict=False):
            assert np.array_equal(picture.frame.to_ndarray(format="gray"), luma)


def test_what_cannot_be_shown_says_so():
    with pytest.raises(UndecodableMedia, match="encrypted"):
        PictureReader(fragdex.index(FIXTURES / "encrypted.mp4"), FIXTURES / "encrypted.mp4")
    with pytest.raises(TrackNotFound):
        PictureReader(fragdex.index(FIXTURES / "aac.m4a"), FIXTURES / "aac.m4a")


def test_a_damaged_picture_leaves_the_one_before():
    film = bytearray(numbered(30, Fraction(30), bframes=0, keys=30))
    index = fragdex.index(bytes(film), exact=True)
    samples = index.track(1).samples
    at, size = int(samples.offset[20]), int(samples.size[20])
    film[at : at + size] = bytes(size)
    with PictureReader(index, bytes(film)) as reader:
        assert number_of(reader.at(Fraction(19, 30))) == 19
        assert number_of(reader.at(Fraction(20, 30))) in (19, 20)


def test_an_index_by_sidx_shows_the_same_pictures():
    data = (Path(__file__).parents[2] / "fixtures" / "frag-global-sidx.mp4").read_bytes()
    by_sidx = fragdex.index(data)
    assert by_sidx.how.method == "sidx"
    shown = [
        PictureReader(index, data).at(1.5).frame.to_ndarray()
        for index in (by_sidx, fragdex.index(data, exact=True))
    ]
    assert np.array_equal(*shown)
