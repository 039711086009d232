"""A playlist over tracks that are files of their own."""

import re

import pytest

import fragdex
from fragdex.errors import BuildError
from fragdex.packaging import hls
from fragdex.packaging.hls import TrackPlaylist
from fragdex.seeking.model import FileInfo, How, Index
from fragdex.testing import movie

FILM = fragdex.index(movie(4))


@pytest.fixture(scope="module")
def sound(root):
    return fragdex.index(root / "fixtures" / "frag-audio.m4a")


def attributes(line):
    return dict(re.findall(r'([A-Z-]+)=("[^"]*"|[^,]*)', line.partition(":")[2]))


def test_a_film_and_its_sounds(sound):
    first, second = (TrackPlaylist(sound, f"{name}.m3u8", name) for name in ("one", "two"))
    lines = hls.write_renditions([first, TrackPlaylist(FILM, "v.m3u8", "film"), second]).decode()
    *head, one, two, stream, variant = lines.splitlines()
    assert head == ["#EXTM3U", "#EXT-X-VERSION:7", "#EXT-X-INDEPENDENT-SEGMENTS"]
    assert variant == "v.m3u8"
    assert attributes(one)["URI"] == '"one.m3u8"'
    assert [attributes(line)["DEFAULT"] for line in (one, two)] == ["YES", "NO"]
    assert 'AUDIO="audio"' in stream
    assert "VIDEO=" not in stream
    alone = [attributes(hls.write_master(index).decode().splitlines()[3])["BANDWIDTH"]
             for index in (FILM, sound)]  # fmt: skip
    assert int(attributes(stream)["BANDWIDTH"]) == sum(map(int, alone))


def test_sound_alone(sound):
    lines = hls.write_renditions([TrackPlaylist(sound, "a.m3u8", "only")]).decode().splitlines()
    assert lines[3].startswith("#EXT-X-STREAM-INF:")
    assert "AUDIO=" not in lines[3]
    several = [TrackPlaylist(sound, f"{n}.m3u8", str(n)) for n in range(2)]
    lines = hls.write_renditions(several).decode().splitlines()
    assert [line.partition(":")[0] for line in lines[3:]] == [
        "#EXT-X-MEDIA", "#EXT-X-MEDIA", "#EXT-X-STREAM-INF", "0.m3u8",
    ]  # fmt: skip
    assert 'AUDIO="audio"' in lines[5]


def test_other_cameras_are_not_taken_for_other_rates():
    cameras = [TrackPlaylist(FILM, f"{n}.m3u8", str(n)) for n in range(2)]
    lines = hls.write_renditions(cameras).decode().splitlines()
    assert [line.startswith("#EXT-X-MEDIA:TYPE=VIDEO") for line in lines[3:5]] == [True, True]
    assert sum(line.startswith("#EXT-X-STREAM-INF") for line in lines) == 1


def test_what_stands_in_quotes_cannot_leave_them():
    cameras = [TrackPlaylist(FILM, 'a".m3u8\n#EXT', 'a"\nb') for n in range(2)]
    lines = hls.write_renditions(cameras).decode().splitlines()
    assert len(lines) == 7
    assert 'NAME="a\' b"' in lines[3]


def test_nothing_to_play():
    empty = Index(FileInfo(), How("boxes", True), ())
    with pytest.raises(BuildError, match="a video or an audio"):
        hls.write_renditions([])
    with pytest.raises(BuildError, match="no period"):
        hls.write_renditions([TrackPlaylist(empty, "a", "a")])
