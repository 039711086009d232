"""The JSON form: segments as players need them, and strangers' texts held against its rules."""

from __future__ import annotations

import contextlib
import itertools
import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragdex.byterange import ByteRange
from fragdex.errors import BuildError, DamagedIndex, FragdexError, InexactIndex, LimitExceeded
from fragdex.formats import wire, wire_reading
from fragdex.fragments.table import NULL, SampleTable
from fragdex.fragments.track_info import Edit, Movie, TrackInfo
from fragdex.seeking.model import FileInfo, How, Index, Period, Track
from strategies.indexes import (
    indexes,
    sample_tables,
    tables_from_samples,
    track_infos,
)

INFO = TrackInfo(1, "vide", "video", 1000, "avc1", "avc1.64001f", width=640, height=360)
HOW = How("boxes", True)


def samples_of(seconds: int, *, gop: int = 1000, fps: int = 10, start: int = 0) -> SampleTable:
    """Ticks of 1/1000 s, a sync sample every `gop` ticks, 10 bytes a sample."""
    number = np.arange(seconds * fps)
    dts = start + number * (1000 // fps)
    return SampleTable.of(
        {
            "offset": 1000 + number * 10,
            "size": np.full(len(number), 10),
            "dts": dts,
            "cts": dts,
            "duration": np.full(len(number), 1000 // fps),
            "sync": (dts - start) % gop == 0,
        }
    )


def index_of(
    samples: SampleTable,
    cuts: list[int],
    *,
    info: TrackInfo = INFO,
    init: tuple[ByteRange, ...] = (ByteRange(0, 700),),
) -> Index:
    fragments, sync = tables_from_samples(samples, cuts)
    track = Track(info, fragments, sync, shift=info.shift(1000), samples=samples)
    return Index(FileInfo(), HOW, [Period(0, init, Movie(1000, 0, True, (info,)), (track,))])


def told(index: Index, **options: Any) -> Any:
    return json.loads(wire.write(index, **options))


def test_the_record_of_a_video_track() -> None:
    index = index_of(samples_of(4), list(range(10, 40, 10)))
    assert told(index) == {
        "1": {
            "track": 1,
            "type": "video",
            "width": 640,
            "height": 360,
            "timescale": 1000,
            "sample_count": 40,
            "codec": "avc1.64001f",
            "duration": 4000,
            "initSegment": {"offset": 0, "size": 700},
            "segments": [
                {"cts": 0, "dts": 0, "duration": 2000, "offset": 1000, "size": 200},
                {"cts": 2000, "dts": 2000, "duration": 2000, "offset": 1200, "size": 200},
            ],
        }
    }


def test_the_record_of_a_sound_track() -> None:
    info = TrackInfo(
        2, "soun", "audio", 1000, "mp4a", "mp4a.40.2", channel_count=2, sample_rate=48000,
        sample_size=16,
    )  # fmt: skip
    record = told(index_of(samples_of(1), [], info=info))["2"]
    assert record["type"] == "audio"
    assert (record["channel_count"], record["sample_rate"], record["sample_size"]) == (2, 48000, 16)
    assert "width" not in record


def test_other_kinds_of_tracks_are_left_out() -> None:
    info = replace(INFO, handler="text", kind="text")
    assert told(index_of(samples_of(1), [], info=info)) == {}


def test_segments_of_half_a_second_where_asked_for() -> None:
    index = index_of(samples_of(4), list(range(10, 40, 10)))
    assert len(told(index, segment_duration=0.5)["1"]["segments"]) == 4
    assert len(told(index, segment_duration=1.0005)["1"]["segments"]) == 2
    assert len(told(index, segment_duration=1000000)["1"]["segments"]) == 1


def test_a_fragment_without_a_sync_sample_in_front_starts_no_segment() -> None:
    index = index_of(samples_of(8, gop=4000), list(range(10, 80, 10)))
    segments = told(index)["1"]["segments"]
    assert [s["cts"] for s in segments] == [0, 4000]
    assert [s["size"] for s in segments] == [400, 400]


def test_a_short_rest_belongs_to_the_last_segment() -> None:
    index = index_of(samples_of(5), list(range(10, 50, 10)))
    assert [s["duration"] for s in told(index)["1"]["segments"]] == [2000, 3000]


def test_the_edit_list_is_applied() -> None:
    info = replace(INFO, edits=(Edit(0, 400),))
    record = told(index_of(samples_of(4, start=400), [20], info=info))["1"]
    assert [s["cts"] for s in record["segments"]] == [0, 2000]
    assert [s["dts"] for s in record["segments"]] == [0, 2000]
    assert "startTimeOffsetMs" not in record


@pytest.mark.parametrize(("start", "offset"), [(10, None), (11, 11), (-10, None), (-2500, -2500)])
def test_a_late_or_early_start_is_told(start: int, offset: int | None) -> None:
    record = told(index_of(samples_of(4, start=start), [20]))["1"]
    assert record.get("startTimeOffsetMs") == offset
    assert record["segments"][0]["cts"] == start


def test_pictures_shown_before_the_sync_sample_count_into_its_segment() -> None:
    samples = samples_of(4, gop=2000)
    cts = samples.cts.copy()
    cts[20] += 150  # an open group of pictures: the next two are shown before it
    cts[21] -= 60
    index = index_of(replace(samples, cts=cts), [20])
    first, second = told(index, segment_duration=1.9)["1"]["segments"]
    assert (second["cts"], second["dts"]) == (2040, 2000)
    assert (first["duration"], second["duration"]) == (2040, 1960)


@given(sample_tables(), st.sets(st.integers(1, 23), max_size=8), st.integers(0, 9000), st.data())
def test_segments_cover_the_track_and_hold_to_their_rules(
    samples: SampleTable, cuts: set[int], min_ticks: int, data: st.DataObject
) -> None:
    chosen = sorted(cut for cut in cuts if cut < len(samples))
    edits = data.draw(st.sampled_from([(), (Edit(0, 77),), (Edit(3, -1), Edit(0, 5))]))
    info = replace(INFO, edits=edits, timescale=90_000)
    index = index_of(samples, chosen, info=info)
    track = index.tracks[0]
    segments = wire.segments(track, min_ticks)
    if not len(samples):
        assert not len(segments.row)
        return
    assert segments.row[0] == 0
    shift = track.shift + Fraction(1, 2)
    edges = [*track.fragments.sample_start[segments.row].tolist(), len(samples)]
    for i, (start, stop) in enumerate(itertools.pairwise(edges)):
        part = samples.rows(slice(start, stop))
        assert i == 0 or part.sync[0]
        assert segments.cts[i] == (part.cts.min() + shift) // 1
        assert segments.dts[i] == (part.dts[0] + shift) // 1
        assert segments.offset[i] <= part.offset.min()
        assert segments.offset[i] + segments.size[i] == (part.offset + part.size).max()
        assert len(segments.row) == 1 or segments.duration[i] >= min_ticks
    assert segments.duration.sum() == (samples.cts + samples.duration).max() - samples.cts.min()


def test_an_index_without_samples_and_sync_says_so() -> None:
    index = index_of(samples_of(2), [10])
    track = index.tracks[0]
    rows = replace(track.fragments, first_sync=np.full(2, NULL))
    vague = Track(track.info, rows, track.sync_samples, exact=False)
    index = Index(FileInfo(), HOW, [replace(index.periods[0], tracks=(vague,))])
    with pytest.raises(InexactIndex, match="exact=True"):
        wire.write(index)


def test_segments_without_a_moov_say_what_is_missing() -> None:
    index = index_of(samples_of(2), [10], info=TrackInfo.unknown(1))
    with pytest.raises(InexactIndex, match="init="):
        wire.write(index)


def test_fragments_without_samples_are_passed_over() -> None:
    index = index_of(samples_of(4), [20])
    track = index.tracks[0]
    row = {n: np.append(a, NULL) for n, a in track.fragments.columns().items() if n != "flags"}
    row |= {"offset": np.append(track.fragments.offset, 5000), "flags": np.zeros(3)}
    row |= {n: np.append(getattr(track.fragments, n), 0) for n in ("size", "sample_count")}
    longer = Track(track.info, type(track.fragments).of(row), track.sync_samples)
    assert len(wire.segments(longer, 2000).row) == 2


def test_what_lies_behind_the_end_of_a_cut_file_is_left_out() -> None:
    index = index_of(samples_of(8), list(range(20, 80, 20)))
    index.file = FileInfo(size=1550)
    assert [s["offset"] for s in told(index)["1"]["segments"]] == [1000, 1200]
    assert wire.read(wire.write(index), size=1550).complete


def test_a_track_in_two_periods_needs_a_choice() -> None:
    one = index_of(samples_of(2), [])
    other = replace(one.periods[0], number=1, init=(ByteRange(9000, 9100),))
    index = Index(FileInfo(), HOW, [one.periods[0], other])
    with pytest.raises(BuildError, match="several periods"):
        wire.write(index)
    assert told(index, period=1)["1"]["initSegment"] == {"offset": 9000, "size": 100}


def test_an_init_segment_in_two_pieces() -> None:
    samples = samples_of(2)
    near = index_of(samples, [], init=(ByteRange(0, 24), ByteRange(32, 700)))
    assert told(near)["1"]["initSegment"] == {"offset": 0, "size": 700}
    far = index_of(samples, [], init=(ByteRange(0, 24), ByteRange(9000, 9700)))
    assert told(far)["1"]["initSegment"] == {"offset": 9000, "size": 700}
    none = index_of(samples, [], init=())
    assert told(none)["1"]["initSegment"] == {"offset": 0, "size": 0}


# ---- reading


@pytest.mark.parametrize(
    "text", ["{", "{1", "{,", '{"1"', '{"1":{', '{"1":{"segments":{', "[", "[{"]
)
def test_a_place_is_one_of_the_text(text: str) -> None:
    """`/` would be the member with the empty name (RFC 6901, 5)."""
    with pytest.raises(DamagedIndex) as refused:
        wire.read(text.encode())
    assert "" not in (refused.value.path or "").split("/")[1:]


def test_what_is_read_is_written_again_with_all_it_did_not_know() -> None:
    text = told(index_of(samples_of(4), [20]))
    text["1"] |= {"bitrate": {"max": [1, None]}, "language": "eng"}
    text["1"]["initSegment"]["md5"] = "00"
    text["1"]["segments"][1]["sap"] = 1
    text["-1"] = text["1"] | {"track": -1, "codec": None, "width": None}
    text["version"] = 3
    index = wire.read(json.dumps(text).encode())
    assert json.loads(wire.write(index)) == text
    assert index.how.method == "index"
    assert not index.exact


def test_what_a_track_may_leave_out_is_unknown() -> None:
    text = told(index_of(samples_of(4), [20]))
    known = ("track", "type", "timescale", "initSegment", "segments")
    text["1"] = {name: text["1"][name] for name in known}
    info = wire.read(json.dumps(text).encode()).track(1).info
    assert info == TrackInfo(1, "vide", "video", 1000, "", None, 0)
    assert (
        json.loads(wire.write(wire.read(json.dumps(text).encode())))["1"].items()
        >= text["1"].items()
    )


def test_every_number_of_a_track_is_read() -> None:
    text = told(index_of(samples_of(4), [20]))
    numbers = {name: 100 + n for n, name in enumerate(wire_reading.NUMBERS)}
    text["1"] |= numbers
    index = wire.read(json.dumps(text).encode())
    info = index.track(1).info
    count = numbers.pop("sample_count")  # of all samples, which this form does not have
    numbers["media_duration"] = numbers.pop("duration")
    assert {name: getattr(info, name) for name in numbers} == numbers
    assert index.kept["1"]["sample_count"] == count


def test_an_index_from_json_answers_seeks() -> None:
    written = index_of(samples_of(8), list(range(20, 80, 20)))
    index = wire.read(wire.write(written))
    for time in (0, 1.999, 2, 3.5, 7.99, 9):
        assert index.track(1).seek(time).range == written.track(1).seek(time).range
        assert index.track(1).seek(time).clamped == written.track(1).seek(time).clamped
    assert index.track(1).info.width == 640
    assert index.periods[0].init == (ByteRange(0, 700),)
    with pytest.raises(InexactIndex):
        _ = index.track(1).samples


def test_tracks_in_files_of_their_own_have_their_own_init_segments() -> None:
    text = told(index_of(samples_of(4), [20]))
    text["2"] = text["1"] | {"track": 2, "initSegment": {"offset": 0, "size": 650}}
    index = wire.read(json.dumps(text).encode(), size={1: 1400, 2: 1400})
    assert [period.init[0].size for period in index.periods] == [700, 650]
    assert index.span(0, 1, tracks=[2]).init == (ByteRange(0, 650),)
    assert json.loads(wire.write(index)) == text


@given(indexes(max_periods=1), st.integers(0, 4000), st.integers(1, 90))
def test_pieces_of_any_size_give_the_same(index: Index, ms: int, step: int) -> None:
    try:
        data = wire.write(index, segment_duration=ms / 1000)
    except InexactIndex:
        return
    try:
        whole = wire.read(data)
    except DamagedIndex:  # drawn composition offsets may put the cuts out of order
        return
    pieces = wire.read_pieces(data[i : i + step] for i in range(0, len(data), step))
    assert wire.write(whole) == wire.write(pieces)
    assert [t.fragments for t in whole.tracks] == [t.fragments for t in pieces.tracks]


def test_numbers_are_whole_wherever_the_text_is_cut() -> None:
    """Of `1.5` the piece may end after the point, where `1` is a number by itself."""
    text = b'{"a": [1.5, 2e3, -0.25E-7, 12, 0, 1e+2, true, "1.e"], "b": 20.25}'
    for first in range(len(text)):
        for second in range(first, len(text)):
            stream = wire_reading.JsonStream([text[:first], text[first:second], text[second:]])
            read = {
                key: list(stream.elements()) if key == "a" else stream.value()
                for key in stream.names()
            }
            stream.end()
            assert read == json.loads(text), (first, second)


GOOD = told(index_of(samples_of(4), [20]))


def _changed(path: str, value: object) -> bytes:
    text = json.loads(json.dumps(GOOD))
    *way, last = [int(p) if p.isdigit() and i > 1 else p for i, p in enumerate(path.split("/"))][1:]
    at = text
    for step in way:
        at = at[step]
    if value is ...:
        del at[last]
    else:
        at[last] = value
    return json.dumps(text).encode()


@pytest.mark.parametrize(
    ("path", "value", "pointer"),
    [
        ("/1/type", "text", "/1/type"),
        ("/1/type", ..., "/1"),
        ("/1/timescale", 0, "/1"),
        ("/1/timescale", -5, "/1/timescale"),
        ("/1/timescale", "1000", "/1/timescale"),
        ("/1/track", 2, "/1/track"),
        ("/1/codec", 7, "/1/codec"),
        ("/1/width", 1.5, "/1/width"),
        ("/1/startTimeOffsetMs", "0", "/1/startTimeOffsetMs"),
        ("/1/initSegment", ..., "/1"),
        ("/1/initSegment", [0, 1], "/1/initSegment"),
        ("/1/initSegment/size", ..., "/1/initSegment"),
        ("/1/initSegment/size", 10**6, "/1/initSegment"),
        ("/1/segments", ..., "/1"),
        ("/1/segments", {}, "/1/segments"),
        ("/1/segments/1", None, "/1/segments/1"),
        ("/1/segments/1/dts", ..., "/1/segments/1"),
        ("/1/segments/1/dts", True, "/1/segments/1/dts"),
        ("/1/segments/1/dts", -1, "/1/segments/1/dts"),
        ("/1/segments/1/cts", -1, "/1/segments/1/cts"),
        ("/1/segments/1/cts", 2**63, "/1/segments/1/cts"),
        ("/1/segments/1/offset", 1100, "/1/segments/1/offset"),
        ("/1/segments/1/offset", -1, "/1/segments/1/offset"),
        ("/1/segments/1/size", 201, "/1/segments/1/size"),
        ("/1/segments/1/duration", -1, "/1/segments/1/duration"),
    ],
)
def test_what_breaks_a_rule_is_refused_with_its_place(
    path: str, value: object, pointer: str
) -> None:
    with pytest.raises(DamagedIndex) as caught:
        wire.read(_changed(path, value), size=1400)
    assert caught.value.path == pointer


def test_the_same_is_taken_where_the_file_is_not_known_yet() -> None:
    assert wire.read(_changed("/1/segments/1/size", 201)).track(1).fragments.size[1] == 201


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "an object"),
        (b"[]", "an object"),
        (b"{", "JSON"),
        (b'{"1"', "a colon"),
        (b'{"a":1', "one of ,}"),
        (b'{"a":1,}', "JSON"),
        (b'{"a":1 "b":2}', "one of ,}"),
        (b'{"a":1}x', "the end"),
        (b"{1:2}", "a key in quotes"),
        (b'{"a":1,"a":2}', "each key once"),
        (b'{"a":NaN}', "JSON"),
        (b'{"a":\xff}', "UTF-8"),
        (b'{"a":"\xe2\x82', "UTF-8"),
        (b'{"a":' + b"[" * 100_000, "nested"),
        (b'{"a":' + b"9" * 5000 + b"}", "JSON"),
        (b'{"1":3}', "an object"),
        (b'{"1":{}}', "a key type"),
    ],
)
def test_what_is_no_such_json_is_refused(text: bytes, message: str) -> None:
    for pieces in ([text], [text[i : i + 1] for i in range(min(len(text), 200))] + [text[200:]]):
        with pytest.raises((DamagedIndex, LimitExceeded), match=message):
            wire.read_pieces(pieces)


def test_limits_hold() -> None:
    long = b'{"a":"' + b"x" * (wire_reading.MAX_VALUE_SIZE * 2) + b'"}'
    with pytest.raises(LimitExceeded, match="too long"):
        wire.read(long)
    many = {f"k{i}": "x" * 1000 for i in range(wire_reading.MAX_KEPT_SIZE // 1000 + 1)}
    with pytest.raises(LimitExceeded, match="unknown keys"):
        wire.read(json.dumps(many).encode())
    tracks = {str(i): GOOD["1"] | {"track": i} for i in range(1, wire_reading.MAX_TRACKS + 2)}
    with pytest.raises(LimitExceeded, match="tracks"):
        wire.read(json.dumps(tracks).encode())


@given(st.binary(max_size=200) | st.text(alphabet='{}[]:,"1a \\.-e', max_size=60).map(str.encode))
def test_random_texts_raise_our_errors_alone(data: bytes) -> None:
    with contextlib.suppress(FragdexError):
        wire.read(data)


@given(st.data())
def test_any_value_in_any_place_raises_our_errors_alone(data: st.DataObject) -> None:
    text = json.loads(json.dumps(GOOD))
    value = data.draw(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
        | st.just([]) | st.just({})
    )  # fmt: skip
    at = text["1"]
    if data.draw(st.booleans()):
        at = data.draw(st.sampled_from([*at["segments"], at["initSegment"]]))
    at[data.draw(st.sampled_from(sorted(at)))] = value
    try:
        index = wire.read(json.dumps(text).encode(), size=1400)
        index.track(1).seek(1.5)
        wire.write(index)
    except FragdexError:
        pass


@given(track_infos())
def test_any_track_can_be_told(info: TrackInfo) -> None:
    index = index_of(samples_of(4), [20], info=info)
    assert len(told(index)) == (info.kind in ("video", "audio"))
