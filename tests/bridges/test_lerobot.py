"""Episodes in LeRobot's form: the tensors of its own loader, from folders and over HTTP."""

from __future__ import annotations

import importlib.util
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

import fragdex
from fragdex.bridges.lerobot import LeRobotSet
from fragdex.errors import DamagedIndex, SourceError, SourceNotFound, UndecodableMedia
from fragdex.testing import RangeServer

pytest.importorskip("pyarrow")
_spec = importlib.util.spec_from_file_location("episodes", Path(__file__).with_name("episodes.py"))
episodes = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(episodes)
CAMERA, write_episodes = episodes.CAMERA, episodes.write_episodes

FILM = (Path(__file__).parents[2] / "fixtures" / "open-gop.mp4").read_bytes()
PIXELS = np.moveaxis(np.asarray(fragdex.Frames(FILM)), -1, 1) / np.float32(255)


@pytest.mark.parametrize("files", [1, 2])
def test_each_sample_has_its_frame_and_its_row(tmp_path, files):
    rows = write_episodes(tmp_path, FILM, files=files)
    films = LeRobotSet(tmp_path, output="numpy")
    assert len(films) == 50
    begins = {0: 0, 1: 20 if files == 1 else 0, 2: 33 if files == 1 else 20}
    for number, sample in enumerate(films):
        episode = int(rows["episode_index"][number])
        frame = begins[episode] + int(rows["frame_index"][number])
        assert sample[CAMERA].dtype == np.float32
        assert (sample[CAMERA] == PIXELS[frame]).all()
        assert sample["task"] == ("pick", "place")[episode % 2]
        assert np.allclose(sample["action"], rows["action"][number])
        assert sample["index"] == number


def test_times_around_a_frame_stop_at_the_ends_of_its_episode(tmp_path):
    write_episodes(tmp_path, FILM)
    deltas = {CAMERA: [-0.08, 0, 0.04], "action": [0, 0.04]}
    films = LeRobotSet(tmp_path, output="numpy", delta_timestamps=deltas)
    sample = films[20]
    assert (sample[CAMERA] == PIXELS[[20, 20, 21]]).all()
    assert sample[f"{CAMERA}_is_pad"].tolist() == [True, False, False]
    last = films[-1]
    assert last["action_is_pad"].tolist() == [False, True]
    assert (last["action"][0] == last["action"][1]).all()
    with pytest.raises(ValueError, match="no multiples"):
        LeRobotSet(tmp_path, delta_timestamps={CAMERA: [0.01]})
    with pytest.raises(ValueError, match="no feature"):
        LeRobotSet(tmp_path, delta_timestamps={"reward": [0]})


def test_some_episodes_a_batch_and_another_process(tmp_path):
    write_episodes(tmp_path, FILM)
    films = LeRobotSet(tmp_path, output="numpy", episodes=[2, 0])
    assert len(films) == 37
    batch = pickle.loads(pickle.dumps(films)).__getitems__([36, 0, 5, 20])  # noqa: S301
    for number, sample in zip([36, 0, 5, 20], batch, strict=True):
        assert (sample[CAMERA] == films[number][CAMERA]).all()
    with pytest.raises(IndexError):
        films[37]
    with pytest.raises(ValueError, match="no episode 3"):
        LeRobotSet(tmp_path, episodes=[3])


def test_over_http_a_batch_costs_few_requests(tmp_path):
    write_episodes(tmp_path, FILM)
    content = {
        "/set/" + path.relative_to(tmp_path).as_posix(): path.read_bytes()
        for path in tmp_path.rglob("*") if path.is_file()
    }  # fmt: skip
    with RangeServer(content) as server:
        films = LeRobotSet(server.at("/set"), output="numpy")
        _ = films[0]
        server.requests.clear()
        batch = films.__getitems__([21, 25, 22, 24])
        assert len(server.requests) == 1
    for number, sample in zip([21, 25, 22, 24], batch, strict=True):
        assert (sample[CAMERA] == PIXELS[number]).all()


@pytest.mark.parametrize(
    "template",
    ["{video_key.__class__}", "{chunk_index:999999999d}", "{x}", "{0}", "{video_key!r}", "{", 7],
)
def test_a_path_does_nothing_but_name_a_file(tmp_path, template):
    write_episodes(tmp_path, FILM, video_path=template)
    with pytest.raises(DamagedIndex, match="an invalid path"):
        LeRobotSet(tmp_path)


@pytest.mark.parametrize(
    "template",
    [
        "../{file_index:03d}.mp4", "/tmp/a.mp4", "http://h/a.mp4", "away/{file_index:03d}.mp4",
        "away/set/../{file_index:03d}.mp4", "link.mp4",
    ],
)  # fmt: skip
def test_nothing_outside_of_its_root_is_opened(tmp_path, template):
    root = tmp_path / "set"
    write_episodes(root, FILM, video_path="f/{file_index:03d}.mp4")
    info = root / "meta" / "info.json"
    info.write_text(info.read_text().replace("f/{file_index:03d}.mp4", template))
    (root / "away").symlink_to(tmp_path)
    (root / "link.mp4").symlink_to(tmp_path / "000.mp4")
    (tmp_path / "000.mp4").write_bytes(FILM)
    with pytest.raises(SourceError, match="outside of"):
        LeRobotSet(root, output="numpy")[0]
    if template[0] not in "/h":
        assert (LeRobotSet(root, output="numpy", follow=True)[0][CAMERA] == PIXELS[0]).all()


def test_what_is_wrong_with_a_set_is_told(tmp_path):
    with pytest.raises(SourceNotFound, match="not a set of episodes"):
        LeRobotSet(tmp_path)
    write_episodes(tmp_path / "old", FILM, codebase_version="v2.1")
    with pytest.raises(DamagedIndex, match="another version"):
        LeRobotSet(tmp_path / "old")
    write_episodes(tmp_path / "more", FILM, total_episodes=4)
    with pytest.raises(DamagedIndex, match="other episodes"):
        LeRobotSet(tmp_path / "more")
    write_episodes(tmp_path / "fast", FILM, (20, 40), fps=25)
    with pytest.raises(UndecodableMedia, match="no picture within"):
        LeRobotSet(tmp_path / "fast", output="numpy")[-1]


def test_the_tensors_are_those_of_lerobot(tmp_path, monkeypatch):
    why = "it is tried beside LeRobot by ./dev bridges"
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    lerobot = pytest.importorskip("lerobot.datasets.lerobot_dataset", reason=why)
    torch = sys.modules["torch"]
    camera = {"dtype": "video", "shape": (48, 64, 3), "names": ["height", "width", "channels"]}
    features = {
        "observation.images.top": camera,
        "observation.images.side": camera,
        "observation.state": {"dtype": "float32", "shape": (4,), "names": None},
        "action": {"dtype": "float32", "shape": (2,), "names": None},
    }  # fmt: skip
    root, chance = tmp_path / "set", np.random.default_rng(1)
    dataset = lerobot.LeRobotDataset.create(
        "a/b", fps=10, features=features, root=root, vcodec="h264"
    )
    noise = chance.integers(0, 255, (96, 128, 3), np.uint8)
    for number, length in enumerate((9, 14)):
        for place in range(length):
            dataset.add_frame(
                {
                    "observation.images.top": noise[place : place + 48, :64],
                    "observation.images.side": noise[:48, 2 * place : 2 * place + 64],
                    "observation.state": chance.random(4, np.float32),
                    "action": chance.random(2, np.float32),
                    "task": f"task {number}",
                }
            )
        dataset.save_episode()
    dataset.finalize()
    deltas = {"observation.images.top": [-0.2, 0, 0.1], "action": [0, 0.1, 0.2]}
    for options in ({}, {"delta_timestamps": deltas}, {"episodes": [1]}):
        theirs = lerobot.LeRobotDataset("a/b", root=root, **options)
        ours = LeRobotSet(root, **options)
        assert len(ours) == len(theirs)
        for number in range(len(ours)):
            one, other = theirs[number], ours[number]
            assert set(one) == set(other)
            for name, value in one.items():
                if isinstance(value, str):
                    assert other[name] == value
                else:
                    assert other[name].dtype == value.dtype
                    assert torch.equal(other[name], value), (number, name)
    loader = torch.utils.data.DataLoader(ours, batch_size=4)
    assert next(iter(loader))["action"].shape == (4, 2)
