"""How indexes print themselves: to people, in notebooks, however odd or long the file."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.fragments.findings import Finding
from fragdex.fragments.table import NULL, FragmentTable, SyncTable
from fragdex.fragments.track_info import Encryption, TrackInfo
from fragdex.seeking.model import FileInfo, How, Index, Track
from fragdex.seeking.show import (
    bit_rate,
    byte_count,
    clock,
    fragment_spans,
    main_track,
    rate_steps,
    sync_times,
    tick_label,
    time_ticks,
)
from fragdex.testing import movie
from strategies.indexes import indexes


def picture(index):
    """The SVG of an index as a tree."""
    match = re.search(r"<svg.*</svg>", index._repr_html_(), re.DOTALL)
    return None if match is None else ET.fromstring(match[0])


def test_a_line_a_track():
    index = fragdex.index(movie(fragments=3, tracks=2), exact=True)
    lines = repr(index).splitlines()
    assert len(lines) == 3
    assert "3 fragments" in lines[1]
    assert repr(index.track(1)).startswith("track 1: video, avc1.")


def test_what_is_odd_is_printed():
    index = Index(
        FileInfo("a.mp4", 100),
        How("boxes", True),
        [],
        findings=[Finding(f"odd-{n}", "an oddity") for n in range(60)],
        complete=False,
        resume_offset=1234,
    )
    text = repr(index)
    assert "it can be resumed at byte 1,234" in text
    assert "note: odd-0: an oddity" in text
    assert text.splitlines()[-1].strip() == "and 10 more notes"


def test_tracks_that_tell_little():
    info = TrackInfo(
        7, "soun", "audio", 0, "enca", None, language="deu", encryption=Encryption("cbcs", None, 0)
    )
    table = FragmentTable.of(
        {c.name: np.full(1, NULL if c.nullable else 0) for c in FragmentTable.schema()}
    )
    track = Track(info, table, SyncTable.empty(), exact=False)
    assert (
        repr(track)
        == "track 7: audio, enca, deu cbcs, 1 fragment, ? samples, 0 sync, times unknown"
    )


def test_periods_are_named_where_there_are_several(root):
    index = fragdex.index(root / "fixtures" / "two-inits.mp4")
    assert "period 1  track" in repr(index)
    assert "period 1 track" in index._repr_html_()


def test_html_escapes_what_files_say():
    index = fragdex.index(movie())
    index.file = FileInfo("<img src=x onerror=alert(1)>.mp4", 10)
    html = index._repr_html_()
    assert "<img" not in html
    assert "&lt;img" in html


def test_the_timeline_shows_every_fragment_of_a_short_file():
    index = fragdex.index(movie(fragments=7, tracks=2), exact=True)
    tree = picture(index)
    bars = [e for e in tree.iter() if e.tag.endswith("rect")]
    assert len(bars) == 2
    marks = [e.get("d").count("M") for e in tree.iter() if e.get("stroke") == "#0072B2"]
    assert marks == [7, 7]


def test_the_timeline_of_a_long_file_stays_small():
    index = fragdex.index(movie(fragments=4000, samples=2))
    assert len(index._repr_html_()) < 100_000


@given(indexes())
def test_any_index_can_be_printed(index):
    """However small or large its numbers are; also where no fragment has a byte."""
    assert repr(index)
    tree = picture(index)
    if tree is not None:
        assert not {"nan", "inf"} & set(re.findall("[a-z]+", ET.tostring(tree, "unicode")))


def test_real_files_give_well_formed_pictures(root):
    drawn = 0
    for path in sorted((root / "fixtures").iterdir()):
        if path.suffix in (".json", ".py"):
            continue
        try:
            index = fragdex.index(path)
        except fragdex.FragdexError:
            continue
        tree = picture(index)
        if tree is not None:
            drawn += 1
            text = ET.tostring(tree, "unicode")
            assert "nan" not in text
            assert "inf" not in re.sub(r"<(\w+:)?title.*?title>", "", text)
    assert drawn > 80


def test_no_timeline_without_times():
    assert picture(fragdex.index(movie(moov=False))) is None


def test_the_rate_counts_every_byte_of_the_fragments_once():
    index = fragdex.index(movie(fragments=6, tracks=2), exact=True)
    edges, rates = rate_steps(index.tracks)
    media = int((index.track(1).fragments.size).sum())
    assert float((rates * np.diff(edges)).sum() / 8) == pytest.approx(media)


def test_sync_times_are_those_of_the_sync_table():
    track = fragdex.index(movie(fragments=6, tracks=2, reordered=True), exact=True).track(2)
    samples = track.samples
    expected = samples.cts[samples.sync] / track.timescale + float(track.presentation(0))
    assert sync_times(track).tolist() == pytest.approx(sorted(expected.tolist()))
    assert len(sync_times(track, 4)) <= 4


@given(st.floats(-1e5, 1e5), st.floats(1e-3, 1e6), st.integers(2, 20))
def test_ticks_are_few_and_inside(start, span, most):
    ticks = time_ticks(start, start + span, most)
    assert len(ticks) <= most
    slack = span * 1e-6 + 1e-9
    assert all(start - slack <= tick <= start + span + slack for tick in ticks)


@given(st.integers(0, 10**9))
def test_a_clock_can_be_read_back(thousandths):
    parts = clock(thousandths / 1000).split(":")
    seconds = sum(float(part) * 60**n for n, part in enumerate(reversed(parts)))
    assert round(seconds * 1000) == thousandths


@given(st.integers(0, 2**60))
def test_byte_counts_have_four_digits_at_most(size):
    number = byte_count(size).split()[0].replace(",", "")
    # nothing is larger than a tebibyte: from there on more digits are the honest answer
    assert float(number) < 1024 or size >= 1023.95 * (1 << 40)


@pytest.mark.parametrize(
    ("start", "stop", "most", "ticks"),
    [
        (0, 10, 6, [0, 2, 4, 6, 8, 10]),
        (0, 10, 5, [0, 5, 10]),
        (-3, 3, 8, [-3, -2, -1, 0, 1, 2, 3]),
        (61, 299, 8, [120, 180, 240]),
        (0, 86400 * 30, 4, [0, 864000, 1728000, 2592000]),
        (0, 0.0002, 8, [0, 0.0001, 0.0002]),  # no closer than a tenth of a millisecond
        (5, 5, 8, [5]),
        (0, float("inf"), 8, [0]),
    ],
)
def test_ticks_are_at_the_roundest_times(start, stop, most, ticks):
    assert time_ticks(start, stop, most) == ticks


@pytest.mark.parametrize(
    ("seconds", "step", "label"),
    [
        (0.25, 0.05, "0.25"),
        (0.5, 0.1, "0.5"),
        (3, 1, "3"),
        (59, 1, "59"),
        (60, 1, "1:00"),
        (-75, 15, "-1:15"),
        (3599, 1, "59:59"),
        (3600, 600, "1:00:00"),
        (36_061, 60, "10:01:01"),
        (-7325, 1, "-2:02:05"),
    ],
)
def test_a_label_is_as_short_as_its_step_allows(seconds, step, label):
    assert tick_label(seconds, step) == label


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 bit/s"),
        (999, "999 bit/s"),
        (999.5, "1 kbit/s"),
        (1500, "1.5 kbit/s"),
        (12_340_000, "12.3 Mbit/s"),
        (2.5e9, "2.5 Gbit/s"),
        (4e12, "4 Tbit/s"),
    ],
)
def test_a_rate_has_three_digits_and_its_unit(value, text):
    assert bit_rate(value) == text


def test_a_fragment_that_does_not_tell_its_end_lasts_until_the_next():
    track = fragdex.index(movie(fragments=3, samples=5, fps=25, edit=1000)).track(1)
    starts, ends = fragment_spans(track)
    shift = float(track.presentation(0))
    assert starts.tolist() == pytest.approx([shift, shift + 0.2, shift + 0.4])
    assert ends.tolist() == pytest.approx([shift + 0.2, shift + 0.4, shift + 0.6])
    columns = {name: column.copy() for name, column in track.fragments.columns().items()}
    columns["cts_end"][:2] = NULL
    columns["cts_min"][2] = columns["cts_end"][2] = NULL
    track.fragments = FragmentTable.of(columns)
    starts, ends = fragment_spans(track)
    assert starts.tolist() == pytest.approx([shift, shift + 0.2])
    assert ends.tolist() == pytest.approx([shift + 0.2, shift + 0.2])


def test_pictures_pace_a_file_and_without_them_the_first_track_with_fragments():
    two = fragdex.index(movie(tracks=3))
    pictures, sound, more = two.tracks
    assert main_track([sound, pictures, more]) is pictures
    assert main_track([more, sound]) is more
    sound.fragments = FragmentTable.empty()
    assert main_track([sound, more]) is more
    assert main_track([sound]) is None


def test_fragments_out_of_file_order_count_their_own_bytes():
    track = fragdex.index(movie(fragments=3, samples=5, fps=25)).track(1)
    track.fragments = track.fragments.rows(np.array([1, 0, 2]))
    columns = {name: column.copy() for name, column in track.fragments.columns().items()}
    columns["offset"] = columns["offset"][[1, 0, 2]]  # shown first, and lies behind the next
    track.fragments = FragmentTable.of(columns)
    edges, rates = rate_steps([track])
    rows = track.fragments
    assert edges.tolist() == pytest.approx([0, 0.2, 0.4, 0.6])
    assert len(rates) == 3
    assert rates[0] == pytest.approx(int(rows.size[1]) * 8 / 0.2)


def test_the_line_of_a_track_says_what_it_is():
    def line(**details):
        info = TrackInfo(1, "vide", "video", 1000, "avc1", "avc1.640028", **details)
        return repr(Track(info, FragmentTable.empty(), SyncTable.empty()))

    assert line(width=640, height=360) == (
        "track 1: video, avc1.640028, 640×360, 0 fragments, 0 samples, 0 sync"
    )
    assert "48,000 Hz 2 ch," in line(sample_rate=48000, channel_count=2)
    assert "48,000 Hz," in line(sample_rate=48000)
    assert "Hz" not in line(width=640, height=360, sample_rate=48000)
    assert "×" not in line(width=640)
    assert ", deu," in line(language="deu")
    assert ", encrypted," in line(encryption=Encryption("", None, 0))


def test_the_headline_says_how_much_there_is_and_what_it_cost():
    index = fragdex.index(movie(fragments=3, samples=5, fps=25, tracks=2), exact=True)
    index.file = FileInfo("a\x1b.mp4", 3 << 20)
    index.how = How("sidx", False, requests=2, bytes_read=1500)
    head = repr(index).splitlines()[0]
    assert "\x1b" not in head
    assert head.endswith(
        ".mp4: 3.0 MiB, 0.619 s, 2 tracks, fragments only, from sidx; 1.5 KiB read in 2 requests"
    )
    index.file = FileInfo("", None)
    index.how = How("stbl+boxes", True, requests=1)
    assert repr(index).splitlines()[0] == (
        "index: 0.619 s, 2 tracks, exact, from the sample tables and movie fragments (stbl, moof);"
        " 0 B read in 1 request"
    )
    assert ", 59.000 s, " in repr(fragdex.index(movie(fragments=59, samples=1, fps=1)))
    assert ", 1:00.000, " in repr(fragdex.index(movie(fragments=60, samples=1, fps=1)))


def test_long_lists_are_cut_and_counted():
    info = [TrackInfo(n, "vide", "video", 1000, "avc1", None) for n in range(53)]
    tracks = [Track(one, FragmentTable.empty(), SyncTable.empty()) for one in info]
    index = fragdex.index(movie())
    period = type(index.periods[0])(0, (), index.periods[0].movie, tuple(tracks))
    lines = repr(Index(FileInfo(), How("boxes", True), [period])).splitlines()
    assert len(lines) == 52
    assert lines[50].split()[:2] == ["track", "49"]
    assert lines[51].strip() == "and 3 more tracks"


def test_a_table_names_what_its_columns_hold():
    html = fragdex.index(movie(fragments=3, samples=5, fps=25))._repr_html_()
    matches = re.findall(r"<t([hd])[^>]*>([^<]*)</t", html)
    assert [text for kind, text in matches if kind == "h"] == [
        *("track", "kind", "codec", "format", "fragments", "samples", "sync", "presentation"),
    ]
    cells = [text for kind, text in matches if kind == "d"]
    assert cells[:2] == ["1", "video"]
    assert cells[4:] == ["3", "15", "3", "0.000 – 0.600"]
