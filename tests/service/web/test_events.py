"""Streams of events: known names, ASCII, heartbeats, and always an end."""

import json
import threading
import time

import httpx
import pytest

from fragdex.service.web.events import LAST, NAMES
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
        ("complete", {}),
    ]


def test_changes_are_told_once_each(client):
    assert read(client, "changes") == [
        ("progress", {"progress": 0.1}),
        ("progress", {"progress": 0.5}),
        ("complete", {}),
    ]


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
    return server.app.state.metrics.running._value.get()


def test_a_client_that_leaves_ends_its_stream(server):
    with server.client.stream("GET", "/api/v1/test/events/endless") as answer:
        pieces = answer.iter_raw()  # the stream ends with what reads it
        next(pieces)
        assert count(server) == 1
    deadline = time.monotonic() + 10
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
        asking.join(20)
        assert slow == [201]
