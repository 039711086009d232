"""Batches by worker processes: the same as without, in memory that goes however a loop ends."""

from __future__ import annotations

import contextlib
import errno
import gc
import json
import multiprocessing
import os
import signal
import sys
from collections import deque
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoding.filming import numbered
from fragdex.data import (
    Costs,
    VideoSet,
    WindowLoader,
    Windows,
    WindowSampler,
    WindowStream,
    write_set,
)
from fragdex.data.shared_batches import BatchSlots, SharedBatch
from fragdex.errors import FragdexError

FORK = "fork" if "fork" in multiprocessing.get_all_start_methods() else None
SIZE, LENGTH, BATCH = (64, 32), 4, 3
BATCH_BYTES = 64 * 32 * LENGTH * BATCH


@pytest.fixture(scope="module")
def videos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("films")
    for name, count in (("a", 40), ("b", 24)):
        (folder / f"{name}.mp4").write_bytes(numbered(count, 25, size=SIZE, keys=8))
    write_set(folder, folder / "set.parquet")
    return VideoSet(folder / "set.parquet")


def stream(videos, **options):
    windows = Windows(videos, frames=LENGTH, **{"format": "gray", **options})
    return WindowStream(windows, WindowSampler(windows, seed=3), batch=BATCH)


def assert_same(batches, wanted):
    assert len(batches) == len(wanted)
    for one, other in zip(batches, wanted, strict=True):
        assert one.keys() == other.keys()
        for name in other.keys() - {"cost"}:  # each process decodes what it has not held
            planes = (
                zip(one[name], other[name], strict=True)
                if isinstance(other[name], tuple)
                else [(one[name], other[name])]
            )
            for mine, theirs in planes:
                assert mine.dtype == theirs.dtype
                np.testing.assert_array_equal(mine, theirs)


def halved(sample):
    return {"frames": sample["frames"] // 2, "window": sample["window"]}


@pytest.mark.parametrize(
    ("options", "shared"),
    [
        ({}, 1 << 30),
        ({}, 0),
        ({}, 3 * BATCH_BYTES),
        ({"format": "yuv"}, 1 << 30),
        ({"format": "rgb16", "size": (32, 16)}, 1 << 30),
        ({"transform": halved}, 1 << 30),
    ],
    ids=["all", "nothing", "a slot for each worker", "yuv", "rgb16", "transformed"],
)
def test_batches_are_those_without_workers(videos, options, shared):
    wanted = list(stream(videos, **options))
    with WindowLoader(stream(videos, **options), workers=2, shared=shared, context=FORK) as loader:
        assert loader.shared_bytes <= shared
        assert (loader.shared_bytes > 0) == (shared > 0)
        assert len(loader) == len(wanted)
        kept = list(loader)  # more than there are slots: the rest is copied
        assert_same(kept, wanted)
        second = [{name: np.copy(value) for name, value in batch.items()}
                  for batch in loader if options.get("format") != "yuv"]  # fmt: skip
        assert_same(kept, wanted)
        if second:
            windows = np.concatenate([batch["window"] for batch in second])
            assert sorted(windows) == list(range(16))
            assert windows.tolist() != [n for batch in wanted for n in batch["window"].tolist()]


@pytest.mark.parametrize(("ahead", "most"), [(1, 2 * 64), (4, 100)])
def test_a_worker_makes_the_batches_of_a_group(videos, ahead, most):
    """Single windows in order: four begin in each group of 8 frames.

    Each of two workers decodes a group once; or one does, and the other its first frames.
    """

    def ordered():
        windows = Windows(videos, frames=LENGTH, step=2, format="gray")
        return WindowStream(windows, WindowSampler(windows, shuffle=False), batch=1)

    costs = Costs()
    with WindowLoader(ordered(), workers=2, ahead=ahead, context=FORK) as loader:
        batches = list(loader)
    for batch in batches:
        costs.add(batch)
    assert_same(batches, list(ordered()))
    assert costs.decoded <= most


def test_a_loader_resumes_where_another_was(videos):
    wanted = list(stream(videos))
    with WindowLoader(stream(videos), workers=3, context=FORK) as loader:
        loop = iter(loader)
        for _ in range(2):
            next(loop)
        state = json.loads(json.dumps(loader.state_dict()))
        loop.close()
        # left early: what was requested ahead is not what the next loop gives
        assert_same(list(loader), wanted)
    with WindowLoader(stream(videos), workers=1, context=FORK) as loader:
        loader.load_state_dict(state)
        assert loader.state_dict() == state
        assert_same(list(loader), wanted[2:])
    rest = stream(videos)
    rest.load_state_dict(state)
    assert_same(list(rest), wanted[2:])


def test_workers_can_be_started_anew(videos):
    loader = WindowLoader(stream(videos), workers=1, context="spawn")
    assert_same(list(loader), list(stream(videos)))
    loader.close()


def mapped():
    """Shared memory of loaders that this process has, and files in /dev/shm."""
    maps = Path("/proc/self/maps").read_text().splitlines()
    files = [name for name in os.listdir("/dev/shm") if str(os.getpid()) in name]
    return sum("memfd:fragdex-batches" in line for line in maps), files


def fails(sample):
    if sample["window"] > 4:
        raise LookupError("no such label")
    return sample


ENDS = {
    "end": contextlib.nullcontext,
    "break": contextlib.nullcontext,
    "error": lambda: pytest.raises(LookupError, match="no such label"),
    "kill": lambda: pytest.raises(FragdexError, match=r"loader-1 ended \(by signal 9\)"),
}


def looped(loader, way):
    """The processes of a loop that ended in some way."""
    processes = []
    with ENDS[way]() as caught:
        # A worker that is killed may have made all its batches of the first epoch.
        for _ in chain(loader, loader):
            processes = [worker.process for worker in loader._workers]
            if way == "break":
                break
            if way == "kill":
                os.kill(processes[1].pid, signal.SIGKILL)
    assert bool(loader._workers) == (caught is None)
    if way == "error":
        assert "in fails" in caught.value.__notes__[0]
    return processes


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc and /dev/shm")
@pytest.mark.parametrize("way", ENDS)
def test_memory_and_processes_go_however_a_loop_ends(videos, way):
    gc.collect()
    before = mapped()
    loader = WindowLoader(
        stream(videos, transform=fails if way == "error" else None), workers=2, context=FORK
    )
    assert mapped() == (before[0] + 1, before[1])
    processes = looped(loader, way)
    del loader
    gc.collect()
    assert mapped() == before
    assert not any(process.is_alive() for process in processes)


@given(st.lists(st.sampled_from(["write", "arrive", "drop", "begin"]), max_size=40))
def test_a_batch_in_use_is_never_written_over(steps):
    """A worker and the process that reads, step by step; `begin`: the worker is another one."""
    slots = BatchSlots(1, 2, 1 << 15)
    writer = slots.writer(0)
    sent, live = deque(), []
    for number, step in enumerate(steps):
        if step == "write":

            def made(make, number=number):
                pixels = make((1 << 15,), np.uint8)
                pixels[:] = number
                return {"pixels": pixels}

            sent.append((number, writer.filled(made)))
        elif step == "arrive" and sent:
            written, batch = sent.popleft()
            batch = batch.arrived() if isinstance(batch, SharedBatch) else batch
            assert batch or "begin" in steps[written:number]
            live.append((written, batch))
        elif step == "drop" and live:
            live.pop(number % len(live))
        elif step == "begin":
            writer = slots.writer(0)
        assert all((batch["pixels"] == written).all() for written, batch in live if batch)
    batch = None
    sent.clear()
    live.clear()
    slots.writer(0)
    assert [slots.in_use(slot) for slot in range(2)] == [False, False]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it is a file of the system's own")
def test_without_shared_memory_batches_are_copied(videos, monkeypatch):
    def full(file, offset, size):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.warns(RuntimeWarning, match=r"copied: there is no shared memory .*No space"):
        loader = WindowLoader(stream(videos), workers=1, context=FORK)
    assert loader.shared_bytes == 0
    assert_same(list(loader), list(stream(videos)))
    loader.close()


def test_what_a_loader_refuses(videos):
    with pytest.raises(ValueError, match="give the stream batch="):
        WindowLoader(WindowStream(Windows(videos, frames=LENGTH)))
    there = Windows(videos, frames=LENGTH, output="torch", device="cuda")
    with pytest.raises(ValueError, match="batches of numpy, not of torch"):
        WindowLoader(WindowStream(there, batch=BATCH))
    for wrong in ({"workers": 0}, {"ahead": 0}):
        with pytest.raises(ValueError, match="is 1 or more, not 0"):
            WindowLoader(stream(videos), **wrong)
    slots = BatchSlots(1, 1, 1 << 16)
    sent = slots.writer(0).filled(lambda make: {"x": make((1 << 15,), np.uint8)})
    sent = SharedBatch("0-0", sent.slot, sent.number, sent.parts, sent.tensors)
    with pytest.raises(TypeError, match="only to the process that made the loader"):
        sent.arrived()


class TestTorch:
    """torch's DataLoader over the same memory, where torch is installed (`./dev bridges`)."""

    @pytest.mark.parametrize("persistent", [False, True])
    def test_batches_are_tensors_of_the_same_pixels(self, videos, persistent):
        torch = pytest.importorskip("torch")
        from torch.utils.data import DataLoader

        wanted = list(stream(videos))
        data = stream(videos).dataset(workers=2)
        loader = DataLoader(
            data, batch_size=None, num_workers=2, persistent_workers=persistent,
            multiprocessing_context=FORK,
        )  # fmt: skip
        for _ in loader:
            break  # what the workers made ahead is lost
        data.set_epoch(0)
        for _ in range(1 if persistent else 2):
            batches = list(loader)
            if not persistent:  # there the workers count epochs
                assert isinstance(batches[0]["frames"], torch.Tensor)
                assert_same([{k: v.numpy() for k, v in one.items()} for one in batches], wanted)
            assert len(batches) == len(wanted)
