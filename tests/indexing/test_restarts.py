"""A recorder that begins again: periods one after the other, or a refusal by name; never half."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fragdex
from fragdex.boxes import parse
from fragdex.errors import BuildError, FragdexError, TrackNotFound
from fragdex.formats import fidx

FIXTURES = Path(__file__).parents[2] / "fixtures"
FILMS = (
    "frag-default-base.mp4",
    "frag-every-frame.mp4",
    "frag-separate-moof.mp4",
    "frag-audio.m4a",
    "frag-delay-moov-start-7s.mp4",
    "frag-dash.mp4",
)


def media(data: bytes) -> bytes:
    """The fragments of a film, without its moov."""
    boxes = parse(data)
    first = next(box.offset for box in boxes if box.type == "moof")
    last = [box for box in boxes if box.type == "mdat"][-1]
    return data[first : last.offset + last.size]


def again(name: str, times: int = 2) -> bytes:
    data = (FIXTURES / name).read_bytes()
    start = next(box.offset for box in parse(data) if box.type == "moof")
    return data[:start] + media(data) * times


@pytest.mark.parametrize("times", [2, 3])
@pytest.mark.parametrize("name", FILMS)
def test_each_start_of_the_clock_is_a_period(name: str, times: int) -> None:
    one = fragdex.index(again(name, 1), exact=True)
    data = again(name, times)
    index = fragdex.index(data, exact=True)
    assert len(index.periods) == times
    assert [f.code for f in index.findings if f.code != "time-again"] == ["clock-restarts"]
    for number in range(times):
        alone = index.of_period(number)
        for mine, theirs in zip(alone.tracks, one.tracks, strict=True):
            assert mine.sync_samples == theirs.sync_samples
            for column in ("size", "dts", "cts", "duration", "sync"):
                assert np.array_equal(
                    getattr(mine.samples, column), getattr(theirs.samples, column)
                )
    assert fragdex.open_index(index.export("fidx", samples=True)) == index
    # whichever way the bytes arrive
    grown = fragdex.Indexer()
    for start in range(0, len(data), 5000):
        grown.feed(data[start : start + 5000])
    assert grown.finish() == index


ASKED = {
    "clip": lambda data: fragdex.clip(data, 0, float("inf")),
    "faststart": lambda data: fragdex.view(data, "faststart"),
    "fragments": lambda data: fragdex.view(data, "fragmented"),
    "Frames": fragdex.Frames,
    "seek": lambda data: fragdex.index(data).seek(1),
    "window": lambda data: fragdex.index(data).window("video", 0, 1),
    "frames": lambda data: fragdex.index(data).export("frames"),
    "torchcodec": lambda data: fragdex.index(data).export("torchcodec"),
}


@pytest.mark.parametrize("asked", ASKED)
def test_nothing_is_made_of_half_of_it(asked: str) -> None:
    with pytest.raises((BuildError, TrackNotFound), match=r"several periods|2 periods") as refused:
        ASKED[asked](again("frag-default-base.mp4"))
    assert "fragdex.join" in str(refused.value)


def test_a_package_has_all_periods() -> None:
    package = fragdex.package(again("frag-default-base.mp4"))
    playlist = package["v1.m3u8"].read().decode()
    assert playlist.count("#EXT-X-DISCONTINUITY\n") == 1
    assert package["manifest.mpd"].read().count(b"<Period ") == 2
    listed = [line for line in playlist.splitlines() if line.endswith(".m4s")]
    count = 0
    for name in listed:
        folder = name.split("/")[0]
        segment = package[f"{folder}/init.mp4"].read() + package[name].read()
        count += fragdex.index(segment).track(1).sample_count or 0
    assert count == 100


def test_all_periods_are_joined_one_after_the_other(tmp_path: Path) -> None:
    film = tmp_path / "film.mp4"
    film.write_bytes(again("frag-default-base.mp4", 3))
    index = fragdex.index(film)
    joined = fragdex.join([index.of_period(number) for number in range(3)])
    copy = fragdex.index(joined.read(), exact=True)
    assert [track.sample_count for track in copy.tracks] == [150, 99]
    assert (np.diff(np.sort(copy.video.samples.cts)) > 0).all()


def test_a_fragment_that_is_sent_again_is_no_restart() -> None:
    data = (FIXTURES / "frag-default-base.mp4").read_bytes()
    boxes = [box for box in parse(data) if box.type in ("moof", "mdat")]
    second, end = boxes[2].offset, boxes[3].offset + boxes[3].size
    index = fragdex.index(data[:end] + data[second:end] + data[end:])
    assert len(index.periods) == 1


def test_a_clock_that_always_restarts_costs_no_more_than_its_bytes() -> None:
    data = again("frag-one-frame.mp4", 1)
    start = next(box.offset for box in parse(data) if box.type == "moof")
    many = data[:start] + media(again("frag-default-base.mp4", 1)) * 400
    try:
        assert len(fragdex.index(many).periods) <= 257
    except FragdexError:
        pytest.fail("restarts are no damage")


def test_samples_of_the_moov_are_counted_before_a_clock_restarts() -> None:
    """A hybrid file whose fragments come again: a saved index holds its tables to their sums."""
    data = (FIXTURES / "hybrid-crashed.mp4").read_bytes()
    index = fragdex.index(data + media(data))
    assert len(index.periods) > 1
    fidx.verify(fidx.write(index))
    for track in index.tracks:
        assert len(track.samples) == int(track.fragments.sample_count.sum())
        sync, starts = track.sync_samples, track.fragments.sample_start
        assert (starts[sync.fragment] <= sync.sample).all()
        assert int(sync.count.sum()) == int(track.samples.sync.sum())
