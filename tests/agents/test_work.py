"""Children: each has seen one video, keeps its index, and ends with what nobody waits for."""

import os
import threading

import pytest

from fragdex.agents.allowed import Allowed
from fragdex.agents.work import JOBS, Call, Worker
from fragdex.errors import BudgetExceeded, Unavailable
from fragdex.testing import movie


@pytest.fixture
def worker(tmp_path):
    folder = tmp_path / "films"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.mp4").write_bytes(movie(fragments=3, samples=len(name) + 4))
    worker = Worker(Allowed([folder]), 60)
    yield worker
    worker.close()


def children(worker):
    pids = []
    worker.idle.each(lambda child: pids.append((child.key[0][0], child.pid)))
    return dict(pids)


def test_a_child_sees_one_video_and_is_asked_again_until_that_changes(worker, tmp_path):
    def read(name):
        return Call(worker).do("describe", [name])["read"]["bytes"]

    first = read("films/a.mp4")
    assert first
    kept = children(worker)
    assert [*kept] == ["films/a.mp4"]
    assert read("films/b.mp4")
    assert children(worker)["films/a.mp4"] == kept["films/a.mp4"]
    assert len(set(children(worker).values())) == 2
    assert read("films/a.mp4") == 0  # its index is there
    os.utime(tmp_path / "films" / "a.mp4", ns=(1, 1))
    assert read("films/a.mp4") == first


def test_a_call_that_is_cancelled_or_late_ends_its_child(worker):
    call = Call(worker)
    call.cancelled.set()
    with pytest.raises(Unavailable, match="cancelled"):
        call.do("describe", ["films/a.mp4"])
    worker.max_seconds = 0
    with pytest.raises(BudgetExceeded, match="--max-seconds"):
        Call(worker).do("describe", ["films/a.mp4"])
    assert children(worker) == {}


def test_calls_of_several_threads_have_their_own_children(worker):
    answers = []
    threads = [
        threading.Thread(
            target=lambda: answers.append(Call(worker).do("describe", ["films/a.mp4"])["seconds"])
        )
        for _ in range(3)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(set(answers)) == 1
    assert len(answers) == 3


def test_every_job_is_in_its_file():
    from importlib import import_module

    for job, home in JOBS.items():
        assert callable(getattr(import_module(f"fragdex.agents.{home}"), job))
