"""Videos in the data sets of others: tar shards, columns of videos, tables of clips."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

import fragdex
from fragdex.bridges.tar_films import TarFilms, decoder
from fragdex.errors import DamagedIndex
from fragdex.testing import RangeServer

pytest.importorskip("pyarrow")
from fragdex.bridges.clip_table import PLAIN, ClipTable, daft_source, ray_source
from fragdex.data import VideoSet, Windows, WindowSampler, write_set

FIXTURES = Path(__file__).parents[2] / "fixtures"
NAMES = ["frag-cmaf.mp4", "open-gop.mp4"]
WHY = "it is tried beside the library by ./dev bridges"


@pytest.fixture
def windows(tmp_path):
    path = tmp_path / "set.parquet"
    write_set([str(FIXTURES / name) for name in NAMES], str(path))
    return Windows(VideoSet(path, follow=True), frames=8, stride=2, step=8)


@pytest.fixture
def shard(tmp_path):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for number, name in enumerate(NAMES):
            tar.add(FIXTURES / name, f"{number:03d}.mp4")
            text = tarfile.TarInfo(f"{number:03d}.txt")
            text.size = 2
            tar.addfile(text, io.BytesIO(b"ab"))
        link = tarfile.TarInfo("passwd.mp4")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    path = tmp_path / "shard.tar"
    path.write_bytes(archive.getvalue())
    return path


def test_videos_of_a_tar_file_are_read_where_they_lie(shard):
    with RangeServer(shard.read_bytes()) as server, TarFilms(server.url) as films:
        assert list(films) == ["000.mp4", "001.mp4"]
        size = sum(_size(one.range) for one in server.requests if one.range)
        assert size <= shard.stat().st_size + (32 << 10)
        for name, own in zip(films, NAMES, strict=True):
            expected = fragdex.Frames(FIXTURES / own)
            assert (films[name][[3, 40]].data == expected[[3, 40]].data).all()
            window = fragdex.index(films.source(name), exact=True).window("video", 3, 5)
            packets = window.packets(films.source(name))
            own_window = fragdex.index(FIXTURES / own, exact=True).window("video", 3, 5)
            assert packets == own_window.packets()
    with pytest.raises(KeyError):
        films["passwd.mp4"]


def _size(header):
    first, last = header.removeprefix("bytes=").split("-")
    return int(last) + 1 - int(first)


@pytest.mark.parametrize("data", [b"\x1f\x8b" + bytes(600), b"x" * 1024, (b"a" + bytes(156)) * 9])
def test_what_is_no_tar_file_is_told(data):
    with pytest.raises(DamagedIndex, match="not a tar file"):
        TarFilms(data)


def test_a_row_has_what_decodes_its_frames(windows):
    table = ClipTable(windows, [*PLAIN, "clip", "frames"])
    rows = table.reader().read_all().to_pylist()
    assert len(rows) == len(table) == len(windows)
    for number, row in enumerate(rows):
        sample = windows[number]
        expected = np.asarray(sample["frames"])
        assert (np.array(row["frames"], np.uint8).reshape(expected.shape) == expected).all()
        assert (row["video"], row["first"]) == (sample["video"], int(sample["numbers"][0]))
        assert row["start"] == sample["times"][0]
        clip = fragdex.Frames(row["clip"])
        assert (clip[row["wanted"]].data == expected).all()
        data = (FIXTURES / Path(row["uri"]).name).read_bytes()
        ranges = [(one["offset"], one["length"]) for one in row["ranges"]]
        assert sum(length for _, length in ranges) < len(data)


def test_what_is_not_asked_for_is_not_read(windows, monkeypatch):
    monkeypatch.setattr(VideoSet, "source", None)
    monkeypatch.setattr(VideoSet, "frames", None)
    monkeypatch.setattr(Windows, "__getitems__", None)
    assert ClipTable(windows).reader().read_all().num_rows == len(windows)
    monkeypatch.setattr(VideoSet, "index_of", None)
    rows = ClipTable(windows, ["uri", "first"]).reader(1, 3).read_all().to_pylist()
    assert [row["first"] for row in rows] == [8, 16]
    with pytest.raises(ValueError, match="no column 'pixels'"):
        ClipTable(windows, ["pixels"])


def test_rows_have_the_order_of_a_sampler(windows):
    order = WindowSampler(windows, seed=3)
    table = ClipTable(windows, ["video", "first"], order=order).select(["first", "video"])
    expected = [(windows.video_of(n), windows.first_frame(n)) for n in order.order().tolist()]
    rows = [(row["video"], row["first"]) for row in table.reader(1, 9).read_all().to_pylist()]
    assert rows == expected[1:9]
    assert len(table) == len(expected)


def test_webdataset_decodes_videos_of_shards(shard):
    webdataset = pytest.importorskip("webdataset", reason=WHY)
    samples = webdataset.WebDataset(str(shard), shardshuffle=False).decode(decoder(format="gray"))
    samples_by_key = {sample["__key__"]: sample for sample in samples if "mp4" in sample}
    for number, name in enumerate(NAMES):
        sample = samples_by_key[f"{number:03d}"]
        assert sample["txt"] == "ab"
        expected = fragdex.Frames(FIXTURES / name, format="gray")[7].data
        assert (sample["mp4"][7].data == expected).all()


def test_datasets_decode_a_column_of_videos():
    datasets = pytest.importorskip("datasets", reason=WHY)
    from fragdex.bridges.film_column import film

    values = [str(FIXTURES / NAMES[0]), {"bytes": (FIXTURES / NAMES[1]).read_bytes(), "path": None}]
    rows = [{"bytes": None, "path": values[0]}, values[1]]
    plain = datasets.Features({"video": datasets.Video(decode=False)})
    data = datasets.Dataset.from_dict({"video": rows}, features=plain)
    data = data.cast_column("video", film(root=FIXTURES, size=(32, 24)))
    for number, name in enumerate(NAMES):
        frames = data[number]["video"]
        assert frames.shape == (50, 24, 32, 3)
        expected = fragdex.Frames(FIXTURES / name, size=(32, 24))[7].data
        assert (frames[7].data == expected).all()
    assert isinstance(data.cast_column("video", datasets.Video(decode=False))[0]["video"], dict)


def test_lance_keeps_clips_as_blobs(windows, tmp_path):
    lance = pytest.importorskip("lance", reason=WHY)
    table = ClipTable(windows, [*PLAIN, "clip"])
    data = lance.write_dataset(table.reader(), tmp_path / "clips.lance")
    assert data.count_rows(filter="first >= 8") == sum(
        row["first"] >= 8 for row in ClipTable(windows).reader().read_all().to_pylist()
    )
    row = data.take([2], columns=["wanted", "first", "video"]).to_pylist()[0]
    with data.take_blobs("clip", indices=[2])[0] as blob:
        clip = fragdex.Frames(blob.readall())
    assert (clip[row["wanted"]].data == windows[2]["frames"]).all()


def test_lancedb_has_a_table_of_clips(windows, tmp_path):
    lancedb = pytest.importorskip("lancedb", reason=WHY)
    table = ClipTable(windows, [*PLAIN, "clip"])
    clips = lancedb.connect(tmp_path / "clips").create_table("clips", table.reader())
    query = clips.search().where("first = 8 and video = 1").select(["uri", "wanted"])
    (row,) = query.with_row_id(True).to_list()
    assert row["uri"].endswith(NAMES[1])
    with clips.to_lance().take_blobs("clip", ids=[row["_rowid"]])[0] as blob:
        clip = fragdex.Frames(blob.readall())[row["wanted"]].data
    numbers = [n for n in range(len(windows)) if windows.video_of(n) == 1]
    assert (clip == windows[numbers[1]]["frames"]).all()


def test_daft_reads_windows_and_pushes_down_columns(windows, monkeypatch):
    daft = pytest.importorskip("daft", reason=WHY)
    frame = daft_source(ClipTable(windows, ["uri", "first", "frames"]), rows=2).read()
    columns = frame.where(daft.col("first") == 8).to_pydict()
    assert len(columns["first"]) == 2
    pixels = np.array(columns["frames"][0], np.uint8).reshape(windows[1]["frames"].shape)
    assert (pixels == windows[1]["frames"]).all()
    monkeypatch.setattr(Windows, "__getitems__", None)
    assert frame.select("first").limit(3).to_pydict()["first"] == [0, 8, 16]


def test_ray_reads_windows_in_tasks(windows):
    ray = pytest.importorskip("ray", reason=WHY)
    pytest.importorskip("ray.data", reason=WHY)
    ray.init(num_cpus=1, log_to_driver=False, include_dashboard=False)
    try:
        sampler = WindowSampler(windows, seed=3)
        table = ClipTable(windows, ["video", "first", "frames"], order=sampler)
        rows = ray.data.read_datasource(ray_source(table), override_num_blocks=2).take_all()
    finally:
        ray.shutdown()
    assert len(rows) == len(windows)
    rows = {(row["video"], row["first"]): row["frames"] for row in rows}
    for number in range(len(windows)):
        sample = windows[number]
        pixels = np.asarray(rows[sample["video"], int(sample["numbers"][0])], np.uint8)
        assert (pixels.reshape(sample["frames"].shape) == sample["frames"]).all()
