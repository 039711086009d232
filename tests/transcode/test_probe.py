"""What is taken for a media file, and what is not."""

import io

import pytest

from fragdex.boxes import build, parse
from fragdex.errors import Unprocessable
from fragdex.transcode.probe import opened, probe
from frames.films import film as film_of

SECRET = "file:///etc/passwd"
PLAYLISTS = {
    "hls": f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n{SECRET}\n#EXT-X-ENDLIST\n",
    "hls after a mark": f"\ufeff#EXTM3U\n#EXTINF:1,\n{SECRET}\n",
    "hls after blanks": f"\n\n#EXTM3U\n#EXTINF:1,\n{SECRET}\n",
    "concat": f"ffconcat version 1.0\nfile '{SECRET}'\n",
    "concat without its mark": f"file '{SECRET}'\n",
    "dash": f"<?xml version='1.0'?><MPD><Period><BaseURL>{SECRET}</BaseURL></Period></MPD>",
    "smooth": "<SmoothStreamingMedia MajorVersion='2'></SmoothStreamingMedia>",
    "sdp": "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\nm=video 5004 RTP/AVP 96\r\n",
    "metadata": ";FFMETADATA1\ntitle=x\n",
    "pls": f"[playlist]\nFile1={SECRET}\n",
}
NO_MEDIA = {
    "text": b"this is no film. " * 100,
    "zeros": bytes(5000),
    "png": b"\x89PNG\r\n\x1a\n" + bytes(100),
    "jpeg": b"\xff\xd8\xff\xe0\0\x10JFIF\0" + bytes(1000) + b"\xff\xd9",
    "gif": b"GIF89a\x01\0\x01\0\0\0\0;",
    "subtitles": b"1\n00:00:01,000 --> 00:00:02,000\nhello\n\n" * 50,
    "webvtt": b"WEBVTT\n\n00:01.000 --> 00:02.000\nhello\n\n" * 50,
    "zip": b"PK\x03\x04" + bytes(3000),
}


def probed(data):
    with opened(io.BytesIO(data)) as container:
        return probe(container)


@pytest.mark.parametrize("text", PLAYLISTS.values(), ids=PLAYLISTS)
def test_a_playlist_is_refused_as_one(text):
    with pytest.raises(Unprocessable, match="playlist"):
        probed(text.encode())


@pytest.mark.parametrize("data", NO_MEDIA.values(), ids=NO_MEDIA)
def test_what_is_no_media_file_is_refused(data):
    with pytest.raises(Unprocessable):
        probed(data)


def test_a_recording_without_its_index_says_what_repairs_it(fixture_file):
    with pytest.raises(Unprocessable, match=r"no moov .*: the recording stopped .*fragdex repair"):
        probed(fixture_file("cut-moov-last.mp4").read_bytes())


def test_an_empty_file_is_refused_as_one():
    with pytest.raises(Unprocessable, match="empty"):
        probed(b"")


def test_a_quicktime_file_does_not_make_us_read_another_one(fixture_file, tmp_path):
    """A data reference to another file (dref) is not followed."""
    data = fixture_file("quicktime.mov").read_bytes()
    moved = data.replace(b"url \0\0\0\x01", b"url \0\0\0\0")
    assert moved != data
    with opened(io.BytesIO(moved)) as container:
        assert probe(container).streams


def test_streams_are_told_with_what_is_known(fixture_file):
    info = probed(fixture_file("frag-two-languages.mp4").read_bytes())
    assert [(s.track_id, s.type, s.codec) for s in info.streams] == [
        (7, "video", "h264"),
        (300, "audio", "aac"),
        (301, "audio", "aac"),
    ]
    video, first, second = info.streams
    assert (video.width, video.height) == (64, 48)
    assert (first.sample_rate, first.channels) == (16000, 1)
    assert {first.language, second.language} == {"eng", "fra"}
    assert "sample_rate" not in video.as_json()


def test_cover_pictures_are_no_video(fixture_file):
    info = probed(fixture_file("cover.mp4").read_bytes())
    assert [stream.type for stream in info.streams] == ["audio"]


def test_streams_of_other_containers_are_numbered(made):
    info = probed(made("a.mkv", video="libx264", audio="libopus", seconds=1).read_bytes())
    assert [stream.track_id for stream in info.streams] == [1, 2]
    assert info.duration == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize(
    ("name", "codecs"),
    [
        ("mpeg4-mp3.mp4", ["mpeg4", "mp3"]),
        ("av1-opus.mp4", ["av1", "opus"]),
        ("vp9-flac.mp4", ["vp9", "flac"]),
    ],
)
def test_a_codec_has_its_own_name_and_not_that_of_a_decoder(name, codecs, fixture_file):
    assert [one.codec for one in probed(fixture_file(name).read_bytes()).streams] == codecs


def with_tracks(film, count):
    """The film with so many equal tracks."""
    boxes = parse(film)
    moov = boxes[-1]
    assert moov.type == "moov"
    (trak,) = (box for box in moov.children if box.type == "trak")

    def numbered(track_id):
        children = [
            box.replace(track_ID=track_id) if box.type == "tkhd" else box for box in trak.children
        ]
        return trak.replace(children=children)

    children = [box for box in moov.children if box.type != "trak"]
    traks = [numbered(track_id) for track_id in range(1, count + 1)]
    return film[: moov.offset] + build(moov.replace(children=children + traks))


def test_many_tracks_are_a_file_and_more_are_refused_by_their_number():
    film = film_of("libx264", 4, size=(32, 32), g="2")
    assert len(probed(with_tracks(film, 100)).streams) == 100
    with pytest.raises(Unprocessable, match="more than 256 streams"):
        probed(with_tracks(film, 300))
