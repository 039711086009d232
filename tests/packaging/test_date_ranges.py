"""Events that playlists name: cues of SCTE 35 and ID3 tags, at their dates."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import fragdex
from fragdex.boxes import build, make_box, parse
from fragdex.packaging import date_ranges
from fragdex.testing import check_hls, movie

ID3 = "https://aomedia.org/emsg/ID3"
SCTE = "urn:scte:scte35:2013:bin"


def insertion(out: bool, cancelled: bool = False) -> bytes:
    """The beginning of a splice_info_section with a splice_insert."""
    return bytes([0xFC, *bytes(12), 5, *bytes(4), 0x80 * cancelled, 0x80 * out, *bytes(6)])


def with_events(*events: tuple[str, bytes, int]) -> bytes:
    """Four fragments of a second, an event before each: scheme, message, seconds."""
    boxes, number = [], 0
    for box in parse(movie(4, samples=5, fps=5)):
        if box.type == "moof" and number < len(events):
            scheme, message, seconds = events[number]
            about = {"scheme_id_uri": scheme, "value": "1", "message_data": message}
            about |= {"timescale": 10, "presentation_time": 10 * seconds, "id": 40 + number}
            boxes.append(make_box("emsg", version=1, event_duration=25, **about))
            number += 1
        boxes.append(box)
    return build(boxes)


def lines_of(data: bytes, **options: object) -> list[str]:
    made = fragdex.package(data, segment_duration=1, date_ranges=True, **options)  # type: ignore[arg-type]
    assert check_hls({name: made[name].read() for name in made}) == []
    return made["v1.m3u8"].read().decode().splitlines()


def test_cues_and_tags_stand_before_their_segments() -> None:
    data = with_events((SCTE, insertion(True), 1), ("urn:other", b"?", 1), (ID3, b"ID3", 2))
    lines = lines_of(data, began=datetime(2030, 1, 1, tzinfo=UTC))
    ranges = [line for line in lines if line.startswith("#EXT-X-DATERANGE")]
    assert ranges == [
        '#EXT-X-DATERANGE:ID="0-40",START-DATE="2030-01-01T00:00:01.000Z",'
        f'CLASS="{SCTE}",DURATION=2.500,SCTE35-OUT=0x{insertion(True).hex().upper()},X-VALUE="1"',
        '#EXT-X-DATERANGE:ID="1-42",START-DATE="2030-01-01T00:00:02.000Z",'
        f'CLASS="{ID3}",DURATION=2.500,X-MESSAGE-DATA=0x494433,X-VALUE="1"',
    ]
    dated = lines.index("#EXT-X-PROGRAM-DATE-TIME:2030-01-01T00:00:00.000Z")
    segments = [n for n, line in enumerate(lines) if line.endswith(".m4s")]
    assert dated < lines.index(ranges[0]) < segments[0]
    assert segments[1] < lines.index(ranges[1]) < segments[2]


@pytest.mark.parametrize(
    ("message", "name"),
    [
        (insertion(True), "SCTE35-OUT"),
        (insertion(False), "SCTE35-IN"),
        (insertion(True, cancelled=True), "SCTE35-CMD"),
        (insertion(True)[:19], "SCTE35-CMD"),
        (bytes(40), "SCTE35-CMD"),
    ],
)
def test_a_cue_says_out_or_in(message: bytes, name: str) -> None:
    (line,) = (x for x in lines_of(with_events((SCTE, message, 0))) if "DATERANGE" in x)
    assert f",{name}=0x" in line


def test_a_playlist_has_no_dates_unless_they_are_asked_for() -> None:
    made = fragdex.package(with_events((SCTE, insertion(True), 1)))
    text = made["v1.m3u8"].read()
    assert b"DATE" not in text
    assert b"emsg" in made["v1/0.m4s"].read()


def test_what_is_too_much_for_a_playlist_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(date_ranges, "MOST", 1)
    data = with_events((ID3, b"a", 0), (ID3, b"b", 1), (ID3, bytes(5000), 2))
    made = fragdex.package(data, date_ranges=True)
    assert made["v1.m3u8"].read().count(b"EXT-X-DATERANGE") == 1
    (finding,) = made.findings
    assert "2 events" in finding
    assert finding.code == "left-out"  # type: ignore[attr-defined]
