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
from fragdex.seeking.model import FragmentIndex, How, SourceInfo, TrackIndex
from fragdex.seeking.show import byte_count, clock
from fragdex.seeking.timeline import rate_steps, sync_times, time_ticks
from fragdex.testing import movie
from fragdex.testing.index_strategies import indexes


def picture(index):
    """The SVG of an index as a tree."""
    found = re.search(r"<svg.*</svg>", index._repr_html_(), re.DOTALL)
    return None if found is None else ET.fromstring(found[0])


def test_a_line_a_track():
    index = fragdex.index(movie(fragments=3, tracks=2), exact=True)
    lines = repr(index).splitlines()
    assert len(lines) == 3
    assert "3 fragments" in lines[1]
    assert repr(index.track(1)).startswith("track 1: video, avc1.")


def test_what_is_odd_is_printed():
    index = FragmentIndex(
        SourceInfo("a.mp4", 100),
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
    track = TrackIndex(info, table, SyncTable.empty(), exact=False)
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
    index.source = SourceInfo("<img src=x onerror=alert(1)>.mp4", 10)
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
    found = picture(index)
    if found is not None:
        assert not {"nan", "inf"} & set(re.findall("[a-z]+", ET.tostring(found, "unicode")))


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
