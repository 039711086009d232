"""One index held against another of the same file: what differs is named, with its first byte."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fragdex
from fragdex.fragments.table import NULL, FragmentFlags, FragmentTable, SampleTable, SyncTable
from fragdex.fragments.track_info import Edit
from fragdex.seeking.difference import differences
from fragdex.seeking.model import FileInfo, How, Index, Period, Track
from fragdex.testing import movie

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
TRUE = fragdex.index(movie(fragments=6, samples=5, reordered=True), exact=True)
TRACK = TRUE.track(1)
ROWS = TRACK.fragments


def claim(
    fragments: FragmentTable = ROWS,
    *,
    exact: bool = True,
    sync: SyncTable = TRACK.sync_samples,
    samples: SampleTable | None = None,
    source: FileInfo = TRUE.file,
    method: str = "boxes",
    shift: int = 0,
    **info: Any,
) -> Index:
    """An index that says something else of the track."""
    track = Track(
        replace(TRACK.info, **info),
        fragments,
        sync,
        shift=TRACK.shift + shift,
        exact=exact,
        samples=samples,
    )
    period = TRUE.periods[0]
    return Index(source, How(method, exact), [Period(0, period.init, period.movie, (track,))])


def table(kind: Any, of: Any, row: int | slice, **columns: int) -> Any:
    """A table in which one row says something else; numbers are added to what it said."""
    changed = {name: column.copy() for name, column in of.columns().items()}
    for name, by in columns.items():
        changed[name][row] += by
    return kind.of(changed)


def joined(first: int, last: int, **columns: int) -> FragmentTable:
    """The rows of the file, of which some are told as one, as a sidx may."""
    columns = {
        "size": int(ROWS.size[first : last + 1].sum()),
        "cts_min": int(ROWS.cts_min[first : last + 1].min()),
        "cts_end": int(ROWS.cts_end[first : last + 1].max()),
        "sample_count": int(ROWS.sample_count[first : last + 1].sum()),
        "duration": int(ROWS.duration[first : last + 1].sum()),
        **columns,
    }
    kept = ROWS.rows(np.delete(np.arange(len(ROWS)), np.r_[first + 1 : last + 1]))
    changed = {name: column.copy() for name, column in kept.columns().items()}
    for name, value in columns.items():
        changed[name][first] = value
    return FragmentTable.of(changed)


def codes(claimed: Index, true: Index = TRUE) -> set[str]:
    return {finding.code for finding in differences(claimed, true)}


@pytest.mark.parametrize("name", ["cts_min", "cts_end", "dts", "duration", "sample_count"])
@pytest.mark.parametrize("row", [0, 3, 5])
@pytest.mark.parametrize("by", [-1, 1])
def test_a_wrong_number_is_found_in_its_row(name, row, by):
    (finding,) = differences(claim(table(FragmentTable, ROWS, row, **{name: by})), TRUE)
    assert (finding.code, finding.count) == (name, 1)
    assert (finding.track, finding.offset) == (1, ROWS.offset[row])


def test_the_same_thing_in_several_rows_is_one_finding_of_the_first():
    (finding,) = differences(claim(table(FragmentTable, ROWS, slice(2, 5), dts=9)), TRUE)
    assert (finding.code, finding.count, finding.offset) == ("dts", 3, ROWS.offset[2])


@pytest.mark.parametrize("name", ["cts_min", "cts_end", "dts"])
def test_a_rescaled_time_may_be_off_by_one_tick(name):
    for by in (-1, 0, 1):
        assert codes(claim(table(FragmentTable, ROWS, 2, **{name: by}), exact=False)) == set()
    for by in (-2, 2):
        assert codes(claim(table(FragmentTable, ROWS, 2, **{name: by}), exact=False)) == {name}


@pytest.mark.parametrize("name", ["cts_min", "cts_end", "dts", "duration", "sample_count"])
def test_what_an_index_leaves_open_is_not_wrong(name):
    columns = {key: column.copy() for key, column in ROWS.columns().items()}
    columns[name][:] = NULL
    assert codes(claim(FragmentTable.of(columns), exact=False)) == set()


def test_times_are_compared_as_presentation_times():
    moved = table(FragmentTable, ROWS, slice(None), cts_min=-40, cts_end=-40, dts=-40)
    sync = table(SyncTable, TRACK.sync_samples, slice(None), cts=-40, dts=-40)
    assert codes(claim(moved, sync=sync, shift=40)) == set()
    assert codes(claim(moved, sync=sync)) == {"cts_min", "cts_end", "dts", "sync"}


def test_times_that_say_they_are_guessed_make_no_claim():
    guessed = table(FragmentTable, ROWS, 2, cts_min=99, cts_end=99, dts=99)
    guessed.flags[2] |= FragmentFlags.TIMES_GUESSED
    assert codes(claim(guessed, exact=False)) == set()
    assert codes(claim(guessed)) == {"cts_min", "cts_end", "dts"}


def test_an_index_that_is_not_exact_may_tell_fragments_as_one():
    assert codes(claim(joined(1, 3), exact=False)) == set()
    assert codes(claim(joined(4, 5), exact=False)) == set()
    assert codes(claim(joined(1, 3, sample_count=14), exact=False)) == {"sample_count"}
    assert codes(claim(joined(1, 3, cts_min=int(ROWS.cts_min[2])), exact=False)) == {"cts_min"}
    short = int(ROWS.size[1:4].sum()) - 1
    assert codes(claim(joined(1, 3, size=short), exact=False)) == {"stop", "missing"}


@pytest.mark.parametrize(
    ("rows", "code"),
    [([0, 1, 2, 4, 5], "missing"), ([0, 1, 2, 3, 4, 5, 3], "twice"), ([1, 2, 3, 4, 5], "missing")],
)
@pytest.mark.parametrize("exact", [True, False])
def test_each_fragment_is_reported_once(rows, code, exact):
    (finding,) = differences(claim(ROWS.rows(np.array(rows)), exact=exact), TRUE)
    assert (finding.code, finding.count) == (code, 1)
    wrong = 3 if 3 not in rows or rows.count(3) > 1 else 0
    assert finding.offset == ROWS.offset[wrong]


def test_a_fragment_of_a_single_sample_counts():
    true = fragdex.index(movie(fragments=4, samples=1), exact=True)
    (track,), period = true.tracks, true.periods[0]
    rows = track.fragments.rows(np.array([0, 1, 3]))
    fewer = replace(period, tracks=(Track(track.info, rows, SyncTable.empty(), exact=False),))
    (finding,) = differences(Index(true.file, How("sidx", False), [fewer]), true)
    assert (finding.code, finding.offset) == ("missing", track.fragments.offset[2])


def test_a_sidx_knows_of_a_hidden_start_what_is_shown_of_it():
    """From presentation time 0, or from where the first edit begins; not from times between."""
    edits = (Edit(0, -1), Edit(0, 5000))
    true = claim(shift=-3000, edits=edits)
    assert true.tracks[0].shift == -3000
    for start in (2000, 3000, 5000):
        shown = table(FragmentTable, ROWS, 0, cts_min=start - int(ROWS.cts_min[0]))
        assert codes(claim(shown, shift=-3000, edits=edits, exact=False), true) == set()
    for start in (1000, 2500, 4000, 6000):
        shown = table(FragmentTable, ROWS, 0, cts_min=start - int(ROWS.cts_min[0]))
        assert codes(claim(shown, shift=-3000, edits=edits, exact=False), true) == {"cts_min"}


@pytest.mark.parametrize("name", ["frag-default-base", "frag-dash", "frag-separate-moof"])
def test_an_mfra_names_moofs_alone(name):
    """Not what introduces them, and not where their media data end."""
    path = FIXTURES / f"{name}.mp4"
    source = fragdex.open_source(path)
    source.remote = True  # an mfra is taken where reading every moof costs much
    claimed, true = fragdex.index(source), fragdex.index(path, exact=True)
    assert claimed.how.method == "mfra"
    assert codes(claimed, true) == set()
    track = claimed.tracks[0]
    rows = track.fragments
    for name, by, code in (("offset", 1, "offset"), ("size", -1 << 10, "stop")):
        track.fragments = table(FragmentTable, rows, 1, **{name: by})
        assert code in codes(claimed, true)


@pytest.mark.parametrize(
    ("name", "wrong", "unknown"),
    [
        ("timescale", 7, None),
        ("codec", "hev1", None),
        ("width", 1, 0),
        ("height", 1, 0),
        ("sample_rate", 1, 0),
        ("language", "xho", ""),
    ],
)
def test_what_the_moov_says_is_compared_where_the_index_tells_it(name, wrong, unknown):
    assert codes(claim(**{name: wrong})) == {name}
    if unknown is not None:
        assert codes(claim(**{name: unknown})) == set()


def test_a_sync_sample_at_another_time_is_found():
    sync = table(SyncTable, TRACK.sync_samples, 0, cts=3)
    (finding,) = differences(claim(sync=sync), TRUE)
    assert (finding.code, finding.offset) == ("sync", ROWS.offset[0])


@pytest.mark.parametrize(
    ("by", "expected"), [(-2, {"sync"}), (-1, set()), (1, set()), (2, {"sync"})]
)
def test_a_rescaled_sync_sample_may_be_off_by_one_tick(by, expected):
    sync = table(SyncTable, TRACK.sync_samples, slice(None), cts=by)
    assert codes(claim(sync=sync, exact=False)) == expected
    assert codes(claim(sync=sync)) == {"sync"}


def test_the_number_of_sync_samples_counts_in_an_exact_index_alone():
    fewer = table(SyncTable, TRACK.sync_samples, -1, count=-1)
    assert codes(claim(sync=fewer)) == {"sync-count"}
    assert codes(claim(sync=fewer, exact=False)) == set()


def test_samples_are_compared_column_by_column():
    for name in ("offset", "size", "dts", "cts", "duration"):
        samples = table(SampleTable, TRACK.samples, 7, **{name: 1})
        (finding,) = differences(claim(samples=samples), TRUE)
        assert (finding.code, finding.count) == (f"sample-{name}", 1)
        assert finding.offset == samples.offset[7]
    assert codes(claim(samples=TRACK.samples)) == set()
    assert codes(claim(samples=TRACK.samples.rows(slice(1, None)))) == {"samples"}


def test_an_unknown_size_is_no_difference():
    assert codes(claim(source=FileInfo("a.mp4", None))) == set()
    assert codes(claim(source=FileInfo("a.mp4", 5))) == {"size"}


def test_a_file_whose_samples_are_not_known_proves_nothing():
    assert codes(TRUE, claim(exact=False)) == {"inexact"}


def test_only_a_track_with_fragments_can_be_missing():
    two = fragdex.index(movie(tracks=2), exact=True)
    period = two.periods[0]
    one = Index(two.file, two.how, [replace(period, tracks=period.tracks[:1])])
    (finding,) = differences(one, two)
    assert (finding.code, finding.track) == ("track-missing", 2)
    (finding,) = differences(two, one)
    assert (finding.code, finding.track) == ("track", 2)
    nothing = Track(period.tracks[1].info, FragmentTable.empty(), SyncTable.empty())
    bare = replace(period, tracks=(period.tracks[0], nothing))
    assert codes(one, Index(two.file, two.how, [bare])) == set()
