"""Episodes taken out of a set: the others as they were, bit for bit, and nothing of the removed."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fragdex
from fragdex.bridges.lerobot import LeRobotSet
from fragdex.bridges.lerobot_episodes import remove_episodes
from fragdex.errors import BuildError, DamagedIndex, SourceError
from fragdex.muxing.absence import left_of
from fragdex.testing import RangeServer

pa = pytest.importorskip("pyarrow")
from pyarrow import parquet  # noqa: E402

_spec = importlib.util.spec_from_file_location("episodes", Path(__file__).with_name("episodes.py"))
episodes = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(episodes)
CAMERA, write_episodes = episodes.CAMERA, episodes.write_episodes

FIXTURES = Path(__file__).parents[2] / "fixtures"
FILM = (FIXTURES / "faststart.mp4").read_bytes()
GROUPS = (12, 12, 12, 14)
VIDEO = f"videos/{CAMERA}/chunk-000/file-000.mp4"
EPISODES = "meta/episodes/chunk-000/file-000.parquet"


def tree(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def samples_equal(source: LeRobotSet, other: LeRobotSet) -> list[bool]:
    """Whether the pictures of each sample are the same; all else has to be, but numbers."""
    assert len(source) == len(other)
    alike = []
    for number, (one, two) in enumerate(zip(source, other, strict=True)):
        assert two["index"] == number
        assert one["task"] == two["task"]
        for name in ("action", "timestamp", "frame_index"):
            assert (one[name] == two[name]).all()
        alike.append(bool((one[CAMERA] == two[CAMERA]).all()))
    return alike


def changed(root: Path, column: str, value: object, row: int = 0) -> None:
    """Write a value into a column of meta/episodes."""
    rows = parquet.read_table(root / EPISODES).to_pylist()
    rows[row][column] = value
    parquet.write_table(pa.Table.from_pylist(rows), root / EPISODES)


@pytest.mark.parametrize("files", [1, 2])
@pytest.mark.parametrize("gone", [[0], [1], [3], [0, 2], [1, 2, 3]])
def test_the_others_are_as_they_were(tmp_path, files, gone):
    source, output = tmp_path / "set", tmp_path / "new"
    lengths = GROUPS if files == 1 else (12, 12, 24, 24)
    write_episodes(source, FILM, lengths, files=files, robot_type="arm")
    before = tree(source)
    made = remove_episodes(source, gone, output)
    kept = [n for n in range(4) if n not in gone]
    assert made.episodes == tuple(kept)
    assert made.findings == ()
    assert tree(source) == before
    new = LeRobotSet(output, output="numpy")
    assert all(samples_equal(LeRobotSet(source, output="numpy", episodes=kept), new))
    at = 0
    for number, old in enumerate(kept):
        episode = new.episodes[number]
        edges = episode["dataset_from_index"], episode["dataset_to_index"]
        assert edges == (at, at + lengths[old])
        at += lengths[old]
    assert made.frames == at == new.info["total_frames"]
    assert new.info["splits"] == {"train": f"0:{len(kept)}"}
    assert new.info["robot_type"] == "arm"
    assert new.info["total_tasks"] == len(new.tasks) == len({n % 2 for n in kept})
    # no picture of a removed episode is in a video, and each picture of the others once
    for name in ("file-000.mp4", "file-001.mp4")[:files]:
        path = output / Path(VIDEO).with_name(name)
        count = sum(lengths[n] for n in kept if files == 1 or n % 2 == int(name == "file-001.mp4"))
        assert path.exists() == (count > 0)
        if count and count != sum(lengths) // files:
            assert fragdex.index(path).video.sample_count == count
    stats = json.loads((output / "meta/stats.json").read_text())["action"]
    actions = np.stack([one["action"] for one in new])
    for name in ("min", "max", "mean", "std"):
        assert np.allclose(stats[name], getattr(actions, name)(axis=0), atol=1e-6)
    assert stats["count"] == [at]
    table = parquet.read_table(output / "data/chunk-000/file-000.parquet")
    assert table.schema == parquet.read_table(source / "data/chunk-000/file-000.parquet").schema
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


def test_again_and_over_http(tmp_path):
    write_episodes(tmp_path / "set", FILM, GROUPS)
    content = {f"/set/{name}": data for name, data in tree(tmp_path / "set").items()}
    with RangeServer(content) as server:
        remove_episodes(server.at("/set"), [1], tmp_path / "one")
    remove_episodes(tmp_path / "one", [1], tmp_path / "two")
    remove_episodes(tmp_path / "set", [1, 2], tmp_path / "both")
    one, two = (LeRobotSet(tmp_path / name, output="numpy") for name in ("two", "both"))
    assert all(samples_equal(one, two))
    assert one.episodes == two.episodes


class TestInsideAGroup:
    """Episodes that begin where no decoder can."""

    LENGTHS = (20, 13, 17)

    @pytest.fixture
    def source(self, tmp_path):
        write_episodes(tmp_path / "set", FILM, self.LENGTHS)
        return tmp_path / "set"

    def test_is_refused_and_nothing_is_written(self, source, tmp_path):
        with pytest.raises(BuildError, match=r"need some that are removed: .* pictures at "):
            remove_episodes(source, [1], tmp_path / "new")
        assert os.listdir(tmp_path) == ["set"]

    @pytest.mark.parametrize("gone", [[0], [1], [0, 2]])
    def test_what_is_needed_stays_and_is_named(self, source, tmp_path, gone):
        made = remove_episodes(source, gone, tmp_path / "new", keep_needed=True)
        kept = [n for n in range(3) if n not in gone]
        new = LeRobotSet(tmp_path / "new", output="numpy")
        assert all(samples_equal(LeRobotSet(source, output="numpy", episodes=kept), new))
        named = sum(int(one.split(": ")[1].split()[0]) for one in made.findings)
        count = fragdex.index(tmp_path / "new" / VIDEO).video.sample_count
        assert count == len(new) + named > len(new)

    @pytest.mark.parametrize("gone", [[0], [1], [0, 2]])
    def test_smart_leaves_no_picture_of_them(self, source, tmp_path, gone):
        made = remove_episodes(source, gone, tmp_path / "new", smart=True)
        kept = [n for n in range(3) if n not in gone]
        new, old = (
            LeRobotSet(tmp_path / "new", output="numpy"),
            LeRobotSet(source, output="numpy", episodes=kept),
        )
        assert len(new) - sum(samples_equal(old, new)) <= made.encoded < len(new)
        for one, two in zip(old, new, strict=True):
            assert np.square(one[CAMERA] - two[CAMERA]).mean() < 1e-3
        edges = np.cumsum([0, *self.LENGTHS]) / 25
        index = fragdex.index(FILM, exact=True)
        spans = [(edges[n], edges[n + 1]) for n in gone]
        assert left_of(tmp_path / "new" / VIDEO, index, FILM, spans).findings == ()


def test_the_command(tmp_path, capfd):
    from fragdex.__main__ import main

    source = str(tmp_path / "set")
    write_episodes(tmp_path / "set", FILM, GROUPS)
    (tmp_path / "set" / "README.md").write_text("a set")
    output = str(tmp_path / "new")
    assert main(["remove", source, "--episodes", "0,2-3", "-o", output]) == 0
    told = capfd.readouterr()
    assert f"{output}: 1 episodes of {source}, 12 frames, 1 videos" in told.out
    assert "not in the new set: README.md" in told.err
    for words, said in (
        (["--episodes", "0"], "it is there already"),
        (["--episodes", "9"], "there is no episode 9"),
        (["--episodes", "0-3"], "no episode would be left"),
        (["--episodes", "3-1"], "numbers such as 3,7-9"),
        (["1", "2", "--episodes", "1"], "no times"),
        (["--episodes", "1", "--strict"], "does not apply"),
        (["--keep-needed"], "goes with --episodes"),
        ([], "--episodes NUMBERS"),
    ):
        assert main(["remove", source, *words, "-o", output]) > 0
        assert said in capfd.readouterr().err, words


def test_a_kill_at_the_last_moment_leaves_the_set_and_no_new_one(tmp_path):
    write_episodes(tmp_path / "set", FILM, GROUPS)
    before = tree(tmp_path / "set")
    program = (
        "import os, signal, sys\n"
        "from fragdex.bridges import lerobot_episodes as room\n"
        "room.os.rename = lambda *names: os.kill(os.getpid(), signal.SIGKILL)\n"
        "room.remove_episodes(sys.argv[1], [1], sys.argv[2])\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "set"), str(tmp_path / "new")]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert tree(tmp_path / "set") == before
    assert not (tmp_path / "new").exists()
    assert remove_episodes(tmp_path / "set", [1], tmp_path / "new").episodes == (0, 2, 3)


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("length", 13, "other rows"),
        ("length", 1 << 60, "other rows"),
        ("length", -1, "without a number or a length"),
        ("length", None, "without a number or a length"),
        ("episode_index", None, "without a number or a length"),
        (f"videos/{CAMERA}/from_timestamp", float("nan"), "begins at nan s"),
        (f"videos/{CAMERA}/from_timestamp", 1e300, "has no pictures for the 12 rows"),
        (f"videos/{CAMERA}/from_timestamp", -9.0, "has no pictures for the 12 rows"),
        (f"videos/{CAMERA}/from_timestamp", 0.52, "two episodes have the same pictures"),
        (f"videos/{CAMERA}/file_index", None, "no video_path that names a file"),
        ("stats/action/mean", None, "no statistics of action"),
        ("stats/action/max", [1.0, 2.0, 3.0], "no statistics of action"),
    ],
)
def test_numbers_that_lie_are_refused(tmp_path, column, value, said):
    write_episodes(tmp_path / "set", FILM, GROUPS)
    changed(tmp_path / "set", column, value)
    with pytest.raises(DamagedIndex, match=said):
        remove_episodes(tmp_path / "set", [3], tmp_path / "new")
    assert os.listdir(tmp_path) == ["set"]


@pytest.mark.parametrize("name", ["../{file_index:03d}.mp4", "/tmp/{file_index:03d}.mp4"])
def test_nothing_is_read_or_written_outside(tmp_path, name):
    write_episodes(tmp_path / "a" / "set", FILM, GROUPS, video_path="f/{file_index:03d}.mp4")
    info = tmp_path / "a" / "set" / "meta" / "info.json"
    info.write_text(info.read_text().replace("f/{file_index:03d}.mp4", name))
    (tmp_path / "a" / "000.mp4").write_bytes(FILM)
    for follow in (False, True):  # what may be read is not written next to the new set
        with pytest.raises((SourceError, OSError)):
            remove_episodes(tmp_path / "a" / "set", [1], tmp_path / "a" / "new", follow=follow)
        assert sorted(os.listdir(tmp_path / "a")) == ["000.mp4", "set"]
    two = info.read_text().replace(name, "data/chunk-000/file-000.parquet")
    info.write_text(two)
    with pytest.raises(fragdex.FragdexError):
        remove_episodes(tmp_path / "a" / "set", [1], tmp_path / "a" / "new")


def test_the_set_is_that_of_lerobots_own_tool(tmp_path, monkeypatch):
    """Rows, meta, statistics and pictures, for a set that LeRobot has recorded."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    why = "it is tried beside LeRobot by ./dev bridges"
    lerobot = pytest.importorskip("lerobot.datasets.lerobot_dataset", reason=why)
    tools = importlib.import_module("lerobot.datasets.dataset_tools")
    torch = sys.modules["torch"]
    cameras = ("observation.images.top", "observation.images.side")
    video = {"dtype": "video", "shape": (48, 64, 3), "names": ["height", "width", "channels"]}
    features = {
        **dict.fromkeys(cameras, video),
        "action": {"dtype": "float32", "shape": (2,), "names": None},
    }
    chance = np.random.default_rng(1)
    source = lerobot.LeRobotDataset.create("a/b", fps=10, features=features, root=tmp_path / "set")
    noise = chance.integers(0, 255, (96, 128, 3), np.uint8)
    for number, length in enumerate((9, 14, 7, 11)):
        for place in range(length):
            pictures = dict.fromkeys(cameras, noise[place : place + 48, number : number + 64])
            source.add_frame(
                {**pictures, "action": chance.random(2, np.float32), "task": f"task {number}"}
            )
        source.save_episode()
    source.finalize()
    source = lerobot.LeRobotDataset("a/b", root=tmp_path / "set")
    tools.delete_episodes(source, [1], tmp_path / "theirs", "a/b")
    made = remove_episodes(tmp_path / "set", [1], tmp_path / "ours")
    assert made.findings == ()
    assert made.encoded == 0
    theirs, ours = (
        lerobot.LeRobotDataset("a/b", root=tmp_path / name) for name in ("theirs", "ours")
    )
    assert {**ours.meta.info} == {**theirs.meta.info}
    for name, of in theirs.meta.stats.items():
        assert of.keys() == ours.meta.stats[name].keys()
        for what, value in of.items():
            assert np.allclose(ours.meta.stats[name][what], value), (name, what)
    for one, other in zip(ours.meta.episodes, theirs.meta.episodes, strict=True):
        assert one.keys() == other.keys()
        for name, value in one.items():
            assert value == pytest.approx(other[name]), name
    kept = [*range(9), *range(23, 41)]  # rows of the source
    assert len(ours) == len(theirs) == len(kept)
    for number, row in enumerate(kept):
        one, other, was = ours[number], theirs[number], source[row]
        assert one.keys() == other.keys()
        assert one["task"] == other["task"] == was["task"]
        for name in one.keys() - {"task", "task_index", *cameras}:  # they order tasks by chance
            assert torch.equal(one[name], other[name]), name
        for name in cameras:
            assert torch.equal(one[name], was[name]), (number, name)
            # theirs is encoded again
            assert (one[name] - other[name]).abs().mean() < 0.1
