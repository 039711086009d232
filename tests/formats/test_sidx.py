"""Segment indexes: what they say is found wherever it stands, and what is written is read back."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.boxes import build, make_box, parse
from fragdex.byterange import ByteRange
from fragdex.formats.sidx import boxes
from fragdex.formats.subsegments import Subsegments
from fragdex.fragments.findings import Findings
from fragdex.fragments.table import NULL, FragmentFlags
from fragdex.fragments.track_info import Edit, Movie, TrackInfo
from fragdex.indexing.sidx_reading import MAX_DEPTH, SidxReader, rescaled, tables

FIXTURES = Path(__file__).parents[2] / "fixtures"

Row = tuple[int, int, int, int, int, int]


def box(references: list[Row], *, stream: int = 1, **fields: int) -> bytes:
    sidx = make_box("sidx", reference_ID=stream, references=references, **fields)
    return build(sidx)


def media(size: int, duration: int = 100) -> Row:
    return (0, size, duration, 1, 1, 0)


def read_file(data: bytes, known: list[int], leads: tuple[ByteRange, ...] = ()) -> SidxReader:
    """A reader that was given the boxes at some places and asks for the others."""
    reader = SidxReader(leads)
    for at in known:
        reader.feed(at, data[at:])
    for _ in range(100):
        if not reader.need:
            return reader
        for part in reader.need:
            reader.feed(part.start, data[part.start : part.stop])
    raise AssertionError("the reader never has enough")


def info(
    track: int, timescale: int, *, kind: str = "video", edits: tuple[Edit, ...] = ()
) -> TrackInfo:
    return TrackInfo(track, "vide", kind, timescale, "avc1", None, edits=edits)


# --- hierarchies -----------------------------------------------------------------------------


@st.composite
def hierarchies(draw: st.DrawFn) -> tuple[bytes, list[tuple[int, int, int, int]]]:
    """A file of nested sidx boxes and media, and the (offset, size, time, duration) of each leaf.

    Boxes stand before all media they speak of, or each in front of its own part.
    """
    in_front = draw(st.booleans())
    clock = draw(st.integers(0, 1 << 40))

    def tree(depth: int) -> list:
        count = draw(st.integers(1, 3))
        if depth == 0:
            return [draw(st.tuples(st.integers(1, 50), st.integers(0, 90))) for _ in range(count)]
        return [
            tree(depth - 1)
            if draw(st.booleans())
            else draw(st.tuples(st.integers(1, 50), st.integers(0, 90)))
            for _ in range(count)
        ]

    root = tree(draw(st.integers(0, 3)))

    def duration(node: list | tuple[int, int]) -> int:
        return node[1] if isinstance(node, tuple) else sum(map(duration, node))

    def empty(node: list, time: int) -> bytes:
        return box([media(0)] * len(node), version=1, earliest_presentation_time=time)

    def written(node: list, time: int) -> bytes:
        """A sidx whose children follow it with their media."""
        rows, body = [], b""
        at = time
        for child in node:
            if isinstance(child, tuple):
                rows.append(media(child[0], child[1]))
                body += bytes(child[0])
            else:
                inside = written(child, at)
                rows.append((1, len(inside), duration(child), 1, 1, 0))
                body += inside
            at += duration(child)
        head = box(rows, version=1, earliest_presentation_time=time, timescale=1000)
        return head + body

    if not in_front:
        data = written(root, clock)
    else:
        # A root with one level below it; all boxes first, all media behind.
        groups = [n if isinstance(n, list) else [n] for n in root]
        flat = [list(_leaves(group)) for group in groups]
        sizes = [len(empty(group, clock)) for group in flat]
        rows, at = [], clock
        for size, group in zip(sizes, flat, strict=True):
            rows.append((1, size, sum(d for _, d in group), 1, 1, 0))
            at += sum(d for _, d in group)
        data = box(rows, version=1, earliest_presentation_time=clock, timescale=1000)
        at, before = clock, 0
        for number, group in enumerate(flat):
            data += box(
                [media(size, d) for size, d in group],
                version=1,
                timescale=1000,
                earliest_presentation_time=at,
                first_offset=sum(sizes[number + 1 :]) + before,
            )
            at += sum(d for _, d in group)
            before += sum(size for size, _ in group)
        data += bytes(before)
        root = [leaf for group in flat for leaf in group]
    expected, at = [], clock
    places = _places(data)
    for (size, ticks), place in zip(_leaves(root), places, strict=True):
        expected.append((place, size, at, ticks))
        at += ticks
    return data, expected


def _leaves(node: list | tuple[int, int]) -> list[tuple[int, int]]:
    return (
        [node] if isinstance(node, tuple) else [leaf for child in node for leaf in _leaves(child)]
    )


def _places(data: bytes, at: int = 0) -> list[int]:
    """Where the media of a sidx lie, by its own words: a slow second reading."""
    sidx = (
        parse(data[at:], offset=at)[0]
        if at == 0
        else parse(data[at : at + _size(data, at)], offset=at)[0]
    )
    place = sidx.stop + sidx["first_offset"]
    places = []
    for row in sidx["references"]:
        places += _places(data, place) if row["reference_type"] else [place]
        place += int(row["referenced_size"])
    return places


def _size(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "big")


def one_box(data: bytes) -> bytes:
    return data[: _size(data, 0)]


@given(hierarchies())
def test_every_leaf_of_a_hierarchy_is_found(
    hierarchy: tuple[bytes, list[tuple[int, int, int, int]]],
) -> None:
    content, expected = hierarchy
    reader = SidxReader()
    reader.feed(0, one_box(content))
    while reader.need:
        for part in reader.need:
            # An answer may be shorter than what was asked for, as long as it goes on.
            stop = min(part.stop, len(content))
            reader.feed(part.start, content[part.start : stop])
    stream = reader.segments().streams[1]
    assert stream.reference.tolist() == [place for place, _, _, _ in expected]
    assert (stream.offset + stream.size).tolist() == [
        place + size for place, size, _, _ in expected
    ]
    assert stream.time.tolist() == [time for _, _, time, _ in expected]
    assert stream.duration.tolist() == [ticks for _, _, _, ticks in expected]
    assert reader.segments().covered_until == len(content)


@given(hierarchies(), st.integers(0, 8))
def test_a_hierarchy_that_is_cut_off_never_raises(
    hierarchy: tuple[bytes, list[tuple[int, int, int, int]]], eighths: int
) -> None:
    content, _ = hierarchy
    cut = content[: len(content) * eighths // 8]
    reader = SidxReader()
    reader.feed(0, cut)
    for _ in range(10):
        for part in reader.need:
            reader.feed(part.start, cut[part.start : part.stop])
    assert reader.segments().covered_until <= len(content)
    assert reader.need == ()


def test_a_large_child_takes_a_second_read() -> None:
    child = box([media(10)] * 1000, timescale=1000)
    data = box([(1, len(child) + 10000, 100000, 1, 1, 0)], timescale=1000) + child + bytes(10000)
    reader = SidxReader()
    reader.feed(0, data[: _size(data, 0)])
    (guess,) = reader.need
    assert guess.size < len(child)
    reader.feed(guess.start, data[guess.start : guess.stop])
    (whole,) = reader.need
    assert whole == ByteRange.of(guess.start, len(child))
    reader.feed(whole.start, data[whole.start : whole.stop])
    assert len(reader.segments().streams[1]) == 1000


def test_boxes_before_a_child_belong_to_its_first_fragment() -> None:
    styp = build(make_box("styp", major_brand="msdh"))
    part = styp + box([media(50)], timescale=10) + bytes(50)
    data = box([(1, len(part), 100, 1, 1, 0)], timescale=10) + part
    first = _size(data, 0)
    stream = read_file(data, [0]).segments().streams[1]
    # Down to the box that points here: it stands directly before as well.
    assert stream.offset.tolist() == [0]
    assert stream.reference.tolist() == [first + len(part) - 50]


def test_too_deep_is_noted_and_not_followed() -> None:
    data = bytes(7)
    for _ in range(MAX_DEPTH + 3):
        data = box([(1, len(data), 5, 1, 1, 0)], timescale=10) + data
    segments = read_file(data, [0]).segments()
    assert [f.code for f in segments.findings] == ["sidx-limit"]
    assert not segments.streams


def test_references_without_bytes_cannot_be_followed_round_and_round() -> None:
    # A thousand references of no size point at the same child.
    child = box([media(5)], timescale=10)
    data = box([(1, 0, 5, 1, 1, 0)] * 1000, timescale=10) + child + bytes(5)
    assert not read_file(data, [0]).segments().streams
    assert len(read_file(data, [0, len(data) - len(child) - 5]).segments().streams[1]) == 1


def test_what_stands_where_a_child_should_is_noted() -> None:
    data = box([(1, 40, 5, 1, 1, 0), media(8)], timescale=10) + bytes(48)
    segments = read_file(data, [0]).segments()
    assert [f.code for f in segments.findings] == ["sidx-lie"]
    assert len(segments.streams[1]) == 1


@given(st.binary(max_size=300), st.integers(0, 1 << 63))
def test_any_bytes_give_an_answer_or_an_error_of_ours(body: bytes, offset: int) -> None:
    data = (len(body) + 8).to_bytes(4, "big") + b"sidx" + body
    reader = SidxReader()
    reader.feed(offset, data)
    for part in reader.need[:4]:
        reader.feed(part.start, body)
    segments = reader.segments()
    segments.doubts(size=1000, heads={0: body})
    for stream in segments.streams.values():
        assert len(stream.offset) == len(stream.access)
    if not segments.doubts():
        tables(segments, Movie(0, 0, True, ()))
        tables(segments, Movie(1000, 0, True, (info(1, 90000),)))


# --- several boxes ---------------------------------------------------------------------------


def test_boxes_in_a_row_are_merged_in_file_order() -> None:
    first = box([media(100), media(100)], timescale=10, first_offset=0)
    second = box([media(100)], timescale=10, earliest_presentation_time=200)
    # The first one's media lie behind the second one, the second one's behind those.
    first = box([media(100), media(100)], timescale=10, first_offset=len(second))
    second = box([media(100)], timescale=10, earliest_presentation_time=200, first_offset=200)
    data = first + second + bytes(300)
    segments = read_file(data, [0, len(first)]).segments()
    start = len(first) + len(second)
    assert segments.streams[1].reference.tolist() == [start, start + 100, start + 200]
    assert segments.streams[1].time.tolist() == [0, 100, 200]
    assert segments.covered_until == len(data)
    assert not segments.doubts(size=len(data))


def test_a_first_index_of_a_few_seconds_is_continued_by_those_of_the_segments() -> None:
    segments = [
        box([media(80)], timescale=10, earliest_presentation_time=100 * n) + bytes(80)
        for n in range(3)
    ]
    data = b"".join(segments)
    size = len(segments[0])
    alone = read_file(data, [0]).segments()
    assert alone.covered_until == size  # the rest is to be walked
    merged = read_file(data, [0, size, 2 * size]).segments()
    assert merged.streams[1].offset.tolist() == [0, size, 2 * size]
    assert merged.streams[1].size.tolist() == [size] * 3
    assert merged.covered_until == len(data)


def test_an_index_of_the_whole_file_wins_over_those_of_its_segments() -> None:
    segment = box([media(80)], timescale=10) + bytes(80)
    front = box([media(len(segment))] * 2, timescale=10)
    data = front + segment * 2
    places = [0, len(front), len(front) + len(segment)]
    segments = read_file(data, places).segments()
    assert len(segments.streams[1]) == 2
    assert segments.covered_until == len(data)


def test_each_track_may_have_its_own() -> None:
    sound = box([media(70, 44), media(30, 20)], stream=2, timescale=44)
    pictures = box([media(100, 60)], stream=1, timescale=60, first_offset=len(sound))
    data = pictures + sound + bytes(100)
    segments = read_file(data, [0, len(pictures)]).segments()
    assert {n: len(s) for n, s in segments.streams.items()} == {1: 1, 2: 2}
    # Both boxes stand directly before the first fragment of both.
    assert segments.streams[1].offset[0] == segments.streams[2].offset[0] == 0
    two = tables(segments, Movie(1000, 0, True, (info(1, 60), info(2, 44, kind="audio"))))
    assert two[2][0].cts_min.tolist() == [0, 44]
    assert (two[1][0].flags == FragmentFlags.APPROXIMATE).all()


def test_indexes_that_do_not_end_together_are_used_up_to_the_shorter_one() -> None:
    sound = box([media(70)], stream=2, timescale=44)
    pictures = box([media(70), media(30)], timescale=60, first_offset=len(sound))
    data = pictures + sound + bytes(100)
    segments = read_file(data, [0, len(pictures)]).segments()
    assert segments.covered_until == len(data) - 30
    assert [f.code for f in segments.findings] == ["sidx-unequal"]


def test_boxes_of_one_stream_may_count_in_different_ticks() -> None:
    first = box([media(80, 10)], timescale=10) + bytes(80)
    second = box([media(80, 1000)], timescale=1000, earliest_presentation_time=1000) + bytes(80)
    segments = read_file(first + second, [0, len(first)]).segments()
    assert segments.streams[1].timescale == 10
    assert segments.streams[1].time.tolist() == [0, 10]
    assert segments.streams[1].duration.tolist() == [10, 10]


# --- what is believed ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("references", "fields", "code"),
    [
        ([media(5000)], {"timescale": 10}, "sidx-past-end"),
        ([media(50), media(0)], {"timescale": 10}, "sidx-empty-reference"),
        ([media(50)], {"timescale": 0}, "sidx-timescale"),
        ([(0, 50, 10, 0, 0, 0)], {"timescale": 10}, "sidx-without-access"),
        ([(0, 50, 10, 1, 4, 0)], {"timescale": 10}, "sidx-without-access"),
        ([], {"timescale": 10}, "sidx-empty"),
        ([media(50)], {"timescale": 10, "version": 1, "first_offset": 1 << 63}, "sidx-empty"),
    ],
)
def test_an_impossible_index_is_doubted(
    references: list[Row], fields: dict[str, int], code: str
) -> None:
    reader = SidxReader()
    reader.feed(0, box(references, **fields))
    assert [f.code for f in reader.segments().doubts(size=1000)] == [code]


def test_times_that_fall_are_doubted() -> None:
    first = box([media(80)], timescale=10, earliest_presentation_time=500) + bytes(80)
    second = box([media(80)], timescale=10) + bytes(80)
    segments = read_file(first + second, [0, len(first)]).segments()
    assert [f.code for f in segments.doubts()] == ["sidx-order"]


@pytest.mark.parametrize("kind", ["moof", "styp", "emsg", "prft", "sidx"])
def test_a_fragment_must_stand_where_the_first_reference_points(kind: str) -> None:
    reader = SidxReader()
    reader.feed(0, box([media(80)], timescale=10))
    (start,) = reader.segments().streams[1].reference.tolist()
    honest = (16).to_bytes(4, "big") + kind.encode()
    assert not reader.segments().doubts(heads={start: honest})
    for lie in (b"\0\0\0\x10mdat", b"\0\0\0\4" + kind.encode()):
        assert [f.code for f in reader.segments().doubts(heads={start: lie})] == ["sidx-lie"]


def test_negative_times_are_read_as_signed() -> None:
    reader = SidxReader()
    reader.feed(0, box([media(80)], timescale=10, version=1, earliest_presentation_time=2**64 - 7))
    segments = reader.segments()
    assert segments.streams[1].time.tolist() == [-7]
    assert [f.code for f in segments.findings] == ["sidx-negative-time"]


# --- tables ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("starts", "kind", "delta", "access"),
    [
        (1, 1, 0, 300),  # closed
        (1, 2, 0, 300),
        (1, 3, 8, 308),  # leading pictures are shown before the access point
        (1, 0, 0, 300),  # begins with one, of which kind is not told
        (0, 1, 40, 340),  # one inside
        (0, 0, 0, None),  # nothing is told
        (1, 4, 0, None),  # gradual refresh: no sync sample
    ],
)
def test_access_points_are_where_the_standard_says(
    starts: int, kind: int, delta: int, access: int | None
) -> None:
    reader = SidxReader()
    row = (0, 80, 100, starts, kind, delta)
    reader.feed(0, box([row], timescale=10, earliest_presentation_time=300))
    _, sync = tables(reader.segments(), Movie(0, 0, True, ()))[1]
    assert sync.cts.tolist() == ([] if access is None else [access])


@given(
    st.lists(st.one_of(st.just(NULL), st.integers(-(2**61), 2**61)), max_size=5),
    st.integers(1, 2**33),
    st.integers(1, 2**33),
    st.integers(-(2**40), 2**40),
)
def test_rescaling_is_exact(ticks: list[int], multiply: int, divide: int, add: int) -> None:
    got = rescaled(np.array(ticks, np.int64), multiply, divide, add).tolist()
    for tick, result in zip(ticks, got, strict=True):
        if tick == NULL:
            assert result == NULL
        elif result != NULL:
            exact = Fraction(tick * multiply + add, divide)
            assert abs(exact - result) <= Fraction(1, 2)
        else:
            assert abs(Fraction(tick * multiply + add, divide)) >= 2**61


def test_presentation_times_become_composition_times() -> None:
    reader = SidxReader()
    reader.feed(0, box([media(80, 1000), media(80, 1000)], timescale=1000))
    edited = info(1, 90000, edits=(Edit(0, 3003),))
    fragments, sync = tables(reader.segments(), Movie(600, 0, True, (edited,)))[1]
    assert fragments.cts_min.tolist() == sync.cts.tolist() == [3003, 93003]
    assert fragments.cts_end.tolist() == [93003, 183003]
    assert (fragments.sample_count == NULL).all()
    assert (fragments.dts == NULL).all()


def test_tracks_without_an_index_share_the_bytes_and_are_flagged() -> None:
    reader = SidxReader()
    reader.feed(0, box([media(80, 60)] * 3, timescale=60))
    findings = Findings()
    sound = info(2, 44100, kind="audio")
    by_track = tables(reader.segments(), Movie(1000, 0, True, (sound, info(1, 60))), findings)
    assert by_track[2][0].offset.tolist() == by_track[1][0].offset.tolist()
    assert by_track[2][0].cts_min.tolist() == [0, 44100, 88200]
    assert (by_track[2][0].flags & FragmentFlags.TIMES_GUESSED).all()
    assert [(f.code, f.track) for f in findings.all()] == [("sidx-one-stream", 2)]


def test_a_stream_that_is_no_track_is_taken_for_the_pictures() -> None:
    reader = SidxReader()
    reader.feed(0, box([media(80, 60)], stream=0, timescale=60))
    findings = Findings()
    by_track = tables(reader.segments(), Movie(1000, 0, True, (info(4, 600),)), findings)
    assert by_track[4][0].cts_end.tolist() == [600]
    assert [f.code for f in findings.all()] == ["sidx-unknown-stream"]


# Where the muxer's own sidx says something else than its fragments, and what.
SAYS_OTHERWISE = {
    ("dash-segment-1.m4s", 1): "without the moov its edit list is not known",
    ("dash-segment-2.m4s", 1): "without the moov its edit list is not known",
    ("hls-segment-0.m4s", 2): "without the moov its edit list is not known",
    ("hls-segment-1.m4s", 2): "without the moov its edit list is not known",
}


def with_sidx() -> list[Path]:
    """The fixtures that a sidx stands in; those that are damaged on purpose begin with `cut`."""
    paths = sorted(FIXTURES.glob("[!c]*.m[4po]*"))
    return [path for path in paths if b"sidx" in path.read_bytes() and "gap" not in path.name]


@pytest.mark.parametrize("path", with_sidx(), ids=lambda path: path.name)
def test_the_indexes_of_real_muxers_say_what_their_fragments_say(path: Path) -> None:
    data = path.read_bytes()
    index = fragdex.index(data, exact=True)
    found_boxes = parse(data)
    reader = SidxReader(
        ByteRange(b.offset, b.stop) for b in found_boxes if b.type in ("styp", "emsg", "prft")
    )
    for box in found_boxes:
        reader.add(box)
    segments = reader.segments()
    assert not segments.doubts(size=len(data))
    for track, (fragments, _) in tables(segments, index.periods[0].movie).items():
        exact = index.track(track).fragments
        assert fragments.offset.tolist() == exact.offset.tolist()
        assert fragments.size.tolist() == exact.size.tolist()
        if (path.name, track) not in SAYS_OTHERWISE:
            assert fragments.cts_min.tolist() == exact.cts_min.tolist()
            assert fragments.cts_end.tolist() == exact.cts_end.tolist()


def test_a_day_of_short_references_is_told_by_shorter_children():
    """A root's references last less than 2^32 ticks each, which is 13 hours at 90 kHz."""
    n = 70_000
    places, ones, zeros = np.arange(n), np.ones(n, np.int64), np.zeros(n, np.int64)
    segments = Subsegments(places * 8, ones * 8, places * 90_000, ones * 90_000, zeros, ones, zeros)
    root, *children = boxes(segments, 1, 90_000)
    lasts = root["references"]["subsegment_duration"].astype(np.int64)
    assert lasts.sum() == n * 90_000
    each = [child["references"]["subsegment_duration"].sum(dtype=np.int64) for child in children]
    assert each == lasts.tolist()
    assert sum(len(child["references"]) for child in children) == n
    later = [child["earliest_presentation_time"] for child in children]
    assert later == [0, *np.cumsum(lasts)[:-1]]
