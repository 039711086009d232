"""`check_dash`: each rule names what breaks it, and nothing else is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.testing import check_dash, movie
from fragdex.testing.checks.dash import duration

FIXTURES = Path(__file__).parents[3] / "fixtures"
LIVE = """<?xml version="1.0"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" xmlns:x="urn:x" type="static" x:y="z"
 profiles="urn:mpeg:dash:profile:isoff-live:2011" mediaPresentationDuration="PT8S"
 minBufferTime="PT2S">
 <ProgramInformation><Title>film</Title></ProgramInformation>
 <Period id="0" start="PT0S" duration="PT4S">
  <AdaptationSet id="1" contentType="video" mimeType="video/mp4" maxWidth="64" par="4:3">
   <SegmentTemplate timescale="1000" media="$RepresentationID$/$Time$.m4s"
    initialization="$RepresentationID$/init.mp4">
    <SegmentTimeline><S t="0" d="1000" r="1"/><S t="2500" d="1500"/></SegmentTimeline>
   </SegmentTemplate>
   <Representation id="v1" bandwidth="9" codecs="x" width="64" frameRate="25/1"/>
   <Representation id="v2" bandwidth="8" codecs="x" width="32" sar="1:1"/>
  </AdaptationSet>
  <AdaptationSet id="2" contentType="audio" mimeType="audio/mp4" lang="en-US">
   <Role schemeIdUri="urn:mpeg:dash:role:2011" value="main"/>
   <Representation id="a1" bandwidth="9" codecs="y" audioSamplingRate="48000">
    <SegmentTemplate duration="2" media="a/$Number%05d$.m4s" initialization="a/$$init.mp4"/>
   </Representation>
  </AdaptationSet>
  <x:Other/>
 </Period>
 <Period id="1"><AdaptationSet mimeType="audio/mp4">
   <Representation id="a1" bandwidth="9"><SegmentTemplate duration="2" media="b/$Number$"/>
   </Representation></AdaptationSet></Period>
</MPD>
"""
RANGES = """<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static"
 profiles="urn:mpeg:dash:profile:isoff-on-demand:2011" mediaPresentationDuration="PT8S"
 minBufferTime="PT2S"><Period><AdaptationSet mimeType="video/mp4">
 <Representation id="v" bandwidth="9"><BaseURL>v.mp4</BaseURL>
 <SegmentBase indexRange="10-20" timescale="90000"><Initialization range="0-9"/></SegmentBase>
 </Representation></AdaptationSet></Period></MPD>"""
DYNAMIC = LIVE.replace(
    'type="static"',
    'type="dynamic" availabilityStartTime="2026-01-01T00:00:00Z" timeShiftBufferDepth="PT9S"'
    ' publishTime="2026-01-01T00:00:00.5Z" minimumUpdatePeriod="PT2S"',
)


def rules(*arguments):
    return {one.rule for one in check_dash(*arguments)}


@pytest.mark.parametrize("text", [LIVE, RANGES, DYNAMIC])
def test_what_breaks_no_rule_is_not_named(text):
    assert check_dash(text) == []
    assert check_dash(text.encode()) == []


BROKEN = [
    ("xml", LIVE, "</MPD>", ""),
    ("doctype", RANGES, "<MPD", "<!DOCTYPE MPD><MPD"),
    ("root", LIVE, "schema:mpd:2011", "schema:mpd:2010"),
    ("attribute-required", LIVE, 'bandwidth="8"', ""),
    ("attribute-required", LIVE, 'd="1500"', ""),
    ("attribute-unknown", LIVE, 'bandwidth="8"', 'bandwidth="8" bitrate="8"'),
    ("attribute-kind", LIVE, '"PT8S"', '"8"'),
    ("attribute-kind", LIVE, "25/1", "25/0"),
    ("attribute-kind", LIVE, "4:3", "4/3"),
    ("attribute-kind", LIVE, 'bandwidth="8"', 'bandwidth="-8"'),
    ("attribute-kind", LIVE, 'type="static"', 'type="vod"'),
    ("attribute-kind", RANGES, "10-20", "10@20"),
    ("element-unknown", LIVE, "<Role", '<S d="1"/><Role'),
    ("element-required", LIVE, '<S t="0" d="1000" r="1"/><S t="2500" d="1500"/>', ""),
    ("element-twice", RANGES, '<Initialization range="0-9"/>', '<Initialization range="0-9"/>' * 2),
    ("dynamic", DYNAMIC, 'availabilityStartTime="2026-01-01T00:00:00Z"', ""),
    ("dynamic", DYNAMIC, 'publishTime="2026-01-01T00:00:00.5Z"', ""),
    ("static", LIVE, 'type="static"', 'type="static" minimumUpdatePeriod="PT2S"'),
    ("static", LIVE, 'type="static"', 'timeShiftBufferDepth="PT2S"'),
    ("duration", LIVE, ' mediaPresentationDuration="PT8S"', ""),
    ("profiles", LIVE, "urn:mpeg:dash:profile:isoff-live:2011", "live"),
    ("period-id", DYNAMIC, ' id="1"><AdaptationSet', "><AdaptationSet"),
    ("id-twice", LIVE, '<Period id="1"', '<Period id="0"'),
    ("id-twice", LIVE, 'id="v2"', 'id="v1" qualityRanking="1"'),
    ("id-twice", LIVE, '<AdaptationSet id="2"', '<AdaptationSet id="1"'),
    ("period-start", LIVE, ' duration="PT4S"', ""),
    ("period-order", LIVE.replace("PT0S", "PT5S"), 'Period id="1"', 'Period id="1" start="PT1S"'),
    ("period-end", LIVE, '<Period id="1">', '<Period id="1" duration="PT5S">'),
    ("representation", RANGES, "<Period>", '<Period><AdaptationSet mimeType="video/mp4"/>'),
    ("bounds", LIVE, 'maxWidth="64"', 'maxWidth="63"'),
    ("bounds", LIVE, 'maxWidth="64"', 'minBandwidth="9"'),
    ("template-distinct", LIVE, "$RepresentationID$/$Time$", "$Time$"),
    ("mime-type", RANGES, ' mimeType="video/mp4"', ""),
    ("content-type", LIVE, 'contentType="audio"', 'contentType="video"'),
    ("one-address", LIVE, "<SegmentTemplate duration", "<SegmentBase/><SegmentTemplate duration"),
    ("address", LIVE, '<SegmentTemplate duration="2" media="b/$Number$"/>', ""),
    ("profile", RANGES, ' indexRange="10-20"', ""),
    ("profile", LIVE, '<SegmentTemplate duration="2" media="b/$Number$"/>', "<SegmentList/>"),
    ("range", RANGES, "10-20", "20-10"),
    ("timescale", RANGES, "90000", "0"),
    ("duration-twice", LIVE, 'timescale="1000"', 'timescale="1000" duration="1"'),
    ("template-duration", LIVE, 'duration="2" media="b', 'media="b'),
    ("identifier", LIVE, "$Number%05d$", "$Number$$Nope$"),
    ("identifier", LIVE, "a/$$init", "a/$init"),
    ("number-and-time", LIVE, "b/$Number$", "b/$Number$$Time$"),
    ("identifier-of-media", LIVE, "a/$$init", "a/$Number$init"),
    ("media-constant", LIVE, "b/$Number$", "b/"),
    ("timeline-duration", LIVE, 'd="1500"', 'd="0"'),
    ("timeline-repeat", LIVE, 'd="1500"', 'd="1500" r="-2"'),
    ("timeline-overlap", LIVE, 't="2500"', 't="1999"'),
    ("timeline-open", LIVE, 'r="1"/><S t="2500"', 'r="-1"/><S'),
]  # fmt: skip


# Representations of one @id have segments of one address; a profile has one kind of addressing.
ALSO = {"id-twice": {"template-distinct"}, "one-address": {"profile"}}


@pytest.mark.parametrize(
    ("rule", "text", "old", "new"), BROKEN, ids=[f"{n}-{row[0]}" for n, row in enumerate(BROKEN)]
)
def test_what_breaks_a_rule_is_named_by_it_alone(rule, text, old, new):
    assert old in text
    broken = rules(text.replace(old, new, 1))
    assert rule in broken
    assert broken - {rule} <= ALSO.get(rule, set())


def test_a_violation_names_the_path_of_its_element():
    (one,) = check_dash(LIVE.replace('t="2500"', 't="1999"'))
    assert one.where.endswith("/AdaptationSet[1]/SegmentTemplate[1]/SegmentTimeline[1]/S[2]")


@given(st.text(alphabet='<>/"= MPDS:x0'))
def test_any_text_is_answered(text):
    check_dash(text)
    check_dash(LIVE.replace("PT4S", text.replace("<", "").replace('"', "")))


@given(st.integers(0, 400), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_durations_are_seconds(days, hours, minutes, seconds):
    text = f"P{days}DT{hours}H{minutes}M{seconds}S"
    assert duration(text) == ((days * 24 + hours) * 60 + minutes) * 60 + seconds


# ---- with the segments ----------------------------------------------------------------------

FILM = movie(4, samples=25)
MADE = fragdex.package(fragdex.index(FILM, exact=True), source=FILM, segment_duration=1)
FILES = {name: MADE[name].read(source=FILM) for name in MADE}
MPD = FILES["manifest.mpd"].decode()
ONE_FILE = movie(4, samples=25, sidx=True)
BASE = fragdex.index(ONE_FILE).export("dash", uri="film", source=ONE_FILE).decode()


def read(files):
    return lambda uri: files[uri]


def test_packages_and_their_segments_agree():
    assert check_dash(MPD, read(FILES)) == []
    assert "SegmentBase" in BASE
    assert check_dash(BASE, lambda uri: ONE_FILE) == []


def test_segments_that_are_not_what_the_manifest_says_are_named():
    assert rules(MPD.replace("avc1.", "avc3."), read(FILES)) == {"codecs-real"}
    rate = MPD.split('bandwidth="')[1].split('"')[0]
    assert rules(MPD.replace(f'"{rate}"', '"100"'), read(FILES)) == {"bandwidth-real"}
    assert rules(MPD, read(FILES | {"v1/init.mp4": b""})) == {"init"}
    first = next(name for name in FILES if name.endswith("/0.m4s"))
    assert rules(MPD, read(FILES | {first: b""})) == {"segment-empty"}
    # the flags of the first sample, before the number of the second moof
    broken = FILES[first].replace(b"\x02\x00\x00\x00", b"\x01\x01\x00\x00", 1)
    assert rules(MPD, read(FILES | {first: broken})) >= {"sap-real"}


def test_times_of_the_timeline_are_those_of_the_segments():
    # one second is 25,000 ticks
    assert 'd="25000"' in MPD
    swapped = {**FILES, "v1/25000.m4s": FILES["v1/50000.m4s"]}
    assert "time-real" in rules(MPD, read(swapped))
    late = {name: FILES["v1/75000.m4s"] if name.endswith("m4s") else FILES[name] for name in FILES}
    assert "time-real" in rules(MPD, read(late))
    short = MPD.replace('d="25000"', 'd="20000"')
    named = read({**FILES, "v1/20000.m4s": b"", "v1/40000.m4s": b"", "v1/60000.m4s": b""})
    assert "duration-real" in rules(short, named)


def test_a_sidx_is_where_the_manifest_says_and_names_subsegments():
    span = BASE.split('indexRange="')[1].split('"')[0]
    first, last = map(int, span.split("-"))
    assert rules(BASE.replace(span, f"{first + 1}-{last}"), lambda uri: ONE_FILE) == {"index-range"}
    assert rules(BASE.replace(span, f"{first}-{last + 1}"), lambda uri: ONE_FILE) == {"index-exact"}
    assert rules(BASE, lambda uri: ONE_FILE[:-1]) == {"index-reference"}


@pytest.mark.parametrize(
    "name",
    ["frag-cmaf.mp4", "frag-delay-moov-start-7s.mp4", "frag-audio-sidx.m4a", "frag-ntsc.mp4"],
)
def test_manifests_of_real_files_break_no_rule(name):
    data = (FIXTURES / name).read_bytes()
    index = fragdex.index(data, exact=True)
    for source in (None, data):
        text = index.export("dash", uri="film", segment_duration=0.5, source=source)
        assert check_dash(text, lambda uri: data) == []
