"""Arrow and Parquet through pyarrow: the same numbers, with their units."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fragdex.errors import InexactIndex, TrackNotFound
from fragdex.formats import arrow
from fragdex.fragments.table import NULL, SampleTable
from fragdex.fragments.track_info import Movie, TrackInfo
from fragdex.seeking.model import FileInfo, How, Index, Period, Track
from strategies.indexes import indexes, tables_from_samples

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


@settings(max_examples=50)
@given(indexes(), st.sampled_from(sorted(arrow.TABLES)))
def test_every_row_of_every_track_comes_back(index: Index, of: str) -> None:
    forms = [
        pa.ipc.open_stream(arrow.write(index, of=of)).read_all(),
        pa.ipc.open_file(arrow.write(index, of=of, container="file")).read_all(),
        parquet.read_table(io.BytesIO(arrow.write_parquet(index, of=of))),
    ]
    for table in forms:
        table.validate(full=True)
        assert table.schema.equals(arrow.table(index, of=of).schema, check_metadata=True)
        tables = [getattr(t, "sync_samples" if of == "sync" else of) for t in index.tracks]
        for column in arrow.TABLES[of].schema():
            expected = [value for one in tables for value in getattr(one, column.name).tolist()]
            values = table[column.stored].to_pylist()
            shown = [NULL if value is None else value for value in values]
            assert shown == expected
        rows = [
            [t.period, t.id, t.timescale]
            for t, one in zip(index.tracks, tables, strict=True)
            for _ in range(len(one))
        ]
        columns = [table[name].to_pylist() for name in ("period", "track_id", "timescale")]
        assert [list(row) for row in zip(*columns, strict=True)] == rows


def test_units_and_meanings_stand_in_the_metadata() -> None:
    index = Index(FileInfo("a.mp4", 9), How("boxes", True), ())
    schema = arrow.table(index).schema
    assert schema.field("dts").metadata == {
        b"unit": b"tick",
        b"meaning": b"decode time of the first sample",
    }
    assert schema.field("dts").nullable
    assert not schema.field("offset").nullable
    assert json.loads(schema.metadata[b"fragdex"])["source"] == {"name": "a.mp4", "size": 9}


def vague() -> Index:
    fragments, sync = tables_from_samples(SampleTable.empty(), [])
    fragments = type(fragments).of({name: [NULL] for name in fragments.columns()} | {"flags": [0]})
    track = Track(TrackInfo.unknown(3), fragments, sync)
    period = Period(0, (), Movie(0, 0, True, ()), (track,))
    return Index(FileInfo(), How("sidx", False), [period])


def test_what_is_not_known_is_null() -> None:
    table = arrow.table(vague())
    assert table["dts"].to_pylist() == [None]
    assert table["offset"].to_pylist() == [NULL]  # not a column that may be unknown


def test_what_cannot_be_had_is_refused() -> None:
    with pytest.raises(InexactIndex):
        arrow.write(vague(), of="samples")
    with pytest.raises(TrackNotFound):
        arrow.write(vague(), tracks=[1])
    with pytest.raises(ValueError, match="no table 'rows'"):
        arrow.write(vague(), of="rows")
    with pytest.raises(ValueError, match="no container 'zip'"):
        arrow.write(vague(), container="zip")


def test_without_pyarrow_the_extra_is_named() -> None:
    program = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from fragdex.formats import arrow\n"
        "from fragdex.seeking.model import *\n"
        "arrow.write(Index(FileInfo(), How('boxes', True), ()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (
        "MissingExtra: Arrow and Parquet need pyarrow; pip install 'fragdex[data]'" in done.stderr
    )


def test_an_export_is_a_plain_table_to_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_parquet(io.BytesIO(arrow.write_parquet(vague())))
    assert frame["track_id"].tolist() == [3]
    assert np.isnan(frame["dts"][0])
