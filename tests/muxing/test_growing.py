"""Packages of a file that grows: what is announced stays, to the byte."""

import re
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import fragdex
from fragdex.errors import BuildError, FragdexError, NoSyncSample
from fragdex.testing import check_dash, check_hls, movie

FIXTURES = Path(__file__).parents[2] / "fixtures"
MPD = "{urn:mpeg:dash:schema:mpd:2011}"
BEGAN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def lines(package, name):
    return package[name].read().decode().splitlines()


def announced(package, data):
    """Bytes of each media segment and initialization segment that a package names."""
    names = [name for name in package if name.endswith((".m4s", "init.mp4"))]
    return {name: package[name].read(source=data) for name in names}


def grown(whole, sizes, **options):
    """Packages of the first bytes of a file, with those bytes; none where nothing is complete."""
    index = None
    for size in sizes:
        data = whole[:size]
        try:
            index = fragdex.index(data, exact=True) if index is None else index.extend(data)
            yield data, fragdex.package(index, source=data, growing=True, **options)
        except FragdexError as error:
            text = str(error)
            reasons = ("complete", "no samples", "sync sample", "edit list hides all")
            assert any(one in text for one in reasons), text


MOVIES = st.builds(
    movie,
    st.integers(2, 8),
    tracks=st.integers(1, 2),
    samples=st.integers(1, 4),
    fps=st.integers(1, 5),
    reordered=st.booleans(),
    edit=st.none() | st.integers(0, 2000),
)


@given(MOVIES, st.sampled_from([None, 1, 3]), st.data())
def test_what_is_announced_is_what_the_whole_has(whole, seconds, data):
    sizes = sorted(data.draw(st.lists(st.integers(100, len(whole)), max_size=3)))
    try:
        ended = fragdex.package(
            fragdex.index(whole, exact=True),
            source=whole,
            segment_duration=seconds,
            growing="ended",
        )
    except NoSyncSample:
        reject()  # the edit list hides all of a track
    final = announced(ended, whole)
    plain = fragdex.package(
        fragdex.index(whole, exact=True), source=whole, segment_duration=seconds
    )
    assert announced(plain, whole) == final
    for part, package in grown(whole, [*sizes, len(whole)], segment_duration=seconds):
        now = announced(package, part)
        assert now.items() <= final.items()
        # a segment that was announced is read from the file as it is now
        assert announced(package, whole) == now
        for one in package.title.renditions:
            name = f"{one.name}.m3u8"
            mine, last = lines(package, name), lines(ended, name)
            assert mine == last[: len(mine)]
            assert (last[-1], "#EXT-X-ENDLIST" in mine) == ("#EXT-X-ENDLIST", False)
            assert "#EXT-X-PLAYLIST-TYPE:EVENT" in mine


@pytest.mark.parametrize(
    "name", ["frag-default-base", "frag-every-frame", "frag-text", "frag-hevc-aac"]
)
def test_files_that_really_grow(name, tmp_path):
    whole = (FIXTURES / f"{name}.mp4").read_bytes()
    path = tmp_path / "live.mp4"
    ended = fragdex.package(fragdex.index(whole, exact=True), source=whole, segment_duration=0.5)
    final = announced(ended, whole)
    index, seen, reached = None, {}, 0
    for size in range(len(whole) // 8, len(whole) + 1, len(whole) // 8):
        with path.open("ab") as file:
            file.write(whole[path.stat().st_size : size])
        try:
            index = fragdex.index(path, exact=True) if index is None else index.extend(path)
            package = fragdex.package(index, segment_duration=0.5, growing=True, began=BEGAN)
        except FragdexError:
            continue
        now = {name: package[name] for name in package if name.endswith((".m4s", "init.mp4"))}
        assert {name: view.read() for name, view in now.items()}.items() <= final.items()
        tags = {name: view.etag for name, view in now.items()}
        assert seen.items() <= tags.items()
        seen, reached = tags, reached + 1
        read = lambda name: package[name].read()  # noqa: B023, E731
        text = package["master.m3u8"].read().decode()
        broken = {one.rule for one in check_hls(text, read=read)}
        assert broken <= {"extinf-real", "target-exceeded"}
        mpd = package["manifest.mpd"].read()
        # how long the last one lasts, what follows would say
        assert {one.rule for one in check_dash(mpd, read=read)} <= {"duration-real"}
        root = ET.fromstring(mpd)
        assert root.get("type") == "dynamic"
        assert root.get("availabilityStartTime") == "2026-01-02T03:04:05.000Z"
        assert root.get("mediaPresentationDuration") is None
    assert reached


def test_the_target_duration_stays():
    whole = movie(12, samples=5, fps=5)
    targets = set()
    for _, package in grown(whole, range(800, len(whole), 700), segment_duration=2):
        (target,) = re.findall(r"TARGETDURATION:(\d+)", "\n".join(lines(package, "v1.m3u8")))
        targets.add(target)
    assert targets == {"4"}


def test_the_end_of_growth():
    data = movie(8, samples=5, fps=5)
    package = fragdex.package(fragdex.index(data, exact=True), source=data, growing="ended")
    assert lines(package, "v1.m3u8")[-1] == "#EXT-X-ENDLIST"
    root = ET.fromstring(package["manifest.mpd"].read())
    assert (root.get("type"), root.get("mediaPresentationDuration")) == ("static", "PT8S")


def test_nothing_is_complete_yet():
    data = movie(1, samples=5, fps=5)
    with pytest.raises(BuildError, match="no segment is complete"):
        fragdex.package(fragdex.index(data, exact=True), source=data, growing=True)
