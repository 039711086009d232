"""Streams of events: known names, ASCII, heartbeats, and always an end."""

import asyncio
import json
import socket
import threading
import time

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fragdex.service.unprocessed.records import whole
from fragdex.service.web.events import LAST, NAMES, counted
from service.serving import serving
from service.web.conftest import router


def read(client, kind):
    answer = client.get(f"/api/v1/test/events/{kind}")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.content.isascii()
    events = []
    for block in answer.text.split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        assert fields["event"] in NAMES
        events.append((fields["event"], json.loads(fields["data"])))
    assert events[-1][0] in LAST
    return events


def test_a_stream_ends_with_its_first_complete(client):
    assert read(client, "whole") == [
        ("size", {"size": 3}),
        ("completion", {"count": 2, "word": "grün"}),
        ("completion", {"count": 1}),
        ("complete", {}),
    ]


def test_each_change_is_sent_once(client):
    assert read(client, "changes") == [
        ("progress", {"progress": 0.1}),
        ("progress", {"progress": 0.5}),
        ("progress", {"progress": 1}),
        ("complete", {}),
    ]


def chunks_of(server, path):
    """The chunks of an answer as the server writes them, and the empty one that ends it."""
    with socket.create_connection(server.address, 60) as connection:
        head = f"GET {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {server.key}\r\n"
        connection.sendall(f"{head}Connection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    rest, chunks = answer.partition(b"\r\n\r\n")[2], []
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size, 16)
        chunks.append(rest[:length])
        rest = rest[length + 2 :]
    return chunks


@pytest.mark.parametrize("kind", ["whole", "changes"])
def test_the_last_count_and_complete_go_out_in_one_write(server, kind):
    # published clients stop reading at the last count, and die of what comes later
    *_, last, end = chunks_of(server, f"/api/v1/test/events/{kind}")
    assert last.split(b"\n")[1] in (b"event: completion", b"event: progress")
    assert last.endswith(b"event: complete\ndata: {}\n\n")
    assert end == b""


def batches_of(states, after=None, told=counted):
    async def each():
        for state in states:
            yield state

    async def gather():
        return [batch async for batch in told(each(), after)]

    return asyncio.run(gather())


@given(
    size=st.integers(1, 30),
    reports=st.lists(st.integers(0, 40), max_size=8),
    known=st.integers(0, 3),
    ending=st.sampled_from(["complete", "error"]),
)
@settings(deadline=None)
def test_counts_reach_the_size_with_complete_and_not_before(size, reports, known, ending):
    states = [
        ("progress", {"size": size if at >= known else None, "done": done})
        for at, done in enumerate(reports)
    ]
    last = (ending, {"size": size, "done": size, "problem": {}})
    batches = batches_of([*states, last])
    events = [event for batch in batches for event in batch]
    assert events[0] == ("size", {"size": size}, "0")
    counts = [data["count"] for name, data, _ in events if name == "completion"]
    assert all(count > 0 for count in counts)
    if ending == "complete":
        assert sum(counts) == size
        assert [name for name, _, _ in batches[-1]][-2:] == ["completion", "complete"]
    else:
        assert sum(counts) < size


@given(
    size=st.integers(1, 30),
    reports=st.lists(st.integers(0, 40), max_size=8),
    later=st.lists(st.integers(0, 40), max_size=8),
    cut=st.integers(0, 20),
)
@settings(deadline=None)
def test_who_comes_again_with_an_id_has_each_count_once(size, reports, later, cut):
    """Whatever was received before the break, and wherever the work is then."""
    before = [("progress", {"size": size, "done": done}) for done in reports]
    end = ("complete", {"size": size, "done": size})
    events = [event for batch in batches_of([*before, end]) for event in batch]
    had = events[:cut]
    after = had[-1][2] if had else None
    if after != "end":
        again = [("progress", {"size": size, "done": done}) for done in later]
        had += [event for batch in batches_of([*again, end], after) for event in batch]
    assert sum(data["count"] for name, data, _ in had if name == "completion") == size
    assert [name for name, _, _ in had].count("size") == 1
    assert had[-1][0] == "complete"


@given(
    parts=st.lists(st.floats(0, 1), max_size=8),
    later=st.lists(st.floats(0, 1), max_size=8),
    cut=st.integers(0, 20),
)
@settings(deadline=None)
def test_who_comes_again_with_an_id_is_told_nothing_older(parts, later, cut):
    end = ("complete", {})
    states = [("progress", {"progress": part}) for part in parts]
    events = [event for batch in batches_of([*states, end], told=whole) for event in batch]
    had = events[:cut]
    after = had[-1][2] if had else None
    if after != "end":
        again = [("progress", {"progress": part}) for part in later]
        had += [event for batch in batches_of([*again, end], after, whole) for event in batch]
    progress = [data["progress"] for name, data, _ in had if name == "progress"]
    assert progress == sorted(progress)
    assert progress[-1] == 1
    assert had[0][0] == "progress"
    assert had[-1][0] == "complete"


@pytest.mark.parametrize("after", ["", "-", "x", "-1", "nan", "inf", "1e400", "9" * 40, "²", "0x1"])
def test_an_id_that_is_not_ours_gets_the_whole(after):
    states = [("progress", {"size": 3, "done": 1}), ("complete", {"size": 3, "done": 3})]
    assert batches_of(states, after)[0][0][:2] == ("size", {"size": 3})
    states = [("progress", {"progress": 0.0}), ("complete", {})]
    assert batches_of(states, after, whole)[0][0][:2] == ("progress", {"progress": 0.0})


def test_every_event_has_an_id(client):
    for kind in ("whole", "changes", "broken", "quiet"):
        frames = client.get(f"/api/v1/test/events/{kind}").text.removesuffix("\n\n").split("\n\n")
        assert all(frame.startswith("id: ") for frame in frames)


def test_an_error_ends_a_stream_as_a_problem(client):
    name, data = read(client, "broken")[-1]
    assert (name, data["status"], data["detail"]) == ("error", 404, "it was deleted")


@pytest.mark.parametrize("kind", ["faulty", "unended"])
def test_a_fault_ends_a_stream_without_a_word_of_the_inside(client, kind):
    name, data = read(client, kind)[-1]
    assert (name, data["status"]) == ("error", 500)
    assert "secret" not in str(data)


def test_where_nothing_happens_there_are_heartbeats(client):
    events = read(client, "quiet")
    assert ("heartbeat", {}) in events
    assert events[-1] == ("complete", {})


def count(server):
    return server.context.metrics.requests_running._value.get()


def test_a_client_that_leaves_ends_its_stream(server):
    with server.client.stream("GET", "/api/v1/test/events/endless") as answer:
        pieces = answer.iter_raw()  # the stream ends with what reads it
        next(pieces)
        assert count(server) == 1
    deadline = time.monotonic() + 60
    while count(server) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert count(server) == 0


def test_a_server_that_ends_breaks_streams_off_and_lets_requests_finish(tmp_path):
    with serving(tmp_path, router) as served:
        slow = []

        def ask():
            slow.append(served.client.post("/api/v1/test/slow").status_code)

        with served.stranger.stream("GET", "/api/v1/test/events/endless") as answer:
            pieces = answer.iter_raw()
            next(pieces)
            asking = threading.Thread(target=ask)
            asking.start()
            time.sleep(0.3)
            served.server.should_exit = True
            with pytest.raises(httpx.RemoteProtocolError):
                for _ in pieces:
                    pass
        asking.join(60)
        assert slow == [201]
