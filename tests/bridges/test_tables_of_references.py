"""Videos as references in Parquet and Iceberg: others query the rows, fragdex reads the frames."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from fragdex.errors import IndexMismatch

pytest.importorskip("pyarrow")
from fragdex.bridges.clip_table import PLAIN, ClipTable
from fragdex.data import VideoSet, Windows, WindowSampler, write_set

FIXTURES = Path(__file__).parents[2] / "fixtures"
COLUMNS = [*PLAIN, "md5", "seed"]


@pytest.fixture
def windows(tmp_path):
    (tmp_path / "films").mkdir()
    for name in ("frag-cmaf.mp4", "open-gop.mp4"):
        shutil.copy(FIXTURES / name, tmp_path / "films")
    write_set(tmp_path / "films", tmp_path / "set.parquet")
    return Windows(VideoSet(tmp_path / "set.parquet"), frames=8)


@pytest.fixture
def table(windows):
    return ClipTable(windows, COLUMNS, order=WindowSampler(windows, seed=5))


def in_duckdb(path):
    duckdb = pytest.importorskip("duckdb")
    query = f"FROM '{path}' WHERE first >= 8 AND first < 32"
    return duckdb.sql(query).to_arrow_table().to_pylist()


def in_polars(path):
    pl = pytest.importorskip("polars")
    return pl.read_parquet(path).filter(pl.col("first").is_between(8, 31)).to_dicts()


@pytest.mark.parametrize("query", [in_duckdb, in_polars])
def test_rows_of_a_query_are_frames_again(windows, table, tmp_path, query):
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(table.reader().read_all(), tmp_path / "clips.parquet")
    rows = query(tmp_path / "clips.parquet")
    assert len(rows) == 6
    assert rows == [row for row in table.reader().read_all().to_pylist() if 8 <= row["first"] < 32]
    for row in rows:
        data = (tmp_path / row["uri"]).read_bytes()
        parts = [data[one["offset"] : one["offset"] + one["length"]] for one in row["ranges"]]
        assert hashlib.md5(b"".join(parts), usedforsecurity=False).hexdigest() == row["md5"]
    batch = windows.batch(table.numbers(rows))
    assert batch["numbers"][:, 0].tolist() == [row["first"] for row in rows]
    assert batch["times"][:, -1].tolist() == [row["end"] for row in rows]
    again = windows.batch(ClipTable(windows).numbers(query(tmp_path / "clips.parquet")))
    assert (again["frames"] == batch["frames"]).all()


def test_rows_have_seeds_by_seed_epoch_and_window(windows, table):
    def seeds(seed=5, epoch=0):
        order = WindowSampler(windows, seed=seed)
        order.set_epoch(epoch)
        rows = ClipTable(windows, ["video", "first", "seed"], order=order).reader().read_all()
        return {(row["video"], row["first"]): row["seed"] for row in rows.to_pylist()}

    rows = table.reader().read_all().to_pylist()
    assert seeds() == {(row["video"], row["first"]): row["seed"] for row in rows}
    every = [value for found in (seeds(), seeds(6), seeds(5, 1)) for value in found.values()]
    assert len(set(every)) == len(every) == 3 * len(windows)
    assert min(every) >= 0
    with pytest.raises(ValueError, match="seed"):
        ClipTable(windows, ["seed"])


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"md5": 32 * "0"}, "md5"),
        ({"uri": "films/other.mp4"}, "uri"),
        ({"ranges": [{"offset": 0, "length": 1 << 50}]}, "ranges"),
        ({"first": 9}, "first"),
        ({"video": 2}, "video"),
        ({"video": -1}, "video"),
        ({"video": None}, "video"),
        ({"first": None}, "first"),
        ({"first": 1 << 40}, "first"),
    ],
)
def test_a_row_that_is_not_of_these_windows_is_refused(windows, table, change, what):
    row = table.reader(3, 4).read_all().to_pylist()[0]
    assert table.numbers([row]) == [int(table.order.order()[3])]
    with pytest.raises(IndexMismatch, match=what):
        table.numbers([row | change])


def test_a_video_that_changed_is_noticed_by_its_md5(windows, table, tmp_path):
    row = next(row for row in table.reader().read_all().to_pylist() if row["video"] == 1)
    path, place = tmp_path / row["uri"], row["ranges"][-1]
    data = bytearray(path.read_bytes())
    data[place["offset"] + place["length"] // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(IndexMismatch, match="md5"):
        table.numbers([row])


def by_first(rows):
    return sorted(rows, key=lambda row: row["first"])


def test_iceberg_keeps_the_rows_and_their_versions(windows, table, tmp_path):
    sql = pytest.importorskip("pyiceberg.catalog.sql", reason="tried by ./dev bridges")
    catalog = sql.SqlCatalog(
        "local", uri=f"sqlite:///{tmp_path / 'catalog.db'}", warehouse=tmp_path.as_uri()
    )
    catalog.create_namespace("videos")
    clips = catalog.create_table("videos.clips", schema=table.schema)
    clips.append(table.reader(0, 6).read_all())
    before = clips.current_snapshot().snapshot_id
    clips.append(table.reader(6).read_all())
    assert clips.scan(snapshot_id=before).to_arrow().num_rows == 6
    rows = clips.scan(row_filter="first >= 8 and video = 1").to_arrow().to_pylist()
    every = table.reader().read_all().to_pylist()
    assert by_first(rows) == by_first(
        row for row in every if row["first"] >= 8 and row["video"] == 1
    )
    pytest.importorskip("duckdb")
    found = clips.scan().to_duckdb("clips").sql("SELECT count(*) FROM clips WHERE video = 0")
    assert found.fetchall() == [(sum(row["video"] == 0 for row in every),)]
    batch = windows.batch(table.numbers(rows))
    assert batch["numbers"][:, 0].tolist() == [row["first"] for row in rows]
