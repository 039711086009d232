"""Ten tasks in the code that a new user would guess: each runs as it stands."""

import errno
from pathlib import Path

import pytest

import fragdex
from fragdex.errors import DamagedIndex, InexactIndex, NotISOBMFF, SourceError
from fragdex.testing import RangeServer, movie

MOVIE = Path(__file__).parent.parent / "fixtures" / "frag-cmaf.mp4"
DATA = MOVIE.read_bytes()


def test_index_a_file_and_print_its_duration():
    index = fragdex.index(MOVIE)
    assert index.duration == pytest.approx(2, abs=0.1)
    assert index.video.codec.startswith("avc1")
    assert float(index.video.stop) - float(index.video.start) == float(index.video.duration)


def test_seek_to_a_moment():
    hit = fragdex.index(MOVIE).seek("0:01.5")
    assert hit.time <= 1.5
    assert DATA[hit.range.start : hit.range.stop].count(b"moof") == 1


def test_the_bytes_of_a_span_of_time():
    span = fragdex.index(MOVIE).span(0.5, 1)
    assert fragdex.index(span.read()).duration > 0.4


def test_cut_a_clip_to_a_file(tmp_path):
    fragdex.clip(MOVIE, 0.5, 1.5).save(tmp_path / "clip.mp4")
    assert fragdex.index(tmp_path / "clip.mp4").duration == pytest.approx(1, abs=0.05)
    with pytest.raises(TypeError):
        fragdex.clip(MOVIE, 0.5, 1.5, segment_duration=2)


def test_an_hls_package_in_a_folder(tmp_path):
    package = fragdex.package(MOVIE, segment_duration=1)
    package.save(tmp_path)
    assert (tmp_path / "master.m3u8").read_bytes() == package["master.m3u8"].read()
    assert package["v1/init.mp4"].read()[4:8] == b"ftyp"


def test_a_thumbnail_and_a_frame():
    pytest.importorskip("av")
    assert fragdex.media.thumbnail(MOVIE, 1.5).data[:2] == b"\xff\xd8"
    assert float(fragdex.media.thumbnail(MOVIE, 1.5, at="frame").time) == 1.48
    with fragdex.Frames(MOVIE) as frames:
        assert frames.at(1.5).data.shape == (48, 64, 3)


def test_the_sound_of_a_second():
    pytest.importorskip("av")
    assert fragdex.media.audio(MOVIE, 0.5, 1.5).shape == (16_000,)
    index = fragdex.index(MOVIE)
    assert (fragdex.media.audio(index, 0.5, 1.5) == fragdex.media.audio(MOVIE, 0.5, 1.5)).all()


def test_a_file_that_is_not_there():
    with pytest.raises(FileNotFoundError) as caught:
        fragdex.index("nowhere.mp4")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOENT, "nowhere.mp4")


def test_many_moments_at_once():
    track = fragdex.index(MOVIE).video
    hits = track.seek_many([0.1, 0.7, 1.5])
    assert len(hits) == 3
    assert hits[2] == track.seek(1.5)
    assert [hit.time.seconds for hit in hits[1:]] == hits.times[1:].tolist()
    assert hits[2].time - hits[1].time + 1 > 1.9


def test_a_remote_file():
    with RangeServer(DATA) as server:
        index = fragdex.index(server.url, exact=True)
        assert index == fragdex.index(MOVIE)
        clip = fragdex.clip(index, 0.5, 1.5).read()
        assert fragdex.clip(server.url, 0.5, 1.5).read() == clip


def test_save_an_index_and_open_it_again(tmp_path):
    """A saved index can do what a fresh one can, or says what to give."""
    media, saved = tmp_path / "movie.mp4", tmp_path / "movie.fidx"
    media.write_bytes(DATA)
    fragdex.index(media).save(saved)
    opened = fragdex.open_index(saved)
    assert opened == fragdex.index(MOVIE)
    assert len(opened.video.samples) == 50
    assert fragdex.open_index(saved).export("csv") == fragdex.index(MOVIE).export("csv")
    for what in (fragdex.open_index(saved), saved):
        assert fragdex.view(what).read() == fragdex.view(MOVIE).read()
        assert list(fragdex.package(what)) == list(fragdex.package(MOVIE))
    assert fragdex.verify(media, saved) == ()

    media.rename(tmp_path / "elsewhere.mp4")
    with pytest.raises(InexactIndex, match=r"there is no file.*open_index\(…, media=…\)"):
        fragdex.open_index(saved).export("csv")
    elsewhere = fragdex.open_index(saved, media=tmp_path / "elsewhere.mp4", ignore_mtime=True)
    assert elsewhere.export("csv") == fragdex.index(MOVIE).export("csv")

    stranger = tmp_path / "strange"
    stranger.mkdir()
    (stranger / "movie.fidx").write_bytes(fragdex.index(MOVIE).export("fidx"))
    with pytest.raises((InexactIndex, SourceError), match="outside its folder"):
        fragdex.view(stranger / "movie.fidx")

    with pytest.raises(NotISOBMFF, match=r"saved index.*fragdex\.open_index"):
        fragdex.index(saved)
    with pytest.raises(DamagedIndex, match=r"fragdex\.index"):
        fragdex.open_index(MOVIE)


def test_serve_a_range_from_a_web_application():
    response = fragdex.view(MOVIE).respond("GET", {"Range": "bytes=4-7"})
    assert (response.status, b"".join(response.chunks)) == (206, b"ftyp")


def test_join_two_files(tmp_path):
    part = movie(2, samples=5, fps=5)
    fragdex.join([part, part]).save(tmp_path / "joined.mp4")
    assert fragdex.index(tmp_path / "joined.mp4").duration == 4
