"""Films in a column of a Lance table: the frames are those of the files, in one read of Lance."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import pytest

import fragdex
from fragdex.bridges.lance_videos import LanceVideos
from fragdex.data import VideoSet, Windows, write_set

lance = pytest.importorskip("lance", reason="it is tried beside the library by ./dev bridges")
pa = pytest.importorskip("pyarrow")

FIXTURES = Path(__file__).parents[2] / "fixtures"
NAMES = ["frag-cmaf.mp4", "one-gop.mp4", "open-gop.mp4"]


def table_of(names, path, **options):
    films = [None if name is None else (FIXTURES / name).read_bytes() for name in names]
    rows = pa.table({"name": names, "film": lance.blob_array(films)})
    return lance.write_dataset(rows, path, data_storage_version="2.2", **options)


@pytest.fixture
def films(tmp_path):
    table_of([NAMES[0], None, *NAMES[1:]], tmp_path / "films.lance")
    return LanceVideos(tmp_path / "films.lance", "film")


def windows_of(path, **options):
    return Windows(VideoSet(path, root="", **options), frames=8, stride=2, step=5)


@pytest.fixture
def windows(films, tmp_path):
    write_set("", tmp_path / "lance.parquet", filesystem=films)
    return windows_of(tmp_path / "lance.parquet", filesystem=films)


@pytest.fixture
def own(tmp_path):
    write_set([str(FIXTURES / name) for name in NAMES], tmp_path / "own.parquet")
    return Windows(VideoSet(tmp_path / "own.parquet", follow=True), frames=8, stride=2, step=5)


def test_rows_are_files_and_rows_without_a_film_are_none(films):
    assert films.find() == [f"000000000{row}.mp4" for row in (0, 2, 3)]
    data = (FIXTURES / NAMES[1]).read_bytes()
    assert films.cat_file("2.mp4") == data
    assert films.cat_file("lance-videos://2.mp4", -7) == data[-7:]
    assert films.cat_file("2.mp4", 4, 8) == b"ftyp"
    with films.open("2.mp4") as file:
        assert file.read() == data
    for name in ("1.mp4", "4.mp4", "-1.mp4", "../2.mp4", "²"):
        with pytest.raises(FileNotFoundError):
            films.info(name)
    index = fragdex.index("2.mp4", filesystem=films)
    assert index.tracks == fragdex.index(FIXTURES / NAMES[1]).tracks
    with pytest.raises(ValueError, match="'name' is not a column of blobs"):
        LanceVideos(films.storage_args[0], "name")


def test_a_batch_is_one_read_and_has_the_frames_of_the_files(films, windows, own, monkeypatch):
    calls = []
    read = films._ranges
    monkeypatch.setattr(films, "_ranges", lambda wanted: calls.append(wanted) or read(wanted))
    assert len(windows) == len(own)
    order = sorted(range(len(own)), key=lambda number: number * 7 % 11)
    one, other = films.batch(windows, order), own.batch(order)
    assert [len({row for row, _, _ in wanted}) for wanted in calls] == [3]
    for name in ("frames", "times", "numbers"):
        assert (one[name] == other[name]).all()
    again = films.batch(windows, order)
    assert (again["frames"] == one["frames"]).all()
    assert (windows[1]["frames"] == own[1]["frames"]).all()


def test_another_process_opens_the_same_version_for_itself(films, windows, own):
    table_of([NAMES[0]], films.storage_args[0], mode="append")
    there = pickle.loads(pickle.dumps(windows))  # noqa: S301
    assert (there[2]["frames"] == own[2]["frames"]).all()
    assert len(pickle.loads(pickle.dumps(films)).find()) == 3  # noqa: S301


def test_rows_that_were_added_are_indexed_alone(films, windows, tmp_path):
    table_of([NAMES[1]], films.storage_args[0], mode="append")
    later = LanceVideos(*films.storage_args)
    summary = write_set("", tmp_path / "lance.parquet", filesystem=later)
    assert (summary.films, summary.indexed, summary.unchanged) == (4, 1, 3)
    assert len(windows_of(tmp_path / "lance.parquet", filesystem=later)) > len(windows)


def test_a_table_that_was_made_anew_is_not_read_by_the_old_set(films, windows, tmp_path):
    shutil.rmtree(films.storage_args[0])
    table_of([NAMES[0], None, *NAMES[1:]], films.storage_args[0])
    later = LanceVideos(*films.storage_args)
    stale = windows_of(tmp_path / "lance.parquet", filesystem=later)
    with pytest.raises(fragdex.errors.SourceError):
        later.batch(stale, [0, len(stale) - 1])
