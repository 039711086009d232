"""Thumbnails: the right picture, as it is shown, and no byte read beside its own."""

import io
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

import fragdex
from decoding.filming import MATRICES, number_in, numbered, shown_by
from fragdex.decoding.pictures import nearest_sync
from fragdex.errors import (
    LimitExceeded,
    NoSyncSample,
    TrackNotFound,
    UndecodableMedia,
)
from fragdex.fragments.table import SyncTable
from fragdex.seeking.track import Track
from fragdex.sources import open_source

FIXTURES = Path(__file__).parents[2] / "fixtures"


def opened(picture):
    return np.asarray(Image.open(io.BytesIO(picture.data)).convert("RGB"))


def number_of(picture):
    return number_in(opened(picture)[:, :, 1])


def decoded(data, since):
    """The last picture that is shown so long after the first, as PyAV decodes and converts it."""
    with av.open(io.BytesIO(data)) as container:
        times, pictures = [], []
        for frame in container.decode(video=0):
            times.append(Fraction(frame.pts) * frame.time_base)
            pictures.append(frame)
        number = max(n for n, time in enumerate(times) if time - times[0] <= since)
        return pictures[number].to_ndarray(format="rgb24")


@pytest.mark.parametrize("fragmented", [True, False])
@pytest.mark.parametrize(
    ("time", "key", "exact"),
    [(0, 0, 0), (0.49, 0, 14), (0.51, 30, 15), (1.95, 60, 58), (99, 60, 89)],
)
def test_the_picture_is_the_nearest_key_frame_or_the_exact_one(fragmented, time, key, exact):
    film = numbered(90, Fraction(30), fragmented=fragmented)
    index = fragdex.index(film)
    near = fragdex.decoding.thumbnail(index, film, time)
    assert (number_of(near), near.time) == (key, Fraction(key, 30))
    true = fragdex.decoding.thumbnail(index, film, time, at="frame")
    assert (number_of(true), true.time) == (exact, Fraction(exact, 30))


@pytest.mark.parametrize("name", ["frag-cmaf.mp4", "hevc-aac.mp4", "frag-vp9-opus.mp4"])
@pytest.mark.parametrize("time", [0, 0.7, 1.5])
def test_the_pixels_are_those_of_another_decoder(name, time):
    data = (FIXTURES / name).read_bytes()
    index = fragdex.index(data)
    picture = fragdex.decoding.thumbnail(index, data, time, at="frame", format="png")
    assert 0 <= time - picture.time < 0.05
    reference = decoded(data, picture.time - index.track(1).start.fraction).astype(int)
    pixels = opened(picture).astype(int)
    # the conversion of colours differs by a rounding; the picture does not
    assert pixels.shape == reference.shape
    assert np.abs(pixels - reference).mean() < 3


@pytest.mark.parametrize("with_samples", [True, False])
def test_one_request_reads_the_key_frame_and_nothing_else(tmp_path, with_samples):
    film = numbered(2000, Fraction(2), keys=8, size=(64, 32))
    fragdex.index(film, exact=True).save(tmp_path / "film.fidx", samples=with_samples)
    index = fragdex.open_index(tmp_path / "film.fidx")
    with open_source(film) as source:
        init = b"".join(source.read(part) for part in index.periods[0].init)
        requests, before = source.requests, source.bytes_read
        picture = fragdex.decoding.thumbnail(index, source, 800, init=init)
        assert picture.time == 800
        assert source.requests == requests + 1
        table = fragdex.index(film).track(1).samples
        key = int(np.flatnonzero(table.sync & (table.cts == table.cts.min() + 800 * 16384))[0])
        if with_samples:
            assert source.bytes_read - before == int(table.size[key])


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("name", MATRICES)
def test_a_film_is_shown_as_its_matrix_says(name, exact):
    matrix, shown = MATRICES[name]
    plain = numbered(10, Fraction(10))
    film = shown_by(plain, matrix)
    options = {"format": "png", "at": "frame" if exact else "key_frame"}
    before = opened(fragdex.decoding.thumbnail(fragdex.index(plain), plain, 0, **options))
    after = opened(fragdex.decoding.thumbnail(fragdex.index(film), film, 0, **options))
    info = fragdex.index(film).track(1).info
    if info.rotation is not None:
        turned = np.rot90(before, -info.rotation // 90)
        assert np.array_equal(after, turned[:, ::-1] if info.mirrored else turned)
    assert (info.rotation is None) == (name in ("sheared", "45"))
    assert np.array_equal(after, shown(before))


def test_pixels_are_made_square():
    film = numbered(4, Fraction(10), aspect="4/3")
    index = fragdex.index(film)
    picture = fragdex.decoding.thumbnail(index, film, 0)
    assert (picture.width, picture.height) == (341, 48)
    picture = fragdex.decoding.thumbnail(index, film, 0, height=24)
    assert (picture.width, picture.height) == (170, 24)


@pytest.mark.parametrize("format", ["jpeg", "webp", "avif", "png"])
def test_formats(format):
    film = numbered(8, Fraction(4), size=(256, 64))
    still = fragdex.decoding.thumbnail(fragdex.index(film), film, 1.25, at="frame", format=format)
    picture = Image.open(io.BytesIO(still.data))
    assert (picture.format, picture.size) == (format.upper(), (still.width, still.height))
    assert still.media_type == f"image/{format}" == picture.get_format_mimetype()
    assert number_of(still) == 5


def test_quality_changes_the_size():
    data = (FIXTURES / "frag-cmaf.mp4").read_bytes()
    index = fragdex.index(data)
    sizes = [len(fragdex.decoding.thumbnail(index, data, 0, quality=q).data) for q in (10, 50, 95)]
    assert sizes == sorted(set(sizes))


@pytest.mark.parametrize(
    ("asked", "size"),
    [
        ({}, (256, 48)),
        ({"width": 128}, (128, 24)),
        ({"height": 96}, (512, 96)),
        ({"width": 128, "height": 128}, (128, 24)),
        ({"width": 128, "height": 12}, (64, 12)),
        ({"width": 128, "height": 128, "fit": "cover"}, (128, 128)),
        ({"width": 300, "height": 10, "fit": "cover"}, (300, 10)),
        ({"width": 50, "height": 70, "fit": "fill"}, (50, 70)),
        ({"width": 1}, (1, 1)),
    ],
)
def test_sizes(asked, size):
    film = numbered(2, Fraction(10))
    picture = fragdex.decoding.thumbnail(fragdex.index(film), film, 0, **asked)
    assert (picture.width, picture.height) == size
    assert Image.open(io.BytesIO(picture.data)).size == size


def test_cover_shows_the_middle():
    film = numbered(256, Fraction(64), keys=1, fragmented=False)
    # picture 192 has its bits 6 and 7 set: the two columns left of the middle
    picture = fragdex.decoding.thumbnail(
        fragdex.index(film), film, 3, width=64, height=48, fit="cover", format="png"
    )
    row = opened(picture)[24, :, 1] > 125
    assert row[1:31].all()
    assert not row[33:63].any()


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"width": 0}, ValueError),
        ({"width": -5}, ValueError),
        ({"width": 10**9}, ValueError),
        ({"height": 10**30}, ValueError),
        ({"width": 16383, "height": 16383, "fit": "fill"}, LimitExceeded),
        ({"height": 16383}, LimitExceeded),
        ({"width": 16383, "height": 9000, "fit": "cover"}, LimitExceeded),
        ({"width": 1.5}, TypeError),
        ({"fit": "outside"}, ValueError),
        ({"format": "gif"}, ValueError),
        ({"quality": 0}, ValueError),
        ({"quality": 101}, ValueError),
        ({"track": 9}, TrackNotFound),
        ({"time": float("nan")}, ValueError),
        ({"time": "soon"}, ValueError),
    ],
)
def test_what_is_refused(asked, error):
    film = numbered(2, Fraction(10))
    time = asked.pop("time", 0)
    with pytest.raises(error):
        fragdex.decoding.thumbnail(fragdex.index(film), film, time, **asked)


def test_files_without_pictures_say_so():
    for name, error in (("aac.m4a", TrackNotFound), ("encrypted.mp4", UndecodableMedia)):
        path = FIXTURES / name
        with pytest.raises(error):
            fragdex.decoding.thumbnail(fragdex.index(path), path, 0)


def test_a_track_without_sync_samples_says_so():
    film = numbered(4, Fraction(10))
    index = fragdex.index(film, exact=True)
    track = index.track(1)
    bare = Track(
        track.info, track.fragments, SyncTable.empty(), shift=track.shift, samples=track.samples
    )
    period = type(index.periods[0])(0, index.periods[0].init, index.periods[0].movie, (bare,))
    bare_index = type(index)(index.file, index.how, (period,))
    with pytest.raises(NoSyncSample):
        fragdex.decoding.thumbnail(bare_index, film, 0)
    with pytest.raises(NoSyncSample):
        fragdex.decoding.thumbnail(bare_index, film, 0, at="frame")


def test_of_samples_that_only_claim_to_be_key_frames_a_true_one_is_shown():
    path = FIXTURES / "all-sync.mp4"
    index = fragdex.index(path)
    keys = {float(nearest_sync(index.track(1), n / 25).time) for n in range(40)}
    assert len(keys) == 40
    assert {float(fragdex.decoding.thumbnail(index, path, n / 25).time) for n in range(40)} <= {
        0, 0.48, 0.96, 1.44
    }  # fmt: skip


def test_a_damaged_key_frame_gives_way_to_one_before():
    film = bytearray(numbered(90, Fraction(30)))
    index = fragdex.index(bytes(film), exact=True)
    table = index.track(1).samples
    keys = np.flatnonzero(table.sync)
    at, size = int(table.offset[keys[1]]), int(table.size[keys[1]])
    film[at : at + size] = bytes(size)
    assert number_of(fragdex.decoding.thumbnail(index, bytes(film), 1)) == 0
    for key in keys:
        at, size = int(table.offset[key]), int(table.size[key])
        film[at : at + size] = bytes(size)
    with pytest.raises(UndecodableMedia, match=r"at 1\.000 s"):
        fragdex.decoding.thumbnail(index, bytes(film), 1)


def test_a_truncated_file_shows_what_it_has():
    film = numbered(300, Fraction(30), fragmented=False)
    index = fragdex.index(film)
    cut = film[: len(film) // 2]
    if index.track(1).fragments.offset[0] > len(cut):
        pytest.fail("the samples should come first")
    assert number_of(fragdex.decoding.thumbnail(index, film, 9)) == 270
    moov = index.periods[0].init
    init = b"".join(film[part.start : part.stop] for part in moov)
    assert number_of(fragdex.decoding.thumbnail(index, cut, 0.1, init=init)) == 0
    with pytest.raises(UndecodableMedia, match=r"at 9\.000 s"):
        fragdex.decoding.thumbnail(index, cut, 9, init=init)


def test_pictures_that_claim_to_be_huge_are_not_decoded():
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("mjpeg", rate=1)
        stream.width = stream.height = 64
        stream.pix_fmt = "yuvj420p"
        for packet in (*stream.encode(av.VideoFrame(64, 64, "yuvj420p")), *stream.encode(None)):
            container.mux(packet)
    data = bytearray(file.getvalue())
    assert fragdex.decoding.thumbnail(fragdex.index(bytes(data)), bytes(data), 0).width == 64
    size = data.index(b"\xff\xc0") + 5  # SOF0: height and width of the frame
    data[size : size + 4] = (16384).to_bytes(2, "big") * 2
    with pytest.raises(UndecodableMedia, match="cannot be decoded"):
        fragdex.decoding.thumbnail(fragdex.index(bytes(data)), bytes(data), 0)


@pytest.mark.parametrize("count", [0x7FFF, 0x7FFFFFF, 0x7FFFFFFF])
def test_damage_that_ffmpeg_calls_want_of_memory_is_damage(count):
    """A table whose count nobody has the memory for, in a box that takes none."""
    film = numbered(4, Fraction(10))
    at = film.index(b"dref")
    damaged = film[:at] + b"stts" + bytes(4) + count.to_bytes(4, "big") + film[at + 12 :]
    index = fragdex.index(film)
    for call in (
        lambda: fragdex.decoding.thumbnail(index, damaged, 0),
        lambda: fragdex.Frames(damaged, index)[0],
    ):
        with pytest.raises(UndecodableMedia, match="cannot read how track 1 is coded"):
            call()
