"""The list of samples as CSV, and that the fast writer writes what a slow one would."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragdex.errors import InexactIndex, TrackNotFound
from fragdex.formats import sample_csv
from fragdex.formats.sample_csv import ROWS_AT_ONCE, text_rows
from fragdex.fragments.table import SampleTable
from fragdex.fragments.track_info import Movie, TrackInfo
from fragdex.seeking.model import FileInfo, How, Index, Period, Track
from strategies.indexes import indexes, tables_from_samples


@given(indexes(), st.booleans())
def test_every_sample_stands_in_it_in_decode_order(index: Index, edited: bool) -> None:
    expected = []
    for track in index.tracks:
        shift = sample_csv.whole_ticks(track.shift) if edited else 0
        for offset, size, dts, cts, duration, sync in zip(
            *(column.tolist() for column in track.samples.columns().values()), strict=True
        ):
            row = [track.id, track.timescale, dts + shift, cts + shift, duration, size, offset]
            row += [int(sync)] + [track.period] * (len(index.periods) > 1)
            expected.append([str(value) for value in row])
    text = sample_csv.write(index, presentation=edited).decode()
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[1:] == expected
    assert text.endswith("\n")
    assert "\r" not in text


def test_the_header_line() -> None:
    one = Period(0, (), Movie(0, 0, True, ()), ())
    for periods, header in ([one], b"key"), ([one, replace(one, number=1)], b"key,period"):
        text = sample_csv.write(Index(FileInfo(), How("boxes", True), periods))
        assert text == b"track_id,timescale,dts,pts,duration,size,pos," + header + b"\n"


def test_an_index_without_samples_says_so_and_a_missing_track_too() -> None:
    fragments, sync = tables_from_samples(SampleTable.empty(), [])
    track = Track(TrackInfo.unknown(4), fragments, sync)
    index = Index(FileInfo(), How("sidx", False), [Period(0, (), Movie(0, 0, True, ()), (track,))])
    with pytest.raises(InexactIndex):
        sample_csv.write(index)
    with pytest.raises(TrackNotFound):
        sample_csv.write(index, tracks=[5])
    assert sample_csv.write(index, tracks=[]).count(b"\n") == 1


numbers = st.integers(-(2**63), 2**63 - 1) | st.integers(-11, 11) | st.integers(0, 2**33)


@given(st.lists(st.tuples(numbers, numbers, st.booleans()), min_size=1, max_size=30))
def test_numbers_are_written_as_python_writes_them(rows: list[tuple[int, int, bool]]) -> None:
    a, b, c = (np.array(column) for column in zip(*rows, strict=True))
    written = b"".join(text_rows([a, b",", b, b";", c, b"\n"]))
    assert written.decode() == "".join(f"{x},{y};{z:d}\n" for x, y, z in rows)


def test_more_rows_than_are_written_at_once() -> None:
    many = np.arange(-5, ROWS_AT_ONCE * 2)
    written = b"".join(text_rows([many, b"\n"]))
    assert written.decode() == "".join(f"{x}\n" for x in many.tolist())
