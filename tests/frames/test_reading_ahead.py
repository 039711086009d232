"""On a device, the bytes of the next videos are read while some are decoded."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import sys
import threading

import numpy as np
import pytest

import fragdex
from decoding.filming import number_in, numbered
from fragdex.data import Costs, VideoSet, Windows, WindowSampler, WindowStream, write_set
from fragdex.data.windows import THREADS, ReadAhead
from fragdex.errors import SourceNotFound
from fragdex.testing import Faults, RangeServer

FILMS = "abcdef"


@pytest.fixture(scope="module")
def film():
    return numbered(60, 25, keys=20, size=(160, 96))


@pytest.fixture
def server(film):
    with RangeServer({f"{name}.mp4": film for name in FILMS}) as server:
        yield server


@pytest.fixture
def videos(server, tmp_path):
    """Six videos of four windows of 15 frames each."""
    write_set([server.at(f"{name}.mp4") for name in FILMS], tmp_path / "set.parquet")
    videos = VideoSet(tmp_path / "set.parquet")
    server.requests.clear()
    return videos


def windows_of(videos, films, **options):
    """Windows, one a video, with nothing held from one call to the next."""
    given = {"step": 60, "format": "gray", "cache": 0} | options
    return Windows(videos, frames=15, open_films=films, **given)


def stream_of(windows, batch):
    return WindowStream(windows, WindowSampler(windows, shuffle=False), batch=batch)


def reading_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith(THREADS)]


def name_of(frames):
    return frames.source.name[-5]


@pytest.fixture
def was_read(monkeypatch):
    """For each video an event: its bytes were read ahead."""
    events = {name: threading.Event() for name in FILMS}
    read_ahead = fragdex.Frames.read_ahead

    def noted(self, *given):
        read_ahead(self, *given)
        events[name_of(self)].set()

    monkeypatch.setattr(fragdex.Frames, "read_ahead", noted)
    return events


@pytest.fixture
def waited(monkeypatch, was_read, server):
    """Decoding of a group of two videos waits until the next group was read.

    For each video, what was requested until it was decoded.
    """
    fill, seen = fragdex.Frames.fill, {}

    def waits(self, *given, **options):
        group = FILMS.index(name_of(self)) // 2
        for later in FILMS[2 * group + 2 : 2 * group + 4]:
            assert was_read[later].wait(30)
        seen[name_of(self)] = len(server.requests)
        return fill(self, *given, **options)

    monkeypatch.setattr(fragdex.Frames, "fill", waits)
    return seen


def assert_one_group_ahead(waited, server):
    requested = [request.path[1] for request in server.requests]
    for name, count in waited.items():
        group = FILMS.index(name) // 2
        assert set(requested[:count]) <= set(FILMS[: 2 * group + 4])


@pytest.fixture
def expected(videos, server):
    """The windows as the processor decodes them, one by one."""
    samples = windows_of(videos, 1).several(range(6))
    server.requests.clear()
    return samples


def assert_expected(batch, expected):
    for place, window in enumerate(batch["window"].tolist()):
        assert np.array_equal(batch["frames"][place], expected[window]["frames"])
        assert batch["cost"][place].tolist() == expected[window]["cost"].tolist()


def test_the_next_videos_of_a_batch_are_read_while_some_are_decoded(
    videos, expected, server, on_device, waited
):
    assert_expected(windows_of(videos, 2, device="cuda").batch(range(6)), expected)
    assert len(waited) == len(server.requests) == 6
    assert_one_group_ahead(waited, server)
    assert not reading_threads()


def test_the_next_batch_of_a_stream_is_read_while_one_is_decoded(
    videos, expected, server, on_device, waited
):
    batches = list(stream_of(windows_of(videos, 2, device="cuda"), 2))
    assert [batch["window"].tolist() for batch in batches] == [[0, 1], [2, 3], [4, 5]]
    for batch in batches:
        assert_expected(batch, expected)
    assert len(waited) == len(server.requests) == 6
    assert_one_group_ahead(waited, server)
    assert not reading_threads()


def test_a_video_that_goes_on_is_read_before_its_next_batch(videos, server, on_device, was_read):
    processor = list(stream_of(windows_of(videos, 1, step=15), 1))
    server.requests.clear()
    costs, stream = Costs(), iter(stream_of(windows_of(videos, 2, step=15, device="cuda"), 1))
    for place, batch in enumerate(stream):
        costs.add(batch)
        assert np.array_equal(batch["frames"], processor[place]["frames"])
        if place + 1 < len(processor):
            later = FILMS[(place + 1) // 4]
            assert was_read[later].wait(30)
            was_read[later].clear()
    assert (costs.samples, costs.requests) == (24, len(server.requests))
    assert not reading_threads()


@pytest.mark.parametrize("missing", ["c", "d"])
def test_what_cannot_be_read_ahead_fails_when_its_turn_comes(
    videos, expected, server, on_device, missing
):
    content = dict(server.content)
    del content[f"{missing}.mp4"]
    server.content = content
    batches = iter(stream_of(windows_of(videos, 2, device="cuda"), 2))
    assert_expected(next(batches), expected)
    with pytest.raises(SourceNotFound, match=rf"{missing}\.mp4"):
        next(batches)
    assert not reading_threads()


def test_what_cannot_be_opened_fails_when_its_turn_comes(film, tmp_path, on_device):
    for name in FILMS:
        (tmp_path / f"{name}.mp4").write_bytes(film)
    write_set(tmp_path, tmp_path / "set.parquet")
    (tmp_path / "c.mp4").unlink()
    windows = windows_of(VideoSet(tmp_path / "set.parquet"), 1, device="cuda")
    batches = iter(stream_of(windows, 1))
    for _ in range(2):
        assert [number_in(one[..., 0]) for one in next(batches)["frames"][0]] == list(range(15))
    with pytest.raises(SourceNotFound, match=r"c\.mp4"):
        next(batches)
    assert windows.batch([3])["video"].tolist() == [3]


@pytest.fixture
def held_back(server):
    """The server answers for the third and fourth video when this event is set.

    The second value is a semaphore that counts their requests.
    """
    gate, arrived = threading.Event(), threading.Semaphore(0)

    def faults_of(request):
        if request.path[1] in "cd":
            arrived.release()
            gate.wait(30)
        return Faults()

    server.faults_for = faults_of
    yield gate, arrived
    gate.set()


@pytest.mark.parametrize("end", ["close", "leave", "raise"])
def test_no_thread_is_left_of_a_loop_that_ends_early(
    videos, server, on_device, held_back, monkeypatch, end
):
    windows = windows_of(videos, 2, device="cuda")
    finish, (gate, _) = ReadAhead.finish, held_back

    def opened(self):
        if reading_threads():
            gate.set()
        return finish(self)

    monkeypatch.setattr(ReadAhead, "finish", opened)
    batches = iter(stream_of(windows, 2))
    next(batches)
    assert reading_threads()
    if end == "close":
        batches.close()
    elif end == "leave":
        del batches
    else:
        with pytest.raises(KeyError):
            batches.throw(KeyError("of the loop"))
    assert not reading_threads()
    assert windows.batch([5])["window"].tolist() == [5]


def first_of(windows, answers):
    answers.put(windows.batch([2, 3])["window"].tolist())


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_another_process_does_not_wait_for_what_this_one_reads(
    videos, server, on_device, held_back
):
    windows, (gate, arrived) = windows_of(videos, 2, device="cuda"), held_back
    batches = iter(stream_of(windows, 2))
    next(batches)
    assert all(arrived.acquire(timeout=30) for _ in "cd")
    server.faults_for = None  # for what is requested from now on
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    process = context.Process(target=first_of, args=(windows, answers))
    process.start()
    assert answers.get(timeout=60) == [2, 3]
    process.join()
    gate.set()
    assert next(batches)["window"].tolist() == [2, 3]
    batches.close()
    assert copy.copy(windows).batch([1])["window"].tolist() == [1]
    other = pickle.loads(pickle.dumps(windows))  # noqa: S301
    assert other.batch([1, 2, 4])["window"].tolist() == [1, 2, 4]
