"""Captions of every kind are read whole, or refused with the line."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragdex.errors import MalformedCaptions
from fragdex.muxing.captions import parse_json, parse_srt, parse_webvtt

VTT = """WEBVTT - made by hand
Kind: captions

NOTE
a remark

STYLE
::cue { color: white }

REGION
id:fred

intro
00:01.000 --> 00:02.500 align:start position:10%
Hello,
<v Ann>world

01:00:00.000 --> 01:00:00.000

lonely
"""
SRT = """1
00:00:01,000 --> 00:00:02,500
Hello,
world

2
0:00:03.5 --> 00:00:04,000 X1:1
7

still the second

3
00:00:05,000 --> 00:00:06,000
"""
WORDS = {"text": "Hi", "start": 0.5, "end": 1, "confidence": 0.9}
JSON = {"segments": [{"start": 0.5, "end": 2, "text": "Hi"}], "word_segments": [WORDS], "x": 1}


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_webvtt(ends, mark):
    cues = parse_webvtt((mark + VTT.replace("\n", ends)).encode())
    assert cues == [(1000, 2500, "Hello,\n<v Ann>world"), (3_600_000, 3_600_000, "")]


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_srt(ends, mark):
    cues = parse_srt((mark + SRT.replace("\n", ends)).encode())
    assert cues == [
        (1000, 2500, "Hello,\nworld"),
        (3500, 4000, "7\n\nstill the second"),
        (5000, 6000, ""),
    ]


def test_json():
    assert parse_json(json.dumps(JSON).encode()) == [(500, 2000, "Hi")]
    assert parse_json(b'{"segments": []}') == []


def test_webvtt_without_a_cue_is_webvtt():
    assert parse_webvtt(b"WEBVTT") == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("WEBVTTx", 1),
        ("1\n00:01.000 --> 00:02.000", 1),
        ("WEBVTT\n\n00:01,000 --> 00:02,000\nx", 3),
        ("WEBVTT\n\n00:02.000 --> 00:01.000\nx", 3),
        ("WEBVTT\n\na\n1 --> 2\nx", 4),
        ("WEBVTT\n\n00:01.000 --> 00:02.000\nx\n00:03.000 --> 00:04.000", 5),
        ("WEBVTT\n\n999999:00:01.000 --> 999999:00:02.000\nx", 3),
    ],
)
def test_webvtt_that_is_none(text, line):
    with pytest.raises(MalformedCaptions) as refused:
        parse_webvtt(text.encode())
    assert refused.value.line == line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("WEBVTT\n\n00:01.000 --> 00:02.000", 1),
        ("1\n\n00:00:01,000 --> 00:00:02,000", 1),
        ("1\n00:00:02,000 --> 00:00:01,000", 2),
        ("words", 1),
    ],
)
def test_srt_that_is_none(text, line):
    with pytest.raises(MalformedCaptions) as refused:
        parse_srt(text.encode())
    assert refused.value.line == line


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "[" * 100_000,
        '{"segments": {}}',
        '{"segments": [1]}',
        '{"segments": [{"start": 0, "end": 1}]}',
        '{"segments": [{"start": "0", "end": 1, "text": ""}]}',
        '{"segments": [{"start": true, "end": 1, "text": ""}]}',
        '{"segments": [{"start": 2, "end": 1, "text": ""}]}',
        '{"segments": [{"start": -1, "end": 1, "text": ""}]}',
        '{"segments": [{"start": 0, "end": NaN, "text": ""}]}',
        '{"segments": [{"start": 0, "end": 1e400, "text": ""}]}',
        f'{{"segments": [{{"start": 0, "end": 1{"0" * 400}, "text": ""}}]}}',
        '{"segments": [], "word_segments": {}}',
        '{"segments": [], "word_segments": [{"start": 0}]}',
    ],
)
def test_json_that_is_no_captions(text):
    with pytest.raises(MalformedCaptions):
        parse_json(text.encode())


@pytest.mark.parametrize("parse", [parse_webvtt, parse_srt, parse_json])
def test_another_encoding_is_refused_with_its_line(parse):
    with pytest.raises(MalformedCaptions, match="UTF-8") as refused:
        parse(b"WEBVTT\n\nGr\xfc\xdfe")
    assert refused.value.line == 3


@pytest.mark.parametrize("parse", [parse_webvtt, parse_srt, parse_json])
@given(data=st.data())
def test_noise_is_read_or_refused_and_nothing_else(parse, data):
    whole = {parse_webvtt: VTT, parse_srt: SRT, parse_json: json.dumps(JSON)}[parse].encode()
    noise = data.draw(st.binary(max_size=30) | st.sampled_from([b"\n\n", b" --> ", b"00:00:01,5"]))
    place = data.draw(st.integers(0, len(whole)))
    until = data.draw(st.integers(place, len(whole)))
    try:
        cues = parse(whole[:place] + noise + whole[until:])
    except MalformedCaptions:
        return
    assert all(0 <= start <= end for start, end, _ in cues)


@pytest.mark.parametrize(("parse", "piece", "result"), [
    (parse_webvtt, b"00:00:01.000 --> ", 1),
    (parse_webvtt, b"1\n", 0),
    (parse_webvtt, b"00:00:01,000 --> 00:00:02,000\n", "not the timing of a cue (line 3)"),
    (parse_webvtt, b" ", 0),
    (parse_webvtt, b"\n", 0),
    (parse_srt, b"00:00:01.000 --> ", 1),
    (parse_srt, b"1\n", "a number and the timing of a cue are expected (line 1)"),
    (parse_srt, b"00:00:01,000 --> 00:00:02,000\n", 1),
    (parse_srt, b" ", "no cues"),
    (parse_srt, b"\n", "no cues"),
])  # fmt: skip
def test_a_file_at_the_limit_is_read_or_refused(parse, piece, result):
    data = b"WEBVTT\n\n" if parse is parse_webvtt else b""
    data += piece * ((2 << 20) // len(piece))
    if isinstance(result, int):
        assert len(parse(data)) == result
    else:
        with pytest.raises(MalformedCaptions, match=re.escape(result)):
            parse(data)
