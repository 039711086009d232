"""A file of several movies: whatever takes a film takes one of them by name, or refuses."""

from pathlib import Path

import pytest

import fragdex
from fragdex.errors import BuildError, TrackNotFound

FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Two films of pictures, one behind the other, of which neither repeats the other."""
    first = (FIXTURES / "frag-every-frame.mp4").read_bytes()
    second = (FIXTURES / "frag-hvc1.mp4").read_bytes()
    path = tmp_path_factory.mktemp("two") / "two.mp4"
    path.write_bytes(first + second)
    return str(path), [len(fragdex.Frames(one)) for one in (first, second)]


def refused(call, error):
    with pytest.raises(error, match="period") as raised:
        call()
    return raised.value


def test_frames_take_one_period_by_name(two):
    path, counts = two
    assert len(fragdex.index(path).periods) == 2
    refused(lambda: fragdex.Frames(path), TrackNotFound)
    for number, count in enumerate(counts):
        frames = fragdex.Frames(path, period=number)
        assert len(frames) == count
        assert frames[0].data.shape[2] == 3
    with pytest.raises(TrackNotFound, match="no period 2"):
        fragdex.Frames(path, period=2)


def test_whatever_takes_a_film_refuses_or_takes_one(two):
    path, _ = two
    index = fragdex.index(path)
    refused(lambda: fragdex.clip(index, source=path), BuildError)
    refused(lambda: fragdex.package(index, source=path), BuildError)
    refused(lambda: fragdex.decoding.thumbnail(index, path, 0), TrackNotFound)
    for number in range(2):
        alone = index.of_period(number)
        assert alone.track(alone.tracks[0].id).samples == index.periods[number].tracks[0].samples
        clip = fragdex.clip(index, source=path, period=number)
        assert clip.size == fragdex.clip(alone, source=path).size
        one = fragdex.package(index, source=path, period=number)
        assert list(one) == list(fragdex.package(alone, source=path))


def test_commands_take_a_period(two, tmp_path, call):
    path, _ = two
    for command in (
        ["extract", path, "0", "end", "-o", str(tmp_path / "a.mp4")],
        ["view", path, "-o", str(tmp_path / "b.mp4")],
        ["package", path, "-o", str(tmp_path / "c")],
        ["thumbnail", path, "0", "-o", str(tmp_path / "d.jpg")],
        ["index", path, "-f", "sidx", "-o", str(tmp_path / "e.sidx")],
    ):
        ran = call(*command)
        assert ran.code
        assert "--period 0" in ran.err
        for number in ("0", "1"):
            ran = call(*command, "--period", number)
            assert (ran.code, ran.err) == (0, "")
