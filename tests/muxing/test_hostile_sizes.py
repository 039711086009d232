"""Films of extreme shapes: a clear answer, made in memory that the film's own size bounds."""

import tracemalloc

import pytest

import fragdex
from fragdex.errors import LimitExceeded, NoSyncSample
from fragdex.muxing.kinds import described
from fragdex.testing import movie

HOUR = 3600
SHAPES = {
    "one sync sample in an hour": lambda: movie(1, samples=HOUR, fps=1, fragmented=False),
    "an hour of fragments of one frame": lambda: movie(HOUR, samples=1, fps=1),
}


def without_sync(data):
    """The film with an stss that names no sample."""
    at = data.index(b"stss") + 8
    return data[:at] + bytes(4) + data[at + 4 :]


@pytest.mark.parametrize("shape", SHAPES)
def test_extreme_shapes_are_packaged(shape):
    data = SHAPES[shape]()
    index = fragdex.index(data, exact=True)
    tracemalloc.start()
    try:
        package = fragdex.package(index, source=data)
        (rendition,) = package.title.renditions
        media = package["v1.m3u8"].read().decode()
        assert media.count("#EXTINF") == len(rendition.segments)
        assert sum(segment.seconds for segment in rendition.segments) == HOUR
        package["manifest.mpd"].read()
        last = rendition.made.time.tolist()[-1]
        assert package[f"v1/{last}.m4s"].read(source=data)[4:8] == b"styp"
        for kind in ("fragmented", "faststart"):
            view = described(index, kind, source=data)
            assert view.read(fragdex.ByteRange(view.size - 8, view.size), source=data)
        clip = fragdex.clip(index, source=data, start=1800, stop=1801)
        assert fragdex.index(clip.read(source=data), exact=True).track(1).stop == 1
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16 << 20


def test_a_film_without_a_sync_sample():
    data = without_sync(movie(1, samples=HOUR, fps=1, fragmented=False))
    index = fragdex.index(data, exact=True)
    for make in (fragdex.package, fragdex.view):
        with pytest.raises(NoSyncSample, match=r"no sync sample.*encoded again"):
            make(index, source=data)
    with pytest.raises(NoSyncSample, match="nothing can be shown"):
        fragdex.clip(index, source=data, start=1800, stop=1801)
    # what needs no place to cut is made
    assert fragdex.view(index, "faststart", source=data).size == len(data)


def test_more_samples_than_are_made_into_fragments(monkeypatch):
    monkeypatch.setattr("fragdex.muxing.media.MAX_MADE_SAMPLES", 59)
    few, many = movie(1, samples=59, fps=1), movie(1, samples=60, fps=1)
    assert fragdex.view(fragdex.index(few), source=few).size
    for make in (fragdex.package, fragdex.view):
        with pytest.raises(LimitExceeded, match=r"track 1 has more samples.*at most 59.*tracks="):
            make(fragdex.index(many), source=many)
