"""Sets of episodes stored as tables of Lance: the tensors of the folder, a batch in one read."""

from __future__ import annotations

import importlib.util
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

from fragdex.bridges.lerobot import LeRobotSet
from fragdex.errors import DamagedIndex, SourceNotFound

lance = pytest.importorskip("lance", reason="it is tried beside the library by ./dev bridges")
pa = pytest.importorskip("pyarrow")
from pyarrow import parquet  # noqa: E402

from fragdex.bridges.lerobot_lance import LeRobotLanceSet  # noqa: E402

_spec = importlib.util.spec_from_file_location("episodes", Path(__file__).with_name("episodes.py"))
episodes = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(episodes)
CAMERA = episodes.CAMERA
FILM = (Path(__file__).parents[2] / "fixtures" / "open-gop.mp4").read_bytes()


def stored(root: Path, output: Path) -> None:
    """A set as LeRobot's converter stores it."""
    paths = sorted(path for path in (root / "meta").rglob("*") if path.is_file())
    meta = pa.table({
        "path": [path.relative_to(root / "meta").as_posix() for path in paths],
        "data": pa.array([path.read_bytes() for path in paths], pa.large_binary()),
    })  # fmt: skip
    frames = parquet.read_table(root / "data/chunk-000/file-000.parquet")
    frames = frames.rename_columns([name.replace(".", "_") for name in frames.column_names])
    videos = sorted((root / "videos").rglob("*.mp4"))
    rows = pa.table({
        "video_key": [path.parts[-3] for path in videos],
        "chunk_index": [int(path.parts[-2][-3:]) for path in videos],
        "file_index": [int(path.stem[-3:]) for path in videos],
        "video_bytes": lance.blob_array([path.read_bytes() for path in videos]),
    })  # fmt: skip
    lance.write_dataset(meta, output / "meta.lance")
    lance.write_dataset(frames, output / "frames.lance")
    lance.write_dataset(rows, output / "videos.lance", data_storage_version="2.2")


@pytest.fixture
def folder(tmp_path):
    episodes.write_episodes(tmp_path / "set", FILM, files=2)
    stored(tmp_path / "set", tmp_path / "lance")
    return tmp_path


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"episodes": [2, 0]},
        {"delta_timestamps": {CAMERA: [-0.08, 0, 0.04], "action": [0, 0.04]}},
    ],
)
def test_the_tensors_are_those_of_the_folder(folder, options):
    ours = LeRobotLanceSet(folder / "lance", output="numpy", **options)
    theirs = LeRobotSet(folder / "set", output="numpy", **options)
    assert len(ours) == len(theirs)
    order = np.random.default_rng(1).permutation(len(ours)).tolist()
    both = zip(ours.__getitems__(order), theirs.__getitems__(order), strict=True)
    for one, other in both:
        assert one.keys() == other.keys()
        for name, value in other.items():
            assert np.array_equal(one[name], value), name
            assert getattr(one[name], "dtype", str) == getattr(value, "dtype", str)


def test_a_batch_is_one_read_and_a_pickle_opens_the_same(folder, monkeypatch):
    ours = LeRobotLanceSet(folder / "lance", output="numpy")
    _ = ours.__getitems__([0, 21])  # both videos are open
    calls = []
    read = ours.videos._ranges
    monkeypatch.setattr(ours.videos, "_ranges", lambda some: calls.append(some) or read(some))
    batch = ours.__getitems__([35, 10, 30, 1])
    assert len(calls) == 1
    assert {row for row, _, _ in calls[0]} == {0, 1}
    monkeypatch.undo()
    again = pickle.loads(pickle.dumps(ours)).__getitems__([35, 10, 30, 1])  # noqa: S301
    for one, other in zip(batch, again, strict=True):
        assert (one[CAMERA] == other[CAMERA]).all()


def test_meta_may_be_a_folder(folder):
    shutil.rmtree(folder / "lance" / "meta.lance")
    with pytest.raises(SourceNotFound):
        LeRobotLanceSet(folder / "lance")
    shutil.copytree(folder / "set" / "meta", folder / "lance" / "meta")
    assert len(LeRobotLanceSet(folder / "lance", output="numpy")) == 50


def test_a_video_that_is_not_there_is_named(folder):
    table = lance.dataset(folder / "lance" / "videos.lance")
    table.delete("file_index = 1")
    with pytest.raises(DamagedIndex, match=r"has no video .*0, 1"):
        LeRobotLanceSet(folder / "lance")
    with pytest.raises(ValueError, match="not found"):
        LeRobotLanceSet(folder / "set")


def test_a_bucket_gives_the_same(folder):
    boto3 = pytest.importorskip("boto3")
    moto = pytest.importorskip("moto.server")
    server = moto.ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        url = "http://{}:{}".format(*server.get_host_and_port())
        keys = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}
        client = boto3.client("s3", endpoint_url=url, region_name="us-east-1", **keys)
        client.create_bucket(Bucket="sets")
        for path in (folder / "lance").rglob("*"):
            if path.is_file():
                name = f"a/{path.relative_to(folder / 'lance').as_posix()}"
                client.put_object(Bucket="sets", Key=name, Body=path.read_bytes())
        options = {**keys, "aws_endpoint": url, "allow_http": "true", "aws_region": "us-east-1"}
        ours = LeRobotLanceSet("s3://sets/a", output="numpy", storage_options=options)
        theirs = LeRobotSet(folder / "set", output="numpy")
        for one, other in zip(
            ours.__getitems__([40, 3, 22]), theirs.__getitems__([40, 3, 22]), strict=True
        ):
            assert (one[CAMERA] == other[CAMERA]).all()
    finally:
        server.stop()
