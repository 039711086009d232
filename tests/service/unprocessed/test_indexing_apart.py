"""Large structures are indexed in a process of their own, and hurt nobody else."""

import os
import re
import signal
import threading
import time

import pytest

import fragdex
from fragdex.indexing.scan import Scan
from fragdex.service.indexing import isolated
from fragdex.service.indexing.isolated import IN_THREAD
from fragdex.service.unprocessed.inspection import MOST_BOXES, Inspections
from repeats import repeated_to
from service.descendants import descendants
from service.serving import API, client_of, serving
from service.working import announced, fixture_bytes, uploaded

FILES = f"{API}/unprocessed_files"
PATIENCE = 120


@pytest.fixture
def served(tmp_path):
    with serving(tmp_path) as served:
        yield served


@pytest.fixture
def parsed(monkeypatch):
    """How many bytes each call has had parsed in this process, which is the service's too."""
    seen, feed = [], Scan.feed

    def counted(self, data, offset=None):
        seen.append(len(data))
        return feed(self, data, offset)

    monkeypatch.setattr(Scan, "feed", counted)
    return seen


# children are known by their command line here
pytestmark = pytest.mark.true_start


def children():
    """Processes that index, below this one."""
    pids = []
    for pid in descendants(os.getpid()):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if b"fragdex.service.indexing.child" in file.read():
                    pids.append(pid)
        except OSError:
            continue
    return pids


def sent(client, record, data):
    return client.post(f"{FILES}/{record['id']}/upload", content=data, timeout=PATIENCE)


class Sender(threading.Thread):
    """Sends a file while the test does something else."""

    def __init__(self, client, data):
        super().__init__()
        self.record, self.client, self.data = announced(client, data), client, data
        self.start()

    def run(self):
        self.answer = sent(self.client, self.record, self.data)

    def child(self, other_than=()):
        """The process that indexes it."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            for pid in children():
                if pid not in other_than:
                    return pid
            time.sleep(0.01)
        raise AssertionError("no process indexes the file")


def test_nothing_of_it_is_parsed_in_the_service_which_answers_meanwhile(served, parsed):
    film = uploaded(served.client, fixture_bytes("frag-global-sidx-video.mp4"))
    assert parsed  # what is small is parsed where it arrives
    process = served.client.post(f"{FILES}/{film['id']}/process").json()
    seek = f"{API}/isobmff_files/{process['isobmff_file_id']}/seek?track=1&time_ms=500"
    parsed.clear()
    sender = Sender(served.client, repeated_to("samples", 3 << 20))
    other, pid, asked = client_of(served.url, served.key), sender.child(), 0
    while sender.is_alive() and asked < 200:
        assert served.anyone.get("/healthz").status_code == 200
        assert other.get(seek).status_code == 200
        asked += 1
    sender.join()
    other.close()
    assert asked
    assert sender.answer.status_code == 201
    assert sender.answer.json()["fragment_index_complete"]
    assert sum(parsed) == 0
    assert pid not in children()


@pytest.fixture
def started(monkeypatch):
    """The processes that index, each as it is started."""
    seen, child = [], isolated.ChildProcess

    def starting(*given, **more):
        seen.append(given)
        return child(*given, **more)

    monkeypatch.setattr(isolated, "ChildProcess", starting)
    return seen


@pytest.mark.parametrize("boxes", [1, MOST_BOXES])
def test_what_is_processed_after_its_upload_is_not_indexed_again(served, started, boxes):
    large = boxes == MOST_BOXES
    behind = boxes * b"\0\0\0\x08free" + (2 * IN_THREAD).to_bytes(4, "big") + b"free"
    for forgotten in (False, True):
        film = fixture_bytes("frag-global-sidx-video.mp4") + behind
        record = uploaded(served.client, film + bytes([forgotten]) * (2 * IN_THREAD - 8))
        assert record["fragment_index_complete"]
        assert len(started) == large
        if forgotten:  # as another process, which has not seen it come
            served.context.part(Inspections).close()
        answer = served.client.post(f"{FILES}/{record['id']}/process")
        assert answer.json()["isobmff_file_id"]
        assert len(started) == large + forgotten
        started.clear()


def test_its_index_is_that_of_the_library(served):
    data = repeated_to("fragments", 2 * IN_THREAD)
    record = uploaded(served.client, data)
    key = [key for key in served.context.store.keys("indexes/") if key.endswith(".fidx")]
    with served.context.store.local(key[-1]) as path:
        index = fragdex.open_index(path)
    wanted = fragdex.index(data, exact=True)
    assert record["fragment_index_complete"]
    assert index.tracks[0].fragments.offset.tolist() == wanted.tracks[0].fragments.offset.tolist()
    assert index.file.size == len(data)


def test_what_is_no_movie_is_uploaded_all_the_same(served):
    data = repeated_to("empty-boxes", 1 << 20)
    assert not uploaded(served.client, data)["fragment_index_complete"]


def test_a_process_that_is_killed_is_started_again(served):
    sender = Sender(served.client, repeated_to("samples", 4 << 20))
    os.kill(sender.child(), signal.SIGKILL)
    sender.join()
    assert sender.answer.status_code == 201
    assert sender.answer.json()["fragment_index_complete"]


def test_a_process_that_is_killed_again_and_again_is_no_fault_of_the_file(served):
    data = repeated_to("samples", 4 << 20)
    sender = Sender(served.client, data)
    killed = []
    for _ in range(2):
        killed.append(sender.child(killed))
        os.kill(killed[-1], signal.SIGKILL)
    sender.join()
    assert sender.answer.status_code == 503
    assert "ended by SIGKILL" in sender.answer.json()["detail"]
    assert int(sender.answer.headers["Retry-After"]) >= 1
    again = sent(served.client, sender.record, data)
    assert again.status_code == 201
    assert again.json()["fragment_index_complete"]


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        *(({"MEMORY": memory << 20}, "more memory") for memory in (140, 150, 160)),
        ({"LEAST_SECONDS": 1, "SECONDS_A_MB": 0, "_WALL": 600}, "more processor time"),
    ],
)
def test_a_file_that_takes_too_much_is_refused_and_says_so(served, monkeypatch, bounds, words):
    for name, value in bounds.items():
        monkeypatch.setattr(isolated, name, value)
    data = repeated_to("movies", 6 << 20)
    record = announced(served.client, data)
    answer = sent(served.client, record, data)
    assert answer.status_code == 422
    assert re.search(words, answer.json()["detail"])
    assert not children()
    assert served.client.get(f"{FILES}/{record['id']}").json()["next_byte"] == 0
    assert uploaded(served.client, fragdex.testing.movie())["fragment_index_complete"]


def test_bytes_of_an_object_store_are_read_by_ranges(tmp_path, s3_url):
    with serving(tmp_path, store_url=s3_url) as served:
        record = uploaded(served.client, repeated_to("fragments", 2 * IN_THREAD))
        assert record["fragment_index_complete"]


def test_tenants_take_turns():
    """One of each tenant, two in all, in the order in which they came."""
    turns, order, over = isolated._Turns(), [], threading.Event()

    def one_of(tenant):
        with turns.turn(tenant):
            order.append(tenant)
            assert over.wait(PATIENCE)

    threads = []
    for tenant in ("bad", "bad", "bad", "good", "other"):
        threads.append(threading.Thread(target=one_of, args=(tenant,)))
        waiting = len(turns._waiting) + sum(turns._running.values())
        threads[-1].start()
        while len(turns._waiting) + sum(turns._running.values()) == waiting:
            time.sleep(0.001)
    while len(order) < 2:
        time.sleep(0.001)
    assert order == ["bad", "good"]
    over.set()
    for thread in threads:
        thread.join()
    assert sorted(order) == ["bad", "bad", "bad", "good", "other"]
    assert not turns._waiting
    assert not turns._running
