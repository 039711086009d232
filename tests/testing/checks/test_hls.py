"""`check_hls`: each rule names what breaks it, and nothing else is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.testing import check_hls, movie

FIXTURES = Path(__file__).parents[3] / "fixtures"
MEDIA = """#EXTM3U
#EXT-X-VERSION:7
#EXT-X-TARGETDURATION:4
#EXT-X-MEDIA-SEQUENCE:0
#EXT-X-DISCONTINUITY-SEQUENCE:0
#EXT-X-PLAYLIST-TYPE:VOD
#EXT-X-INDEPENDENT-SEGMENTS
#EXT-X-MAP:URI="init.mp4",BYTERANGE="100@0"
#EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://a",IV=0x00,KEYFORMAT="x",KEYFORMATVERSIONS="1"
#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:00.000Z
#EXTINF:4.004,
#EXT-X-BYTERANGE:10@100
a.mp4
#EXTINF:4,title
#EXT-X-BYTERANGE:10
a.mp4
#EXT-X-DISCONTINUITY
#EXT-X-DATERANGE:ID="x",START-DATE="2026-01-01T00:00:00Z",DURATION=1.5
#EXTINF:2.5,
b.m4s
#EXT-X-ENDLIST
"""
AUDIO = '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="{}",NAME="en",DEFAULT=YES,AUTOSELECT=YES,URI="{}"'
MULTI = f"""#EXTM3U
#EXT-X-VERSION:7
#EXT-X-INDEPENDENT-SEGMENTS
{AUDIO.format("a", "a.m3u8")}
{AUDIO.format("b", "b.m3u8")}
#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",NAME="en",FORCED=NO,URI="s.m3u8"
#EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID="c",NAME="en",INSTREAM-ID="CC1"
#EXT-X-SESSION-KEY:METHOD=SAMPLE-AES,URI="skd://a"
#EXT-X-SESSION-DATA:DATA-ID="x",VALUE="y"
#EXT-X-STREAM-INF:BANDWIDTH=9,AVERAGE-BANDWIDTH=8,CODECS="x,y",AUDIO="a",SUBTITLES="s",RESOLUTION=64x48
v.m3u8
#EXT-X-STREAM-INF:BANDWIDTH=9,AUDIO="b",CLOSED-CAPTIONS="c",FRAME-RATE=25.000,VIDEO-RANGE=SDR
w.m3u8
#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=9,URI="i.m3u8"
#EXT-X-IMAGE-STREAM-INF:BANDWIDTH=9,URI="t.m3u8",RESOLUTION=64x48,CODECS="jpeg"
"""


def rules(*arguments):
    return {one.rule for one in check_hls(*arguments)}


@pytest.mark.parametrize("text", [MEDIA, MULTI])
def test_what_breaks_no_rule_is_not_named(text):
    assert check_hls(text) == []
    assert check_hls(text.encode()) == []
    assert check_hls(text.replace("\n", "\r\n")) == []


BROKEN = [
    ("extm3u", MEDIA, "#EXTM3U\n", ""),
    ("bom", MEDIA, "#EXTM3U", "\ufeff#EXTM3U"),
    ("one-kind", MEDIA, "#EXT-X-ENDLIST", "#EXT-X-STREAM-INF:BANDWIDTH=1"),
    ("tag-twice", MEDIA, "#EXT-X-VERSION:7", "#EXT-X-VERSION:7\n#EXT-X-VERSION:7"),
    ("tag-number", MEDIA, "SEQUENCE:0\n#EXT-X-DIS", "SEQUENCE:-1\n#EXT-X-DIS"),
    ("target-duration", MEDIA, "#EXT-X-TARGETDURATION:4\n", ""),
    ("target-exceeded", MEDIA, "4.004", "4.5"),
    (
        "sequence-late",
        MEDIA.replace("#EXT-X-MEDIA-SEQUENCE:0\n", ""),
        "#EXT-X-ENDLIST",
        "#EXT-X-MEDIA-SEQUENCE:0\n#EXT-X-ENDLIST",
    ),
    ("date", MEDIA, "2026-01-01T00:00:00.000Z", "yesterday"),
    ("playlist-type", MEDIA, "TYPE:VOD", "TYPE:LIVE"),
    ("endlist", MEDIA, "#EXT-X-ENDLIST\n", ""),
    ("daterange", MEDIA, "#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:00.000Z\n", ""),
    ("tag-of-segment", MEDIA, "#EXT-X-ENDLIST", "#EXTINF:1,\n#EXT-X-ENDLIST"),
    ("tag-of-segment", MEDIA, "#EXTINF:2.5,", "#EXTINF:2.5,\n#EXTINF:2.5,"),
    ("extinf", MEDIA, "#EXTINF:2.5,\n", ""),
    ("extinf", MEDIA, "#EXTINF:2.5,", "#EXTINF:2.5"),
    ("byterange", MEDIA, "BYTERANGE:10\n", "BYTERANGE:x\n"),
    ("byterange-offset", MEDIA, "10@100", "10"),
    ("map", MEDIA, '#EXT-X-MAP:URI="init.mp4",BYTERANGE="100@0"\n', ""),
    ("key-none", MEDIA, "METHOD=SAMPLE-AES,", "METHOD=NONE,"),
    ("key-uri", MEDIA, 'URI="skd://a",', ""),
    ("key-iv", MEDIA, "0x00", "0x" + "0" * 33),
    ("version", MEDIA, "VERSION:7", "VERSION:5"),
    ("uri", MEDIA, "b.m4s", "b b.m4s"),
    ("attribute-list", MEDIA, 'VERSIONS="1"', 'VERSIONS="1"x'),
    ("attribute-list", MEDIA, "DURATION=1.5", "DURATION=1.5,"),
    ("attribute-twice", MEDIA, "IV=0x00", "IV=0x00,IV=0x00"),
    ("attribute-required", MEDIA, 'ID="x",', ""),
    ("attribute-kind", MEDIA, "IV=0x00", "IV=00"),
    ("attribute-kind", MEDIA, '"init.mp4"', "init.mp4"),
    ("attribute-word", MEDIA, "SAMPLE-AES", "ROT13"),
    ("media-uri", MULTI, ',FORCED=NO,URI="s.m3u8"', ""),
    ("media-uri", MULTI, '"CC1"', '"CC1",URI="x"'),
    ("instream-id", MULTI, ',INSTREAM-ID="CC1"', ""),
    ("forced", MULTI, '"CC1"', '"CC1",FORCED=NO'),
    (
        "name-twice",
        MULTI,
        "#EXT-X-SESSION-KEY",
        '#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",NAME="en",URI="x"\n#EXT-X-SESSION-KEY',
    ),
    ("group", MULTI, 'AUDIO="b"', 'AUDIO="z"'),
    ("captions-none", MULTI, 'CLOSED-CAPTIONS="c"', "CLOSED-CAPTIONS=NONE"),
    ("stream-uri", MULTI, "v.m3u8\n", ""),
    ("stream-inf", MULTI, "v.m3u8\n", "v.m3u8\nx.m3u8\n"),
    ("attribute-required", MULTI, 'BANDWIDTH=9,AUDIO="b"', 'AUDIO="b"'),
    ("average-bandwidth", MULTI, "AVERAGE-BANDWIDTH=8", "AVERAGE-BANDWIDTH=10"),
    ("iframe-attributes", MULTI, 'URI="i.m3u8"', 'URI="i.m3u8",FRAME-RATE=1'),
    ("session-key", MULTI, 'METHOD=SAMPLE-AES,URI="skd://a"', "METHOD=NONE"),
    ("session-data", MULTI, ',VALUE="y"', ""),
    ("group-members", MULTI, 'GROUP-ID="b",NAME="en"', 'GROUP-ID="b",NAME="fr"'),
    ("autoselect", MULTI, 'NAME="en",FORCED=NO', 'NAME="en",DEFAULT=YES,AUTOSELECT=NO'),
    (
        "default-twice",
        MULTI,
        'GROUP-ID="s",NAME="en",FORCED=NO,URI="s.m3u8"',
        'GROUP-ID="s",NAME="en",DEFAULT=YES,URI="x"\n'
        '#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",NAME="fr",DEFAULT=YES,URI="y"',
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "text", "old", "new"), BROKEN, ids=[f"{n}-{row[0]}" for n, row in enumerate(BROKEN)]
)
def test_what_breaks_a_rule_is_named_by_it_alone(rule, text, old, new):
    assert old in text
    assert rules(text.replace(old, new, 1)) == {rule}


def test_text_that_is_no_utf8_is_named():
    assert rules(MEDIA.encode().replace(b"title", b"\xff")) == {"utf-8"}


def test_a_violation_names_line_and_clause():
    (one,) = check_hls(MEDIA.replace("4.004", "4.5"))
    assert (one.where, one.clause) == ("line 13", "RFC 8216, 4.3.3.1")


@given(st.text(alphabet='#EXTINF-MAP:=,"\n 01.@ax') | st.binary(max_size=80))
def test_any_text_is_answered(text):
    for prefix in ("", "#EXTM3U\n"):
        check_hls(prefix + text if isinstance(text, str) else text)


# ---- with the segments ----------------------------------------------------------------------

FILM = movie(4, samples=25)
INDEX = fragdex.index(FILM, exact=True)
LIST = INDEX.export("hls", uri="film.mp4", segment_duration=0.5).decode()
VARIANTS = INDEX.export("hls", playlist="master", media_uri="list.m3u8", segment_duration=0.5)
FILES = {"main.m3u8": VARIANTS.decode(), "list.m3u8": LIST, "film.mp4": FILM}


def test_a_film_and_its_playlists_agree():
    assert check_hls(FILES) == []


def swapped(name, old, new):
    assert old in FILES[name]
    return FILES | {name: FILES[name].replace(old, new, 1)}


SIZE = VARIANTS.decode().split(":BANDWIDTH=")[1].split(",")[0]


def test_segments_that_are_not_what_the_playlist_says_are_named():
    low = VARIANTS.decode().replace(f":BANDWIDTH={SIZE}", f":BANDWIDTH={int(SIZE) - 100}")
    low = low.replace("AVERAGE-BANDWIDTH", "X-AVERAGE")
    assert rules(FILES | {"main.m3u8": low}) == {"bandwidth-real"}
    assert rules(swapped("main.m3u8", "avc1.", "avc3.")) == {"codecs-real"}
    assert rules(swapped("list.m3u8", "EXTINF:1.0", "EXTINF:1.1")) == {"extinf-real"}
    assert rules(FILES | {"film.mp4": FILM[:-1]}) >= {"byterange-end"}


def test_the_place_of_a_fault_in_a_nested_playlist_names_it():
    (one,) = check_hls(swapped("list.m3u8", "EXTINF:1.0", "EXTINF:1.1"))
    assert one.where.startswith("list.m3u8 line ")


def test_an_iframe_playlist_must_say_so():
    old = "#EXT-X-STREAM-INF"
    new = '#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=9999999,URI="list.m3u8"\n' + old
    assert rules(swapped("main.m3u8", old, new)) == {"iframes-only"}


def segmented(film, *, cut=None):
    """A media playlist of the whole film as one segment."""
    where = film.index(b"moof") - 4
    text = (
        "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:9\n#EXT-X-INDEPENDENT-SEGMENTS\n"
        '#EXT-X-MAP:URI="init"\n#EXTINF:4.0,\nsegment\n#EXT-X-ENDLIST\n'
    )
    return {"a.m3u8": text, "init": film[:where], "segment": film[where:cut]}


def test_an_independent_segment_begins_with_a_sync_sample():
    assert check_hls(segmented(FILM)) == []
    files = segmented(FILM)
    sync, other = b"\x64\x02\x00\x00\x00", b"\x64\x01\x01\x00\x00"
    files["segment"] = files["segment"].replace(sync, other, 1)
    assert rules(files) == {"independent"}


def test_a_segment_has_samples_and_a_map_is_an_initialization_segment():
    assert rules(segmented(FILM) | {"segment": b""}) == {"segment-empty"}
    assert rules(segmented(FILM) | {"init": b""}) == {"map-content"}


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("frag-*.mp4")), ids=lambda path: path.name)
def test_playlists_of_real_files_break_no_rule(path):
    if path.name == "frag-samples-in-moov.mp4":
        pytest.skip("no playlist can name the samples of a moov")
    index = fragdex.index(path, exact=True)
    text = index.export("hls", uri="film", segment_duration=0.5)
    main = index.export("hls", playlist="master", media_uri="list.m3u8", segment_duration=0.5)
    data = path.read_bytes()
    if len(index.periods) == 1:
        assert check_hls({"main.m3u8": main, "list.m3u8": text, "film": data}) == []
    assert check_hls({"list.m3u8": text, "film": data}) == []
