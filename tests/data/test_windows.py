"""Windows of many films: which frames, in what order, in which process, at what cost."""

from __future__ import annotations

import copy
import json
import multiprocessing
import os
import pickle
import sys
import threading
import types
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fragdex
from decoding.filming import number_in, numbered
from fragdex.data import Costs, VideoSet, Windows, WindowSampler, WindowStream, write_set
from fragdex.data import windows as windows_module
from fragdex.errors import SourceChanged, UndecodableMedia
from fragdex.testing import RangeServer

SIZE = (64, 16)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Films of 60, 35, 5 and 48 frames, whose pictures say their number."""
    folder = tmp_path_factory.mktemp("films")
    for name, count, fps, options in (
        ("a", 60, 30, {"keys": 12}), ("b", 35, 25, {"keys": 35, "fragmented": False}),
        ("c", 5, 25, {}), ("d", 48, 24, {"keys": 8, "bframes": 0}),
    ):  # fmt: skip
        (folder / f"{name}.mp4").write_bytes(numbered(count, fps, size=SIZE, **options))
    write_set(folder, folder / "set.parquet")
    return folder


@pytest.fixture(scope="module")
def videos(folder):
    return VideoSet(folder / "set.parquet")


@pytest.fixture(scope="module")
def windows(videos):
    return Windows(videos, frames=6, stride=2, step=5, format="gray")


def said(sample):
    """The numbers that the pictures of a sample say."""
    return [number_in(np.asarray(frame)[..., 0]) for frame in sample["frames"]]


def test_windows_have_the_frames_that_they_say(videos, windows):
    expected = [
        (number, first)
        for number, video in enumerate(videos)
        for first in range(0, video.frames - 10, 5)
    ]
    assert len(windows) == len(expected) == 10 + 5 + 0 + 8
    for window, (video, first) in enumerate(expected):
        sample = windows[window]
        assert (sample["video"], sample["window"]) == (video, window)
        assert said(sample) == sample["numbers"].tolist() == list(range(first, first + 12, 2))
    assert said(windows[-1]) == said(windows[22])
    for wrong in (23, -24):
        with pytest.raises(IndexError, match="there are 23"):
            windows[wrong]


@settings(max_examples=10, deadline=None)
@given(asked=st.lists(st.integers(-23, 22), max_size=8), data=st.data())
def test_several_windows_are_those_one_by_one(videos, asked, data):
    options = {
        "cache": data.draw(st.sampled_from([0, 3000, 1 << 24])),
        "open_films": data.draw(st.integers(1, 3)),
        "threads": data.draw(st.integers(1, 2)),
    }
    windows = Windows(videos, frames=6, stride=2, step=5, format="gray", **options)
    samples = windows.__getitems__(asked)
    assert [sample["window"] for sample in samples] == [number % 23 for number in asked]
    for sample in samples:
        assert said(sample) == sample["numbers"].tolist()
    if asked:
        together, apart = windows.batch(asked), windows_module.stacked(samples)
        assert together.keys() == apart.keys()
        for name in apart.keys() - {"cost"}:  # what is held costs nothing the second time
            np.testing.assert_array_equal(together[name], apart[name])
            assert together[name].dtype == apart[name].dtype
    windows.close()


@settings(max_examples=10, deadline=None)
@given(
    st.integers(0, 3), st.booleans(), st.integers(1, 5),
    st.sampled_from([0, 20_000, 1 << 24]), st.sampled_from([None, 3]), st.sampled_from([1, 3]),
)  # fmt: skip
def test_windows_that_are_known_ahead_are_the_same_and_cost_less(
    videos, seed, shuffle, together, cache, batch, films
):
    windows = Windows(videos, frames=4, step=3, format="gray", cache=cache, open_films=films)
    order = WindowSampler(windows, seed=seed, shuffle=shuffle, together=together)
    alone = Windows(videos, frames=4, step=3, format="gray", cache=cache)
    numbers = order.order().tolist()
    costs, more = Costs(), Costs()
    batches = list(WindowStream(windows, order, batch=batch))
    size = batch or 1
    for place, one in enumerate(batches):
        some = numbers[place * size : (place + 1) * size]
        other = alone.several(some, soon=[])[0] if batch is None else alone.batch(some, soon=[])
        costs.add(one)
        more.add(other)
        for name in other.keys() - {"cost"}:
            np.testing.assert_array_equal(one[name], other[name])
    assert len(batches) == -(-len(numbers) // size)
    # What is held pushes out of a cache of a group what the next batch would have used.
    is_tight = cache == 20_000
    assert costs.decoded <= more.decoded + is_tight * more.decoded // 20
    if cache > 1 << 20 and not shuffle:
        assert costs.decoded <= sum(video.frames for video in videos)  # each group once


def test_windows_at_a_rate(videos):
    windows = Windows(videos, frames=4, fps=5, step=2, format="gray")
    seen = 0
    for number, video in enumerate(videos):
        ticks = int(Fraction(video.duration).limit_denominator(1000) * 5 + Fraction(999, 1000))
        frames = videos.frames(number)
        for start in range(0, ticks - 3, 2):
            first = Fraction(int(frames.ticks[0]), frames.timescale)
            moments = [first + Fraction(start + n, 5) for n in range(4)]
            sample = windows[seen]
            assert sample["video"] == number
            assert sample["numbers"].tolist() == frames.numbers_at(moments).tolist()
            assert said(sample) == sample["numbers"].tolist()
            seen += 1
    assert seen == len(windows) == 10


def test_wrong_numbers_are_refused(videos):
    for wrong in (
        {"frames": 0}, {"stride": 0}, {"step": 0}, {"fps": 0}, {"fps": -1}, {"open_films": 0},
        {"format": "rgba"}, {"size": (0, 1)},
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"is 1 or more|above 0|frames are|pixels"):
            Windows(videos, **{"frames": 4, **wrong})
    windows = Windows(videos, frames=4)
    for wrong in ({"seed": -1}, {"together": 0}, {"rank": 1}, {"ranks": 0}, {"uneven": "pad"}):
        with pytest.raises(ValueError, match=r"is 0|or repeat"):
            WindowSampler(windows, **wrong)
    with pytest.raises(ValueError, match="batch"):
        WindowStream(windows, batch=0)
    with pytest.raises(ValueError, match="worker"):
        WindowStream(windows).shard(2, 2)


def test_a_transform_gives_what_is_handed_out(videos):
    windows = Windows(videos, frames=2, transform=lambda sample: sample["numbers"].sum())
    assert windows[0] == 1


def test_the_order_has_each_window_once_and_neighbours_together(windows):
    sampler = WindowSampler(windows, seed=7, together=3)
    first, second = list(sampler), list(sampler)
    assert sorted(first) == sorted(second) == list(range(23))
    assert first != second
    assert sampler.epoch == 2
    sampler.set_epoch(0)
    assert list(sampler) == first
    runs = np.concatenate([*windows.runs(3)]).tolist()
    assert runs == runs_of(windows, 3)
    assert sum(after == before + 1 for before, after in pairwise(first)) >= 23 - len(runs)
    assert list(WindowSampler(windows, shuffle=False)) == list(range(23))
    # what a seed means does not change with versions and machines
    assert list(WindowSampler(windows, seed=1, together=1))[:6] == ORDER
    assert len(list(WindowSampler(Windows(windows.videos, frames=1000)))) == 0


def runs_of(windows, together):
    """The lengths of runs, by the groups of each video."""
    begins = [np.sort(windows.videos.groups(number).frame) for number in range(len(windows.videos))]
    lengths, last = [], None
    for window in range(len(windows)):
        video = windows.video_of(window)
        group = np.searchsorted(begins[video], windows.first_frame(window), side="right")
        if (video, group) == last and lengths[-1] < together:
            lengths[-1] += 1
        else:
            lengths.append(1)
        last = video, group
    return lengths


@settings(max_examples=20)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.integers(1, 5), st.integers(1, 9))
def test_runs_of_any_selection(videos, chosen, together, step):
    windows = Windows(videos.select(chosen), frames=4, step=step)
    assert [n for part in windows.runs(together) for n in part.tolist()] == runs_of(
        windows, together
    )
    assert [video.frames for video in windows.videos] == [videos[n].frames for n in chosen]
    by_time = Windows(videos.select(chosen), frames=4, fps=5, step=step)
    assert sum(int(part.sum()) for part in by_time.runs(together)) == len(by_time)


ORDER = [14, 17, 15, 22, 9, 3]


@pytest.mark.parametrize(("uneven", "each"), [("drop", 7), ("repeat", 8)])
def test_ranks_have_parts_of_their_own(windows, uneven, each):
    parts = [
        list(WindowSampler(windows, seed=3, rank=rank, ranks=3, uneven=uneven)) for rank in range(3)
    ]
    assert [len(part) for part in parts] == [each] * 3
    everything = [number for part in parts for number in part]
    assert len(set(everything)) == (21 if uneven == "drop" else 23)
    assert len(WindowSampler(windows, ranks=30, uneven=uneven)) == (uneven == "repeat")


@pytest.mark.parametrize("at", [0, 1, 10, 22, 23])
def test_a_sampler_goes_on_where_it_was(windows, at):
    sampler = WindowSampler(windows, seed=5, together=2)
    epochs = [list(sampler), list(sampler), list(sampler)]
    sampler.set_epoch(1)
    loop = iter(sampler)
    taken = [next(loop) for _ in range(at)]
    state = json.loads(json.dumps(sampler.state_dict()))
    ahead = list(loop)  # as the workers of a loader take some ahead
    used = sampler.state_dict(used=at)
    for one in (state, used):
        other = WindowSampler(windows, seed=5, together=2)
        other.load_state_dict(one)
        assert other.state_dict() == one
        rest = list(other)
        if at == 23 and one is used:
            assert rest == epochs[2]
        else:
            assert taken + rest == taken + ahead == epochs[1]
            assert list(other) == epochs[2]


def test_a_state_of_another_order_is_refused(windows):
    state = WindowSampler(windows, seed=5).state_dict()
    with pytest.raises(ValueError, match="seed: 5 there, 6 here"):
        WindowSampler(windows, seed=6).load_state_dict(state)


@pytest.mark.parametrize("batch", [None, 4])
@pytest.mark.parametrize("workers", [1, 3])
def test_streams_of_workers_are_the_order_together(windows, batch, workers):
    sampler = WindowSampler(windows, seed=2, together=2)
    expected = sampler.order().tolist()
    parts = []
    for number in range(workers):
        sampler.set_epoch(0)
        part = WindowStream(windows, sampler, batch=batch).shard(number, workers)
        parts.append([item["window"] for item in part])
    if batch is None:
        assert sorted(number for part in parts for number in part) == sorted(expected)
        return
    dealt = []
    while any(parts):
        dealt += [part.pop(0).tolist() for part in parts if part]
    assert dealt == [expected[n : n + 4] for n in range(0, 23, 4)]
    sampler.set_epoch(0)
    assert len(list(WindowStream(windows, sampler, batch=4, drop_last=True))) == 5


@pytest.mark.parametrize("batch", [None, 4])
def test_a_stream_goes_on_where_it_was(windows, batch):
    def stream():
        return WindowStream(windows, WindowSampler(windows, seed=2), batch=batch).shard(1, 2)

    def numbers(items):
        return [np.asarray(item["window"]).tolist() for item in items]

    whole = numbers(stream())
    one = stream()
    loop = iter(one)
    begun = numbers(next(loop) for _ in range(2))
    state = json.loads(json.dumps(one.state_dict()))
    other = stream()
    other.load_state_dict(state)
    assert other.state_dict() == state
    assert begun + numbers(other) == whole
    assert len(numbers(other)) == len(whole)
    assert numbers(other) != whole
    with pytest.raises(ValueError, match="workers"):
        WindowStream(windows, WindowSampler(windows, seed=2), batch=batch).load_state_dict(state)
    # by what the main process used, any number of workers may go on
    rest = WindowStream(windows, WindowSampler(windows, seed=2), batch=batch)
    rest.load_state_dict(one.state_dict(used=8))
    left = np.concatenate([np.ravel(one) for one in numbers(rest)])
    assert left.tolist() == WindowSampler(windows, seed=2).order().tolist()[8:]


def _samples_elsewhere(windows, numbers, answers):
    answers.put([sample["frames"] for sample in windows.__getitems__(numbers)])


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_windows_go_to_other_processes(windows, method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"{sys.platform} has no {method}")
    context = multiprocessing.get_context(method)
    expected = [windows[number]["frames"] for number in (14, 2)]  # films are open here
    answers = context.Queue()
    child = context.Process(target=_samples_elsewhere, args=(windows, [14, 2], answers))
    child.start()
    elsewhere = answers.get(timeout=120)
    child.join(60)
    assert child.exitcode == 0
    assert all(map(np.array_equal, elsewhere, expected))
    assert all(map(np.array_equal, [windows[n]["frames"] for n in (14, 2)], expected))


def test_what_goes_to_other_processes_is_small(windows):
    windows[3]
    assert len(pickle.dumps(WindowStream(windows))) < 4000


def test_costs_are_counted(folder, windows):
    costs = Costs()
    windows.close()
    stream = WindowStream(windows, WindowSampler(windows, together=100, shuffle=False), batch=23)
    for batch in stream:
        costs.add(batch)
    films = [(folder / f"{name}.mp4").stat().st_size for name in "abd"]
    assert (costs.samples, costs.frames) == (23, 23 * 6)
    # all windows together: each frame up to the last wanted one once, less what nothing refers to
    assert costs.decoded <= 60 + 35 + 48
    assert costs.bytes <= sum(films)
    assert costs.requests <= 3 * 4
    assert "decoded frames" in repr(costs)
    alone = Costs()
    windows.close()
    for number in np.random.default_rng(0).permutation(23).tolist():
        alone.add(windows[number])
    assert alone.decoded > 1.5 * costs.decoded


def test_windows_of_a_server_cost_their_groups(tmp_path):
    film = numbered(200, 25, keys=20, size=(160, 96), bframes=2)
    with RangeServer({f"{n}.mp4": film for n in range(3)}) as server:
        write_set([server.at(f"{n}.mp4") for n in range(3)], tmp_path / "set.parquet")
        windows = Windows(
            VideoSet(tmp_path / "set.parquet"), frames=16, format="gray", open_films=1
        )
        sizes = windows.videos.groups(0)
        before = len(server.requests)
        for number in (3, 30, 15, 4, 17):
            sample = windows[number]
            assert said(sample) == [n % 256 for n in sample["numbers"].tolist()]
            first, last = sample["numbers"][[0, -1]] // 20
            assert sample["cost"][2] == 1
            assert sample["cost"][1] <= 1.05 * sizes.bytes[first : last + 1].sum()
        assert len(server.requests) - before == 5


def test_the_next_video_is_read_while_one_is_decoded(tmp_path, monkeypatch):
    film = numbered(60, 25, keys=20, size=(160, 96))
    with RangeServer({f"{n}.mp4": film for n in range(3)}) as server:
        write_set([server.at(f"{n}.mp4") for n in range(3)], tmp_path / "set.parquet")
        videos = VideoSet(tmp_path / "set.parquet")
        alone = Windows(videos, frames=16, format="gray", cache=0, open_films=1)
        ahead = Windows(videos, frames=16, format="gray", cache=0)
        wanted = [alone.batch([number]) for number in (0, 4, 8)]
        read = [threading.Event() for _ in range(3)]
        read_ahead, fill = fragdex.Frames.read_ahead, fragdex.Frames.fill

        def noted(self, *given):
            read_ahead(self, *given)
            read[order.index(self.source.name)].set()

        def waits(self, *given, **options):
            place = order.index(self.source.name) + 1
            assert place == 3 or read[place].wait(30)
            return fill(self, *given, **options)

        order = [server.at(f"{n}.mp4") for n in range(3)]
        monkeypatch.setattr(fragdex.Frames, "read_ahead", noted)
        monkeypatch.setattr(fragdex.Frames, "fill", waits)
        batch = ahead.batch([0, 4, 8])
    for number, one in enumerate(wanted):
        assert said({"frames": batch["frames"][number]}) == said({"frames": one["frames"][0]})
        assert batch["cost"][number].tolist() == one["cost"][0].tolist()


def test_damage_is_said(tmp_path, folder):
    data = bytearray((folder / "a.mp4").read_bytes())
    (tmp_path / "a.mp4").write_bytes(data)
    write_set(tmp_path, tmp_path / "set.parquet")
    videos = VideoSet(tmp_path / "set.parquet")
    with videos.frames(0) as frames:
        sample = frames.track.samples.rows(slice(13, 14))
    at, size = int(sample.offset[0]), int(sample.size[0])
    with (tmp_path / "a.mp4").open("r+b") as file:
        status = (tmp_path / "a.mp4").stat()
        file.seek(at)
        file.write(bytes(size))
    os.utime(tmp_path / "a.mp4", ns=(status.st_atime_ns, status.st_mtime_ns))
    windows = Windows(videos, frames=12, damaged="blank", format="gray")
    assert windows[0]["valid"].all()
    assert windows[1]["valid"].tolist() == [True] + [False] * 11
    assert not windows[1]["frames"][1:].any()
    with pytest.raises(UndecodableMedia, match="frames 13"):
        Windows(videos, frames=12)[1]


class _Iterable:
    """As torch's."""


def test_a_data_set_for_torch(windows, monkeypatch):
    """What torch's loader does with one, by hand: torch itself is not a dependency."""
    data = types.ModuleType("torch.utils.data")
    data.IterableDataset = _Iterable
    worker = None
    data.get_worker_info = lambda: worker
    for name, module in (("torch", types.ModuleType("torch")), ("torch.utils.data", data)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "torch.utils", types.ModuleType("torch.utils"))
    stream = WindowStream(windows, WindowSampler(windows, seed=4), batch=4)
    dataset = stream.dataset()
    assert isinstance(dataset, _Iterable)
    numbers = []
    for number in range(2):
        worker = types.SimpleNamespace(id=number, num_workers=2)
        there = copy.deepcopy(dataset)
        there.set_epoch(0)
        numbers += [n for batch in there for n in batch["window"].tolist()]
        there.load_state_dict(there.state_dict())
    assert sorted(numbers) == list(range(23))


def test_films_that_rest_are_not_opened_again(videos, monkeypatch):
    opened = []
    frames_of = VideoSet.frames

    def noted(self, number, **options):
        opened.append((number, frames_of(self, number, **options)))
        return opened[-1][1]

    monkeypatch.setattr(VideoSet, "frames", noted)
    windows = Windows(videos, frames=4, format="gray", open_films=1, cache=0)
    first, last = 0, len(windows) - 1
    for window in (first, last, first, last, first):
        assert said(windows[window]) == windows[window]["numbers"].tolist()
    assert [number for number, _ in opened] == [0, 3]
    (_, used), (_, resting) = opened
    pool = used._cache.decoders
    count = pool.made
    assert count <= 2
    assert resting._opened.source.closed
    assert not used._opened.source.closed
    windows[first]
    windows[last]
    assert pool.made == count
    monkeypatch.setattr(windows_module, "RESTING_BYTES", 25_000)  # the film of 60 has no room
    assert said(windows[first]) == windows[first]["numbers"].tolist()
    windows[last]
    windows[first]
    assert [number for number, _ in opened] == [0, 3, 0]
    windows.close()


def test_films_that_are_coded_alike_share_decoders(tmp_path):
    paths = []
    for number in range(6):
        paths.append(tmp_path / f"{number}.mp4")
        paths[-1].write_bytes(numbered(20 + number, 25, keys=10))
    write_set(paths, tmp_path / "set.parquet")
    windows = Windows(VideoSet(tmp_path / "set.parquet"), frames=8, format="gray", open_films=2)
    for window in (*range(len(windows)), *range(len(windows))):
        windows[window]
    assert len(windows) == 14
    assert windows._films._cache.decoders.made == 1
    windows.close()


@pytest.mark.parametrize(
    "other",
    [{"rotation": 90}, {"aspect": Fraction(4, 3)}, {"size": (48, 96)}, {"codec": "mpeg4"}],
    ids=str,
)
def test_films_that_are_coded_otherwise_do_not(tmp_path, other):
    paths = [tmp_path / "a.mp4", tmp_path / "b.mp4"]
    paths[0].write_bytes(numbered(12, 25, size=(96, 48)))
    paths[1].write_bytes(numbered(12, 25, **{"size": (96, 48), **other}))
    write_set(paths, tmp_path / "set.parquet")
    windows = Windows(VideoSet(tmp_path / "set.parquet"), frames=12)
    for window, path in ((0, paths[0]), (1, paths[1]), (0, paths[0])):
        assert np.array_equal(windows[window]["frames"], fragdex.Frames(path)[:].data)
    assert windows._films._cache.decoders.made == 2
    windows.close()


def test_a_film_that_was_written_anew_while_it_rested(tmp_path):
    path = tmp_path / "a.mp4"
    path.write_bytes(numbered(20, 25))
    with fragdex.Frames(path) as frames:
        frames[3]
        frames.rest()
        assert frames[4].number == 4
        frames.rest()
        assert len(frames.times) == 20
        path.write_bytes(numbered(20, 30))
        with pytest.raises(SourceChanged):
            frames[5]
        with pytest.raises(SourceChanged):
            frames[6]
