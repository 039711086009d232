"""Indexes that someone forged, with right checksums: refused, or answered without a wrong number.

Every value of the JSON part and every column is replaced by numbers at the edges of 64 bits. An
answer may raise one of our errors, and no number may wrap on the way to it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from forged_indexes import NUMBERS, checksummed, forged_columns, forged_values
from fragdex.errors import DamagedIndex, FragdexError
from fragdex.formats import fidx
from fragdex.formats.fidx import check_tables
from fragdex.formats.fidx_head import parse_head
from fragdex.fragments.table import NULL, FragmentTable, SyncTable
from fragdex.seeking.forms import FORMS
from fragdex.seeking.model import Index
from fragdex.testing import movie
from strategies.indexes import indexes

MOMENTS = (0, 0.04, 1e9, -1, math.inf)
WHOLE = fidx.write(
    fragdex.index(movie(fragments=2, samples=3, fps=25, tracks=2), exact=True), samples=True
)
SMALL = fidx.write(fragdex.index(movie(fragments=2, samples=3), exact=True), samples=True)


def ask_everything(index: Index) -> None:
    """Every question; our errors are answers, any other error is a fault."""
    asked: list[Callable[[], object]] = [
        lambda: repr(index),
        index._repr_html_,
        lambda: index.duration,
        *(lambda form=form: index.export(form) for form in FORMS),  # type: ignore[misc]
        *(lambda m=m: index.span(m, m + 1) for m in MOMENTS),  # type: ignore[misc]
        *(lambda m=m: index.plan(m) for m in MOMENTS),  # type: ignore[misc]
    ]
    for track in index.tracks:
        asked += [lambda m=m, t=track: t.seek(m) for m in MOMENTS]  # type: ignore[misc]
        asked += [
            lambda t=track: t.seek_many(MOMENTS),  # type: ignore[misc]
            lambda t=track: (t.samples, t.start, t.stop),  # type: ignore[misc]
        ]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # numpy says so where one number wraps
        for ask in asked:
            try:
                ask()
            except FragdexError:
                continue


def test_a_forged_value_is_refused_or_does_no_harm() -> None:
    opened = refused = 0
    for _, data in forged_values(SMALL):
        try:
            index = fidx.read(data)
        except DamagedIndex:
            refused += 1
            continue
        opened += 1
        ask_everything(index)
    assert refused > 1000
    assert opened > 300


def test_a_forged_column_is_refused_or_does_no_harm() -> None:
    for _, data in forged_columns(SMALL):
        ask_everything(fidx.read(data))
        seeks_agree(data)


def seeks_agree(data: bytes) -> None:
    """What `verify` lets pass answers alike, one by one and many at once."""
    for track in fidx.read(data).tracks:
        try:
            many = track.seek_many(MOMENTS)
        except FragdexError:
            continue
        for row, moment in enumerate(MOMENTS):
            one = fidx.read(data).track(track.id).seek(moment)
            assert (one.fragment, one.cts) == (many.fragment[row], many.cts[row])
            assert (one.offset, one.size) == (many.offset[row], many.size[row])


FAR_AWAY = {
    "periods/0/number": 1,
    "periods/0/movie/timescale": 2**32,
    "periods/0/movie/duration": 2**63,
    "periods/0/movie/tracks/0/timescale": -25,
    "periods/0/movie/tracks/0/id": 2**32,
    "periods/0/tracks/0/shift/0": 2**62,
    "periods/0/tracks/0/shift/1": 2**32,
    "periods/0/tracks/0/info": 2,
    "periods/0/tracks/1/tables/samples/rows": 2**62,
    "periods/0/tracks/1/tables/sync/columns/0/2": 2**62,
    "resume_offset": -1,
    "source/size": 2**63,
    "how/bytes_read": -1,
}


@pytest.mark.parametrize(("path", "value"), FAR_AWAY.items(), ids=FAR_AWAY.keys())
def test_what_the_json_part_says_is_refused_at_opening(path: str, value: int) -> None:
    plain, _, start = parse_head(memoryview(WHOLE))
    node = plain
    *outer, last = [int(key) if key.isdecimal() else key for key in path.split("/")]
    for key in outer:
        node = node[key]
    node[last] = value
    with pytest.raises(DamagedIndex) as caught:
        fidx.read(checksummed(plain, WHOLE[start:]))
    # Too many rows are noticed where the first column of them should be.
    place = str(caught.value.path).removesuffix("columns/0")
    assert f"/{path}".startswith(place)


@given(indexes(max_periods=1, max_tracks=2), st.data())
def test_a_seek_and_all_tables_agree_in_any_forged_column(
    index: Index, data: st.DataObject
) -> None:
    whole = fidx.write(index, samples=data.draw(st.booleans()))
    plain, _, start = parse_head(memoryview(whole))
    columns = bytearray(whole[start:])
    if not columns:
        return
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(columns) // 8 - 1)) * 8
        number = data.draw(st.sampled_from(NUMBERS) | st.integers(-(2**63), 2**63 - 1))
        columns[place : place + 8] = number.to_bytes(8, "little", signed=True)
    forged = checksummed(plain, bytes(columns))
    ask_everything(fidx.read(forged))
    seeks_agree(forged)


def sync_of(*counts: int) -> SyncTable:
    """Runs that all begin with the first sample."""
    zeros = np.zeros(len(counts), np.int64)
    return SyncTable(zeros, zeros, zeros, np.array(counts), zeros, zeros + 1, zeros)


def test_counts_whose_sum_wraps_are_refused() -> None:
    columns = {column.name: np.zeros(1, np.int64) for column in FragmentTable.schema()}
    rows = FragmentTable.of(columns | {"sample_count": np.array([1 << 61])})
    check_tables(1, rows, sync_of(1 << 61), (), None, "")
    for runs in (2, 8):
        with pytest.raises(DamagedIndex, match="no more sync samples than samples"):
            check_tables(1, rows, sync_of(*[1 << 61] * runs), (), None, "")


@pytest.mark.parametrize("name", ["sample_start", "sample_count"])
def test_numbers_of_samples_may_be_left_open(name: str) -> None:
    columns = {column.name: np.zeros(3, np.int64) for column in FragmentTable.schema()}
    columns |= {"sample_start": np.array([0, 5, 10]), "sample_count": np.array([5, 5, 5])}
    check_tables(1, FragmentTable.of(columns), sync_of(1), (), 15, "")
    columns[name][1] = NULL
    check_tables(1, FragmentTable.of(columns), sync_of(1), (), None, "")


def test_columns_that_overlap_are_refused() -> None:
    """Thousands of tracks over the same bytes would take thousands of passes over them."""
    plain, _, start = parse_head(memoryview(WHOLE))
    tracks = plain["periods"][0]["tracks"]
    tracks += [tracks[0]] * 100
    with pytest.raises(DamagedIndex, match="do not overlap"):
        fidx.read(checksummed(plain, WHOLE[start:]))


def test_a_name_that_is_no_utf_8_comes_back() -> None:
    index = fragdex.index(movie())
    index.file = fidx.FileInfo("caf\udce9.mp4", 1)
    assert fidx.read(fidx.write(index)).file.name == "caf\udce9.mp4"
    ask_everything(index)
