"""Titles of several periods: one after the other, each on its own clock, or refused by name."""

from __future__ import annotations

from fractions import Fraction
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.errors import BuildError
from fragdex.packaging.subtitles import captions_of
from fragdex.testing import check_cmaf, check_dash, check_hls, movie

MPD = "{urn:mpeg:dash:schema:mpd:2011}"
PARTS = st.lists(
    st.builds(
        movie,
        st.integers(1, 5),
        tracks=st.just(2),
        samples=st.integers(1, 5),
        fps=st.integers(1, 30),
        reordered=st.booleans(),
    ),
    min_size=2,
    max_size=3,
    unique=True,
)


def packaged(data: bytes, **options: Any) -> fragdex.Package:
    return fragdex.package(fragdex.index(data, exact=True), source=data, **options)


def stretches(playlist: bytes) -> list[list[str]]:
    """Addresses of each stretch of a media playlist, that of its initialization segment first."""
    found: list[list[str]] = []
    for part in playlist.decode().split("#EXT-X-DISCONTINUITY\n"):
        lines = part.splitlines()
        (init,) = [line.split('"')[1] for line in lines if line.startswith("#EXT-X-MAP")]
        found.append([init, *(line for line in lines if line and not line.startswith("#"))])
    return found


def samples_of(data: bytes) -> list[tuple[int, int, int]]:
    table = fragdex.index(data, exact=True).tracks[0].samples
    return list(zip(table.cts.tolist(), table.duration.tolist(), table.size.tolist(), strict=True))


@given(PARTS, st.sampled_from([None, 0.5, 4]))
def test_periods_follow_each_other_and_are_what_each_is_alone(parts, seconds) -> None:
    data = b"".join(parts)
    index = fragdex.index(data, exact=True)
    if len(index.periods) != len(parts):
        return  # two moovs said the same
    package = packaged(data, segment_duration=seconds)
    alone = [packaged(data, segment_duration=seconds, period=n) for n in range(len(parts))]
    manifest = ET.fromstring(package["manifest.mpd"].read())
    periods = manifest.findall(f"{MPD}Period")
    assert len(periods) == len(parts)
    start = Fraction(0)
    for period, one in zip(periods, alone, strict=True):
        longest = max(rendition.seconds for rendition in one.title.renditions)
        for name, expected in (("start", start), ("duration", longest)):
            assert abs(Fraction(period.get(name)[2:-1]) - expected) < Fraction(1, 100_000)
        start += longest
    for name in ("v1", "a1"):
        played = stretches(package[f"{name}.m3u8"].read())
        assert len(played) == len(parts)
        for addresses, one in zip(played, alone, strict=True):
            if one.title.promised != package.title.promised:
                continue  # the first period decides how long segments may be
            ((own,),) = [stretches(one[f"{name}.m3u8"].read())]
            assert [package[a].read() for a in addresses] == [one[a].read() for a in own]
            etags = [package[a].etag for a in addresses]
            assert len(set(etags)) == len(etags)
    names = list(package)
    assert len(set(names)) == len(names)
    for name in names:
        package[name].read()


@given(st.integers(2, 5), st.integers(1, 4), st.integers(1, 3), st.sampled_from([None, 0.5, 4]))
def test_a_recorder_that_began_again_is_never_half(first, second, tracks, seconds) -> None:
    again = movie(second, tracks=tracks, samples=4, moov=False)
    data = movie(first, tracks=tracks, samples=5) + again
    index = fragdex.index(data, exact=True)
    if len(index.periods) != 2:
        return  # nothing falls back
    package = packaged(data, segment_duration=seconds)
    for one in package.title.renditions:
        parts = stretches(package[f"{one.name}.m3u8"].read())
        rows = [samples_of(b"".join(package[name].read() for name in part)) for part in parts]
        whole = [period.track(one.track.id).sample_count for period in index.periods]
        assert list(map(len, rows)) == whole


@pytest.mark.parametrize("single_file", [False, True])
def test_what_is_written_keeps_the_rules(single_file: bool) -> None:
    data = movie(4, tracks=2, fps=5) + movie(3, tracks=2, fps=6)
    package = packaged(data, segment_duration=1, single_file=single_file)

    def read(name: str) -> bytes:
        return package[name].read()

    assert check_hls(read("master.m3u8").decode(), read=read) == []
    assert check_dash(read("manifest.mpd"), read=read) == []
    for title in package.title.periods if not single_file else ():
        for one in title.renditions:
            segments = [read(f"{one.name}/{part.time}.m4s") for part in one.segments]
            assert check_cmaf(read(f"{one.name}/init.mp4"), segments) == []


def test_periods_chosen_by_number_are_other_files() -> None:
    data = movie(4, fps=5) + movie(4, fps=6)
    first, second = (packaged(data, period=n) for n in (0, 1))
    for name in ("master.m3u8", "v1/init.mp4", "v1/0.m4s"):
        assert first[name].etag != second[name].etag


def test_what_has_no_place_in_several_periods_is_refused_by_name() -> None:
    data = movie(4, tracks=2, fps=5) + movie(3, tracks=1, fps=6)
    with pytest.raises(
        BuildError,
        match=r"period 1 has other tracks than period 0.*found 1 of video",
    ):
        packaged(data)
    several = movie(4, fps=5) + movie(4, fps=6)
    captions = captions_of(b"WEBVTT\n\n00:00.000 --> 00:01.000\nHi\n", ".vtt")
    with pytest.raises(BuildError, match="captions of a file are for one period"):
        packaged(several, captions=[captions])
    both = [fragdex.index(data, exact=True) for data in (several, movie(4))]
    with pytest.raises(BuildError, match="as many periods each"):
        fragdex.package(both, source=[several, movie(4)])
    empty = movie(4, fps=5) + movie(0, fps=6)
    with pytest.raises(BuildError, match="period 1"):
        packaged(empty)
